/* Reads all files of a directory of few small files, without following links. */
#ifndef PRESSMARK_SMALL_FOLDER_H
#define PRESSMARK_SMALL_FOLDER_H

#include <stddef.h>

#include "small_files.h"

#ifdef _WIN32
#define PM_CURRENT -1
#else
#include <fcntl.h>
#define PM_CURRENT AT_FDCWD /* the working directory */
#endif

#define PM_FOLDER_ENTRIES 128
#define PM_FOLDER_NAMES 16384 /* bytes of all paths, with a zero after each */
#define PM_FOLDER_DEPTH 16    /* open directories */
#define PM_FOLDER_BYTES (1 << 18) /* of all files together, and one more file */

typedef struct {
    const char *path; /* relative to the directory */
    uint32_t length;
    uint32_t key;  /* unique; paths that differ only in case have the same */
    int file;      /* number of the file, in the order of reading; -1 for a directory */
    int64_t begin; /* offset of its first byte in the data */
    int64_t size;
    uint64_t inode;
    pm_time mtime;
} pm_folder_entry;

typedef struct {
    int count, files;
    size_t named;
    pm_folder_entry entry[PM_FOLDER_ENTRIES]; /* each directory before its content */
    char names[PM_FOLDER_NAMES];
} pm_folder;

/* Reads the files of directory `path`, which is relative to the open directory `at`, into data[begin .. room), one after
 * another, and returns the end of the last one. With `data` NULL, only sizes and times of the files are set. `skip` is a name in
 * the directory to ignore, or NULL. Returns -1 if the directory has anything but directories and small files that are not empty;
 * a name with bytes other than printable ASCII without % and \; two paths with the same key; too many entries; a directory on
 * another device; or if a file cannot be read or changes meanwhile. So it does after half a second: the caller then reads the files
 * in a way that can be interrupted. */
int64_t pm_folder_read(pm_folder *folder, int at, const char *path, const char *skip, uint8_t *data, int64_t begin, int64_t room);

uint32_t pm_folder_key(const char *path, size_t length);

#endif
