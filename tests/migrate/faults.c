/* Preloaded into the process of a test: files that cannot be opened or read, selected by their names.
 *
 * "denied-x" cannot be opened. "passing-x" cannot be opened the first two times (ESTALE). "eio-x" cannot be read.
 * "append-x" grows when it is first read.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/old_kernel.h"
#include "../support/opening.h"

static int tries;

static int is(const char *path, const char *action)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, action, strlen(action)) == 0;
}

static int refuses_to_open(const char *path, int flags)
{
    if (flags & (O_CREAT | O_WRONLY | O_RDWR))
        return 0;
    if (is(path, "denied-"))
        return errno = EACCES;
    if (is(path, "passing-") && tries++ < 2)
        return errno = ESTALE;
    return 0;
}

ssize_t read(int descriptor, void *buffer, size_t size)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    if (is(path, "eio-")) {
        errno = EIO;
        return -1;
    }
    if (is(path, "append-") && lseek(descriptor, 0, SEEK_CUR) == 0) {
        const int file = open(path, O_WRONLY | O_APPEND);
        if (write(file, "more", 4) != 4)
            abort();
        close(file);
    }
    return ((ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read"))(descriptor, buffer, size);
}
