// Mathematical functions of the portable kernels: the same bits in every build.
//
// They use float32 arithmetic (pt_powf: float64), rounded to nearest after every operation, in a
// fixed order; no library function, no contraction. A result that is not a number is the quiet NaN
// 0x7FC00000, or the argument's own NaN. Subnormal arguments and results are right.
//
// Errors in ulp of the result are the largest that the tests found against float64.
#ifndef PT_PORTABLE_FLOAT_MATH_H
#define PT_PORTABLE_FLOAT_MATH_H

#include <stdbool.h>
#include <stdint.h>

// A float and its bits.
typedef union pt_bits {
    float f;
    uint32_t u;
    int32_t i;
} pt_bits;

static inline bool pt_is_nanf(float x) {
    return x != x;
}

float pt_expf(float x);
float pt_expm1f(float x);
float pt_logf(float x);
float pt_log2f(float x);
float pt_log10f(float x);
float pt_log1pf(float x);
float pt_sigmoidf(float x); // 1 / (1 + exp(-x))
float pt_tanhf(float x);
float pt_erff(float x);
float pt_erfcf(float x); // 1 - erf(x), accurate also where it is small
float pt_sinf(float x);
float pt_cosf(float x);
float pt_sqrtf(float x); // correctly rounded
float pt_powf(float x, float y);
float pt_floorf(float x);
float pt_ceilf(float x);
float pt_truncf(float x);
float pt_rintf(float x);          // to the nearest integer, halves to even
float pt_fmodf(float x, float y); // exact, with the sign of x

#endif
