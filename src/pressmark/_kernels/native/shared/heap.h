/* Binary heaps over arrays of any type; the first item comes before all others. */
#ifndef PRESSMARK_HEAP_H
#define PRESSMARK_HEAP_H

#include <stdint.h>

/* Defines two functions. `before(context, one, other)` takes pointers to items.
 *
 * name_rise puts `item` into the heap of `count` items, which has room for one more.
 * name_sink puts `item` into the heap of `count` items in place of the first one. */
#define PM_DEFINE_HEAP(name, type, context_type, before) \
    static inline void name##_rise(context_type context, type *heap, int64_t count, type item) \
    { \
        (void)context; \
        int64_t place = count; \
        for (; place > 0 && before(context, &item, &heap[(place - 1) / 2]); place = (place - 1) / 2) \
            heap[place] = heap[(place - 1) / 2]; \
        heap[place] = item; \
    } \
    static inline void name##_sink(context_type context, type *heap, int64_t count, type item) \
    { \
        (void)context; \
        int64_t place = 0; \
        for (;;) { \
            int64_t child = 2 * place + 1; \
            if (child >= count) \
                break; \
            if (child + 1 < count && before(context, &heap[child + 1], &heap[child])) \
                child++; \
            if (!before(context, &heap[child], &item)) \
                break; \
            heap[place] = heap[child]; \
            place = child; \
        } \
        heap[place] = item; \
    }

#endif
