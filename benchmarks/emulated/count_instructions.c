/* A plugin of qemu's user emulation: prints the number of executed instructions whenever the program calls getppid.
 * The functions are those of qemu-plugin.h (QEMU 7.2, version 1), which Debian does not package. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define GETPPID 173 /* of aarch64 */
#define EXPORTED __attribute__((visibility("default")))

struct qemu_plugin_tb;
typedef void (*translated)(uint64_t id, struct qemu_plugin_tb *block);
typedef void (*called)(uint64_t id, unsigned processor, int64_t number, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                       uint64_t, uint64_t);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translated function);
void qemu_plugin_register_vcpu_syscall_cb(uint64_t id, called function);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, int add, uint64_t *to, uint64_t value);

EXPORTED int qemu_plugin_version = 1;
static uint64_t executed;

static void count_block(uint64_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, 0, &executed, qemu_plugin_tb_n_insns(block));
}

static void print_count(uint64_t id, unsigned processor, int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                        uint64_t f, uint64_t g, uint64_t h)
{
    (void)id, (void)processor, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
    if (number == GETPPID)
        fprintf(stderr, "%" PRIu64 "\n", executed);
}

EXPORTED int qemu_plugin_install(uint64_t id, const void *about, int count, char **arguments)
{
    (void)about, (void)count, (void)arguments;
    qemu_plugin_register_vcpu_tb_trans_cb(id, count_block);
    qemu_plugin_register_vcpu_syscall_cb(id, print_count);
    return 0;
}
