/* The SHA-512 family, FIPS 180-4 section 6.4.2, with instructions that compute two rounds each, one message after the other. */
#include "sha512_constants.h"

/* Two rounds. The names of the state rotate: pairs of words are in v[0] to v[3]. */
#define SHA512_PAIR(pair) \
    do { \
        const uint64x2_t sum = vaddq_u64(words[pair], vld1q_u64(sha512_constants + round + 2 * (pair))); \
        const uint64x2_t cd = v[(5 - (pair) % 4) % 4], ef = v[(6 - (pair) % 4) % 4], gh = v[(7 - (pair) % 4) % 4]; \
        const uint64x2_t half = vsha512hq_u64(vaddq_u64(vextq_u64(sum, sum, 1), gh), vextq_u64(ef, gh, 1), vextq_u64(cd, ef, 1)); \
        v[(7 - (pair) % 4) % 4] = vsha512h2q_u64(half, cd, v[(4 - (pair) % 4) % 4]); \
        v[(5 - (pair) % 4) % 4] = vaddq_u64(cd, half); \
    } while (0)

PM_ALWAYS_INLINE void sha512_block(uint64x2_t state[4], const uint8_t *block)
{
    uint64x2_t v[4] = {state[0], state[1], state[2], state[3]}, words[8];
    int round = 0;
    UNROLL
    for (int pair = 0; pair < 8; pair++)
        words[pair] = vreinterpretq_u64_u8(vrev64q_u8(vld1q_u8(block + pair * 16)));
    UNROLL
    for (int pair = 0; pair < 8; pair++)
        SHA512_PAIR(pair);
    for (round = 16; round < 80; round += 16) {
        UNROLL
        for (int pair = 0; pair < 8; pair++) {
            words[pair] = vsha512su1q_u64(vsha512su0q_u64(words[pair], words[(pair + 1) % 8]), words[(pair + 7) % 8],
                                          vextq_u64(words[(pair + 4) % 8], words[(pair + 5) % 8], 1));
            SHA512_PAIR(pair);
        }
    }
    UNROLL
    for (int pair = 0; pair < 4; pair++)
        state[pair] = vaddq_u64(state[pair], v[pair]);
}

PM_NEVER_INLINE void compress_sha512(void *memory, const pm_run *run)
{
    uint64_t *const state = memory;
    uint64x2_t lanes[2][4];
    /* The state is word-major; vld2q and vst2q transpose it. */
    for (int pair = 0; pair < 4; pair++) {
        const uint64x2x2_t both = vld2q_u64(state + 4 * pair);
        lanes[0][pair] = both.val[0];
        lanes[1][pair] = both.val[1];
    }
    for (size_t block = 0; block < run->blocks; block++)
        for (int lane = 0; lane < 2; lane++)
            if (run->live >> lane & 1)
                sha512_block(lanes[lane], run->source[lane] + block * 128);
    for (int pair = 0; pair < 4; pair++) {
        const uint64x2x2_t both = {{lanes[0][pair], lanes[1][pair]}};
        vst2q_u64(state + 4 * pair, both);
    }
}
