// AVX2 parts of the host's int8 loops (loops.inc, depthwise_pixel.c): 16 int16 values a vector,
// requantization of 8 sums at a time.
#ifndef PT_ARCH_HOST_AVX2_H
#define PT_ARCH_HOST_AVX2_H

#include "arch/requantize.h"
#include <immintrin.h>
#include <string.h>

#define PT_AVX2 __attribute__((target("avx2")))

enum { LANES_avx2 = 16 }; // values of 16 bits

typedef int16_t value_avx2;
typedef __m256i values_avx2, totals_avx2;

static inline PT_AVX2 __m256i zero_avx2(void) {
    return _mm256_setzero_si256();
}

static inline PT_AVX2 __m256i spread_avx2(int32_t value) {
    return _mm256_set1_epi16((int16_t)value);
}

static inline PT_AVX2 __m256i load_avx2(const int16_t *values) {
    return _mm256_loadu_si256((const void *)values);
}

static inline PT_AVX2 void store_avx2(int16_t *to, __m256i values) {
    _mm256_storeu_si256((void *)to, values);
}

static inline PT_AVX2 __m256i widen_avx2(const int8_t *values) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)values));
}

static inline PT_AVX2 __m256i add_avx2(__m256i a, __m256i b) {
    return _mm256_add_epi16(a, b);
}

static inline PT_AVX2 __m256i add_products_avx2(__m256i sums, __m256i a, __m256i b) {
    return _mm256_add_epi32(sums, _mm256_madd_epi16(a, b));
}

// Returns the sum of each half of each vector.
static inline PT_AVX2 __m256i sum_of_halves(__m256i a, __m256i b, __m256i c, __m256i d) {
    __m256i ab = _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    __m256i cd = _mm256_add_epi32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    return _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
}

static inline PT_AVX2 void sum_lanes_avx2(__m256i s0, __m256i s1, __m256i s2, __m256i s3,
                                          __m256i t0, __m256i t1, __m256i t2, __m256i t3,
                                          int32_t sums[8]) {
    __m256i s = sum_of_halves(s0, s1, s2, s3), t = sum_of_halves(t0, t1, t2, t3);
    __m256i lower = _mm256_permute2x128_si256(s, t, 0x20);
    __m256i upper = _mm256_permute2x128_si256(s, t, 0x31);
    _mm256_storeu_si256((void *)sums, _mm256_add_epi32(lower, upper));
}

// From int32 sums to int8 outputs, eight at a time: pt_requantize and pt_to_int8.
typedef struct scales_avx2 {
    __m256i bias, multipliers, odd_multipliers, halvings; // odd: of values 1, 3, 5, 7
    __m256i offset, min, max;
} scales_avx2;

static inline PT_AVX2 scales_avx2 make_scales_avx2(__m256i bias, __m256i multipliers,
                                                   __m256i shifts, const pt_range *range) {
    return (scales_avx2){bias,
                         multipliers,
                         _mm256_srli_epi64(multipliers, 32),
                         _mm256_xor_si256(shifts, _mm256_set1_epi32(-1)),
                         _mm256_set1_epi32(range->offset),
                         _mm256_set1_epi32(range->min),
                         _mm256_set1_epi32(range->max)};
}

static inline PT_AVX2 __m256i load_8(const int32_t *values) {
    return _mm256_loadu_si256((const void *)values);
}

static inline PT_AVX2 __m256i load_4_twice(const int32_t *values) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)values));
}

static inline PT_AVX2 scales_avx2 scales_of_4_avx2(const pt_channels *output, int32_t o) {
    return make_scales_avx2(output->bias ? load_4_twice(output->bias + o) : zero_avx2(),
                            load_4_twice(output->multipliers + o), load_4_twice(output->shifts + o),
                            &output->range);
}

static inline PT_AVX2 void scale_avx2(const scales_avx2 *s, __m256i sums, int8_t *first,
                                      int8_t *second) {
    __m256i half = _mm256_set1_epi64x(1 << 30), one = _mm256_set1_epi32(1);
    sums = _mm256_add_epi32(sums, s->bias);
    __m256i even = _mm256_mul_epi32(sums, s->multipliers);
    __m256i odd = _mm256_mul_epi32(_mm256_srli_epi64(sums, 32), s->odd_multipliers);
    // bits 31 to 62 of both
    even = _mm256_srli_epi64(_mm256_add_epi64(even, half), 31);
    odd = _mm256_slli_epi64(_mm256_add_epi64(odd, half), 1);
    __m256i high = _mm256_blend_epi32(even, odd, 0xAA);
    high = _mm256_add_epi32(high, _mm256_srai_epi32(high, 31));
    high = _mm256_add_epi32(_mm256_srav_epi32(high, s->halvings), one);
    __m256i scaled = _mm256_add_epi32(_mm256_srai_epi32(high, 1), s->offset);
    scaled = _mm256_max_epi32(s->min, _mm256_min_epi32(s->max, scaled));
    scaled = _mm256_packs_epi32(scaled, scaled);
    scaled = _mm256_packs_epi16(scaled, scaled);
    int32_t low = _mm256_extract_epi32(scaled, 0), upper = _mm256_extract_epi32(scaled, 4);
    memcpy(first, &low, 4);
    memcpy(second, &upper, 4);
}

static inline PT_AVX2 void finish_4_and_4_avx2(const scales_avx2 *s, const int32_t *sums,
                                               int8_t *first, int8_t *second) {
    scale_avx2(s, load_8(sums), first, second);
}

typedef __m256i eight_avx2; // sums of eight channels

static inline PT_AVX2 __m256i no_sums_avx2(void) {
    return zero_avx2();
}

static inline PT_AVX2 void add_tap_avx2(__m256i *sums, const int8_t *in, int32_t offset,
                                        const int8_t *weights) {
    __m256i x = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)in));
    __m256i y = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)weights));
    x = _mm256_add_epi32(x, _mm256_set1_epi32(offset));
    *sums = _mm256_add_epi32(*sums, _mm256_mullo_epi32(x, y));
}

static inline PT_AVX2 void finish_8_avx2(const __m256i *sums, const pt_channels *output, int32_t o,
                                         int8_t *out) {
    scales_avx2 s = make_scales_avx2(output->bias ? load_8(output->bias + o) : zero_avx2(),
                                     load_8(output->multipliers + o), load_8(output->shifts + o),
                                     &output->range);
    scale_avx2(&s, *sums, out, out + 4);
}

#endif
