/* Preloaded into the process of a test: opening, or reading from, a path that contains "slow-" takes $DELAY microseconds.
 * The first time, the directory $BEGUN is created.
 *
 * It needs $OLD_KERNEL: openat2 is no function that a library can replace.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/old_kernel.h"
#include "../support/opening.h"
#include "../support/reading.h"

static void wait_for(const char *path)
{
    const char *delay = getenv("DELAY");
    const char *begun = getenv("BEGUN");
    if (!delay || !strstr(path, "slow-"))
        return;
    if (begun)
        mkdir(begun, 0777);
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
