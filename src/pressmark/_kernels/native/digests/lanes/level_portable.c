/* For all machines and C11 compilers: only the baseline instructions of the target. */
#include "kernel.h"

#if PM_HAVE_X86_LEVELS && defined(__SSE2__)
/* Vectors of 16 bytes: twice as fast as plain words for 32-bit words, and 1.2 times for 64-bit words. */
#define PM_LANES_32 4
#define PM_LANES_64 2
#else
/* Plain words. Vectors of 16 bytes on other machines would compile as well, but are not measured. */
#define PM_LANES_32 1
#define PM_LANES_64 1
#endif
#define PM_KERNELS pm_kernels_portable
#include "level.h"
