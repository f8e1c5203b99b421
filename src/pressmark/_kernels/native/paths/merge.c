#include "merge.h"

#include "../shared/heap.h"
#include "records.h"

void pm_merge_free(pm_merge *merge)
{
    free(merge->runs);
    free(merge->heap);
    free(merge->hungry);
    free(merge->numbers);
    free(merge->found);
    pm_free_bytes(&merge->spelled);
    pm_free_bytes(&merge->outer);
    pm_free_bytes(&merge->texts);
    pm_free_bytes(&merge->numbers_found);
    memset(merge, 0, sizeof *merge);
}

int pm_merge_init(pm_merge *merge, int64_t runs, int64_t first)
{
    merge->runs = (pm_run *)calloc((size_t)runs + 1, sizeof(pm_run));
    merge->heap = (int64_t *)calloc((size_t)runs + 1, sizeof(int64_t));
    merge->hungry = (int64_t *)calloc((size_t)runs + 1, sizeof(int64_t));
    merge->first = first;
    merge->outer_length = -1;
    if (merge->runs == NULL || merge->heap == NULL || merge->hungry == NULL ||
        pm_reserve_items(&merge->numbers, &merge->numbers_room, 1, sizeof(uint64_t)) < 0 ||
        pm_reserve(&merge->spelled, 256) < 0 || pm_reserve(&merge->outer, 256) < 0)
        return PM_NO_MEMORY;
    for (int64_t run = 0; run < runs; run++)
        merge->hungry[merge->hungry_count++] = run;
    return 0;
}

static inline int pm_run_before(const pm_run *one, const pm_run *other)
{
    if (one->cache != other->cache)
        return one->cache < other->cache;
    int order = memcmp(one->record, other->record, (size_t)(one->length < other->length ? one->length : other->length));
    return order != 0 ? order < 0 : one->length < other->length;
}

/* Advances to the next record of a block. Returns 1, 0 at its end, or PM_MERGE_DAMAGED. */
static inline int pm_run_next(pm_run *run)
{
    if (run->next >= run->size)
        return 0;
    if (run->size - run->next < PM_LENGTH_SIZE)
        return PM_MERGE_DAMAGED;
    int64_t length = pm_record_length(run->block + run->next);
    if (length < PM_LEAST_RECORD || length > run->size - run->next - PM_LENGTH_SIZE)
        return PM_MERGE_DAMAGED;
    run->record = run->block + run->next + PM_LENGTH_SIZE;
    run->length = length;
    run->cache = pm_big_endian(run->record);
    run->next += PM_LENGTH_SIZE + length;
    return 1;
}

static inline int pm_heap_before(const pm_merge *merge, const int64_t *one, const int64_t *other)
{
    return pm_run_before(&merge->runs[*one], &merge->runs[*other]);
}

PM_DEFINE_HEAP(pm_run_heap, int64_t, const pm_merge *, pm_heap_before)

int pm_merge_feed(pm_merge *merge, int64_t number, const uint8_t *block, int64_t size)
{
    int64_t place = 0;
    while (place < merge->hungry_count && merge->hungry[place] != number)
        place++;
    if (place == merge->hungry_count)
        return PM_MERGE_DAMAGED;
    merge->hungry[place] = merge->hungry[--merge->hungry_count];
    if (size == 0)
        return 0;
    pm_run *run = &merge->runs[number];
    run->block = block;
    run->size = size;
    run->next = 0;
    if (pm_run_next(run) < 0)
        return PM_MERGE_DAMAGED;
    pm_run_heap_rise(merge, merge->heap, merge->heap_count++, number);
    return 0;
}

/* Adds a spelling to the results. `record` is its key, a NUL, its spelling if that differs, a NUL. */
static int pm_let_through(pm_merge *merge, const pm_bytes *record, int64_t key_length, int64_t count,
                          const uint64_t *numbers, int64_t number_count)
{
    if (pm_reserve_items(&merge->found, &merge->found_room, merge->found_count + 1, sizeof(pm_spelling)) < 0)
        return PM_MERGE_NO_MEMORY;
    pm_spelling *spelling = &merge->found[merge->found_count];
    const uint8_t *written = record->data + key_length + 1;
    int64_t length = record->size - key_length - 2;
    if (length == 0) {
        written = record->data;
        length = key_length;
    }
    spelling->key = merge->texts.size;
    spelling->key_length = key_length;
    if (pm_append(&merge->texts, record->data, key_length) < 0)
        return PM_MERGE_NO_MEMORY;
    spelling->path = merge->texts.size;
    if (pm_read_path(written, length, &merge->texts) < 0)
        return PM_MERGE_NO_MEMORY;
    spelling->path_length = merge->texts.size - spelling->path;
    spelling->count = count;
    spelling->numbers = merge->numbers_found.size / (int64_t)sizeof(uint64_t);
    spelling->number_count = number_count;
    if (pm_append(&merge->numbers_found, numbers, number_count * (int64_t)sizeof(uint64_t)) < 0)
        return PM_MERGE_NO_MEMORY;
    merge->found_count++;
    return 0;
}

/* Whether a key is equal to another or inside it. */
static inline int pm_key_within(const uint8_t *key, int64_t length, const uint8_t *outer, int64_t outer_length)
{
    if (outer_length <= 0 || outer_length > length || memcmp(key, outer, (size_t)outer_length) != 0)
        return outer_length == 0;
    return outer_length == length || key[outer_length] == 1;
}

static int pm_end_spelling(pm_merge *merge)
{
    if (merge->count == 0)
        return 0;
    const uint8_t *key = merge->spelled.data;
    const uint8_t *end = (const uint8_t *)memchr(key, 0, (size_t)merge->spelled.size);
    if (end == NULL || end - key > merge->spelled.size - 2)
        return PM_MERGE_DAMAGED;
    int64_t key_length = end - key, count = merge->count;
    int64_t number_count = count < merge->first ? count : merge->first;
    int within = pm_key_within(key, key_length, merge->outer.data, merge->outer_length);
    int status = 0;
    merge->count = 0;
    if (merge->tree != NULL) {
        int64_t spelled = merge->spelled.size - key_length - 2;
        if (pm_tree_add(merge->tree, key, key_length, spelled > 0 ? end + 1 : key, spelled > 0 ? spelled : key_length) < 0)
            return PM_MERGE_NO_MEMORY;
    }
    if (within && merge->pending) {
        merge->pending = 0;
        status = pm_let_through(merge, &merge->outer, merge->outer_length, 1, &merge->pending_number,
                                merge->first > 0);
    }
    if (status == 0 && (within || count > 1))
        status = pm_let_through(merge, &merge->spelled, key_length, count, merge->numbers, number_count);
    if (!within) {
        pm_bytes spelled = merge->spelled;
        merge->spelled = merge->outer;
        merge->outer = spelled;
        merge->outer_length = key_length;
        merge->pending = count == 1;
        merge->pending_number = merge->numbers[0];
    }
    return status;
}

int64_t pm_merge_step(pm_merge *merge, int64_t most)
{
    merge->texts.size = merge->numbers_found.size = merge->found_count = 0;
    int status;
    for (;;) {
        if (merge->hungry_count > 0)
            return merge->hungry[merge->hungry_count - 1];
        if (merge->heap_count == 0) {
            status = pm_end_spelling(merge);
            return status < 0 ? status : PM_MERGED;
        }
        if (merge->found_count >= most)
            return PM_ENOUGH;
        int64_t number = merge->heap[0];
        pm_run *run = &merge->runs[number];
        int64_t size = run->length - PM_NUMBER_SIZE;
        if (merge->count == 0 || size != merge->spelled.size ||
            memcmp(run->record, merge->spelled.data, (size_t)size) != 0) {
            status = pm_end_spelling(merge);
            if (status < 0)
                return status;
            merge->spelled.size = 0;
            if (pm_append(&merge->spelled, run->record, size) < 0)
                return PM_MERGE_NO_MEMORY;
        }
        /* There is always room for one number, that of the pending path. */
        if (merge->count < merge->first || merge->count == 0) {
            if (pm_reserve_items(&merge->numbers, &merge->numbers_room, merge->count + 1, sizeof(uint64_t)) < 0)
                return PM_MERGE_NO_MEMORY;
            merge->numbers[merge->count] = pm_big_endian(run->record + size);
        }
        merge->count++;
        status = pm_run_next(run);
        if (status < 0)
            return status;
        if (status == 0) {
            merge->hungry[merge->hungry_count++] = number;
            number = merge->heap[--merge->heap_count];
        }
        if (merge->heap_count > 0)
            pm_run_heap_sink(merge, merge->heap, merge->heap_count, number);
    }
}
