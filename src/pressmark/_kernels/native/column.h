/* Packed columns of byte strings, and the loop that runs a kernel over one.
 *
 * A column is one contiguous buffer and count + 1 int64 offsets, as Arrow's large_binary. Nothing here needs the GIL.
 */
#ifndef PRESSMARK_COLUMN_H
#define PRESSMARK_COLUMN_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "tables.h"

#define PM_NO_MEMORY (-1)

typedef struct {
    uint8_t *data;
    int64_t size;
    int64_t capacity;
} pm_bytes;

typedef struct {
    pm_bytes bytes;
    int64_t *offsets; /* count + 1; NULL only in a column that was never made */
    int64_t count;
} pm_column;

typedef struct {
    int64_t index;
    int64_t position;
    int32_t code;
} pm_fault;

typedef struct {
    pm_fault *list;
    int64_t count;
    int64_t capacity;
} pm_faults;

/* What a kernel works with besides its item: where results go, buffers to build them in (kept between items, so that a
 * batch allocates a handful of times), and where it says which byte was wrong. */
typedef struct {
    pm_bytes *out;
    pm_bytes scratch[2];
    int64_t position;
} pm_work;

/* Appends the result for item[0 .. length) to work->out and returns 0, or returns a fault's code with work->position set;
 * what it had appended by then is dropped. PM_NO_MEMORY stops the batch. */
typedef int (*pm_map_item)(const void *parameters, const uint8_t *item, int64_t length, pm_work *work);

#define PM_LEAST_ROOM 16

/* From this size on a buffer asks for large pages: below it there would be few whole ones in it. */
#define PM_LARGE_BUFFER (INT64_C(4) << 20)

/* A column of a million items is written once from end to end, and faulting its pages in takes longer than the mapping:
 * pages of 2 MiB instead of 4 KiB halve the whole. Advice only; elsewhere it does nothing. */
static inline void pm_prefer_large_pages(void *memory, int64_t size)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (size >= PM_LARGE_BUFFER) {
        uintptr_t page = (uintptr_t)2 << 20;
        uintptr_t start = ((uintptr_t)memory + page - 1) & ~(page - 1);
        uintptr_t end = ((uintptr_t)memory + (uintptr_t)size) & ~(page - 1);
        if (start < end)
            (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
    }
#else
    (void)memory;
    (void)size;
#endif
}

/* Gives an array twice its room, or its first; NULL where memory is short, and then it is as it was. */
static inline void *pm_doubled(void *array, int64_t *room, int64_t first, size_t size)
{
    const int64_t more = *room ? 2 * *room : first;
    void *doubled = realloc(array, (size_t)more * size);
    if (doubled != NULL)
        *room = more;
    return doubled;
}

/* Makes room for `extra` more bytes: growth by half keeps the copies linear. Afterwards there is an address even where
 * nothing was asked for, because an offset to NULL is undefined, 0 too. */
static inline int pm_reserve(pm_bytes *bytes, int64_t extra)
{
    int64_t needed = bytes->size + extra;
    if (needed <= bytes->capacity && bytes->data != NULL)
        return 0;
    int64_t capacity = bytes->capacity + bytes->capacity / 2;
    if (capacity < needed)
        capacity = needed;
    if (capacity < PM_LEAST_ROOM)
        capacity = PM_LEAST_ROOM;
    uint8_t *data = (uint8_t *)realloc(bytes->data, (size_t)capacity);
    if (data == NULL)
        return PM_NO_MEMORY;
    pm_prefer_large_pages(data, capacity);
    bytes->data = data;
    bytes->capacity = capacity;
    return 0;
}

static inline int pm_append(pm_bytes *bytes, const void *source, int64_t size)
{
    if (pm_reserve(bytes, size) < 0)
        return PM_NO_MEMORY;
    /* memcpy from NULL is undefined even for nothing, and an empty string may have no address. */
    if (size > 0)
        memcpy(bytes->data + bytes->size, source, (size_t)size);
    bytes->size += size;
    return 0;
}

static inline void pm_free_bytes(pm_bytes *bytes)
{
    free(bytes->data);
    memset(bytes, 0, sizeof *bytes);
}

static inline void pm_free_column(pm_column *column)
{
    pm_free_bytes(&column->bytes);
    free(column->offsets);
    column->offsets = NULL;
    column->count = 0;
}

/* Prepares an empty column for `count` items of about `size` bytes together. */
static inline int pm_new_column(pm_column *column, int64_t count, int64_t size)
{
    memset(column, 0, sizeof *column);
    column->offsets = (int64_t *)malloc((size_t)(count + 1) * sizeof(int64_t));
    if (column->offsets == NULL)
        return PM_NO_MEMORY;
    pm_prefer_large_pages(column->offsets, (count + 1) * (int64_t)sizeof(int64_t));
    column->offsets[0] = 0;
    /* Never an address of NULL, so that memcpy and memchr may be called for nothing. */
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

/* Makes a column of the items from `start` to `stop` of another. */
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

static inline int pm_add_fault(pm_faults *faults, int64_t index, int code, int64_t position)
{
    if (faults->count == faults->capacity) {
        pm_fault *list = (pm_fault *)pm_doubled(faults->list, &faults->capacity, 16, sizeof(pm_fault));
        if (list == NULL)
            return PM_NO_MEMORY;
        faults->list = list;
    }
    pm_fault *fault = &faults->list[faults->count++];
    fault->index = index;
    fault->position = position;
    fault->code = code;
    return 0;
}

/* Maps every item of `in`; an item without a result is empty in `out` and has a fault. Returns 0 or PM_NO_MEMORY. */
static inline int pm_map_column(pm_map_item map, const void *parameters, int64_t limit, const pm_column *in,
                                pm_column *out, pm_faults *faults)
{
    /* Separators add half as much again to most identifiers, escapes a little. Too much costs nothing, for memory is not
     * there until it is touched; too little costs a copy into pages that must all be touched again. */
    int64_t size = in->count > 0 ? in->offsets[in->count] - in->offsets[0] : 0;
    if (pm_new_column(out, in->count, 2 * size + 256) < 0)
        return PM_NO_MEMORY;
    pm_work work;
    memset(&work, 0, sizeof work);
    work.out = &out->bytes;
    int status = 0;
    for (int64_t index = 0; index < in->count && status >= 0; index++) {
        const uint8_t *item = in->bytes.data + in->offsets[index];
        int64_t length = in->offsets[index + 1] - in->offsets[index];
        int64_t before = out->bytes.size;
        work.position = -1;
        status = length > limit ? PM_FAULT_TOO_LONG : map(parameters, item, length, &work);
        if (status > 0) {
            out->bytes.size = before;
            status = pm_add_fault(faults, index, status, work.position);
        }
        pm_end_item(out);
    }
    pm_free_bytes(&work.scratch[0]);
    pm_free_bytes(&work.scratch[1]);
    return status;
}

/* The offset of the first byte in which two strings differ, or the shorter length. */
static inline int64_t pm_first_difference(const uint8_t *one, int64_t one_length, const uint8_t *other,
                                          int64_t other_length)
{
    int64_t shorter = one_length < other_length ? one_length : other_length;
    int64_t position = 0;
    while (position < shorter && one[position] == other[position])
        position++;
    return position;
}

/* Accepts identifiers[i] only where again[i] equals paths[i]: the strict half of an inverse. `faults` holds those of the
 * decoding, in order; the result is a new list, in order. */
static inline int pm_check_inverse(const pm_column *paths, const pm_column *identifiers, const pm_column *again,
                                   const pm_faults *decoding, pm_column *out, pm_faults *faults)
{
    if (pm_new_column(out, identifiers->count, identifiers->bytes.size) < 0)
        return PM_NO_MEMORY;
    int64_t next = 0;
    for (int64_t index = 0; index < paths->count; index++) {
        const uint8_t *path = paths->bytes.data + paths->offsets[index];
        const uint8_t *canonical = again->bytes.data + again->offsets[index];
        int64_t path_length = paths->offsets[index + 1] - paths->offsets[index];
        int64_t canonical_length = again->offsets[index + 1] - again->offsets[index];
        int status = 0;
        if (next < decoding->count && decoding->list[next].index == index) {
            status = pm_add_fault(faults, index, decoding->list[next].code, decoding->list[next].position);
            next++;
        } else if (path_length != canonical_length || memcmp(path, canonical, (size_t)path_length) != 0) {
            status = pm_add_fault(faults, index, PM_FAULT_NOT_CANONICAL,
                                  pm_first_difference(path, path_length, canonical, canonical_length));
        } else {
            int64_t start = identifiers->offsets[index];
            status = pm_append(&out->bytes, identifiers->bytes.data + start, identifiers->offsets[index + 1] - start);
        }
        if (status < 0)
            return PM_NO_MEMORY;
        pm_end_item(out);
    }
    return 0;
}

#endif
