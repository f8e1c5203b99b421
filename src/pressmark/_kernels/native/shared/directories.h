/* Reading directories, and the paths of directories that wait to be read.
 *
 * On Linux, directories are read by the system call: creating a DIR costs as much as reading a small directory.
 */
#ifndef PRESSMARK_DIRECTORIES_H
#define PRESSMARK_DIRECTORIES_H

#include <stdint.h>
#include <string.h>

#include "memory.h"

#if defined(_WIN32)
#define PM_CAN_SCAN 0
#else
#define PM_CAN_SCAN 1
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#ifndef O_CLOEXEC
#define O_CLOEXEC 0
#endif
#endif

/* The buffer of one system call; directories of a store seldom contain more than a hundred short names. */
#define PM_ENTRIES_SIZE 32768

#if PM_CAN_SCAN

/* An open directory. After the last entry, `failed` tells whether an error ended it. */
typedef struct {
    int descriptor;
    int failed;
    char *buffer;
    long filled, at;
    DIR *stream;
} pm_directory;

#if defined(__linux__) && defined(SYS_getdents64)

/* As in linux/dirent.h, which user programs cannot include. */
typedef struct {
    uint64_t inode;
    int64_t next;
    unsigned short size;
    unsigned char type;
    char name[];
} pm_dirent;

static inline int pm_begin_entries(pm_directory *directory)
{
    directory->filled = directory->at = 0;
    return 0;
}

/* Returns the next name and sets `type`, DT_UNKNOWN if only fstatat can tell. Returns NULL after the last one. */
static inline const char *pm_read_entry(pm_directory *directory, int *type)
{
    if (directory->at >= directory->filled) {
        directory->filled = syscall(SYS_getdents64, directory->descriptor, directory->buffer, PM_ENTRIES_SIZE);
        directory->at = 0;
        if (directory->filled <= 0) {
            directory->failed = directory->filled < 0;
            directory->filled = 0;
            return NULL;
        }
    }
    const pm_dirent *entry = (const pm_dirent *)(const void *)(directory->buffer + directory->at);
    directory->at += entry->size;
    *type = entry->type;
    return entry->name;
}

static inline void pm_close_directory(pm_directory *directory)
{
    close(directory->descriptor);
}

#else

static inline int pm_begin_entries(pm_directory *directory)
{
    directory->stream = fdopendir(directory->descriptor);
    return directory->stream == NULL ? -1 : 0;
}

static inline const char *pm_read_entry(pm_directory *directory, int *type)
{
    errno = 0;
    const struct dirent *entry = readdir(directory->stream);
    if (entry == NULL) {
        directory->failed = errno != 0;
        return NULL;
    }
#if defined(DT_UNKNOWN)
    *type = entry->d_type;
#else
    *type = 0;
#endif
    return entry->d_name;
}

static inline void pm_close_directory(pm_directory *directory)
{
    closedir(directory->stream);
}

#endif

/* Opens the directory `path` below the directory `root`. `flags`: O_NOFOLLOW or 0. The buffer has PM_ENTRIES_SIZE bytes.
 * Returns 0 or -1. */
static inline int pm_open_directory(pm_directory *directory, int root, const char *path, int flags, char *buffer)
{
    memset(directory, 0, sizeof *directory);
    directory->buffer = buffer;
    directory->descriptor = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
    if (directory->descriptor < 0)
        return -1;
    if (pm_begin_entries(directory) < 0) {
        close(directory->descriptor);
        return -1;
    }
    return 0;
}

/* As pm_read_entry, without "." and "..". */
static inline const char *pm_next_entry(pm_directory *directory, int *type)
{
    const char *name;
    do
        name = pm_read_entry(directory, type);
    while (name != NULL && name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0)));
    return name;
}

#endif

/* Waiting paths, the next one last, each with a NUL at its end. */
typedef struct {
    pm_bytes bytes;
    int64_t *starts;
    int64_t count, capacity;
} pm_waiting;

/* Adds `path`, and after a slash `name` unless one of them is empty. */
static inline int pm_wait(pm_waiting *waiting, const uint8_t *path, int64_t length, const uint8_t *name,
                          int64_t name_length)
{
    if (pm_reserve_items(&waiting->starts, &waiting->capacity, waiting->count + 1, sizeof *waiting->starts) < 0)
        return PM_NO_MEMORY;
    pm_bytes *bytes = &waiting->bytes;
    if (pm_reserve(bytes, length + 1 + name_length + 1) < 0)
        return PM_NO_MEMORY;
    waiting->starts[waiting->count++] = bytes->size;
    uint8_t *end = bytes->data + bytes->size;
    if (length) {
        memcpy(end, path, (size_t)length);
        end += length;
    }
    if (name_length) {
        if (length)
            *end++ = '/';
        memcpy(end, name, (size_t)name_length);
        end += name_length;
    }
    *end++ = 0;
    bytes->size = end - bytes->data;
    return 0;
}

/* Removes the next path and copies it to `path`, with its NUL. */
static inline int pm_next(pm_waiting *waiting, pm_bytes *path)
{
    const int64_t start = waiting->starts[--waiting->count];
    path->size = 0;
    const int status = pm_append(path, waiting->bytes.data + start, waiting->bytes.size - start);
    waiting->bytes.size = start;
    return status;
}

static inline void pm_free_waiting(pm_waiting *waiting)
{
    free(waiting->starts);
    pm_free_bytes(&waiting->bytes);
}

#endif
