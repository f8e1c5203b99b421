/* UTF-8, hexadecimal digits, and the check of a path. */
#ifndef PRESSMARK_TEXT_H
#define PRESSMARK_TEXT_H

#include <stdint.h>
#include <string.h>

#include "tables.h"

static const char pm_hex_digits[] = "0123456789abcdef";
static const char pm_upper_hex_digits[] = "0123456789ABCDEF";

/* Whether all of text[0 .. length) is ASCII. */
static inline int pm_is_ascii(const uint8_t *text, int64_t length)
{
    /* memcpy reads whole words without alignment, at no cost. */
    uint64_t seen = 0;
    int64_t position = 0;
    for (; position + 8 <= length; position += 8) {
        uint64_t word;
        memcpy(&word, text + position, 8);
        seen |= word;
    }
    for (; position < length; position++)
        seen |= text[position];
    return (seen & UINT64_C(0x8080808080808080)) == 0;
}

/* The end of the last `byte` in text[start .. end); without one, at most `start`. */
static inline int64_t pm_last_end(const uint8_t *text, int64_t start, int64_t end, uint8_t byte)
{
    const uint64_t low = UINT64_C(0x7F7F7F7F7F7F7F7F), all = UINT64_C(0x0101010101010101) * byte;
    for (; end - start >= 8; end -= 8) {
        uint64_t word;
        memcpy(&word, text + end - 8, 8);
        word ^= all;
        /* The top bit of each byte that is 0: exact, because no sum carries into the next byte. */
        uint64_t found = ~(((word & low) + low) | word | low);
        if (found != 0) {
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            /* The loop below would find the same, but its branches are hard to predict. */
            return end - __builtin_clzll(found) / 8;
#else
            break;
#endif
        }
    }
    while (end > start && text[end - 1] != byte)
        end--;
    return end;
}

/* Returns the length of the UTF-8 sequence at text[0] and sets *character to its code point. Returns 0 if it is invalid (RFC
 * 3629: no overlong form, no surrogate, nothing above U+10FFFF). */
static inline int pm_decode_utf8(const uint8_t *text, int64_t length, uint32_t *character)
{
    uint8_t lead = text[0];
    *character = 0;
    if (lead < 0x80) {
        *character = lead;
        return 1;
    }
    int size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || size > length)
        return 0;
    uint32_t value = lead & (0x7Fu >> size);
    for (int position = 1; position < size; position++) {
        if ((text[position] & 0xC0) != 0x80)
            return 0;
        value = value << 6 | (text[position] & 0x3Fu);
    }
    static const uint32_t first[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (value < first[size] || (value >= 0xD800 && value <= 0xDFFF) || value > 0x10FFFF)
        return 0;
    *character = value;
    return size;
}

/* The offset of the first sequence that is not UTF-8, or -1. */
static inline int64_t pm_invalid_utf8(const uint8_t *text, int64_t length)
{
    if (pm_is_ascii(text, length))
        return -1;
    uint32_t character;
    for (int64_t position = 0; position < length;) {
        int size = pm_decode_utf8(text + position, length - position, &character);
        if (size == 0)
            return position;
        position += size;
    }
    return -1;
}

/* Returns 0 for UTF-8, otherwise PM_ERROR_NOT_UTF8 with *position set. */
static inline int pm_check_utf8(const uint8_t *text, int64_t length, int64_t *position)
{
    *position = pm_invalid_utf8(text, length);
    return *position < 0 ? 0 : PM_ERROR_NOT_UTF8;
}

/* Writes a code point, including surrogates, as UTF-8. */
static inline uint8_t *pm_put_utf8(uint8_t *out, uint32_t character)
{
    if (character < 0x80) {
        *out++ = (uint8_t)character;
    } else if (character < 0x800) {
        *out++ = (uint8_t)(0xC0 | character >> 6);
        *out++ = (uint8_t)(0x80 | (character & 0x3F));
    } else if (character < 0x10000) {
        *out++ = (uint8_t)(0xE0 | character >> 12);
        *out++ = (uint8_t)(0x80 | (character >> 6 & 0x3F));
        *out++ = (uint8_t)(0x80 | (character & 0x3F));
    } else {
        *out++ = (uint8_t)(0xF0 | character >> 18);
        *out++ = (uint8_t)(0x80 | (character >> 12 & 0x3F));
        *out++ = (uint8_t)(0x80 | (character >> 6 & 0x3F));
        *out++ = (uint8_t)(0x80 | (character & 0x3F));
    }
    return out;
}

/* Writes `count` lower-case hex digits of `bytes`, from digit number `first`. */
static inline uint8_t *pm_put_hex(uint8_t *out, const uint8_t *bytes, int64_t first, int64_t count)
{
    for (int64_t digit = first; digit < first + count; digit++) {
        uint8_t byte = bytes[digit >> 1];
        *out++ = (uint8_t)pm_hex_digits[digit & 1 ? byte & 15 : byte >> 4];
    }
    return out;
}

/* Writes `mark` and the byte in lower-case hex. */
static inline uint8_t *pm_put_escape(uint8_t *out, uint8_t mark, uint8_t byte)
{
    *out++ = mark;
    *out++ = (uint8_t)pm_hex_digits[byte >> 4];
    *out++ = (uint8_t)pm_hex_digits[byte & 15];
    return out;
}

/* Returns the byte of two hex digits of either case at text[0 .. length), or -1. */
static inline int pm_hex_pair(const uint8_t *text, int64_t length)
{
    if (length < 2 || pm_hex_value[text[0]] > 15 || pm_hex_value[text[1]] > 15)
        return -1;
    return pm_hex_value[text[0]] << 4 | pm_hex_value[text[1]];
}

/* Returns 0 for a valid path. Otherwise returns an error code and sets *position, counted from path[0]. Errors are an empty or
 * absolute path, and a segment that is empty, "." or "..", or contains a NUL. */
static inline int pm_check_path(const uint8_t *path, int64_t length, int64_t *position)
{
    *position = -1;
    if (length == 0)
        return PM_ERROR_EMPTY_PATH;
    *position = 0;
    if (path[0] == '/')
        return PM_ERROR_ABSOLUTE;
    for (int64_t start = 0; start <= length;) {
        const uint8_t *slash = start < length ? memchr(path + start, '/', (size_t)(length - start)) : NULL;
        int64_t end = slash != NULL ? slash - path : length;
        int64_t size = end - start;
        *position = start;
        if (size == 0)
            return PM_ERROR_SEGMENT_EMPTY;
        if (size == 1 && path[start] == '.')
            return PM_ERROR_SEGMENT_DOT;
        if (size == 2 && path[start] == '.' && path[start + 1] == '.')
            return PM_ERROR_SEGMENT_DOTDOT;
        const uint8_t *nul = memchr(path + start, 0, (size_t)size);
        if (nul != NULL) {
            *position = nul - path;
            return PM_ERROR_NUL;
        }
        start = end + 1;
    }
    return 0;
}

#endif
