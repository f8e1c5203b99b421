#include "lengths.h"

#include "../shared/text.h"

int pm_lengths_init(pm_lengths *lengths)
{
    lengths->counts = (int64_t *)calloc((size_t)PM_MEASURES * PM_LENGTH_ROWS, sizeof(int64_t));
    return lengths->counts == NULL ? PM_NO_MEMORY : 0;
}

void pm_lengths_free(pm_lengths *lengths)
{
    free(lengths->counts);
    pm_free_bytes(&lengths->longer);
}

static inline int pm_count_length(pm_lengths *lengths, int64_t measure, int64_t length)
{
    if (length < PM_LENGTH_ROWS) {
        lengths->counts[measure * PM_LENGTH_ROWS + length]++;
        return 0;
    }
    int64_t pair[2] = {measure, length};
    return pm_append(&lengths->longer, pair, sizeof pair);
}

/* The number of UTF-16 units of a text; a byte that is not UTF-8 counts as one. */
static int64_t pm_utf16_units(const uint8_t *text, int64_t length)
{
    int64_t units = 0;
    uint32_t character;
    for (int64_t position = 0; position < length;) {
        int size = pm_decode_utf8(text + position, length - position, &character);
        units += 1 + (character > 0xFFFF);
        position += size > 0 ? size : 1;
    }
    return units;
}

static int pm_lengths_add(pm_lengths *lengths, const uint8_t *path, int64_t length)
{
    int ascii = pm_is_ascii(path, length), status = 0;
    int64_t depth = 0, last_size = 0, units = 0;
    for (int64_t start = 0; start <= length && length > 0;) {
        const uint8_t *slash = (const uint8_t *)memchr(path + start, '/', (size_t)(length - start));
        int64_t size = (slash == NULL ? length : slash - path) - start;
        int64_t size_units = ascii ? size : pm_utf16_units(path + start, size);
        status |= pm_count_length(lengths, PM_SEGMENT_BYTES, size);
        status |= pm_count_length(lengths, PM_SEGMENT_UNITS, size_units);
        units += size_units + (depth > 0);
        last_size = size;
        depth++;
        start += size + 1;
    }
    status |= pm_count_length(lengths, PM_PATH_BYTES, length);
    status |= pm_count_length(lengths, PM_PATH_UNITS, units);
    status |= pm_count_length(lengths, PM_PATH_DEPTH, depth);
    status |= pm_count_length(lengths, PM_LAST_BYTES, last_size);
    return status < 0 ? PM_NO_MEMORY : 0;
}

int pm_lengths_add_column(pm_lengths *lengths, const pm_column *paths, const int64_t *skip)
{
    for (int64_t index = 0; index < paths->count; index++) {
        if (index == *skip) {
            skip++;
            continue;
        }
        if (pm_lengths_add(lengths, paths->bytes.data + paths->offsets[index],
                           paths->offsets[index + 1] - paths->offsets[index]) < 0)
            return PM_NO_MEMORY;
    }
    return 0;
}
