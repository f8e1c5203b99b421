/* Inventories of OCFL objects with one version and nothing unusual.
 *
 * This is not a parser of JSON. It accepts only what has no violation and no unusual feature: no escapes, no repeated or optional
 * keys, no values but strings where strings belong. Everything else needs a full examination, which alone reports. Nothing here uses
 * Python.
 */
#ifndef PRESSMARK_OCFL_INVENTORY_H
#define PRESSMARK_OCFL_INVENTORY_H

#include "shared/memory.h"

/* Recommendations that an inventory does not follow. */
enum {
    PM_OCFL_ID_IS_NO_URI = 1,
    PM_OCFL_NO_MESSAGE = 2,
    PM_OCFL_NO_USER = 4,
    PM_OCFL_NO_ADDRESS = 8,
    PM_OCFL_ADDRESS_IS_NO_URI = 16
};

/* A string in an inventory, or the path of a content file. `digest`: 128 hex digits in an inventory, the 64 bytes of the SHA-512 of
 * a content file, or NULL. */
typedef struct {
    const uint8_t *text;
    int64_t size;
    const uint8_t *digest;
} pm_ocfl_string;

/* A manifest or a state. */
typedef struct {
    const uint8_t **digests;
    int64_t digests_count, digests_capacity;
    pm_ocfl_string *paths;
    int64_t paths_count, paths_capacity;
} pm_ocfl_block;

/* The memory of the examinations, all zeros before the first one. */
typedef struct {
    pm_ocfl_block manifest, state;
} pm_ocfl_examination;

/* Returns 1 if an inventory has no violation and describes exactly these content files, 0 if it needs a full examination, or
 * PM_NO_MEMORY.
 *
 * `minor`: the object declares OCFL 1.minor. `files`: below v1/content, their paths relative to the object; they are sorted.
 * `digest`: NULL if they were not read. */
int pm_ocfl_examine(pm_ocfl_examination *memory, const uint8_t *text, int64_t size, int minor, pm_ocfl_string *files, int64_t count,
                    pm_ocfl_string *identifier, int *advice);
void pm_ocfl_free_examination(pm_ocfl_examination *memory);

/* Finds the identifier in the beginning of an inventory. Returns 1, or 0 if the inventory must be read by other means. */
int pm_ocfl_find_identifier(const uint8_t *text, int64_t size, pm_ocfl_string *identifier);

#endif
