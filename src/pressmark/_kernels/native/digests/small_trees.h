/* Directories of a few small files: copied, and moved without replacing anything, in one call each. */
#ifndef PRESSMARK_SMALL_TREES_H
#define PRESSMARK_SMALL_TREES_H

#include <stddef.h>

#include "small_files.h"

#define PM_TREE_FILES 15
#define PM_TREE_BYTES 65536 /* of all files together */
#define PM_TREE_NAMES 4096   /* bytes of all names, with a zero after each */
#define PM_TREE_PATH 4096
#define PM_TREE_DEPTH 16 /* open directories */

typedef struct {
    int64_t count;
    int64_t changed; /* the latest change of content or status of a file, in nanoseconds */
    int64_t offsets[PM_TREE_FILES + 1];
    const char *files[PM_TREE_FILES]; /* their names below the directory, sorted by bytes */
    size_t named;
    char names[PM_TREE_NAMES];
    uint8_t data[PM_TREE_BYTES + PM_SMALL_MOST + 1];
    uint8_t digests[PM_TREE_FILES * 64];
#ifndef _WIN32
    struct stat statuses[PM_TREE_FILES];
#endif
} pm_small_tree;

/* Whether no name needs escapes in JSON, and no two files have the same content. */
int pm_small_tree_is_plain(const pm_small_tree *tree);
/* Lists and reads the files of a directory, all on one device (any if negative). It is alone in its parent `above`, or `above`
 * is empty and `name` its path. Returns 0 if this is not possible. */
int pm_small_tree_read(pm_small_tree *tree, const char *above, const char *name, int64_t device, int flags);
/* Writes the files into an existing directory; returns 0 on failure. */
int pm_small_tree_write(const pm_small_tree *tree, const char *directory);
/* Creates the missing directories between `base` and `place`, and renames `old` to `place`. Returns 1 on success, and 0 if a
 * parent directory has one of the signs or is not a directory, if `place` exists, or if the system cannot rename without
 * replacing. Directories that were created remain. */
int pm_move_new(const char *old, const char *base, const char *place, const char *const *signs, int count);

#endif
