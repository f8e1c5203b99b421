/* A worker: one thread that reads a file in each of its lanes. */
#ifndef PRESSMARK_WORKER_H
#define PRESSMARK_WORKER_H

#include "file_block.h"

#if PM_FILES_IN_LANES
#include <sys/stat.h>

typedef struct {
    int descriptor; /* -1: the lane is free */
    int target;     /* of a copy; -1: not open */
    int ended;      /* the buffer has the last data */
    pm_file file;
    struct stat before;
    int64_t total; /* bytes read */
    uint8_t *buffer;
    size_t at, filled; /* the part of the buffer that is not hashed yet */
} pm_lane;

typedef struct pm_worker {
    pm_engine *engine;
    pm_lane lane[PM_MAXIMUM_LANES];
    unsigned active;
    int waits; /* for more files when the queue is empty */
    uint8_t *buffers;
    pm_bank *banks; /* of the first algorithm, then of the next */
    pm_file_result *first, *last; /* results to deliver */
    size_t results;
} pm_worker;

#else

typedef struct {
    pm_file file;
    int64_t total;
    uint8_t *buffer;
    size_t filled;
} pm_lane;

typedef struct pm_worker {
    pm_lane lane[PM_MAXIMUM_LANES];
} pm_worker;

#endif

/* Runs the hashers of algorithms without lanes. Called for lanes with fresh data, and for lanes that end with digests.
 * Returns -1 to stop. */
typedef int (*pm_extra_hashers)(void *context, pm_worker *worker, uint32_t fresh, uint32_t ended);

/* The functions for algorithms without lanes, NULL if there are none, and their first argument. */
typedef struct {
    pm_extra_hashers hashers;
    pm_extra_block block;
    void *context;
} pm_extra;

/* Hashes files until a serial file is next (returns 0 and its ticket) or the engine is closed (returns -1), or without `wait`
 * until no file is left (returns -1). Returns -2 if memory runs out or `extra` fails. */
int pm_engine_work(pm_engine *engine, const pm_extra *extra, int wait, int64_t *ticket);

#endif
