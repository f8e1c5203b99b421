/* Operations of the template that C lacks, the same for all widths.
 *
 * The level file defines PM_LANES_32 and PM_LANES_64 (16, 8, 4, 2; 1 for plain words) before it includes this. The rest of the
 * template is ordinary arithmetic, which the vector extensions of GCC and Clang apply to each element. The compilers generate
 * rotations (vprold) and three-input logic (vpternlog) if the target has them.
 *
 * A vector may be wider than a register: the compilers then compute it in several, which hides the latency of long chains. Only
 * the order of bytes and words is changed register by register. PM_REGISTER_LANES_32 and _64 are the words of a register.
 * PM_NEON: registers of 16 bytes have a byte shuffle, which SSE2 lacks.
 */
#include <string.h>

#include "kernel.h"

#if !defined(PM_REGISTER_LANES_32)
#define PM_REGISTER_LANES_32 PM_LANES_32
#define PM_REGISTER_LANES_64 PM_LANES_64
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

/* NEON has no rotations, but a shift that adds. With +, GCC does not find all rotations of AVX-512. */
#if defined(PM_NEON)
#define WITH +
#else
#define WITH |
#endif
#define ROTATE_LEFT_32(x, n) (((x) << (n)) WITH ((x) >> (32 - (n))))
#define ROTATE_RIGHT_32(x, n) (((x) >> (n)) WITH ((x) << (32 - (n))))
#define ROTATE_RIGHT_64(x, n) (((x) >> (n)) WITH ((x) << (64 - (n))))

/* Two names: GCC uses an index vector (and supports Clang's name only since version 12), Clang uses constants. */
#if defined(__clang__)
#define SHUFFLE_ONE(type, a, ...) __builtin_shufflevector(a, a, __VA_ARGS__)
#define SHUFFLE_TWO(type, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE_ONE(type, a, ...) __builtin_shuffle(a, (type){__VA_ARGS__})
#define SHUFFLE_TWO(type, a, b, ...) __builtin_shuffle(a, b, (type){__VA_ARGS__})
#endif

/* Two ways to interleave two rows; the names end with the lanes and the bits of a word.
 * Cells: word by word inside each part of 16 bytes, the only way that AVX2 supports in one instruction. */
#define CELLS_LOW_16_32(type, a, b) SHUFFLE_TWO(type, a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define CELLS_HIGH_16_32(type, a, b) SHUFFLE_TWO(type, a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define CELLS_LOW_8_32(type, a, b) SHUFFLE_TWO(type, a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define CELLS_HIGH_8_32(type, a, b) SHUFFLE_TWO(type, a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define CELLS_LOW_4_32(type, a, b) SHUFFLE_TWO(type, a, b, 0, 4, 1, 5)
#define CELLS_HIGH_4_32(type, a, b) SHUFFLE_TWO(type, a, b, 2, 6, 3, 7)
#define CELLS_LOW_8_64(type, a, b) SHUFFLE_TWO(type, a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define CELLS_HIGH_8_64(type, a, b) SHUFFLE_TWO(type, a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#define CELLS_LOW_4_64(type, a, b) SHUFFLE_TWO(type, a, b, 0, 4, 2, 6)
#define CELLS_HIGH_4_64(type, a, b) SHUFFLE_TWO(type, a, b, 1, 5, 3, 7)
#define CELLS_LOW_2_64(type, a, b) SHUFFLE_TWO(type, a, b, 0, 2)
#define CELLS_HIGH_2_64(type, a, b) SHUFFLE_TWO(type, a, b, 1, 3)
/* Parts: whole parts of 16 bytes. */
#define PARTS_LOW_16_32(type, a, b) SHUFFLE_TWO(type, a, b, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23)
#define PARTS_HIGH_16_32(type, a, b) SHUFFLE_TWO(type, a, b, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31)
#define PARTS_LOW_8_32(type, a, b) SHUFFLE_TWO(type, a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define PARTS_HIGH_8_32(type, a, b) SHUFFLE_TWO(type, a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#define PARTS_LOW_8_64(type, a, b) SHUFFLE_TWO(type, a, b, 0, 1, 8, 9, 2, 3, 10, 11)
#define PARTS_HIGH_8_64(type, a, b) SHUFFLE_TWO(type, a, b, 4, 5, 12, 13, 6, 7, 14, 15)
#define PARTS_LOW_4_64(type, a, b) SHUFFLE_TWO(type, a, b, 0, 1, 4, 5)
#define PARTS_HIGH_4_64(type, a, b) SHUFFLE_TWO(type, a, b, 2, 3, 6, 7)

/* Rotates the lowest `bits` bits of x right by n; the bits above them stay. */
#define TURNED(x, n, bits) \
    (((x) >> (bits) << (bits)) | (((x) & ((1 << (bits)) - 1)) >> (n)) | (((x) & ((1 << (n)) - 1)) << ((bits) - (n))))

/* The reversed byte order of words in a part of 16 bytes at byte b. */
#define SWAPPED_32(b) (b) + 3, (b) + 2, (b) + 1, (b), (b) + 7, (b) + 6, (b) + 5, (b) + 4, \
    (b) + 11, (b) + 10, (b) + 9, (b) + 8, (b) + 15, (b) + 14, (b) + 13, (b) + 12
#define SWAPPED_64(b) (b) + 7, (b) + 6, (b) + 5, (b) + 4, (b) + 3, (b) + 2, (b) + 1, (b), \
    (b) + 15, (b) + 14, (b) + 13, (b) + 12, (b) + 11, (b) + 10, (b) + 9, (b) + 8

/* A rotation right by whole bytes. AVX2 and NEON have no rotations: one byte shuffle replaces three instructions, which makes
 * BLAKE2b 18 % faster with AVX2. */
#define ROTATED_64(b, n) (b) + (n) % 8, (b) + (1 + (n)) % 8, (b) + (2 + (n)) % 8, (b) + (3 + (n)) % 8, \
    (b) + (4 + (n)) % 8, (b) + (5 + (n)) % 8, (b) + (6 + (n)) % 8, (b) + (7 + (n)) % 8
#if PM_LANES_64 == 4
#define ROTATE_BYTES_64(x, n) ((vector64)SHUFFLE_ONE(bytes64, (bytes64)(x), ROTATED_64(0, n), ROTATED_64(8, n), \
    ROTATED_64(16, n), ROTATED_64(24, n)))
#elif defined(PM_NEON)
#define ROTATE_BYTES_64(x, n) ((vector64)SHUFFLE_ONE(bytes64, (bytes64)(x), ROTATED_64(0, n), ROTATED_64(8, n)))
#else
#define ROTATE_BYTES_64(x, n) ROTATE_RIGHT_64(x, 8 * (n))
#endif

/* A rotation of x ^ y, which SHA-3's extension of NEON has as one instruction. */
#if defined(PM_NEON_SHA3_LEVEL)
#define XOR_ROTATE_64(x, y, n) ((vector64)vxarq_u64((uint64x2_t)(x), (uint64x2_t)(y), n))
#define XOR_ROTATE_BYTES_64(x, y, n) XOR_ROTATE_64(x, y, 8 * (n))
#else
#define XOR_ROTATE_64(x, y, n) ROTATE_RIGHT_64((x) ^ (y), n)
#define XOR_ROTATE_BYTES_64(x, y, n) ROTATE_BYTES_64((x) ^ (y), n)
#endif

/* Unrolled completely; otherwise the rows would be in memory instead of registers. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL
#endif

#define DEFINE_INTERLEAVE(name, type, low, high) \
    PM_ALWAYS_INLINE void name(type rows[], int count) \
    { \
        type before[16]; \
        UNROLL \
        for (int row = 0; row < count; row++) \
            before[row] = rows[row]; \
        UNROLL \
        for (int row = 0; row < count / 2; row++) { \
            rows[2 * row] = low(type, before[row], before[row + count / 2]); \
            rows[2 * row + 1] = high(type, before[row], before[row + count / 2]); \
        } \
    }

#define FOUR_BITS(n) UINT32_C(1) << (n), UINT32_C(2) << (n), UINT32_C(4) << (n), UINT32_C(8) << (n)

/* Tables for padding, read from 128 - n: n bytes are kept and those after them are not; the marker follows n bytes. */
#define SIXTEEN_ONES 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255
static const uint8_t kept_bytes[256] = {SIXTEEN_ONES, SIXTEEN_ONES, SIXTEEN_ONES, SIXTEEN_ONES, SIXTEEN_ONES, SIXTEEN_ONES,
    SIXTEEN_ONES, SIXTEEN_ONES};
static const uint8_t marker_bytes[256] = {[128] = 0x80};
static const uint8_t zeros[128];
/* The last eight of 64 bytes, for the length field. */
static const uint8_t last_place[64] = {[56] = 255, 255, 255, 255, 255, 255, 255, 255};
