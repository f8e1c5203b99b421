#include "source.h"

/* No real array is longer, and the sum of two such numbers cannot overflow. */
#define PM_LONGEST (INT64_C(1) << 47)
/* Views contain strings up to this length. */
#define PM_INLINE 12

/* Foreign buffers are not always aligned. memcpy needs no alignment and costs nothing. */
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
    int bytes = size < 0 ? -size : size;
    memcpy(&value, indices + bytes * position, (size_t)bytes);
    switch (size) {
    case 1: return value.u8;
    case -1: return value.i8;
    case 2: return value.u16;
    case -2: return value.i16;
    case 4: return value.u32;
    case -4: return value.i32;
    /* An unsigned index beyond int64 becomes negative, which is out of range as well. */
    default: return value.i64;
    }
}

/* The string at `item`, which was checked before. */
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

/* Whether struct and indices have a value for an item; the value in the dictionary may still be null. */
static inline int pm_is_there(const pm_source *source, int64_t item)
{
    if (source->index == 0 && source->strings.entry == 0)
        return 0;
    if (source->outer_validity != NULL && !pm_bit(source->outer_validity, source->outer_first + item))
        return 0;
    if (source->index != 0)
        return source->index_validity == NULL || pm_bit(source->index_validity, source->indices_first + item);
    return source->strings.validity == NULL || pm_bit(source->strings.validity, source->strings.first + item);
}

static inline int pm_is_valid(const pm_source *source, int64_t item)
{
    if (source->strings.entry == 0 || !pm_is_there(source, item))
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

/* Checks the numbers of one array and sets *validity to its validity buffer, NULL without nulls. */
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

/* Opens the buffers of an array of strings for `count` items from `ahead` after its offset. */
static inline int pm_open_strings(const struct ArrowArray *array, int part, int entry, int64_t ahead, int64_t count,
                                  pm_strings *strings, pm_problem *problem)
{
    strings->entry = entry;
    strings->count = count;
    if (entry == 0) { /* the null type, which has no buffers */
        if (array->length < 0 || array->length > PM_LONGEST || array->offset < 0 || array->offset > PM_LONGEST)
            return pm_note(problem, PM_PROBLEM_LENGTH, part, array->length, array->offset);
        return PM_PROBLEM_NONE;
    }
    if (pm_check_array(array, part, 3, entry == 16, &strings->validity, problem) != PM_PROBLEM_NONE)
        return problem->code;
    strings->first = array->offset + ahead;
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
    /* Checks all items in a loop that vectorises. If one is wrong, finds it. */
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

int pm_open_source(pm_source *source, const pm_selection *selection, pm_problem *problem)
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

/* Sets the validity of items [start, start + count) for a chunk; NULL if all are valid. */
static inline int pm_gather_validity(const pm_source *source, int64_t start, pm_chunk *chunk)
{
    int64_t count = chunk->column.count;
    const pm_strings *strings = &source->strings;
    if (source->outer_validity == NULL && source->index_validity == NULL && strings->validity == NULL &&
        strings->entry != 0)
        return 0;
    chunk->validity = pm_new_validity(count);
    if (chunk->validity == NULL)
        return PM_NO_MEMORY;
    if (source->outer_validity == NULL && source->index == 0 && strings->entry != 0) {
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

/* Whether a null has bytes, which kernels must not read. */
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

pm_chunk *pm_gather(const pm_source *source, int64_t start, int64_t stop)
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
        count > 0 && source->index == 0 && strings->entry % 16 != 0 && !pm_nulls_hold_bytes(strings, start, chunk);
    const uint8_t *entries = in_place ? strings->entries + strings->entry * (strings->first + start) : NULL;
    if (in_place && strings->entry == 8 && ((uintptr_t)entries & 7) == 0) {
        column->offsets = (int64_t *)(uintptr_t)entries;
    } else {
        column->offsets = chunk->own_offsets = (int64_t *)pm_new_array(count + 1, sizeof(int64_t));
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
    column->bytes.data = chunk->own_data = (uint8_t *)pm_new_array(size + 16, 1);
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
