/* Message digests several at a time: one message per lane of a vector register.
 *
 * Two doors on the same compression functions:
 *   pm_digest_column  digests of many short messages in one packed column;
 *   pm_bank           a streaming digest per lane, fed buffers of any length.
 *
 * Nothing here allocates, locks, raises or knows Python. All functions are safe to call from several threads at once, as long
 * as two threads do not share a bank. Arguments are trusted: the callers above validate them.
 */
#ifndef PRESSMARK_LANES_H
#define PRESSMARK_LANES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    PM_MD5 = 0,
    PM_SHA1,
    PM_SHA224,
    PM_SHA256,
    PM_SHA384,
    PM_SHA512,
    PM_SHA512_224,
    PM_SHA512_256,
    PM_BLAKE2B_160,
    PM_BLAKE2B_256,
    PM_BLAKE2B_384,
    PM_BLAKE2B_512,
    PM_ALGORITHMS
} pm_algorithm;

/* In rising order: a machine that runs one level runs all those before it. */
typedef enum { PM_PORTABLE = 0, PM_AVX2, PM_AVX512, PM_LEVELS } pm_level;

#define PM_MAXIMUM_LANES 16
#define PM_MAXIMUM_DIGEST_SIZE 64

/* Both are 0 for a number that names no algorithm. */
size_t pm_digest_size(pm_algorithm algorithm);
size_t pm_block_size(pm_algorithm algorithm);

/* The highest level that this build contains and this processor and operating system can run. A higher level than this one
 * must not be asked for: its code would stop at an illegal instruction. Lower ones may, which is how they are tested. */
pm_level pm_best_level(void);

/* Whether this processor permutes single bytes in registers of 64 bytes. This came later than the rest of AVX-512, so the
 * level alone does not promise it. */
int pm_permutes_bytes(pm_level level);

/* Whether this processor has SHA-1 and SHA-256 as instructions. */
int pm_sha_extensions(void);

/* "portable", "avx2", "avx512"; NULL for a number that names no level. */
const char *pm_level_name(pm_level level);

/* Messages that run side by side: 1 to PM_MAXIMUM_LANES; 0 when this build does not contain the level. */
unsigned pm_lanes(pm_level level, pm_algorithm algorithm);

/* Digests of `count` messages in a packed column: message i is data[offsets[i] .. offsets[i + 1]). There are count + 1
 * offsets, never falling; the first need not be 0, so that a part of a column can be given. Writes count * pm_digest_size
 * bytes at `out`, message order. Reads nothing outside data[offsets[0] .. offsets[count]); `data` may be NULL when that is
 * empty. `out` must not overlap the column. */
void pm_digest_column(pm_level level, pm_algorithm algorithm, const uint8_t *data, const int64_t *offsets, int64_t count,
                      uint8_t *out);

/* The streaming digests of up to PM_MAXIMUM_LANES messages. Owned by the caller, aligned to 64 bytes, never to be looked into;
 * the size does not depend on level or algorithm. Plain memory: nothing to release, may be copied with memcpy. */
#if defined(_MSC_VER)
#define PM_ALIGNED_64 __declspec(align(64))
#else
#define PM_ALIGNED_64 __attribute__((aligned(64)))
#endif

#define PM_BANK_STATE_SIZE 512   /* 8 words of state, a register of 64 bytes each */
#define PM_BANK_BUFFER_SIZE 2048 /* two blocks a lane: 16 * 2 * 64, or 8 * 2 * 128 */

typedef struct {
    PM_ALIGNED_64 uint8_t state[PM_BANK_STATE_SIZE];
    uint8_t buffer[PM_BANK_BUFFER_SIZE];
    uint64_t compressed[PM_MAXIMUM_LANES]; /* bytes of the message that the state has taken in */
    uint32_t pending[PM_MAXIMUM_LANES];    /* bytes of the message that wait in the buffer */
    const struct pm_kernel *kernel;
    const struct pm_facts *facts;
} pm_bank;

/* sizeof(pm_bank), for callers that do not read this header. */
size_t pm_bank_size(void);

/* Chooses level and algorithm, and starts all lanes. */
void pm_bank_init(pm_bank *bank, pm_level level, pm_algorithm algorithm);

/* Begins a new message in one lane; what the lane held is forgotten. */
void pm_bank_start(pm_bank *bank, unsigned lane);

/* Appends data[lane][0 .. lengths[lane]) to each lane's message; both arrays have pm_lanes entries. With length 0 the lane
 * rests and its pointer is not looked at. The buffers are free again on return. Fastest when all lengths are equal and
 * multiples of the block: a lane that has no more whole blocks idles until the longest is through. */
void pm_bank_update(pm_bank *bank, const uint8_t *const data[], const size_t lengths[]);

/* Writes the digest of one lane's message, pm_digest_size bytes. The lane then stands as after pm_bank_start; the other lanes
 * are not disturbed. */
void pm_bank_finish(pm_bank *bank, unsigned lane, uint8_t *out);

/* The same for every lane whose bit (1 << lane) is set, at the price of one. out[lane] is looked at for those lanes only. */
void pm_bank_finish_many(pm_bank *bank, uint32_t lanes, uint8_t *const out[]);

#ifdef __cplusplus
}
#endif

#endif
