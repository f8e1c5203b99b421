#include "tree.h"

#include "../shared/heap.h"

/* Counts one directory by its content. */
static int pm_holding_add(pm_holding *holding, int64_t much)
{
    if (much <= PM_TREE_ENTRIES) {
        holding->table[much]++;
        return 0;
    }
    if (pm_reserve_items(&holding->crowds, &holding->crowd_room, holding->crowd_count + 1, sizeof(int64_t)) < 0)
        return PM_NO_MEMORY;
    holding->crowds[holding->crowd_count++] = much;
    return 0;
}

static void pm_holding_free(pm_holding *holding)
{
    free(holding->table);
    free(holding->crowds);
}

int pm_tree_init(pm_tree *tree)
{
    tree->fan_out.table = (int64_t *)calloc(PM_TREE_ENTRIES + 1, sizeof(int64_t));
    tree->top_level.table = (int64_t *)calloc(PM_TREE_ENTRIES + 1, sizeof(int64_t));
    tree->depths = (pm_depth *)calloc(16, sizeof(pm_depth));
    tree->room = 16;
    if (tree->fan_out.table == NULL || tree->top_level.table == NULL || tree->depths == NULL || pm_reserve(&tree->path, 256) < 0 ||
        pm_reserve(&tree->key, 256) < 0)
        return PM_NO_MEMORY;
    tree->depths[0].current = -1;
    return 0;
}

static void pm_depth_forget(pm_depth *depth)
{
    free(depth->spelled);
    free(depth->slots);
    pm_free_bytes(&depth->texts);
    memset(depth, 0, sizeof *depth);
    depth->current = -1;
}

void pm_tree_free(pm_tree *tree)
{
    for (int64_t depth = 0; depth < tree->room && tree->depths != NULL; depth++)
        pm_depth_forget(&tree->depths[depth]);
    for (int index = 0; index < PM_TREE_LARGEST; index++)
        pm_free_bytes(&tree->largest[index].path);
    free(tree->depths);
    free(tree->levels);
    pm_holding_free(&tree->fan_out);
    pm_holding_free(&tree->top_level);
    pm_free_bytes(&tree->path);
    pm_free_bytes(&tree->key);
    pm_free_bytes(&tree->named);
    memset(tree, 0, sizeof *tree);
}

/* The order of bytes objects. */
static inline int pm_bytes_before(const uint8_t *one, int64_t one_size, const uint8_t *other, int64_t other_size)
{
    int order = memcmp(one, other, (size_t)(one_size < other_size ? one_size : other_size));
    return order != 0 ? order < 0 : one_size < other_size;
}

/* Whether one is to be discarded first: it has fewer entries, or as many and a greater path. */
static inline int pm_large_below(void *unused, const pm_large *one, const pm_large *other)
{
    (void)unused;
    if (one->entries != other->entries)
        return one->entries < other->entries;
    return pm_bytes_before(other->path.data, other->path.size, one->path.data, one->path.size);
}

PM_DEFINE_HEAP(pm_large_heap, pm_large, void *, pm_large_below)

static int pm_tree_name(pm_tree *tree, int64_t entries, const uint8_t *path, int64_t size)
{
    pm_large *heap = tree->largest;
    int is_full = tree->largest_count == PM_TREE_LARGEST;
    if (is_full && (entries < heap[0].entries ||
                    (entries == heap[0].entries && !pm_bytes_before(path, size, heap[0].path.data, heap[0].path.size))))
        return 0;
    pm_large large = {entries, {0}};
    if (is_full)
        large.path = heap[0].path;
    large.path.size = 0;
    if (pm_reserve(&large.path, size + 1) < 0)
        return PM_NO_MEMORY;
    (void)pm_append(&large.path, path, size);
    if (is_full)
        pm_large_heap_sink(NULL, heap, tree->largest_count, large);
    else
        pm_large_heap_rise(NULL, heap, tree->largest_count++, large);
    return 0;
}

/* Writes the path of one spelling of a directory into tree->named. */
static int pm_tree_write_path(pm_tree *tree, int64_t depth, int64_t which)
{
    /* Compute the length first, then write backwards from the end of the buffer. */
    int64_t size = 0, at = depth, spelling = which;
    for (; tree->depths[at].current >= 0; at--) {
        const pm_spelled *one = &tree->depths[at].spelled[spelling];
        size += one->length + (at > 1);
        spelling = one->parent;
    }
    /* Directories with a single spelling are part of the last path. */
    int64_t shared = at > 0 ? tree->depths[at].end : 0;
    tree->named.size = 0;
    if (pm_reserve(&tree->named, shared + size + 1) < 0)
        return PM_NO_MEMORY;
    uint8_t *end = tree->named.data + shared + size;
    tree->named.size = shared + size;
    for (at = depth, spelling = which; tree->depths[at].current >= 0; at--) {
        const pm_depth *level = &tree->depths[at];
        const pm_spelled *one = &level->spelled[spelling];
        end -= one->length;
        memcpy(end, level->texts.data + one->text, (size_t)one->length);
        if (at > 1)
            *--end = 1;
        spelling = one->parent;
    }
    if (shared > 0)
        memcpy(tree->named.data, tree->path.data, (size_t)shared);
    return 0;
}

/* The size of a directory's path. `which` is ignored if the directory has a single spelling. */
static inline int64_t pm_tree_size(const pm_tree *tree, int64_t depth, int64_t which)
{
    const pm_depth *level = &tree->depths[depth];
    return level->current >= 0 ? level->spelled[which].size : depth > 0 ? level->end : 0;
}

static int pm_tree_done(pm_tree *tree, int64_t depth, int64_t which, int64_t entries)
{
    if (entries == 0)
        return 0;
    if (pm_holding_add(&tree->fan_out, entries) < 0)
        return PM_NO_MEMORY;
    if ((tree->largest_count == PM_TREE_LARGEST && entries < tree->largest[0].entries) ||
        pm_tree_size(tree, depth, which) > PM_TREE_NAME)
        return 0;
    if (which >= 0) {
        if (pm_tree_write_path(tree, depth, which) < 0)
            return PM_NO_MEMORY;
        return pm_tree_name(tree, entries, tree->named.data, tree->named.size);
    }
    return pm_tree_name(tree, entries, tree->path.data, depth > 0 ? tree->depths[depth].end : 0);
}

/* Ends all directories below `depth`. */
static int pm_tree_leave(pm_tree *tree, int64_t depth)
{
    for (; tree->top > depth; tree->top--) {
        pm_depth *level = &tree->depths[tree->top];
        if (level->current < 0) {
            if (tree->top == 1 && pm_holding_add(&tree->top_level, level->paths) < 0)
                return PM_NO_MEMORY;
            if (pm_tree_done(tree, tree->top, -1, level->entries) < 0)
                return PM_NO_MEMORY;
            continue;
        }
        level->spelled[level->current].entries = level->entries;
        level->spelled[level->current].paths = level->paths;
        for (int64_t which = 0; which < level->spelled_count; which++) {
            if (tree->top == 1 && pm_holding_add(&tree->top_level, level->spelled[which].paths) < 0)
                return PM_NO_MEMORY;
            if (pm_tree_done(tree, tree->top, which, level->spelled[which].entries) < 0)
                return PM_NO_MEMORY;
        }
        pm_depth_forget(level);
    }
    return 0;
}

/* --- directories with several spellings -------------------------------------------------------------------------- */

static inline uint64_t pm_segment_hash(int64_t parent, const uint8_t *segment, int64_t length)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325) ^ (uint64_t)parent * UINT64_C(0x9E3779B97F4A7C15);
    for (int64_t position = 0; position < length; position++)
        hash = (hash ^ segment[position]) * UINT64_C(0x100000001B3);
    return hash ^ hash >> 29;
}

static int64_t pm_depth_find(const pm_depth *level, int64_t parent, const uint8_t *segment, int64_t length, uint64_t hash)
{
    if (level->slot_count == 0)
        return -1;
    uint64_t slot = hash & (uint64_t)(level->slot_count - 1);
    for (; level->slots[slot] >= 0; slot = (slot + 1) & (uint64_t)(level->slot_count - 1)) {
        const pm_spelled *one = &level->spelled[level->slots[slot]];
        if (one->hash == hash && one->parent == parent && one->length == length &&
            memcmp(level->texts.data + one->text, segment, (size_t)length) == 0)
            return level->slots[slot];
    }
    return -1;
}

static inline void pm_depth_place(pm_depth *level, int64_t which)
{
    uint64_t slot = level->spelled[which].hash & (uint64_t)(level->slot_count - 1);
    while (level->slots[slot] >= 0)
        slot = (slot + 1) & (uint64_t)(level->slot_count - 1);
    level->slots[slot] = which;
}

/* Adds a new spelling and returns its number, or PM_NO_MEMORY. */
static int64_t pm_depth_keep(pm_tree *tree, int64_t depth, int64_t parent, const uint8_t *segment, int64_t length)
{
    pm_depth *level = &tree->depths[depth];
    if (pm_reserve_items(&level->spelled, &level->spelled_room, level->spelled_count + 1, sizeof(pm_spelled)) < 0)
        return PM_NO_MEMORY;
    if (2 * (level->spelled_count + 1) > level->slot_count) {
        int64_t count = level->slot_count ? 2 * level->slot_count : 8;
        int64_t *slots = (int64_t *)realloc(level->slots, (size_t)count * sizeof(int64_t));
        if (slots == NULL)
            return PM_NO_MEMORY;
        level->slots = slots;
        level->slot_count = count;
        for (int64_t slot = 0; slot < count; slot++)
            slots[slot] = -1;
        for (int64_t which = 0; which < level->spelled_count; which++)
            pm_depth_place(level, which);
    }
    if (pm_reserve(&level->texts, length + 1) < 0)
        return PM_NO_MEMORY;
    int64_t which = level->spelled_count++;
    pm_spelled *one = &level->spelled[which];
    memset(one, 0, sizeof *one);
    one->parent = parent;
    one->text = level->texts.size;
    one->length = length;
    one->size = pm_tree_size(tree, depth - 1, parent) + (depth > 1) + length;
    one->hash = pm_segment_hash(parent, segment, length);
    (void)pm_append(&level->texts, segment, length);
    pm_depth_place(level, which);
    return which;
}

static int pm_tree_count_level(pm_tree *tree, int64_t depth)
{
    if (depth > tree->level_count) {
        if (pm_reserve_items(&tree->levels, &tree->level_room, depth, sizeof(int64_t)) < 0)
            return PM_NO_MEMORY;
        tree->levels[tree->level_count++] = 0;
    }
    tree->levels[depth - 1]++;
    return 0;
}

/* The end of the segment at `start`, which is at least `start`. */
static inline int64_t pm_segment_end(const uint8_t *path, int64_t length, int64_t start)
{
    if (start >= length)
        return start;
    const uint8_t *slash = (const uint8_t *)memchr(path + start, 1, (size_t)(length - start));
    return slash == NULL ? length : slash - path;
}

/* Switches from the spellings of the last path to those of this one. They differ from depth `first` on, whose segment starts
 * at `start`. */
static int pm_tree_turn(pm_tree *tree, const uint8_t *path, int64_t length, int64_t first, int64_t start)
{
    int64_t old_parent = tree->depths[first - 1].current < 0 ? 0 : tree->depths[first - 1].current, parent = old_parent;
    for (int64_t depth = first; depth <= tree->top; depth++) {
        pm_depth *level = &tree->depths[depth];
        int64_t old = level->current;
        if (old < 0) {
            int64_t old_start = depth > 1 ? tree->depths[depth - 1].end + 1 : 0;
            old = pm_depth_keep(tree, depth, old_parent, tree->path.data + old_start, level->end - old_start);
            if (old < 0)
                return PM_NO_MEMORY;
        }
        level->spelled[old].entries = level->entries;
        level->spelled[old].paths = level->paths;
        int64_t end = pm_segment_end(path, length, start);
        uint64_t hash = pm_segment_hash(parent, path + start, end - start);
        int64_t which = pm_depth_find(level, parent, path + start, end - start, hash);
        if (which < 0) {
            which = pm_depth_keep(tree, depth, parent, path + start, end - start);
            if (which < 0 || pm_tree_count_level(tree, depth) < 0)
                return PM_NO_MEMORY;
            tree->depths[depth - 1].entries++;
        }
        level->current = which;
        level->entries = level->spelled[which].entries;
        level->paths = level->spelled[which].paths;
        old_parent = old;
        parent = which;
        start = end + 1;
    }
    /* Not earlier, since the old ends delimit the old segments. */
    start = first > 1 ? tree->depths[first - 1].end + 1 : 0;
    for (int64_t depth = first; depth <= tree->top; depth++) {
        tree->depths[depth].end = pm_segment_end(path, length, start);
        start = tree->depths[depth].end + 1;
    }
    return 0;
}

/* --- one path ------------------------------------------------------------------------------------------------------ */

static inline int64_t pm_common(const uint8_t *one, int64_t one_size, const uint8_t *other, int64_t other_size)
{
    int64_t shorter = one_size < other_size ? one_size : other_size, position = 0;
    while (position + 8 <= shorter && memcmp(one + position, other + position, 8) == 0)
        position += 8;
    while (position < shorter && one[position] == other[position])
        position++;
    return position;
}

static inline int pm_ends_at(const uint8_t *path, int64_t length, int64_t end)
{
    return end == length || (end < length && path[end] == 1);
}

int pm_tree_add(pm_tree *tree, const uint8_t *key, int64_t key_length, const uint8_t *path, int64_t length)
{
    int64_t common = pm_common(key, key_length, tree->key.data, tree->key.size), depth = tree->top;
    while (depth > 0 && !(tree->depths[depth].key_end <= common &&
                          pm_ends_at(key, key_length, tree->depths[depth].key_end)))
        depth--;
    if (pm_tree_leave(tree, depth) < 0)
        return PM_NO_MEMORY;
    common = pm_common(path, length, tree->path.data, tree->path.size);
    if (depth > 0 && !(tree->depths[depth].end <= common && pm_ends_at(path, length, tree->depths[depth].end))) {
        int64_t first = 1;
        while (tree->depths[first].end <= common && pm_ends_at(path, length, tree->depths[first].end))
            first++;
        if (pm_tree_turn(tree, path, length, first, first > 1 ? tree->depths[first - 1].end + 1 : 0) < 0)
            return PM_NO_MEMORY;
    }
    /* All further directories are new. */
    int64_t start = depth > 0 ? tree->depths[depth].end + 1 : 0;
    int64_t key_start = depth > 0 ? tree->depths[depth].key_end + 1 : 0;
    while (start <= length && length > 0) {
        int64_t above = tree->top++;
        if (tree->top == tree->room) {
            pm_depth *depths = (pm_depth *)realloc(tree->depths, (size_t)(2 * tree->room) * sizeof(pm_depth));
            if (depths == NULL)
                return PM_NO_MEMORY;
            memset(depths + tree->room, 0, (size_t)tree->room * sizeof(pm_depth));
            tree->depths = depths;
            tree->room *= 2;
        }
        pm_depth *level = &tree->depths[tree->top];
        level->end = pm_segment_end(path, length, start);
        level->key_end = pm_segment_end(key, key_length, key_start);
        level->entries = level->paths = 0;
        level->current = -1;
        tree->depths[above].entries++;
        if (pm_tree_count_level(tree, tree->top) < 0)
            return PM_NO_MEMORY;
        start = level->end + 1;
        key_start = level->key_end + 1;
    }
    tree->leaves++;
    if (tree->top > 0)
        tree->depths[1].paths++;
    tree->path.size = tree->key.size = 0;
    if (pm_append(&tree->path, path, length) < 0 || pm_append(&tree->key, key, key_length) < 0)
        return PM_NO_MEMORY;
    return 0;
}

int pm_tree_end(pm_tree *tree)
{
    if (tree->ended)
        return 0;
    tree->ended = 1;
    return pm_tree_leave(tree, 0) < 0 ? PM_NO_MEMORY : pm_tree_done(tree, 0, -1, tree->depths[0].entries);
}
