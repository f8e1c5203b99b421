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

#if defined(__x86_64__) && defined(__GNUC__)
#define PM_PAIRTREE_X86 1
#include <immintrin.h>

/* Loads `count` (1 to 15) of sixteen bytes at `item` without reading beyond them. */
__attribute__((target("avx2"))) static inline __m128i pm_load_part(const uint8_t *item, int64_t count)
{
    uint64_t low = 0, high = 0;
    if (count >= 8) {
        memcpy(&low, item, 8);
        /* The last eight bytes overlap the first; the shift keeps those after the eighth. */
        memcpy(&high, item + count - 8, 8);
        high = count == 8 ? 0 : high >> (8 * (16 - count));
    } else {
        for (int64_t position = count; position-- > 0;)
            low = low << 8 | item[position];
    }
    return _mm_set_epi64x((long long)high, (long long)low);
}

/* One byte shuffle makes fifteen bytes of ten. The table of halves classifies sixteen bytes at a time. */
__attribute__((target("avx2"))) static uint8_t *
pm_pairtree_put_avx2(uint8_t *out, const uint8_t *item, int64_t length, int cleaned)
{
    static const int8_t order[16] = {0, 1, -1, 2, 3, -1, 4, 5, -1, 6, 7, -1, 8, 9, -1, -1};
    static const uint8_t between[16] = {0, 0, '/', 0, 0, '/', 0, 0, '/', 0, 0, '/', 0, 0, '/', 0};
    static const int8_t places[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const __m128i rows = _mm_loadu_si128((const __m128i *)pm_pairtree_rare_rows);
    const __m128i columns = _mm_loadu_si128((const __m128i *)pm_pairtree_rare_columns);
    const __m128i spread = _mm_loadu_si128((const __m128i *)order);
    const __m128i separators = _mm_loadu_si128((const __m128i *)between);
    const __m128i half = _mm_set1_epi8(15);
    __m128i rare = _mm_setzero_si128();
    for (;;) {
        __m128i bytes;
        if (length >= 16) {
            bytes = _mm_loadu_si128((const __m128i *)item);
        } else {
            /* NUL is rare, so missing bytes are replaced by a letter. */
            __m128i absent = _mm_cmpgt_epi8(_mm_loadu_si128((const __m128i *)places), _mm_set1_epi8((char)(length - 1)));
            bytes = _mm_or_si128(pm_load_part(item, length), _mm_and_si128(absent, _mm_set1_epi8('a')));
        }
        __m128i row = _mm_shuffle_epi8(rows, _mm_and_si128(_mm_srli_epi16(bytes, 4), half));
        __m128i column = _mm_shuffle_epi8(columns, _mm_and_si128(bytes, half));
        rare = _mm_or_si128(rare, _mm_and_si128(row, column));
        __m128i common = bytes;
        /* Cleaned text contains none of the three, so this does not change it. */
        for (int number = 0; number < 3; number++) {
            __m128i found = _mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)pm_common_from[number]));
            common = _mm_xor_si128(common, _mm_and_si128(found, _mm_set1_epi8((char)pm_common_change[number])));
        }
        _mm_storeu_si128((__m128i *)out, _mm_or_si128(_mm_shuffle_epi8(common, spread), separators));
        if (length <= 10) {
            out += length + (length - 1) / 2;
            break;
        }
        out += 15;
        item += 10;
        length -= 10;
    }
    return cleaned || _mm_testz_si128(rare, rare) ? out : NULL;
}

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
#ifdef PM_PAIRTREE_X86
    if (permutes_bytes)
        return pm_pairtree_put_avx512;
    if (level != PM_PORTABLE)
        return pm_pairtree_put_avx2;
#else
    (void)level;
    (void)permutes_bytes;
#endif
    return pm_pairtree_put_portable;
}
