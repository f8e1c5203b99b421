/* A block of small files, hashed or copied by one thread: read one after the other, and hashed together. */
#ifndef PRESSMARK_FILE_BLOCK_H
#define PRESSMARK_FILE_BLOCK_H

#include "engine.h"
#include "small_files.h"

/* What happened to a file: it has digests, it was not read, reading it failed, or writing its copy failed. */
enum { PM_BLOCK_DIGESTS = 0, PM_BLOCK_LEFT, PM_BLOCK_FAILED, PM_BLOCK_TARGET };

typedef struct {
    int ending;
    /* The size is -1 if the path is not that of a regular file. All else is known of files that were read. */
    pm_small small;
} pm_block_file;

struct pm_block {
    pm_block *next;
    int64_t ticket;
    int64_t count;
    int64_t most; /* larger files are not read; -1: only sizes are wanted */
    const char **paths; /* owned by the caller, like all memory here */
    const char **targets; /* paths of the copies; NULL to hash only */
    pm_block_file *files;
    uint8_t *hex; /* for each file the digests of all algorithms in hex, engine->hex_size bytes */
};

/* Files of a block that are hashed together. */
typedef struct {
    int64_t count;
    int64_t *members; /* indices in the block */
    int64_t *offsets; /* member i is data[offsets[i] .. offsets[i + 1]) */
    uint8_t *data;
} pm_block_group;

/* Writes the digests of algorithms without lanes to block->hex. Returns -1 to stop. */
typedef int (*pm_extra_block)(void *context, pm_block *block, const pm_block_group *group);

/* Returns 0, or -1 if memory runs out or `extra` fails. The files are PM_BLOCK_LEFT before, with a size of -1, and if the engine
 * is closed meanwhile. */
int pm_block_run(pm_engine *engine, pm_block *block, pm_extra_block extra, void *context);

#endif
