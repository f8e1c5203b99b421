/* Times of files. As nanoseconds since 1970 in 64 bits, they would end in the years 1677 and 2262. */
#ifndef PRESSMARK_TIMES_H
#define PRESSMARK_TIMES_H

#include <stdint.h>

typedef struct {
    int64_t seconds, nanoseconds; /* since 1970; nanoseconds below 1,000,000,000, also before 1970 */
} pm_time;

static inline int pm_is_same_time(pm_time one, pm_time other)
{
    return one.seconds == other.seconds && one.nanoseconds == other.nanoseconds;
}

#ifndef _WIN32
#include <sys/stat.h>

#ifdef __APPLE__
#define PM_ATIME(status) ((status).st_atimespec)
#define PM_MTIME(status) ((status).st_mtimespec)
#define PM_CTIME(status) ((status).st_ctimespec)
#else
#define PM_ATIME(status) ((status).st_atim)
#define PM_MTIME(status) ((status).st_mtim)
#define PM_CTIME(status) ((status).st_ctim)
#endif

static inline pm_time pm_time_of(struct timespec time)
{
    const pm_time found = {(int64_t)time.tv_sec, (int64_t)time.tv_nsec};
    return found;
}
#endif
#endif
