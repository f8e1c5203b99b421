/* Foreign arrays of strings: checked once, then read part by part. Bytes are borrowed where a pm_column can hold them. */
#ifndef PRESSMARK_SOURCE_H
#define PRESSMARK_SOURCE_H

#include "chunk.h"

/* Problems of a foreign array. arrow.pyx has their names. */
enum {
    PM_PROBLEM_NONE,
    PM_PROBLEM_RELEASED,
    PM_PROBLEM_LENGTH,       /* length, offset */
    PM_PROBLEM_NULL_COUNT,   /* null_count, length */
    PM_PROBLEM_BUFFERS,      /* n_buffers, expected */
    PM_PROBLEM_NO_BUFFERS,
    PM_PROBLEM_NO_VALIDITY,  /* null_count */
    PM_PROBLEM_CHILDREN,     /* n_children, expected */
    PM_PROBLEM_CHILD,        /* its number */
    PM_PROBLEM_SHORT_CHILD,  /* its length, the length needed */
    PM_PROBLEM_DICTIONARY,
    PM_PROBLEM_NO_BUFFER,    /* its number */
    PM_PROBLEM_OFFSETS,      /* the item */
    PM_PROBLEM_VIEW,         /* the item */
    PM_PROBLEM_INDEX         /* the item, its index */
};

/* The array with the problem: the column, the struct around it, or its dictionary. */
enum { PM_PART_COLUMN, PM_PART_STRUCT, PM_PART_DICTIONARY };

typedef struct {
    int code;
    int part;
    int64_t first;
    int64_t second;
} pm_problem;

/* The strings of a foreign array. The size of an entry distinguishes 32-bit offsets, 64-bit offsets and
 * views; 0 is the null type. */
typedef struct {
    const uint8_t *validity; /* NULL: no nulls */
    int64_t first;           /* the position of item 0 in the buffers */
    int64_t count;
    int entry;               /* 0, 4, 8 or 16 */
    const uint8_t *entries;
    const uint8_t *data;     /* of offsets */
    const void **blocks;     /* of views */
    const uint8_t *block_sizes;
    int64_t block_count;
} pm_strings;

typedef struct {
    pm_borrowed *borrowed;
    int64_t count;
    const uint8_t *outer_validity; /* of the struct; NULL: no nulls */
    int64_t outer_first;
    int index;                     /* the size of a dictionary index in bytes, negative if signed; 0 without a dictionary */
    const uint8_t *index_validity;
    const uint8_t *indices;
    int64_t indices_first;
    pm_strings strings;            /* the strings of the column, or of its dictionary */
} pm_source;

/* The structure of a column, from its schema. */
typedef struct {
    int64_t children; /* the number of children of the struct; -1 without a struct */
    int64_t child;
    int entry;
    int index;
} pm_selection;

/* Opens the strings in source->borrowed->array and checks everything that later accesses rely on. */
int pm_open_source(pm_source *source, const pm_selection *selection, pm_problem *problem);
/* Returns items [start, stop) as a chunk that borrows the bytes if possible; nulls are empty. NULL if memory runs out. */
pm_chunk *pm_gather(const pm_source *source, int64_t start, int64_t stop);

#endif
