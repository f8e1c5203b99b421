/* The SHA-512 family, 80 rounds on a state of eight words: FIPS 180-4 section 6.4.2. */
#include "sha512_constants.h"

#define SHA512_CHOOSE(x, y, z) (((x) & (y)) ^ (~(x) & (z)))
#define SHA512_MAJORITY(x, y, z) ((y) ^ (((x) ^ (y)) & ((y) ^ (z))))
#define SHA512_SUM_0(x) (ROTATE_RIGHT_64(x, 28) ^ ROTATE_RIGHT_64(x, 34) ^ ROTATE_RIGHT_64(x, 39))
#define SHA512_SUM_1(x) (ROTATE_RIGHT_64(x, 14) ^ ROTATE_RIGHT_64(x, 18) ^ ROTATE_RIGHT_64(x, 41))
#define SHA512_SIGMA_0(x) (ROTATE_RIGHT_64(x, 1) ^ ROTATE_BYTES_64(x, 1) ^ ((x) >> 7))
#define SHA512_SIGMA_1(x) (ROTATE_RIGHT_64(x, 19) ^ ROTATE_RIGHT_64(x, 61) ^ ((x) >> 6))

/* The names of the state rotate from round to round, so that no value is moved. The newest values, e and a, are added last. */
#define SHA512_ROUND(a, b, c, d, e, f, g, h, i) \
    do { \
        h = summed64(summed64(h + words[i] + sha512_constants[round + (i)]) + SHA512_CHOOSE(e, f, g)) + SHA512_SUM_1(e); \
        d += h; \
        h = summed64(h + SHA512_MAJORITY(a, b, c)) + SHA512_SUM_0(a); \
    } while (0)

/* The message schedule needs only the last sixteen words, so it runs in place. */
#define SHA512_SCHEDULED_ROUND(a, b, c, d, e, f, g, h, i) \
    do { \
        words[i] += SHA512_SIGMA_1(words[((i) + 14) % 16]) + words[((i) + 9) % 16] + SHA512_SIGMA_0(words[((i) + 1) % 16]); \
        SHA512_ROUND(a, b, c, d, e, f, g, h, i); \
    } while (0)

PM_NEVER_INLINE void compress_sha512(void *memory, const pm_run *run)
{
    vector64 *state = memory;
    const vector64 live = lane_mask64(run->live);
    vector64 words[16];

    for (size_t block = 0; block < run->blocks; block++) {
        load_block64(words, run->source, block * 128, !PM_BIG_ENDIAN_HOST);
        vector64 a = state[0], b = state[1], c = state[2], d = state[3];
        vector64 e = state[4], f = state[5], g = state[6], h = state[7];
        int round = 0;
        SHA512_ROUND(a, b, c, d, e, f, g, h, 0);
        SHA512_ROUND(h, a, b, c, d, e, f, g, 1);
        SHA512_ROUND(g, h, a, b, c, d, e, f, 2);
        SHA512_ROUND(f, g, h, a, b, c, d, e, 3);
        SHA512_ROUND(e, f, g, h, a, b, c, d, 4);
        SHA512_ROUND(d, e, f, g, h, a, b, c, 5);
        SHA512_ROUND(c, d, e, f, g, h, a, b, 6);
        SHA512_ROUND(b, c, d, e, f, g, h, a, 7);
        SHA512_ROUND(a, b, c, d, e, f, g, h, 8);
        SHA512_ROUND(h, a, b, c, d, e, f, g, 9);
        SHA512_ROUND(g, h, a, b, c, d, e, f, 10);
        SHA512_ROUND(f, g, h, a, b, c, d, e, 11);
        SHA512_ROUND(e, f, g, h, a, b, c, d, 12);
        SHA512_ROUND(d, e, f, g, h, a, b, c, 13);
        SHA512_ROUND(c, d, e, f, g, h, a, b, 14);
        SHA512_ROUND(b, c, d, e, f, g, h, a, 15);
        for (round = 16; round < 80; round += 16) {
            SHA512_SCHEDULED_ROUND(a, b, c, d, e, f, g, h, 0);
            SHA512_SCHEDULED_ROUND(h, a, b, c, d, e, f, g, 1);
            SHA512_SCHEDULED_ROUND(g, h, a, b, c, d, e, f, 2);
            SHA512_SCHEDULED_ROUND(f, g, h, a, b, c, d, e, 3);
            SHA512_SCHEDULED_ROUND(e, f, g, h, a, b, c, d, 4);
            SHA512_SCHEDULED_ROUND(d, e, f, g, h, a, b, c, 5);
            SHA512_SCHEDULED_ROUND(c, d, e, f, g, h, a, b, 6);
            SHA512_SCHEDULED_ROUND(b, c, d, e, f, g, h, a, 7);
            SHA512_SCHEDULED_ROUND(a, b, c, d, e, f, g, h, 8);
            SHA512_SCHEDULED_ROUND(h, a, b, c, d, e, f, g, 9);
            SHA512_SCHEDULED_ROUND(g, h, a, b, c, d, e, f, 10);
            SHA512_SCHEDULED_ROUND(f, g, h, a, b, c, d, e, 11);
            SHA512_SCHEDULED_ROUND(e, f, g, h, a, b, c, d, 12);
            SHA512_SCHEDULED_ROUND(d, e, f, g, h, a, b, c, 13);
            SHA512_SCHEDULED_ROUND(c, d, e, f, g, h, a, b, 14);
            SHA512_SCHEDULED_ROUND(b, c, d, e, f, g, h, a, 15);
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
