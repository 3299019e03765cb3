// From int32 sums to int8 outputs, eight at a time: pt_requantize and pt_to_int8.
#ifndef PT_ARCH_X86_AVX2_H
#define PT_ARCH_X86_AVX2_H

#include "../requantize.h"
#include <immintrin.h>
#include <string.h>

#define PT_AVX2 __attribute__((target("avx2")))

typedef struct pt_scale8 {
    __m256i bias, multipliers, odd_multipliers, halvings; // odd: of values 1, 3, 5, 7
    __m256i offset, min, max;
} pt_scale8;

// True where all multipliers and shifts are those of vectors.
static inline bool pt_scales_by_vectors(const pt_channels *output, int32_t n) {
    bool fast = true;
    for (int32_t o = 0; o < n; o++) {
        int32_t multiplier = output->multipliers[o], shift = output->shifts[o];
        fast = fast && multiplier >= 0 && shift < 0 && shift >= -31;
    }
    return fast;
}

static inline PT_AVX2 pt_scale8 pt_make_scale8(__m256i bias, __m256i multipliers, __m256i shifts,
                                               const pt_range *range) {
    return (pt_scale8){bias,
                       multipliers,
                       _mm256_srli_epi64(multipliers, 32),
                       _mm256_xor_si256(shifts, _mm256_set1_epi32(-1)),
                       _mm256_set1_epi32(range->offset),
                       _mm256_set1_epi32(range->min),
                       _mm256_set1_epi32(range->max)};
}

static inline PT_AVX2 __m256i pt_load8(const int32_t *values) {
    return _mm256_loadu_si256((const __m256i *)(const void *)values);
}

// The scales of channels `o` to o + 7.
static inline PT_AVX2 pt_scale8 pt_scale_of_8(const pt_channels *output, int32_t o) {
    return pt_make_scale8(output->bias ? pt_load8(output->bias + o) : _mm256_setzero_si256(),
                          pt_load8(output->multipliers + o), pt_load8(output->shifts + o),
                          &output->range);
}

static inline PT_AVX2 __m256i pt_load4_twice(const int32_t *values) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)values));
}

// The scales of channels `o` to o + 3, twice.
static inline PT_AVX2 pt_scale8 pt_scale_of_4_twice(const pt_channels *output, int32_t o) {
    return pt_make_scale8(output->bias ? pt_load4_twice(output->bias + o) : _mm256_setzero_si256(),
                          pt_load4_twice(output->multipliers + o),
                          pt_load4_twice(output->shifts + o), &output->range);
}

// Four outputs in the low bytes of each half.
static inline PT_AVX2 __m256i pt_scale_8(const pt_scale8 *s, __m256i sums) {
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
    return _mm256_packs_epi16(scaled, scaled);
}

static inline PT_AVX2 void pt_store_4_and_4(__m256i outputs, int8_t *first, int8_t *second) {
    int32_t low = _mm256_extract_epi32(outputs, 0), high = _mm256_extract_epi32(outputs, 4);
    memcpy(first, &low, 4);
    memcpy(second, &high, 4);
}

#endif
