/* Counts of the lengths and depths of paths. pure/path_lengths.py defines them. */
#ifndef PRESSMARK_LENGTHS_H
#define PRESSMARK_LENGTHS_H

#include "../shared/column.h"

/* In the order of pure/path_lengths.py. */
enum {
    PM_PATH_BYTES,
    PM_PATH_UNITS,
    PM_SEGMENT_BYTES,
    PM_SEGMENT_UNITS,
    PM_PATH_DEPTH,
    PM_LAST_BYTES,
    PM_MEASURES,
};

/* Shorter lengths are counted in a table, longer ones are stored. */
enum { PM_LENGTH_ROWS = 1 << 12 };

typedef struct {
    int64_t *counts; /* PM_MEASURES times PM_LENGTH_ROWS */
    pm_bytes longer; /* pairs of int64_t: measure and length */
} pm_lengths;

int pm_lengths_init(pm_lengths *lengths);
void pm_lengths_free(pm_lengths *lengths);
/* Adds the paths of a column, except those whose ascending indices are in `skip`, which ends with -1. */
int pm_lengths_add_column(pm_lengths *lengths, const pm_column *paths, const int64_t *skip);

#endif
