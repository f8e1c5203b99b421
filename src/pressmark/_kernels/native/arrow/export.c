#include "export.h"

#include <errno.h>

int64_t pm_exports;

static inline const char *pm_format_text(char format)
{
    return format == 'U' ? "U" : format == 'u' ? "u" : format == 'Z' ? "Z" : "z";
}

typedef struct {
    struct ArrowSchema *children[PM_MOST_FIELDS];
    struct ArrowSchema fields[PM_MOST_FIELDS];
} pm_schema_fields;

static void pm_release_schema(struct ArrowSchema *schema)
{
    /* A field that a consumer has moved away has no release. */
    for (int64_t number = 0; number < schema->n_children; number++)
        if (schema->children[number]->release != NULL)
            schema->children[number]->release(schema->children[number]);
    free(schema->private_data);
    schema->release = NULL;
    pm_add_atomically(&pm_exports, -1);
}

static inline void pm_fill_schema(struct ArrowSchema *out, const char *format, const char *name)
{
    memset(out, 0, sizeof *out);
    out->format = format;
    out->name = name;
    out->flags = ARROW_FLAG_NULLABLE;
    out->release = pm_release_schema;
    pm_add_atomically(&pm_exports, 1);
}

int pm_export_schema(const pm_shape *shape, struct ArrowSchema *out)
{
    memset(out, 0, sizeof *out);
    if (!shape->is_struct) {
        pm_fill_schema(out, pm_format_text(shape->formats[0]), shape->names[0]);
        return 0;
    }
    pm_schema_fields *fields = (pm_schema_fields *)calloc(1, sizeof(pm_schema_fields));
    if (fields == NULL)
        return PM_NO_MEMORY;
    for (int number = 0; number < shape->count; number++) {
        pm_fill_schema(&fields->fields[number], pm_format_text(shape->formats[number]), shape->names[number]);
        fields->children[number] = &fields->fields[number];
    }
    pm_fill_schema(out, "+s", "");
    out->flags = 0;
    out->n_children = shape->count;
    out->children = fields->children;
    out->private_data = fields;
    return 0;
}

/* The memory of an exported array. Each field has its own, since consumers may move fields away. */
typedef struct {
    pm_chunk *chunk;
    int32_t *narrow_offsets;
    const void *buffers[3];
    struct ArrowArray *children[PM_MOST_FIELDS];
    struct ArrowArray fields[PM_MOST_FIELDS];
} pm_exported;

static void pm_release_array(struct ArrowArray *array)
{
    pm_exported *exported = (pm_exported *)array->private_data;
    for (int64_t number = 0; number < array->n_children; number++)
        if (array->children[number]->release != NULL)
            array->children[number]->release(array->children[number]);
    pm_drop_chunk(exported->chunk);
    free(exported->narrow_offsets);
    free(exported);
    array->release = NULL;
    pm_add_atomically(&pm_exports, -1);
}

static inline pm_exported *pm_new_export(struct ArrowArray *out, int64_t length)
{
    memset(out, 0, sizeof *out);
    pm_exported *exported = (pm_exported *)calloc(1, sizeof(pm_exported));
    if (exported == NULL)
        return NULL;
    out->length = length;
    out->buffers = exported->buffers;
    out->private_data = exported;
    out->release = pm_release_array;
    pm_add_atomically(&pm_exports, 1);
    return exported;
}

/* Exports one chunk. With a narrow format it has fewer than 2^31 bytes. */
static inline int pm_export_chunk(pm_chunk *chunk, char format, struct ArrowArray *out)
{
    const pm_column *column = &chunk->column;
    pm_exported *exported = pm_new_export(out, column->count);
    if (exported == NULL)
        return PM_NO_MEMORY;
    exported->chunk = chunk;
    pm_add_atomically(&chunk->references, 1);
    out->null_count = chunk->null_count;
    out->n_buffers = 3;
    exported->buffers[0] = chunk->validity;
    exported->buffers[1] = column->offsets;
    exported->buffers[2] = column->bytes.data;
    if (format == 'u' || format == 'z') {
        int32_t *narrow = exported->narrow_offsets = (int32_t *)pm_new_array(column->count + 1, sizeof(int32_t));
        if (narrow == NULL) {
            pm_release_array(out);
            return PM_NO_MEMORY;
        }
        for (int64_t item = 0; item <= column->count; item++)
            narrow[item] = (int32_t)(column->offsets[item] - column->offsets[0]);
        exported->buffers[1] = narrow;
        exported->buffers[2] = column->bytes.data + column->offsets[0];
    }
    return 0;
}

int pm_export_array(const pm_shape *shape, pm_chunk *const *chunks, struct ArrowArray *out)
{
    if (!shape->is_struct)
        return pm_export_chunk(chunks[0], shape->formats[0], out);
    pm_exported *exported = pm_new_export(out, chunks[0]->column.count);
    if (exported == NULL)
        return PM_NO_MEMORY;
    out->n_buffers = 1;
    out->children = exported->children;
    for (int number = 0; number < shape->count; number++) {
        exported->children[number] = &exported->fields[number];
        if (pm_export_chunk(chunks[number], shape->formats[number], &exported->fields[number]) < 0) {
            pm_release_array(out);
            return PM_NO_MEMORY;
        }
        out->n_children = number + 1;
    }
    return 0;
}

typedef struct {
    pm_shape shape;
    int64_t batches;
    int64_t next;
    const char *error;
    pm_chunk *chunks[]; /* batch by batch, shape.count chunks each */
} pm_exported_stream;

static int pm_stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    pm_exported_stream *exported = (pm_exported_stream *)stream->private_data;
    if (pm_export_schema(&exported->shape, out) == 0)
        return 0;
    exported->error = "out of memory";
    return ENOMEM;
}

static int pm_stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    pm_exported_stream *exported = (pm_exported_stream *)stream->private_data;
    memset(out, 0, sizeof *out);
    /* The end of a stream is an array without a release. */
    if (exported->next == exported->batches)
        return 0;
    if (pm_export_array(&exported->shape, exported->chunks + exported->next * exported->shape.count, out) == 0) {
        exported->next++;
        return 0;
    }
    exported->error = "out of memory";
    return ENOMEM;
}

static const char *pm_stream_error(struct ArrowArrayStream *stream)
{
    return ((pm_exported_stream *)stream->private_data)->error;
}

static void pm_release_stream(struct ArrowArrayStream *stream)
{
    pm_exported_stream *exported = (pm_exported_stream *)stream->private_data;
    for (int64_t number = 0; number < exported->batches * exported->shape.count; number++)
        pm_drop_chunk(exported->chunks[number]);
    free(exported);
    stream->release = NULL;
    pm_add_atomically(&pm_exports, -1);
}

int pm_export_stream(const pm_shape *shape, pm_chunk *const *chunks, int64_t batches, struct ArrowArrayStream *out)
{
    memset(out, 0, sizeof *out);
    size_t number_of_chunks = (size_t)(batches * shape->count);
    pm_exported_stream *exported =
        (pm_exported_stream *)calloc(1, sizeof(pm_exported_stream) + number_of_chunks * sizeof(pm_chunk *));
    if (exported == NULL)
        return PM_NO_MEMORY;
    exported->shape = *shape;
    exported->batches = batches;
    for (size_t number = 0; number < number_of_chunks; number++) {
        exported->chunks[number] = chunks[number];
        pm_add_atomically(&chunks[number]->references, 1);
    }
    out->get_schema = pm_stream_schema;
    out->get_next = pm_stream_next;
    out->get_last_error = pm_stream_error;
    out->release = pm_release_stream;
    out->private_data = exported;
    pm_add_atomically(&pm_exports, 1);
    return 0;
}
