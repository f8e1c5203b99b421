/* Records of paths: a folded key, the spelling of the path if that differs, and a number. See pure/path_sort.py. */
#ifndef PRESSMARK_RECORDS_H
#define PRESSMARK_RECORDS_H

#include "../shared/column.h"

/* A record follows its length, a little-endian u32 on all machines. It ends with a NUL and the number. */
enum { PM_LENGTH_SIZE = 4, PM_NUMBER_SIZE = 8, PM_LEAST_RECORD = 10 };

static inline uint32_t pm_record_length(const uint8_t *place)
{
    return (uint32_t)place[0] | (uint32_t)place[1] << 8 | (uint32_t)place[2] << 16 | (uint32_t)place[3] << 24;
}

static inline void pm_put_record_length(uint8_t *place, uint32_t length)
{
    for (int byte = 0; byte < PM_LENGTH_SIZE; byte++)
        place[byte] = (uint8_t)(length >> 8 * byte);
}

static inline uint64_t pm_big_endian(const uint8_t *bytes)
{
    return (uint64_t)bytes[0] << 56 | (uint64_t)bytes[1] << 48 | (uint64_t)bytes[2] << 40 |
           (uint64_t)bytes[3] << 32 | (uint64_t)bytes[4] << 24 | (uint64_t)bytes[5] << 16 |
           (uint64_t)bytes[6] << 8 | (uint64_t)bytes[7];
}

/* Writes a path without NULs and with the slash below all other bytes, and returns its end. `out` has room for twice its
 * length. Sets *upper to a value other than 0 if `fold` changed a letter. */
static inline uint8_t *pm_write_path(const uint8_t *path, int64_t length, int fold, uint8_t *upper, uint8_t *out)
{
    uint8_t changed = 0, rare = 0;
    for (int64_t position = 0; position < length; position++) {
        uint8_t byte = path[position];
        uint8_t small = fold ? (uint8_t)(byte + ((uint8_t)(byte - 'A') < 26 ? 32 : 0)) : byte;
        changed |= small ^ byte;
        rare |= small < 2;
        out[position] = (uint8_t)(small == '/' ? 1 : small + (small < '/'));
    }
    *upper = changed;
    if (!rare)
        return out + length;
    for (int64_t position = 0; position < length; position++) {
        uint8_t byte = path[position];
        uint8_t small = fold ? (uint8_t)(byte + ((uint8_t)(byte - 'A') < 26 ? 32 : 0)) : byte;
        if (small < 2) {
            *out++ = 2;
            *out++ = (uint8_t)(2 + small);
        } else {
            *out++ = (uint8_t)(small == '/' ? 1 : small + (small < '/'));
        }
    }
    return out;
}

/* Appends the path that pm_write_path wrote as `written`. Returns 0 or PM_NO_MEMORY. */
static inline int pm_read_path(const uint8_t *written, int64_t length, pm_bytes *out)
{
    if (pm_reserve(out, length) < 0)
        return PM_NO_MEMORY;
    uint8_t *end = out->data + out->size;
    for (int64_t position = 0; position < length; position++) {
        uint8_t byte = written[position];
        if (byte == 2 && position + 1 < length)
            *end++ = (uint8_t)(written[++position] - 2);
        else
            *end++ = (uint8_t)(byte == 1 ? '/' : byte - (byte <= '/'));
    }
    out->size = end - out->data;
    return 0;
}

#endif
