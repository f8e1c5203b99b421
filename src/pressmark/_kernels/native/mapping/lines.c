#include "lines.h"

int pm_cut_lines(const uint8_t *block, int64_t size, uint8_t delimiter, pm_column *out)
{
    int64_t count = 0;
    for (int64_t position = 0; position < size; position++)
        count += block[position] == delimiter;
    if (size > 0 && block[size - 1] != delimiter)
        count++;
    /* All bytes fit, so appending never reallocates. */
    if (pm_new_column(out, count, size) < 0)
        return PM_NO_MEMORY;
    for (int64_t start = 0; start < size;) {
        const uint8_t *found = memchr(block + start, delimiter, (size_t)(size - start));
        int64_t end = found != NULL ? found - block : size;
        pm_append(&out->bytes, block + start, end - start);
        pm_end_item(out);
        start = end + 1;
    }
    return 0;
}

int pm_join_lines(const pm_column *before, const pm_column *items, uint8_t delimiter, const int64_t *skip,
                  int64_t skip_count, pm_bytes *out)
{
    int64_t size = items->bytes.size + items->count;
    if (before != NULL)
        size += before->bytes.size + before->count;
    if (pm_reserve(out, size + 1) < 0)
        return PM_NO_MEMORY;
    int64_t next = 0;
    for (int64_t index = 0; index < items->count; index++) {
        if (next < skip_count && skip[next] == index) {
            next++;
            continue;
        }
        if (before != NULL) {
            int64_t start = before->offsets[index];
            pm_append(out, before->bytes.data + start, before->offsets[index + 1] - start);
            out->data[out->size++] = '\t';
        }
        int64_t start = items->offsets[index];
        pm_append(out, items->bytes.data + start, items->offsets[index + 1] - start);
        out->data[out->size++] = delimiter;
    }
    return 0;
}

static inline int64_t pm_line_feed(const uint8_t *rows, int64_t start, int64_t size)
{
    const uint8_t *found = memchr(rows + start, '\n', (size_t)(size - start));
    return found != NULL ? found - rows : size;
}

int pm_cut_fields(const uint8_t *rows, int64_t size, uint8_t separator, int64_t index, int64_t width, pm_column *out)
{
    int64_t count = 0;
    for (int64_t position = 0; position < size; position++)
        count += rows[position] == '\n';
    /* All bytes fit, so appending never reallocates. */
    if (pm_new_column(out, count, size) < 0)
        return PM_NO_MEMORY;
    for (int64_t start = 0; start < size && out->count < count;) {
        int64_t feed = pm_line_feed(rows, start, size);
        int64_t end = feed > start && rows[feed - 1] == '\r' ? feed - 1 : feed;
        int64_t fields = 0;
        for (;;) {
            const uint8_t *found = start < end ? memchr(rows + start, separator, (size_t)(end - start)) : NULL;
            int64_t stop = found != NULL ? found - rows : end;
            if (fields == index)
                pm_append(&out->bytes, rows + start, stop - start);
            fields++;
            if (found == NULL)
                break;
            start = stop + 1;
        }
        if (fields != width)
            return 0;
        pm_end_item(out);
        start = feed + 1;
    }
    return 1;
}

/* The number of quotes in a field, or -1 if it needs none around it. */
static inline int64_t pm_count_quotes(const uint8_t *field, int64_t length, uint8_t separator)
{
    int special = 0;
    int64_t quotes = 0;
    for (int64_t position = 0; position < length; position++)
        special |= (field[position] == separator) | (field[position] == '"') | (field[position] == '\n')
                   | (field[position] == '\r');
    if (!special)
        return -1;
    for (int64_t position = 0; position < length; position++)
        quotes += field[position] == '"';
    return quotes;
}

static inline int pm_append_quoted(pm_bytes *out, const uint8_t *field, int64_t length, int64_t quotes)
{
    if (pm_reserve(out, length + quotes + 2) < 0)
        return PM_NO_MEMORY;
    uint8_t *end = out->data + out->size;
    *end++ = '"';
    if (quotes == 0) {
        memcpy(end, field, (size_t)length);
        end += length;
    } else {
        for (int64_t position = 0; position < length; position++) {
            if (field[position] == '"')
                *end++ = '"';
            *end++ = field[position];
        }
    }
    *end++ = '"';
    out->size = end - out->data;
    return 0;
}

int pm_join_rows(const uint8_t *rows, int64_t size, const pm_column *items, uint8_t separator, int quotes, pm_bytes *out)
{
    /* Quotes inside items are rare, and may need more. */
    if (pm_reserve(out, size + items->bytes.size + (quotes ? 3 : 1) * items->count + 1) < 0)
        return PM_NO_MEMORY;
    int64_t start = 0;
    for (int64_t index = 0; index < items->count && start < size; index++) {
        const uint8_t *item = items->bytes.data + items->offsets[index];
        int64_t length = items->offsets[index + 1] - items->offsets[index];
        int64_t feed = pm_line_feed(rows, start, size);
        int64_t end = feed > start && rows[feed - 1] == '\r' ? feed - 1 : feed;
        int64_t inside = quotes ? pm_count_quotes(item, length, separator) : -1;
        if (pm_append(out, rows + start, end - start) < 0 || pm_append(out, &separator, 1) < 0
            || (inside < 0 ? pm_append(out, item, length) : pm_append_quoted(out, item, length, inside)) < 0)
            return PM_NO_MEMORY;
        start = feed < size ? feed + 1 : size;
        if (pm_append(out, rows + end, start - end) < 0)
            return PM_NO_MEMORY;
    }
    return 0;
}
