/* The SHA-256 family, FIPS 180-4 section 6.2.2, with instructions that compute four rounds each, one message after the other. */
#include "sha256_constants.h"

PM_ALWAYS_INLINE void sha256_block(uint32x4_t *first, uint32x4_t *second, const uint8_t *block)
{
    uint32x4_t abcd = *first, efgh = *second, words[4];
    UNROLL
    for (int quad = 0; quad < 4; quad++)
        words[quad] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(block + quad * 16)));
    UNROLL
    for (int quad = 0; quad < 16; quad++) {
        const uint32x4_t sum = vaddq_u32(words[quad % 4], vld1q_u32(sha256_constants + 4 * quad)), before = abcd;
        if (quad < 12)
            words[quad % 4] = vsha256su1q_u32(vsha256su0q_u32(words[quad % 4], words[(quad + 1) % 4]), words[(quad + 2) % 4],
                                              words[(quad + 3) % 4]);
        abcd = vsha256hq_u32(abcd, efgh, sum);
        efgh = vsha256h2q_u32(efgh, before, sum);
    }
    *first = vaddq_u32(*first, abcd);
    *second = vaddq_u32(*second, efgh);
}

PM_NEVER_INLINE void compress_sha256(void *memory, const pm_run *run)
{
    uint32_t *const state = memory;
    /* The state is word-major; vld4q and vst4q transpose it. */
    uint32x4x4_t first = vld4q_u32(state), second = vld4q_u32(state + 16);
    for (size_t block = 0; block < run->blocks; block++)
        for (int lane = 0; lane < 4; lane++)
            if (run->live >> lane & 1)
                sha256_block(&first.val[lane], &second.val[lane], run->source[lane] + block * 64);
    vst4q_u32(state, first);
    vst4q_u32(state + 16, second);
}
