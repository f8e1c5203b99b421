/* BLAKE2b without a key, RFC 7693 section 3: 12 rounds on a working vector of sixteen words. */

/* The mixing function G, RFC 7693 section 3.1. */
#define BLAKE2B_MIX(a, b, c, d, x, y) \
    do { \
        v[a] += v[b] + words[x]; \
        v[d] = XOR_ROTATE_BYTES_64(v[d], v[a], 4); \
        v[c] += v[d]; \
        v[b] = XOR_ROTATE_BYTES_64(v[b], v[c], 3); \
        v[a] += v[b] + words[y]; \
        v[d] = XOR_ROTATE_BYTES_64(v[d], v[a], 2); \
        v[c] += v[d]; \
        v[b] = XOR_ROTATE_64(v[b], v[c], 63); \
    } while (0)

#define BLAKE2B_ROUND(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15) \
    do { \
        BLAKE2B_MIX(0, 4, 8, 12, s0, s1); \
        BLAKE2B_MIX(1, 5, 9, 13, s2, s3); \
        BLAKE2B_MIX(2, 6, 10, 14, s4, s5); \
        BLAKE2B_MIX(3, 7, 11, 15, s6, s7); \
        BLAKE2B_MIX(0, 5, 10, 15, s8, s9); \
        BLAKE2B_MIX(1, 6, 11, 12, s10, s11); \
        BLAKE2B_MIX(2, 7, 8, 13, s12, s13); \
        BLAKE2B_MIX(3, 4, 9, 14, s14, s15); \
    } while (0)

PM_NEVER_INLINE void compress_blake2b(void *memory, const pm_run *run)
{
    vector64 *state = memory;
    const vector64 live = lane_mask64(run->live);
    const vector64 last = lane_mask64(run->last);
    vector64 words[16], v[16], counter;
    memcpy(&counter, run->counter, sizeof counter);

    for (size_t block = 0; block < run->blocks; block++) {
        load_block64(words, run->source, block * 128, PM_BIG_ENDIAN_HOST);
        v[0] = state[0];
        v[1] = state[1];
        v[2] = state[2];
        v[3] = state[3];
        v[4] = state[4];
        v[5] = state[5];
        v[6] = state[6];
        v[7] = state[7];
        v[8] = splat64(PM_ROOT_0);
        v[9] = splat64(PM_ROOT_1);
        v[10] = splat64(PM_ROOT_2);
        v[11] = splat64(PM_ROOT_3);
        /* The high word of the counter is always zero: no message has 2^64 bytes. */
        v[12] = counter ^ PM_ROOT_4;
        v[13] = splat64(PM_ROOT_5);
        v[14] = last ^ PM_ROOT_6;
        v[15] = splat64(PM_ROOT_7);
        /* The schedule SIGMA, RFC 7693 section 2.7; rounds 10 and 11 use its rows 0 and 1 again. */
        BLAKE2B_ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        BLAKE2B_ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
        BLAKE2B_ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4);
        BLAKE2B_ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8);
        BLAKE2B_ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13);
        BLAKE2B_ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9);
        BLAKE2B_ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11);
        BLAKE2B_ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10);
        BLAKE2B_ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5);
        BLAKE2B_ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0);
        BLAKE2B_ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        BLAKE2B_ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3);
        /* Xor with zero keeps the state of idle lanes. */
        state[0] ^= (v[0] ^ v[8]) & live;
        state[1] ^= (v[1] ^ v[9]) & live;
        state[2] ^= (v[2] ^ v[10]) & live;
        state[3] ^= (v[3] ^ v[11]) & live;
        state[4] ^= (v[4] ^ v[12]) & live;
        state[5] ^= (v[5] ^ v[13]) & live;
        state[6] ^= (v[6] ^ v[14]) & live;
        state[7] ^= (v[7] ^ v[15]) & live;
        counter += 128;
    }
}
