/* MD5, RFC 1321 section 3.4: 64 steps on a state of four words. */

/* Table T: the integer parts of 2^32 * abs(sin(i)), i = 1 .. 64 in radians. */
static const uint32_t md5_sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};

#define MD5_F(x, y, z) (((x) & (y)) | (~(x) & (z)))
/* A processor without an instruction for all of MD5_G adds its terms, which have no bit in common, one after the other: only one
 * of them waits for the previous step. */
#if defined(PM_NEON) || PM_REGISTER_LANES_32 == 16
#define MD5_G(x, y, z) (((x) & (z)) | ((y) & ~(z)))
#else
#define MD5_G(x, y, z) (((x) & (z)) + ((y) & ~(z)))
#endif
#define MD5_H(x, y, z) ((x) ^ (y) ^ (z))
#define MD5_I(x, y, z) ((y) ^ ((x) | ~(z)))

/* The brackets make only the value of the function depend on the previous step: MD5 is one long chain. */
#define MD5_STEP(function, a, b, c, d, word, shift, sine) \
    do { \
        a = function(b, c, d) + (a + (words[word] + sines[sine - 1])); \
        a = ROTATE_LEFT_32(a, shift) + b; \
    } while (0)

PM_NEVER_INLINE void compress_md5(void *memory, const pm_run *run)
{
    vector32 *state = memory;
    const vector32 live = lane_mask32(run->live);
    const uint32_t *const sines = in_memory32(md5_sines);
    vector32 words[16];

    for (size_t block = 0; block < run->blocks; block++) {
        load_block32(words, run->source, block * 64, PM_BIG_ENDIAN_HOST);
        vector32 a = state[0], b = state[1], c = state[2], d = state[3];
        MD5_STEP(MD5_F, a, b, c, d,  0,  7,  1);
        MD5_STEP(MD5_F, d, a, b, c,  1, 12,  2);
        MD5_STEP(MD5_F, c, d, a, b,  2, 17,  3);
        MD5_STEP(MD5_F, b, c, d, a,  3, 22,  4);
        MD5_STEP(MD5_F, a, b, c, d,  4,  7,  5);
        MD5_STEP(MD5_F, d, a, b, c,  5, 12,  6);
        MD5_STEP(MD5_F, c, d, a, b,  6, 17,  7);
        MD5_STEP(MD5_F, b, c, d, a,  7, 22,  8);
        MD5_STEP(MD5_F, a, b, c, d,  8,  7,  9);
        MD5_STEP(MD5_F, d, a, b, c,  9, 12, 10);
        MD5_STEP(MD5_F, c, d, a, b, 10, 17, 11);
        MD5_STEP(MD5_F, b, c, d, a, 11, 22, 12);
        MD5_STEP(MD5_F, a, b, c, d, 12,  7, 13);
        MD5_STEP(MD5_F, d, a, b, c, 13, 12, 14);
        MD5_STEP(MD5_F, c, d, a, b, 14, 17, 15);
        MD5_STEP(MD5_F, b, c, d, a, 15, 22, 16);
        MD5_STEP(MD5_G, a, b, c, d,  1,  5, 17);
        MD5_STEP(MD5_G, d, a, b, c,  6,  9, 18);
        MD5_STEP(MD5_G, c, d, a, b, 11, 14, 19);
        MD5_STEP(MD5_G, b, c, d, a,  0, 20, 20);
        MD5_STEP(MD5_G, a, b, c, d,  5,  5, 21);
        MD5_STEP(MD5_G, d, a, b, c, 10,  9, 22);
        MD5_STEP(MD5_G, c, d, a, b, 15, 14, 23);
        MD5_STEP(MD5_G, b, c, d, a,  4, 20, 24);
        MD5_STEP(MD5_G, a, b, c, d,  9,  5, 25);
        MD5_STEP(MD5_G, d, a, b, c, 14,  9, 26);
        MD5_STEP(MD5_G, c, d, a, b,  3, 14, 27);
        MD5_STEP(MD5_G, b, c, d, a,  8, 20, 28);
        MD5_STEP(MD5_G, a, b, c, d, 13,  5, 29);
        MD5_STEP(MD5_G, d, a, b, c,  2,  9, 30);
        MD5_STEP(MD5_G, c, d, a, b,  7, 14, 31);
        MD5_STEP(MD5_G, b, c, d, a, 12, 20, 32);
        MD5_STEP(MD5_H, a, b, c, d,  5,  4, 33);
        MD5_STEP(MD5_H, d, a, b, c,  8, 11, 34);
        MD5_STEP(MD5_H, c, d, a, b, 11, 16, 35);
        MD5_STEP(MD5_H, b, c, d, a, 14, 23, 36);
        MD5_STEP(MD5_H, a, b, c, d,  1,  4, 37);
        MD5_STEP(MD5_H, d, a, b, c,  4, 11, 38);
        MD5_STEP(MD5_H, c, d, a, b,  7, 16, 39);
        MD5_STEP(MD5_H, b, c, d, a, 10, 23, 40);
        MD5_STEP(MD5_H, a, b, c, d, 13,  4, 41);
        MD5_STEP(MD5_H, d, a, b, c,  0, 11, 42);
        MD5_STEP(MD5_H, c, d, a, b,  3, 16, 43);
        MD5_STEP(MD5_H, b, c, d, a,  6, 23, 44);
        MD5_STEP(MD5_H, a, b, c, d,  9,  4, 45);
        MD5_STEP(MD5_H, d, a, b, c, 12, 11, 46);
        MD5_STEP(MD5_H, c, d, a, b, 15, 16, 47);
        MD5_STEP(MD5_H, b, c, d, a,  2, 23, 48);
        MD5_STEP(MD5_I, a, b, c, d,  0,  6, 49);
        MD5_STEP(MD5_I, d, a, b, c,  7, 10, 50);
        MD5_STEP(MD5_I, c, d, a, b, 14, 15, 51);
        MD5_STEP(MD5_I, b, c, d, a,  5, 21, 52);
        MD5_STEP(MD5_I, a, b, c, d, 12,  6, 53);
        MD5_STEP(MD5_I, d, a, b, c,  3, 10, 54);
        MD5_STEP(MD5_I, c, d, a, b, 10, 15, 55);
        MD5_STEP(MD5_I, b, c, d, a,  1, 21, 56);
        MD5_STEP(MD5_I, a, b, c, d,  8,  6, 57);
        MD5_STEP(MD5_I, d, a, b, c, 15, 10, 58);
        MD5_STEP(MD5_I, c, d, a, b,  6, 15, 59);
        MD5_STEP(MD5_I, b, c, d, a, 13, 21, 60);
        MD5_STEP(MD5_I, a, b, c, d,  4,  6, 61);
        MD5_STEP(MD5_I, d, a, b, c, 11, 10, 62);
        MD5_STEP(MD5_I, c, d, a, b,  2, 15, 63);
        MD5_STEP(MD5_I, b, c, d, a,  9, 21, 64);
        /* Adding zero keeps the state of idle lanes. */
        state[0] += a & live;
        state[1] += b & live;
        state[2] += c & live;
        state[3] += d & live;
    }
}
