/* Paths in the order of their folded keys: records for runs, and the merge that lets through what may clash. The readable
 * twin says what a record is, and how keys and spellings are written in it. */
#ifndef PRESSMARK_PATH_SORT_H
#define PRESSMARK_PATH_SORT_H

#include "column.h"
#include "path_tree.h"
#include "text.h"

#if defined(__GNUC__)
#define PM_PREFETCH(place) __builtin_prefetch(place)
#else
#define PM_PREFETCH(place) ((void)(place))
#endif

/* A record behind its length: u32 in little-endian order on every machine, then the record, which ends in a NUL and the
 * number. */
enum { PM_LENGTH_SIZE = 4, PM_NUMBER_SIZE = 8, PM_LEAST_RECORD = 10 };

/* Instead of a run's number. */
enum { PM_MERGED = -1, PM_ENOUGH = -2, PM_MERGE_NO_MEMORY = -3, PM_MERGE_DAMAGED = -4 };

/* So many entries are sorted by insertion; of so many and more, nine are looked at for a pivot. */
enum { PM_FEW_ENTRIES = 12, PM_MANY_ENTRIES = 400 };

/* How far ahead records are fetched that lie anywhere in memory. */
enum { PM_AHEAD = 8 };

static inline uint32_t pm_record_length(const uint8_t *place)
{
    return (uint32_t)place[0] | (uint32_t)place[1] << 8 | (uint32_t)place[2] << 16 | (uint32_t)place[3] << 24;
}

static inline void pm_put_record_length(uint8_t *place, uint32_t length)
{
    for (int octet = 0; octet < PM_LENGTH_SIZE; octet++)
        place[octet] = (uint8_t)(length >> 8 * octet);
}

static inline uint64_t pm_big_endian(const uint8_t *octets)
{
    return (uint64_t)octets[0] << 56 | (uint64_t)octets[1] << 48 | (uint64_t)octets[2] << 40 |
           (uint64_t)octets[3] << 32 | (uint64_t)octets[4] << 24 | (uint64_t)octets[5] << 16 |
           (uint64_t)octets[6] << 8 | (uint64_t)octets[7];
}

/* Writes a path without NULs, the slash below all other octets, and returns where it ends; `out` has room for twice its
 * length. `*upper` becomes something else than 0 where `fold` made a letter small. */
static inline uint8_t *pm_write_path(const uint8_t *path, int64_t length, int fold, uint8_t *upper, uint8_t *out)
{
    uint8_t changed = 0, rare = 0;
    for (int64_t position = 0; position < length; position++) {
        uint8_t octet = path[position];
        uint8_t small = fold ? (uint8_t)(octet + ((uint8_t)(octet - 'A') < 26 ? 32 : 0)) : octet;
        changed |= small ^ octet;
        rare |= small < 2;
        out[position] = (uint8_t)(small == '/' ? 1 : small + (small < '/'));
    }
    *upper = changed;
    if (!rare)
        return out + length;
    for (int64_t position = 0; position < length; position++) {
        uint8_t octet = path[position];
        uint8_t small = fold ? (uint8_t)(octet + ((uint8_t)(octet - 'A') < 26 ? 32 : 0)) : octet;
        if (small < 2) {
            *out++ = 2;
            *out++ = (uint8_t)(2 + small);
        } else {
            *out++ = (uint8_t)(small == '/' ? 1 : small + (small < '/'));
        }
    }
    return out;
}

/* Appends what was written. */
static inline int pm_read_path(const uint8_t *written, int64_t length, pm_bytes *out)
{
    if (pm_reserve(out, length) < 0)
        return PM_NO_MEMORY;
    uint8_t *end = out->data + out->size;
    for (int64_t position = 0; position < length; position++) {
        uint8_t octet = written[position];
        if (octet == 2 && position + 1 < length)
            *end++ = (uint8_t)(written[++position] - 2);
        else
            *end++ = (uint8_t)(octet == 1 ? '/' : octet - (octet <= '/'));
    }
    out->size = end - out->data;
    return 0;
}

/* --- sorting ----------------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t cache; /* eight octets of the record, from the depth on to which those beside it are equal */
    uint64_t place; /* of its length, in the records */
} pm_entry;

typedef struct {
    pm_bytes records;
    pm_entry *entries;
    int64_t count;
    int64_t room;
    int64_t taken;
} pm_sorter;

static void pm_sorter_free(pm_sorter *sorter)
{
    pm_free_bytes(&sorter->records);
    free(sorter->entries);
    memset(sorter, 0, sizeof *sorter);
}

/* The eight octets of a record from `depth` on, NULs where it has ended. */
static inline uint64_t pm_cache(const uint8_t *place, int64_t depth)
{
    int64_t left = (int64_t)pm_record_length(place) - depth;
    const uint8_t *octets = place + PM_LENGTH_SIZE + depth;
    if (left >= 8)
        return pm_big_endian(octets);
    uint8_t few[8] = {0};
    if (left > 0)
        memcpy(few, octets, (size_t)left);
    return pm_big_endian(few);
}

/* Whether one record comes before another; both are equal up to `depth`. */
static inline int pm_entry_before(const uint8_t *records, const pm_entry *one, const pm_entry *other, int64_t depth)
{
    if (one->cache != other->cache)
        return one->cache < other->cache;
    const uint8_t *left = records + one->place, *right = records + other->place;
    int64_t left_size = (int64_t)pm_record_length(left) - depth - 8;
    int64_t right_size = (int64_t)pm_record_length(right) - depth - 8;
    if (left_size <= 0 || right_size <= 0)
        return left_size < right_size;
    int order = memcmp(left + PM_LENGTH_SIZE + depth + 8, right + PM_LENGTH_SIZE + depth + 8,
                       (size_t)(left_size < right_size ? left_size : right_size));
    return order != 0 ? order < 0 : left_size < right_size;
}

static inline uint64_t pm_median(uint64_t one, uint64_t two, uint64_t three)
{
    uint64_t low = one < two ? one : two, high = one < two ? two : one;
    return three < low ? low : three > high ? high : three;
}

static uint64_t pm_pivot(const pm_entry *entries, int64_t count)
{
    const pm_entry *middle = entries + count / 2, *last = entries + count - 1;
    if (count < PM_MANY_ENTRIES)
        return pm_median(entries->cache, middle->cache, last->cache);
    int64_t step = count / 8;
    return pm_median(pm_median(entries[0].cache, entries[step].cache, entries[2 * step].cache),
                     pm_median(middle[-step].cache, middle->cache, middle[step].cache),
                     pm_median(last[-2 * step].cache, last[-step].cache, last->cache));
}

/* Sorts entries whose records are equal up to `depth`, which their caches begin at: quicksort by eight octets at a time
 * (caching multikey quicksort). Whoever chooses the paths can make it slow, but not wrong: the stack holds at most one
 * call for each halving. */
static void pm_sort_entries(const uint8_t *records, pm_entry *entries, int64_t count, int64_t depth)
{
    while (count > PM_FEW_ENTRIES) {
        uint64_t pivot = pm_pivot(entries, count);
        int64_t low = 0, next = 0, high = count;
        while (next < high) {
            pm_entry entry = entries[next];
            if (entry.cache < pivot) {
                entries[next++] = entries[low];
                entries[low++] = entry;
            } else if (entry.cache > pivot) {
                entries[next] = entries[--high];
                entries[high] = entry;
            } else {
                next++;
            }
        }
        /* Three parts: the longest is the next round's, the others are calls. */
        int64_t below = low, equal = high - low, above = count - high;
        pm_entry *same = entries + low, *over = entries + high;
        int ended = depth + 8 >= (int64_t)pm_record_length(records + same->place);
        if (!ended && equal > 1)
            for (int64_t index = 0; index < equal; index++)
                same[index].cache = pm_cache(records + same[index].place, depth + 8);
        else
            equal = 0; /* one record, or one several times */
        if (below >= equal && below >= above) {
            pm_sort_entries(records, same, equal, depth + 8);
            pm_sort_entries(records, over, above, depth);
            count = below;
        } else if (above >= equal) {
            pm_sort_entries(records, entries, below, depth);
            pm_sort_entries(records, same, equal, depth + 8);
            entries = over;
            count = above;
        } else {
            pm_sort_entries(records, entries, below, depth);
            pm_sort_entries(records, over, above, depth);
            entries = same;
            count = equal;
            depth += 8;
        }
    }
    for (int64_t index = 1; index < count; index++) {
        pm_entry entry = entries[index];
        int64_t place = index;
        for (; place > 0 && pm_entry_before(records, &entry, &entries[place - 1], depth); place--)
            entries[place] = entries[place - 1];
        entries[place] = entry;
    }
}

static void pm_sorter_sort(pm_sorter *sorter)
{
    sorter->taken = 0;
    pm_sort_entries(sorter->records.data, sorter->entries, sorter->count, 0);
}

/* Adds the record of one path; `key` is NULL for a path that is ASCII. */
static int pm_sorter_add(pm_sorter *sorter, const uint8_t *path, int64_t length, const uint8_t *key,
                         int64_t key_length, uint64_t number)
{
    int64_t most = PM_LENGTH_SIZE + 2 * (key == NULL ? length : key_length) + 1 + 2 * length + 1 + PM_NUMBER_SIZE;
    if (most > UINT32_MAX || pm_reserve(&sorter->records, most) < 0)
        return PM_NO_MEMORY;
    if (sorter->count == sorter->room) {
        int64_t room = sorter->room ? sorter->room + sorter->room / 2 : 1024;
        pm_entry *entries = (pm_entry *)realloc(sorter->entries, (size_t)room * sizeof(pm_entry));
        if (entries == NULL)
            return PM_NO_MEMORY;
        sorter->entries = entries;
        sorter->room = room;
    }
    uint8_t *place = sorter->records.data + sorter->records.size;
    uint8_t *record = place + PM_LENGTH_SIZE, *end;
    uint8_t spelled;
    if (key == NULL) {
        end = pm_write_path(path, length, 1, &spelled, record);
    } else {
        end = pm_write_path(key, key_length, 0, &spelled, record);
        spelled = key_length != length || memcmp(key, path, (size_t)length) != 0;
    }
    *end++ = 0;
    if (spelled)
        end = pm_write_path(path, length, 0, &spelled, end);
    *end++ = 0;
    for (int shift = 56; shift >= 0; shift -= 8)
        *end++ = (uint8_t)(number >> shift);
    pm_put_record_length(place, (uint32_t)(end - record));
    pm_entry *entry = &sorter->entries[sorter->count++];
    entry->cache = pm_big_endian(record);
    entry->place = (uint64_t)sorter->records.size;
    sorter->records.size = end - sorter->records.data;
    return 0;
}

/* Adds the paths of a column, numbered on from `number`; of those beyond ASCII the keys are in `folded`, in order. The
 * ascending indices in `skip` end with -1. Returns 0 or PM_NO_MEMORY. */
static int pm_sorter_add_column(pm_sorter *sorter, const pm_column *paths, const pm_column *folded, uint64_t number,
                                const int64_t *skip)
{
    int64_t other = 0;
    for (int64_t index = 0; index < paths->count; index++) {
        const uint8_t *path = paths->bytes.data + paths->offsets[index], *key = NULL;
        int64_t length = paths->offsets[index + 1] - paths->offsets[index], key_length = 0;
        if (!pm_is_ascii(path, length) && other < folded->count) {
            key = folded->bytes.data + folded->offsets[other];
            key_length = folded->offsets[other + 1] - folded->offsets[other];
            other++;
        }
        if (index == *skip)
            skip++;
        else if (pm_sorter_add(sorter, path, length, key, key_length, number + (uint64_t)index) < 0)
            return PM_NO_MEMORY;
    }
    return 0;
}

/* How many records to take for about `size` octets, and how many octets they are. */
static int64_t pm_sorter_measure(const pm_sorter *sorter, int64_t size, int64_t *octets)
{
    const uint8_t *records = sorter->records.data;
    int64_t index = sorter->taken, total = 0;
    for (; index < sorter->count && total < size; index++) {
        if (index + PM_AHEAD < sorter->count)
            PM_PREFETCH(records + sorter->entries[index + PM_AHEAD].place);
        total += PM_LENGTH_SIZE + pm_record_length(records + sorter->entries[index].place);
    }
    *octets = total;
    return index - sorter->taken;
}

/* Takes so many records; the sorter is empty after the last, and keeps its memory for the next ones. */
static void pm_sorter_take(pm_sorter *sorter, int64_t count, uint8_t *out)
{
    const uint8_t *records = sorter->records.data;
    for (int64_t index = sorter->taken; index < sorter->taken + count; index++) {
        const uint8_t *place = records + sorter->entries[index].place;
        size_t size = PM_LENGTH_SIZE + (size_t)pm_record_length(place);
        memcpy(out, place, size);
        out += size;
    }
    sorter->taken += count;
    if (sorter->taken == sorter->count)
        sorter->taken = sorter->count = sorter->records.size = 0;
}

/* --- merging ----------------------------------------------------------------------------------------------------- */

typedef struct {
    const uint8_t *block; /* borrowed */
    int64_t size;
    int64_t next; /* the record behind the present one */
    const uint8_t *record;
    int64_t length;
    uint64_t cache;
} pm_run;

/* What is let through: where its texts and numbers are in those of the merge. */
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
    int64_t *heap; /* runs, the one with the least record on top */
    int64_t heap_count;
    int64_t *hungry; /* runs that need a block */
    int64_t hungry_count;
    int64_t first;
    pm_bytes spelled; /* the records that are gathered, without their numbers */
    int64_t count;
    uint64_t *numbers; /* the first of them */
    pm_bytes outer; /* as above: the last path that is inside no other */
    int64_t outer_length; /* of its key; -1 before there is one */
    int pending; /* whether that path was not let through yet; it is the only one of its key so far */
    uint64_t pending_number;
    pm_bytes texts;
    pm_bytes numbers_found; /* uint64_t */
    pm_spelling *found;
    int64_t found_count;
    int64_t found_room;
    pm_tree *tree; /* borrowed; that all paths pass on their way, or NULL */
} pm_merge;

static void pm_merge_free(pm_merge *merge)
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

static int pm_merge_init(pm_merge *merge, int64_t runs, int64_t first)
{
    merge->runs = (pm_run *)calloc((size_t)runs + 1, sizeof(pm_run));
    merge->heap = (int64_t *)calloc((size_t)runs + 1, sizeof(int64_t));
    merge->hungry = (int64_t *)calloc((size_t)runs + 1, sizeof(int64_t));
    merge->numbers = (uint64_t *)calloc((size_t)first + 1, sizeof(uint64_t));
    merge->first = first;
    merge->outer_length = -1;
    if (merge->runs == NULL || merge->heap == NULL || merge->hungry == NULL || merge->numbers == NULL ||
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

/* Goes on to the next record of a block: 1, or 0 at its end, or PM_MERGE_DAMAGED. */
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

/* Lets the run at `place` of the heap sink to where it belongs. */
static inline void pm_heap_sink(pm_merge *merge, int64_t place)
{
    int64_t *heap = merge->heap, run = heap[place];
    for (;;) {
        int64_t child = 2 * place + 1;
        if (child >= merge->heap_count)
            break;
        if (child + 1 < merge->heap_count &&
            pm_run_before(&merge->runs[heap[child + 1]], &merge->runs[heap[child]]))
            child++;
        if (!pm_run_before(&merge->runs[heap[child]], &merge->runs[run]))
            break;
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = run;
}

/* Gives a hungry run its next block, which must live until it is hungry again. Returns 0, or PM_MERGE_DAMAGED. */
static int pm_merge_feed(pm_merge *merge, int64_t number, const uint8_t *block, int64_t size)
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
    int64_t *heap = merge->heap;
    place = merge->heap_count++;
    for (; place > 0 && pm_run_before(run, &merge->runs[heap[(place - 1) / 2]]); place = (place - 1) / 2)
        heap[place] = heap[(place - 1) / 2];
    heap[place] = number;
    return 0;
}

/* Lets a spelling through: record is its key, a NUL, how it is spelled if need be, a NUL. */
static int pm_let_through(pm_merge *merge, const pm_bytes *record, int64_t key_length, int64_t count,
                          const uint64_t *numbers, int64_t number_count)
{
    if (merge->found_count == merge->found_room) {
        pm_spelling *found = (pm_spelling *)pm_doubled(merge->found, &merge->found_room, 64, sizeof(pm_spelling));
        if (found == NULL)
            return PM_MERGE_NO_MEMORY;
        merge->found = found;
    }
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

/* Whether a key is inside another, or is that one. */
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

/* Goes on until a run is hungry, there are `most` spellings, or all is merged. Returns the run, or a PM_MERGE… above. */
static int64_t pm_merge_step(pm_merge *merge, int64_t most)
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
        /* One place is always there, for the number of what is pending. */
        if (merge->count < merge->first || merge->count == 0)
            merge->numbers[merge->count] = pm_big_endian(run->record + size);
        merge->count++;
        if (merge->tree != NULL)
            pm_tree_member(merge->tree, pm_big_endian(run->record + size));
        status = pm_run_next(run);
        if (status < 0)
            return status;
        if (status == 0) {
            merge->hungry[merge->hungry_count++] = number;
            merge->heap[0] = merge->heap[--merge->heap_count];
        }
        if (merge->heap_count > 0)
            pm_heap_sink(merge, 0);
    }
}

/* --- names that systems refuse ----------------------------------------------------------------------------------- */

enum { PM_REFUSED = 1, PM_NOT_LAST = 2, PM_ADVISED_FIRST = 4 };

/* Whether a segment begins as the name of a device: CON, PRN, AUX, NUL, COM or LPT. */
static inline int pm_begins_as_device(const uint8_t *segment, int64_t length)
{
    if (length < 3)
        return 0;
    static const char names[6][4] = {"con", "prn", "aux", "nul", "com", "lpt"};
    for (int name = 0; name < 6; name++) {
        int position = 0;
        while (position < 3 && (segment[position] | 0x20) == names[name][position] && segment[position] >= 'A')
            position++;
        if (position == 3)
            return 1;
    }
    return 0;
}

/* Whether a path has to be looked at; `*advised` is counted up where a segment begins as it had better not. */
static int pm_is_questionable(const uint8_t *path, int64_t length, const uint8_t *classes, int64_t longest_segment,
                              int64_t longest_path, int devices, int64_t *advised)
{
    int bad = length > longest_path, first = 0;
    uint8_t seen = 0;
    for (int64_t start = 0; start <= length;) {
        int64_t end = start;
        for (; end < length && path[end] != '/'; end++)
            seen |= classes[path[end]];
        const uint8_t *segment = path + start;
        int64_t size = end - start;
        if (size == 0 || size > longest_segment || (segment[0] == '.' && (size == 1 || (size == 2 && segment[1] == '.')))) {
            bad = 1;
        }
        if (size > 0) {
            bad |= classes[segment[size - 1]] & PM_NOT_LAST;
            first |= classes[segment[0]] & PM_ADVISED_FIRST;
            bad |= devices && pm_begins_as_device(segment, size);
        }
        start = end + 1;
    }
    *advised += first != 0;
    return bad || (seen & PM_REFUSED);
}

/* Writes the indices of the paths to be looked at into `found`, which has room for all, and returns how many they are. */
static int64_t pm_questionable(const pm_column *paths, const uint8_t *classes, int64_t longest_segment,
                               int64_t longest_path, int devices, int64_t *found, int64_t *advised)
{
    int64_t count = 0;
    for (int64_t index = 0; index < paths->count; index++) {
        const uint8_t *path = paths->bytes.data + paths->offsets[index];
        int64_t length = paths->offsets[index + 1] - paths->offsets[index];
        if (pm_is_questionable(path, length, classes, longest_segment, longest_path, devices, advised))
            found[count++] = index;
    }
    return count;
}

#endif
