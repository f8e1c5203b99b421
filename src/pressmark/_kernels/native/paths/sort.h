/* Records of paths sorted in memory. */
#ifndef PRESSMARK_SORT_H
#define PRESSMARK_SORT_H

#include "records.h"

typedef struct {
    uint64_t cache; /* eight bytes of the record, from the depth to which neighbouring records are equal */
    uint64_t place; /* the offset of its length in the records */
} pm_entry;

typedef struct {
    pm_bytes records;
    pm_entry *entries;
    int64_t count;
    int64_t room;
    int64_t taken;
} pm_sorter;

void pm_sorter_free(pm_sorter *sorter);
void pm_sorter_sort(pm_sorter *sorter);
/* Adds the paths of a column, numbered from `number`. `folded` contains the keys of paths that are not ASCII, in order. The
 * ascending indices in `skip` end with -1. Returns 0 or PM_NO_MEMORY. */
int pm_sorter_add_column(pm_sorter *sorter, const pm_column *paths, const pm_column *folded, uint64_t number,
                         const int64_t *skip);
/* Returns how many records make about `size` bytes, and sets *length to their exact size. */
int64_t pm_sorter_measure(const pm_sorter *sorter, int64_t size, int64_t *length);
/* Copies `count` records to `out`. After the last one the sorter is empty and keeps its memory. */
void pm_sorter_take(pm_sorter *sorter, int64_t count, uint8_t *out);

#endif
