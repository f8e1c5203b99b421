#include "clean_path.h"

#include "../shared/text.h"

/* Section "Fallback function": appends the path for the digest of hashed[0 .. length). */
static inline int pm_put_fallback(const pm_clean_path *p, const uint8_t *hashed, int64_t length, pm_work *work)
{
    uint8_t digest[PM_LARGEST_DIGEST];
    const int64_t offsets[2] = {0, length};
    p->digests(p->algorithm, hashed, offsets, 1, digest);
    int64_t digits = 2 * p->digest_size, before = work->out->size;
    if (pm_append(work->out, p->folder, p->folder_length) < 0
        || pm_reserve(work->out, p->tuples * (p->tuple_size + 1) + 2 * digits) < 0)
        return PM_NO_MEMORY;
    uint8_t *end = work->out->data + work->out->size;
    /* In the document's Go code tuples overlap. */
    int64_t step = p->gocfl ? 1 : p->tuple_size;
    for (int64_t number = 0; number < p->tuples; number++) {
        *end++ = '/';
        end = pm_put_hex(end, digest, number * step, p->tuple_size);
    }
    for (int64_t start = 0; start < digits; start += p->max_path_segment_len) {
        int64_t left = digits - start;
        *end++ = '/';
        end = pm_put_hex(end, digest, start, left < p->max_path_segment_len ? left : p->max_path_segment_len);
    }
    work->out->size = end - work->out->data;
    if (work->out->size - before > p->max_pathname_len) {
        work->position = work->out->size - before;
        return PM_ERROR_FALLBACK_TOO_LONG;
    }
    return 0;
}

/* Step 1: each run of bytes that are not UTF-8 becomes one replacement. */
static inline int pm_replace_invalid(const pm_clean_path *p, const uint8_t *item, int64_t length, pm_bytes *text)
{
    text->size = 0;
    int in_run = 0;
    for (int64_t position = 0; position < length;) {
        uint32_t character;
        int size = pm_decode_utf8(item + position, length - position, &character);
        int status = 0;
        if (size == 0 && !in_run)
            status = pm_append(text, p->replacement, p->replacement_length);
        else if (size > 0)
            status = pm_append(text, item + position, size);
        if (status < 0)
            return PM_NO_MEMORY;
        in_run = size == 0;
        position += size == 0 ? 1 : size;
    }
    return 0;
}

static inline int pm_only_periods(const uint8_t *part, int64_t length)
{
    for (int64_t position = 0; position < length; position++)
        if (part[position] != '.')
            return 0;
    return 1;
}

static inline uint8_t *pm_put_utf_code(uint8_t *out, uint32_t character)
{
    *out++ = '=';
    *out++ = 'u';
    for (int shift = 12; shift >= 0; shift -= 4)
        *out++ = (uint8_t)pm_upper_hex_digits[character >> shift & 15];
    return out;
}

/* Whether "=" is followed by u and four hex digits; with gocfl, four letters or digits. */
static inline int pm_looks_encoded(const pm_clean_path *p, const uint8_t *after, int64_t length)
{
    if (length < 5 || after[0] != 'u')
        return 0;
    for (int position = 1; position < 5; position++) {
        uint8_t lower = pm_lower[after[position]];
        int digit = lower >= '0' && lower <= '9';
        if (!digit && !(lower >= 'a' && lower <= (p->gocfl ? 'z' : 'f')))
            return 0;
    }
    return 1;
}

/* Section "When encodeUTF is true", steps 3.1 to 3.3, and the leading tilde of its example. The part is not empty. */
static inline int pm_put_encoded_part(const pm_clean_path *p, const uint8_t *part, int64_t length, pm_bytes *out)
{
    if (pm_reserve(out, 6 * length) < 0)
        return PM_NO_MEMORY;
    uint8_t *end = out->data + out->size;
    int64_t position = 0;
    if (part[0] == '~' || pm_only_periods(part, length)) {
        end = pm_put_utf_code(end, part[0]);
        position = 1;
    }
    while (position < length) {
        uint8_t byte = part[position];
        if (byte < 0x80) {
            if (pm_clean_white[byte] || pm_clean_dangerous[byte]
                || (byte == '=' && pm_looks_encoded(p, part + position + 1, length - position - 1)))
                end = pm_put_utf_code(end, byte);
            else
                *end++ = byte;
            position++;
            continue;
        }
        uint32_t character;
        int size = pm_decode_utf8(part + position, length - position, &character);
        if (pm_clean_wide_white(character)) {
            end = pm_put_utf_code(end, character);
        } else {
            memcpy(end, part + position, (size_t)size);
            end += size;
        }
        position += size;
    }
    out->size = end - out->data;
    return 0;
}

/* Section "When encodeUTF is false", steps 3.1 to 3.4. */
static inline int pm_put_replaced_part(const pm_clean_path *p, const uint8_t *part, int64_t length, pm_bytes *out)
{
    int64_t before = out->size;
    for (int64_t position = 0; position < length;) {
        uint32_t character;
        int size = pm_decode_utf8(part + position, length - position, &character);
        int white = character < 0x80 ? pm_clean_white[character] : pm_clean_wide_white(character);
        int status;
        if (white)
            status = pm_append(out, p->white, p->white_length);
        else if (character < 0x80 && pm_clean_dangerous[character])
            status = pm_append(out, p->replacement, p->replacement_length);
        else
            status = pm_append(out, part + position, size);
        if (status < 0)
            return PM_NO_MEMORY;
        position += size;
    }
    uint8_t *start = out->data + before, *end = out->data + out->size;
    while (start < end) {
        uint32_t character;
        int size = pm_decode_utf8(start, end - start, &character);
        int white = character < 0x80 ? pm_clean_white[character] : pm_clean_wide_white(character);
        if (!white && character != '-' && character != '~')
            break;
        start += size;
    }
    while (start < end) {
        int64_t size = 1;
        while (end - size > start && (end[-size] & 0xC0) == 0x80)
            size++;
        uint32_t character;
        pm_decode_utf8(end - size, size, &character);
        int stripped = character < 0x80 ? pm_clean_white[character]
                                        : pm_clean_wide_white(character)
                                              || (p->gocfl && pm_clean_wide_gocfl_right(character));
        if (!stripped)
            break;
        end -= size;
    }
    int64_t left = end - start;
    uint8_t *target = out->data + before;
    if (left > 0 && pm_only_periods(start, left)) {
        /* The replacement may be longer than the period that it replaces. */
        out->size = before;
        if (pm_append(out, p->replacement, p->replacement_length) < 0 || pm_reserve(out, left) < 0)
            return PM_NO_MEMORY;
        memset(out->data + out->size, '.', (size_t)(left - 1));
        out->size += left - 1;
        return 0;
    }
    memmove(target, start, (size_t)left);
    out->size = before + left;
    return 0;
}

/* Whether a segment is unchanged for all parameters, as most are. Periods and hyphens are common, and harmless unless they
 * come first. */
static inline int pm_is_plain(const uint8_t *part, int64_t length)
{
    if (!pm_clean_plain[part[0]])
        return 0;
    for (int64_t position = 1; position < length; position++)
        if (!pm_clean_plain[part[position]] && part[position] != '.' && part[position] != '-')
            return 0;
    return 1;
}

int pm_clean_path_map(const void *parameters, const uint8_t *item, int64_t length, pm_work *work)
{
    const pm_clean_path *p = (const pm_clean_path *)parameters;
    const uint8_t *text = item;
    int64_t text_length = length, before = work->out->size;
    if (pm_invalid_utf8(item, length) >= 0) {
        if (pm_replace_invalid(p, item, length, &work->scratch[0]) < 0)
            return PM_NO_MEMORY;
        text = work->scratch[0].data;
        text_length = work->scratch[0].size;
    }
    for (int64_t start = 0; start < text_length;) {
        const uint8_t *slash = memchr(text + start, '/', (size_t)(text_length - start));
        int64_t end = slash != NULL ? slash - text : text_length;
        if (end > start) {
            int64_t joined = work->out->size;
            if (joined > before && pm_append(work->out, "/", 1) < 0)
                return PM_NO_MEMORY;
            int64_t part = work->out->size;
            int status = pm_is_plain(text + start, end - start)
                             ? pm_append(work->out, text + start, end - start)
                         : p->encode_utf ? pm_put_encoded_part(p, text + start, end - start, work->out)
                                         : pm_put_replaced_part(p, text + start, end - start, work->out);
            if (status < 0)
                return PM_NO_MEMORY;
            if (work->out->size - part > p->max_path_segment_len) {
                work->out->size = before;
                /* Hashes the "initial identifier" of the text; with gocfl, its valid UTF-8. */
                return p->gocfl ? pm_put_fallback(p, text, text_length, work) : pm_put_fallback(p, item, length, work);
            }
            if (work->out->size == part)
                work->out->size = joined;
        }
        start = end + 1;
    }
    int64_t path_length = work->out->size - before;
    if (path_length > p->max_pathname_len) {
        if (!p->gocfl) {
            work->out->size = before;
            return pm_put_fallback(p, item, length, work);
        }
        /* gocfl hashes the cleaned path, which must be copied, since the result overwrites it. */
        pm_bytes *cleaned = &work->scratch[1];
        cleaned->size = 0;
        if (pm_append(cleaned, work->out->data + before, path_length) < 0)
            return PM_NO_MEMORY;
        work->out->size = before;
        return pm_put_fallback(p, cleaned->data, cleaned->size, work);
    }
    return pm_check_path(work->out->data + before, path_length, &work->position);
}

/* Whether a path looks like a fallback path: folder, tuples, and the digest in pieces, in lower-case hex. */
static inline int pm_is_fallback(const pm_clean_path *p, const uint8_t *path, int64_t length)
{
    int64_t digits = 2 * p->digest_size, position = p->folder_length;
    if (length <= position || memcmp(path, p->folder, (size_t)position) != 0)
        return 0;
    int64_t tuples = p->tuples;
    while (digits > 0) {
        int64_t size = p->tuple_size;
        if (tuples > 0) {
            tuples--;
        } else {
            size = digits < p->max_path_segment_len ? digits : p->max_path_segment_len;
            digits -= size;
        }
        if (position >= length || path[position++] != '/' || length - position < size)
            return 0;
        for (; size > 0; size--, position++)
            if (pm_hex_value[path[position]] > 15 || pm_lower[path[position]] != path[position])
                return 0;
    }
    return position == length;
}

int pm_clean_path_decode(const void *parameters, const uint8_t *item, int64_t length, pm_work *work)
{
    const pm_clean_path *p = (const pm_clean_path *)parameters;
    if (length == 0)
        return PM_ERROR_EMPTY_PATH;
    if (pm_is_fallback(p, item, length))
        return PM_ERROR_IS_FALLBACK;
    if (pm_reserve(work->out, length) < 0)
        return PM_NO_MEMORY;
    uint8_t *out = work->out->data + work->out->size;
    for (int64_t position = 0; position < length;) {
        uint32_t character = 0;
        int digits = 0;
        if (item[position] == '=' && length - position >= 6 && item[position + 1] == 'u') {
            for (; digits < 4; digits++) {
                uint8_t digit = item[position + 2 + digits];
                if (pm_hex_value[digit] > 15 || (digit >= 'a' && digit <= 'f'))
                    break;
                character = character << 4 | pm_hex_value[digit];
            }
        }
        if (digits < 4) {
            *out++ = item[position++];
            continue;
        }
        position += 6;
        /* An encoded surrogate is written like any other character; mapping again rejects the path. */
        out = pm_put_utf8(out, character);
    }
    work->out->size = out - work->out->data;
    return 0;
}
