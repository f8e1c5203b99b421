/* Whole small objects: written from a directory, and moved into their places, in one call each. */
#ifndef PRESSMARK_SMALL_OBJECTS_H
#define PRESSMARK_SMALL_OBJECTS_H

#include <stddef.h>

#include "small_files.h"

#define PM_OBJECT_FILES 15
#define PM_OBJECT_OCTETS 65536 /* of all files together */
#define PM_OBJECT_NAMES 4096   /* octets of all names, with a zero after each */
#define PM_OBJECT_PATH 4096
#define PM_OBJECT_DEPTH 16 /* directories that are open at a time */

typedef struct {
    int64_t count;
    int64_t changed; /* when the newest was changed last, content or status, in nanoseconds */
    int64_t offsets[PM_OBJECT_FILES + 1];
    const char *files[PM_OBJECT_FILES]; /* their names below the directory, in the order of their octets */
    size_t named;
    char names[PM_OBJECT_NAMES];
    uint8_t data[PM_OBJECT_OCTETS + PM_SMALL_MOST + 1];
    uint8_t digests[PM_OBJECT_FILES * 64];
#ifndef _WIN32
    struct stat statuses[PM_OBJECT_FILES];
#endif
} pm_object;

/* What an inventory is put together from: octets that stay the same around identifier, digests and paths. */
enum {
    PM_PIECE_START = 0,      /* before the identifier */
    PM_PIECE_MANIFEST,       /* from there to the first digest of the manifest */
    PM_PIECE_MANIFEST_PATH,  /* from a digest to its path */
    PM_PIECE_MANIFEST_NEXT,  /* from a path to the next digest */
    PM_PIECE_STATE,          /* from the last path to the first digest of the state */
    PM_PIECE_STATE_PATH,
    PM_PIECE_STATE_NEXT,
    PM_PIECE_END,
    PM_PIECES
};

typedef struct {
    const char *octets;
    size_t size;
} pm_piece;

/* Whether every name stands in JSON as it is, and no two files have the same content. */
int pm_object_is_plain(const pm_object *object);
size_t pm_object_inventory_size(const pm_object *object, const pm_piece *pieces, size_t identifier);
/* Write the inventory into a buffer of its size; return how long it is. */
size_t pm_object_inventory(const pm_object *object, const pm_piece *pieces, const char *identifier, size_t octets,
                           char *inventory);
/* List and read the files of the directory that is alone in another, all on one device (any, where that is negative);
 * return 0 where that is not for this. */
int pm_object_read(pm_object *object, const char *above, const char *name, int64_t device, int flags);
/* Write the files into a directory that is there; return 0 where that failed. */
int pm_object_write(const pm_object *object, const char *directory);
/* Write a new file below a directory; return 0 where that failed. */
int pm_object_put(const char *directory, const char *ending, const char *data, size_t size);
int pm_object_is_there(const char *path);
/* Make the directories between base and place that are not there, and rename old to the place. Return 1 where that was
 * done, and 0 where anything is as it should not be: a directory above that has one of the signs, no directory, something
 * at the place, or no way to rename to what must not be there. What was made is left. */
int pm_object_move(const char *old, const char *base, const char *place, const char *const *signs, int count);

#endif
