/* Growing arrays and byte buffers. */
#ifndef PRESSMARK_MEMORY_H
#define PRESSMARK_MEMORY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#define PM_NO_MEMORY (-1)

#define PM_LEAST_CAPACITY 16

/* Buffers from this size on ask for large pages. A smaller buffer contains few whole ones. */
#define PM_LARGE_BUFFER (INT64_C(4) << 20)

typedef struct {
    uint8_t *data;
    int64_t size;
    int64_t capacity;
} pm_bytes;

/* A column of a million items is written once from end to end, and its page faults take longer than the mapping. Pages of
 * 2 MiB instead of 4 KiB halve the whole. This is advice only; other systems ignore it. */
static inline void pm_prefer_large_pages(void *memory, int64_t size)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (size >= PM_LARGE_BUFFER) {
        uintptr_t page = (uintptr_t)2 << 20;
        uintptr_t start = ((uintptr_t)memory + page - 1) & ~(page - 1);
        uintptr_t end = ((uintptr_t)memory + (uintptr_t)size) & ~(page - 1);
        if (start < end)
            (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
    }
#else
    (void)memory;
    (void)size;
#endif
}

/* Whether `count` items of `size` bytes fit the address space: on 32 bits, the size of an array may wrap around. */
static inline int pm_array_fits(int64_t count, size_t size)
{
    return (uint64_t)count <= PTRDIFF_MAX / size;
}

/* Returns an array of `count` items of `size` bytes; NULL without memory. */
static inline void *pm_new_array(int64_t count, size_t size)
{
    return pm_array_fits(count, size) ? malloc((size_t)count * size) : NULL;
}

/* Growth is rare. Kept out of line, it leaves the loops that append small enough to be inlined. */
#if defined(_MSC_VER) && !defined(__clang__)
#define PM_RARE static __declspec(noinline)
#else
#define PM_RARE __attribute__((noinline, cold, unused)) static
#endif

/* Reallocates the array that `pointer` points to for `needed` items of `size` bytes or more. Growth by half keeps the copies
 * linear. Returns 0 or PM_NO_MEMORY; the array is then unchanged. */
PM_RARE int pm_grow(void *pointer, int64_t *capacity, int64_t needed, size_t size)
{
    int64_t more = *capacity + *capacity / 2;
    if (more < needed)
        more = needed;
    if (more < PM_LEAST_CAPACITY)
        more = PM_LEAST_CAPACITY;
    if (!pm_array_fits(more, size))
        return PM_NO_MEMORY;
    /* The array has a type of its own, so the pointer is copied as bytes. */
    void *array;
    memcpy(&array, pointer, sizeof array);
    array = realloc(array, (size_t)more * size);
    if (array == NULL)
        return PM_NO_MEMORY;
    pm_prefer_large_pages(array, more * (int64_t)size);
    memcpy(pointer, &array, sizeof array);
    *capacity = more;
    return 0;
}

/* Makes room for `needed` items in the array that `pointer` points to. Returns 0 or PM_NO_MEMORY. */
static inline int pm_reserve_items(void *pointer, int64_t *capacity, int64_t needed, size_t size)
{
    return needed <= *capacity ? 0 : pm_grow(pointer, capacity, needed, size);
}

/* Makes room for `extra` more bytes. Afterwards data is not NULL, even for extra == 0: an offset to NULL is undefined. */
static inline int pm_reserve(pm_bytes *bytes, int64_t extra)
{
    int64_t needed = bytes->size + extra;
    return needed <= bytes->capacity && bytes->data != NULL ? 0 : pm_grow(&bytes->data, &bytes->capacity, needed, 1);
}

static inline int pm_append(pm_bytes *bytes, const void *source, int64_t size)
{
    if (pm_reserve(bytes, size) < 0)
        return PM_NO_MEMORY;
    /* memcpy from NULL is undefined even for size 0, and an empty string may have no address. */
    if (size > 0)
        memcpy(bytes->data + bytes->size, source, (size_t)size);
    bytes->size += size;
    return 0;
}

static inline void pm_free_bytes(pm_bytes *bytes)
{
    free(bytes->data);
    memset(bytes, 0, sizeof *bytes);
}

#endif
