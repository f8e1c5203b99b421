/* Digests in paths: how kernels reach the lanes, and hex. */
#ifndef PRESSMARK_DIGEST_H
#define PRESSMARK_DIGEST_H

#include "text.h"

#define PM_LARGEST_DIGEST 64

/* The digests of a packed part of a column, as lanes/lanes.h declares it; called through a pointer because the lanes live
 * in an extension module of their own. */
typedef void (*pm_digests)(int algorithm, const uint8_t *data, const int64_t *offsets, int64_t count, uint8_t *out);

/* Writes `count` hex digits of a digest, from digit number `first`. */
static inline uint8_t *pm_put_hex(uint8_t *out, const uint8_t *digest, int64_t first, int64_t count)
{
    for (int64_t digit = first; digit < first + count; digit++) {
        uint8_t octet = digest[digit >> 1];
        *out++ = (uint8_t)pm_hex_digits[digit & 1 ? octet & 15 : octet >> 4];
    }
    return out;
}

#endif
