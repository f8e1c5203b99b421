/* Pairtree cleaning and splitting in vector registers.
 *
 * Each function writes the ppath of item[0 .. length), length > 0, and returns its end, or NULL if a byte needs an escape. If
 * `cleaned`, the text is only split, which always succeeds. The functions write up to PM_PAIRTREE_SLACK bytes after the end,
 * which the caller reserves, and never read outside the item.
 */
#ifndef PRESSMARK_PAIRTREE_VECTOR_H
#define PRESSMARK_PAIRTREE_VECTOR_H

#include <stdint.h>

#include "../digests/lanes/lanes.h"

#define PM_PAIRTREE_SLACK 64

typedef uint8_t *(*pm_pairtree_put)(uint8_t *out, const uint8_t *item, int64_t length, int cleaned);

/* Returns the best function for a vector level. For `permutes_bytes` see pm_permutes_bytes. */
pm_pairtree_put pm_pairtree_put_for(pm_level level, int permutes_bytes);

#endif
