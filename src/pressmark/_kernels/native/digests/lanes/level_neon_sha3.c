/* NEON with instructions for SHA-512, and with the rotation of SHA-3's instructions for BLAKE2b. setuptools has no flags for
 * single files, so this file selects its instructions. */
#include "kernel.h"

#if PM_HAVE_NEON_SHA

/* System headers first, so that the target does not apply to them. */
#include <arm_neon.h>
#include <string.h>

PM_TARGET("arch=armv8.2-a+sha3", "sha3")

#define PM_NEON
#define PM_NEON_SHA3_LEVEL
#define PM_LANES_32 4
#define PM_LANES_64 2
#include "families.h"

#include "blake2b.h"
#include "sha512_neon.h"

SHA512_GROUPS
BLAKE2B_GROUPS

const pm_kernel *const pm_kernels_neon_sha3[PM_ALGORITHMS] = {
    SHA512_KERNELS(PM_LANES_64, 1),
    BLAKE2B_KERNELS(PM_LANES_64, 0),
};

PM_END_TARGET

#endif

/* ISO C requires at least one declaration, even without this level. */
typedef int pm_level_neon_sha3_is_not_empty;
