/* Copies and writes small files in one call each, where Python needs ten. */
#ifndef PRESSMARK_SMALL_FILES_H
#define PRESSMARK_SMALL_FILES_H

#include <stdint.h>

#include "../shared/times.h"

/* The result of reading a file. */
enum { PM_SMALL_DONE = 0, PM_SMALL_NOT_HERE, PM_SMALL_SOURCE, PM_SMALL_CHANGED };

typedef struct {
    int error; /* errno of PM_SMALL_SOURCE */
    int64_t size;
    uint64_t inode;
    pm_time mtime, ctime;
    int64_t size_after, done; /* of PM_SMALL_CHANGED */
    pm_time mtime_after;
} pm_small;

#ifdef _WIN32
typedef struct { int none; } pm_small_status;
#else
#include <sys/stat.h>
typedef struct stat pm_small_status;
#endif

#ifndef _WIN32
/* Renames to a path where nothing is, which may not be supported: ENOSYS, EINVAL or ENOTSUP. Returns 0, or -1 and errno. */
int pm_rename_new(const char *old, const char *path);
/* Reads an open file whose status was `before`; `data` has room for one byte more than its size. */
int pm_small_read_file(int file, const struct stat *before, uint8_t *data, pm_small *small);
#endif
/* Writes a new file with the permission bits and times of another, if the file system supports them. Returns 0 or errno. */
int pm_small_write_like(const char *path, const pm_small_status *like, const uint8_t *data, int64_t size);
/* The same in steps, for a file of any size. The first returns a descriptor, or -1; the last closes it, also if it fails.
 * The holes of a sparse file stay holes. */
int pm_copy_open(const char *path);
int pm_copy_write(int file, const pm_small_status *like, const uint8_t *data, int64_t size);
int pm_copy_close(int file, const pm_small_status *like);
/* Writes a new file. Returns 0 or errno. */
int pm_small_new(const char *path, const uint8_t *data, int64_t size);

#endif
