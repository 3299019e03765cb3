// float32 vectors of the host for float_products.h: 8 lanes of AVX2, or 4 of NEON.
#ifndef PT_ARCH_HOST_FLOAT_LANES_H
#define PT_ARCH_HOST_FLOAT_LANES_H

#include "arch/vectors.h"
#include <stdbool.h>
#include <stdint.h>

// Lanes of a vector that lie in a line, and whether it begins or ends there.
typedef struct pt_line_part {
    int32_t n;
    bool first, last;
} pt_line_part;

#if defined(PT_X86)
#include <immintrin.h>

#define PT_TARGET __attribute__((target("avx2")))
#define PT_INLINE static inline PT_TARGET __attribute__((always_inline))

enum { LANES = 8, WIDE = 2, FLOAT_KIND = PT_VECTORS_UPPER }; // WIDE: vectors of a wide block

typedef __m256 lanes;

// Masks of the lanes to read: for the first of three taps, for the second, for the third.
typedef struct line_masks {
    __m256i left, all, right;
} line_masks;

// Returns a mask of lanes `begin` to `end`.
PT_INLINE __m256i lanes_from(int32_t begin, int32_t end) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(begin), lane),
                               _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane));
}

PT_INLINE line_masks masks_of(const pt_line_part *part) {
    return (line_masks){lanes_from(part->first, part->n), lanes_from(0, part->n),
                        lanes_from(0, part->n - part->last)};
}

PT_INLINE lanes zero_lanes(void) {
    return _mm256_setzero_ps();
}

PT_INLINE lanes all_lanes(const float *value) {
    return _mm256_broadcast_ss(value);
}

PT_INLINE lanes load_lanes(const float *b) {
    return _mm256_loadu_ps(b);
}

PT_INLINE lanes load_each_second(const float *b) {
    const __m256 low = _mm256_loadu_ps(b), high = _mm256_loadu_ps(b + 7);
    const __m256 mixed = _mm256_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 2, 0));
    return _mm256_castpd_ps(
        _mm256_permute4x64_pd(_mm256_castps_pd(mixed), _MM_SHUFFLE(3, 1, 2, 0)));
}

// Loads the lanes in the line.
PT_INLINE lanes load_part(const float *b, const line_masks *masks) {
    return _mm256_maskload_ps(b, masks->all);
}

PT_INLINE void store_part(float *out, const line_masks *masks, lanes values) {
    _mm256_maskstore_ps(out, masks->all, values);
}

// Loads the left neighbours of the lanes, 0 before the line.
PT_INLINE lanes load_before(const float *b, const line_masks *masks) {
    return _mm256_maskload_ps(b - 1, masks->left);
}

// Loads the right neighbours of the lanes, 0 behind the line.
PT_INLINE lanes load_behind(const float *b, const line_masks *masks) {
    return _mm256_maskload_ps(b + 1, masks->right);
}

PT_INLINE void store_lanes(float *out, lanes values) {
    _mm256_storeu_ps(out, values);
}

PT_INLINE lanes add_lanes(lanes a, lanes b) {
    return _mm256_add_ps(a, b);
}

PT_INLINE lanes multiply_lanes(lanes a, lanes b) {
    return _mm256_mul_ps(a, b);
}

#else
#include <arm_neon.h>

#define PT_TARGET
#define PT_INLINE static inline __attribute__((always_inline))

enum { LANES = 4, WIDE = 4, FLOAT_KIND = PT_VECTORS_LOWER };

typedef float32x4_t lanes;
typedef pt_line_part line_masks; // whose n is always LANES

PT_INLINE line_masks masks_of(const pt_line_part *part) {
    return *part;
}

PT_INLINE lanes zero_lanes(void) {
    return vdupq_n_f32(0);
}

PT_INLINE lanes all_lanes(const float *value) {
    return vld1q_dup_f32(value);
}

PT_INLINE lanes load_lanes(const float *b) {
    return vld1q_f32(b);
}

PT_INLINE lanes load_each_second(const float *b) {
    const lanes low = vld1q_f32(b), high = vld1q_f32(b + 3);
    return vuzp1q_f32(low, vextq_f32(high, high, 1));
}

PT_INLINE lanes load_part(const float *b, const line_masks *masks) {
    (void)masks;
    return vld1q_f32(b);
}

PT_INLINE void store_part(float *out, const line_masks *masks, lanes values) {
    (void)masks;
    vst1q_f32(out, values);
}

PT_INLINE lanes load_before(const float *b, const line_masks *masks) {
    return masks->first ? vextq_f32(zero_lanes(), vld1q_f32(b), 3) : vld1q_f32(b - 1);
}

PT_INLINE lanes load_behind(const float *b, const line_masks *masks) {
    return masks->last ? vextq_f32(vld1q_f32(b), zero_lanes(), 1) : vld1q_f32(b + 1);
}

PT_INLINE void store_lanes(float *out, lanes values) {
    vst1q_f32(out, values);
}

PT_INLINE lanes add_lanes(lanes a, lanes b) {
    return vaddq_f32(a, b);
}

// Not vmlaq_f32, which compilers may fuse.
PT_INLINE lanes multiply_lanes(lanes a, lanes b) {
    return vmulq_f32(a, b);
}

#endif
#endif
