/* One level. A level file defines PM_LANES_32, PM_LANES_64 and PM_KERNELS, selects its instructions, and includes this file. */
#include "vectors.h"

#define PM_WORD_BITS 32
#include "words.h"
#define PM_WORD_BITS 64
#include "words.h"

#include "blake2b.h"
#include "md5.h"
#include "sha1.h"
#include "sha256.h"
#include "sha512.h"

/* name, compression, word bits, state bits (the state has 2^n words), digest size, big-endian, BLAKE2b */
#define DIGEST_GROUP(name, family, bits, state_bits, size, big_endian, blake2b) \
    static void group_##name(const pm_group *group) \
    { \
        digest_group##bits(group, compress_##family, state_bits, size, big_endian, blake2b); \
    }

DIGEST_GROUP(md5, md5, 32, 2, 16, 0, 0)
DIGEST_GROUP(sha1, sha1, 32, 3, 20, 1, 0)
DIGEST_GROUP(sha224, sha256, 32, 3, 28, 1, 0)
DIGEST_GROUP(sha256, sha256, 32, 3, 32, 1, 0)
DIGEST_GROUP(sha384, sha512, 64, 3, 48, 1, 0)
DIGEST_GROUP(sha512, sha512, 64, 3, 64, 1, 0)
DIGEST_GROUP(sha512_224, sha512, 64, 3, 28, 1, 0)
DIGEST_GROUP(sha512_256, sha512, 64, 3, 32, 1, 0)
DIGEST_GROUP(blake2b_160, blake2b, 64, 3, 20, 0, 1)
DIGEST_GROUP(blake2b_256, blake2b, 64, 3, 32, 0, 1)
DIGEST_GROUP(blake2b_384, blake2b, 64, 3, 48, 0, 1)
DIGEST_GROUP(blake2b_512, blake2b, 64, 3, 64, 0, 1)

const pm_kernel PM_KERNELS[PM_ALGORITHMS] = {
    [PM_MD5] = {PM_LANES_32, compress_md5, group_md5},
    [PM_SHA1] = {PM_LANES_32, compress_sha1, group_sha1},
    [PM_SHA224] = {PM_LANES_32, compress_sha256, group_sha224},
    [PM_SHA256] = {PM_LANES_32, compress_sha256, group_sha256},
    [PM_SHA384] = {PM_LANES_64, compress_sha512, group_sha384},
    [PM_SHA512] = {PM_LANES_64, compress_sha512, group_sha512},
    [PM_SHA512_224] = {PM_LANES_64, compress_sha512, group_sha512_224},
    [PM_SHA512_256] = {PM_LANES_64, compress_sha512, group_sha512_256},
    [PM_BLAKE2B_160] = {PM_LANES_64, compress_blake2b, group_blake2b_160},
    [PM_BLAKE2B_256] = {PM_LANES_64, compress_blake2b, group_blake2b_256},
    [PM_BLAKE2B_384] = {PM_LANES_64, compress_blake2b, group_blake2b_384},
    [PM_BLAKE2B_512] = {PM_LANES_64, compress_blake2b, group_blake2b_512},
};
