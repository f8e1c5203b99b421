/* Preloaded into the process of a test: opening, or reading from, a path that contains "slow-" takes $DELAY microseconds.
 *
 * It needs $OLD_KERNEL: openat2 is no function that a library can replace.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/old_kernel.h"
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
