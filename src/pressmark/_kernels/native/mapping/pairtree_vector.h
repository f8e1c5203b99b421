/* Pairtree cleaning and splitting in vector registers.
 *
 * Each function writes the ppath of item[0 .. length), length > 0, and returns its end; or returns NULL where an octet
 * needs an escape, having written nothing that counts. With `cleaned` the text is cleaned already and only split, which
 * always succeeds. They write up to PM_PAIRTREE_SLACK bytes behind the end, which is the caller's to provide, and never
 * read outside the item.
 */
#ifndef PRESSMARK_PAIRTREE_VECTOR_H
#define PRESSMARK_PAIRTREE_VECTOR_H

#include <stdint.h>

#include "../digests/lanes/lanes.h"

#define PM_PAIRTREE_SLACK 64

typedef uint8_t *(*pm_pairtree_put)(uint8_t *out, const uint8_t *item, int64_t length, int cleaned);

/* The best function for a vector level. `permutes_bytes`: see pm_permutes_bytes. */
pm_pairtree_put pm_pairtree_put_for(pm_level level, int permutes_bytes);

#endif
