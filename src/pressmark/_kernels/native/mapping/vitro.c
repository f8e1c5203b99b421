#include "vitro.h"

#include "../shared/text.h"

static inline int pm_is_reserved(const uint8_t *name, int64_t length)
{
    if (length < 3 || length > 4 || !pm_reserved_initial[name[0]])
        return 0;
    for (int number = 0; number < PM_WINDOWS_RESERVED; number++) {
        const char *reserved = pm_windows_reserved[number];
        int64_t position = 0;
        /* The table is in upper case; pm_lower folds ASCII letters. */
        while (position < length && reserved[position] != 0
               && pm_lower[name[position]] == pm_lower[(uint8_t)reserved[position]])
            position++;
        if (position == length && reserved[position] == 0)
            return 1;
    }
    return 0;
}

/* Encodes valid UTF-8 text of Latin-1 characters; `before` is its offset in the identifier. */
static inline int pm_vitro_encode(const uint8_t *common, const uint8_t *text, int64_t length, int64_t before,
                                  pm_bytes *encoded, pm_work *work)
{
    if (pm_reserve(encoded, 3 * length) < 0)
        return PM_NO_MEMORY;
    uint8_t *out = encoded->data + encoded->size;
    for (int64_t position = 0; position < length;) {
        uint32_t character;
        int size = pm_decode_utf8(text + position, length - position, &character);
        if (character > 0xFF) {
            work->position = before + position;
            return PM_ERROR_BEYOND_LATIN1;
        }
        if (common[character])
            *out++ = common[character];
        else
            out = pm_put_escape(out, '^', (uint8_t)character);
        position += size;
    }
    encoded->size = out - encoded->data;
    return 0;
}

int pm_vitro_map(const void *parameters, const uint8_t *item, int64_t length, pm_work *work)
{
    const pm_vitro *p = (const pm_vitro *)parameters;
    if (length == 0)
        return PM_ERROR_EMPTY;
    int status = pm_check_utf8(item, length, &work->position);
    if (status != 0)
        return status;
    pm_bytes *encoded = &work->scratch[0];
    encoded->size = 0;
    int64_t before = 0;
    for (int number = 0; number < p->count; number++) {
        const pm_vitro_namespace *candidate = &p->namespaces[number];
        if (length >= candidate->length && memcmp(item, candidate->namespace_, (size_t)candidate->length) == 0) {
            const uint8_t mark[2] = {candidate->prefix, '~'};
            if (pm_append(encoded, mark, 2) < 0)
                return PM_NO_MEMORY;
            before = candidate->length;
            break;
        }
    }
    status = pm_vitro_encode(pm_vitro_common, item + before, length - before, before, encoded, work);
    if (status != 0)
        return status;
    /* Each group of three has at most a separator and a guard. */
    if (pm_reserve(work->out, encoded->size + 2 * (encoded->size / 3 + 1)) < 0)
        return PM_NO_MEMORY;
    uint8_t *out = work->out->data + work->out->size;
    for (int64_t start = 0; start < encoded->size; start += 3) {
        int64_t size = encoded->size - start < 3 ? encoded->size - start : 3;
        if (start > 0)
            *out++ = '/';
        if (pm_is_reserved(encoded->data + start, size))
            *out++ = '~';
        memcpy(out, encoded->data + start, (size_t)size);
        out += size;
    }
    work->out->size = out - work->out->data;
    return 0;
}

/* Undoes the substitutions with `back` and decodes each ^hh as a Latin-1 character, written as UTF-8. With `latin1`, other
 * bytes above ASCII are characters as well (mapping again rejects them); otherwise they are bytes of UTF-8. */
static inline int pm_vitro_unescape(const uint8_t *back, int latin1, const uint8_t *text, int64_t length, int64_t before,
                                    pm_work *work)
{
    if (pm_reserve(work->out, 2 * length) < 0)
        return PM_NO_MEMORY;
    uint8_t *out = work->out->data + work->out->size;
    for (int64_t position = 0; position < length; position++) {
        uint8_t byte = text[position];
        if (byte == '^') {
            int value = pm_hex_pair(text + position + 1, length - position - 1);
            if (value < 0) {
                work->position = before + position;
                return PM_ERROR_BAD_ESCAPE;
            }
            out = pm_put_utf8(out, (uint8_t)value);
            position += 2;
        } else if (latin1) {
            out = pm_put_utf8(out, back[byte]);
        } else {
            *out++ = back[byte];
        }
    }
    work->out->size = out - work->out->data;
    return 0;
}

int pm_vitro_decode(const void *parameters, const uint8_t *item, int64_t length, pm_work *work)
{
    const pm_vitro *p = (const pm_vitro *)parameters;
    if (length == 0)
        return PM_ERROR_EMPTY_PATH;
    pm_bytes *encoded = &work->scratch[0];
    encoded->size = 0;
    if (pm_reserve(encoded, length) < 0)
        return PM_NO_MEMORY;
    for (int64_t start = 0; start <= length;) {
        const uint8_t *slash = start < length ? memchr(item + start, '/', (size_t)(length - start)) : NULL;
        int64_t end = slash != NULL ? slash - item : length;
        int guarded = end > start && item[start] == '~' && pm_is_reserved(item + start + 1, end - start - 1);
        if (pm_append(encoded, item + start + guarded, end - start - guarded) < 0)
            return PM_NO_MEMORY;
        start = end + 1;
    }
    int64_t before = 0;
    if (encoded->size >= 2 && encoded->data[1] == '~') {
        int number = 0;
        while (number < p->count && p->namespaces[number].prefix != encoded->data[0])
            number++;
        if (number == p->count) {
            work->position = 0;
            return PM_ERROR_UNKNOWN_PREFIX;
        }
        if (pm_append(work->out, p->namespaces[number].namespace_, p->namespaces[number].length) < 0)
            return PM_NO_MEMORY;
        before = 2;
    }
    const uint8_t *text = encoded->data + before;
    int64_t left = encoded->size - before;
    const uint8_t *tilde = left > 0 ? memchr(text, '~', (size_t)left) : NULL;
    if (tilde != NULL) {
        work->position = tilde - encoded->data;
        return PM_ERROR_STRAY_TILDE;
    }
    return pm_vitro_unescape(pm_common_back, 1, text, left, before, work);
}

int pm_vitro_encode_filename(const void *parameters, const uint8_t *item, int64_t length, pm_work *work)
{
    (void)parameters;
    int status = pm_check_utf8(item, length, &work->position);
    if (status != 0)
        return status;
    pm_bytes *encoded = &work->scratch[0];
    encoded->size = 0;
    status = pm_vitro_encode(pm_filename_common, item, length, 0, encoded, work);
    if (status != 0)
        return status;
    if (pm_is_reserved(encoded->data, encoded->size) && pm_append(work->out, "~", 1) < 0)
        return PM_NO_MEMORY;
    return pm_append(work->out, encoded->data, encoded->size);
}

int pm_vitro_decode_filename(const void *parameters, const uint8_t *item, int64_t length, pm_work *work)
{
    (void)parameters;
    int guarded = length > 0 && item[0] == '~' && pm_is_reserved(item + 1, length - 1);
    /* Offsets count from the name after its guard, as in the pure implementation. */
    return pm_vitro_unescape(pm_filename_back, 0, item + guarded, length - guarded, 0, work);
}
