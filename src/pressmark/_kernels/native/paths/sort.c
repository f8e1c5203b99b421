#include "sort.h"

#include "../shared/text.h"

#if defined(__GNUC__)
#define PM_PREFETCH(place) __builtin_prefetch(place)
#else
#define PM_PREFETCH(place) ((void)(place))
#endif

/* Insertion sort up to the first number of entries; from the second on, the pivot is chosen from nine entries. */
enum { PM_FEW_ENTRIES = 12, PM_MANY_ENTRIES = 400 };

/* How many records to prefetch, since they are anywhere in memory. */
enum { PM_AHEAD = 8 };

void pm_sorter_free(pm_sorter *sorter)
{
    pm_free_bytes(&sorter->records);
    free(sorter->entries);
    memset(sorter, 0, sizeof *sorter);
}

/* Eight bytes of a record from `depth`, with NULs after its end. */
static uint64_t pm_cache(const uint8_t *place, int64_t depth)
{
    int64_t left = (int64_t)pm_record_length(place) - depth;
    const uint8_t *bytes = place + PM_LENGTH_SIZE + depth;
    if (left >= 8)
        return pm_big_endian(bytes);
    uint8_t few[8] = {0};
    if (left > 0)
        memcpy(few, bytes, (size_t)left);
    return pm_big_endian(few);
}

/* Whether one record sorts before another; both are equal up to `depth`. */
static int pm_entry_before(const uint8_t *records, const pm_entry *one, const pm_entry *other, int64_t depth)
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

static uint64_t pm_median(uint64_t one, uint64_t two, uint64_t three)
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

/* Sorts entries whose records are equal up to `depth`, where their caches start: caching multikey quicksort, eight bytes at a
 * time. Chosen paths can make it slow but not wrong: the stack has at most one call for each halving. */
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
        /* Three parts: the loop continues with the longest one and calls itself for the others. */
        int64_t below = low, equal = high - low, above = count - high;
        pm_entry *same = entries + low, *over = entries + high;
        int ended = depth + 8 >= (int64_t)pm_record_length(records + same->place);
        if (!ended && equal > 1)
            for (int64_t index = 0; index < equal; index++)
                same[index].cache = pm_cache(records + same[index].place, depth + 8);
        else
            equal = 0; /* a single record, or copies of one */
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

void pm_sorter_sort(pm_sorter *sorter)
{
    sorter->taken = 0;
    pm_sort_entries(sorter->records.data, sorter->entries, sorter->count, 0);
}

/* Adds the record of one path; `key` is NULL if the path is ASCII. */
static int pm_sorter_add(pm_sorter *sorter, const uint8_t *path, int64_t length, const uint8_t *key,
                         int64_t key_length, uint64_t number)
{
    int64_t most = PM_LENGTH_SIZE + 2 * (key == NULL ? length : key_length) + 1 + 2 * length + 1 + PM_NUMBER_SIZE;
    if (most > UINT32_MAX || pm_reserve(&sorter->records, most) < 0)
        return PM_NO_MEMORY;
    if (pm_reserve_items(&sorter->entries, &sorter->room, sorter->count + 1, sizeof(pm_entry)) < 0)
        return PM_NO_MEMORY;
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

int pm_sorter_add_column(pm_sorter *sorter, const pm_column *paths, const pm_column *folded, uint64_t number,
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

int64_t pm_sorter_measure(const pm_sorter *sorter, int64_t size, int64_t *length)
{
    const uint8_t *records = sorter->records.data;
    int64_t index = sorter->taken, total = 0;
    for (; index < sorter->count && total < size; index++) {
        if (index + PM_AHEAD < sorter->count)
            PM_PREFETCH(records + sorter->entries[index + PM_AHEAD].place);
        total += PM_LENGTH_SIZE + pm_record_length(records + sorter->entries[index].place);
    }
    *length = total;
    return index - sorter->taken;
}

void pm_sorter_take(pm_sorter *sorter, int64_t count, uint8_t *out)
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
