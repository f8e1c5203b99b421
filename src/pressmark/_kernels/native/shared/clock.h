/* The time that a call may take which handles many files or directories. */
#ifndef PRESSMARK_CLOCK_H
#define PRESSMARK_CLOCK_H

#include <stdint.h>
#if !defined(_WIN32)
#include <time.h>
#endif

/* Such a call returns after this time, and leaves the rest to the next call: a thread in it cannot be interrupted, and on a slow
 * disk or network each file may take long. */
#define PM_TURN 100000000 /* nanoseconds */

/* Nanoseconds since an unknown moment. On Windows 0: there the files of these calls are read by shared code. */
static inline int64_t pm_now(void)
{
#if defined(_WIN32)
    return 0;
#else
    struct timespec time = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
#endif
}

#endif
