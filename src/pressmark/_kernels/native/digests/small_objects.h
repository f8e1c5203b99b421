/* Version 1 of OCFL objects of a few small files, many in one call: their files are hashed together, and so are their inventories. */
#ifndef PRESSMARK_SMALL_OBJECTS_H
#define PRESSMARK_SMALL_OBJECTS_H

#include "lanes/lanes.h"
#include "small_trees.h"

#define PM_OBJECTS 32                /* of a batch */
#define PM_OBJECTS_BYTES (1 << 19)   /* of their files, which stay in the cache */

/* The text of an inventory between its identifier, its manifest and the state of its version; and the declaration. */
typedef struct {
    const char *before, *manifest, *state, *after;
    const char *name, *declaration;
} pm_object_texts;

typedef struct {
    const char *above, *name; /* the source, as for pm_small_tree_read */
    const char *top;          /* the new directory */
    const char *place;        /* the path that it gets later */
    const char *identifier;   /* in JSON */
    int64_t tree;             /* number of its tree; negative if it was not written */
} pm_small_object;

typedef struct {
    const pm_object_texts *texts;
    const pm_devices *devices;
    pm_level level;
    int flags;
    size_t limit; /* length of a future path, with its zero */
} pm_object_options;

typedef struct {
    int64_t trees, files;
    pm_small_tree tree[PM_OBJECTS];
    int64_t offsets[PM_OBJECTS * PM_TREE_FILES + 1];
    uint8_t digests[PM_OBJECTS * PM_TREE_FILES * 64];
    uint8_t data[PM_OBJECTS_BYTES + PM_TREE_ROOM];
} pm_object_batch;

/* Writes objects into new directories, at most PM_OBJECTS, and returns how many were tried. An object with files that
 * pm_small_tree_read does not read, or with names or content that pm_small_tree_is_plain excludes, is not written; nor is one
 * whose place is taken or too long. Part of an object may exist where writing failed. Returns -1 if there is no memory. */
int pm_write_small_objects(const pm_object_options *options, pm_small_object *objects, int count, pm_object_batch *batch);

#endif
