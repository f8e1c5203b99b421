/* Immutable runs of items and nulls. */
#ifndef PRESSMARK_CHUNK_H
#define PRESSMARK_CHUNK_H

#include "../mapping/kernel.h"
#include "abi.h"

#if defined(_MSC_VER)
#include <intrin.h>
static inline int64_t pm_add_atomically(int64_t *number, int64_t change)
{
    return _InterlockedExchangeAdd64((volatile __int64 *)number, change) + change;
}
#else
static inline int64_t pm_add_atomically(int64_t *number, int64_t change)
{
    return __atomic_add_fetch(number, change, __ATOMIC_ACQ_REL);
}
#endif

/* A foreign array, released after its last borrower. */
typedef struct {
    int64_t references;
    struct ArrowArray array;
} pm_borrowed;

/* An immutable run of items: the input and output of kernels, and exports. */
typedef struct {
    int64_t references;
    pm_column column;      /* bytes.size is the size of the items; offsets[0] need not be 0 */
    uint8_t *own_data;     /* owned memory; NULL if the column borrows */
    int64_t *own_offsets;
    uint8_t *validity;     /* one bit for each item, from bit 0; NULL without nulls */
    int64_t null_count;
    pm_borrowed *borrowed; /* the owner of borrowed bytes, or NULL */
} pm_chunk;

static inline int pm_bit(const uint8_t *bits, int64_t position)
{
    return bits[position >> 3] >> (position & 7) & 1;
}

static inline void pm_clear_bit(uint8_t *bits, int64_t position)
{
    bits[position >> 3] &= (uint8_t)~(1 << (position & 7));
}

void pm_drop_borrowed(pm_borrowed *borrowed);
pm_chunk *pm_new_chunk(void);
void pm_drop_chunk(pm_chunk *chunk);
/* Copies `count` bits from bit `first` to bit 0; the bits after them become 0. */
void pm_copy_bits(uint8_t *out, const uint8_t *bits, int64_t first, int64_t count);
/* The number of zeros among the first `count` bits; the bits after them are 0. */
int64_t pm_count_nulls(const uint8_t *bits, int64_t count);
/* Returns a bitmap of `count` ones, or NULL. */
uint8_t *pm_new_validity(int64_t count);
/* Creates a chunk of a kernel's results for `source` and takes ownership of the column. With `nullify`, items with an error
 * become null; otherwise *found is set to the first error of an item that is not null. Returns NULL if memory runs out; the
 * caller then still owns `made`. */
pm_chunk *pm_result_chunk(pm_column *made, const pm_chunk *source, const pm_errors *errors, int nullify,
                          pm_error *found);
int pm_chunk_is_utf8(const pm_chunk *chunk);
/* Returns a chunk with room for all `chunks` and with their validity. pm_copy_chunk copies the items. */
pm_chunk *pm_new_concatenation(pm_chunk *const *chunks, int64_t chunk_count);
/* Copies the items of `chunk` to item `first` and byte `at` of the whole. */
void pm_copy_chunk(pm_chunk *whole, const pm_chunk *chunk, int64_t first, int64_t at);

#endif
