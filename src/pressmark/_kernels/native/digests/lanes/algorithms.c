/* The constants of each algorithm. */
#include "kernel.h"

/* RFC 7693 section 3.2: the first word contains the parameters: digest size, no key, fanout 1, depth 1. */
#define BLAKE2B_INITIAL(size) \
    {PM_ROOT_0 ^ 0x01010000 ^ (size), PM_ROOT_1, PM_ROOT_2, PM_ROOT_3, PM_ROOT_4, PM_ROOT_5, PM_ROOT_6, PM_ROOT_7}

/* initial state; digest, block, state words, word, length field, big-endian */
const pm_constants pm_constants_of[PM_ALGORITHMS] = {
    /* RFC 1321 section 3.3 */
    [PM_MD5] = {{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}, 16, 64, 4, 4, 8, 0},
    /* FIPS 180-4 section 5.3.1 */
    [PM_SHA1] = {{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}, 20, 64, 5, 4, 8, 1},
    /* FIPS 180-4 section 5.3.2 */
    [PM_SHA224] = {{
        0xc1059ed8, 0x367cd507, 0x3070dd17, 0xf70e5939, 0xffc00b31, 0x68581511, 0x64f98fa7, 0xbefa4fa4,
    }, 28, 64, 8, 4, 8, 1},
    /* FIPS 180-4 section 5.3.3 */
    [PM_SHA256] = {{
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    }, 32, 64, 8, 4, 8, 1},
    /* FIPS 180-4 section 5.3.4 */
    [PM_SHA384] = {{
            UINT64_C(0xcbbb9d5dc1059ed8), UINT64_C(0x629a292a367cd507), UINT64_C(0x9159015a3070dd17), UINT64_C(0x152fecd8f70e5939),
            UINT64_C(0x67332667ffc00b31), UINT64_C(0x8eb44a8768581511), UINT64_C(0xdb0c2e0d64f98fa7), UINT64_C(0x47b5481dbefa4fa4),
    }, 48, 128, 8, 8, 16, 1},
    /* FIPS 180-4 section 5.3.5 */
    [PM_SHA512] = {{PM_ROOT_0, PM_ROOT_1, PM_ROOT_2, PM_ROOT_3, PM_ROOT_4, PM_ROOT_5, PM_ROOT_6, PM_ROOT_7}, 64, 128, 8, 8, 16, 1},
    /* FIPS 180-4 section 5.3.6.1 */
    [PM_SHA512_224] = {{
            UINT64_C(0x8c3d37c819544da2), UINT64_C(0x73e1996689dcd4d6), UINT64_C(0x1dfab7ae32ff9c82), UINT64_C(0x679dd514582f9fcf),
            UINT64_C(0x0f6d2b697bd44da8), UINT64_C(0x77e36f7304c48942), UINT64_C(0x3f9d85a86a1d36c8), UINT64_C(0x1112e6ad91d692a1),
    }, 28, 128, 8, 8, 16, 1},
    /* FIPS 180-4 section 5.3.6.2 */
    [PM_SHA512_256] = {{
            UINT64_C(0x22312194fc2bf72c), UINT64_C(0x9f555fa3c84c64c2), UINT64_C(0x2393b86b6f53b151), UINT64_C(0x963877195940eabd),
            UINT64_C(0x96283ee2a88effe3), UINT64_C(0xbe5e1e2553863992), UINT64_C(0x2b0199fc2c85b8aa), UINT64_C(0x0eb72ddc81c52ca2),
    }, 32, 128, 8, 8, 16, 1},
    [PM_BLAKE2B_160] = {BLAKE2B_INITIAL(20), 20, 128, 8, 8, 0, 0},
    [PM_BLAKE2B_256] = {BLAKE2B_INITIAL(32), 32, 128, 8, 8, 0, 0},
    [PM_BLAKE2B_384] = {BLAKE2B_INITIAL(48), 48, 128, 8, 8, 0, 0},
    [PM_BLAKE2B_512] = {BLAKE2B_INITIAL(64), 64, 128, 8, 8, 0, 0},
};

/* In C an enumeration can have any value. */
static int is_algorithm(pm_algorithm algorithm)
{
    return (unsigned)algorithm < PM_ALGORITHMS;
}

size_t pm_digest_size(pm_algorithm algorithm)
{
    return is_algorithm(algorithm) ? pm_constants_of[algorithm].digest_size : 0;
}

size_t pm_block_size(pm_algorithm algorithm)
{
    return is_algorithm(algorithm) ? pm_constants_of[algorithm].block_size : 0;
}
