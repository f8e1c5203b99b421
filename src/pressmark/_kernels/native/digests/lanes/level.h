/* One level with all families in lanes. A level file defines PM_LANES_32, PM_LANES_64 and PM_KERNELS, selects its instructions,
 * and includes this file. It may define PM_MD5_KERNEL, the kernel of another file. */
#include "families.h"

#include "blake2b.h"
#include "sha1.h"
#include "sha256.h"
#include "sha512.h"

#if !defined(PM_MD5_KERNEL)
#include "md5.h"
MD5_GROUPS
#endif
SHA1_GROUPS
SHA256_GROUPS
SHA512_GROUPS
BLAKE2B_GROUPS

const pm_kernel *const PM_KERNELS[PM_ALGORITHMS] = {
#if defined(PM_MD5_KERNEL)
    [PM_MD5] = &PM_MD5_KERNEL,
#else
    MD5_KERNELS(PM_LANES_32, 0),
#endif
    SHA1_KERNELS(PM_LANES_32, 0),
    SHA256_KERNELS(PM_LANES_32, 0),
    SHA512_KERNELS(PM_LANES_64, 0),
    BLAKE2B_KERNELS(PM_LANES_64, 0),
};
