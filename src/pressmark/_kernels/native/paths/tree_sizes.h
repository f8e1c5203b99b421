/* The size and the names of files of whole trees; pure/trees.py defines which trees are deferred.
 *
 * Nothing here needs the GIL, and several threads may measure different trees.
 */
#ifndef PRESSMARK_TREE_SIZES_H
#define PRESSMARK_TREE_SIZES_H

#include "../shared/column.h"

/* What `stamps` holds of each file: its size, and the seconds and nanoseconds of its times of modification and of status
 * change. */
#define PM_STAMP 5

typedef struct {
    int64_t files; /* -1 for a deferred tree; the rest is then undefined */
    int64_t bytes;
    int64_t blocks;  /* bytes in blocks of 4 KiB */
    int64_t directories;
} pm_tree_size;

/* Measures the trees of `tops` until the end of PM_TURN. Creates the columns of names, each with a NUL at its end, and
 * of stamps. Returns the number of measured trees, or PM_NO_MEMORY. */
int64_t pm_tree_sizes(const pm_column *tops, pm_tree_size *sizes, pm_column *names, pm_column *stamps);

#endif
