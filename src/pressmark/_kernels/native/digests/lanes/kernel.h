/* Shared by the level files, the batch and the bank; private to this folder. */
#ifndef PRESSMARK_LANES_KERNEL_H
#define PRESSMARK_LANES_KERNEL_H

#include "lanes.h"

/* Select instructions for the functions up to PM_END_TARGET: setuptools has no flags for single files. System headers are
 * included before, so that the target does not apply to them. */
#define PM_PRAGMA(...) _Pragma(#__VA_ARGS__)
#if defined(__clang__)
#define PM_TARGET(for_gcc, for_clang) PM_PRAGMA(clang attribute push(__attribute__((target(for_clang))), apply_to = function))
#define PM_END_TARGET PM_PRAGMA(clang attribute pop)
#else
#define PM_TARGET(for_gcc, for_clang) PM_PRAGMA(GCC push_options) PM_PRAGMA(GCC target(for_gcc))
#define PM_END_TARGET PM_PRAGMA(GCC pop_options)
#endif

/* After PM_TARGET: on x86, GCC orders instructions only after it has assigned registers, where SHA-2 has none to spare. */
#if defined(__GNUC__) && !defined(__clang__)
#define PM_SCHEDULE_FOR_PRESSURE PM_PRAGMA(GCC optimize("schedule-insns", "sched-pressure"))
#else
#define PM_SCHEDULE_FOR_PRESSURE
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#define PM_ALWAYS_INLINE static __forceinline
#define PM_NEVER_INLINE static __declspec(noinline)
#else
#define PM_ALWAYS_INLINE static inline __attribute__((always_inline))
#define PM_NEVER_INLINE static __attribute__((noinline))
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define PM_BIG_ENDIAN_HOST 1
#else
#define PM_BIG_ENDIAN_HOST 0
#endif

#define PM_STATE_WORDS 8

/* FIPS 180-4 section 5.3.5 and RFC 7693 section 2.6: the first 64 bits of the fractional parts of the square roots of the
 * first eight primes. SHA-512 starts with them, and BLAKE2b uses them in each block. */
#define PM_ROOT_0 UINT64_C(0x6a09e667f3bcc908)
#define PM_ROOT_1 UINT64_C(0xbb67ae8584caa73b)
#define PM_ROOT_2 UINT64_C(0x3c6ef372fe94f82b)
#define PM_ROOT_3 UINT64_C(0xa54ff53a5f1d36f1)
#define PM_ROOT_4 UINT64_C(0x510e527fade682d1)
#define PM_ROOT_5 UINT64_C(0x9b05688c2b3e6c1f)
#define PM_ROOT_6 UINT64_C(0x1f83d9abfb41bd6b)
#define PM_ROOT_7 UINT64_C(0x5be0cd19137e2179)

/* The constants of an algorithm, the same at all levels. */
typedef struct pm_constants {
    uint64_t initial[PM_STATE_WORDS]; /* the initial state; words of 32 bits are in the low half */
    uint8_t digest_size;
    uint8_t block_size;
    uint8_t state_words;
    uint8_t word_size;
    uint8_t length_size; /* bytes of the length field at the end of the padding; 0 for BLAKE2b, which pads with zeros */
    uint8_t big_endian;
} pm_constants;

/* A run: each lane compresses `blocks` whole blocks from its source. */
typedef struct pm_run {
    const uint8_t *source[PM_MAXIMUM_LANES]; /* readable for all lanes, including idle ones */
    size_t blocks;
    uint32_t live; /* the other lanes keep their state */
    /* BLAKE2b only (RFC 7693 section 3.2): the counter for the first block, and the lanes whose only block is their last. */
    uint32_t last;
    uint64_t counter[PM_MAXIMUM_LANES];
} pm_run;

/* A full set of lanes: messages with the same number of blocks after padding. */
typedef struct pm_group {
    const pm_constants *constants;
    const uint8_t *data;
    const uint8_t *end; /* the end of the column; nothing after it may be read */
    const int64_t *offsets;
    const uint16_t *members; /* the message of each lane */
    size_t blocks;
    uint8_t *out;
} pm_group;

/* One algorithm at one level. The state is word-major: word w of lane l is element w * lanes + l. An algorithm without lanes
 * is computed as at the level below. */
typedef struct pm_kernel {
    unsigned lanes;
    void (*compress)(void *state, const pm_run *run);
    void (*digest_group)(const pm_group *group);
    int skips_idle; /* idle lanes take no time */
} pm_kernel;

extern const pm_kernel *const pm_kernels_portable[PM_ALGORITHMS];
#if PM_HAVE_X86_LEVELS
extern const pm_kernel *const pm_kernels_avx2[PM_ALGORITHMS];
extern const pm_kernel *const pm_kernels_avx512[PM_ALGORITHMS];
extern const pm_kernel pm_md5_avx2, pm_md5_avx512;
#endif
#if PM_HAVE_NEON_LEVELS
extern const pm_kernel *const pm_kernels_neon[PM_ALGORITHMS];
#endif
#if PM_HAVE_NEON_SHA
extern const pm_kernel *const pm_kernels_neon_sha2[PM_ALGORITHMS];
extern const pm_kernel *const pm_kernels_neon_sha3[PM_ALGORITHMS];
#endif

extern const pm_constants pm_constants_of[PM_ALGORITHMS];

const pm_kernel *pm_find_kernel(pm_level level, pm_algorithm algorithm);

/* Compilers recognise this as one instruction. */
static inline uint64_t pm_swap_64(uint64_t x)
{
    x = (x >> 32) | (x << 32);
    x = ((x >> 16) & 0x0000ffff0000ffff) | ((x & 0x0000ffff0000ffff) << 16);
    return ((x >> 8) & 0x00ff00ff00ff00ff) | ((x & 0x00ff00ff00ff00ff) << 8);
}

/* The number of blocks of the padded message: at least one, for the padding. */
static inline size_t pm_padded_blocks(const pm_constants *constants, uint64_t length)
{
    if (constants->length_size == 0)
        return length == 0 ? 1 : (size_t)((length - 1) / constants->block_size) + 1;
    return (size_t)((length + constants->length_size) / constants->block_size) + 1;
}

/* --- parts of the bank (bank.c) that batches use for their leftovers --- */

/* Consecutive whole blocks; `last` marks the last block of a BLAKE2b message. */
typedef struct pm_segment {
    const uint8_t *source;
    size_t blocks;
    int last;
} pm_segment;

/* The remaining input of a lane: `now`, then `next`; either may be empty. */
typedef struct pm_cursor {
    pm_segment now;
    pm_segment next;
} pm_cursor;

/* Runs all lanes in `live`, each with a non-empty `now`, until the first one needs a new segment. Returns the lanes without
 * remaining input. */
uint32_t pm_bank_step(pm_bank *bank, pm_cursor cursors[], uint32_t live);

/* Pads the pending data in the lane's buffer and returns the last segment of the message. */
pm_segment pm_bank_pad(pm_bank *bank, unsigned lane);

/* Writes the digest of the lane's state. */
void pm_bank_extract(const pm_bank *bank, unsigned lane, uint8_t *out);

static inline uint8_t *pm_bank_buffer(pm_bank *bank, unsigned lane)
{
    return bank->buffer + (size_t)lane * 2 * bank->constants->block_size;
}

#endif
