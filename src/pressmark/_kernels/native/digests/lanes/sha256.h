/* The SHA-256 family, 64 rounds on a state of eight words: FIPS 180-4 section 6.2.2. */
#include "sha256_constants.h"

#define SHA256_CHOOSE(x, y, z) (((x) & (y)) ^ (~(x) & (z)))
#define SHA256_MAJORITY(x, y, z) ((y) ^ (((x) ^ (y)) & ((y) ^ (z))))
#define SHA256_SUM_0(x) (ROTATE_RIGHT_32(x, 2) ^ ROTATE_RIGHT_32(x, 13) ^ ROTATE_RIGHT_32(x, 22))
#define SHA256_SUM_1(x) (ROTATE_RIGHT_32(x, 6) ^ ROTATE_RIGHT_32(x, 11) ^ ROTATE_RIGHT_32(x, 25))
#define SHA256_SIGMA_0(x) (ROTATE_RIGHT_32(x, 7) ^ ROTATE_RIGHT_32(x, 18) ^ ((x) >> 3))
#define SHA256_SIGMA_1(x) (ROTATE_RIGHT_32(x, 17) ^ ROTATE_RIGHT_32(x, 19) ^ ((x) >> 10))

/* The names of the state rotate from round to round, so that no value is moved. The newest values, e and a, are added last. */
#define SHA256_ROUND(a, b, c, d, e, f, g, h, i) \
    do { \
        h = summed32(summed32(h + words[i] + sha256_constants[round + (i)]) + SHA256_CHOOSE(e, f, g)) + SHA256_SUM_1(e); \
        d += h; \
        h = summed32(h + SHA256_MAJORITY(a, b, c)) + SHA256_SUM_0(a); \
    } while (0)

/* The message schedule needs only the last sixteen words, so it runs in place. */
#define SHA256_SCHEDULED_ROUND(a, b, c, d, e, f, g, h, i) \
    do { \
        words[i] += SHA256_SIGMA_1(words[((i) + 14) % 16]) + words[((i) + 9) % 16] + SHA256_SIGMA_0(words[((i) + 1) % 16]); \
        SHA256_ROUND(a, b, c, d, e, f, g, h, i); \
    } while (0)

PM_NEVER_INLINE void compress_sha256(void *memory, const pm_run *run)
{
    vector32 *state = memory;
    const vector32 live = lane_mask32(run->live);
    vector32 words[16];

    for (size_t block = 0; block < run->blocks; block++) {
        load_block32(words, run->source, block * 64, !PM_BIG_ENDIAN_HOST);
        vector32 a = state[0], b = state[1], c = state[2], d = state[3];
        vector32 e = state[4], f = state[5], g = state[6], h = state[7];
        int round = 0;
        SHA256_ROUND(a, b, c, d, e, f, g, h, 0);
        SHA256_ROUND(h, a, b, c, d, e, f, g, 1);
        SHA256_ROUND(g, h, a, b, c, d, e, f, 2);
        SHA256_ROUND(f, g, h, a, b, c, d, e, 3);
        SHA256_ROUND(e, f, g, h, a, b, c, d, 4);
        SHA256_ROUND(d, e, f, g, h, a, b, c, 5);
        SHA256_ROUND(c, d, e, f, g, h, a, b, 6);
        SHA256_ROUND(b, c, d, e, f, g, h, a, 7);
        SHA256_ROUND(a, b, c, d, e, f, g, h, 8);
        SHA256_ROUND(h, a, b, c, d, e, f, g, 9);
        SHA256_ROUND(g, h, a, b, c, d, e, f, 10);
        SHA256_ROUND(f, g, h, a, b, c, d, e, 11);
        SHA256_ROUND(e, f, g, h, a, b, c, d, 12);
        SHA256_ROUND(d, e, f, g, h, a, b, c, 13);
        SHA256_ROUND(c, d, e, f, g, h, a, b, 14);
        SHA256_ROUND(b, c, d, e, f, g, h, a, 15);
        for (round = 16; round < 64; round += 16) {
            SHA256_SCHEDULED_ROUND(a, b, c, d, e, f, g, h, 0);
            SHA256_SCHEDULED_ROUND(h, a, b, c, d, e, f, g, 1);
            SHA256_SCHEDULED_ROUND(g, h, a, b, c, d, e, f, 2);
            SHA256_SCHEDULED_ROUND(f, g, h, a, b, c, d, e, 3);
            SHA256_SCHEDULED_ROUND(e, f, g, h, a, b, c, d, 4);
            SHA256_SCHEDULED_ROUND(d, e, f, g, h, a, b, c, 5);
            SHA256_SCHEDULED_ROUND(c, d, e, f, g, h, a, b, 6);
            SHA256_SCHEDULED_ROUND(b, c, d, e, f, g, h, a, 7);
            SHA256_SCHEDULED_ROUND(a, b, c, d, e, f, g, h, 8);
            SHA256_SCHEDULED_ROUND(h, a, b, c, d, e, f, g, 9);
            SHA256_SCHEDULED_ROUND(g, h, a, b, c, d, e, f, 10);
            SHA256_SCHEDULED_ROUND(f, g, h, a, b, c, d, e, 11);
            SHA256_SCHEDULED_ROUND(e, f, g, h, a, b, c, d, 12);
            SHA256_SCHEDULED_ROUND(d, e, f, g, h, a, b, c, 13);
            SHA256_SCHEDULED_ROUND(c, d, e, f, g, h, a, b, 14);
            SHA256_SCHEDULED_ROUND(b, c, d, e, f, g, h, a, 15);
        }
        /* Adding zero keeps the state of idle lanes. */
        state[0] += a & live;
        state[1] += b & live;
        state[2] += c & live;
        state[3] += d & live;
        state[4] += e & live;
        state[5] += f & live;
        state[6] += g & live;
        state[7] += h & live;
    }
}
