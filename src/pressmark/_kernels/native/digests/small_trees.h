/* Directories of a few small files, copied in one call, and directories moved without replacing anything. */
#ifndef PRESSMARK_SMALL_TREES_H
#define PRESSMARK_SMALL_TREES_H

#include <stddef.h>

#include "small_files.h"

#define PM_TREE_FILES 15
#define PM_TREE_BYTES 65536 /* of all files together */
#define PM_TREE_ROOM (PM_TREE_BYTES + PM_SMALL_MOST + 1)
#define PM_TREE_NAMES 4096   /* bytes of all names, with a zero after each */
#define PM_TREE_PATH 4096
#define PM_TREE_DEPTH 16 /* open directories */

#define PM_DEVICES 8

typedef struct {
    int count;
    int64_t device[PM_DEVICES];
} pm_devices;

/* The data of several trees may follow each other, so that all files are hashed together. */
typedef struct {
    int64_t count;
    pm_time changed; /* the latest change of content or status of a file */
    int64_t *offsets; /* of the files in `data`, room for PM_TREE_FILES + 1; the caller sets the first */
    uint8_t *data;    /* has room for PM_TREE_ROOM bytes after the first offset */
    uint8_t *digests; /* room for PM_TREE_FILES of 64 bytes */
    const char *files[PM_TREE_FILES]; /* their names below the directory, sorted by bytes */
    size_t named;
    char names[PM_TREE_NAMES];
#ifndef _WIN32
    struct stat statuses[PM_TREE_FILES];
#endif
} pm_small_tree;

/* Whether no name needs escapes in JSON, and no two files have the same content. */
int pm_small_tree_is_plain(const pm_small_tree *tree);
/* Lists and reads the files of a directory, all on one of the devices (any if there are none). It is alone in its parent `above`;
 * or `above` is empty and `name` its path; or `above` is NULL and `name` its path or that of a file. Returns 0 if this is not
 * possible. */
int pm_small_tree_read(pm_small_tree *tree, const char *above, const char *name, const pm_devices *devices, int flags);
/* The length of the longest file name. */
size_t pm_small_tree_longest(const pm_small_tree *tree);
/* Writes the files into an existing directory; returns 0 on failure. */
int pm_small_tree_write(const pm_small_tree *tree, const char *directory);
/* Whether nothing is at a path, as far as can be known. */
int pm_is_free(const char *path);
int64_t pm_device(const pm_small_status *status);
/* Whether a device is one of those given. */
int pm_is_on(const pm_devices *devices, int64_t device);

typedef struct {
    const char *base;         /* the directory that all places are relative to */
    const char *const *signs; /* file names, each after a slash, of a directory into which nothing is moved */
    int count;                /* of signs */
    int fresh;                /* move only into directories that did not exist */
} pm_moves;

/* Creates the missing directories between the base and `place`, and renames `old` to `place`. Returns 1 on success, and 0 if a
 * parent directory has one of the signs or is not a directory, if `place` exists, or if the system cannot rename without
 * replacing. Directories that were created remain. The directories that `place` has in common with `before`, which may be NULL
 * or the last place of a move that succeeded, are not checked again. */
int pm_move_new(const pm_moves *moves, const char *old, const char *place, const char *before);

#endif
