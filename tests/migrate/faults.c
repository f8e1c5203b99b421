/* Preloaded into a test's process: files that the system fails to open or read, by their names.
 *
 * "denied-x" may not be opened. "passing-x" cannot be opened the first two times (ESTALE). "eio-x" cannot be read.
 * "append-x" grows when it is first read.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int tries;

static int is(const char *path, const char *action)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, action, strlen(action)) == 0;
}

static int refused(const char *path, int flags)
{
    if (flags & (O_CREAT | O_WRONLY | O_RDWR))
        return 0;
    if (is(path, "denied-"))
        return errno = EACCES;
    if (is(path, "passing-") && tries++ < 2)
        return errno = ESTALE;
    return 0;
}

static int opened(const char *name, int directory, const char *path, int flags, mode_t mode)
{
    if (refused(path, flags))
        return -1;
    if (directory != AT_FDCWD) {
        int (*below)(int, const char *, int, ...) = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, name);
        return below(directory, path, flags, mode);
    }
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, name);
    return real(path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = (mode_t)va_arg(more, int);
    va_end(more);
    return opened("open", AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = (mode_t)va_arg(more, int);
    va_end(more);
    return opened("open64", AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = (mode_t)va_arg(more, int);
    va_end(more);
    return directory == AT_FDCWD ? opened("open", directory, path, flags, mode)
                                 : opened("openat", directory, path, flags, mode);
}

int openat64(int directory, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = (mode_t)va_arg(more, int);
    va_end(more);
    return directory == AT_FDCWD ? opened("open64", directory, path, flags, mode)
                                 : opened("openat64", directory, path, flags, mode);
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
