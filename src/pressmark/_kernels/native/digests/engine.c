#include "engine.h"

#include <stdlib.h>
#include <string.h>

#include "../shared/heap.h"
#include "../shared/memory.h"
#include "file_block.h"

static inline int pm_comes_before(void *unused, const pm_file *one, const pm_file *other)
{
    (void)unused;
    return one->priority != other->priority ? one->priority > other->priority : one->ticket < other->ticket;
}

PM_DEFINE_HEAP(pm_file_heap, pm_file, void *, pm_comes_before)

static int pm_queue_push(pm_file_queue *queue, pm_file file)
{
    if (pm_reserve_items(&queue->files, &queue->capacity, queue->count + 1, sizeof(pm_file)) < 0)
        return PM_NO_MEMORY;
    pm_file_heap_rise(NULL, queue->files, queue->count++, file);
    return 0;
}

pm_file pm_queue_pop(pm_file_queue *queue)
{
    const pm_file first = queue->files[0];
    queue->count--;
    pm_file_heap_sink(NULL, queue->files, queue->count, queue->files[queue->count]);
    return first;
}

pm_block *pm_block_pop(pm_block_queue *queue)
{
    pm_block *block = queue->first;
    queue->first = block->next;
    if (queue->first == NULL)
        queue->last = NULL;
    block->next = NULL;
    return block;
}

void pm_block_push(pm_block_queue *queue, pm_block *block)
{
    block->next = NULL;
    if (queue->last)
        queue->last->next = block;
    else
        queue->first = block;
    queue->last = block;
}

static void pm_queue_free(pm_file_queue *queue)
{
    for (int64_t i = 0; i < queue->count; i++)
        free(queue->files[i].path);
    free(queue->files);
    memset(queue, 0, sizeof *queue);
}

void pm_engine_init(pm_engine *engine)
{
    memset(engine, 0, sizeof *engine);
    engine->beneath = engine->source = -1;
    pm_lock_init(&engine->lock);
    pm_lock_init(&engine->reading);
    pm_condition_init(&engine->queued);
    pm_condition_init(&engine->finished);
}

void pm_engine_free(pm_engine *engine)
{
    pm_queue_free(&engine->lanes);
    pm_queue_free(&engine->serial);
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

size_t pm_engine_submit(pm_engine *engine, const pm_file *files, size_t count)
{
    size_t taken = 0;
    pm_lock_acquire(&engine->lock);
    while (taken < count && !pm_queue_push(files[taken].path ? &engine->lanes : &engine->serial, files[taken]))
        taken++;
    pm_condition_broadcast(&engine->queued);
    pm_lock_release(&engine->lock);
    return taken;
}

void pm_engine_submit_block(pm_engine *engine, pm_block *block)
{
    pm_lock_acquire(&engine->lock);
    pm_block_push(&engine->blocks, block);
    pm_condition_signal(&engine->queued);
    pm_lock_release(&engine->lock);
}

void pm_engine_close(pm_engine *engine)
{
    pm_lock_acquire(&engine->lock);
    engine->closed = 1;
    pm_condition_broadcast(&engine->queued);
    pm_condition_broadcast(&engine->finished);
    pm_lock_release(&engine->lock);
}

void pm_engine_wake(pm_engine *engine)
{
    pm_lock_acquire(&engine->lock);
    engine->elsewhere = 1;
    pm_condition_signal(&engine->finished);
    pm_lock_release(&engine->lock);
}

pm_file_result *pm_engine_collect(pm_engine *engine, double seconds, pm_block **blocks)
{
    const pm_deadline deadline = pm_deadline_in(seconds);
    pm_lock_acquire(&engine->lock);
    while (!engine->first && !engine->finished_blocks.first && !engine->elsewhere && !engine->closed)
        if (!pm_condition_wait_until(&engine->finished, &engine->lock, &deadline))
            break;
    pm_file_result *first = engine->first;
    engine->first = engine->last = NULL;
    engine->results = 0;
    engine->elsewhere = 0;
    *blocks = engine->finished_blocks.first;
    engine->finished_blocks.first = engine->finished_blocks.last = NULL;
    pm_lock_release(&engine->lock);
    return first;
}

void pm_engine_lock_reading(pm_engine *engine)
{
    if (engine->sequential)
        pm_lock_acquire(&engine->reading);
}

void pm_engine_unlock_reading(pm_engine *engine)
{
    if (engine->sequential)
        pm_lock_release(&engine->reading);
}
