/* MD5 in two registers of 32 bytes: each step needs the one before, and two chains hide that. For the other algorithms, more
 * lanes than a register has words are slower, or need larger buffers. */
#include "kernel.h"

#if PM_HAVE_X86_LEVELS

/* System headers first, so that the target does not apply to them. */
#include <string.h>

/* Vectors of 64 bytes have no place in the calling convention of AVX2. All functions that pass them are inlined. */
#pragma GCC diagnostic ignored "-Wpsabi"

PM_TARGET("avx2,bmi2", "avx2,bmi2")

#define PM_LANES_32 16
#define PM_LANES_64 4
#define PM_REGISTER_LANES_32 8
#define PM_REGISTER_LANES_64 4
#include "families.h"

#include "md5.h"

MD5_GROUPS

const pm_kernel pm_md5_avx2 = {PM_LANES_32, compress_md5, group_md5, 0};

PM_END_TARGET

#endif

/* ISO C requires at least one declaration, even without this kernel. */
typedef int pm_md5_avx2_is_not_empty;
