#include "hashed.h"

#include "../shared/text.h"

/* Digests are computed for this many items at a time: enough to fill all lanes many times, and few enough for the
 * first-level cache. */
#define PM_HASHED_BLOCK 512

/* Copies are made in steps of this many bytes, and write beyond their ends: a call of memcpy costs more. */
#define PM_STEP 16

/* The offset of the identifier after its prefix (OCFL 0012, procedure step 1). The item is valid UTF-8. */
static inline int64_t pm_prefix_end(const pm_hashed *p, const uint8_t *item, int64_t length)
{
    /* A delimiter must end before the last character, which may be several bytes. */
    int64_t before_last = length - 1;
    while (before_last > 0 && (item[before_last] & 0xC0) == 0x80)
        before_last--;
    int64_t found = 0;
    for (int64_t number = 0; number < p->delimiters_count; number++) {
        const uint8_t *text = p->delimiters[number].text;
        int64_t size = p->delimiters[number].length;
        /* Where the last byte of a later delimiter can be. */
        int64_t start = found > size - 1 ? found : size - 1;
        int64_t end = pm_last_end(item, start, before_last, text[size - 1]);
        while (end > start && size > 1 && memcmp(item + end - size, text, (size_t)size) != 0)
            end = pm_last_end(item, start, end - 1, text[size - 1]);
        if (end > start)
            found = end;
    }
    return found;
}

/* Writes the hex digits of `size` bytes, in whole steps: reads and writes beyond the end. */
static inline void pm_hex_steps(uint8_t *out, const uint8_t *bytes, int64_t size)
{
    for (int64_t start = 0; start < size; start += PM_STEP) {
        for (int64_t number = 0; number < PM_STEP; number++) {
            uint8_t high = bytes[start + number] >> 4, low = bytes[start + number] & 15;
            /* Arithmetic instead of a table, so that compilers use vectors. */
            out[2 * (start + number)] = (uint8_t)(high + '0' + (high > 9 ? 'a' - '0' - 10 : 0));
            out[2 * (start + number) + 1] = (uint8_t)(low + '0' + (low > 9 ? 'a' - '0' - 10 : 0));
        }
    }
}

/* Copies in whole steps: reads and writes beyond the end. */
static inline uint8_t *pm_copy_steps(uint8_t *out, const uint8_t *from, int64_t size)
{
    for (int64_t start = 0; start < size; start += PM_STEP)
        memcpy(out + start, from + start, PM_STEP);
    return out + size;
}

/* Appends one path, from the identifier without its prefix, and its digest, which is readable up to a whole step. */
static inline int pm_put_hashed_path(const pm_hashed *p, const uint8_t *item, int64_t length, const uint8_t *digest,
                                     pm_bytes *out)
{
    uint8_t hex[2 * PM_LARGEST_DIGEST + 3 * PM_STEP];
    /* The maximum: tuples with separators, an identifier with all bytes escaped, and a whole digest. */
    int64_t used = p->tuple_size * p->number_of_tuples, digits = 2 * p->digest_size;
    int64_t encoded = length <= PM_ENCAPSULATION_LONGEST ? length : PM_ENCAPSULATION_LONGEST + 1;
    if (pm_reserve(out, used + p->number_of_tuples + 3 * encoded + 1 + digits + PM_STEP) < 0)
        return PM_NO_MEMORY;
    uint8_t *end = out->data + out->size;
    pm_hex_steps(hex, digest, p->digest_size);
    for (int64_t number = 0; number < p->number_of_tuples; number++) {
        end = pm_copy_steps(end, hex + number * p->tuple_size, p->tuple_size);
        *end++ = '/';
    }
    if (!p->with_identifier) {
        end = pm_copy_steps(end, hex + p->name_start, digits - p->name_start);
    } else {
        uint8_t *name = end;
        /* The rest after the limit need not be encoded; it only matters that there is more. */
        for (int64_t position = 0; position < encoded; position++) {
            /* Always writes four bytes and keeps one or three of them: branches on escapes are hard to predict. */
            const uint8_t *put = pm_encapsulation_put[item[position]];
            memcpy(end, put, 4);
            end += put[3];
        }
        if (end - name > PM_ENCAPSULATION_LONGEST) {
            end = name + PM_ENCAPSULATION_LONGEST;
            *end++ = '-';
            end = pm_copy_steps(end, hex, digits);
        }
    }
    out->size = end - out->data;
    return 0;
}

int pm_map_hashed_column(const pm_hashed *p, int64_t limit, const pm_column *in, pm_column *out, pm_errors *errors)
{
    uint8_t digests[PM_HASHED_BLOCK * PM_LARGEST_DIGEST + PM_STEP];
    int64_t kept_offsets[PM_HASHED_BLOCK + 1];
    int codes[PM_HASHED_BLOCK];
    pm_bytes kept = {0};
    pm_work work;
    memset(&work, 0, sizeof work);
    int64_t size = in->count > 0 ? in->offsets[in->count] - in->offsets[0] : 0;
    int64_t before_name = p->number_of_tuples * (p->tuple_size + 1);
    if (pm_new_column(out, in->count,
                      in->count * before_name + (p->with_identifier ? 2 * size : in->count * 2 * p->digest_size) + 512) < 0)
        return PM_NO_MEMORY;
    int status = 0;
    for (int64_t first = 0; first < in->count && status == 0; first += PM_HASHED_BLOCK) {
        int64_t count = in->count - first < PM_HASHED_BLOCK ? in->count - first : PM_HASHED_BLOCK;
        const uint8_t *data = in->bytes.data;
        const int64_t *offsets = in->offsets + first;
        /* Nearly always a single check of the whole block replaces one for each item. */
        int all_ascii = offsets[count] > offsets[0] && pm_is_ascii(data + offsets[0], offsets[count] - offsets[0]);
        kept.size = 0;
        kept_offsets[0] = 0;
        /* Identifiers without their prefix are not contiguous: they are copied. */
        if (p->delimiters_count > 0)
            status = pm_reserve(&kept, offsets[count] - offsets[0] + PM_STEP);
        for (int64_t number = 0; number < count && status == 0; number++) {
            const uint8_t *item = data + offsets[number];
            int64_t length = offsets[number + 1] - offsets[number];
            work.position = -1;
            codes[number] = length > limit ? PM_ERROR_TOO_LONG
                            : length == 0  ? PM_ERROR_EMPTY
                            : all_ascii    ? 0
                                           : pm_check_utf8(item, length, &work.position);
            if (codes[number] != 0) {
                status = pm_add_error(errors, first + number, codes[number], work.position);
                length = 0;
            }
            if (p->delimiters_count > 0) {
                int64_t start = length > 0 ? pm_prefix_end(p, item, length) : 0;
                uint8_t *to = kept.data + kept.size;
                if (item + length + PM_STEP <= data + offsets[count])
                    pm_copy_steps(to, item + start, length - start);
                else if (length > start)
                    memcpy(to, item + start, (size_t)(length - start));
                kept.size += length - start;
                kept_offsets[number + 1] = kept.size;
            }
        }
        if (status != 0)
            break;
        if (p->delimiters_count > 0) {
            data = kept.data;
            offsets = kept_offsets;
        }
        p->digests(p->algorithm, data, offsets, count, digests);
        for (int64_t number = 0; number < count && status == 0; number++) {
            if (codes[number] == 0)
                status = pm_put_hashed_path(p, data + offsets[number], offsets[number + 1] - offsets[number],
                                            digests + number * p->digest_size, &out->bytes);
            pm_end_item(out);
        }
    }
    pm_free_bytes(&kept);
    return status;
}

int pm_encapsulation_decode(const void *parameters, const uint8_t *item, int64_t length, pm_work *work)
{
    (void)parameters;
    if (length == 0)
        return PM_ERROR_EMPTY_PATH;
    int64_t start = length;
    while (start > 0 && item[start - 1] != '/')
        start--;
    if (length - start > PM_ENCAPSULATION_LONGEST) {
        work->position = length - start;
        return PM_ERROR_TRUNCATED;
    }
    if (pm_reserve(work->out, length - start) < 0)
        return PM_NO_MEMORY;
    uint8_t *out = work->out->data + work->out->size;
    for (int64_t position = start; position < length; position++) {
        if (item[position] != '%') {
            *out++ = item[position];
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
