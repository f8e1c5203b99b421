/* A worker: one thread that reads a file in each of its lanes. */
#ifndef PRESSMARK_WORKER_H
#define PRESSMARK_WORKER_H

#include "engine.h"

#if PM_FILES_IN_LANES
#include <sys/stat.h>

typedef struct {
    int descriptor; /* -1: the lane is free */
    int ended;      /* nothing comes after what is in the buffer */
    pm_file file;
    struct stat before;
    int64_t total; /* bytes that were read */
    uint8_t *buffer;
    size_t at, filled; /* what of the buffer is not computed yet */
} pm_lane;

typedef struct pm_worker {
    pm_engine *engine;
    pm_lane lane[PM_MAXIMUM_LANES];
    unsigned active;
    uint8_t *buffers;
    pm_bank *banks; /* those of the first algorithm, then those of the next */
    pm_file_result *first, *last; /* results to be handed over */
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

/* What algorithms without lanes do with the same data: called for lanes with fresh data, and for lanes that end with
 * digests. Returns -1 to give up. */
typedef int (*pm_extra_hashers)(void *context, pm_worker *worker, uint32_t fresh, uint32_t ended);

/* Works until there is a serial file to be computed elsewhere (0, and its ticket) or the engine is closed (-1); -2 where memory
 * is short or `beside` gave up. */
int pm_engine_work(pm_engine *engine, pm_extra_hashers beside, void *context, int64_t *ticket);

#endif
