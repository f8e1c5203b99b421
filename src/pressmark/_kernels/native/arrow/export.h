/* Exports through the Arrow C data interface. All exports share a chunk and count references to it, so release callbacks need
 * neither the GIL nor an order. */
#ifndef PRESSMARK_EXPORT_H
#define PRESSMARK_EXPORT_H

#include "chunk.h"

/* Structures given out and not yet released. */
extern int64_t pm_exports;

/* A column of its own, or the fields of a struct. */
#define PM_MOST_FIELDS 4

typedef struct {
    int is_struct;
    int count;                        /* 1 where there is no struct */
    char formats[PM_MOST_FIELDS];     /* U, u, Z, z */
    const char *names[PM_MOST_FIELDS]; /* static: exports outlive everything else */
} pm_shape;

int pm_export_schema(const pm_shape *shape, struct ArrowSchema *out);
/* Exports one chunk a field, all of the same length. */
int pm_export_array(const pm_shape *shape, pm_chunk *const *chunks, struct ArrowArray *out);
int pm_export_stream(const pm_shape *shape, pm_chunk *const *chunks, int64_t batches, struct ArrowArrayStream *out);

#endif
