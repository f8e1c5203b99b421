/* Registers of 32 bytes. setuptools has no flags for single files, so this file selects its instructions. */
#include "kernel.h"

#if PM_HAVE_X86_LEVELS

/* System headers first, so that the target does not apply to them. */
#include <string.h>

PM_TARGET("avx2,bmi2", "avx2,bmi2")
PM_SCHEDULE_FOR_PRESSURE

#define PM_LANES_32 8
#define PM_LANES_64 4
#define PM_KERNELS pm_kernels_avx2
#define PM_MD5_KERNEL pm_md5_avx2
#include "level.h"

PM_END_TARGET

#endif

/* ISO C requires at least one declaration, even without this level. */
typedef int pm_level_avx2_is_not_empty;
