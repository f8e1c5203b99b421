/* SHA-1, FIPS 180-4 section 6.1.2, with instructions that compute four steps each, one message after the other. */

/* Five times four steps with one function; e is the fifth word of the state. */
#define SHA1_QUADS(function, first, constant) \
    UNROLL \
    for (int quad = first; quad < first + 5; quad++) { \
        const uint32x4_t sum = vaddq_u32(words[quad % 4], vdupq_n_u32(constant)); \
        const uint32_t rotated = vsha1h_u32(vgetq_lane_u32(abcd, 0)); \
        abcd = function(abcd, e, sum); \
        e = rotated; \
        if (quad < 16) \
            words[quad % 4] = vsha1su1q_u32(vsha1su0q_u32(words[quad % 4], words[(quad + 1) % 4], words[(quad + 2) % 4]), \
                                            words[(quad + 3) % 4]); \
    }

PM_ALWAYS_INLINE void sha1_block(uint32x4_t *first, uint32_t *fifth, const uint8_t *block)
{
    uint32x4_t abcd = *first, words[4];
    uint32_t e = *fifth;
    UNROLL
    for (int quad = 0; quad < 4; quad++)
        words[quad] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(block + quad * 16)));
    SHA1_QUADS(vsha1cq_u32, 0, 0x5a827999)
    SHA1_QUADS(vsha1pq_u32, 5, 0x6ed9eba1)
    SHA1_QUADS(vsha1mq_u32, 10, 0x8f1bbcdc)
    SHA1_QUADS(vsha1pq_u32, 15, 0xca62c1d6)
    *first = vaddq_u32(*first, abcd);
    *fifth += e;
}

PM_NEVER_INLINE void compress_sha1(void *memory, const pm_run *run)
{
    uint32_t *const state = memory, *const fifth = state + 16;
    /* The state is word-major; vld4q and vst4q transpose it. */
    uint32x4x4_t lanes = vld4q_u32(state);
    for (size_t block = 0; block < run->blocks; block++)
        for (int lane = 0; lane < 4; lane++)
            if (run->live >> lane & 1)
                sha1_block(&lanes.val[lane], &fifth[lane], run->source[lane] + block * 64);
    vst4q_u32(state, lanes);
}
