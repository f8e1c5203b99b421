#include "file_steps.h"

#include <errno.h>

#include "../shared/directories.h"
#include "small_files.h"

#if PM_CAN_SCAN
#include <stdio.h>
#include <sys/file.h>

#define PM_STEP_PATH 4096 /* no system opens longer paths */

/* Another run can remove the directory of the file between the calls: then its name leads elsewhere. */
static int make_lock(const char *path, int *lock)
{
    struct stat here, there;
    int error = 0;
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file < 0) return errno;
    if (flock(file, LOCK_EX | LOCK_NB) || fstat(file, &here) || stat(path, &there)) error = errno;
    else if (here.st_ino != there.st_ino || here.st_dev != there.st_dev) error = EAGAIN;
    if (error) close(file);
    else *lock = file;
    return error;
}

static int move_new(const char *old, const char *path)
{
    struct stat status;
    if (!pm_rename_new(old, path)) return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return errno;
    /* The lock keeps other runs away; only other programs can interfere. */
    if (!lstat(path, &status)) return EEXIST;
    if (errno != ENOENT) return errno;
    return rename(old, path) ? errno : 0;
}

static int is_alone(const char *path, const char *name)
{
    char buffer[PM_ENTRIES_SIZE];
    pm_directory directory;
    const char *entry;
    int type, error;
    if (pm_open_directory(&directory, AT_FDCWD, path, 0, buffer)) return errno;
    do
        entry = pm_next_entry(&directory, &type);
    while (entry && !strcmp(entry, name));
    error = entry ? EEXIST : directory.failed ? errno : 0;
    pm_close_directory(&directory);
    return error;
}

/* O_NONBLOCK: opening a named pipe must not block. Some file systems cannot flush. */
static int flush(const char *path)
{
    int error = 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return errno;
#ifdef F_FULLFSYNC
    /* On macOS, fsync leaves data in the cache of the drive. */
    if (!fcntl(file, F_FULLFSYNC)) {
        close(file);
        return 0;
    }
#endif
    if (fsync(file) && errno != EINVAL && errno != EBADF && errno != ENOTSUP) error = errno;
    close(file);
    return error;
}

/* Sets `buffer` to a path in a directory; returns 0 or errno. */
static int join(char *buffer, const char *base, const char *path)
{
    const size_t above = strlen(base), length = strlen(path);
    if (above + length + 2 > PM_STEP_PATH) return ENAMETOOLONG;
    memcpy(buffer, base, above + 1);
    if (length) {
        buffer[above] = '/';
        memcpy(buffer + above + 1, path, length + 1);
    }
    return 0;
}

int pm_step_run(const char *base, const pm_step *step, int *lock)
{
    char path[PM_STEP_PATH], other[PM_STEP_PATH];
    int error = join(path, base, step->path);
    if (!error && step->kind == PM_STEP_MOVE) error = join(other, base, step->other);
    if (error) return error;
    switch (step->kind) {
    case PM_STEP_MAKE: return mkdir(path, (mode_t)step->size) ? errno : 0;
    case PM_STEP_MODE: return chmod(path, (mode_t)step->size) ? errno : 0;
    case PM_STEP_LOCK: return make_lock(path, lock);
    case PM_STEP_WRITE: return pm_small_new(path, (const uint8_t *)step->other, step->size);
    case PM_STEP_MOVE: return move_new(path, other);
    case PM_STEP_ALONE: return is_alone(path, step->other);
    case PM_STEP_UNLINK: return unlink(path) ? errno : 0;
    case PM_STEP_RMDIR: return rmdir(path) ? errno : 0;
    case PM_STEP_FLUSH: return flush(path);
    default: return EINVAL;
    }
}

#else

int pm_step_run(const char *base, const pm_step *step, int *lock)
{
    (void)base, (void)step, (void)lock;
    return ENOSYS;
}

#endif
