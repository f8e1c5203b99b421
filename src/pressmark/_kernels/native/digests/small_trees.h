/* Directories of a few small files: copied, and moved without replacing anything, in one call each. */
#ifndef PRESSMARK_SMALL_TREES_H
#define PRESSMARK_SMALL_TREES_H

#include <stddef.h>

#include "small_files.h"

#define PM_TREE_FILES 15
#define PM_TREE_BYTES 65536 /* of all files together */
#define PM_TREE_NAMES 4096   /* octets of all names, with a zero after each */
#define PM_TREE_PATH 4096
#define PM_TREE_DEPTH 16 /* directories that are open at a time */

typedef struct {
    int64_t count;
    int64_t changed; /* when the newest was changed last, content or status, in nanoseconds */
    int64_t offsets[PM_TREE_FILES + 1];
    const char *files[PM_TREE_FILES]; /* their names below the directory, in the order of their octets */
    size_t named;
    char names[PM_TREE_NAMES];
    uint8_t data[PM_TREE_BYTES + PM_SMALL_MOST + 1];
    uint8_t digests[PM_TREE_FILES * 64];
#ifndef _WIN32
    struct stat statuses[PM_TREE_FILES];
#endif
} pm_small_tree;

/* Whether every name stands in JSON as it is, and no two files have the same content. */
int pm_small_tree_is_plain(const pm_small_tree *tree);
/* Lists and reads the files of the directory that is alone in another, all on one device (any, where that is negative);
 * returns 0 where this is not possible. */
int pm_small_tree_read(pm_small_tree *tree, const char *above, const char *name, int64_t device, int flags);
/* Writes the files into an existing directory; returns 0 on failure. */
int pm_small_tree_write(const pm_small_tree *tree, const char *directory);
/* Make the directories between base and place that are not there, and rename old to the place. Return 1 where that was
 * done, and 0 where anything is as it should not be: a directory above that has one of the signs, no directory, something
 * at the place, or no way to rename to what must not be there. What was made is left. */
int pm_move_new(const char *old, const char *base, const char *place, const char *const *signs, int count);

#endif
