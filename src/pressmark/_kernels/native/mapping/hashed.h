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
    int with_identifier;            /* 0003 and 0012, not 0004 */
    int64_t name_start;             /* 0004: hex digits that the object root's name leaves out */
    const pm_delimiter *delimiters; /* 0012 */
    int64_t delimiters_count;
} pm_hashed;

/* As pm_map_column, with the digests of many items computed together. */
int pm_map_hashed_column(const pm_hashed *p, int64_t limit, const pm_column *in, pm_column *out, pm_errors *errors);
/* The loose half of 0003's inverse: the last segment, percent-decoded. */
int pm_encapsulation_decode(const void *parameters, const uint8_t *item, int64_t length, pm_work *work);

#endif
