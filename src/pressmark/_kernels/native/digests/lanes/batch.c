/* Digests of a column of messages.
 *
 * A set of lanes is as slow as its longest message. The column is therefore processed in windows, and messages of a window with
 * the same number of blocks are grouped into full sets, which use the fast path. The leftovers, including long messages, use
 * lanes that are refilled one by one as their messages end.
 */
#include <string.h>

#include "kernel.h"

/* The messages of a window: few enough for the first-level cache. */
#define WINDOW 512
/* Longer messages are leftovers, since a window seldom contains a full set of them. */
#define GROUPED_BLOCKS 8
/* The maximum number of leftovers: many, since lanes are idle at the end of each turn. */
#define LEFTOVERS 2048

typedef struct {
    const pm_kernel *kernel;
    const pm_constants *constants;
    const uint8_t *data;
    const uint8_t *end;
    const int64_t *offsets;
    uint8_t *out;
    int64_t leftovers[LEFTOVERS];
    size_t leftover_count;
} packed_column;

/* Prepares a lane for a message: whole blocks in place, then the padded rest in the lane's buffer. */
static pm_cursor begin_message(pm_bank *bank, unsigned lane, const packed_column *column, int64_t message)
{
    const uint8_t *const source = column->data + column->offsets[message];
    const size_t length = (size_t)(column->offsets[message + 1] - column->offsets[message]);
    const size_t block_size = bank->constants->block_size;
    const size_t held_back = bank->constants->length_size == 0 && length > 0;
    const size_t direct = (length - held_back) / block_size;
    const size_t rest = length - direct * block_size;

    pm_bank_start(bank, lane);
    if (rest)
        memcpy(pm_bank_buffer(bank, lane), source + direct * block_size, rest);
    /* The padding contains the length of the whole message. */
    bank->compressed[lane] = direct * block_size;
    bank->pending[lane] = (uint32_t)rest;
    const pm_segment closing = pm_bank_pad(bank, lane);
    bank->compressed[lane] = 0;
    if (direct == 0)
        return (pm_cursor){closing, {NULL, 0, 0}};
    return (pm_cursor){{source, direct, 0}, closing};
}

/* Hashes the leftovers: each lane starts the next one when its own ends. */
static void digest_leftovers(packed_column *column, pm_level level, pm_algorithm algorithm)
{
    pm_bank bank;
    pm_cursor cursors[PM_MAXIMUM_LANES];
    int64_t messages[PM_MAXIMUM_LANES];
    size_t next = 0;
    uint32_t live = 0;

    pm_bank_init(&bank, level, algorithm);
    uint32_t free_lanes = pm_first_lanes(column->kernel->lanes);
    do {
        for (unsigned lane = 0; lane < column->kernel->lanes; lane++) {
            if (!(free_lanes >> lane & 1) || next == column->leftover_count)
                continue;
            messages[lane] = column->leftovers[next++];
            cursors[lane] = begin_message(&bank, lane, column, messages[lane]);
            live |= (uint32_t)1 << lane;
        }
        free_lanes = pm_bank_step(&bank, cursors, live);
        live &= ~free_lanes;
        for (unsigned lane = 0; lane < column->kernel->lanes; lane++)
            if (free_lanes >> lane & 1)
                pm_bank_extract(&bank, lane, column->out + (size_t)messages[lane] * column->constants->digest_size);
    } while (live || next < column->leftover_count);
    column->leftover_count = 0;
}

/* Hashes full sets of messages with equal block counts. Returns the number of hashed messages. */
static size_t digest_sets(const packed_column *column, int64_t first, const uint16_t *members, size_t count, size_t blocks)
{
    const size_t lanes = column->kernel->lanes;
    pm_group group;
    group.constants = column->constants;
    group.data = column->data;
    group.end = column->end;
    group.offsets = column->offsets + first;
    group.blocks = blocks;
    group.out = column->out + (size_t)first * column->constants->digest_size;
    size_t done = 0;
    for (; count - done >= lanes; done += lanes) {
        group.members = members + done;
        column->kernel->digest_group(&group);
    }
    return done;
}

static void digest_window(packed_column *column, int64_t first, size_t count)
{
    const int64_t *const offsets = column->offsets + first;
    uint8_t classes[WINDOW];
    uint16_t members[WINDOW];
    size_t starts[GROUPED_BLOCKS + 3] = {0};

    int64_t longest = 0;
    for (size_t i = 0; i < count; i++)
        longest = offsets[i + 1] - offsets[i] > longest ? offsets[i + 1] - offsets[i] : longest;
    if (pm_padded_blocks(column->constants, (uint64_t)longest) == 1) {
        /* Identifiers have one block each and need no sorting. */
        for (size_t i = 0; i < count; i++)
            members[i] = (uint16_t)i;
        for (size_t i = digest_sets(column, first, members, count, 1); i < count; i++)
            column->leftovers[column->leftover_count++] = first + (int64_t)i;
        return;
    }

    /* A stable counting sort by number of blocks, so that memory is read forwards. */
    for (size_t i = 0; i < count; i++) {
        const size_t blocks = pm_padded_blocks(column->constants, (uint64_t)(offsets[i + 1] - offsets[i]));
        classes[i] = (uint8_t)(blocks > GROUPED_BLOCKS ? GROUPED_BLOCKS + 1 : blocks);
        starts[classes[i] + 1]++;
    }
    for (size_t class = 1; class < GROUPED_BLOCKS + 3; class++)
        starts[class] += starts[class - 1];
    size_t places[GROUPED_BLOCKS + 2];
    memcpy(places, starts, sizeof places);
    for (size_t i = 0; i < count; i++)
        members[places[classes[i]]++] = (uint16_t)i;

    for (size_t class = 1; class <= GROUPED_BLOCKS + 1; class++) {
        size_t i = starts[class];
        if (class <= GROUPED_BLOCKS)
            i += digest_sets(column, first, members + i, starts[class + 1] - i, class);
        for (; i < starts[class + 1]; i++)
            column->leftovers[column->leftover_count++] = first + members[i];
    }
}

void pm_digest_column(pm_level level, pm_algorithm algorithm, const uint8_t *data, const int64_t *offsets, int64_t count,
                      uint8_t *out)
{
    packed_column column;
    column.kernel = pm_find_kernel(level, algorithm);
    if (count < column.kernel->lanes && !column.kernel->skips_idle) {
        /* Empty lanes cost as much as full ones. */
        level = PM_PORTABLE;
        column.kernel = pm_find_kernel(level, algorithm);
    }
    column.constants = &pm_constants_of[algorithm];
    /* Adding 0 to NULL is undefined. */
    column.data = data ? data : (const uint8_t *)"";
    column.end = column.data + offsets[count];
    column.offsets = offsets;
    column.out = out;
    column.leftover_count = 0;
    for (int64_t first = 0; first < count; first += WINDOW) {
        const size_t size = (size_t)(count - first < WINDOW ? count - first : WINDOW);
        digest_window(&column, first, size);
        if (column.leftover_count > LEFTOVERS - WINDOW)
            digest_leftovers(&column, level, algorithm);
    }
    if (column.leftover_count)
        digest_leftovers(&column, level, algorithm);
}
