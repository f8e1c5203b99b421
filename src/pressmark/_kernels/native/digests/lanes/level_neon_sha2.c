/* NEON with instructions for SHA-1 and SHA-256, four messages at a time: while the instructions of one wait for each other,
 * those of the next run. setuptools has no flags for single files, so this file selects its instructions. */
#include "kernel.h"

#if PM_HAVE_NEON_SHA

/* System headers first, so that the target does not apply to them. */
#include <arm_neon.h>
#include <string.h>

PM_TARGET("+crypto", "sha2")

#define PM_NEON
#define PM_LANES_32 4
#define PM_LANES_64 2
#include "families.h"

#include "sha1_neon.h"
#include "sha256_neon.h"

SHA1_GROUPS
SHA256_GROUPS

const pm_kernel *const pm_kernels_neon_sha2[PM_ALGORITHMS] = {
    SHA1_KERNELS(PM_LANES_32, 1),
    SHA256_KERNELS(PM_LANES_32, 1),
};

PM_END_TARGET

#endif

/* ISO C requires at least one declaration, even without this level. */
typedef int pm_level_neon_sha2_is_not_empty;
