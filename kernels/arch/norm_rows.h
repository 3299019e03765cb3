// Loops of int8 normalizations: sums of a row and of its squares, and the normalized row. Called by
// cortex_m/normalization.c. Block: 16 (sums) and 4 values with MVE, 4 (sums) with SMLAD, else 1.
// Sums wrap around at 32 bits. No packing, no scratch.
#ifndef PT_ARCH_NORM_ROWS_H
#define PT_ARCH_NORM_ROWS_H

#include "arch/scale.h"
#include <stdint.h>

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#elif defined(__ARM_FEATURE_DSP)
#include <arm_acle.h>
#endif

typedef struct pt_byte_sums {
    int32_t sum;
    uint32_t squares;
} pt_byte_sums;

// The normalization of a row. Each value x becomes x * scale + shift, times the weight of its
// position, divided by 2^16 and rounded down, plus the bias of its position, divided by 2^right.
typedef struct pt_norm_row {
    uint32_t scale, shift; // modulo 2^32, as are all sums
    const int16_t *weight;
    const int32_t *bias;
    int32_t right; // 0..31
} pt_norm_row;

// Returns value * weight / 2^16, rounded down, plus an addend.
static inline int32_t pt_multiply_add_high(int32_t value, int32_t weight, int32_t addend) {
#if defined(__ARM_FEATURE_DSP)
    int32_t sum;
    __asm__("smlawb %0, %1, %2, %3" : "=r"(sum) : "r"(value), "r"(weight), "r"(addend));
    return sum;
#else
    const int32_t low = (int32_t)((uint32_t)value & 0xFFFF) * weight;
    return (int32_t)((uint32_t)((value >> 16) * weight) + (uint32_t)(low >> 16) + (uint32_t)addend);
#endif
}

// Adds n values, `step` apart, and their squares to the sums.
static inline void pt_sum_steps(const int8_t *x, int32_t n, int32_t step, pt_byte_sums *sums) {
    uint32_t sum = (uint32_t)sums->sum, squares = sums->squares;
    for (; n > 0; n--, x += step) {
        sum += (uint32_t)(int32_t)*x;
        squares += (uint32_t)(*x * *x);
    }
    *sums = (pt_byte_sums){(int32_t)sum, squares};
}

// out[i * step] = x[i * step] * scale + shift, divided by 2^right
static inline void pt_scale_steps(const int8_t *x, int8_t *out, int32_t n, int32_t step,
                                  uint32_t scale, uint32_t shift, int32_t right) {
    for (; n > 0; n--, x += step, out += step) {
        const int32_t y = (int32_t)((uint32_t)(int32_t)*x * scale + shift);
        *out = (int8_t)pt_saturate_int8(y >> right);
    }
}

#if defined(__ARM_FEATURE_MVE)

static inline void pt_sum_row(const int8_t *x, int32_t n, pt_byte_sums *sums) {
    int32_t sum = sums->sum, squares = (int32_t)sums->squares;
    for (; n > 0; n -= 16, x += 16) {
        const int8x16_t values = vldrbq_z_s8(x, vctp8q((uint32_t)n));
        sum = vaddvaq_s8(sum, values);
        squares = vmladavaq_s8(squares, values, values);
    }
    *sums = (pt_byte_sums){sum, (uint32_t)squares};
}

// Stores four results, divided by 2^right and saturated.
static inline void pt_store_saturated(int8_t *out, int32x4_t y, int32_t right, mve_pred16_t p) {
    y = vshlq_r_s32(y, -right);
    y = vminq_s32(vmaxq_s32(y, vdupq_n_s32(INT8_MIN)), vdupq_n_s32(INT8_MAX));
    vstrbq_p_s32(out, y, p);
}

static inline void pt_normalize_bytes(const pt_norm_row *r, const int8_t *x, int8_t *out,
                                      int32_t at, int32_t n) {
    const int32x4_t shift = vdupq_n_s32((int32_t)r->shift);
    const int16_t *weight = r->weight + at;
    const int32_t *bias = r->bias + at;
    for (; n > 0; n -= 4, x += 4, out += 4, weight += 4, bias += 4) {
        const mve_pred16_t p = vctp32q((uint32_t)n);
        int32x4_t y = vmlaq_n_s32(shift, vldrbq_z_s32(x, p), (int32_t)r->scale);
        y = vmulhq_s32(y, vshlq_n_s32(vldrhq_z_s32(weight, p), 16));
        pt_store_saturated(out, vaddq_s32(y, vldrwq_z_s32(bias, p)), r->right, p);
    }
}

static inline void pt_scale_row(const int8_t *x, int8_t *out, int32_t n, uint32_t scale,
                                uint32_t shift, int32_t right) {
    const int32x4_t shifts = vdupq_n_s32((int32_t)shift);
    for (; n > 0; n -= 4, x += 4, out += 4) {
        const mve_pred16_t p = vctp32q((uint32_t)n);
        const int32x4_t y = vmlaq_n_s32(shifts, vldrbq_z_s32(x, p), (int32_t)scale);
        pt_store_saturated(out, y, right, p);
    }
}

#else

static inline void pt_sum_row(const int8_t *x, int32_t n, pt_byte_sums *sums) {
#if defined(__ARM_FEATURE_DSP)
    typedef uint32_t __attribute__((aligned(1), may_alias)) four_bytes;
    for (; n >= 4; n -= 4, x += 4) {
        const uint32_t word = *(const four_bytes *)(const void *)x;
        const int16x2_t even = __sxtb16((int8x4_t)word);
        int16x2_t odd;
        __asm__("sxtb16 %0, %1, ror #8" : "=r"(odd) : "r"(word));
        sums->squares = (uint32_t)__smlad(even, even, (int32_t)sums->squares);
        sums->squares = (uint32_t)__smlad(odd, odd, (int32_t)sums->squares);
        sums->sum = __smlad(__sadd16(even, odd), 0x00010001, sums->sum);
    }
#endif
    pt_sum_steps(x, n, 1, sums);
}

static inline void pt_normalize_bytes(const pt_norm_row *r, const int8_t *x, int8_t *out,
                                      int32_t at, int32_t n) {
    const uint32_t scale = r->scale, shift = r->shift;
    const int32_t right = r->right;
    const int16_t *weight = r->weight + at;
    const int32_t *bias = r->bias + at;
    for (int32_t i = 0; i < n; i++) {
        const int32_t y = (int32_t)((uint32_t)(int32_t)*x++ * scale + shift);
        const int32_t sum = pt_multiply_add_high(y, *weight++, *bias++);
        *out++ = (int8_t)pt_saturate_int8(sum >> right);
    }
}

static inline void pt_scale_row(const int8_t *x, int8_t *out, int32_t n, uint32_t scale,
                                uint32_t shift, int32_t right) {
    pt_scale_steps(x, out, n, 1, scale, shift, right);
}

#endif

#endif
