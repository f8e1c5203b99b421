/* How kernels compute digests. */
#ifndef PRESSMARK_DIGEST_H
#define PRESSMARK_DIGEST_H

#include <stdint.h>

#define PM_LARGEST_DIGEST 64

/* Computes the digests of a contiguous part of a column; see pm_digest_column in digests/lanes/lanes.h. It is a pointer
 * because the lanes are linked into another extension module. */
typedef void (*pm_digests)(int algorithm, const uint8_t *data, const int64_t *offsets, int64_t count, uint8_t *out);

#endif
