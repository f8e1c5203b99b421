/* Preloaded into the process of a test: faults that a file system or another program could cause, at a known moment.
 *
 * The name of a file selects the fault before its first read: "eio-x" fails, "truncate-x" is shortened, "append-x" is extended,
 * "rewrite-x" gets another time, "delete-x" is deleted, "replace-x" is replaced by another file, "chmod-x" becomes unreadable.
 * The name of "count-x" is appended to the file $READS, after $SLOW microseconds. "late-x" fails at the second read. With
 * $OLD_KERNEL, openat2 is missing.
 *
 * Writes to regular files take at most $SHORT bytes, and fail after $ROOM bytes: the disk is full.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../support/old_kernel.h"
#include "../support/reading.h"

static int is(const char *name, const char *action)
{
    return strncmp(name, action, strlen(action)) == 0;
}

static void note(const char *name)
{
    const char *slow = getenv("SLOW");
    const char *reads = getenv("READS");
    if (slow)
        usleep((useconds_t)atoi(slow));
    if (reads) {
        const int log = open(reads, O_WRONLY | O_APPEND | O_CREAT, 0666);
        char line[300];
        const int size = snprintf(line, sizeof line, "%s\n", name);
        if (write(log, line, (size_t)size) != size)
            abort();
        close(log);
    }
}

static int act(int descriptor, const char *path, const char *name)
{
    const off_t at = lseek(descriptor, 0, SEEK_CUR);
    if (is(name, "eio-") || (is(name, "late-") && at > 0)) {
        errno = EIO;
        return -1;
    }
    if (at != 0)
        return 0;
    if (is(name, "truncate-")) {
        if (truncate(path, 10))
            abort();
    } else if (is(name, "append-")) {
        const int file = open(path, O_WRONLY | O_APPEND);
        if (write(file, "more", 4) != 4)
            abort();
        close(file);
    } else if (is(name, "rewrite-")) {
        const struct timespec times[2] = {{1, 0}, {1, 0}};
        utimensat(AT_FDCWD, path, times, 0);
    } else if (is(name, "delete-")) {
        unlink(path);
    } else if (is(name, "replace-")) {
        char other[5000];
        snprintf(other, sizeof other, "%s.new", path);
        const int file = open(other, O_WRONLY | O_CREAT, 0666);
        if (write(file, "other", 5) != 5)
            abort();
        close(file);
        rename(other, path);
    } else if (is(name, "chmod-")) {
        chmod(path, 0);
    } else if (is(name, "count-")) {
        note(name);
    }
    return 0;
}

static int refuses_to_read(int descriptor, const char *path)
{
    return act(descriptor, path, strrchr(path, '/') + 1);
}

ssize_t write(int descriptor, const void *buffer, size_t size)
{
    static ssize_t (*real)(int, const void *, size_t);
    static long long written;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "write");
    struct stat status;
    const char *most = getenv("SHORT"), *room = getenv("ROOM");
    if ((most || room) && !fstat(descriptor, &status) && S_ISREG(status.st_mode)) {
        if (most && size > (size_t)atoll(most))
            size = (size_t)atoll(most);
        if (room && __atomic_add_fetch(&written, (long long)size, __ATOMIC_RELAXED) > atoll(room)) {
            errno = ENOSPC;
            return -1;
        }
    }
    return real(descriptor, buffer, size);
}
