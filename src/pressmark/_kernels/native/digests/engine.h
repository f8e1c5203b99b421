/* Hashes or copies many files: each worker reads one file in each lane and refills its lanes from a queue of files.
 *
 * Files with a path are read here and hashed without Python if lanes support their algorithms. All other files ("serial") are
 * only queued: a worker returns their ticket, and the caller hashes them. Nothing here raises or uses Python; errors are part
 * of a file's result. All functions may be called by several threads at the same time.
 *
 * Small files are submitted in blocks, whose memory belongs to the caller: see file_block.h. Blocks come before all files.
 */
#ifndef PRESSMARK_ENGINE_H
#define PRESSMARK_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "../shared/times.h"
#include "lanes/lanes.h"
#include "threads.h"

/* On systems without POSIX calls the engine only queues: no file is read in lanes. */
#if defined(_WIN32)
#define PM_FILES_IN_LANES 0
#else
#define PM_FILES_IN_LANES 1
#endif

/* 128 KiB for each lane: few system calls, and the buffers of a worker fit its share of the cache. A copied block is read,
 * written and hashed before the next: those of all lanes fit the second-level cache. */
#define PM_READ_SIZE ((size_t)128 << 10)
#define PM_COPY_SIZE ((size_t)64 << 10)

/* If no algorithm has lanes, this many files are read before Python hashes them: enough to make the cost of that call
 * negligible, with few buffers. */
#define PM_FILES_AT_ONCE 16

typedef struct {
    int64_t priority; /* the highest comes first */
    int64_t ticket;
    char *path;         /* owned; NULL for a serial file */
    const char *target; /* of a copy, in the memory of `path`; NULL if the file is only hashed */
    int64_t offset, size; /* of a part of the engine's source, whose path is empty */
} pm_file;

/* The result of a file in a lane. */
enum { PM_FILE_DIGESTS = 0, PM_FILE_ERROR, PM_FILE_NOT_REGULAR, PM_FILE_CHANGED, PM_FILE_TARGET };
/* What the path refers to after reading. Checked only for files that take a while to read and are not copied. */
enum { PM_FILE_THERE = 0, PM_FILE_GONE, PM_FILE_REPLACED };
#define PM_SLOW_SIZE ((int64_t)256 << 10)

typedef struct pm_file_result {
    struct pm_file_result *next;
    int64_t ticket;
    int ending;
    int error; /* errno */
    int there;
    uint32_t mode;
    int64_t size;
    uint64_t inode;
    pm_time mtime, ctime; /* before reading */
    int64_t size_after, total;
    pm_time mtime_after;
    uint8_t digests[]; /* in the order of the engine's algorithms */
} pm_file_result;

typedef struct pm_block pm_block;

/* A queue of blocks. */
typedef struct {
    pm_block *first, *last;
} pm_block_queue;

typedef struct {
    pm_file *files; /* a binary heap */
    int64_t count, capacity;
} pm_file_queue;

typedef struct {
    pm_level level;
    unsigned algorithms;
    pm_algorithm algorithm[PM_ALGORITHMS];
    size_t digests_size;
    unsigned width; /* the lanes of a worker: those of the widest algorithm, or PM_FILES_AT_ONCE without algorithms */
    int flags;      /* for open() */
    int beneath;    /* descriptor of the directory that paths are confined to, or -1 */
    int resolves;   /* the operating system confines them */
    int walked;     /* all paths are those of files and links in directories that were listed */
    int source;     /* descriptor of the file whose parts are hashed, or -1 */
    int sequential;
    size_t hex_size;  /* of all digests of a file of a block, in hex */
    size_t hex_at[PM_ALGORITHMS]; /* where the digest of each algorithm in lanes begins */

    pm_lock lock; /* for everything below */
    pm_condition queued, finished;
    pm_file_queue lanes, serial;
    pm_block_queue blocks, finished_blocks;
    unsigned workers; /* threads in pm_engine_work */
    unsigned active;  /* files in lanes */
    pm_file_result *first, *last;
    size_t results;
    int elsewhere; /* the caller has results of serial files */
    int closed;
    int64_t read_bytes; /* atomic */
    pm_lock reading; /* held while reading, if reading is sequential */
} pm_engine;

void pm_engine_init(pm_engine *engine);
/* Must not be called while a thread uses the engine. */
void pm_engine_free(pm_engine *engine);
/* Takes ownership of the files and their paths. Returns how many were queued: fewer than `count` if memory runs out. */
size_t pm_engine_submit(pm_engine *engine, const pm_file *files, size_t count);
/* The block and its memory must exist until it is collected or no thread uses the engine any more. */
void pm_engine_submit_block(pm_engine *engine, pm_block *block);
void pm_engine_close(pm_engine *engine);
/* Signals that the caller has the result of a serial file. */
void pm_engine_wake(pm_engine *engine);
/* Waits for results at most `seconds` and returns the list of results, and in `blocks` the list of finished blocks. */
pm_file_result *pm_engine_collect(pm_engine *engine, double seconds, pm_block **blocks);
void pm_engine_lock_reading(pm_engine *engine);
void pm_engine_unlock_reading(pm_engine *engine);

/* Removes the first file of a queue that is not empty. The caller holds the engine's lock. */
pm_file pm_queue_pop(pm_file_queue *queue);
/* The same for blocks. */
pm_block *pm_block_pop(pm_block_queue *queue);
void pm_block_push(pm_block_queue *queue, pm_block *block);

#endif
