/* Message digests, several at a time: one message in each lane of a vector register.
 *
 * Two interfaces to the same compression functions:
 *   pm_digest_column  digests of many short messages in one column;
 *   pm_bank           a streaming digest in each lane, updated with buffers of any length.
 *
 * Nothing here allocates, locks, raises or uses Python. Several threads may call all functions at the same time, but must not
 * share a bank. Arguments are trusted: the callers validate them.
 */
#ifndef PRESSMARK_LANES_H
#define PRESSMARK_LANES_H

#include <stddef.h>
#include <stdint.h>

/* Whether this build has the vector levels of an architecture. Defined from outside only to test builds for other machines.
 * Microsoft's compiler has no vector extensions, and its run time lacks __builtin_cpu_supports. */
#if !defined(PM_HAVE_X86_LEVELS)
#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__) && !defined(_MSC_VER)
#define PM_HAVE_X86_LEVELS 1
#else
#define PM_HAVE_X86_LEVELS 0
#endif
#endif
#if !defined(PM_HAVE_NEON_LEVELS)
#if defined(__aarch64__) && defined(__ARM_NEON) && !defined(__AARCH64EB__) && defined(__GNUC__) && !defined(_MSC_VER)
#define PM_HAVE_NEON_LEVELS 1
#else
#define PM_HAVE_NEON_LEVELS 0
#endif
#endif
/* Clang before 16 knows the optional instructions only if all of the build may use them. */
#if PM_HAVE_NEON_LEVELS && (!defined(__clang__) || __clang_major__ >= 16 || defined(__ARM_FEATURE_SHA512))
#define PM_HAVE_NEON_SHA 1
#else
#define PM_HAVE_NEON_SHA 0
#endif

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

/* The levels of this architecture, in ascending order: a machine that supports a level supports all levels before it. */
typedef enum {
    PM_PORTABLE = 0,
#if PM_HAVE_X86_LEVELS
    PM_AVX2,
    PM_AVX512,
#elif PM_HAVE_NEON_LEVELS
    PM_NEON,
    PM_NEON_SHA2, /* with instructions for SHA-1 and SHA-256 */
    PM_NEON_SHA3, /* also with instructions for SHA-512, and SHA-3's rotation */
#endif
    PM_LEVELS
} pm_level;

#define PM_MAXIMUM_LANES 32
#define PM_MAXIMUM_DIGEST_SIZE 64

/* The set of the first `count` lanes. */
static inline uint32_t pm_first_lanes(unsigned count)
{
    return UINT32_MAX >> (PM_MAXIMUM_LANES - count);
}

/* Both return 0 for an unknown algorithm. */
size_t pm_digest_size(pm_algorithm algorithm);
size_t pm_block_size(pm_algorithm algorithm);

/* Returns the highest level that this build, processor and operating system support. Higher levels must not be used, since
 * their instructions are illegal. Lower levels may be used, for example in tests. */
pm_level pm_best_level(void);

/* Whether this processor permutes single bytes in registers of 64 bytes (VBMI), which not all AVX-512 processors support. */
int pm_permutes_bytes(pm_level level);

/* Returns 1 if this processor has SHA-1 and SHA-256 as instructions, 2 if it has SHA-512, too; otherwise 0. */
int pm_sha_extensions(void);

/* "portable", "avx2", "avx512", "neon", "neon-sha2" or "neon-sha3"; NULL for an unknown level. */
const char *pm_level_name(pm_level level);

/* The number of lanes: 1 to PM_MAXIMUM_LANES, or 0 for an unknown level or algorithm. */
unsigned pm_lanes(pm_level level, pm_algorithm algorithm);

/* Computes the digests of `count` messages in a column: message i is data[offsets[i] .. offsets[i + 1]). The count + 1 offsets
 * are ascending; the first need not be 0, so part of a column can be passed. Writes count * pm_digest_size bytes to `out`, in
 * the order of the messages. Reads nothing outside data[offsets[0] .. offsets[count]); `data` may be NULL if that is empty.
 * `out` must not overlap the column. Fewer messages than lanes are hashed at the level PM_PORTABLE if that is faster. */
void pm_digest_column(pm_level level, pm_algorithm algorithm, const uint8_t *data, const int64_t *offsets, int64_t count,
                      uint8_t *out);

/* The streaming digests of up to PM_MAXIMUM_LANES messages. The caller owns the bank, aligned to 64 bytes; its members are
 * private. Its size does not depend on level or algorithm. It is plain memory: nothing to release, and memcpy copies it. */
#if defined(_MSC_VER)
#define PM_ALIGNED_64 __declspec(align(64))
#else
#define PM_ALIGNED_64 __attribute__((aligned(64)))
#endif

#define PM_BANK_STATE_SIZE 512   /* 8 words of state in a register of 64 bytes each, or 4 in two */
#define PM_BANK_BUFFER_SIZE 4096 /* two blocks for each lane: 32 * 2 * 64, or 8 * 2 * 128 */

typedef struct {
    PM_ALIGNED_64 uint8_t state[PM_BANK_STATE_SIZE];
    uint8_t buffer[PM_BANK_BUFFER_SIZE];
    uint64_t compressed[PM_MAXIMUM_LANES]; /* compressed bytes of the message */
    uint32_t pending[PM_MAXIMUM_LANES];    /* bytes of the message in the buffer */
    const struct pm_kernel *kernel;
    const struct pm_constants *constants;
} pm_bank;

/* Returns sizeof(pm_bank), for callers that do not include this header. */
size_t pm_bank_size(void);

/* Sets level and algorithm, and starts all lanes. */
void pm_bank_init(pm_bank *bank, pm_level level, pm_algorithm algorithm);

/* Starts a new message in one lane and discards the previous one. */
void pm_bank_start(pm_bank *bank, unsigned lane);

/* Appends data[lane][0 .. lengths[lane]) to the message of each lane; both arrays have pm_lanes entries. The pointer of a lane
 * with length 0 is ignored. The buffers may be reused on return. This is fastest if all lengths are equal and multiples of the
 * block size: a lane without whole blocks is idle until the longest one ends. */
void pm_bank_update(pm_bank *bank, const uint8_t *const data[], const size_t lengths[]);

/* Writes the digest of one lane's message, pm_digest_size bytes, and restarts the lane. Other lanes are not affected. */
void pm_bank_finish(pm_bank *bank, unsigned lane, uint8_t *out);

/* The same for each lane whose bit (1 << lane) is set, at the cost of a single call. out[lane] is used for these lanes only. */
void pm_bank_finish_many(pm_bank *bank, uint32_t lanes, uint8_t *const out[]);

#ifdef __cplusplus
}
#endif

#endif
