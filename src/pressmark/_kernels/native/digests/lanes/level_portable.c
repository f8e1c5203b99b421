/* Every machine, and every C11 compiler: no instruction beyond the baseline of the target. */
#include "kernel.h"

#if PM_HAVE_X86_LEVELS && defined(__SSE2__)
/* Vectors of 16 bytes: measured twice as fast as plain words for the 32-bit family, 1.2 times for the 64-bit one. */
#define PM_LANES_32 4
#define PM_LANES_64 2
#else
/* Plain words. Other machines' vectors of 16 bytes would compile here as well, but have not been measured. */
#define PM_LANES_32 1
#define PM_LANES_64 1
#endif
#define PM_KERNELS pm_kernels_portable
#include "level.h"
