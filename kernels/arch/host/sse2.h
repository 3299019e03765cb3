// SSE2 parts of the host's int8 loops (loops.inc, depthwise_pixel.c): 8 int16 values a vector,
// requantization one sum at a time.
#ifndef PT_ARCH_HOST_SSE2_H
#define PT_ARCH_HOST_SSE2_H

#include "arch/requantize.h"
#include <emmintrin.h>

enum { LANES_sse2 = 8 }; // values of 16 bits

typedef int16_t value_sse2;
typedef __m128i values_sse2, totals_sse2;

static inline __m128i zero_sse2(void) {
    return _mm_setzero_si128();
}

static inline __m128i spread_sse2(int32_t value) {
    return _mm_set1_epi16((int16_t)value);
}

static inline __m128i load_sse2(const int16_t *values) {
    return _mm_loadu_si128((const void *)values);
}

static inline void store_sse2(int16_t *to, __m128i values) {
    _mm_storeu_si128((void *)to, values);
}

static inline __m128i widen_sse2(const int8_t *values) {
    __m128i bytes = _mm_loadl_epi64((const void *)values);
    return _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
}

static inline __m128i add_sse2(__m128i a, __m128i b) {
    return _mm_add_epi16(a, b);
}

static inline __m128i add_products_sse2(__m128i sums, __m128i a, __m128i b) {
    return _mm_add_epi32(sums, _mm_madd_epi16(a, b));
}

// Returns the sum of each vector.
static inline __m128i sum_of_each(__m128i a, __m128i b, __m128i c, __m128i d) {
    __m128i ab = _mm_add_epi32(_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
    __m128i cd = _mm_add_epi32(_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
    return _mm_add_epi32(_mm_unpacklo_epi64(ab, cd), _mm_unpackhi_epi64(ab, cd));
}

static inline void sum_lanes_sse2(__m128i s0, __m128i s1, __m128i s2, __m128i s3, __m128i t0,
                                  __m128i t1, __m128i t2, __m128i t3, int32_t sums[8]) {
    _mm_storeu_si128((void *)sums, sum_of_each(s0, s1, s2, s3));
    _mm_storeu_si128((void *)(sums + 4), sum_of_each(t0, t1, t2, t3));
}

// SSE2 has no shift by lane, so sums are scaled one by one.
typedef struct scales_sse2 {
    const pt_channels *output;
    int32_t o;
} scales_sse2;

static inline scales_sse2 scales_of_4_sse2(const pt_channels *output, int32_t o) {
    return (scales_sse2){output, o};
}

static inline void finish_4_and_4_sse2(const scales_sse2 *s, const int32_t *sums, int8_t *first,
                                       int8_t *second) {
    for (int32_t j = 0; j < 8; j++) {
        int32_t o = s->o + j % 4, sum = pt_add_int32(sums[j], pt_bias_of(s->output, o));
        (j < 4 ? first : second)[j % 4] = pt_finish(s->output, o, sum);
    }
}

// Sums of eight channels.
typedef struct eight_sse2 {
    __m128i first, second;
} eight_sse2;

static inline eight_sse2 no_sums_sse2(void) {
    return (eight_sse2){zero_sse2(), zero_sse2()};
}

static inline void add_tap_sse2(eight_sse2 *sums, const int8_t *in, int32_t offset,
                                const int8_t *weights) {
    __m128i x = add_sse2(widen_sse2(in), spread_sse2(offset));
    __m128i y = widen_sse2(weights), low = _mm_mullo_epi16(x, y), high = _mm_mulhi_epi16(x, y);
    sums->first = _mm_add_epi32(sums->first, _mm_unpacklo_epi16(low, high));
    sums->second = _mm_add_epi32(sums->second, _mm_unpackhi_epi16(low, high));
}

static inline void finish_8_sse2(const eight_sse2 *sums, const pt_channels *output, int32_t o,
                                 int8_t *out) {
    int32_t all[8];
    _mm_storeu_si128((void *)all, sums->first);
    _mm_storeu_si128((void *)(all + 4), sums->second);
    for (int32_t j = 0; j < 8; j++) {
        int32_t sum = pt_add_int32(all[j], pt_bias_of(output, o + j));
        out[j] = pt_finish(output, o + j, sum);
    }
}

#endif
