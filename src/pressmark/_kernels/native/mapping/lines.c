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
