#include "file_block.h"

#if PM_FILES_IN_LANES
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "../shared/text.h"
#include "beneath.h"

/* Fits the second-level cache, and contains enough small files to fill the lanes several times. */
#define PM_BLOCK_BUFFER ((size_t)256 << 10)

/* Opens a regular file that was found in its directory. Returns -1 for any other, whose status tells why. Without following a
 * link, which may lead to a device. */
static int pm_block_open(int directory, const char *name, int flags, struct stat *status)
{
    const int descriptor = openat(directory, name, flags | O_NOFOLLOW);
    if (descriptor < 0 || (!fstat(descriptor, status) && S_ISREG(status->st_mode)))
        return descriptor;
    close(descriptor);
    return -1;
}

/* Gets the status of a file, and reads it if it is small. Its type is checked first, since opening a device has effects, unless
 * a walk has found it: then its name is looked up only once. A copy is written when its source is known not to have changed. */
static void pm_block_read(const pm_engine *engine, pm_parent *parent, const char *path, const char *target, int64_t most,
                          pm_block_file *file, uint8_t *data)
{
    const int is_beneath = engine->beneath >= 0;
    struct stat status;
    file->ending = PM_BLOCK_LEFT;
    file->small.size = -1;
    const char *name = pm_parent_enter(engine, parent, path);
    if (name == NULL)
        return;
    int descriptor = engine->walked && most >= 0 ? pm_block_open(parent->at, name, engine->flags, &status) : -1;
    if (descriptor < 0
        && (fstatat(parent->at, name, &status, is_beneath || engine->flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0)
            || !S_ISREG(status.st_mode)))
        return;
    file->small.size = (int64_t)status.st_size;
    if (status.st_size > most) {
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    while (descriptor < 0) {
        descriptor = openat(parent->at, name, is_beneath ? engine->flags | O_NOFOLLOW : engine->flags);
        if (descriptor < 0 && errno != EINTR) {
            file->ending = PM_BLOCK_FAILED;
            file->small.error = errno;
            return;
        }
    }
    const int ending = pm_small_read_file(descriptor, &status, data, &file->small);
    close(descriptor);
    if (ending == PM_SMALL_DONE && target)
        file->small.error = pm_small_write_like(target, &status, data, file->small.size);
    if (ending == PM_SMALL_DONE)
        file->ending = file->small.error ? PM_BLOCK_TARGET : PM_BLOCK_DIGESTS;
    else if (ending != PM_SMALL_NOT_HERE)
        file->ending = PM_BLOCK_FAILED;
}

static void pm_put_bytes_in_hex(uint8_t *out, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = (uint8_t)pm_hex_digits[bytes[i] >> 4];
        out[2 * i + 1] = (uint8_t)pm_hex_digits[bytes[i] & 15];
    }
}

static int pm_block_hash(pm_engine *engine, pm_block *block, const pm_block_group *group, uint8_t *digests,
                         pm_extra_block extra, void *context)
{
    if (group->count == 0)
        return 0;
    for (unsigned a = 0; a < engine->algorithms; a++) {
        const pm_algorithm algorithm = engine->algorithm[a];
        const size_t size = pm_digest_size(algorithm);
        pm_digest_column(engine->level, algorithm, group->data, group->offsets, group->count, digests);
        for (int64_t i = 0; i < group->count; i++)
            pm_put_bytes_in_hex(block->hex + (size_t)group->members[i] * engine->hex_size + engine->hex_at[a],
                                digests + (size_t)i * size, size);
    }
    __atomic_fetch_add(&engine->read_bytes, group->offsets[group->count], __ATOMIC_RELAXED);
    return extra ? extra(context, block, group) : 0;
}

int pm_block_run(pm_engine *engine, pm_block *block, pm_extra_block extra, void *context)
{
    const size_t room = block->most < 0 ? 0 : (size_t)block->most + 1;
    const size_t count = (size_t)block->count;
    pm_block_group group = {0};
    group.members = (int64_t *)malloc((2 * count + 1) * sizeof(int64_t));
    group.data = (uint8_t *)malloc(PM_BLOCK_BUFFER + room);
    uint8_t *digests = (uint8_t *)malloc(count * PM_MAXIMUM_DIGEST_SIZE + 1);
    int failed = group.members == NULL || group.data == NULL || digests == NULL ? -1 : 0;
    pm_parent parent = {.descriptor = -1};
    if (!failed) {
        group.offsets = group.members + count;
        group.offsets[0] = 0;
    }
    for (int64_t i = 0; i < block->count && !failed; i++) {
        pm_block_file *file = &block->files[i];
        const int64_t used = group.offsets[group.count];
        if (__atomic_load_n(&engine->closed, __ATOMIC_RELAXED))
            continue;
        pm_block_read(engine, &parent, block->paths[i], block->targets ? block->targets[i] : NULL, block->most, file,
                      group.data + used);
        if (file->ending != PM_BLOCK_DIGESTS)
            continue;
        group.members[group.count++] = i;
        group.offsets[group.count] = used + file->small.size;
        if (group.offsets[group.count] >= (int64_t)PM_BLOCK_BUFFER) {
            failed = pm_block_hash(engine, block, &group, digests, extra, context);
            group.count = 0;
        }
    }
    if (!failed)
        failed = pm_block_hash(engine, block, &group, digests, extra, context);
    pm_parent_close(engine, &parent);
    free(digests);
    free(group.data);
    free(group.members);
    return failed;
}

#else

int pm_block_run(pm_engine *engine, pm_block *block, pm_extra_block extra, void *context)
{
    (void)engine, (void)block, (void)extra, (void)context;
    return -1;
}

#endif
