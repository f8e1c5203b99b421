#include "small_files.h"

#include <errno.h>

#ifndef _WIN32
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#define PM_NOREPLACE 1 /* linux/fs.h */
extern int renameat2(int, const char *, int, const char *, unsigned) __attribute__((weak));
#endif

#define PM_HOLE ((int64_t)64 << 10) /* bytes of zeros that a copy of a sparse file does not write */

int pm_rename_new(const char *old, const char *path)
{
#ifdef __linux__
    if (renameat2) return renameat2(AT_FDCWD, old, AT_FDCWD, path, PM_NOREPLACE);
#endif
#ifdef SYS_renameat2
    /* musl has no function for it. */
    return (int)syscall(SYS_renameat2, AT_FDCWD, old, AT_FDCWD, path, PM_NOREPLACE);
#else
    (void)old, (void)path;
    errno = ENOSYS;
    return -1;
#endif
}

int pm_small_read_file(int file, const struct stat *before, uint8_t *data, pm_small *small)
{
    struct stat after;
    int64_t done = 0;
    small->error = 0;
    small->size = before->st_size;
    small->mtime = pm_time_of(PM_MTIME(*before));
    small->ctime = pm_time_of(PM_CTIME(*before));
    small->inode = (uint64_t)before->st_ino;
    /* One byte more than expected, to detect a file that has grown without a second read. */
    do {
        const ssize_t got = read(file, data + done, (size_t)(small->size + 1 - done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            small->error = errno;
            return PM_SMALL_SOURCE;
        }
        if (!got) break;
        done += got;
    } while (done < small->size);
    if (fstat(file, &after)) {
        small->error = errno;
        return PM_SMALL_SOURCE;
    }
    /* Another file is there now. */
    if (after.st_ino != before->st_ino || after.st_dev != before->st_dev) return PM_SMALL_NOT_HERE;
    small->size_after = after.st_size;
    small->mtime_after = pm_time_of(PM_MTIME(after));
    small->done = done;
    if (small->size_after != small->size || !pm_is_same_time(small->mtime_after, small->mtime)) return PM_SMALL_CHANGED;
    /* A virtual file has size 0 and some content. */
    if (!small->size && done) return PM_SMALL_NOT_HERE;
    return done == small->size ? PM_SMALL_DONE : PM_SMALL_CHANGED;
}

int pm_copy_open(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

static int pm_write_all(int file, const uint8_t *data, int64_t size)
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

/* Whether a file has holes, or blocks that the file system compresses. */
static int pm_is_sparse(const struct stat *status)
{
    return status->st_size >= PM_HOLE && (int64_t)status->st_blocks * 512 < status->st_size;
}

int pm_copy_write(int file, const struct stat *like, const uint8_t *data, int64_t size)
{
    int error = 0;
    if (!pm_is_sparse(like)) return pm_write_all(file, data, size);
    while (size > 0 && !error) {
        const int64_t piece = size < PM_HOLE ? size : PM_HOLE;
        if (data[0] || memcmp(data, data + 1, (size_t)piece - 1)) error = pm_write_all(file, data, piece);
        else if (lseek(file, piece, SEEK_CUR) < 0) error = errno;
        data += piece;
        size -= piece;
    }
    return error;
}

int pm_copy_close(int file, const struct stat *like)
{
    const struct timespec times[2] = {PM_ATIME(*like), PM_MTIME(*like)};
    int error = 0;
    /* A hole at the end. */
    if (pm_is_sparse(like) && ftruncate(file, like->st_size)) error = errno;
    if (!error && fchmod(file, like->st_mode & 0777) && errno != EPERM && errno != EACCES) error = errno;
    if (!error && futimens(file, times) && errno != EPERM && errno != EACCES) error = errno;
    if (close(file) && !error) error = errno;
    return error;
}

int pm_small_write_like(const char *path, const struct stat *like, const uint8_t *data, int64_t size)
{
    const int file = pm_copy_open(path);
    if (file < 0) return errno;
    const int error = pm_copy_write(file, like, data, size);
    const int closing = error ? (close(file), 0) : pm_copy_close(file, like);
    return error ? error : closing;
}

int pm_small_new(const char *path, const uint8_t *data, int64_t size)
{
    int file, error;
    file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) return errno;
    error = pm_write_all(file, data, size);
    if (close(file) && !error) error = errno;
    return error;
}

#else

int pm_small_write_like(const char *path, const pm_small_status *like, const uint8_t *data, int64_t size)
{
    (void)path, (void)like, (void)data, (void)size;
    return ENOSYS;
}

int pm_small_new(const char *path, const uint8_t *data, int64_t size)
{
    (void)path, (void)data, (void)size;
    return ENOSYS;
}

#endif
