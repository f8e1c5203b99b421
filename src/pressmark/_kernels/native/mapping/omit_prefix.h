/* OCFL 0002: the identifier is the path. OCFL 0006, 0007 and 0010: the rest after the right-most delimiter is the name of the
 * object. */
#ifndef PRESSMARK_OMIT_PREFIX_H
#define PRESSMARK_OMIT_PREFIX_H

#include "kernel.h"

typedef struct {
    const uint8_t *delimiter; /* in ASCII lower case */
    int64_t delimiter_length;
    int64_t tuple_size;       /* 0007 */
    int64_t number_of_tuples; /* 0007 */
    int pad_left;             /* 0007 */
    int reverse;              /* 0007 */
    const int64_t *sizes;     /* 0010 */
    int64_t sizes_count;      /* 0010 */
    int full_identifier;      /* 0010 */
} pm_omit_prefix;

int pm_flat_omit_prefix_map(const void *parameters, const uint8_t *item, int64_t length, pm_work *work);
int pm_n_tuple_omit_prefix_map(const void *parameters, const uint8_t *item, int64_t length, pm_work *work);
int pm_differential_map(const void *parameters, const uint8_t *item, int64_t length, pm_work *work);
int pm_direct_map(const void *parameters, const uint8_t *item, int64_t length, pm_work *work);

#endif
