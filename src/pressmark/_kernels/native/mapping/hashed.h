/* OCFL 0003, 0004 and 0012: tuples of the identifier's digest. */
#ifndef PRESSMARK_HASHED_H
#define PRESSMARK_HASHED_H

#include "digest.h"
#include "kernel.h"

typedef struct {
    const uint8_t *text;
    int64_t length;
} pm_delimiter;

typedef struct {
    pm_digests digests;
    int algorithm;
    int64_t digest_size;
    int64_t tuple_size;
    int64_t number_of_tuples;
    int with_identifier;            /* 0003 and 0012 only */
    int64_t name_start;             /* 0004: how many hex digits the name of the object root omits */
    const pm_delimiter *delimiters; /* 0012 */
    int64_t delimiters_count;
} pm_hashed;

/* The same as pm_map_column, but computes the digests of many items at a time. */
int pm_map_hashed_column(const pm_hashed *p, int64_t limit, const pm_column *in, pm_column *out, pm_errors *errors);
/* The lenient half of the inverse of 0003: percent-decodes the last segment. */
int pm_encapsulation_decode(const void *parameters, const uint8_t *item, int64_t length, pm_work *work);

#endif
