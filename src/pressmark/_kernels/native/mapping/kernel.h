/* The loop that runs a kernel over a column. */
#ifndef PRESSMARK_KERNEL_H
#define PRESSMARK_KERNEL_H

#include "../shared/column.h"
#include "../shared/tables.h"
#include "../shared/text.h"

typedef struct {
    int64_t index;
    int64_t position;
    int32_t code;
} pm_error;

typedef struct {
    pm_error *list;
    int64_t count;
    int64_t capacity;
} pm_errors;

/* The state of a kernel: where results go, buffers that are reused for all items of a batch, and the position of an error. */
typedef struct {
    pm_bytes *out;
    pm_bytes scratch[2];
    int64_t position;
} pm_work;

/* Appends the result for item[0 .. length) to work->out and returns 0. On an error, returns its code and sets work->position;
 * the caller discards partial results. PM_NO_MEMORY stops the batch. */
typedef int (*pm_map_item)(const void *parameters, const uint8_t *item, int64_t length, pm_work *work);

static inline int pm_add_error(pm_errors *errors, int64_t index, int code, int64_t position)
{
    if (pm_reserve_items(&errors->list, &errors->capacity, errors->count + 1, sizeof(pm_error)) < 0)
        return PM_NO_MEMORY;
    pm_error *error = &errors->list[errors->count++];
    error->index = index;
    error->position = position;
    error->code = code;
    return 0;
}

/* Maps all items of `in`. An item without a result is empty in `out` and has an error. Returns 0 or PM_NO_MEMORY. */
int pm_map_column(pm_map_item map, const void *parameters, int64_t limit, const pm_column *in, pm_column *out,
                  pm_errors *errors);

/* The strict half of an inverse: accepts identifiers[i] only if again[i] equals paths[i]. `decoding` contains the errors of
 * decoding, in order; `errors` receives all errors, in order. */
int pm_check_inverse(const pm_column *paths, const pm_column *identifiers, const pm_column *again,
                     const pm_errors *decoding, pm_column *out, pm_errors *errors);

#endif
