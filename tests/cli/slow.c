/* Preloaded into the process of a test: opening, or reading from, a path that contains "slow-" takes $DELAY microseconds.
 *
 * openat2 is missing, because it is no function that a library can replace.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../support/opening.h"
#include "../support/reading.h"

static void wait_for(const char *path)
{
    const char *delay = getenv("DELAY");
    if (delay && strstr(path, "slow-"))
        usleep((useconds_t)atoi(delay));
}

static int refuses_to_open(const char *path, int flags)
{
    (void)flags;
    wait_for(path);
    return 0;
}

static int refuses_to_read(int descriptor, const char *path)
{
    (void)descriptor;
    wait_for(path);
    return 0;
}

long syscall(long number, ...)
{
    static long (*real)(long, long, long, long, long, long, long);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    va_list more;
    va_start(more, number);
    long of[6];
    for (int i = 0; i < 6; i++)
        of[i] = va_arg(more, long);
    va_end(more);
    if (number == SYS_openat2) {
        errno = ENOSYS;
        return -1;
    }
    return real(number, of[0], of[1], of[2], of[3], of[4], of[5]);
}
