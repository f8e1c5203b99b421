/* Reads directories of an OCFL storage root: the hierarchy, and whole objects that have no unusual feature.
 *
 * Whatever is unusual in any way, or fails, is deferred: the caller looks at it again, and decides. Nothing here uses Python, and
 * several threads may call it at the same time.
 */
#ifndef PRESSMARK_OCFL_SCAN_H
#define PRESSMARK_OCFL_SCAN_H

#include "ocfl/inventory.h"
#include "shared/memory.h"

/* What is read of an object: nothing, its identifier, everything but content, or everything. */
enum { PM_OCFL_PLACES = 0, PM_OCFL_IDENTITIES, PM_OCFL_OBJECTS, PM_OCFL_CONTENT };

enum { PM_OCFL_DEFERRED = 0, PM_OCFL_OBJECT, PM_OCFL_REST };

/* A slice of pm_ocfl_scan.text, or of pm_ocfl_scan.paths. */
typedef struct {
    int64_t at, size;
} pm_ocfl_text;

/* A directory of the hierarchy that is deferred, an object, or the names in a directory that were not read.
 *
 * Objects are accepted only with these files, all with one hard link: a known declaration; an inventory with the sidecar of its
 * SHA-512, both the same in v1; content in v1/content, without empty directories, as the inventory describes it. */
typedef struct {
    int kind;
    pm_ocfl_text place;
    pm_ocfl_text text;         /* the identifier, or the names, each with a NUL at its end */
    int advice;                /* as of pm_ocfl_examine */
    int64_t files, bytes;      /* of content; bytes only if it was read */
} pm_ocfl_item;

/* An object whose files are read, but whose inventory is not yet examined. */
typedef struct {
    int64_t item;
    int minor;                 /* of the OCFL version that the object declares: 1.minor */
    int64_t inventory;         /* the message that is the inventory */
    pm_ocfl_text sidecar;
    int64_t first;             /* of its content files in pm_ocfl_scan.files */
} pm_ocfl_object;

/* A content file. */
typedef struct {
    pm_ocfl_text path; /* relative to the object */
    int64_t message;   /* -1 if not read */
} pm_ocfl_file;

typedef struct {
    int64_t at; /* in the names */
    const char *name;
    int kind;
} pm_ocfl_entry;

/* Writes the SHA-512 of each of `count` messages. */
typedef void (*pm_ocfl_hash)(const uint8_t *data, const int64_t *offsets, int64_t count, uint8_t *digests);

typedef struct {
    int reads, minor, clashes;
    int64_t budget; /* directories of the hierarchy, objects included, that may still be read; 0 after PM_TURN */
    int64_t latest; /* the end of PM_TURN */
    pm_ocfl_hash hash;

    pm_ocfl_item *items;
    int64_t items_count, items_capacity;
    pm_bytes text;

    /* The objects that are examined together: messages are hashed several at a time. */
    pm_ocfl_object *objects;
    int64_t objects_count, objects_capacity;
    pm_ocfl_file *files;
    int64_t files_count, files_capacity;
    pm_bytes paths; /* of the files, and the sidecars */
    pm_bytes data;  /* the messages, one after another */
    int64_t *offsets;
    int64_t messages, offsets_capacity;
    pm_bytes digests;
    pm_ocfl_string *content;
    int64_t content_capacity;
    pm_ocfl_examination examination;

    /* The entries of the directories that are being read, the deepest last. */
    pm_ocfl_entry *entries;
    int64_t entries_count, entries_capacity;
    pm_bytes names;
    pm_bytes path;   /* of the directory of the hierarchy that is being read, relative to the root */
    pm_bytes inside; /* of the content that is being read, relative to the object */
    pm_bytes scratch;
    char *buffer;
} pm_ocfl_scan;

/* Reads the directories `names` (each with a NUL at its end, in order) of the directory `top`, whose path in the root is `place`,
 * and those below them. The caller sets reads, minor, clashes, budget and hash, and all else to zero. Returns 0 or PM_NO_MEMORY.
 * Call pm_ocfl_free in both cases.
 *
 * `minor`: objects of an OCFL version later than 1.minor are deferred. `clashes`: defer directories with names that may differ only
 * in case. */
int pm_ocfl_read(pm_ocfl_scan *scan, const char *top, const char *place, const char *names, int64_t count);
void pm_ocfl_free(pm_ocfl_scan *scan);

#endif
