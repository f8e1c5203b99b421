/* Columns of byte strings: one contiguous buffer and count + 1 int64 offsets, as Arrow's large_binary. */
#ifndef PRESSMARK_COLUMN_H
#define PRESSMARK_COLUMN_H

#include "memory.h"

typedef struct {
    pm_bytes bytes;
    int64_t *offsets; /* count + 1; NULL only before pm_new_column */
    int64_t count;
} pm_column;

static inline void pm_free_column(pm_column *column)
{
    pm_free_bytes(&column->bytes);
    free(column->offsets);
    column->offsets = NULL;
    column->count = 0;
}

/* Prepares an empty column for `count` items of about `size` bytes in total. */
static inline int pm_new_column(pm_column *column, int64_t count, int64_t size)
{
    memset(column, 0, sizeof *column);
    column->offsets = (int64_t *)pm_new_array(count + 1, sizeof(int64_t));
    if (column->offsets == NULL)
        return PM_NO_MEMORY;
    pm_prefer_large_pages(column->offsets, (count + 1) * (int64_t)sizeof(int64_t));
    column->offsets[0] = 0;
    if (pm_reserve(&column->bytes, size + 16) < 0) {
        pm_free_column(column);
        return PM_NO_MEMORY;
    }
    return 0;
}

/* Ends the item whose bytes were just appended. */
static inline void pm_end_item(pm_column *column)
{
    column->count += 1;
    column->offsets[column->count] = column->bytes.size;
}

/* Copies the items from `start` to `stop` into a new column. */
static inline int pm_copy_items(const pm_column *from, int64_t start, int64_t stop, pm_column *to)
{
    int64_t first = from->offsets[start];
    if (pm_new_column(to, stop - start, from->offsets[stop] - first) < 0 ||
        pm_append(&to->bytes, from->bytes.data + first, from->offsets[stop] - first) < 0)
        return PM_NO_MEMORY;
    to->count = stop - start;
    for (int64_t index = start; index <= stop; index++)
        to->offsets[index - start] = from->offsets[index] - first;
    return 0;
}

#endif
