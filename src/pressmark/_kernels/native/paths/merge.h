/* The merge of sorted records, which returns the paths that may collide. */
#ifndef PRESSMARK_MERGE_H
#define PRESSMARK_MERGE_H

#include "../shared/memory.h"
#include "tree.h"

/* Returned instead of the number of a run. */
enum { PM_MERGED = -1, PM_ENOUGH = -2, PM_MERGE_NO_MEMORY = -3, PM_MERGE_DAMAGED = -4 };

typedef struct {
    const uint8_t *block; /* borrowed */
    int64_t size;
    int64_t next; /* the record after the current one */
    const uint8_t *record;
    int64_t length;
    uint64_t cache;
} pm_run;

/* A result: the offsets of its texts and numbers in those of the merge. */
typedef struct {
    int64_t key;
    int64_t key_length;
    int64_t path;
    int64_t path_length;
    int64_t count;
    int64_t numbers;
    int64_t number_count;
} pm_spelling;

typedef struct {
    pm_run *runs;
    int64_t *heap; /* runs; the one with the least record is first */
    int64_t heap_count;
    int64_t *hungry; /* runs that need a block */
    int64_t hungry_count;
    int64_t first;
    pm_bytes spelled; /* the current records, without their numbers */
    int64_t count;
    uint64_t *numbers; /* their first numbers */
    int64_t numbers_room;
    pm_bytes outer; /* the same for the last path that is not inside another */
    int64_t outer_length; /* the length of its key; -1 before the first path */
    int pending; /* whether that path is not a result yet; it is the only one with its key so far */
    uint64_t pending_number;
    pm_bytes texts;
    pm_bytes numbers_found; /* uint64_t */
    pm_spelling *found;
    int64_t found_count;
    int64_t found_room;
    pm_tree *tree; /* borrowed; counts all paths, or NULL */
} pm_merge;

void pm_merge_free(pm_merge *merge);
int pm_merge_init(pm_merge *merge, int64_t runs, int64_t first);
/* Sets the next block of a hungry run. The block must exist until the run is hungry again. Returns 0 or PM_MERGE_DAMAGED. */
int pm_merge_feed(pm_merge *merge, int64_t number, const uint8_t *block, int64_t size);
/* Merges until a run is hungry, there are `most` spellings, or all runs end. Returns the run or one of the values above. */
int64_t pm_merge_step(pm_merge *merge, int64_t most);

#endif
