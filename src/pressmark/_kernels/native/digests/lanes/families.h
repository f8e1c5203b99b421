/* The template of a level: words in lanes, and what the kernels of each family consist of. */
#include "vectors.h"

#define PM_WORD_BITS 32
#include "words.h"
#define PM_WORD_BITS 64
#include "words.h"

/* name, compression, word bits, state bits (the state has 2^n words), digest size, big-endian, BLAKE2b */
#define DIGEST_GROUP(name, family, bits, state_bits, size, big_endian, blake2b) \
    static void group_##name(const pm_group *group) \
    { \
        digest_group##bits(group, compress_##family, state_bits, size, big_endian, blake2b); \
    }

/* Each family after its compression: the functions for full sets, and the entries of the level's table. */
#define MD5_GROUPS DIGEST_GROUP(md5, md5, 32, 2, 16, 0, 0)
#define MD5_KERNELS(lanes, skips_idle) [PM_MD5] = &(const pm_kernel){lanes, compress_md5, group_md5, skips_idle}

#define SHA1_GROUPS DIGEST_GROUP(sha1, sha1, 32, 3, 20, 1, 0)
#define SHA1_KERNELS(lanes, skips_idle) [PM_SHA1] = &(const pm_kernel){lanes, compress_sha1, group_sha1, skips_idle}

#define SHA256_GROUPS \
    DIGEST_GROUP(sha224, sha256, 32, 3, 28, 1, 0) \
    DIGEST_GROUP(sha256, sha256, 32, 3, 32, 1, 0)
#define SHA256_KERNELS(lanes, skips_idle) \
    [PM_SHA224] = &(const pm_kernel){lanes, compress_sha256, group_sha224, skips_idle}, \
    [PM_SHA256] = &(const pm_kernel){lanes, compress_sha256, group_sha256, skips_idle}

#define SHA512_GROUPS \
    DIGEST_GROUP(sha384, sha512, 64, 3, 48, 1, 0) \
    DIGEST_GROUP(sha512, sha512, 64, 3, 64, 1, 0) \
    DIGEST_GROUP(sha512_224, sha512, 64, 3, 28, 1, 0) \
    DIGEST_GROUP(sha512_256, sha512, 64, 3, 32, 1, 0)
#define SHA512_KERNELS(lanes, skips_idle) \
    [PM_SHA384] = &(const pm_kernel){lanes, compress_sha512, group_sha384, skips_idle}, \
    [PM_SHA512] = &(const pm_kernel){lanes, compress_sha512, group_sha512, skips_idle}, \
    [PM_SHA512_224] = &(const pm_kernel){lanes, compress_sha512, group_sha512_224, skips_idle}, \
    [PM_SHA512_256] = &(const pm_kernel){lanes, compress_sha512, group_sha512_256, skips_idle}

#define BLAKE2B_GROUPS \
    DIGEST_GROUP(blake2b_160, blake2b, 64, 3, 20, 0, 1) \
    DIGEST_GROUP(blake2b_256, blake2b, 64, 3, 32, 0, 1) \
    DIGEST_GROUP(blake2b_384, blake2b, 64, 3, 48, 0, 1) \
    DIGEST_GROUP(blake2b_512, blake2b, 64, 3, 64, 0, 1)
#define BLAKE2B_KERNELS(lanes, skips_idle) \
    [PM_BLAKE2B_160] = &(const pm_kernel){lanes, compress_blake2b, group_blake2b_160, skips_idle}, \
    [PM_BLAKE2B_256] = &(const pm_kernel){lanes, compress_blake2b, group_blake2b_256, skips_idle}, \
    [PM_BLAKE2B_384] = &(const pm_kernel){lanes, compress_blake2b, group_blake2b_384, skips_idle}, \
    [PM_BLAKE2B_512] = &(const pm_kernel){lanes, compress_blake2b, group_blake2b_512, skips_idle}
