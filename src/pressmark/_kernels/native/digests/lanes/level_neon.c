/* NEON, which every aarch64 processor has: registers of 16 bytes. SHA-512 is computed with plain words, which have rotations: two
 * lanes take a fourth fewer instructions, but llvm-mca's models of Neoverse N1 and V1 execute fewer vector instructions a cycle. */
#include "kernel.h"

#if PM_HAVE_NEON_LEVELS

#define PM_NEON
/* Two registers for 32-bit words: their algorithms are long chains. */
#define PM_LANES_32 8
#define PM_LANES_64 2
#define PM_REGISTER_LANES_32 4
#define PM_REGISTER_LANES_64 2
#include "families.h"

#include "blake2b.h"
#include "md5.h"
#include "sha1.h"
#include "sha256.h"

MD5_GROUPS
SHA1_GROUPS
SHA256_GROUPS
BLAKE2B_GROUPS

const pm_kernel *const pm_kernels_neon[PM_ALGORITHMS] = {
    MD5_KERNELS(PM_LANES_32, 0),
    SHA1_KERNELS(PM_LANES_32, 0),
    SHA256_KERNELS(PM_LANES_32, 0),
    BLAKE2B_KERNELS(PM_LANES_64, 0),
};

#endif

/* ISO C requires at least one declaration, even without this level. */
typedef int pm_level_neon_is_not_empty;
