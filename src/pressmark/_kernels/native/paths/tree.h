/* Counts of the directories of paths that arrive in the order of their folded keys, without storing them: a directory is
 * counted after the last path in it. pure/path_tree.py defines the counts. */
#ifndef PRESSMARK_TREE_H
#define PRESSMARK_TREE_H

#include "../shared/memory.h"

enum {
    PM_TREE_LARGEST = 20,      /* directories that are reported */
    PM_TREE_NAME = 4096,       /* bytes; longer paths are not reported, since no system supports them */
    PM_TREE_ENTRIES = 1 << 16, /* directories with up to this many entries are counted in a table */
};

/* A histogram of directories by their content. */
typedef struct {
    int64_t *table;  /* by content */
    int64_t *crowds; /* the content of each directory with more than PM_TREE_ENTRIES */
    int64_t crowd_count;
    int64_t crowd_room;
} pm_holding;

/* One spelling of a directory, stored while the same folded path has several. */
typedef struct {
    int64_t parent; /* the spelling of the parent directory; 0 for its first one */
    int64_t text;   /* the offset of its segment in the level's texts */
    int64_t length;
    int64_t size; /* the size of its whole path */
    int64_t entries;
    int64_t paths;
    uint64_t hash;
} pm_spelled;

/* The directory of the last path at one depth; depth 0 is the root. */
typedef struct {
    int64_t end;     /* the end of its path in the last path */
    int64_t key_end; /* the end of its key in the last key */
    int64_t entries; /* child directories */
    int64_t paths;   /* including its own path; counted at depth 1 only */
    int64_t current; /* the spelling in the last path; -1 while there is only one */
    pm_spelled *spelled;
    int64_t spelled_count;
    int64_t spelled_room;
    pm_bytes texts;
    int64_t *slots; /* a hash table of the spellings; slot_count is a power of two */
    int64_t slot_count;
} pm_depth;

typedef struct {
    int64_t entries;
    pm_bytes path; /* as written in records */
} pm_large;

typedef struct {
    pm_depth *depths;
    int64_t top; /* the depth of the last path */
    int64_t room;
    pm_bytes path; /* the last path, as written in records, and its key */
    pm_bytes key;
    int64_t *levels; /* directories at each depth, from 1 */
    int64_t level_count;
    int64_t level_room;
    int64_t leaves;
    pm_holding fan_out;   /* child directories of a directory */
    pm_holding top_level; /* paths in a directory directly below the root */
    pm_large largest[PM_TREE_LARGEST]; /* a heap; the least is first */
    int64_t largest_count;
    pm_bytes named; /* a buffer for a path */
    int ended;
} pm_tree;

int pm_tree_init(pm_tree *tree);
void pm_tree_free(pm_tree *tree);
/* Adds the next path, different from all before, and its key, both as written in records. Returns 0 or PM_NO_MEMORY. */
int pm_tree_add(pm_tree *tree, const uint8_t *key, int64_t key_length, const uint8_t *path, int64_t length);
/* Ends the counts; may be called again. */
int pm_tree_end(pm_tree *tree);

#endif
