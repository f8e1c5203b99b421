/* Many files at once: each worker reads one file a lane and keeps its lanes full from a queue of files.
 *
 * Files whose path is given are read here, and computed without Python as far as their algorithms have lanes; the others
 * ("serial") are only queued, and a worker returns with their ticket to have them computed elsewhere. Nothing here raises or
 * knows Python: what went wrong with a file is in its result. Every function is safe to call from several threads at once.
 */
#ifndef PRESSMARK_ENGINE_H
#define PRESSMARK_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "lanes/lanes.h"
#include "threads.h"

/* On systems without POSIX calls the engine only queues: no file is read in lanes. */
#if defined(_WIN32)
#define PM_FILES_IN_LANES 0
#else
#define PM_FILES_IN_LANES 1
#endif

/* Where no algorithm has lanes, this many files are read before Python is asked to compute their digests: enough to forget
 * what asking costs, and few buffers. */
#define PM_FILES_AT_ONCE 16

typedef struct {
    int64_t priority; /* the highest comes first */
    int64_t ticket;
    char *path; /* owned; NULL for a serial file */
} pm_file;

/* How a file in a lane ended. */
enum { PM_FILE_DIGESTS = 0, PM_FILE_ERROR, PM_FILE_NOT_REGULAR, PM_FILE_CHANGED };
/* What its path leads to afterwards; looked at only where reading took longer than a moment. */
enum { PM_FILE_THERE = 0, PM_FILE_GONE, PM_FILE_REPLACED };

typedef struct pm_file_result {
    struct pm_file_result *next;
    int64_t ticket;
    int ending;
    int error; /* errno */
    int there;
    uint32_t mode;
    int64_t size, mtime_ns, inode; /* before it was read */
    int64_t size_after, mtime_ns_after, total;
    uint8_t digests[]; /* one after another, in the order of the engine's algorithms */
} pm_file_result;

typedef struct {
    pm_file *files; /* a binary heap */
    int64_t count, capacity;
} pm_file_queue;

typedef struct {
    pm_level level;
    unsigned algorithms;
    pm_algorithm algorithm[PM_ALGORITHMS];
    size_t digests_size;
    unsigned width; /* lanes of a worker: as many as the widest algorithm has; PM_FILES_AT_ONCE without algorithms */
    int flags;      /* for open */
    int beneath;    /* descriptor of a directory that no path leads out of; -1 for paths that lead anywhere */
    int resolves;   /* the kernel sees to that by itself */
    int sequential;

    pm_lock lock; /* for everything below */
    pm_condition queued, finished;
    pm_file_queue lanes, serial;
    unsigned workers; /* threads that are in here */
    unsigned active;  /* files in lanes */
    pm_file_result *first, *last;
    size_t results;
    int elsewhere; /* results that wait outside of here */
    int closed;
    int64_t read_bytes; /* atomic */
    pm_lock reading; /* held by the one who reads, where reading is sequential */
} pm_engine;

void pm_engine_init(pm_engine *engine);
/* Only when no thread is in here any more. */
void pm_engine_free(pm_engine *engine);
/* Takes over the files and their paths, and returns how many of them: less than all where memory is short. */
size_t pm_engine_submit(pm_engine *engine, const pm_file *files, size_t count);
void pm_engine_close(pm_engine *engine);
/* Says that a result waits outside of here. */
void pm_engine_wake(pm_engine *engine);
/* Waits for results, at most so long, and returns the list of those that are there. */
pm_file_result *pm_engine_collect(pm_engine *engine, double seconds);
void pm_engine_lock_reading(pm_engine *engine);
void pm_engine_unlock_reading(pm_engine *engine);

/* The first file of a queue that is not empty; the caller holds the engine's lock. */
pm_file pm_queue_pop(pm_file_queue *queue);

#endif
