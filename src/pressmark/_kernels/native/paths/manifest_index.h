/* An index of the lines of one manifest by path: fingerprints and offsets, no text. pure/manifest_index.py defines plain
 * lines. */
#ifndef PRESSMARK_MANIFEST_INDEX_H
#define PRESSMARK_MANIFEST_INDEX_H

#include <stdint.h>

/* The upper bits of an offset. */
#define PM_LINE_ODD (UINT64_C(1) << 63)
#define PM_LINE_FOLDING (UINT64_C(1) << 62)
#define PM_LINE_MARKED (UINT64_C(1) << 61)
#define PM_LINE_OFFSET (PM_LINE_MARKED - 1)

enum { PM_FIRST_SLOTS = 64, PM_SALT_MAXIMUM = 64, PM_SHORT_PATH = 4096 };

/* Returned instead of a PM_STATUS_…: no memory, or too many lines. */
enum { PM_INDEX_NO_MEMORY = -1, PM_INDEX_FULL = -2 };

typedef struct {
    int64_t digits;
    int64_t limit;
    uint8_t *prefix; /* owned */
    int64_t prefix_length;
    uint8_t salt[PM_SALT_MAXIMUM];
    int64_t salt_length;
    int64_t *fingerprints;
    uint64_t *offsets;
    int64_t count;
    int64_t room;
    uint32_t *slots; /* open addressing: the number of the line plus one; 0 if empty */
    uint64_t mask;
} pm_index;

int pm_index_init(pm_index *index);
void pm_index_free(pm_index *index);
/* The same as hash() of the salt and the path in one bytes object: keyed for each process, and without the GIL. */
int pm_index_fingerprint(const pm_index *index, const uint8_t *path, int64_t length, int64_t *fingerprint);
int pm_index_add(pm_index *index, const uint8_t *path, int64_t length, uint64_t offset);
int pm_index_scan( pm_index *index, const uint8_t *block, int64_t size, int64_t *position, int64_t base, int final,
                  int64_t *lines
);
int64_t pm_index_next(const pm_index *index, int64_t place, uint64_t bit, uint64_t wanted);

#endif
