// Elementwise int8 add, mul, quantize and dequantize of vector ISAs: mve/elementwise.inc and
// host/elementwise.inc. Each function computes the first values of n and returns their number; the
// callers in cortex_m/elementwise.c and cortex_m/quantize.c compute the rest.
#ifndef PT_ARCH_ELEMENTWISE_H
#define PT_ARCH_ELEMENTWISE_H

#include "arch/requantize.h"
#include "arch/vectors.h"
#include <stdbool.h>

typedef struct pt_scaled {
    int32_t zero_point, multiplier, shift;
} pt_scaled;

#if defined(__ARM_FEATURE_MVE)
enum { PT_HAS_VECTORS = 1 };
#include "arch/mve/elementwise.inc"
#else
enum { PT_HAS_VECTORS = 0 };

// Adds both operands less their zero points, shifted up by 20 bits and requantized, and requantizes
// the sum. `tables` has two tables of 256 if n is at least 256.
static inline int32_t pt_add_some(const pt_scaled *a_scale, const pt_scaled *b_scale,
                                  const pt_scaled *sum, const pt_range *range, const int8_t *a,
                                  const int8_t *b, int8_t *out, int32_t n, int32_t *tables) {
    (void)a_scale, (void)b_scale, (void)sum, (void)range;
    (void)a, (void)b, (void)out, (void)n, (void)tables;
    return 0;
}

// Multiplies both operands less their zero points, and requantizes the product.
static inline int32_t pt_multiply_some(int32_t a_zero_point, int32_t b_zero_point,
                                       const pt_scaled *product, const pt_range *range,
                                       const int8_t *a, const int8_t *b, int8_t *out, int32_t n) {
    (void)a_zero_point, (void)b_zero_point, (void)product, (void)range;
    (void)a, (void)b, (void)out, (void)n;
    return 0;
}

#if defined(PT_HAS_HOST_VECTORS)
#include "arch/host/elementwise.inc"
#else

// q = round(x * inverse) + zero_point, halves to even, limited to int8; 0 for NaN.
static inline int32_t pt_quantize_some(const float *x, int8_t *q, int32_t n, float inverse,
                                       int32_t zero_point) {
    (void)x, (void)q, (void)n, (void)inverse, (void)zero_point;
    return 0;
}

// x = (q - zero_point) * scale.
static inline int32_t pt_dequantize_some(const int8_t *q, float *x, int32_t n, float scale,
                                         int32_t zero_point) {
    (void)q, (void)x, (void)n, (void)scale, (void)zero_point;
    return 0;
}

#endif
#endif

#endif
