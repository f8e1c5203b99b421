#include "pairtree.h"

#include "../shared/text.h"

/* Section 3: rare bytes become ^hh and the three common ones are substituted, in one pass, since the second step never changes
 * the output of the first. The caller reserves 3 * length + 2 bytes. */
static inline uint8_t *pm_pairtree_put_cleaned(uint8_t *out, const uint8_t *item, int64_t length)
{
    for (int64_t position = 0; position < length; position++) {
        uint8_t byte = item[position], common = pm_pairtree_common[byte];
        /* Always writes three bytes and keeps one or three of them: branches on escapes are hard to predict. */
        pm_put_escape(out, '^', byte);
        out[0] = common ? common : '^';
        out += common ? 1 : 3;
    }
    return out;
}

int pm_pairtree_map(const void *parameters, const uint8_t *item, int64_t length, pm_work *work)
{
    const pm_pairtree *p = (const pm_pairtree *)parameters;
    if (p->prefix_length > 0) {
        if (length >= p->prefix_length && memcmp(item, p->prefix, (size_t)p->prefix_length) == 0) {
            item += p->prefix_length;
            length -= p->prefix_length;
        } else if (p->prefix_required && length > 0) {
            return PM_ERROR_PREFIX_MISSING;
        }
    }
    if (length == 0)
        return PM_ERROR_EMPTY;
    /* At most, each byte becomes three, and each two of those get a separator. The cleaned text is built after that. */
    int64_t longest = 3 * length + 3 * length / 2 + 1 + PM_PAIRTREE_SLACK;
    if (pm_reserve(work->out, longest + 3 * length + 2) < 0)
        return PM_NO_MEMORY;
    uint8_t *start = work->out->data + work->out->size;
    /* Most identifiers contain no rare byte: try one pass, and start again only if there was one. */
    uint8_t *end = p->put(start, item, length, 0);
    if (end == NULL) {
        uint8_t *cleaned = start + longest;
        uint8_t *cleaned_end = pm_pairtree_put_cleaned(cleaned, item, length);
        end = p->put(start, cleaned, cleaned_end - cleaned, 1);
    }
    work->out->size += end - start;
    return 0;
}

int pm_pairtree_unmap(const void *parameters, const uint8_t *item, int64_t length, pm_work *work)
{
    const pm_pairtree *p = (const pm_pairtree *)parameters;
    if (length == 0)
        return PM_ERROR_EMPTY_PATH;
    if (item[length - 1] == '/')
        length--;
    for (int64_t start = 0; start <= length;) {
        const uint8_t *slash = start < length ? memchr(item + start, '/', (size_t)(length - start)) : NULL;
        int64_t end = slash != NULL ? slash - item : length;
        if (end - start != 2 && !(end - start == 1 && end == length)) {
            work->position = start;
            return PM_ERROR_BAD_COMPONENT;
        }
        start = end + 1;
    }
    if (pm_append(work->out, p->prefix, p->prefix_length) < 0 || pm_reserve(work->out, length) < 0)
        return PM_NO_MEMORY;
    uint8_t *out = work->out->data + work->out->size;
    /* Each third byte is a separator: iterate over the offsets of the cleaned text. */
    int64_t cleaned_length = length - length / 3;
#define PM_AT(offset) item[(offset) + (offset) / 2]
    for (int64_t offset = 0; offset < cleaned_length; offset++) {
        uint8_t byte = PM_AT(offset);
        work->position = offset + offset / 2;
        if (byte == '^') {
            uint8_t digits[2] = {0, 0};
            int64_t left = cleaned_length - offset - 1;
            for (int64_t ahead = 0; ahead < 2 && ahead < left; ahead++)
                digits[ahead] = PM_AT(offset + 1 + ahead);
            int value = pm_hex_pair(digits, left);
            if (value < 0)
                return PM_ERROR_BAD_ESCAPE;
            *out++ = (uint8_t)value;
            offset += 2;
        } else if (!pm_pairtree_cleaned[byte]) {
            return PM_ERROR_BAD_CHARACTER;
        } else {
            *out++ = pm_common_back[byte];
        }
    }
#undef PM_AT
    work->out->size = out - work->out->data;
    return 0;
}

int pm_pairtree_clean(const void *parameters, const uint8_t *item, int64_t length, pm_work *work)
{
    (void)parameters;
    if (pm_reserve(work->out, 3 * length + 2) < 0)
        return PM_NO_MEMORY;
    uint8_t *start = work->out->data + work->out->size;
    work->out->size += pm_pairtree_put_cleaned(start, item, length) - start;
    return 0;
}

int pm_pairtree_unclean(const void *parameters, const uint8_t *item, int64_t length, pm_work *work)
{
    (void)parameters;
    if (pm_reserve(work->out, length) < 0)
        return PM_NO_MEMORY;
    uint8_t *out = work->out->data + work->out->size;
    for (int64_t position = 0; position < length; position++) {
        if (item[position] != '^') {
            *out++ = pm_common_back[item[position]];
            continue;
        }
        int value = pm_hex_pair(item + position + 1, length - position - 1);
        if (value < 0) {
            work->position = position;
            return PM_ERROR_BAD_ESCAPE;
        }
        *out++ = (uint8_t)value;
        position += 2;
    }
    work->out->size = out - work->out->data;
    return 0;
}
