/* Records of paths: a folded key, how the path is spelled if that differs, and a number. pure/path_sort.py describes them. */
#ifndef PRESSMARK_RECORDS_H
#define PRESSMARK_RECORDS_H

#include "../shared/column.h"

/* A record behind its length: u32 in little-endian order on every machine, then the record, which ends in a NUL and the
 * number. */
enum { PM_LENGTH_SIZE = 4, PM_NUMBER_SIZE = 8, PM_LEAST_RECORD = 10 };

static inline uint32_t pm_record_length(const uint8_t *place)
{
    return (uint32_t)place[0] | (uint32_t)place[1] << 8 | (uint32_t)place[2] << 16 | (uint32_t)place[3] << 24;
}

static inline void pm_put_record_length(uint8_t *place, uint32_t length)
{
    for (int octet = 0; octet < PM_LENGTH_SIZE; octet++)
        place[octet] = (uint8_t)(length >> 8 * octet);
}

static inline uint64_t pm_big_endian(const uint8_t *octets)
{
    return (uint64_t)octets[0] << 56 | (uint64_t)octets[1] << 48 | (uint64_t)octets[2] << 40 |
           (uint64_t)octets[3] << 32 | (uint64_t)octets[4] << 24 | (uint64_t)octets[5] << 16 |
           (uint64_t)octets[6] << 8 | (uint64_t)octets[7];
}

/* Writes a path without NULs, the slash below all other octets, and returns where it ends; `out` has room for twice its
 * length. `*upper` becomes something else than 0 where `fold` made a letter small. */
static inline uint8_t *pm_write_path(const uint8_t *path, int64_t length, int fold, uint8_t *upper, uint8_t *out)
{
    uint8_t changed = 0, rare = 0;
    for (int64_t position = 0; position < length; position++) {
        uint8_t octet = path[position];
        uint8_t small = fold ? (uint8_t)(octet + ((uint8_t)(octet - 'A') < 26 ? 32 : 0)) : octet;
        changed |= small ^ octet;
        rare |= small < 2;
        out[position] = (uint8_t)(small == '/' ? 1 : small + (small < '/'));
    }
    *upper = changed;
    if (!rare)
        return out + length;
    for (int64_t position = 0; position < length; position++) {
        uint8_t octet = path[position];
        uint8_t small = fold ? (uint8_t)(octet + ((uint8_t)(octet - 'A') < 26 ? 32 : 0)) : octet;
        if (small < 2) {
            *out++ = 2;
            *out++ = (uint8_t)(2 + small);
        } else {
            *out++ = (uint8_t)(small == '/' ? 1 : small + (small < '/'));
        }
    }
    return out;
}

/* Appends what was written. */
static inline int pm_read_path(const uint8_t *written, int64_t length, pm_bytes *out)
{
    if (pm_reserve(out, length) < 0)
        return PM_NO_MEMORY;
    uint8_t *end = out->data + out->size;
    for (int64_t position = 0; position < length; position++) {
        uint8_t octet = written[position];
        if (octet == 2 && position + 1 < length)
            *end++ = (uint8_t)(written[++position] - 2);
        else
            *end++ = (uint8_t)(octet == 1 ? '/' : octet - (octet <= '/'));
    }
    out->size = end - out->data;
    return 0;
}

#endif
