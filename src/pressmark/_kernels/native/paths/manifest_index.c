#include <Python.h>

#include "manifest_index.h"

#include "../shared/memory.h"
#include "../shared/text.h"

#if PY_VERSION_HEX < 0x030E0000
/* Py_HashBuffer since 3.14. Earlier versions export this function, and 3.13 does not declare it. */
PyAPI_FUNC(Py_hash_t) _Py_HashBytes(const void *, Py_ssize_t);
#define Py_HashBuffer _Py_HashBytes
#endif

int pm_index_init(pm_index *index)
{
    index->mask = PM_FIRST_SLOTS - 1;
    index->slots = (uint32_t *)calloc(PM_FIRST_SLOTS, sizeof(uint32_t));
    return index->slots == NULL ? PM_INDEX_NO_MEMORY : 0;
}

void pm_index_free(pm_index *index)
{
    free(index->prefix);
    free(index->fingerprints);
    free(index->offsets);
    free(index->slots);
}

int pm_index_fingerprint(const pm_index *index, const uint8_t *path, int64_t length, int64_t *fingerprint)
{
    uint8_t few[PM_SALT_MAXIMUM + PM_SHORT_PATH];
    uint8_t *text = few;
    if (length > PM_SHORT_PATH && (text = (uint8_t *)malloc((size_t)(index->salt_length + length))) == NULL)
        return PM_INDEX_NO_MEMORY;
    memcpy(text, index->salt, (size_t)index->salt_length);
    memcpy(text + index->salt_length, path, (size_t)length);
    *fingerprint = Py_HashBuffer(text, index->salt_length + length);
    if (text != few)
        free(text);
    return 0;
}

/* The slot of a fingerprint, or the empty slot for it. */
static inline uint64_t pm_index_slot(const pm_index *index, int64_t fingerprint)
{
    uint64_t slot = (uint64_t)fingerprint & index->mask;
    while (index->slots[slot] != 0 && index->fingerprints[index->slots[slot] - 1] != fingerprint)
        slot = (slot + 1) & index->mask;
    return slot;
}

static inline uint64_t pm_index_empty_slot(const pm_index *index, int64_t fingerprint)
{
    uint64_t slot = (uint64_t)fingerprint & index->mask;
    while (index->slots[slot] != 0)
        slot = (slot + 1) & index->mask;
    return slot;
}

static int pm_index_grow(pm_index *index)
{
    uint64_t size = 2 * (index->mask + 1);
    uint32_t *slots = (uint32_t *)calloc(size, sizeof(uint32_t));
    if (slots == NULL)
        return PM_INDEX_NO_MEMORY;
    free(index->slots);
    index->slots = slots;
    index->mask = size - 1;
    for (int64_t place = 0; place < index->count; place++)
        slots[pm_index_empty_slot(index, index->fingerprints[place])] = (uint32_t)(place + 1);
    return 0;
}

static int pm_index_reserve(pm_index *index)
{
    if (index->count < index->room)
        return 0;
    if (index->count >= UINT32_MAX - 1)
        return PM_INDEX_FULL;
    /* Both arrays have the same capacity. */
    int64_t room = index->room;
    if (pm_reserve_items(&index->fingerprints, &room, index->count + 1, sizeof(int64_t)) < 0)
        return PM_INDEX_NO_MEMORY;
    return pm_reserve_items(&index->offsets, &index->room, index->count + 1, sizeof(uint64_t)) < 0 ? PM_INDEX_NO_MEMORY : 0;
}

static int pm_index_append(pm_index *index, int64_t fingerprint, uint64_t offset, uint64_t slot)
{
    int status = pm_index_reserve(index);
    if (status < 0)
        return status;
    index->fingerprints[index->count] = fingerprint;
    index->offsets[index->count] = offset;
    index->count++;
    index->slots[slot] = (uint32_t)index->count;
    return 4 * (uint64_t)index->count >= 3 * (index->mask + 1) ? pm_index_grow(index) : 0;
}

/* PM_LINE_FOLDING if a path is not ASCII or not in lower case, otherwise 0. */
static uint64_t pm_index_folding(const uint8_t *path, int64_t length)
{
    for (int64_t position = 0; position < length; position++)
        if (path[position] >= 0x80 || (path[position] >= 'A' && path[position] <= 'Z'))
            return PM_LINE_FOLDING;
    return 0;
}

int pm_index_add(pm_index *index, const uint8_t *path, int64_t length, uint64_t offset)
{
    int64_t fingerprint;
    if (pm_index_fingerprint(index, path, length, &fingerprint) < 0)
        return PM_INDEX_NO_MEMORY;
    offset |= pm_index_folding(path, length);
    return pm_index_append(index, fingerprint, offset, pm_index_empty_slot(index, fingerprint));
}

/* The effect of a byte on the path that contains it. */
enum { PM_ENDS = 1, PM_NEVER_PLAIN = 2, PM_UPPER = 4, PM_HIGH = 8, PM_SUSPECT = 16 };

static const uint8_t pm_path_byte[256] = {
    ['\0'] = PM_NEVER_PLAIN, ['\n'] = PM_ENDS,        ['\r'] = PM_ENDS,
    ['%'] = PM_NEVER_PLAIN,  ['\\'] = PM_NEVER_PLAIN,
    ['A'] = PM_UPPER, ['B'] = PM_UPPER, ['C'] = PM_UPPER, ['D'] = PM_UPPER, ['E'] = PM_UPPER, ['F'] = PM_UPPER,
    ['G'] = PM_UPPER, ['H'] = PM_UPPER, ['I'] = PM_UPPER, ['J'] = PM_UPPER, ['K'] = PM_UPPER, ['L'] = PM_UPPER,
    ['M'] = PM_UPPER, ['N'] = PM_UPPER, ['O'] = PM_UPPER, ['P'] = PM_UPPER, ['Q'] = PM_UPPER, ['R'] = PM_UPPER,
    ['S'] = PM_UPPER, ['T'] = PM_UPPER, ['U'] = PM_UPPER, ['V'] = PM_UPPER, ['W'] = PM_UPPER, ['X'] = PM_UPPER,
    ['Y'] = PM_UPPER, ['Z'] = PM_UPPER,
};

/* Returns the length of the plain line at text[0 .. size), including its end, or 0. Sets the offset and length of its path,
 * and whether that folds. */
static int64_t pm_plain_line(
    const pm_index *index, const uint8_t *text, int64_t size, int final, int64_t *path, int64_t *length, uint64_t *folds
)
{
    int64_t position = index->digits;
    if (size < position + 2 + index->prefix_length)
        return 0;
    uint8_t worst = 0;
    for (int64_t digit = 0; digit < position; digit++)
        worst |= pm_hex_value[text[digit]] > 15;
    if (worst || (text[position] != ' ' && text[position] != '\t'))
        return 0;
    position++;
    if (text[position] == ' ' || text[position] == '\t')
        position++;
    if (size < position + index->prefix_length + 1 ||
        memcmp(text + position, index->prefix, (size_t)index->prefix_length) != 0)
        return 0;
    *path = position;
    uint8_t seen = 0;
    uint8_t before = 0;
    for (position += index->prefix_length; position < size; position++) {
        uint8_t byte = text[position];
        uint8_t kind = pm_path_byte[byte];
        if (kind == PM_ENDS)
            break;
        seen |= kind;
        if (byte >= 0x80)
            seen |= PM_HIGH;
        if (before == '/' && (byte == '/' || byte == '.'))
            seen |= PM_SUSPECT;
        before = byte;
    }
    *length = position - *path;
    if (position == size || seen & PM_NEVER_PLAIN || *length == index->prefix_length || position > index->limit)
        return 0;
    if (text[position] == '\r') {
        if (position + 1 == size && !final)
            return 0;
        position += position + 1 < size && text[position + 1] == '\n';
    }
    position++;
    int64_t bad;
    /* The prefix may end with a slash, so the byte after it is always checked. */
    int suspect = seen & PM_SUSPECT || before == '/' || text[*path + index->prefix_length] == '/' ||
                  text[*path + index->prefix_length] == '.';
    if (suspect && pm_check_path(text + *path, *length, &bad) != 0)
        return 0;
    if (seen & PM_HIGH && pm_invalid_utf8(text + *path, *length) >= 0)
        return 0;
    *folds = seen & (PM_HIGH | PM_UPPER) ? PM_LINE_FOLDING : pm_index_folding(index->prefix, index->prefix_length);
    return position;
}

/* Whether the line at text[0 .. size) is complete. */
static int pm_line_ends(const uint8_t *text, int64_t size, int final)
{
    for (int64_t position = 0; position < size; position++) {
        if (text[position] == '\n')
            return 1;
        if (text[position] == '\r')
            return position + 1 < size || final;
    }
    return final && size > 0;
}

int pm_index_scan( pm_index *index, const uint8_t *block, int64_t size, int64_t *position, int64_t base, int final,
                  int64_t *lines
)
{
    while (index->digits > 0) {
        int64_t path = 0, length = 0, fingerprint = 0;
        uint64_t folds = 0;
        const uint8_t *text = block + *position;
        int64_t end = pm_plain_line(index, text, size - *position, final, &path, &length, &folds);
        if (end == 0)
            break;
        if (pm_index_fingerprint(index, text + path, length, &fingerprint) < 0)
            return PM_INDEX_NO_MEMORY;
        uint64_t slot = pm_index_slot(index, fingerprint);
        if (index->slots[slot] != 0)
            return PM_STATUS_AGAIN;
        int status = pm_index_append(index, fingerprint, (uint64_t)(base + *position) | folds, slot);
        if (status < 0)
            return status;
        *position += end;
        *lines += 1;
    }
    return pm_line_ends(block + *position, size - *position, final) ? PM_STATUS_ODD : PM_STATUS_MORE;
}

int64_t pm_index_next(const pm_index *index, int64_t place, uint64_t bit, uint64_t wanted)
{
    for (; place < index->count; place++)
        if ((index->offsets[place] & bit) == wanted)
            return place;
    return -1;
}
