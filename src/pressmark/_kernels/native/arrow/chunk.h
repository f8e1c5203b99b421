/* Runs of items and nulls that no longer change. */
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

/* A foreign array, released when nothing borrows from it any more. */
typedef struct {
    int64_t references;
    struct ArrowArray array;
} pm_borrowed;

/* A run of items that no longer changes: what kernels read, what they make, what is exported. */
typedef struct {
    int64_t references;
    pm_column column;      /* bytes.size counts the items' bytes alone; offsets[0] need not be 0 */
    uint8_t *own_data;     /* what to free; NULL where the column borrows */
    int64_t *own_offsets;
    uint8_t *validity;     /* a bit an item, from bit 0; NULL where there are no nulls */
    int64_t null_count;
    pm_borrowed *borrowed; /* what keeps borrowed bytes alive, or NULL */
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
/* Copies `count` bits from bit `first` on to bit 0 on; the bits behind them become 0. */
void pm_copy_bits(uint8_t *out, const uint8_t *bits, int64_t first, int64_t count);
/* The zeros among the first `count` bits, those behind them being 0. */
int64_t pm_count_nulls(const uint8_t *bits, int64_t count);
/* A bitmap of `count` ones, or NULL. */
uint8_t *pm_new_validity(int64_t count);
/* Makes a chunk of what a kernel made of `source`, taking over the column. With `nullify`, items with a error become
 * null; otherwise the first error of an item that is no null goes to *found. NULL: no memory; `made` is then still the
 * caller's. */
pm_chunk *pm_result_chunk(pm_column *made, const pm_chunk *source, const pm_errors *errors, int nullify,
                          pm_error *found);
int pm_chunk_is_utf8(const pm_chunk *chunk);
/* A chunk with room for all of `chunks`, its validity complete, its items to be copied by pm_copy_chunk. */
pm_chunk *pm_new_concatenation(pm_chunk *const *chunks, int64_t chunk_count);
/* Copies the items of `chunk` to where item number `first` and byte number `at` of the whole are. */
void pm_copy_chunk(pm_chunk *whole, const pm_chunk *chunk, int64_t first, int64_t at);

#endif
