/* The directories of paths that come in the order of their folded keys, counted without holding them: what is known of a
 * directory is known once the last path in it has passed. The readable twin says what is counted. */
#ifndef PRESSMARK_TREE_H
#define PRESSMARK_TREE_H

#include "../shared/memory.h"

enum {
    PM_TREE_SAMPLES = 24,      /* nested samples: each holds about half of the one before */
    PM_TREE_LARGEST = 20,      /* directories that are named */
    PM_TREE_NAME = 4096,       /* octets: a longer path is not named, for no system has it */
    PM_TREE_ENTRIES = 1 << 16, /* up to so many, directories are counted in a table by what they hold */
};

/* How many directories hold how much. */
typedef struct {
    int64_t *table;  /* by what they hold */
    int64_t *crowds; /* what each holds that has more than PM_TREE_ENTRIES */
    int64_t crowd_count;
    int64_t crowd_room;
} pm_holding;

/* One spelling of a directory, kept while others of the same folded path are about. */
typedef struct {
    int64_t parent; /* which spelling of the directory above; 0 for the only one, which that will be once it is kept */
    int64_t text;   /* of its segment, in the level's texts */
    int64_t length;
    int64_t size; /* of its whole path */
    int64_t entries;
    int64_t paths;
    uint32_t seen;
    uint64_t hash;
} pm_spelled;

/* The directory on the way to the last path at one depth; depth 0 is the root. */
typedef struct {
    int64_t end;     /* of its path in the last path */
    int64_t key_end; /* of its key in the last key */
    int64_t entries; /* directories in it */
    int64_t paths;   /* in it, and its own; counted at depth 1 only */
    uint32_t seen;   /* the samples that it is in */
    int64_t current; /* which of its spellings the last path has; -1 while it has only one */
    pm_spelled *spelled;
    int64_t spelled_count;
    int64_t spelled_room;
    pm_bytes texts;
    int64_t *slots; /* of a hash table of the spellings; as many as `slot_count`, a power of two */
    int64_t slot_count;
} pm_depth;

typedef struct {
    int64_t entries;
    pm_bytes path; /* as written in records */
} pm_large;

typedef struct {
    pm_depth *depths;
    int64_t top; /* of the last path; depths above it are there, but empty */
    int64_t room;
    pm_bytes path; /* the last one, as written in records, with its key */
    pm_bytes key;
    int64_t *levels; /* directories at each depth, from 1 on */
    int64_t level_count;
    int64_t level_room;
    int64_t leaves;
    pm_holding fan_out;   /* directories in a directory */
    pm_holding top_level; /* paths in a directory directly below the root */
    pm_large largest[PM_TREE_LARGEST]; /* the least of them first: a heap */
    int64_t largest_count;
    pm_bytes named; /* room to write a path in */
    uint32_t mask; /* the samples that the records of the next path are in */
    int64_t sampled[PM_TREE_SAMPLES];
    int64_t sampled_directories[PM_TREE_SAMPLES];
    int64_t sampled_leaves[PM_TREE_SAMPLES];
    int ended;
} pm_tree;

/* The samples that an item is in, by its number: bit s with a probability of 2^-s, and never without those before it
 * (the finaliser of splitmix64). */
static inline uint32_t pm_tree_mask(uint64_t number)
{
    uint64_t mixed = number + UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
    mixed ^= mixed >> 31;
    mixed |= UINT64_C(1) << (PM_TREE_SAMPLES - 1);
    uint64_t low = mixed & (~mixed + 1);
    return (uint32_t)(2 * low - 1);
}

/* Takes in the number of one of the records of the path that comes next. */
static inline void pm_tree_member(pm_tree *tree, uint64_t number)
{
    uint32_t mask = pm_tree_mask(number);
    tree->mask |= mask;
    for (int sample = 0; mask != 0; sample++, mask >>= 1)
        tree->sampled[sample]++;
}

int pm_tree_init(pm_tree *tree);
void pm_tree_free(pm_tree *tree);
/* Takes in the next path, which is not like any before it, and its key; both as written in records. The numbers of its
 * records were taken in before. Returns 0 or PM_NO_MEMORY. */
int pm_tree_add(pm_tree *tree, const uint8_t *key, int64_t key_length, const uint8_t *path, int64_t length);
/* No path comes any more; may be called again. */
int pm_tree_end(pm_tree *tree);

#endif
