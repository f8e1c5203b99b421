/* Small files, of which there are many: one call each for what Python needs ten for. */
#ifndef PRESSMARK_SMALL_FILES_H
#define PRESSMARK_SMALL_FILES_H

#include <stdint.h>

#define PM_SMALL_MOST 16384 /* octets: what fits the stack, and is hashed as fast here as anywhere */

/* What became of a copy. */
enum { PM_SMALL_DONE = 0, PM_SMALL_NOT_HERE, PM_SMALL_SOURCE, PM_SMALL_TARGET, PM_SMALL_CHANGED };

typedef struct {
    int error; /* errno of PM_SMALL_SOURCE and PM_SMALL_TARGET */
    int64_t size, mtime_ns, inode;
    int64_t size_after, mtime_ns_after, octets; /* of PM_SMALL_CHANGED */
} pm_small;

#ifdef _WIN32
#define PM_SMALL_HERE 0
typedef struct { int none; } pm_small_status;
#else
#define PM_SMALL_HERE 1
#include <sys/stat.h>
typedef struct stat pm_small_status;

#ifdef __APPLE__
#define PM_SMALL_MTIME(status) ((status).st_mtimespec)
#define PM_SMALL_ATIME(status) ((status).st_atimespec)
#else
#define PM_SMALL_MTIME(status) ((status).st_mtim)
#define PM_SMALL_ATIME(status) ((status).st_atim)
#endif
#define PM_SMALL_NS(time) ((int64_t)(time).tv_sec * 1000000000 + (time).tv_nsec)
#endif

/* Read a file that holds something, but not much; data has room for one octet more than PM_SMALL_MOST.
 * The path is relative to the directory that a descriptor is open for. */
int pm_small_read_at(int directory, const char *path, int flags, pm_small_status *before, uint8_t *data, pm_small *small);
int pm_small_read(const char *path, int flags, pm_small_status *before, uint8_t *data, pm_small *small);
/* Write a new file with the permission bits and times of another, as far as the file system has its own. */
int pm_small_write_like(const char *path, const pm_small_status *like, const uint8_t *data, int64_t size);
/* Write a new file, or make a directory where there is no data; return errno. */
int pm_small_new(const char *path, const uint8_t *data, int64_t size);

#endif
