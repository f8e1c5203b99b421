/* The SHA-256 family, 64 rounds on a state of eight words: FIPS 180-4 section 6.2.2. */

/* FIPS 180-4 section 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t sha256_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

#define SHA256_CHOOSE(x, y, z) (((x) & (y)) ^ (~(x) & (z)))
#define SHA256_MAJORITY(x, y, z) ((y) ^ (((x) ^ (y)) & ((y) ^ (z))))
#define SHA256_SUM_0(x) (ROTATE_RIGHT_32(x, 2) ^ ROTATE_RIGHT_32(x, 13) ^ ROTATE_RIGHT_32(x, 22))
#define SHA256_SUM_1(x) (ROTATE_RIGHT_32(x, 6) ^ ROTATE_RIGHT_32(x, 11) ^ ROTATE_RIGHT_32(x, 25))
#define SHA256_SIGMA_0(x) (ROTATE_RIGHT_32(x, 7) ^ ROTATE_RIGHT_32(x, 18) ^ ((x) >> 3))
#define SHA256_SIGMA_1(x) (ROTATE_RIGHT_32(x, 17) ^ ROTATE_RIGHT_32(x, 19) ^ ((x) >> 10))

/* The names of the state rotate from round to round, so that no value is moved. */
#define SHA256_ROUND(a, b, c, d, e, f, g, h, i) \
    do { \
        h += SHA256_SUM_1(e) + SHA256_CHOOSE(e, f, g) + (words[i] + sha256_constants[round + (i)]); \
        d += h; \
        h += SHA256_SUM_0(a) + SHA256_MAJORITY(a, b, c); \
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
