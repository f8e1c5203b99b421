#include "omit_prefix.h"

#include "../shared/text.h"

/* Advances *item and *length to the rest after the right-most delimiter. */
static inline int pm_without_prefix(const pm_omit_prefix *p, const uint8_t **item, int64_t *length, pm_work *work)
{
    if (*length == 0)
        return PM_ERROR_EMPTY;
    for (int64_t start = *length - p->delimiter_length; start >= 0; start--) {
        int64_t matched = 0;
        while (matched < p->delimiter_length && pm_lower[(*item)[start + matched]] == p->delimiter[matched])
            matched++;
        if (matched < p->delimiter_length)
            continue;
        int64_t end = start + p->delimiter_length;
        if (end == *length) {
            work->position = start;
            return PM_ERROR_DELIMITER_AT_END;
        }
        *item += end;
        *length -= end;
        break;
    }
    return 0;
}

static inline int pm_check_ascii(const uint8_t *item, int64_t length, pm_work *work)
{
    for (int64_t position = 0; position < length; position++) {
        if (item[position] < PM_ASCII_FIRST || item[position] > PM_ASCII_LAST) {
            work->position = position;
            return PM_ERROR_NOT_ASCII;
        }
    }
    return 0;
}

/* Checks the path that was appended after `before`. */
static inline int pm_check_appended(int64_t before, pm_work *work)
{
    return pm_check_path(work->out->data + before, work->out->size - before, &work->position);
}

int pm_flat_omit_prefix_map(const void *parameters, const uint8_t *item, int64_t length, pm_work *work)
{
    int status = pm_check_utf8(item, length, &work->position);
    if (status == 0)
        status = pm_without_prefix((const pm_omit_prefix *)parameters, &item, &length, work);
    if (status == 0)
        status = pm_check_path(item, length, &work->position);
    return status != 0 ? status : pm_append(work->out, item, length);
}

int pm_n_tuple_omit_prefix_map(const void *parameters, const uint8_t *item, int64_t length, pm_work *work)
{
    const pm_omit_prefix *p = (const pm_omit_prefix *)parameters;
    int status = pm_check_ascii(item, length, work);
    if (status == 0)
        status = pm_without_prefix(p, &item, &length, work);
    if (status != 0)
        return status;
    int64_t needed = p->tuple_size * p->number_of_tuples, before = work->out->size;
    int64_t padding = needed > length ? needed - length : 0, padded_length = length + padding;
    if (pm_reserve(work->out, needed + p->number_of_tuples + length) < 0)
        return PM_NO_MEMORY;
    uint8_t *out = work->out->data + before;
    for (int64_t number = 0, position = 0; number < p->number_of_tuples; number++) {
        for (int64_t end = position + p->tuple_size; position < end; position++) {
            /* A character of the padded rest, reversed or not, is a character of the rest or a padding zero. */
            int64_t padded = p->reverse ? padded_length - 1 - position : position;
            int64_t origin = p->pad_left ? padded - padding : padded;
            *out++ = origin >= 0 && origin < length ? item[origin] : '0';
        }
        *out++ = '/';
    }
    work->out->size = out - work->out->data;
    status = pm_append(work->out, item, length);
    return status != 0 ? status : pm_check_appended(before, work);
}

int pm_differential_map(const void *parameters, const uint8_t *item, int64_t length, pm_work *work)
{
    const pm_omit_prefix *p = (const pm_omit_prefix *)parameters;
    int status = pm_check_ascii(item, length, work);
    if (status == 0)
        status = pm_without_prefix(p, &item, &length, work);
    if (status != 0)
        return status;
    int64_t total = 0, start = 0, before = work->out->size;
    for (int64_t number = 0; number < p->sizes_count && total <= length; number++)
        total += p->sizes[number];
    if (length != total) {
        work->position = length;
        return PM_ERROR_WRONG_LENGTH;
    }
    for (int64_t number = 0; number < p->sizes_count; number++) {
        if ((number > 0 && pm_append(work->out, "/", 1) < 0)
            || pm_append(work->out, item + start, p->sizes[number]) < 0)
            return PM_NO_MEMORY;
        start += p->sizes[number];
    }
    if (p->full_identifier
        && (pm_append(work->out, "/", 1) < 0 || pm_append(work->out, item, length) < 0))
        return PM_NO_MEMORY;
    return pm_check_appended(before, work);
}

int pm_direct_map(const void *parameters, const uint8_t *item, int64_t length, pm_work *work)
{
    (void)parameters;
    int status = pm_check_utf8(item, length, &work->position);
    if (status == 0)
        status = pm_check_path(item, length, &work->position);
    return status != 0 ? status : pm_append(work->out, item, length);
}
