/* Columns of strings through the Arrow C data interface, in and out.
 *
 * In: a foreign array is moved here, checked once (pm_open_source), and read part by part (pm_gather), borrowing its
 * bytes wherever they already lie as a pm_column wants them. Out: every export shares a chunk, counting references, so
 * that release callbacks need neither the GIL nor an order. Everything here runs without the GIL.
 *
 * https://arrow.apache.org/docs/format/CDataInterface.html and .../CStreamInterface.html
 */
#ifndef PRESSMARK_ARROW_H
#define PRESSMARK_ARROW_H

#include <errno.h>

#include "text.h"

/* The structures are part of the specification, guards included: "copied into any project's source code". */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};
#endif

/* --- counting ------------------------------------------------------------------------------------------------- */

#if defined(_MSC_VER)
#include <intrin.h>
static inline int64_t pm_add_atomically(int64_t *number, int64_t change)
{
    return _InterlockedExchangeAdd64((volatile __int64 *)number, change) + change;
}
#else
static inline int64_t pm_add_atomically(int64_t *number, int64_t change)
{
    return __atomic_add_fetch(number, change, __ATOMIC_ACQ_REL);
}
#endif

/* Structures given out and not yet released. */
static int64_t pm_exports;

/* A foreign array, released when nothing borrows from it any more. */
typedef struct {
    int64_t references;
    struct ArrowArray array;
} pm_borrowed;

static inline void pm_drop_borrowed(pm_borrowed *borrowed)
{
    if (borrowed == NULL || pm_add_atomically(&borrowed->references, -1) > 0)
        return;
    if (borrowed->array.release != NULL)
        borrowed->array.release(&borrowed->array);
    free(borrowed);
}

/* A run of items that no longer changes: what kernels read, what they make, what is exported. */
typedef struct {
    int64_t references;
    pm_column column;      /* bytes.size counts the items' bytes alone; offsets[0] need not be 0 */
    uint8_t *own_data;     /* what to free; NULL where the column borrows */
    int64_t *own_offsets;
    uint8_t *validity;     /* a bit an item, from bit 0; NULL where there are no nulls */
    int64_t null_count;
    pm_borrowed *borrowed; /* what keeps borrowed bytes alive, or NULL */
} pm_chunk;

static inline pm_chunk *pm_new_chunk(void)
{
    pm_chunk *chunk = (pm_chunk *)calloc(1, sizeof(pm_chunk));
    if (chunk != NULL)
        chunk->references = 1;
    return chunk;
}

static inline void pm_drop_chunk(pm_chunk *chunk)
{
    if (chunk == NULL || pm_add_atomically(&chunk->references, -1) > 0)
        return;
    free(chunk->own_data);
    free(chunk->own_offsets);
    free(chunk->validity);
    pm_drop_borrowed(chunk->borrowed);
    free(chunk);
}

/* --- bits ----------------------------------------------------------------------------------------------------- */

static inline int pm_bit(const uint8_t *bits, int64_t position)
{
    return bits[position >> 3] >> (position & 7) & 1;
}

static inline void pm_clear_bit(uint8_t *bits, int64_t position)
{
    bits[position >> 3] &= (uint8_t)~(1 << (position & 7));
}

static inline void pm_clear_tail(uint8_t *bits, int64_t count)
{
    if (count & 7)
        bits[count >> 3] &= (uint8_t)((1 << (count & 7)) - 1);
}

/* Copies `count` bits from bit `first` on to bit 0 on; the bits behind them become 0. */
static inline void pm_copy_bits(uint8_t *out, const uint8_t *bits, int64_t first, int64_t count)
{
    const uint8_t *from = bits + (first >> 3);
    int shift = (int)(first & 7);
    int64_t size = (count + 7) >> 3, there = (shift + count + 7) >> 3;
    if (shift == 0)
        memcpy(out, from, (size_t)size);
    else
        for (int64_t number = 0; number < size; number++)
            out[number] = (uint8_t)(from[number] >> shift | (number + 1 < there ? from[number + 1] << (8 - shift) : 0));
    pm_clear_tail(out, count);
}

/* The zeros among the first `count` bits, those behind them being 0. */
static inline int64_t pm_count_nulls(const uint8_t *bits, int64_t count)
{
    int64_t ones = 0;
    for (int64_t number = 0; number < (count + 7) >> 3; number++)
        for (unsigned octet = bits[number]; octet != 0; octet &= octet - 1)
            ones++;
    return count - ones;
}

/* A bitmap of `count` ones, or NULL. */
static inline uint8_t *pm_new_validity(int64_t count)
{
    size_t size = (size_t)((count + 7) >> 3);
    uint8_t *bits = (uint8_t *)malloc(size + 1);
    if (bits != NULL) {
        memset(bits, 0xFF, size + 1);
        pm_clear_tail(bits, count);
    }
    return bits;
}

/* --- foreign arrays ------------------------------------------------------------------------------------------- */

/* What can be wrong with a foreign array. arrow.pyx and the pure twin give these the same names. */
enum {
    PM_PROBLEM_NONE,
    PM_PROBLEM_RELEASED,
    PM_PROBLEM_LENGTH,       /* length, offset */
    PM_PROBLEM_NULL_COUNT,   /* null_count, length */
    PM_PROBLEM_BUFFERS,      /* n_buffers, expected */
    PM_PROBLEM_NO_BUFFERS,
    PM_PROBLEM_NO_VALIDITY,  /* null_count */
    PM_PROBLEM_CHILDREN,     /* n_children, expected */
    PM_PROBLEM_CHILD,        /* its number */
    PM_PROBLEM_SHORT_CHILD,  /* its length, the length needed */
    PM_PROBLEM_DICTIONARY,
    PM_PROBLEM_NO_BUFFER,    /* its number */
    PM_PROBLEM_OFFSETS,      /* the item */
    PM_PROBLEM_VIEW,         /* the item */
    PM_PROBLEM_INDEX         /* the item, its index */
};

/* In which array: that of the column itself, the struct around it, its dictionary. */
enum { PM_PART_COLUMN, PM_PART_STRUCT, PM_PART_DICTIONARY };

typedef struct {
    int code;
    int part;
    int64_t first;
    int64_t second;
} pm_problem;

/* Nothing real is longer; sums of two such numbers cannot overflow. */
#define PM_LONGEST (INT64_C(1) << 47)
/* Views hold strings up to this length themselves. */
#define PM_INLINE 12

/* Strings as they lie in a foreign array: 32-bit offsets, 64-bit offsets, or views, by the size of an entry. */
typedef struct {
    const uint8_t *validity; /* NULL: no nulls */
    int64_t first;           /* where in the buffers item 0 is */
    int64_t count;
    int entry;               /* 4, 8 or 16 */
    const uint8_t *entries;
    const uint8_t *data;     /* of offsets */
    const void **blocks;     /* of views */
    const uint8_t *block_sizes;
    int64_t block_count;
} pm_strings;

typedef struct {
    pm_borrowed *borrowed;
    int64_t count;
    const uint8_t *outer_validity; /* of the struct; NULL: no nulls */
    int64_t outer_first;
    int index;                     /* octets of a dictionary index, negative where signed; 0: no dictionary */
    const uint8_t *index_validity;
    const uint8_t *indices;
    int64_t indices_first;
    pm_strings strings;            /* of the column, or of its dictionary */
} pm_source;

/* What a column is made of, as its schema says. */
typedef struct {
    int64_t children; /* of the struct around it; -1: there is none */
    int64_t child;
    int entry;
    int index;
} pm_selection;

/* Foreign buffers should be aligned, and are not always: memcpy asks nothing and costs nothing. */
static inline int64_t pm_load_offset(const uint8_t *entries, int entry, int64_t position)
{
    if (entry == 4) {
        int32_t narrow;
        memcpy(&narrow, entries + 4 * position, 4);
        return narrow;
    }
    int64_t wide;
    memcpy(&wide, entries + 8 * position, 8);
    return wide;
}

static inline int64_t pm_load_index(const uint8_t *indices, int size, int64_t position)
{
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        int64_t i64;
    } value;
    int octets = size < 0 ? -size : size;
    memcpy(&value, indices + octets * position, (size_t)octets);
    switch (size) {
    case 1: return value.u8;
    case -1: return value.i8;
    case 2: return value.u16;
    case -2: return value.i16;
    case 4: return value.u32;
    case -4: return value.i32;
    /* An unsigned index beyond int64 becomes negative, which is as far out of range. */
    default: return value.i64;
    }
}

/* The string at `item`, which has been checked. */
static inline const uint8_t *pm_string_at(const pm_strings *strings, int64_t item, int64_t *length)
{
    int64_t position = strings->first + item;
    if (strings->entry != 16) {
        int64_t start = pm_load_offset(strings->entries, strings->entry, position);
        *length = pm_load_offset(strings->entries, strings->entry, position + 1) - start;
        return *length > 0 ? strings->data + start : (const uint8_t *)"";
    }
    const uint8_t *view = strings->entries + 16 * position;
    int32_t parts[4];
    memcpy(parts, view, 16);
    *length = parts[0];
    return parts[0] <= PM_INLINE ? view + 4 : (const uint8_t *)strings->blocks[parts[2]] + parts[3];
}

static inline int pm_view_is_good(const pm_strings *strings, int64_t item)
{
    int32_t parts[4];
    memcpy(parts, strings->entries + 16 * (strings->first + item), 16);
    if (parts[0] <= PM_INLINE)
        return parts[0] >= 0;
    if (parts[2] < 0 || parts[2] >= strings->block_count || parts[3] < 0 || strings->blocks[parts[2]] == NULL)
        return 0;
    return (int64_t)parts[3] + parts[0] <= pm_load_offset(strings->block_sizes, 8, parts[2]);
}

static inline int64_t pm_index_at(const pm_source *source, int64_t item)
{
    return pm_load_index(source->indices, source->index, source->indices_first + item);
}

/* Whether an item is there as far as struct and indices say; a dictionary may still hold a null for it. */
static inline int pm_is_there(const pm_source *source, int64_t item)
{
    if (source->outer_validity != NULL && !pm_bit(source->outer_validity, source->outer_first + item))
        return 0;
    if (source->index != 0)
        return source->index_validity == NULL || pm_bit(source->index_validity, source->indices_first + item);
    return source->strings.validity == NULL || pm_bit(source->strings.validity, source->strings.first + item);
}

static inline int pm_is_valid(const pm_source *source, int64_t item)
{
    if (!pm_is_there(source, item))
        return 0;
    if (source->index == 0 || source->strings.validity == NULL)
        return 1;
    return pm_bit(source->strings.validity, source->strings.first + pm_index_at(source, item));
}

static inline int pm_note(pm_problem *problem, int code, int part, int64_t first, int64_t second)
{
    problem->code = code;
    problem->part = part;
    problem->first = first;
    problem->second = second;
    return code;
}

/* Checks one array's own numbers; its validity buffer goes to *validity, NULL where there are no nulls. */
static inline int pm_check_array(const struct ArrowArray *array, int part, int64_t n_buffers, int at_least,
                                 const uint8_t **validity, pm_problem *problem)
{
    if (array->length < 0 || array->length > PM_LONGEST || array->offset < 0 || array->offset > PM_LONGEST)
        return pm_note(problem, PM_PROBLEM_LENGTH, part, array->length, array->offset);
    if (array->null_count < -1 || array->null_count > array->length)
        return pm_note(problem, PM_PROBLEM_NULL_COUNT, part, array->null_count, array->length);
    if (at_least ? array->n_buffers < n_buffers : array->n_buffers != n_buffers)
        return pm_note(problem, PM_PROBLEM_BUFFERS, part, array->n_buffers, n_buffers);
    if (array->buffers == NULL)
        return pm_note(problem, PM_PROBLEM_NO_BUFFERS, part, 0, 0);
    if (array->null_count > 0 && array->buffers[0] == NULL)
        return pm_note(problem, PM_PROBLEM_NO_VALIDITY, part, array->null_count, 0);
    *validity = array->null_count == 0 ? NULL : (const uint8_t *)array->buffers[0];
    return PM_PROBLEM_NONE;
}

/* Takes the buffers of an array of strings of which `count` items, `ahead` behind its offset, are wanted. */
static inline int pm_open_strings(const struct ArrowArray *array, int part, int entry, int64_t ahead, int64_t count,
                                  pm_strings *strings, pm_problem *problem)
{
    if (pm_check_array(array, part, 3, entry == 16, &strings->validity, problem) != PM_PROBLEM_NONE)
        return problem->code;
    strings->first = array->offset + ahead;
    strings->count = count;
    strings->entry = entry;
    if (count == 0)
        return PM_PROBLEM_NONE;
    strings->entries = (const uint8_t *)array->buffers[1];
    if (strings->entries == NULL)
        return pm_note(problem, PM_PROBLEM_NO_BUFFER, part, 1, 0);
    if (entry == 16) {
        strings->blocks = array->buffers + 2;
        strings->block_count = array->n_buffers - 3;
        strings->block_sizes = (const uint8_t *)array->buffers[array->n_buffers - 1];
        if (strings->block_count > 0 && strings->block_sizes == NULL)
            return pm_note(problem, PM_PROBLEM_NO_BUFFER, part, array->n_buffers - 1, 0);
        return PM_PROBLEM_NONE;
    }
    /* First all at once, in a loop that vectorises; then, if something is wrong, what. */
    int64_t from = strings->first, falling = 0;
    if (entry == 4)
        for (int64_t item = from; item < from + count; item++)
            falling |= pm_load_offset(strings->entries, 4, item + 1) < pm_load_offset(strings->entries, 4, item);
    else
        for (int64_t item = from; item < from + count; item++)
            falling |= pm_load_offset(strings->entries, 8, item + 1) < pm_load_offset(strings->entries, 8, item);
    int64_t start = pm_load_offset(strings->entries, entry, from);
    int64_t end = pm_load_offset(strings->entries, entry, from + count);
    if (falling || start < 0 || end > PM_LONGEST)
        for (int64_t item = 0; item < count; item++) {
            int64_t low = pm_load_offset(strings->entries, entry, from + item);
            int64_t high = pm_load_offset(strings->entries, entry, from + item + 1);
            if (low < 0 || high < low || high > PM_LONGEST)
                return pm_note(problem, PM_PROBLEM_OFFSETS, part, item, 0);
        }
    strings->data = (const uint8_t *)array->buffers[2];
    if (strings->data == NULL && end > start)
        return pm_note(problem, PM_PROBLEM_NO_BUFFER, part, 2, 0);
    return PM_PROBLEM_NONE;
}

/* Finds the strings in source->borrowed->array and checks all that a later access relies on. */
static inline int pm_open_source(pm_source *source, const pm_selection *selection, pm_problem *problem)
{
    const struct ArrowArray *top = &source->borrowed->array, *column = top;
    int part = PM_PART_COLUMN;
    int64_t ahead = 0;
    if (top->release == NULL)
        return pm_note(problem, PM_PROBLEM_RELEASED, part, 0, 0);
    if (selection->children >= 0) {
        if (pm_check_array(top, PM_PART_STRUCT, 1, 0, &source->outer_validity, problem) != PM_PROBLEM_NONE)
            return problem->code;
        if (top->n_children != selection->children || top->children == NULL)
            return pm_note(problem, PM_PROBLEM_CHILDREN, PM_PART_STRUCT, top->children == NULL ? 0 : top->n_children,
                           selection->children);
        column = top->children[selection->child];
        if (column == NULL || column->release == NULL)
            return pm_note(problem, PM_PROBLEM_CHILD, PM_PART_STRUCT, selection->child, 0);
        if (column->length < top->offset + top->length)
            return pm_note(problem, PM_PROBLEM_SHORT_CHILD, part, column->length, top->offset + top->length);
        source->outer_first = ahead = top->offset;
    }
    source->index = selection->index;
    if (selection->index == 0) {
        if (pm_open_strings(column, part, selection->entry, ahead, top->length, &source->strings, problem) !=
            PM_PROBLEM_NONE)
            return problem->code;
        source->count = top->length;
        if (selection->entry == 16)
            for (int64_t item = 0; item < source->count; item++)
                if (pm_is_there(source, item) && !pm_view_is_good(&source->strings, item))
                    return pm_note(problem, PM_PROBLEM_VIEW, part, item, 0);
        return PM_PROBLEM_NONE;
    }
    if (pm_check_array(column, part, 2, 0, &source->index_validity, problem) != PM_PROBLEM_NONE)
        return problem->code;
    const struct ArrowArray *dictionary = column->dictionary;
    if (dictionary == NULL || dictionary->release == NULL)
        return pm_note(problem, PM_PROBLEM_DICTIONARY, part, 0, 0);
    if (pm_open_strings(dictionary, PM_PART_DICTIONARY, selection->entry, 0, dictionary->length, &source->strings,
                        problem) != PM_PROBLEM_NONE)
        return problem->code;
    const pm_strings *strings = &source->strings;
    if (selection->entry == 16)
        for (int64_t item = 0; item < strings->count; item++)
            if ((strings->validity == NULL || pm_bit(strings->validity, strings->first + item)) &&
                !pm_view_is_good(strings, item))
                return pm_note(problem, PM_PROBLEM_VIEW, PM_PART_DICTIONARY, item, 0);
    source->indices = (const uint8_t *)column->buffers[1];
    source->indices_first = column->offset + ahead;
    source->count = top->length;
    if (source->count > 0 && source->indices == NULL)
        return pm_note(problem, PM_PROBLEM_NO_BUFFER, part, 1, 0);
    for (int64_t item = 0; item < source->count; item++)
        if (pm_is_there(source, item)) {
            int64_t index = pm_index_at(source, item);
            if (index < 0 || index >= strings->count)
                return pm_note(problem, PM_PROBLEM_INDEX, part, item, index);
        }
    return PM_PROBLEM_NONE;
}

static inline const uint8_t *pm_item_at(const pm_source *source, int64_t item, int64_t *length)
{
    return pm_string_at(&source->strings, source->index == 0 ? item : pm_index_at(source, item), length);
}

/* The validity of items [start, start + count) for a chunk; nothing where all are valid. */
static inline int pm_gather_validity(const pm_source *source, int64_t start, pm_chunk *chunk)
{
    int64_t count = chunk->column.count;
    const pm_strings *strings = &source->strings;
    if (source->outer_validity == NULL && source->index_validity == NULL && strings->validity == NULL)
        return 0;
    chunk->validity = pm_new_validity(count);
    if (chunk->validity == NULL)
        return PM_NO_MEMORY;
    if (source->outer_validity == NULL && source->index == 0) {
        pm_copy_bits(chunk->validity, strings->validity, strings->first + start, count);
    } else {
        for (int64_t item = 0; item < count; item++)
            if (!pm_is_valid(source, start + item))
                pm_clear_bit(chunk->validity, item);
    }
    chunk->null_count = pm_count_nulls(chunk->validity, count);
    if (chunk->null_count == 0) {
        free(chunk->validity);
        chunk->validity = NULL;
    }
    return 0;
}

/* Whether a null covers bytes, which no kernel must see. */
static inline int pm_nulls_hold_bytes(const pm_strings *strings, int64_t start, const pm_chunk *chunk)
{
    if (chunk->validity == NULL)
        return 0;
    for (int64_t item = 0; item < chunk->column.count; item++)
        if (!pm_bit(chunk->validity, item)) {
            int64_t position = strings->first + start + item;
            if (pm_load_offset(strings->entries, strings->entry, position) !=
                pm_load_offset(strings->entries, strings->entry, position + 1))
                return 1;
        }
    return 0;
}

/* Items [start, stop) as a chunk that borrows the bytes where it can; nulls are empty in it. NULL: no memory. */
static inline pm_chunk *pm_gather(const pm_source *source, int64_t start, int64_t stop)
{
    const pm_strings *strings = &source->strings;
    int64_t count = stop - start;
    pm_chunk *chunk = pm_new_chunk();
    if (chunk == NULL)
        return NULL;
    pm_column *column = &chunk->column;
    column->count = count;
    column->bytes.data = (uint8_t *)"";
    if (pm_gather_validity(source, start, chunk) < 0)
        goto no_memory;
    int in_place =
        count > 0 && source->index == 0 && strings->entry != 16 && !pm_nulls_hold_bytes(strings, start, chunk);
    const uint8_t *entries = in_place ? strings->entries + strings->entry * (strings->first + start) : NULL;
    if (in_place && strings->entry == 8 && ((uintptr_t)entries & 7) == 0) {
        column->offsets = (int64_t *)(uintptr_t)entries;
    } else {
        column->offsets = chunk->own_offsets = (int64_t *)malloc((size_t)(count + 1) * sizeof(int64_t));
        if (chunk->own_offsets == NULL)
            goto no_memory;
        pm_prefer_large_pages(chunk->own_offsets, (count + 1) * (int64_t)sizeof(int64_t));
    }
    if (in_place) {
        if (strings->entry == 4)
            for (int64_t item = 0; item <= count; item++)
                column->offsets[item] = pm_load_offset(entries, 4, item);
        else if (chunk->own_offsets != NULL)
            memcpy(column->offsets, entries, (size_t)(count + 1) * sizeof(int64_t));
        if (strings->data != NULL)
            column->bytes.data = (uint8_t *)(uintptr_t)strings->data;
        column->bytes.size = column->offsets[count] - column->offsets[0];
        chunk->borrowed = source->borrowed;
        pm_add_atomically(&chunk->borrowed->references, 1);
        return chunk;
    }
    int64_t size = 0, length;
    column->offsets[0] = 0;
    for (int64_t item = 0; item < count; item++) {
        if (chunk->validity == NULL || pm_bit(chunk->validity, item)) {
            pm_item_at(source, start + item, &length);
            size += length;
        }
        column->offsets[item + 1] = size;
    }
    column->bytes.data = chunk->own_data = (uint8_t *)malloc((size_t)size + 16);
    column->bytes.size = size;
    if (chunk->own_data == NULL)
        goto no_memory;
    pm_prefer_large_pages(chunk->own_data, size);
    for (int64_t item = 0; item < count; item++)
        if (chunk->validity == NULL || pm_bit(chunk->validity, item)) {
            const uint8_t *bytes = pm_item_at(source, start + item, &length);
            memcpy(chunk->own_data + column->offsets[item], bytes, (size_t)length);
        }
    return chunk;
no_memory:
    pm_drop_chunk(chunk);
    return NULL;
}

/* --- results -------------------------------------------------------------------------------------------------- */

/* Makes a chunk of what a kernel made of `source`, taking over the column. With `nullify`, items with a fault become
 * null; otherwise the first fault of an item that is no null goes to *found. NULL: no memory; `made` is then still the
 * caller's. */
static inline pm_chunk *pm_result_chunk(pm_column *made, const pm_chunk *source, const pm_faults *faults, int nullify,
                                        pm_fault *found)
{
    int64_t count = made->count;
    pm_chunk *chunk = pm_new_chunk();
    found->code = 0;
    if (chunk == NULL)
        return NULL;
    if (source->validity != NULL || (nullify && faults->count > 0)) {
        chunk->validity = pm_new_validity(count);
        if (chunk->validity == NULL) {
            pm_drop_chunk(chunk);
            return NULL;
        }
        if (source->validity != NULL)
            memcpy(chunk->validity, source->validity, (size_t)((count + 7) >> 3));
    }
    chunk->null_count = source->null_count;
    for (int64_t number = 0; number < faults->count; number++) {
        const pm_fault *fault = &faults->list[number];
        if (chunk->validity != NULL && !pm_bit(chunk->validity, fault->index))
            continue;
        if (!nullify) {
            *found = *fault;
            break;
        }
        pm_clear_bit(chunk->validity, fault->index);
        chunk->null_count++;
    }
    chunk->column = *made;
    chunk->own_data = made->bytes.data;
    chunk->own_offsets = made->offsets;
    memset(made, 0, sizeof *made);
    return chunk;
}

static inline int pm_chunk_is_utf8(const pm_chunk *chunk)
{
    const pm_column *column = &chunk->column;
    if (pm_is_ascii(column->bytes.data + column->offsets[0], column->bytes.size))
        return 1;
    for (int64_t item = 0; item < column->count; item++) {
        int64_t start = column->offsets[item];
        if (pm_invalid_utf8(column->bytes.data + start, column->offsets[item + 1] - start) >= 0)
            return 0;
    }
    return 1;
}

/* A chunk with room for all of `chunks`, its validity complete, its items to be copied by pm_copy_chunk. */
static inline pm_chunk *pm_new_concatenation(pm_chunk *const *chunks, int64_t chunk_count)
{
    int64_t count = 0, size = 0, nulls = 0;
    for (int64_t number = 0; number < chunk_count; number++) {
        count += chunks[number]->column.count;
        size += chunks[number]->column.bytes.size;
        nulls += chunks[number]->null_count;
    }
    pm_chunk *whole = pm_new_chunk();
    if (whole == NULL)
        return NULL;
    if (pm_new_column(&whole->column, count, size) < 0) {
        pm_drop_chunk(whole);
        return NULL;
    }
    whole->own_data = whole->column.bytes.data;
    whole->own_offsets = whole->column.offsets;
    whole->column.count = count;
    whole->column.bytes.size = size;
    whole->null_count = nulls;
    if (nulls > 0) {
        whole->validity = pm_new_validity(count);
        if (whole->validity == NULL) {
            pm_drop_chunk(whole);
            return NULL;
        }
        int64_t first = 0;
        for (int64_t number = 0; number < chunk_count; number++) {
            const pm_chunk *chunk = chunks[number];
            if (chunk->validity != NULL)
                for (int64_t item = 0; item < chunk->column.count; item++)
                    if (!pm_bit(chunk->validity, item))
                        pm_clear_bit(whole->validity, first + item);
            first += chunk->column.count;
        }
    }
    return whole;
}

/* Copies the items of `chunk` to where item number `first` and byte number `at` of the whole are. */
static inline void pm_copy_chunk(pm_chunk *whole, const pm_chunk *chunk, int64_t first, int64_t at)
{
    const pm_column *column = &chunk->column;
    int64_t change = at - column->offsets[0];
    if (column->bytes.size > 0)
        memcpy(whole->own_data + at, column->bytes.data + column->offsets[0], (size_t)column->bytes.size);
    for (int64_t item = 0; item < column->count; item++)
        whole->own_offsets[first + item + 1] = column->offsets[item + 1] + change;
}

/* --- exports -------------------------------------------------------------------------------------------------- */

/* A column of its own, or the fields of a struct. */
#define PM_MOST_FIELDS 4

typedef struct {
    int is_struct;
    int count;                        /* 1 where there is no struct */
    char formats[PM_MOST_FIELDS];     /* U, u, Z, z */
    const char *names[PM_MOST_FIELDS]; /* static: exports outlive everything else */
} pm_shape;

static inline const char *pm_format_text(char format)
{
    return format == 'U' ? "U" : format == 'u' ? "u" : format == 'Z' ? "Z" : "z";
}

typedef struct {
    struct ArrowSchema *children[PM_MOST_FIELDS];
    struct ArrowSchema fields[PM_MOST_FIELDS];
} pm_schema_fields;

static void pm_release_schema(struct ArrowSchema *schema)
{
    /* A field that was moved away has no release any more and lives on by itself. */
    for (int64_t number = 0; number < schema->n_children; number++)
        if (schema->children[number]->release != NULL)
            schema->children[number]->release(schema->children[number]);
    free(schema->private_data);
    schema->release = NULL;
    pm_add_atomically(&pm_exports, -1);
}

static inline void pm_fill_schema(struct ArrowSchema *out, const char *format, const char *name)
{
    memset(out, 0, sizeof *out);
    out->format = format;
    out->name = name;
    out->flags = ARROW_FLAG_NULLABLE;
    out->release = pm_release_schema;
    pm_add_atomically(&pm_exports, 1);
}

static inline int pm_export_schema(const pm_shape *shape, struct ArrowSchema *out)
{
    memset(out, 0, sizeof *out);
    if (!shape->is_struct) {
        pm_fill_schema(out, pm_format_text(shape->formats[0]), shape->names[0]);
        return 0;
    }
    pm_schema_fields *fields = (pm_schema_fields *)calloc(1, sizeof(pm_schema_fields));
    if (fields == NULL)
        return PM_NO_MEMORY;
    for (int number = 0; number < shape->count; number++) {
        pm_fill_schema(&fields->fields[number], pm_format_text(shape->formats[number]), shape->names[number]);
        fields->children[number] = &fields->fields[number];
    }
    pm_fill_schema(out, "+s", "");
    out->flags = 0;
    out->n_children = shape->count;
    out->children = fields->children;
    out->private_data = fields;
    return 0;
}

/* What an exported array lives on; every field has its own, since consumers may move fields away one by one. */
typedef struct {
    pm_chunk *chunk;
    int32_t *narrow_offsets;
    const void *buffers[3];
    struct ArrowArray *children[PM_MOST_FIELDS];
    struct ArrowArray fields[PM_MOST_FIELDS];
} pm_exported;

static void pm_release_array(struct ArrowArray *array)
{
    pm_exported *exported = (pm_exported *)array->private_data;
    for (int64_t number = 0; number < array->n_children; number++)
        if (array->children[number]->release != NULL)
            array->children[number]->release(array->children[number]);
    pm_drop_chunk(exported->chunk);
    free(exported->narrow_offsets);
    free(exported);
    array->release = NULL;
    pm_add_atomically(&pm_exports, -1);
}

static inline pm_exported *pm_new_export(struct ArrowArray *out, int64_t length)
{
    memset(out, 0, sizeof *out);
    pm_exported *exported = (pm_exported *)calloc(1, sizeof(pm_exported));
    if (exported == NULL)
        return NULL;
    out->length = length;
    out->buffers = exported->buffers;
    out->private_data = exported;
    out->release = pm_release_array;
    pm_add_atomically(&pm_exports, 1);
    return exported;
}

/* Exports one chunk; with a narrow format its bytes are known to be fewer than 2^31. */
static inline int pm_export_chunk(pm_chunk *chunk, char format, struct ArrowArray *out)
{
    const pm_column *column = &chunk->column;
    pm_exported *exported = pm_new_export(out, column->count);
    if (exported == NULL)
        return PM_NO_MEMORY;
    exported->chunk = chunk;
    pm_add_atomically(&chunk->references, 1);
    out->null_count = chunk->null_count;
    out->n_buffers = 3;
    exported->buffers[0] = chunk->validity;
    exported->buffers[1] = column->offsets;
    exported->buffers[2] = column->bytes.data;
    if (format == 'u' || format == 'z') {
        int32_t *narrow = exported->narrow_offsets = (int32_t *)malloc((size_t)(column->count + 1) * sizeof(int32_t));
        if (narrow == NULL) {
            pm_release_array(out);
            return PM_NO_MEMORY;
        }
        for (int64_t item = 0; item <= column->count; item++)
            narrow[item] = (int32_t)(column->offsets[item] - column->offsets[0]);
        exported->buffers[1] = narrow;
        exported->buffers[2] = column->bytes.data + column->offsets[0];
    }
    return 0;
}

/* Exports one chunk a field, all of the same length. */
static inline int pm_export_array(const pm_shape *shape, pm_chunk *const *chunks, struct ArrowArray *out)
{
    if (!shape->is_struct)
        return pm_export_chunk(chunks[0], shape->formats[0], out);
    pm_exported *exported = pm_new_export(out, chunks[0]->column.count);
    if (exported == NULL)
        return PM_NO_MEMORY;
    out->n_buffers = 1;
    out->children = exported->children;
    for (int number = 0; number < shape->count; number++) {
        exported->children[number] = &exported->fields[number];
        if (pm_export_chunk(chunks[number], shape->formats[number], &exported->fields[number]) < 0) {
            pm_release_array(out);
            return PM_NO_MEMORY;
        }
        out->n_children = number + 1;
    }
    return 0;
}

typedef struct {
    pm_shape shape;
    int64_t batches;
    int64_t next;
    const char *error;
    pm_chunk *chunks[]; /* batch by batch, shape.count of each */
} pm_exported_stream;

static int pm_stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    pm_exported_stream *exported = (pm_exported_stream *)stream->private_data;
    if (pm_export_schema(&exported->shape, out) == 0)
        return 0;
    exported->error = "out of memory";
    return ENOMEM;
}

static int pm_stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    pm_exported_stream *exported = (pm_exported_stream *)stream->private_data;
    memset(out, 0, sizeof *out);
    /* The end of a stream is an array without a release. */
    if (exported->next == exported->batches)
        return 0;
    if (pm_export_array(&exported->shape, exported->chunks + exported->next * exported->shape.count, out) == 0) {
        exported->next++;
        return 0;
    }
    exported->error = "out of memory";
    return ENOMEM;
}

static const char *pm_stream_error(struct ArrowArrayStream *stream)
{
    return ((pm_exported_stream *)stream->private_data)->error;
}

static void pm_release_stream(struct ArrowArrayStream *stream)
{
    pm_exported_stream *exported = (pm_exported_stream *)stream->private_data;
    for (int64_t number = 0; number < exported->batches * exported->shape.count; number++)
        pm_drop_chunk(exported->chunks[number]);
    free(exported);
    stream->release = NULL;
    pm_add_atomically(&pm_exports, -1);
}

static inline int pm_export_stream(const pm_shape *shape, pm_chunk *const *chunks, int64_t batches,
                                   struct ArrowArrayStream *out)
{
    memset(out, 0, sizeof *out);
    size_t number_of_chunks = (size_t)(batches * shape->count);
    pm_exported_stream *exported =
        (pm_exported_stream *)calloc(1, sizeof(pm_exported_stream) + number_of_chunks * sizeof(pm_chunk *));
    if (exported == NULL)
        return PM_NO_MEMORY;
    exported->shape = *shape;
    exported->batches = batches;
    for (size_t number = 0; number < number_of_chunks; number++) {
        exported->chunks[number] = chunks[number];
        pm_add_atomically(&chunks[number]->references, 1);
    }
    out->get_schema = pm_stream_schema;
    out->get_next = pm_stream_next;
    out->get_last_error = pm_stream_error;
    out->release = pm_release_stream;
    out->private_data = exported;
    pm_add_atomically(&pm_exports, 1);
    return 0;
}

#endif
