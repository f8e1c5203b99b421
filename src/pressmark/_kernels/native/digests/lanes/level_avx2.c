/* Registers of 32 bytes. setuptools has no flags for one file, so the file selects its instructions itself. */
#include "kernel.h"

#if PM_HAVE_X86_LEVELS

/* System headers first, so that they are read as everywhere else. */
#include <string.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi2")
#endif

#define PM_LANES_32 8
#define PM_LANES_64 4
#define PM_KERNELS pm_kernels_avx2
#include "level.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif

/* ISO C wants at least one declaration, also where there is no such level. */
typedef int pm_level_avx2_is_not_empty;
