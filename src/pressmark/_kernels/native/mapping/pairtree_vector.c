#include "pairtree_vector.h"

#include <string.h>

#include "../shared/tables.h"

/* One pass with a table, for all machines. */
static uint8_t *pm_pairtree_put_portable(uint8_t *out, const uint8_t *item, int64_t length, int cleaned)
{
    const uint8_t *common = cleaned ? pm_every_byte : pm_pairtree_common;
    int rare = 0;
    int64_t position = 0;
    for (; position + 2 < length; position += 2) {
        uint8_t first = common[item[position]], second = common[item[position + 1]];
        rare |= (first == 0) | (second == 0);
        out[0] = first;
        out[1] = second;
        out[2] = '/';
        out += 3;
    }
    for (; position < length; position++) {
        uint8_t last = common[item[position]];
        rare |= last == 0;
        *out++ = last;
    }
    return rare && !cleaned ? NULL : out;
}

#if PM_HAVE_X86_LEVELS && defined(__x86_64__)
#define PM_PAIRTREE_X86 1
#include <immintrin.h>
#define PM_TARGET_16 __attribute__((target("avx2")))
#elif PM_HAVE_NEON_LEVELS
#define PM_PAIRTREE_NEON 1
#include <arm_neon.h>
#define PM_TARGET_16
#endif

#if defined(PM_TARGET_16)
typedef uint8_t pm_bytes16 __attribute__((vector_size(16)));

/* The bytes of `table` at `places`: from 0 to 15, or 255 for a zero. */
PM_TARGET_16 static inline pm_bytes16 pm_look_up(pm_bytes16 table, pm_bytes16 places)
{
#if defined(PM_PAIRTREE_X86)
    return (pm_bytes16)_mm_shuffle_epi8((__m128i)table, (__m128i)places);
#else
    return vqtbl1q_u8(table, places);
#endif
}

PM_TARGET_16 static inline pm_bytes16 pm_load_16(const uint8_t *from)
{
    pm_bytes16 bytes;
    memcpy(&bytes, from, 16);
    return bytes;
}

/* Loads `count` (1 to 15) of sixteen bytes at `item` without reading beyond them. */
PM_TARGET_16 static inline pm_bytes16 pm_load_part(const uint8_t *item, int64_t count)
{
    uint64_t halves[2] = {0, 0};
    pm_bytes16 bytes;
    if (count >= 8) {
        memcpy(&halves[0], item, 8);
        /* The last eight bytes overlap the first; the shift keeps those after the eighth. */
        memcpy(&halves[1], item + count - 8, 8);
        halves[1] = count == 8 ? 0 : halves[1] >> (8 * (16 - count));
    } else {
        for (int64_t position = count; position-- > 0;)
            halves[0] = halves[0] << 8 | item[position];
    }
    memcpy(&bytes, halves, 16);
    return bytes;
}

/* One byte shuffle makes fifteen bytes of ten. The table of halves classifies sixteen bytes at a time. */
PM_TARGET_16 static uint8_t *pm_pairtree_put_16(uint8_t *out, const uint8_t *item, int64_t length, int cleaned)
{
    const pm_bytes16 spread = {0, 1, 255, 2, 3, 255, 4, 5, 255, 6, 7, 255, 8, 9, 255, 255};
    const pm_bytes16 separators = {0, 0, '/', 0, 0, '/', 0, 0, '/', 0, 0, '/', 0, 0, '/', 0};
    const pm_bytes16 places = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const pm_bytes16 rows = pm_load_16(pm_pairtree_rare_rows), columns = pm_load_16(pm_pairtree_rare_columns);
    pm_bytes16 rare = {0};
    uint64_t halves[2];
    for (;;) {
        pm_bytes16 bytes;
        /* NUL is rare, so missing bytes are replaced by a letter. */
        if (length >= 16)
            bytes = pm_load_16(item);
        else
            bytes = pm_load_part(item, length) | ((pm_bytes16)(places >= (uint8_t)length) & 'a');
        rare |= pm_look_up(rows, bytes >> 4) & pm_look_up(columns, bytes & 15);
        pm_bytes16 common = bytes;
        /* Cleaned text contains none of the three, so this does not change it. */
        for (int number = 0; number < 3; number++)
            common ^= (pm_bytes16)(bytes == pm_common_from[number]) & pm_common_change[number];
        common = pm_look_up(common, spread) | separators;
        memcpy(out, &common, 16);
        if (length <= 10) {
            out += length + (length - 1) / 2;
            break;
        }
        out += 15;
        item += 10;
        length -= 10;
    }
    memcpy(halves, &rare, 16);
    return cleaned || (halves[0] | halves[1]) == 0 ? out : NULL;
}
#endif

#if defined(PM_PAIRTREE_X86)
/* One byte permutation makes 63 bytes of 42, and one table of 128 entries (two registers) both substitutes and finds rare
 * bytes: one step for most identifiers. Loads are masked, so nothing outside the item is read. */
__attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi"))) static uint8_t *
pm_pairtree_put_avx512(uint8_t *out, const uint8_t *item, int64_t length, int cleaned)
{
    static const uint8_t order[64] = {0,  1,  63, 2,  3,  63, 4,  5,  63, 6,  7,  63, 8,  9,  63, 10, 11, 63, 12, 13, 63, 14,
                                      15, 63, 16, 17, 63, 18, 19, 63, 20, 21, 63, 22, 23, 63, 24, 25, 63, 26, 27, 63, 28, 29,
                                      63, 30, 31, 63, 32, 33, 63, 34, 35, 63, 36, 37, 63, 38, 39, 63, 40, 41, 63, 63};
    const __m512i spread = _mm512_loadu_si512(order);
    const uint8_t *table = cleaned ? pm_every_byte : pm_pairtree_common;
    const __m512i low = _mm512_loadu_si512(table), high = _mm512_loadu_si512(table + 64);
    const __m512i slash = _mm512_set1_epi8('/');
    uint64_t rare = 0;
    for (;;) {
        int64_t taken = length < 42 ? length : 42;
        __mmask64 there = UINT64_MAX >> (64 - taken);
        __m512i bytes = _mm512_maskz_loadu_epi8(there, item);
        __m512i common = _mm512_permutex2var_epi8(low, bytes, high);
        rare |= (_mm512_testn_epi8_mask(common, common) | _mm512_movepi8_mask(bytes)) & there;
        /* Each third byte is a separator. */
        __m512i split = _mm512_mask_blend_epi8(UINT64_C(0x4924924924924924), _mm512_permutexvar_epi8(spread, common), slash);
        _mm512_storeu_si512(out, split);
        if (length <= 42) {
            out += length + (length - 1) / 2;
            break;
        }
        out += 63;
        item += 42;
        length -= 42;
    }
    return rare && !cleaned ? NULL : out;
}
#endif

pm_pairtree_put pm_pairtree_put_for(pm_level level, int permutes_bytes)
{
#if defined(PM_PAIRTREE_X86)
    if (permutes_bytes)
        return pm_pairtree_put_avx512;
#else
    (void)permutes_bytes;
#endif
#if defined(PM_TARGET_16)
    if (level != PM_PORTABLE)
        return pm_pairtree_put_16;
#else
    (void)level;
#endif
    return pm_pairtree_put_portable;
}
