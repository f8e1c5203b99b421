#include "lines.h"

/* Counters of one byte make wide vectors; they must not overflow. */
int64_t pm_count_byte(const uint8_t *text, int64_t size, uint8_t byte)
{
    int64_t count = 0;
    for (int64_t start = 0; start < size; start += UINT8_MAX) {
        int64_t end = size - start < UINT8_MAX ? size : start + UINT8_MAX;
        uint8_t part = 0;
        for (int64_t position = start; position < end; position++)
            part += text[position] == byte;
        count += part;
    }
    return count;
}

int pm_cut_lines(const uint8_t *block, int64_t size, uint8_t delimiter, pm_column *out)
{
    int64_t count = pm_count_byte(block, size, delimiter);
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

/* The offset of the first of two bytes in text[start .. end); `end` without one. */
static inline int64_t pm_first_of(const uint8_t *text, int64_t start, int64_t end, uint8_t one, uint8_t other)
{
    const uint64_t low = UINT64_C(0x7F7F7F7F7F7F7F7F), all = UINT64_C(0x0101010101010101);
    /* Fields are short: a call of memchr for each takes longer. */
    for (; end - start >= 8; start += 8) {
        uint64_t word;
        memcpy(&word, text + start, 8);
        uint64_t left = word ^ all * one, right = word ^ all * other;
        /* The top bit of each byte that is 0 in one of them: exact, because no sum carries into the next byte. */
        uint64_t found = ~((((left & low) + low) | left) & (((right & low) + low) | right)) & ~low;
        if (found != 0) {
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            return start + __builtin_ctzll(found) / 8;
#else
            break;
#endif
        }
    }
    while (start < end && text[start] != one && text[start] != other)
        start++;
    return start;
}

/* The offset behind the closing quote of the field that starts with a quote at `start`; -1 without one before `end`. */
static inline int64_t pm_enclosed_end(const uint8_t *text, int64_t start, int64_t end)
{
    for (int64_t position = start + 1; position < end; position += 2) {
        position = pm_first_of(text, position, end, '"', '"');
        if (position == end)
            break;
        if (position + 1 == end || text[position + 1] != '"')
            return position + 1;
    }
    return -1;
}

int64_t pm_find_rows(const uint8_t *text, int64_t size, uint8_t separator, int quotes, int64_t *ends)
{
    int64_t count = 0;
    /* Without quotes, fields do not matter. */
    if (!quotes)
        separator = '\n';
    for (int64_t position = 0; position < size;) {
        if (quotes && text[position] == '"') {
            position = pm_enclosed_end(text, position, size);
            if (position < 0)
                break;
        }
        position = pm_first_of(text, position, size, separator, '\n');
        if (position < size && text[position++] == '\n')
            ends[count++] = position;
    }
    return count;
}

/* Appends the bytes between the quotes of a field; of two quotes, one. */
static inline void pm_append_enclosed(pm_bytes *out, const uint8_t *inner, int64_t length)
{
    for (int64_t position = 0; position < length; position++) {
        int64_t quote = pm_first_of(inner, position, length, '"', '"');
        int64_t end = quote < length ? quote + 1 : length;
        pm_append(out, inner + position, end - position);
        position = end;
    }
}

int pm_cut_fields(const uint8_t *rows, int64_t size, uint8_t separator, int quotes, int64_t index, int64_t width,
                  pm_column *out)
{
    int64_t count = pm_count_byte(rows, size, '\n');
    /* All bytes fit, so appending never reallocates. */
    if (pm_new_column(out, count, size) < 0)
        return PM_NO_MEMORY;
    for (int64_t position = 0; position < size;) {
        int64_t row = position, stop;
        for (int64_t fields = 0;; fields++) {
            int64_t start = position, closed = -1;
            if (quotes && position < size && rows[position] == '"') {
                position = closed = pm_enclosed_end(rows, position, size);
                if (closed < 0)
                    return 0;
            }
            stop = pm_first_of(rows, position, size, separator, '\n');
            position = stop + 1;
            int last = stop >= size || rows[stop] == '\n';
            if (last && (stop >= size || fields != width - 1))
                return 0;
            if (fields == index) {
                int64_t end = last && stop > row && rows[stop - 1] == '\r' ? stop - 1 : stop;
                if (closed < 0)
                    pm_append(&out->bytes, rows + start, end - start);
                else if (closed != end)
                    return 0;
                else
                    pm_append_enclosed(&out->bytes, rows + start + 1, closed - start - 2);
            }
            if (last)
                break;
        }
        pm_end_item(out);
    }
    return 1;
}

/* The number of quotes in a field, or -1 if it needs none around it. */
static inline int64_t pm_count_quotes(const uint8_t *field, int64_t length, uint8_t separator)
{
    uint8_t special = 0;
    for (int64_t position = 0; position < length; position++)
        special |= (field[position] == separator) | (field[position] == '"') | (field[position] == '\n')
                   | (field[position] == '\r');
    return special ? pm_count_byte(field, length, '"') : -1;
}

int64_t pm_joined_size(int64_t size, const pm_column *items, uint8_t separator, int quotes)
{
    size += items->bytes.size + items->count;
    if (quotes && pm_count_quotes(items->bytes.data, items->bytes.size, separator) >= 0)
        for (int64_t index = 0; index < items->count; index++) {
            int64_t start = items->offsets[index];
            int64_t inside = pm_count_quotes(items->bytes.data + start, items->offsets[index + 1] - start, separator);
            size += inside < 0 ? 0 : inside + 2;
        }
    return size;
}

static inline uint8_t *pm_put(uint8_t *out, const uint8_t *from, int64_t length)
{
    if (length > 0)
        memcpy(out, from, (size_t)length);
    return out + length;
}

void pm_join_rows(const uint8_t *rows, int64_t size, const int64_t *ends, const pm_column *items, uint8_t separator,
                  int quotes, uint8_t *out)
{
    int64_t copied = 0;
    for (int64_t index = 0; index < items->count; index++) {
        const uint8_t *item = items->bytes.data + items->offsets[index];
        int64_t length = items->offsets[index + 1] - items->offsets[index];
        int64_t row = index > 0 ? ends[index - 1] : 0, end = ends[index] - 1;
        if (end > row && rows[end - 1] == '\r')
            end--;
        /* The end of the row before, and this row without its own. */
        out = pm_put(out, rows + copied, end - copied);
        copied = end;
        *out++ = separator;
        if (!quotes || pm_count_quotes(item, length, separator) < 0) {
            out = pm_put(out, item, length);
            continue;
        }
        *out++ = '"';
        for (int64_t position = 0; position < length; position++) {
            if (item[position] == '"')
                *out++ = '"';
            *out++ = item[position];
        }
        *out++ = '"';
    }
    pm_put(out, rows + copied, size - copied);
}
