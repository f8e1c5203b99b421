/* Loading, padding and storing words of PM_WORD_BITS; level.h includes this file for 32 and for 64. */

#define NAMED(name) JOIN(name, PM_WORD_BITS)
#define WORD JOIN(JOIN(uint, PM_WORD_BITS), _t)
#define VECTOR NAMED(vector)
#define REGISTER NAMED(register)
#define BYTES NAMED(bytes)
#define DOUBLE_WORDS NAMED(double_words)
#define LANES NAMED(PM_LANES_)
#define REGISTER_LANES NAMED(PM_REGISTER_LANES_)
#define WORD_BYTES (PM_WORD_BITS / 8)
#define BLOCK_BYTES (16 * WORD_BYTES)
#define VECTOR_BYTES (LANES * WORD_BYTES)
#define REGISTER_BYTES (REGISTER_LANES * WORD_BYTES)
#define PAD_BYTES ((int)sizeof(DOUBLE_WORDS))
#define SHAPED(name) JOIN(JOIN(JOIN(name, REGISTER_LANES), _), PM_WORD_BITS)
/* A register has 2^PART_BITS parts of 16 bytes, and a part 2^CELL_BITS words; a plain word is one part with one cell. */
#if LANES == 1
#define CELL_BITS 0
#define PART_BYTES WORD_BYTES
#else
#define CELL_BITS (PM_WORD_BITS == 32 ? 2 : 1)
#define PART_BYTES 16
#endif
#define PART_BITS (REGISTER_BYTES == 64 ? 2 : REGISTER_BYTES == 32 ? 1 : 0)

#if LANES > 1
/* may_alias: the same memory is read as words, as bytes and as a bank's state. */
typedef WORD VECTOR __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef WORD REGISTER __attribute__((vector_size(REGISTER_BYTES), may_alias));
typedef uint8_t BYTES __attribute__((vector_size(REGISTER_BYTES), may_alias));
typedef uint64_t DOUBLE_WORDS __attribute__((vector_size(REGISTER_BYTES), may_alias));
#else
typedef WORD VECTOR;
typedef WORD REGISTER;
typedef uint64_t DOUBLE_WORDS;
#endif

PM_ALWAYS_INLINE VECTOR NAMED(splat)(WORD value)
{
    return (VECTOR){0} + value;
}

/* A sum that the compiler may not mix with the terms after it. It would add constants last, behind the value of the previous
 * step, for which the whole chain waits. */
PM_ALWAYS_INLINE VECTOR NAMED(summed)(VECTOR sum)
{
#if PM_HAVE_X86_LEVELS && LANES > 1 && LANES == REGISTER_LANES
    __asm__("" : "+v"(sum));
#endif
    return sum;
}

/* Constants whose values the compiler may not know: it would put each into a general register and from there into a vector, where
 * one instruction reads it from memory. */
PM_ALWAYS_INLINE const WORD *NAMED(in_memory)(const WORD *constants)
{
#if REGISTER_BYTES > 16
    __asm__("" : "+r"(constants));
#endif
    return constants;
}

/* All ones in the lanes whose bit is set. */
PM_ALWAYS_INLINE VECTOR NAMED(lane_mask)(uint32_t lanes)
{
#if LANES > 1
    static const WORD lane_bits[PM_MAXIMUM_LANES] = {FOUR_BITS(0), FOUR_BITS(4), FOUR_BITS(8), FOUR_BITS(12), FOUR_BITS(16),
        FOUR_BITS(20), FOUR_BITS(24), FOUR_BITS(28)};
    VECTOR bits;
    memcpy(&bits, lane_bits, sizeof bits);
    return (VECTOR)((NAMED(splat)(lanes) & bits) == bits);
#else
    return (WORD)0 - (WORD)(lanes & 1);
#endif
}

PM_ALWAYS_INLINE REGISTER NAMED(swap_bytes)(REGISTER x)
{
#if REGISTER_BYTES == 64
    return (REGISTER)SHUFFLE_ONE(BYTES, (BYTES)x, NAMED(SWAPPED_)(0), NAMED(SWAPPED_)(16), NAMED(SWAPPED_)(32), NAMED(SWAPPED_)(48));
#elif REGISTER_BYTES == 32
    return (REGISTER)SHUFFLE_ONE(BYTES, (BYTES)x, NAMED(SWAPPED_)(0), NAMED(SWAPPED_)(16));
#elif REGISTER_BYTES == 16 && defined(PM_NEON)
    return (REGISTER)SHUFFLE_ONE(BYTES, (BYTES)x, NAMED(SWAPPED_)(0));
#else
    /* SSE2 has no byte shuffle. For a plain word, compilers recognise these shifts as one instruction. */
#if PM_WORD_BITS == 64
    x = (x >> 32) | (x << 32);
    x = ((x >> 16) & 0x0000ffff0000ffff) | ((x & 0x0000ffff0000ffff) << 16);
    return ((x >> 8) & 0x00ff00ff00ff00ff) | ((x & 0x00ff00ff00ff00ff) << 8);
#else
    x = (x >> 16) | (x << 16);
    return ((x >> 8) & 0x00ff00ff) | ((x & 0x00ff00ff) << 8);
#endif
#endif
}

/* Interleaves the first half of the rows with the second half. The position of a word is a binary number: bits of the row, bits
 * of the part of 16 bytes in the row, bits of the cell in the part. Interleaving cells makes the highest bit of the row the
 * lowest of the cell, and the highest of the cell the lowest of the row; interleaving parts does the same with the part. This
 * transposes rows and columns bit by bit. */
#if LANES > 1
DEFINE_INTERLEAVE(NAMED(interleave_cells), REGISTER, SHAPED(CELLS_LOW_), SHAPED(CELLS_HIGH_))
#endif
#if REGISTER_BYTES > 16
DEFINE_INTERLEAVE(NAMED(interleave_parts), REGISTER, SHAPED(PARTS_LOW_), SHAPED(PARTS_HIGH_))
#endif

/* Loads word i of each lane's block into words[i], one register of it. */
PM_ALWAYS_INLINE void NAMED(load_lanes)(VECTOR words[16], const uint8_t *const source[], size_t offset, int swapped, int number)
{
    /* The rows are the blocks of all lanes, 16 / LANES rows for each lane. After the transposition the bits of the part are
     * below those of the cell, in rows and columns, which TURNED corrects. */
    REGISTER rows[16];
    UNROLL
    for (int row = 0; row < 16; row++)
        memcpy(&rows[row], source[TURNED(row * REGISTER_LANES / 16, PART_BITS, PART_BITS + CELL_BITS)] + offset
               + row % (16 / REGISTER_LANES) * REGISTER_BYTES, REGISTER_BYTES);
#if CELL_BITS >= 1
    NAMED(interleave_cells)(rows, 16);
#endif
#if CELL_BITS >= 2
    NAMED(interleave_cells)(rows, 16);
#endif
#if PART_BITS >= 1
    NAMED(interleave_parts)(rows, 16);
#endif
#if PART_BITS >= 2
    NAMED(interleave_parts)(rows, 16);
#endif
    UNROLL
    for (int row = 0; row < 16; row++) {
        const REGISTER word = swapped ? NAMED(swap_bytes)(rows[row]) : rows[row];
        memcpy((REGISTER *)&words[TURNED(row, PART_BITS, PART_BITS + CELL_BITS)] + number, &word, REGISTER_BYTES);
    }
}

/* Loads word i of each lane's block into words[i]. */
PM_ALWAYS_INLINE void NAMED(load_block)(VECTOR words[16], const uint8_t *const source[], size_t offset, int swapped)
{
    UNROLL
    for (int number = 0; number < LANES / REGISTER_LANES; number++)
        NAMED(load_lanes)(words, source + number * REGISTER_LANES, offset, swapped, number);
}

/* Stores the digests of one register of a state: transposes the cells, then stores each part of 16 bytes. */
PM_ALWAYS_INLINE void NAMED(store_lanes)(const VECTOR state[], int state_bits, int swapped, size_t digest_size,
                                         const uint16_t *members, uint8_t *out, int number)
{
    const int words = 1 << state_bits;
    REGISTER rows[PM_STATE_WORDS];
    UNROLL
    for (int row = 0; row < words; row++) {
        const REGISTER word = ((const REGISTER *)&state[TURNED(row, state_bits - CELL_BITS, state_bits)])[number];
        rows[row] = swapped ? NAMED(swap_bytes)(word) : word;
    }
#if CELL_BITS >= 1
    NAMED(interleave_cells)(rows, words);
#endif
#if CELL_BITS >= 2
    NAMED(interleave_cells)(rows, words);
#endif
    UNROLL
    for (size_t lane = 0; lane < REGISTER_LANES; lane++) {
        uint8_t *const digest = out + (size_t)members[lane] * digest_size;
        UNROLL
        for (size_t at = 0; at < digest_size; at += PART_BYTES) {
            const size_t row = (at / PART_BYTES << CELL_BITS) + lane % (1 << CELL_BITS);
            memcpy(digest + at, (const uint8_t *)&rows[row] + (lane >> CELL_BITS) * PART_BYTES,
                   digest_size - at < PART_BYTES ? digest_size - at : PART_BYTES);
        }
    }
}

/* Stores the digests of a state. */
PM_ALWAYS_INLINE void NAMED(store_digests)(const VECTOR state[], int state_bits, int swapped, size_t digest_size,
                                           const uint16_t *members, uint8_t *out)
{
    UNROLL
    for (int number = 0; number < LANES / REGISTER_LANES; number++)
        NAMED(store_lanes)(state, state_bits, swapped, digest_size, members + number * REGISTER_LANES, out, number);
}

/* Writes one block of a padded message: `kept` bytes from `source`, the marker, and the length field in the last block. Reads a
 * whole block and masks the bytes of the next message, so that nothing branches on the length. */
PM_ALWAYS_INLINE void NAMED(pad_block)(uint8_t *block, const uint8_t *source, size_t kept, const uint8_t *marker,
                                       const uint8_t *end, uint64_t length_field)
{
    uint8_t copy[BLOCK_BYTES];
    if (end - source < BLOCK_BYTES) {
        /* Near the end of the column a whole block cannot be read. */
        memset(copy, 0, BLOCK_BYTES);
        memcpy(copy, source, kept);
        source = copy;
    }
    UNROLL
    for (size_t at = 0; at < BLOCK_BYTES; at += PAD_BYTES) {
        DOUBLE_WORDS content, mask, padding, place;
        memcpy(&content, source + at, PAD_BYTES);
        memcpy(&mask, kept_bytes + 128 - kept + at, PAD_BYTES);
        memcpy(&padding, marker + at, PAD_BYTES);
        content = (content & mask) | padding;
        if (at == BLOCK_BYTES - PAD_BYTES) {
            /* Not stored as a number, since loading it as part of a vector would stall. */
            memcpy(&place, last_place + 64 - PAD_BYTES, PAD_BYTES);
            content |= place & length_field;
        }
        memcpy(block + at, &content, PAD_BYTES);
    }
}

/* Writes block number `behind` of each lane's message to `blocks`; `closing` marks the last block. */
PM_ALWAYS_INLINE void NAMED(pad_lanes)(const pm_group *group, uint8_t *blocks, pm_run *run, size_t behind, int closing,
                                       int swapped, int blake2b)
{
    const uint8_t *const data = group->data, *const end = group->end;
    const int64_t *const offsets = group->offsets;
    const uint16_t *const members = group->members;
    for (int lane = 0; lane < LANES; lane++) {
        const int64_t start = offsets[members[lane]];
        const int64_t length = offsets[members[lane] + 1] - start;
        const uint8_t *source = data + start;
        size_t kept = (size_t)length;
        const uint8_t *marker = blake2b ? zeros : marker_bytes + 128 - kept;
        uint64_t field = 0;
        if (behind > 0 || !closing) {
            /* The message may end in the previous block (no bytes here) or fill this one (no marker here). */
            const int64_t remaining = length - (int64_t)behind * BLOCK_BYTES;
            kept = remaining <= 0 ? 0 : remaining < BLOCK_BYTES ? (size_t)remaining : BLOCK_BYTES;
            source = remaining <= 0 ? end : source + behind * BLOCK_BYTES;
            marker = blake2b || remaining < 0 ? zeros : marker_bytes + 128 - kept;
        }
        if (closing && !blake2b)
            field = swapped ? pm_swap_64((uint64_t)length * 8) : (uint64_t)length * 8;
        NAMED(pad_block)(blocks + lane * BLOCK_BYTES, source, kept, marker, end, field);
        run->source[lane] = blocks + lane * BLOCK_BYTES;
        if (blake2b)
            run->counter[lane] = closing ? (uint64_t)length : (behind + 1) * BLOCK_BYTES;
    }
    run->blocks = 1;
    run->last = closing ? run->live : 0;
}

/* Computes the digests of one full set of lanes. All other parameters are constants after inlining. */
PM_ALWAYS_INLINE void NAMED(digest_group)(const pm_group *group, void (*compress)(void *, const pm_run *), int state_bits,
                                          size_t digest_size, int big_endian, int blake2b)
{
    const int swapped = big_endian != PM_BIG_ENDIAN_HOST;
    PM_ALIGNED_64 uint8_t blocks[LANES * BLOCK_BYTES];
    VECTOR state[PM_STATE_WORDS];
    pm_run run;
    for (int i = 0; i < 1 << state_bits; i++)
        state[i] = NAMED(splat)((WORD)group->constants->initial[i]);
    run.live = pm_first_lanes(LANES);

    if (group->blocks == 1) {
        NAMED(pad_lanes)(group, blocks, &run, 0, 1, swapped, blake2b);
        compress(state, &run);
    } else {
        const size_t direct = group->blocks - 2;
        if (direct > 0) {
            /* All blocks except the last two are whole in each lane and are read in place. */
            for (int lane = 0; lane < LANES; lane++) {
                run.source[lane] = group->data + group->offsets[group->members[lane]];
                run.counter[lane] = BLOCK_BYTES;
            }
            run.blocks = direct;
            run.last = 0;
            compress(state, &run);
        }
        NAMED(pad_lanes)(group, blocks, &run, direct, 0, swapped, blake2b);
        compress(state, &run);
        NAMED(pad_lanes)(group, blocks, &run, direct + 1, 1, swapped, blake2b);
        compress(state, &run);
    }
    NAMED(store_digests)(state, state_bits, swapped, digest_size, group->members, group->out);
}

#undef NAMED
#undef WORD
#undef VECTOR
#undef REGISTER
#undef BYTES
#undef DOUBLE_WORDS
#undef LANES
#undef REGISTER_LANES
#undef WORD_BYTES
#undef BLOCK_BYTES
#undef VECTOR_BYTES
#undef REGISTER_BYTES
#undef PAD_BYTES
#undef SHAPED
#undef CELL_BITS
#undef PART_BITS
#undef PART_BYTES
#undef PM_WORD_BITS
