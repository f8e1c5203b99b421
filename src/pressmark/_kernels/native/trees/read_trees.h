/* Reads small directory trees into memory: entries, the status of each file and directory, and the contents of files in one
 * buffer. It judges nothing; records.py defines the states.
 *
 * Nothing here needs the GIL, and several threads may read different trees.
 */
#ifndef PRESSMARK_READ_TREES_H
#define PRESSMARK_READ_TREES_H

#include "../shared/memory.h"

/* In the order of the words in trees.pyx. */
enum { PM_TREE_WHOLE, PM_TREE_LARGE, PM_TREE_UNREADABLE, PM_TREE_ODD, PM_TREE_REST };
enum { PM_FILE_WHOLE, PM_FILE_UNWANTED, PM_FILE_LARGE, PM_FILE_CHANGING, PM_FILE_UNREADABLE };
enum { PM_OTHER_LINK, PM_OTHER_SPECIAL, PM_OTHER_DEVICE, PM_OTHER_CLOSED };
enum { PM_CONTENT_NAMES, PM_CONTENT_NONE, PM_CONTENT_OPEN, PM_CONTENT_ALL };

/* As Wanted in records.py. */
typedef struct {
    const char *marker, *skip;
    const char *const *prefixes;
    int64_t prefixes_count, first;
    int content, clashes, twice, inside;
    int64_t entries, depth, total, file, budget;
    int64_t together; /* bytes of contents after which a call returns */
} pm_wanted;

/* A file or directory, or another entry. */
typedef struct {
    int64_t path, length; /* in pm_trees.paths, relative to the tree */
    int64_t size, mtime, ctime, links; /* times in nanoseconds */
    uint64_t inode;
    uint32_t mode;
    int state;       /* of a file; of another entry its kind */
    int error;       /* an errno */
    int64_t content; /* of a file its number, or -1; of a directory the number of its entries */
} pm_tree_row;

typedef struct {
    pm_tree_row *list;
    int64_t count, capacity;
} pm_tree_rows;

typedef struct {
    int state, error;
    int64_t path, length; /* in pm_trees.paths */
    uint64_t device;
    pm_tree_row top;
    int64_t files, directories, others; /* the first of its rows; they end where those of the next tree begin */
} pm_tree;

/* An entry of a directory that is being read. */
typedef struct {
    int64_t at;       /* of its name in pm_trees.names */
    const char *name; /* while entries are sorted */
    int kind;
} pm_tree_name;

typedef struct {
    const pm_wanted *wanted;
    pm_tree *trees;
    int64_t count, capacity;
    pm_tree_rows files, directories, others;
    pm_bytes paths, data;
    int64_t *offsets; /* of the contents in data, one more than their number */
    int64_t contents, offsets_capacity;

    /* During a call: the budget that is left; the path of the current tree or the directory above it, and in the tree; */
    int64_t budget;
    pm_bytes top, inside;
    /* the entries of the open directories; */
    pm_bytes names;
    pm_tree_name *listed;
    int64_t listed_count, listed_capacity;
    /* what is left of the limits of the tree; the ends of the call and of the tree; and a buffer for directories. */
    int64_t entries, total;
    int64_t latest, patience;
    char *buffer;
} pm_trees;

typedef struct {
    const char *text;
    int64_t length;
} pm_tree_path;

/* Reads the trees at `names` below the directory `top`, or the paths `names` if `top` is empty. `trees` is zeroed. Returns
 * the number of names that were begun, or PM_NO_MEMORY. Call pm_free_trees in both cases. */
int64_t pm_read_trees(pm_trees *trees, const pm_wanted *wanted, const char *top, const pm_tree_path *names, int64_t count);
void pm_free_trees(pm_trees *trees);

#endif
