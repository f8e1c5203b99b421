/* Preloaded into the process of a test: the n-th change of the disk fails, or the process is killed or stopped before it.
 *
 * A change is a call that creates, renames or removes a name, opens a file for writing, writes, or flushes.
 * disk_arm(signal, n, number) starts the count: the process receives `signal` before the n-th change; or, if `signal` is
 * 0, that change fails with the errno `number`; if `number` is negative, all later changes fail as well. disk_changes()
 * returns the number of changes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "opening.h"

static int armed, to_send, at, error_number, changes;

void disk_arm(int signal_number, int n, int number)
{
    changes = 0;
    to_send = signal_number;
    at = n;
    error_number = number;
    armed = n > 0;
}

int disk_changes(void)
{
    return changes;
}

static int refused(void)
{
    if (!armed)
        return 0;
    changes++;
    if (changes < at || (changes > at && error_number >= 0))
        return 0;
    if (to_send) {
        kill(getpid(), to_send);
        return 0; /* it was stopped, and goes on */
    }
    errno = error_number < 0 ? -error_number : error_number;
    return 1;
}

#define REAL(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))
#define CHANGE(type, name, parameters, arguments) \
    type name parameters { return refused() ? -1 : REAL(name) arguments; }

CHANGE(int, mkdir, (const char *path, mode_t mode), (path, mode))
CHANGE(int, mkdirat, (int directory, const char *path, mode_t mode), (directory, path, mode))
CHANGE(int, rmdir, (const char *path), (path))
CHANGE(int, unlink, (const char *path), (path))
CHANGE(int, unlinkat, (int directory, const char *path, int flags), (directory, path, flags))
CHANGE(int, rename, (const char *old, const char *new), (old, new))
CHANGE(int, renameat, (int one, const char *old, int two, const char *new), (one, old, two, new))

/* With DISK_NO_RENAMEAT2 in the environment, as on file systems that do not support the flags of Linux. */
int renameat2(int one, const char *old, int two, const char *new, unsigned flags)
{
    if (getenv("DISK_NO_RENAMEAT2")) {
        errno = EINVAL;
        return -1;
    }
    return refused() ? -1 : REAL(renameat2)(one, old, two, new, flags);
}

CHANGE(int, linkat, (int one, const char *old, int two, const char *new, int flags), (one, old, two, new, flags))
CHANGE(int, symlink, (const char *link, const char *path), (link, path))
CHANGE(int, fsync, (int file), (file))
CHANGE(int, fdatasync, (int file), (file))
CHANGE(int, syncfs, (int file), (file))
CHANGE(int, ftruncate, (int file, off_t size), (file, size))
CHANGE(int, ftruncate64, (int file, off64_t size), (file, size))
CHANGE(ssize_t, write, (int file, const void *buffer, size_t size), (file, buffer, size))
/* By SQLite. */
CHANGE(ssize_t, pwrite64, (int file, const void *buffer, size_t size, off64_t at), (file, buffer, size, at))

static int refuses_to_open(const char *path, int flags)
{
    (void)path;
    return (flags & (O_CREAT | O_WRONLY | O_RDWR)) && refused();
}
