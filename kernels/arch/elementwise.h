// Elementwise int8 operators: the inner loops of instruction sets that have their own. Each
// computes the first values, as many as it likes, and returns how many; the rest is the caller's.
#ifndef PT_ARCH_ELEMENTWISE_H
#define PT_ARCH_ELEMENTWISE_H

#include "requantize.h"
#include <stdbool.h>

typedef struct pt_scaled {
    int32_t zero_point, multiplier, shift;
} pt_scaled;

enum { PT_HEADROOM = 20 }; // bits that addition shifts its operands up by

// sum of both operands less their zero points, shifted up and requantized; requantized.
typedef struct pt_addition {
    pt_scaled a, b, sum;
    pt_range range;
} pt_addition;

typedef struct pt_multiplication {
    int32_t a_zero_point, b_zero_point, multiplier, shift;
    pt_range range;
} pt_multiplication;

#if defined(__ARM_FEATURE_MVE)
#include "elementwise_mve.h"
#else

static inline int32_t pt_add_some(const pt_addition *x, const int8_t *a, const int8_t *b,
                                  int8_t *out, int32_t n) {
    (void)x, (void)a, (void)b, (void)out, (void)n;
    return 0;
}

static inline int32_t pt_multiply_some(const pt_multiplication *x, const int8_t *a, const int8_t *b,
                                       int8_t *out, int32_t n) {
    (void)x, (void)a, (void)b, (void)out, (void)n;
    return 0;
}

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
