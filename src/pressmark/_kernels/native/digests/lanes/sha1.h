/* SHA-1, FIPS 180-4 section 6.1.2: 80 steps on a state of five words; functions and constants from 4.1.1 and 4.2.1. */

#define SHA1_CHOOSE(x, y, z) (((x) & (y)) ^ (~(x) & (z)))
#define SHA1_PARITY(x, y, z) ((x) ^ (y) ^ (z))
#define SHA1_MAJORITY(x, y, z) (((x) & (y)) ^ ((x) & (z)) ^ ((y) & (z)))

/* The names of the state rotate from step to step, so that no value is moved. The newest value, a, is added last. */
#define SHA1_STEP(function, a, b, c, d, e, i, constant) \
    do { \
        e = summed32(summed32(e + words[i] + UINT32_C(constant)) + function(b, c, d)) + ROTATE_LEFT_32(a, 5); \
        b = ROTATE_LEFT_32(b, 30); \
    } while (0)

/* The message schedule needs only the last sixteen words, so it runs in place. */
#define SHA1_SCHEDULED_STEP(function, a, b, c, d, e, i, constant) \
    do { \
        words[i] ^= words[((i) + 13) % 16] ^ words[((i) + 8) % 16] ^ words[((i) + 2) % 16]; \
        words[i] = ROTATE_LEFT_32(words[i], 1); \
        SHA1_STEP(function, a, b, c, d, e, i, constant); \
    } while (0)

PM_NEVER_INLINE void compress_sha1(void *memory, const pm_run *run)
{
    vector32 *state = memory;
    const vector32 live = lane_mask32(run->live);
    vector32 words[16];

    for (size_t block = 0; block < run->blocks; block++) {
        load_block32(words, run->source, block * 64, !PM_BIG_ENDIAN_HOST);
        vector32 a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
        SHA1_STEP(SHA1_CHOOSE, a, b, c, d, e, 0, 0x5a827999);
        SHA1_STEP(SHA1_CHOOSE, e, a, b, c, d, 1, 0x5a827999);
        SHA1_STEP(SHA1_CHOOSE, d, e, a, b, c, 2, 0x5a827999);
        SHA1_STEP(SHA1_CHOOSE, c, d, e, a, b, 3, 0x5a827999);
        SHA1_STEP(SHA1_CHOOSE, b, c, d, e, a, 4, 0x5a827999);
        SHA1_STEP(SHA1_CHOOSE, a, b, c, d, e, 5, 0x5a827999);
        SHA1_STEP(SHA1_CHOOSE, e, a, b, c, d, 6, 0x5a827999);
        SHA1_STEP(SHA1_CHOOSE, d, e, a, b, c, 7, 0x5a827999);
        SHA1_STEP(SHA1_CHOOSE, c, d, e, a, b, 8, 0x5a827999);
        SHA1_STEP(SHA1_CHOOSE, b, c, d, e, a, 9, 0x5a827999);
        SHA1_STEP(SHA1_CHOOSE, a, b, c, d, e, 10, 0x5a827999);
        SHA1_STEP(SHA1_CHOOSE, e, a, b, c, d, 11, 0x5a827999);
        SHA1_STEP(SHA1_CHOOSE, d, e, a, b, c, 12, 0x5a827999);
        SHA1_STEP(SHA1_CHOOSE, c, d, e, a, b, 13, 0x5a827999);
        SHA1_STEP(SHA1_CHOOSE, b, c, d, e, a, 14, 0x5a827999);
        SHA1_STEP(SHA1_CHOOSE, a, b, c, d, e, 15, 0x5a827999);
        SHA1_SCHEDULED_STEP(SHA1_CHOOSE, e, a, b, c, d, 0, 0x5a827999);
        SHA1_SCHEDULED_STEP(SHA1_CHOOSE, d, e, a, b, c, 1, 0x5a827999);
        SHA1_SCHEDULED_STEP(SHA1_CHOOSE, c, d, e, a, b, 2, 0x5a827999);
        SHA1_SCHEDULED_STEP(SHA1_CHOOSE, b, c, d, e, a, 3, 0x5a827999);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, a, b, c, d, e, 4, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, e, a, b, c, d, 5, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, d, e, a, b, c, 6, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, c, d, e, a, b, 7, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, b, c, d, e, a, 8, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, a, b, c, d, e, 9, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, e, a, b, c, d, 10, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, d, e, a, b, c, 11, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, c, d, e, a, b, 12, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, b, c, d, e, a, 13, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, a, b, c, d, e, 14, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, e, a, b, c, d, 15, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, d, e, a, b, c, 0, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, c, d, e, a, b, 1, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, b, c, d, e, a, 2, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, a, b, c, d, e, 3, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, e, a, b, c, d, 4, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, d, e, a, b, c, 5, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, c, d, e, a, b, 6, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, b, c, d, e, a, 7, 0x6ed9eba1);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, a, b, c, d, e, 8, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, e, a, b, c, d, 9, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, d, e, a, b, c, 10, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, c, d, e, a, b, 11, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, b, c, d, e, a, 12, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, a, b, c, d, e, 13, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, e, a, b, c, d, 14, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, d, e, a, b, c, 15, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, c, d, e, a, b, 0, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, b, c, d, e, a, 1, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, a, b, c, d, e, 2, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, e, a, b, c, d, 3, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, d, e, a, b, c, 4, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, c, d, e, a, b, 5, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, b, c, d, e, a, 6, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, a, b, c, d, e, 7, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, e, a, b, c, d, 8, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, d, e, a, b, c, 9, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, c, d, e, a, b, 10, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_MAJORITY, b, c, d, e, a, 11, 0x8f1bbcdc);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, a, b, c, d, e, 12, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, e, a, b, c, d, 13, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, d, e, a, b, c, 14, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, c, d, e, a, b, 15, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, b, c, d, e, a, 0, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, a, b, c, d, e, 1, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, e, a, b, c, d, 2, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, d, e, a, b, c, 3, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, c, d, e, a, b, 4, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, b, c, d, e, a, 5, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, a, b, c, d, e, 6, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, e, a, b, c, d, 7, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, d, e, a, b, c, 8, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, c, d, e, a, b, 9, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, b, c, d, e, a, 10, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, a, b, c, d, e, 11, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, e, a, b, c, d, 12, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, d, e, a, b, c, 13, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, c, d, e, a, b, 14, 0xca62c1d6);
        SHA1_SCHEDULED_STEP(SHA1_PARITY, b, c, d, e, a, 15, 0xca62c1d6);
        /* Adding zero keeps the state of idle lanes. */
        state[0] += a & live;
        state[1] += b & live;
        state[2] += c & live;
        state[3] += d & live;
        state[4] += e & live;
    }
}
