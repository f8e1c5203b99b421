/* Small files, of which there are many: one call each for what Python needs ten for. */
#ifndef PRESSMARK_SMALL_FILES_H
#define PRESSMARK_SMALL_FILES_H

#include <errno.h>
#include <stdint.h>

#define PM_SMALL_MOST 16384 /* octets: what fits the stack, and is hashed as fast here as anywhere */

/* What became of a copy. */
enum { PM_SMALL_DONE = 0, PM_SMALL_NOT_HERE, PM_SMALL_SOURCE, PM_SMALL_TARGET, PM_SMALL_CHANGED };

typedef struct {
    int error; /* errno of PM_SMALL_SOURCE and PM_SMALL_TARGET */
    int64_t size, mtime_ns, inode;
    int64_t size_after, mtime_ns_after, octets; /* of PM_SMALL_CHANGED */
} pm_small;

#ifndef _WIN32
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#ifdef __APPLE__
#define PM_SMALL_MTIME(status) ((status).st_mtimespec)
#define PM_SMALL_ATIME(status) ((status).st_atimespec)
#else
#define PM_SMALL_MTIME(status) ((status).st_mtim)
#define PM_SMALL_ATIME(status) ((status).st_atim)
#endif
#define PM_SMALL_NS(time) ((int64_t)(time).tv_sec * 1000000000 + (time).tv_nsec)

/* Read a file that holds something, but not much; data has room for one octet more than PM_SMALL_MOST.
 * The path is relative to the directory that a descriptor is open for. */
static int pm_small_read_at(int directory, const char *path, int flags, struct stat *before, uint8_t *data,
                            pm_small *small)
{
    struct stat after;
    int64_t done = 0;
    int ended = PM_SMALL_DONE;
    const int file = openat(directory, path, flags);
    if (file < 0) {
        small->error = errno;
        return PM_SMALL_SOURCE;
    }
    if (fstat(file, before)) {
        small->error = errno;
        ended = PM_SMALL_SOURCE;
    } else if (!S_ISREG(before->st_mode) || before->st_size <= 0 || before->st_size > PM_SMALL_MOST) {
        ended = PM_SMALL_NOT_HERE;
    } else {
        small->size = before->st_size;
        small->mtime_ns = PM_SMALL_NS(PM_SMALL_MTIME(*before));
        small->inode = (int64_t)before->st_ino;
        /* One octet more than there should be: a file that has grown shows itself without a second read. */
        do {
            const ssize_t got = read(file, data + done, (size_t)(small->size + 1 - done));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) {
                small->error = errno;
                ended = PM_SMALL_SOURCE;
                break;
            }
            if (!got) break;
            done += got;
        } while (done < small->size);
        if (ended == PM_SMALL_DONE && fstat(file, &after)) {
            small->error = errno;
            ended = PM_SMALL_SOURCE;
        }
        if (ended == PM_SMALL_DONE) {
            small->size_after = after.st_size;
            small->mtime_ns_after = PM_SMALL_NS(PM_SMALL_MTIME(after));
            small->octets = done;
            if (small->size_after != small->size || small->mtime_ns_after != small->mtime_ns || done != small->size)
                ended = PM_SMALL_CHANGED;
        }
    }
    close(file);
    return ended;
}

static int pm_small_read(const char *path, int flags, struct stat *before, uint8_t *data, pm_small *small)
{
    return pm_small_read_at(AT_FDCWD, path, flags, before, data, small);
}

static int pm_small_put(int file, const uint8_t *data, int64_t size)
{
    while (size > 0) {
        const ssize_t put = write(file, data, (size_t)size);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return errno;
        data += put;
        size -= put;
    }
    return 0;
}

/* Write a new file with the permission bits and times of another, as far as the file system has its own. */
static int pm_small_write_like(const char *path, const struct stat *like, const uint8_t *data, int64_t size)
{
    const struct timespec times[2] = {PM_SMALL_ATIME(*like), PM_SMALL_MTIME(*like)};
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int error;
    if (file < 0) return errno;
    error = pm_small_put(file, data, size);
    if (!error && fchmod(file, like->st_mode & 0777) && errno != EPERM && errno != EACCES) error = errno;
    if (!error && futimens(file, times) && errno != EPERM && errno != EACCES) error = errno;
    if (close(file) && !error) error = errno;
    return error;
}

/* Write a new file, or make a directory where there is no data; return errno. */
static int pm_small_new(const char *path, const uint8_t *data, int64_t size)
{
    int file, error;
    if (!data) return mkdir(path, 0777) ? errno : 0;
    file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) return errno;
    error = pm_small_put(file, data, size);
    if (close(file) && !error) error = errno;
    return error;
}
#define PM_SMALL_HERE 1
#else
struct stat_none { int none; };
#define stat stat_none
static int pm_small_read(const char *path, int flags, struct stat *before, uint8_t *data, pm_small *small)
{
    (void)path, (void)flags, (void)before, (void)data, (void)small;
    return PM_SMALL_NOT_HERE;
}
static int pm_small_write_like(const char *path, const struct stat *like, const uint8_t *data, int64_t size)
{
    (void)path, (void)like, (void)data, (void)size;
    return ENOSYS;
}
static int pm_small_new(const char *path, const uint8_t *data, int64_t size)
{
    (void)path, (void)data, (void)size;
    return ENOSYS;
}
#define PM_SMALL_HERE 0
#endif
#endif
