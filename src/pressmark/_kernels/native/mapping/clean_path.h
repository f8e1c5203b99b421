/* OCFL 0011: paths cleaned segment by segment, with a digest if the result is too long. */
#ifndef PRESSMARK_CLEAN_PATH_H
#define PRESSMARK_CLEAN_PATH_H

#include "digest.h"
#include "kernel.h"

typedef struct {
    int encode_utf;
    int64_t max_path_segment_len;
    int64_t max_pathname_len;
    const uint8_t *replacement;
    int64_t replacement_length;
    const uint8_t *white; /* the white-space replacement after step 3.2 */
    int64_t white_length;
    pm_digests digests;
    int algorithm;
    int64_t digest_size;
    const uint8_t *folder;
    int64_t folder_length;
    int64_t tuples;
    int64_t tuple_size;
    int gocfl;
} pm_clean_path;

int pm_clean_path_map(const void *parameters, const uint8_t *item, int64_t length, pm_work *work);
/* The lenient half of the inverse with encodeUTF: decodes each =uXXXX with upper-case digits, left to right. */
int pm_clean_path_decode(const void *parameters, const uint8_t *item, int64_t length, pm_work *work);

#endif
