/* How long paths are, how deep, and how near to their neighbours: counts over columns of them. The readable twin says what
 * is counted. */
#ifndef PRESSMARK_LENGTHS_H
#define PRESSMARK_LENGTHS_H

#include "../shared/column.h"

/* In the order of the readable twin's. */
enum {
    PM_PATH_OCTETS,
    PM_PATH_UNITS,
    PM_SEGMENT_OCTETS,
    PM_SEGMENT_UNITS,
    PM_PATH_DEPTH,
    PM_LAST_OCTETS,
    PM_MEASURES,
};

enum {
    PM_LENGTH_ROWS = 1 << 12, /* lengths below are counted in a table, the others are kept one by one */
    PM_WINDOW = 1000,
    PM_WINDOW_SLOTS = 1 << 11,
};

typedef struct {
    int64_t *counts; /* PM_MEASURES times PM_LENGTH_ROWS */
    pm_bytes longer; /* int64_t, in pairs: the measure, the length */
    int64_t paths;
    int64_t shared; /* leading segments that neighbours have in common */
    int64_t parents; /* different ones in each window, all windows together */
    int64_t window; /* paths in the present one */
    uint64_t slots[PM_WINDOW_SLOTS]; /* hashes of its parents, 0 where there is none */
    pm_bytes last;
} pm_lengths;

int pm_lengths_init(pm_lengths *lengths);
void pm_lengths_free(pm_lengths *lengths);
/* Takes in the paths of a column but those whose ascending indices are in `skip`, which ends with -1. */
int pm_lengths_add_column(pm_lengths *lengths, const pm_column *paths, const int64_t *skip);

#endif
