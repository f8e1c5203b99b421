#include "worker.h"

#include <stdlib.h>
#include <string.h>

#if PM_FILES_IN_LANES
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "beneath.h"
#include "small_files.h"

/* Lanes with less data than this end together, since stopping all lanes for each would cost more. */
#define PM_QUANTUM ((size_t)2048)
/* Data is split at multiples of the largest block size, so that lanes need not reassemble blocks. */
#define PM_CUT ((size_t)128)

/* The thread that collects results is woken after this many, or when the queue runs low. It also wakes up regularly. */
#define PM_RESULTS_AT_ONCE 256

static unsigned pm_engine_banks(const pm_engine *engine, unsigned algorithm)
{
    return engine->width / pm_lanes(engine->level, engine->algorithm[algorithm]);
}

/* The source of an engine belongs to the caller. */
static void pm_lane_close(const pm_worker *worker, pm_lane *lane)
{
    if (lane->descriptor >= 0 && worker->engine->source < 0)
        close(lane->descriptor);
    lane->descriptor = -1;
}

static void pm_worker_free(pm_worker *worker)
{
    for (unsigned i = 0; i < PM_MAXIMUM_LANES; i++) {
        pm_lane_close(worker, &worker->lane[i]);
        if (worker->lane[i].target >= 0)
            close(worker->lane[i].target);
        free(worker->lane[i].file.path);
    }
    while (worker->first) {
        pm_file_result *next = worker->first->next;
        free(worker->first);
        worker->first = next;
    }
    free(worker->buffers);
    free(worker->banks);
}

static void pm_worker_init(pm_worker *worker, pm_engine *engine)
{
    memset(worker, 0, sizeof *worker);
    worker->engine = engine;
    for (unsigned i = 0; i < PM_MAXIMUM_LANES; i++)
        worker->lane[i].descriptor = worker->lane[i].target = -1;
}

/* Allocates buffers and banks for the first file; some workers never have one. */
static int pm_worker_allocate(pm_worker *worker)
{
    const pm_engine *engine = worker->engine;
    unsigned banks = 0;
    for (unsigned a = 0; a < engine->algorithms; a++)
        banks += pm_engine_banks(engine, a);
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, engine->width * PM_READ_SIZE))
        return -1;
    worker->buffers = (uint8_t *)memory;
    memory = NULL;
    if (banks && posix_memalign(&memory, 64, banks * sizeof(pm_bank)))
        return -1;
    worker->banks = (pm_bank *)memory;
    pm_bank *bank = worker->banks;
    for (unsigned a = 0; a < engine->algorithms; a++)
        for (unsigned b = 0; b < pm_engine_banks(engine, a); b++)
            pm_bank_init(bank++, engine->level, engine->algorithm[a]);
    for (unsigned i = 0; i < engine->width; i++)
        worker->lane[i].buffer = worker->buffers + i * PM_READ_SIZE;
    return 0;
}

/* Adds a result with room for `extra` bytes to the list of results to deliver. The caller sets its ending. */
static pm_file_result *pm_worker_result(pm_worker *worker, const pm_lane *lane, size_t extra)
{
    pm_file_result *result = (pm_file_result *)malloc(sizeof *result + extra);
    if (result == NULL)
        return NULL;
    memset(result, 0, sizeof *result);
    result->ticket = lane->file.ticket;
    result->mode = (uint32_t)lane->before.st_mode;
    result->size = lane->before.st_size;
    result->mtime = pm_time_of(PM_MTIME(lane->before));
    result->ctime = pm_time_of(PM_CTIME(lane->before));
    result->inode = (uint64_t)lane->before.st_ino;
    result->total = lane->total;
    if (worker->last)
        worker->last->next = result;
    else
        worker->first = result;
    worker->last = result;
    worker->results++;
    return result;
}

static void pm_worker_release(pm_worker *worker, pm_lane *lane)
{
    pm_lane_close(worker, lane);
    if (lane->target >= 0)
        close(lane->target);
    lane->target = -1;
    free(lane->file.path);
    lane->file.path = NULL;
    worker->active--;
}

static void pm_worker_start(pm_worker *worker, unsigned lane)
{
    const pm_engine *engine = worker->engine;
    pm_bank *bank = worker->banks;
    for (unsigned a = 0; a < engine->algorithms; a++) {
        const unsigned lanes = pm_lanes(engine->level, engine->algorithm[a]);
        pm_bank_start(bank + lane / lanes, lane % lanes);
        bank += engine->width / lanes;
    }
}

/* Ends a lane without digests. */
static int pm_worker_fail(pm_worker *worker, unsigned index, int ending, int error)
{
    pm_lane *lane = &worker->lane[index];
    pm_file_result *result = pm_worker_result(worker, lane, 0);
    if (result == NULL)
        return -1;
    result->ending = ending;
    result->error = error;
    pm_worker_release(worker, lane);
    pm_worker_start(worker, index);
    return 0;
}

/* How much of a file is read at a time. */
static size_t pm_lane_size(const pm_lane *lane)
{
    return lane->file.target ? PM_COPY_SIZE : PM_READ_SIZE;
}

/* Opens the file of a lane. */
static int pm_worker_open(pm_worker *worker, unsigned index)
{
    pm_lane *lane = &worker->lane[index];
    memset(&lane->before, 0, sizeof lane->before);
    lane->total = 0;
    lane->at = lane->filled = 0;
    lane->ended = 0;
    if (worker->engine->source >= 0) {
        lane->descriptor = worker->engine->source;
        lane->before.st_size = (off_t)lane->file.size;
        lane->before.st_mode = S_IFREG;
        return 0;
    }
    lane->descriptor = pm_engine_open(worker->engine, lane->file.path, worker->engine->flags);
    if (lane->descriptor < 0)
        return pm_worker_fail(worker, index, PM_FILE_ERROR, errno);
    if (fstat(lane->descriptor, &lane->before))
        return pm_worker_fail(worker, index, PM_FILE_ERROR, errno);
    if (!S_ISREG(lane->before.st_mode))
        return pm_worker_fail(worker, index, PM_FILE_NOT_REGULAR, 0);
#if defined(POSIX_FADV_SEQUENTIAL)
    if (lane->before.st_size > (off_t)pm_lane_size(lane))
        (void)posix_fadvise(lane->descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
    return 0;
}

/* Writes the buffer of a lane to its target. Returns 0 or errno. */
static int pm_worker_write(pm_lane *lane)
{
    if (lane->target < 0 && (lane->target = pm_copy_open(lane->file.target)) < 0)
        return errno;
    return pm_copy_write(lane->target, &lane->before, lane->buffer, (int64_t)lane->filled);
}

/* Reads at most `read_size` bytes of a file, or of a part of the source. */
static ssize_t pm_lane_read(const pm_worker *worker, const pm_lane *lane, size_t read_size)
{
    ssize_t size;
    const int64_t left = lane->file.size - lane->total;
    if (worker->engine->source >= 0 && left < (int64_t)read_size)
        read_size = (size_t)left;
    do
        size = worker->engine->source < 0
            ? read(lane->descriptor, lane->buffer, read_size)
            : pread(lane->descriptor, lane->buffer, read_size, (off_t)(lane->file.offset + lane->total));
    while (size < 0 && errno == EINTR);
    return size;
}

/* Refills the buffer of a lane. */
static int pm_worker_read(pm_worker *worker, unsigned index)
{
    pm_lane *lane = &worker->lane[index];
    const size_t read_size = pm_lane_size(lane);
    const ssize_t size = pm_lane_read(worker, lane, read_size);
    if (size < 0)
        return pm_worker_fail(worker, index, PM_FILE_ERROR, errno);
    lane->at = 0;
    lane->filled = (size_t)size;
    lane->total += size;
    __atomic_fetch_add(&worker->engine->read_bytes, size, __ATOMIC_RELAXED);
    const int64_t expected = lane->before.st_size;
    if (size == 0) {
        lane->ended = 1;
    } else if (worker->engine->source >= 0) {
        lane->ended = lane->total == expected;
    } else if (expected > 0 || lane->file.target) {
        /* Ends at the expected size if there was room for more, or beyond it, since a file may grow without end. */
        lane->ended = lane->total > expected || (lane->total == expected && (size_t)size < read_size);
    } else {
        /* Virtual files have size 0 and some content. A file that has grown now has a size. */
        struct stat now;
        lane->ended = fstat(lane->descriptor, &now) || now.st_size > 0;
    }
    /* A file of one block is written when it is known not to have changed. */
    if (lane->file.target && size && lane->total <= expected && !(lane->ended && lane->target < 0)) {
        const int error = pm_worker_write(lane);
        if (error)
            return pm_worker_fail(worker, index, PM_FILE_TARGET, error);
    }
    return 0;
}

/* Assigns files to free lanes, or takes a block. Returns 1 if the worker has a block or files in its lanes, 0 with the ticket of
 * a serial file, or -1 if the engine is closed or, for a worker that does not wait, empty. */
static int pm_worker_refill(pm_worker *worker, uint32_t *opened, pm_block **block, int *claimed, int64_t *ticket)
{
    pm_engine *engine = worker->engine;
    *opened = 0;
    *block = NULL;
    if (worker->active == engine->width && engine->width)
        return __atomic_load_n(&engine->closed, __ATOMIC_RELAXED) ? -1 : 1;
    int status = 1;
    pm_lock_acquire(&engine->lock);
    for (;;) {
        if (engine->closed) {
            status = -1;
            break;
        }
        if (!*claimed && engine->blocks.first) {
            *block = pm_block_pop(&engine->blocks);
            break;
        }
        /* A large serial file comes before full lanes, since the run cannot end before it does. */
        if (!*claimed && engine->serial.count) {
            *ticket = pm_queue_pop(&engine->serial).ticket;
            *claimed = 1;
        }
        if (!*claimed && engine->lanes.count) {
            /* At most this worker's share, so that the others are not idle. */
            const size_t files = engine->lanes.count + engine->active;
            const size_t share = (files + engine->workers - 1) / engine->workers;
            for (unsigned i = 0; i < engine->width && worker->active < share && engine->lanes.count; i++) {
                if (worker->lane[i].descriptor < 0) {
                    worker->lane[i].file = pm_queue_pop(&engine->lanes);
                    worker->active++;
                    engine->active++;
                    *opened |= (uint32_t)1 << i;
                }
            }
        }
        if (worker->active)
            break;
        if (*claimed) {
            status = 0;
            break;
        }
        if (!worker->waits) {
            status = -1;
            break;
        }
        pm_condition_wait(&engine->queued, &engine->lock);
    }
    pm_lock_release(&engine->lock);
    return status;
}

/* Delivers the results to the engine. */
static void pm_worker_deliver(pm_worker *worker)
{
    pm_engine *engine = worker->engine;
    if (worker->first == NULL)
        return;
    pm_lock_acquire(&engine->lock);
    if (engine->last)
        engine->last->next = worker->first;
    else
        engine->first = worker->first;
    engine->last = worker->last;
    engine->results += worker->results;
    engine->active -= (unsigned)worker->results;
    if (engine->results >= PM_RESULTS_AT_ONCE || engine->lanes.count < PM_RESULTS_AT_ONCE)
        pm_condition_signal(&engine->finished);
    pm_lock_release(&engine->lock);
    worker->first = worker->last = NULL;
    worker->results = 0;
}

/* Hashes the files of a block. Returns 0, or -1 if memory runs out or a function of `extra` fails. */
static int pm_worker_block(pm_worker *worker, pm_block *block, const pm_extra *extra)
{
    pm_engine *engine = worker->engine;
    const int failed = pm_block_run(engine, block, extra->block, extra->context);
    if (failed) /* the digests are incomplete */
        return -1;
    pm_lock_acquire(&engine->lock);
    pm_block_push(&engine->finished_blocks, block);
    pm_condition_signal(&engine->finished);
    pm_lock_release(&engine->lock);
    return 0;
}

/* Updates all banks with the next piece of each lane's data. */
static void pm_worker_compute(pm_worker *worker)
{
    const pm_engine *engine = worker->engine;
    const uint8_t *data[PM_MAXIMUM_LANES];
    size_t lengths[PM_MAXIMUM_LANES];
    size_t step = SIZE_MAX;
    for (unsigned i = 0; i < engine->width; i++) {
        const pm_lane *lane = &worker->lane[i];
        if (lane->descriptor >= 0 && lane->filled > lane->at && lane->filled - lane->at < step)
            step = lane->filled - lane->at;
    }
    if (step == SIZE_MAX)
        return;
    if (step < PM_QUANTUM)
        step = PM_QUANTUM;
    if (engine->algorithms == 0) /* no lanes to keep in step */
        step = PM_READ_SIZE;
    step = (step + PM_CUT - 1) / PM_CUT * PM_CUT;
    for (unsigned i = 0; i < engine->width; i++) {
        pm_lane *lane = &worker->lane[i];
        data[i] = NULL;
        lengths[i] = 0;
        if (lane->descriptor >= 0) {
            const size_t there = lane->filled - lane->at;
            data[i] = lane->buffer + lane->at;
            lengths[i] = there < step ? there : step;
            lane->at += lengths[i];
        }
    }
    pm_bank *bank = worker->banks;
    for (unsigned a = 0; a < engine->algorithms; a++) {
        const unsigned lanes = pm_lanes(engine->level, engine->algorithm[a]);
        for (unsigned begin = 0; begin < engine->width; begin += lanes, bank++) {
            size_t any = 0;
            for (unsigned i = begin; i < begin + lanes; i++)
                any |= lengths[i];
            if (any)
                pm_bank_update(bank, data + begin, lengths + begin);
        }
    }
}

/* Completes the copy of a lane. Returns 0 or errno. */
static int pm_worker_end_copy(pm_lane *lane)
{
    int error = lane->target < 0 ? pm_worker_write(lane) : 0;
    if (!error) {
        error = pm_copy_close(lane->target, &lane->before);
        lane->target = -1;
    }
    return error;
}

/* Creates the results of the lanes in `ended`, whose files were read completely. */
static int pm_worker_finish(pm_worker *worker, uint32_t ended)
{
    const pm_engine *engine = worker->engine;
    pm_file_result *results[PM_MAXIMUM_LANES];
    for (unsigned i = 0; i < engine->width; i++) {
        if (!(ended >> i & 1))
            continue;
        pm_lane *lane = &worker->lane[i];
        pm_file_result *result = results[i] = pm_worker_result(worker, lane, engine->digests_size);
        if (result == NULL)
            return -1;
        struct stat after, path;
        if (engine->source >= 0) {
            after = lane->before;
        } else if (fstat(lane->descriptor, &after)) {
            result->ending = PM_FILE_ERROR;
            result->error = errno;
            continue;
        }
        result->size_after = after.st_size;
        result->mtime_after = pm_time_of(PM_MTIME(after));
        if (lane->total >= PM_SLOW_SIZE && !lane->file.target && engine->source < 0) {
            if (pm_engine_stat(engine, lane->file.path, &path))
                result->there = PM_FILE_GONE;
            else if (path.st_dev != after.st_dev || path.st_ino != after.st_ino)
                result->there = PM_FILE_REPLACED;
        }
        if (result->size_after != result->size || !pm_is_same_time(result->mtime_after, result->mtime)
            || (lane->total != result->size_after && (result->size_after > 0 || lane->file.target)) || result->there)
            result->ending = PM_FILE_CHANGED;
        else if (lane->file.target && (result->error = pm_worker_end_copy(lane)))
            result->ending = PM_FILE_TARGET;
    }
    pm_bank *bank = worker->banks;
    size_t offset = 0;
    for (unsigned a = 0; a < engine->algorithms; a++) {
        const unsigned lanes = pm_lanes(engine->level, engine->algorithm[a]);
        for (unsigned begin = 0; begin < engine->width; begin += lanes, bank++) {
            const uint32_t here = ended >> begin & pm_first_lanes(lanes);
            if (!here)
                continue;
            uint8_t *out[PM_MAXIMUM_LANES];
            for (unsigned i = 0; i < lanes; i++)
                out[i] = here >> i & 1 ? results[begin + i]->digests + offset : NULL;
            pm_bank_finish_many(bank, here, out);
        }
        offset += pm_digest_size(engine->algorithm[a]);
    }
    for (unsigned i = 0; i < engine->width; i++)
        if (ended >> i & 1)
            pm_worker_release(worker, &worker->lane[i]);
    return 0;
}

/* One round: assign files, read, hash, deliver. Returns 1 to continue, 0 with the ticket of a serial file, -1 if the engine is
 * closed, or -2 if memory runs out or `extra` fails. */
static int pm_worker_round(pm_worker *worker, const pm_extra *extra, int *claimed, int64_t *ticket)
{
    pm_engine *engine = worker->engine;
    uint32_t opened;
    pm_block *block;
    const int status = pm_worker_refill(worker, &opened, &block, claimed, ticket);
    if (status != 1)
        return status;
    if (block)
        return pm_worker_block(worker, block, extra) ? -2 : 1;
    if (opened && worker->buffers == NULL && pm_worker_allocate(worker))
        return -2;
    uint32_t fresh = 0, ended = 0;
    for (unsigned i = 0; i < engine->width; i++) {
        pm_lane *lane = &worker->lane[i];
        const int is_new = opened >> i & 1;
        if (!is_new && (lane->descriptor < 0 || lane->ended || lane->at < lane->filled))
            continue;
        pm_engine_lock_reading(engine);
        int failed = is_new && pm_worker_open(worker, i);
        /* A file that did not open has a result already, and its lane is free. */
        if (!failed && lane->descriptor >= 0)
            failed = pm_worker_read(worker, i);
        pm_engine_unlock_reading(engine);
        if (failed)
            return -2;
        if (lane->descriptor >= 0 && lane->filled)
            fresh |= (uint32_t)1 << i;
    }
    if (extra->hashers && fresh && extra->hashers(extra->context, worker, fresh, 0))
        return -2;
    pm_worker_compute(worker);
    for (unsigned i = 0; i < engine->width; i++) {
        const pm_lane *lane = &worker->lane[i];
        if (lane->descriptor >= 0 && lane->ended && lane->at == lane->filled)
            ended |= (uint32_t)1 << i;
    }
    if (ended) {
        if (extra->hashers && extra->hashers(extra->context, worker, 0, ended))
            return -2;
        if (pm_worker_finish(worker, ended))
            return -2;
    }
    pm_worker_deliver(worker);
    return 1;
}

int pm_engine_work(pm_engine *engine, const pm_extra *extra, int wait, int64_t *ticket)
{
    pm_worker worker;
    int status, claimed = 0;
    pm_worker_init(&worker, engine);
    worker.waits = wait;
    pm_lock_acquire(&engine->lock);
    engine->workers++;
    pm_lock_release(&engine->lock);
    do
        status = pm_worker_round(&worker, extra, &claimed, ticket);
    while (status == 1);
    pm_lock_acquire(&engine->lock);
    engine->workers--;
    pm_lock_release(&engine->lock);
    pm_worker_free(&worker);
    return status;
}

#else /* not PM_FILES_IN_LANES */

/* Returns 0 and the ticket of a serial file, or -1 if the engine is closed or, without `wait`, empty. */
int pm_engine_work(pm_engine *engine, const pm_extra *extra, int wait, int64_t *ticket)
{
    int status = -1;
    (void)extra;
    pm_lock_acquire(&engine->lock);
    while (wait && !engine->serial.count && !engine->closed)
        pm_condition_wait(&engine->queued, &engine->lock);
    if (engine->serial.count && !engine->closed) {
        *ticket = pm_queue_pop(&engine->serial).ticket;
        status = 0;
    }
    pm_lock_release(&engine->lock);
    return status;
}

#endif
