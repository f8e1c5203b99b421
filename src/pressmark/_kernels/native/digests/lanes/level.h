/* One level with all families in lanes. A level file defines PM_LANES_32, PM_LANES_64 and PM_KERNELS, selects its instructions,
 * and includes this file. */
#include "families.h"

#include "blake2b.h"
#include "md5.h"
#include "sha1.h"
#include "sha256.h"
#include "sha512.h"

MD5_GROUPS
SHA1_GROUPS
SHA256_GROUPS
SHA512_GROUPS
BLAKE2B_GROUPS

const pm_kernel PM_KERNELS[PM_ALGORITHMS] = {
    MD5_KERNELS(PM_LANES_32, 0),
    SHA1_KERNELS(PM_LANES_32, 0),
    SHA256_KERNELS(PM_LANES_32, 0),
    SHA512_KERNELS(PM_LANES_64, 0),
    BLAKE2B_KERNELS(PM_LANES_64, 0),
};
