#include "chunk.h"

#include "../shared/text.h"

void pm_drop_borrowed(pm_borrowed *borrowed)
{
    if (borrowed == NULL || pm_add_atomically(&borrowed->references, -1) > 0)
        return;
    if (borrowed->array.release != NULL)
        borrowed->array.release(&borrowed->array);
    free(borrowed);
}

pm_chunk *pm_new_chunk(void)
{
    pm_chunk *chunk = (pm_chunk *)calloc(1, sizeof(pm_chunk));
    if (chunk != NULL)
        chunk->references = 1;
    return chunk;
}

void pm_drop_chunk(pm_chunk *chunk)
{
    if (chunk == NULL || pm_add_atomically(&chunk->references, -1) > 0)
        return;
    free(chunk->own_data);
    free(chunk->own_offsets);
    free(chunk->validity);
    pm_drop_borrowed(chunk->borrowed);
    free(chunk);
}

static inline void pm_clear_tail(uint8_t *bits, int64_t count)
{
    if (count & 7)
        bits[count >> 3] &= (uint8_t)((1 << (count & 7)) - 1);
}

void pm_copy_bits(uint8_t *out, const uint8_t *bits, int64_t first, int64_t count)
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

int64_t pm_count_nulls(const uint8_t *bits, int64_t count)
{
    int64_t ones = 0;
    for (int64_t number = 0; number < (count + 7) >> 3; number++)
        for (unsigned byte = bits[number]; byte != 0; byte &= byte - 1)
            ones++;
    return count - ones;
}

uint8_t *pm_new_validity(int64_t count)
{
    size_t size = (size_t)((count + 7) >> 3);
    uint8_t *bits = (uint8_t *)malloc(size + 1);
    if (bits != NULL) {
        memset(bits, 0xFF, size + 1);
        pm_clear_tail(bits, count);
    }
    return bits;
}

pm_chunk *pm_result_chunk(pm_column *made, const pm_chunk *source, const pm_errors *errors, int nullify,
                          pm_error *found)
{
    int64_t count = made->count;
    pm_chunk *chunk = pm_new_chunk();
    found->code = 0;
    if (chunk == NULL)
        return NULL;
    if (source->validity != NULL || (nullify && errors->count > 0)) {
        chunk->validity = pm_new_validity(count);
        if (chunk->validity == NULL) {
            pm_drop_chunk(chunk);
            return NULL;
        }
        if (source->validity != NULL)
            memcpy(chunk->validity, source->validity, (size_t)((count + 7) >> 3));
    }
    chunk->null_count = source->null_count;
    for (int64_t number = 0; number < errors->count; number++) {
        const pm_error *error = &errors->list[number];
        if (chunk->validity != NULL && !pm_bit(chunk->validity, error->index))
            continue;
        if (!nullify) {
            *found = *error;
            break;
        }
        pm_clear_bit(chunk->validity, error->index);
        chunk->null_count++;
    }
    chunk->column = *made;
    chunk->own_data = made->bytes.data;
    chunk->own_offsets = made->offsets;
    memset(made, 0, sizeof *made);
    return chunk;
}

int pm_chunk_is_utf8(const pm_chunk *chunk)
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

pm_chunk *pm_new_concatenation(pm_chunk *const *chunks, int64_t chunk_count)
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

void pm_copy_chunk(pm_chunk *whole, const pm_chunk *chunk, int64_t first, int64_t at)
{
    const pm_column *column = &chunk->column;
    int64_t change = at - column->offsets[0];
    if (column->bytes.size > 0)
        memcpy(whole->own_data + at, column->bytes.data + column->offsets[0], (size_t)column->bytes.size);
    for (int64_t item = 0; item < column->count; item++)
        whole->own_offsets[first + item + 1] = column->offsets[item + 1] + change;
}
