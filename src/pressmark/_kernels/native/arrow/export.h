/* Exports through the Arrow C data interface. Exports share chunks by reference counts, so release callbacks need neither the
 * GIL nor an order. */
#ifndef PRESSMARK_EXPORT_H
#define PRESSMARK_EXPORT_H

#include "chunk.h"

/* The number of exported structures that are not released yet. */
extern int64_t pm_exports;

/* A single column, or the fields of a struct. */
#define PM_MOST_FIELDS 4

typedef struct {
    int is_struct;
    int count;                        /* 1 without a struct */
    char formats[PM_MOST_FIELDS];     /* U, u, Z, z */
    const char *names[PM_MOST_FIELDS]; /* static, since exports may outlive all Python objects */
} pm_shape;

int pm_export_schema(const pm_shape *shape, struct ArrowSchema *out);
/* Exports one chunk for each field, all of the same length. */
int pm_export_array(const pm_shape *shape, pm_chunk *const *chunks, struct ArrowArray *out);
int pm_export_stream(const pm_shape *shape, pm_chunk *const *chunks, int64_t batches, struct ArrowArrayStream *out);

#endif
