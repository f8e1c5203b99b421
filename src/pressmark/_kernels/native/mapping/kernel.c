#include "kernel.h"

int pm_map_column(pm_map_item map, const void *parameters, int64_t limit, const pm_column *in, pm_column *out,
                  pm_errors *errors)
{
    /* Separators add half to most identifiers, and escapes a little. Reserving too much costs nothing, since untouched pages
     * are not allocated; reserving too little costs a copy. */
    int64_t size = in->count > 0 ? in->offsets[in->count] - in->offsets[0] : 0;
    if (pm_new_column(out, in->count, 2 * size + 256) < 0)
        return PM_NO_MEMORY;
    pm_work work;
    memset(&work, 0, sizeof work);
    work.out = &out->bytes;
    int status = 0;
    for (int64_t index = 0; index < in->count && status >= 0; index++) {
        const uint8_t *item = in->bytes.data + in->offsets[index];
        int64_t length = in->offsets[index + 1] - in->offsets[index];
        int64_t before = out->bytes.size;
        work.position = -1;
        status = length > limit ? PM_ERROR_TOO_LONG : map(parameters, item, length, &work);
        if (status > 0) {
            out->bytes.size = before;
            status = pm_add_error(errors, index, status, work.position);
        }
        pm_end_item(out);
    }
    pm_free_bytes(&work.scratch[0]);
    pm_free_bytes(&work.scratch[1]);
    return status;
}

/* The offset of the first different byte, or the shorter length. */
static int64_t pm_first_difference(const uint8_t *one, int64_t one_length, const uint8_t *other, int64_t other_length)
{
    int64_t shorter = one_length < other_length ? one_length : other_length;
    int64_t position = 0;
    while (position < shorter && one[position] == other[position])
        position++;
    return position;
}

int pm_check_inverse(const pm_column *paths, const pm_column *identifiers, const pm_column *again,
                     const pm_errors *decoding, pm_column *out, pm_errors *errors)
{
    if (pm_new_column(out, identifiers->count, identifiers->bytes.size) < 0)
        return PM_NO_MEMORY;
    int64_t next = 0;
    for (int64_t index = 0; index < paths->count; index++) {
        const uint8_t *path = paths->bytes.data + paths->offsets[index];
        const uint8_t *canonical = again->bytes.data + again->offsets[index];
        int64_t path_length = paths->offsets[index + 1] - paths->offsets[index];
        int64_t canonical_length = again->offsets[index + 1] - again->offsets[index];
        int status = 0;
        if (next < decoding->count && decoding->list[next].index == index) {
            status = pm_add_error(errors, index, decoding->list[next].code, decoding->list[next].position);
            next++;
        } else if (path_length != canonical_length || memcmp(path, canonical, (size_t)path_length) != 0) {
            status = pm_add_error(errors, index, PM_ERROR_NOT_CANONICAL,
                                  pm_first_difference(path, path_length, canonical, canonical_length));
        } else {
            int64_t start = identifiers->offsets[index];
            status = pm_append(&out->bytes, identifiers->bytes.data + start, identifiers->offsets[index + 1] - start);
        }
        if (status < 0)
            return PM_NO_MEMORY;
        pm_end_item(out);
    }
    return 0;
}
