/* Many files at once: each worker reads one file a lane and keeps its lanes full from a queue of files.
 *
 * Files whose path is given are read here, and computed without Python as far as their algorithms have lanes; the others
 * ("serial") are only queued, and a worker returns with their ticket to have them computed elsewhere. Nothing here raises or
 * knows Python: what went wrong with a file is in its result. Every function is safe to call from several threads at once.
 */
#ifndef PRESSMARK_FILES_H
#define PRESSMARK_FILES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lane_calls.h"

#if (defined(__x86_64__) || defined(__i386__)) && (defined(__GNUC__) || defined(__clang__))
#include <cpuid.h>
/* SHA-1 and SHA-256 as instructions: leaf 7, EBX bit 29. */
static inline int pm_sha_extensions(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
}
#else
static inline int pm_sha_extensions(void)
{
    return 0;
}
#endif

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

/* --- locks ---------------------------------------------------------------------------------------------------------- */

/* Elsewhere than on POSIX there is the queue, and no file goes to lanes. */
#if defined(_WIN32)
#define PM_FILES_IN_LANES 0
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
typedef SRWLOCK pm_lock;
typedef CONDITION_VARIABLE pm_condition;
#define pm_lock_init(lock) InitializeSRWLock(lock)
#define pm_lock_free(lock) ((void)(lock))
#define pm_lock_take(lock) AcquireSRWLockExclusive(lock)
#define pm_lock_give(lock) ReleaseSRWLockExclusive(lock)
#define pm_condition_init(condition) InitializeConditionVariable(condition)
#define pm_condition_free(condition) ((void)(condition))
#define pm_condition_signal(condition) WakeConditionVariable(condition)
#define pm_condition_broadcast(condition) WakeAllConditionVariable(condition)
#define pm_condition_wait(condition, lock) SleepConditionVariableSRW(condition, lock, INFINITE, 0)
#else
#define PM_FILES_IN_LANES 1
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
typedef pthread_mutex_t pm_lock;
typedef pthread_cond_t pm_condition;
#define pm_lock_init(lock) pthread_mutex_init(lock, NULL)
#define pm_lock_free(lock) pthread_mutex_destroy(lock)
#define pm_lock_take(lock) pthread_mutex_lock(lock)
#define pm_lock_give(lock) pthread_mutex_unlock(lock)
#define pm_condition_init(condition) pthread_cond_init(condition, NULL)
#define pm_condition_free(condition) pthread_cond_destroy(condition)
#define pm_condition_signal(condition) pthread_cond_signal(condition)
#define pm_condition_broadcast(condition) pthread_cond_broadcast(condition)
#define pm_condition_wait(condition, lock) pthread_cond_wait(condition, lock)
#endif

/* A moment, from now on, until which to wait. */
#if defined(_WIN32)
typedef DWORD pm_moment;
static inline pm_moment pm_moment_in(double seconds)
{
    return (DWORD)(seconds * 1e3);
}
/* Returns 0 when the moment has passed. */
static inline int pm_condition_wait_until(pm_condition *condition, pm_lock *lock, const pm_moment *moment)
{
    return SleepConditionVariableSRW(condition, lock, *moment, 0);
}
#else
typedef struct timespec pm_moment;
static inline pm_moment pm_moment_in(double seconds)
{
    struct timespec moment;
    clock_gettime(CLOCK_REALTIME, &moment);
    const int64_t nanoseconds = moment.tv_nsec + (int64_t)(seconds * 1e9);
    moment.tv_sec += nanoseconds / 1000000000;
    moment.tv_nsec = nanoseconds % 1000000000;
    return moment;
}
/* Returns 0 when the moment has passed. */
static inline int pm_condition_wait_until(pm_condition *condition, pm_lock *lock, const pm_moment *moment)
{
    return pthread_cond_timedwait(condition, lock, moment) == 0;
}
#endif

/* 256 KiB a lane: system calls are few, and a worker's buffers stay below what its cores share of cache. */
#define PM_READ_SIZE ((size_t)256 << 10)
/* Lanes that have less than this are not worth stopping all others for: they end together, at the price of one. */
#define PM_QUANTUM ((size_t)2048)
/* Data is cut at multiples of this, the largest block there is, so that no lane has to piece its blocks together. */
#define PM_CUT ((size_t)128)
/* Where no algorithm has lanes, this many files are read before Python is asked to compute their digests: enough to forget
 * what asking costs, and few buffers. */
#define PM_FILES_AT_ONCE 16
/* The thread that waits for results is woken for so many, or when the queue runs low; it looks in a moment anyway. */
#define PM_RESULTS_AT_ONCE 256

#if PM_FILES_IN_LANES
#if defined(__APPLE__)
#define PM_MTIME(status) ((int64_t)(status).st_mtimespec.tv_sec * 1000000000 + (status).st_mtimespec.tv_nsec)
#else
#define PM_MTIME(status) ((int64_t)(status).st_mtim.tv_sec * 1000000000 + (status).st_mtim.tv_nsec)
#endif
#endif

/* --- the queues ----------------------------------------------------------------------------------------------------- */

typedef struct {
    pm_file *files; /* a binary heap */
    size_t count, capacity;
} pm_heap;

static inline int pm_before(const pm_file *a, const pm_file *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->ticket < b->ticket;
}

static inline int pm_heap_push(pm_heap *heap, pm_file file)
{
    if (heap->count == heap->capacity) {
        const size_t capacity = heap->capacity ? 2 * heap->capacity : 256;
        pm_file *files = (pm_file *)realloc(heap->files, capacity * sizeof *files);
        if (files == NULL)
            return -1;
        heap->files = files;
        heap->capacity = capacity;
    }
    size_t at = heap->count++;
    while (at && pm_before(&file, &heap->files[(at - 1) / 2])) {
        heap->files[at] = heap->files[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->files[at] = file;
    return 0;
}

static inline pm_file pm_heap_pop(pm_heap *heap)
{
    const pm_file first = heap->files[0];
    const pm_file last = heap->files[--heap->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && pm_before(&heap->files[child + 1], &heap->files[child]))
            child++;
        if (!pm_before(&heap->files[child], &last))
            break;
        heap->files[at] = heap->files[child];
        at = child;
    }
    heap->files[at] = last;
    return first;
}

static inline void pm_heap_free(pm_heap *heap)
{
    for (size_t i = 0; i < heap->count; i++)
        free(heap->files[i].path);
    free(heap->files);
    heap->files = NULL;
    heap->count = heap->capacity = 0;
}

/* --- the engine ----------------------------------------------------------------------------------------------------- */

typedef struct {
    const pm_lane_calls *calls;
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
    pm_heap lanes, serial;
    unsigned workers; /* threads that are in here */
    unsigned active;  /* files in lanes */
    pm_file_result *first, *last;
    size_t results;
    int elsewhere; /* results that wait outside of here */
    int closed;
    int64_t read_bytes; /* atomic */
    pm_lock reading; /* held by the one who reads, where reading is sequential */
} pm_engine;

static inline void pm_engine_init(pm_engine *engine)
{
    memset(engine, 0, sizeof *engine);
    engine->beneath = -1;
    pm_lock_init(&engine->lock);
    pm_lock_init(&engine->reading);
    pm_condition_init(&engine->queued);
    pm_condition_init(&engine->finished);
}

/* Only when no thread is in here any more. */
static inline void pm_engine_free(pm_engine *engine)
{
    pm_heap_free(&engine->lanes);
    pm_heap_free(&engine->serial);
    while (engine->first) {
        pm_file_result *next = engine->first->next;
        free(engine->first);
        engine->first = next;
    }
    pm_condition_free(&engine->queued);
    pm_condition_free(&engine->finished);
    pm_lock_free(&engine->reading);
    pm_lock_free(&engine->lock);
}

/* Takes over the files and their paths, and returns how many of them: less than all where memory is short. */
static inline size_t pm_engine_submit(pm_engine *engine, const pm_file *files, size_t count)
{
    size_t taken = 0;
    pm_lock_take(&engine->lock);
    while (taken < count && !pm_heap_push(files[taken].path ? &engine->lanes : &engine->serial, files[taken]))
        taken++;
    pm_condition_broadcast(&engine->queued);
    pm_lock_give(&engine->lock);
    return taken;
}

static inline void pm_engine_close(pm_engine *engine)
{
    pm_lock_take(&engine->lock);
    engine->closed = 1;
    pm_condition_broadcast(&engine->queued);
    pm_condition_broadcast(&engine->finished);
    pm_lock_give(&engine->lock);
}

/* Says that a result waits outside of here. */
static inline void pm_engine_wake(pm_engine *engine)
{
    pm_lock_take(&engine->lock);
    engine->elsewhere = 1;
    pm_condition_signal(&engine->finished);
    pm_lock_give(&engine->lock);
}

/* Waits for results, at most so long, and returns the list of those that are there. */
static inline pm_file_result *pm_engine_collect(pm_engine *engine, double seconds)
{
    const pm_moment moment = pm_moment_in(seconds);
    pm_lock_take(&engine->lock);
    while (!engine->first && !engine->elsewhere && !engine->closed)
        if (!pm_condition_wait_until(&engine->finished, &engine->lock, &moment))
            break;
    pm_file_result *first = engine->first;
    engine->first = engine->last = NULL;
    engine->results = 0;
    engine->elsewhere = 0;
    pm_lock_give(&engine->lock);
    return first;
}

static inline void pm_engine_lock_reading(pm_engine *engine)
{
    if (engine->sequential)
        pm_lock_take(&engine->reading);
}

static inline void pm_engine_unlock_reading(pm_engine *engine)
{
    if (engine->sequential)
        pm_lock_give(&engine->reading);
}

/* --- paths beneath a directory --------------------------------------------------------------------------------------- */

#if PM_FILES_IN_LANES

/* Without, directories on the way must be readable. */
#if defined(O_PATH)
#define PM_PATH_ONLY O_PATH
#else
#define PM_PATH_ONLY (O_RDONLY | O_NONBLOCK)
#endif

#if defined(SYS_openat2)
/* linux/openat2.h, which older systems do not have although their kernel knows the call. */
static inline int pm_resolve(int beneath, const char *path, int flags)
{
    const struct {
        uint64_t flags, mode, resolve;
    } how = {(uint64_t)(unsigned)flags, 0, 0x02 | 0x04 | 0x08}; /* no magic links, no symbolic links, beneath */
    return (int)syscall(SYS_openat2, beneath, path, &how, sizeof how);
}
#else
static inline int pm_resolve(int beneath, const char *path, int flags)
{
    (void)beneath, (void)path, (void)flags;
    errno = ENOSYS;
    return -1;
}
#endif

/* The same, step by step. Paths have no step upwards, are not absolute, and end with a name. */
static inline int pm_resolve_by_steps(int beneath, const char *path, int flags)
{
    int at = beneath, error = 0;
    for (;;) {
        char step[256];
        path += strspn(path, "/");
        const size_t length = strcspn(path, "/");
        const int last = path[length] == 0;
        int next = -1;
        if (length < sizeof step) {
            memcpy(step, path, length);
            step[length] = 0;
            next = openat(at, step, last ? flags | O_NOFOLLOW : PM_PATH_ONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            error = errno;
            struct stat there;
            /* A link; or a directory by now, which means exchanged, and was a link. */
            if (next < 0 && error == ENOTDIR && !fstatat(at, step, &there, AT_SYMLINK_NOFOLLOW)
                && (S_ISLNK(there.st_mode) || S_ISDIR(there.st_mode)))
                error = ELOOP;
        } else {
            error = ENAMETOOLONG;
        }
        if (at != beneath)
            close(at);
        if (next < 0)
            errno = error;
        if (next < 0 || last)
            return next;
        at = next;
        path += length;
    }
}

static inline int pm_engine_open(const pm_engine *engine, const char *path, int flags)
{
    int descriptor;
    do
        descriptor = engine->beneath < 0 ? open(path, flags)
            : engine->resolves           ? pm_resolve(engine->beneath, path, flags)
                                         : pm_resolve_by_steps(engine->beneath, path, flags);
    while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

/* What a path leads to now. Returns 0, or -1 where there is nothing. */
static inline int pm_engine_stat(const pm_engine *engine, const char *path, struct stat *status)
{
    if (engine->beneath < 0)
        return engine->flags & O_NOFOLLOW ? lstat(path, status) : stat(path, status);
    const int descriptor = pm_engine_open(engine, path, PM_PATH_ONLY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0)
        return -1;
    const int failed = fstat(descriptor, status);
    close(descriptor);
    return failed;
}
#endif

/* From now on paths are relative to a directory and do not lead out of it. */
static inline void pm_engine_beneath(pm_engine *engine, int directory)
{
    engine->beneath = directory;
#if PM_FILES_IN_LANES
    /* Asked once, of a path that is always there: what a file's own refusal says is not to be confused with this. */
    const int there = pm_resolve(directory, ".", PM_PATH_ONLY | O_DIRECTORY | O_CLOEXEC);
    engine->resolves = there >= 0;
    if (there >= 0)
        close(there);
#endif
}

/* --- a worker ------------------------------------------------------------------------------------------------------- */

#if PM_FILES_IN_LANES

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

/* What algorithms without lanes do with the same data: called for lanes with fresh data, and for lanes that end with
 * digests. Returns -1 to give up. */
typedef int (*pm_beside)(void *context, pm_worker *worker, uint32_t fresh, uint32_t ended);

static inline unsigned pm_engine_banks(const pm_engine *engine, unsigned algorithm)
{
    return engine->width / engine->calls->lanes(engine->level, engine->algorithm[algorithm]);
}

static inline void pm_worker_free(pm_worker *worker)
{
    for (unsigned i = 0; i < PM_MAXIMUM_LANES; i++) {
        if (worker->lane[i].descriptor >= 0)
            close(worker->lane[i].descriptor);
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

static inline void pm_worker_init(pm_worker *worker, pm_engine *engine)
{
    memset(worker, 0, sizeof *worker);
    worker->engine = engine;
    for (unsigned i = 0; i < PM_MAXIMUM_LANES; i++)
        worker->lane[i].descriptor = -1;
}

/* Buffers and banks, when the first file comes: many a worker never has one. */
static inline int pm_worker_allocate(pm_worker *worker)
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
            engine->calls->init(bank++, engine->level, engine->algorithm[a]);
    for (unsigned i = 0; i < engine->width; i++)
        worker->lane[i].buffer = worker->buffers + i * PM_READ_SIZE;
    return 0;
}

/* Adds a result to those that will be handed over; its ending is to be filled in. */
static inline pm_file_result *pm_worker_result(pm_worker *worker, const pm_lane *lane)
{
    pm_file_result *result = (pm_file_result *)calloc(1, sizeof *result + worker->engine->digests_size);
    if (result == NULL)
        return NULL;
    result->ticket = lane->file.ticket;
    result->mode = (uint32_t)lane->before.st_mode;
    result->size = lane->before.st_size;
    result->mtime_ns = PM_MTIME(lane->before);
    result->inode = (int64_t)lane->before.st_ino;
    result->total = lane->total;
    if (worker->last)
        worker->last->next = result;
    else
        worker->first = result;
    worker->last = result;
    worker->results++;
    return result;
}

static inline void pm_worker_release(pm_worker *worker, pm_lane *lane)
{
    if (lane->descriptor >= 0)
        close(lane->descriptor);
    lane->descriptor = -1;
    free(lane->file.path);
    lane->file.path = NULL;
    worker->active--;
}

static inline void pm_worker_start(pm_worker *worker, unsigned lane)
{
    const pm_engine *engine = worker->engine;
    pm_bank *bank = worker->banks;
    for (unsigned a = 0; a < engine->algorithms; a++) {
        const unsigned lanes = engine->calls->lanes(engine->level, engine->algorithm[a]);
        engine->calls->start(bank + lane / lanes, lane % lanes);
        bank += engine->width / lanes;
    }
}

/* Ends a lane without digests. */
static inline int pm_worker_fail(pm_worker *worker, unsigned index, int ending, int error)
{
    pm_lane *lane = &worker->lane[index];
    pm_file_result *result = pm_worker_result(worker, lane);
    if (result == NULL)
        return -1;
    result->ending = ending;
    result->error = error;
    pm_worker_release(worker, lane);
    pm_worker_start(worker, index);
    return 0;
}

/* Opens the file that was put into a lane. */
static inline int pm_worker_open(pm_worker *worker, unsigned index)
{
    pm_lane *lane = &worker->lane[index];
    memset(&lane->before, 0, sizeof lane->before);
    lane->total = 0;
    lane->at = lane->filled = 0;
    lane->ended = 0;
    lane->descriptor = pm_engine_open(worker->engine, lane->file.path, worker->engine->flags);
    if (lane->descriptor < 0)
        return pm_worker_fail(worker, index, PM_FILE_ERROR, errno);
    if (fstat(lane->descriptor, &lane->before))
        return pm_worker_fail(worker, index, PM_FILE_ERROR, errno);
    if (!S_ISREG(lane->before.st_mode))
        return pm_worker_fail(worker, index, PM_FILE_NOT_REGULAR, 0);
#if defined(POSIX_FADV_SEQUENTIAL)
    if (lane->before.st_size > (off_t)PM_READ_SIZE)
        (void)posix_fadvise(lane->descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
    return 0;
}

/* Fills the buffer of a lane whose data is used up. */
static inline int pm_worker_read(pm_worker *worker, unsigned index)
{
    pm_lane *lane = &worker->lane[index];
    ssize_t size;
    do
        size = read(lane->descriptor, lane->buffer, PM_READ_SIZE);
    while (size < 0 && errno == EINTR);
    if (size < 0)
        return pm_worker_fail(worker, index, PM_FILE_ERROR, errno);
    lane->at = 0;
    lane->filled = (size_t)size;
    lane->total += size;
    __atomic_fetch_add(&worker->engine->read_bytes, size, __ATOMIC_RELAXED);
    const int64_t expected = lane->before.st_size;
    if (size == 0) {
        lane->ended = 1;
    } else if (expected > 0) {
        /* All that there should be, and no more although there was room; or more, from a file that is written to, perhaps
         * without end. */
        lane->ended = lane->total > expected || (lane->total == expected && (size_t)size < PM_READ_SIZE);
    } else {
        /* Files that the kernel makes up say 0 and hold something; one that has grown says so. */
        struct stat now;
        lane->ended = fstat(lane->descriptor, &now) || now.st_size > 0;
    }
    return 0;
}

/* Gives files to free lanes. Returns 1 when the worker has something in its lanes, 0 with a serial ticket, -1 when the
 * engine is closed. */
static inline int pm_worker_refill(pm_worker *worker, uint32_t *opened, int *claimed, int64_t *ticket)
{
    pm_engine *engine = worker->engine;
    *opened = 0;
    if (worker->active == engine->width && engine->width)
        return __atomic_load_n(&engine->closed, __ATOMIC_RELAXED) ? -1 : 1;
    int status = 1;
    pm_lock_take(&engine->lock);
    for (;;) {
        if (engine->closed) {
            status = -1;
            break;
        }
        /* A large file that waits for a worker of its own is worth more than full lanes here: its end is the run's. */
        if (!*claimed && engine->serial.count) {
            *ticket = pm_heap_pop(&engine->serial).ticket;
            *claimed = 1;
        }
        if (!*claimed && engine->lanes.count) {
            /* No more than this worker's share, or the others would have nothing while this one is busy for long. */
            const size_t files = engine->lanes.count + engine->active;
            const size_t share = (files + engine->workers - 1) / engine->workers;
            for (unsigned i = 0; i < engine->width && worker->active < share && engine->lanes.count; i++) {
                if (worker->lane[i].descriptor < 0) {
                    worker->lane[i].file = pm_heap_pop(&engine->lanes);
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
        pm_condition_wait(&engine->queued, &engine->lock);
    }
    pm_lock_give(&engine->lock);
    return status;
}

/* Hands over the results; `ended` files are in no lane any more. */
static inline void pm_worker_deliver(pm_worker *worker)
{
    pm_engine *engine = worker->engine;
    if (worker->first == NULL)
        return;
    pm_lock_take(&engine->lock);
    if (engine->last)
        engine->last->next = worker->first;
    else
        engine->first = worker->first;
    engine->last = worker->last;
    engine->results += worker->results;
    engine->active -= (unsigned)worker->results;
    if (engine->results >= PM_RESULTS_AT_ONCE || engine->lanes.count < PM_RESULTS_AT_ONCE)
        pm_condition_signal(&engine->finished);
    pm_lock_give(&engine->lock);
    worker->first = worker->last = NULL;
    worker->results = 0;
}

/* One turn of all banks over the next piece of each lane's data. */
static inline void pm_worker_compute(pm_worker *worker)
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
    if (engine->algorithms == 0) /* nothing has to keep pace with anything */
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
        const unsigned lanes = engine->calls->lanes(engine->level, engine->algorithm[a]);
        for (unsigned begin = 0; begin < engine->width; begin += lanes, bank++) {
            size_t any = 0;
            for (unsigned i = begin; i < begin + lanes; i++)
                any |= lengths[i];
            if (any)
                engine->calls->update(bank, data + begin, lengths + begin);
        }
    }
}

/* Gives results to the lanes in `ended`, whose files were read to their end. */
static inline int pm_worker_finish(pm_worker *worker, uint32_t ended)
{
    const pm_engine *engine = worker->engine;
    pm_file_result *results[PM_MAXIMUM_LANES];
    for (unsigned i = 0; i < engine->width; i++) {
        if (!(ended >> i & 1))
            continue;
        pm_lane *lane = &worker->lane[i];
        pm_file_result *result = results[i] = pm_worker_result(worker, lane);
        if (result == NULL)
            return -1;
        struct stat after, path;
        if (fstat(lane->descriptor, &after)) {
            result->ending = PM_FILE_ERROR;
            result->error = errno;
            continue;
        }
        result->size_after = after.st_size;
        result->mtime_ns_after = PM_MTIME(after);
        if (lane->total >= (int64_t)PM_READ_SIZE) {
            if (pm_engine_stat(engine, lane->file.path, &path))
                result->there = PM_FILE_GONE;
            else if (path.st_dev != after.st_dev || path.st_ino != after.st_ino)
                result->there = PM_FILE_REPLACED;
        }
        if (result->size_after != result->size || result->mtime_ns_after != result->mtime_ns
            || (lane->total != result->size_after && result->size_after > 0) || result->there)
            result->ending = PM_FILE_CHANGED;
    }
    pm_bank *bank = worker->banks;
    size_t offset = 0;
    for (unsigned a = 0; a < engine->algorithms; a++) {
        const unsigned lanes = engine->calls->lanes(engine->level, engine->algorithm[a]);
        for (unsigned begin = 0; begin < engine->width; begin += lanes, bank++) {
            const uint32_t here = ended >> begin & (((uint32_t)1 << lanes) - 1);
            if (!here)
                continue;
            uint8_t *out[PM_MAXIMUM_LANES];
            for (unsigned i = 0; i < lanes; i++)
                out[i] = here >> i & 1 ? results[begin + i]->digests + offset : NULL;
            engine->calls->finish_many(bank, here, out);
        }
        offset += engine->calls->digest_size(engine->algorithm[a]);
    }
    for (unsigned i = 0; i < engine->width; i++)
        if (ended >> i & 1)
            pm_worker_release(worker, &worker->lane[i]);
    return 0;
}

/* One round: take files, read, compute, hand over. Returns 1 to go on, 0 with a serial ticket, -1 when the engine is closed,
 * -2 where memory is short or `beside` gave up. */
static inline int pm_worker_round(pm_worker *worker, pm_beside beside, void *context, int *claimed, int64_t *ticket)
{
    pm_engine *engine = worker->engine;
    uint32_t opened;
    const int status = pm_worker_refill(worker, &opened, claimed, ticket);
    if (status != 1)
        return status;
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
        /* A file that did not open has its result, and its lane is free. */
        if (!failed && lane->descriptor >= 0)
            failed = pm_worker_read(worker, i);
        pm_engine_unlock_reading(engine);
        if (failed)
            return -2;
        if (lane->descriptor >= 0 && lane->filled)
            fresh |= (uint32_t)1 << i;
    }
    if (beside && fresh && beside(context, worker, fresh, 0))
        return -2;
    pm_worker_compute(worker);
    for (unsigned i = 0; i < engine->width; i++) {
        const pm_lane *lane = &worker->lane[i];
        if (lane->descriptor >= 0 && lane->ended && lane->at == lane->filled)
            ended |= (uint32_t)1 << i;
    }
    if (ended) {
        if (beside && beside(context, worker, 0, ended))
            return -2;
        if (pm_worker_finish(worker, ended))
            return -2;
    }
    pm_worker_deliver(worker);
    return 1;
}

/* Works until there is a serial file to be computed elsewhere (0, and its ticket) or the engine is closed (-1); -2 where memory
 * is short or `beside` gave up. */
static inline int pm_engine_work(pm_engine *engine, pm_beside beside, void *context, int64_t *ticket)
{
    pm_worker worker;
    int status, claimed = 0;
    pm_worker_init(&worker, engine);
    pm_lock_take(&engine->lock);
    engine->workers++;
    pm_lock_give(&engine->lock);
    do
        status = pm_worker_round(&worker, beside, context, &claimed, ticket);
    while (status == 1);
    pm_lock_take(&engine->lock);
    engine->workers--;
    pm_lock_give(&engine->lock);
    pm_worker_free(&worker);
    return status;
}

#else /* not PM_FILES_IN_LANES */

typedef struct {
    pm_file file;
    int64_t total;
    uint8_t *buffer;
    size_t filled;
} pm_lane;

typedef struct pm_worker {
    pm_lane lane[PM_MAXIMUM_LANES];
} pm_worker;

typedef int (*pm_beside)(void *context, pm_worker *worker, uint32_t fresh, uint32_t ended);

/* Waits for a serial file (0, and its ticket), or until the engine is closed (-1). */
static inline int pm_engine_work(pm_engine *engine, pm_beside beside, void *context, int64_t *ticket)
{
    int status = -1;
    (void)beside;
    (void)context;
    pm_lock_take(&engine->lock);
    while (!engine->serial.count && !engine->closed)
        pm_condition_wait(&engine->queued, &engine->lock);
    if (!engine->closed) {
        *ticket = pm_heap_pop(&engine->serial).ticket;
        status = 0;
    }
    pm_lock_give(&engine->lock);
    return status;
}

#endif
#endif
