// Mathematical functions of the portable kernels. They return the same bits in every build.
//
// They use float32 arithmetic (pt_powf: float64), rounded to nearest after every operation, in a
// fixed order. They use no library function and no contraction. A NaN result is the quiet NaN
// 0x7FC00000, or the argument's own NaN. Subnormal arguments and results are supported.
//
// The number beside a function is its largest error in ulp of the result, measured against float64.
#ifndef PT_PORTABLE_FLOAT_MATH_H
#define PT_PORTABLE_FLOAT_MATH_H

#include <stdbool.h>
#include <stdint.h>

// A float, and its bits.
typedef union pt_bits {
    float f;
    uint32_t u;
    int32_t i;
} pt_bits;

static inline bool pt_is_nanf(float x) {
    return x != x;
}

float pt_expf(float x);            // 1.0
float pt_expm1f(float x);          // 1.6
float pt_logf(float x);            // 0.9
float pt_log2f(float x);           // 1.6, powers of 2 exact
float pt_log10f(float x);          // 2.0
float pt_log1pf(float x);          // 0.9
float pt_sigmoidf(float x);        // 2.4; 1 / (1 + exp(-x))
float pt_tanhf(float x);           // 1.5
float pt_erff(float x);            // 1.8
float pt_erfcf(float x);           // 4.3; 1 - erf(x), accurate also where it is small
float pt_sinf(float x);            // 1.6, of any size of x
float pt_cosf(float x);            // 1.6
float pt_tanf(float x);            // 3.2
float pt_asinf(float x);           // 2.3
float pt_acosf(float x);           // 1.2
float pt_atanf(float x);           // 1.9
float pt_atan2f(float y, float x); // 2.3
float pt_sinhf(float x);           // 1.9
float pt_coshf(float x);           // 1.9
float pt_asinhf(float x);          // 1.7
float pt_acoshf(float x);          // 1.7
float pt_atanhf(float x);          // 1.6
float pt_sqrtf(float x);           // 0.5, correctly rounded
float pt_powf(float x, float y);   // 0.6
float pt_fmodf(float x, float y);  // exact, with the sign of x
float pt_floorf(float x);          // exact, as the next functions are
float pt_ceilf(float x);
float pt_truncf(float x);
float pt_rintf(float x); // to the nearest integer, halves to even
double pt_fmod(double x, double y);
double pt_floor(double x);
double pt_ceil(double x);
double pt_trunc(double x);
double pt_rint(double x);

#endif
