/* Streaming digests: one message in each lane, buffers of any length. */
#include <string.h>

#include "kernel.h"

/* The state is word-major, so the words of a lane are one register apart. */
static uint8_t *state_word(pm_bank *bank, unsigned word, unsigned lane)
{
    return bank->state + ((size_t)word * bank->kernel->lanes + lane) * bank->constants->word_size;
}

static uint64_t read_word(const uint8_t *from, size_t size)
{
    if (size == 4) {
        uint32_t word;
        memcpy(&word, from, sizeof word);
        return word;
    }
    uint64_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

static void write_word(uint8_t *to, size_t size, uint64_t value)
{
    if (size == 4) {
        const uint32_t word = (uint32_t)value;
        memcpy(to, &word, sizeof word);
    } else {
        memcpy(to, &value, sizeof value);
    }
}

static unsigned lowest_lane(uint32_t lanes)
{
    unsigned lane = 0;
    while (!(lanes >> lane & 1))
        lane++;
    return lane;
}

size_t pm_bank_size(void)
{
    return sizeof(pm_bank);
}

void pm_bank_init(pm_bank *bank, pm_level level, pm_algorithm algorithm)
{
    bank->kernel = pm_find_kernel(level, algorithm);
    bank->constants = &pm_constants_of[algorithm];
    /* Unused memory as well: idle lanes compute with it, and memory checkers must not complain. */
    memset(bank->state, 0, sizeof bank->state);
    memset(bank->buffer, 0, sizeof bank->buffer);
    for (unsigned lane = 0; lane < bank->kernel->lanes; lane++)
        pm_bank_start(bank, lane);
}

void pm_bank_start(pm_bank *bank, unsigned lane)
{
    for (unsigned word = 0; word < bank->constants->state_words; word++)
        write_word(state_word(bank, word, lane), bank->constants->word_size, bank->constants->initial[word]);
    bank->compressed[lane] = 0;
    bank->pending[lane] = 0;
}

uint32_t pm_bank_step(pm_bank *bank, pm_cursor cursors[], uint32_t live)
{
    const unsigned lanes = bank->kernel->lanes;
    const size_t block_size = bank->constants->block_size;
    pm_run run;
    run.live = live;
    run.last = 0;
    run.blocks = SIZE_MAX;
    for (unsigned lane = 0; lane < lanes; lane++)
        if (live >> lane & 1 && cursors[lane].now.blocks < run.blocks)
            run.blocks = cursors[lane].now.blocks;
    /* Idle lanes may read anything that is long enough, such as the source of a live lane. */
    const uint8_t *const readable = cursors[lowest_lane(live)].now.source;
    for (unsigned lane = 0; lane < lanes; lane++) {
        const int is_live = live >> lane & 1;
        const int is_last = is_live && cursors[lane].now.last;
        run.source[lane] = is_live ? cursors[lane].now.source : readable;
        run.last |= (uint32_t)is_last << lane;
        run.counter[lane] = bank->compressed[lane] + (is_last ? bank->pending[lane] : block_size);
    }
    bank->kernel->compress(bank->state, &run);

    uint32_t ended = 0;
    for (unsigned lane = 0; lane < lanes; lane++) {
        if (!(live >> lane & 1))
            continue;
        pm_cursor *cursor = &cursors[lane];
        bank->compressed[lane] += run.blocks * block_size;
        cursor->now.source += run.blocks * block_size;
        cursor->now.blocks -= run.blocks;
        if (cursor->now.blocks == 0) {
            cursor->now = cursor->next;
            cursor->next.blocks = 0;
            ended |= (uint32_t)(cursor->now.blocks == 0) << lane;
        }
    }
    return ended;
}

void pm_bank_update(pm_bank *bank, const uint8_t *const data[], const size_t lengths[])
{
    const unsigned lanes = bank->kernel->lanes;
    const size_t block_size = bank->constants->block_size;
    /* BLAKE2b flags its last block, so a block is compressed only if another byte follows. */
    const size_t held_back = bank->constants->length_size == 0;
    pm_cursor cursors[PM_MAXIMUM_LANES];
    size_t rest[PM_MAXIMUM_LANES];
    uint32_t live = 0;

    for (unsigned lane = 0; lane < lanes; lane++) {
        const size_t pending = bank->pending[lane];
        /* The sum of pending and length may overflow a size_t; the sum of their blocks does not. */
        const size_t room = block_size - pending + held_back;
        rest[lane] = 0;
        if (lengths[lane] < room) {
            if (lengths[lane])
                memcpy(pm_bank_buffer(bank, lane) + pending, data[lane], lengths[lane]);
            bank->pending[lane] = (uint32_t)(pending + lengths[lane]);
            continue;
        }
        const size_t filling = pending ? block_size - pending : 0;
        const size_t direct = (lengths[lane] - filling - held_back) / block_size;
        const pm_segment whole = {data[lane] + filling, direct, 0};
        const pm_segment nothing = {NULL, 0, 0};
        cursors[lane] = (pm_cursor){whole, nothing};
        if (pending) {
            memcpy(pm_bank_buffer(bank, lane) + pending, data[lane], filling);
            cursors[lane] = (pm_cursor){{pm_bank_buffer(bank, lane), 1, 0}, whole};
        }
        rest[lane] = lengths[lane] - filling - direct * block_size;
        bank->pending[lane] = 0;
        live |= (uint32_t)1 << lane;
    }

    const uint32_t advanced = live;
    while (live)
        live &= ~pm_bank_step(bank, cursors, live);
    for (unsigned lane = 0; lane < lanes; lane++) {
        if (advanced >> lane & 1 && rest[lane]) {
            memcpy(pm_bank_buffer(bank, lane), data[lane] + lengths[lane] - rest[lane], rest[lane]);
            bank->pending[lane] = (uint32_t)rest[lane];
        }
    }
}

pm_segment pm_bank_pad(pm_bank *bank, unsigned lane)
{
    const pm_constants *constants = bank->constants;
    uint8_t *const buffer = pm_bank_buffer(bank, lane);
    const size_t pending = bank->pending[lane];
    const size_t blocks = pm_padded_blocks(constants, pending);
    const size_t size = blocks * constants->block_size;
    memset(buffer + pending, 0, size - pending);
    if (constants->length_size) {
        uint64_t bits = (bank->compressed[lane] + pending) * 8;
        if (constants->big_endian != PM_BIG_ENDIAN_HOST)
            bits = pm_swap_64(bits);
        /* The length field of the SHA-512 family has 16 bytes; the upper eight are always zero. */
        memcpy(buffer + size - sizeof bits, &bits, sizeof bits);
        buffer[pending] = 0x80;
    }
    return (pm_segment){buffer, blocks, constants->length_size == 0};
}

void pm_bank_extract(const pm_bank *bank, unsigned lane, uint8_t *out)
{
    const pm_constants *constants = bank->constants;
    const size_t size = constants->word_size;
    for (unsigned word = 0; word * size < constants->digest_size; word++) {
        const size_t rest = constants->digest_size - word * size;
        uint64_t value = read_word(state_word((pm_bank *)bank, word, lane), size);
        if (constants->big_endian != PM_BIG_ENDIAN_HOST)
            value = size == 4 ? pm_swap_64(value) >> 32 : pm_swap_64(value);
        /* Some digests end within a word, of 64 bits. */
        if (rest < size)
            memcpy(out + word * size, &value, rest);
        else
            write_word(out + word * size, size, value);
    }
}

void pm_bank_finish_many(pm_bank *bank, uint32_t lanes, uint8_t *const out[])
{
    pm_cursor cursors[PM_MAXIMUM_LANES];
    uint32_t live = 0;
    for (unsigned lane = 0; lane < bank->kernel->lanes; lane++) {
        if (lanes >> lane & 1) {
            cursors[lane] = (pm_cursor){pm_bank_pad(bank, lane), {NULL, 0, 0}};
            live |= (uint32_t)1 << lane;
        }
    }
    const uint32_t finishing = live;
    while (live)
        live &= ~pm_bank_step(bank, cursors, live);
    for (unsigned lane = 0; lane < bank->kernel->lanes; lane++) {
        if (finishing >> lane & 1) {
            pm_bank_extract(bank, lane, out[lane]);
            pm_bank_start(bank, lane);
        }
    }
}

void pm_bank_finish(pm_bank *bank, unsigned lane, uint8_t *out)
{
    uint8_t *outs[PM_MAXIMUM_LANES];
    outs[lane] = out;
    pm_bank_finish_many(bank, (uint32_t)1 << lane, outs);
}
