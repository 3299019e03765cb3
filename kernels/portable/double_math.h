// The functions of float_math.h in float64. They return the same bits in every build, with or
// without an FPU for doubles.
//
// Kernels call them through pt_float64. The pointer is NULL in a build with PT_NO_FLOAT64 (see
// config.h), which omits all these functions, 12 KB; pt_check_math rejects float64 there.
//
// The number beside a function is the largest error found, in ulp of the result.
#ifndef PT_PORTABLE_DOUBLE_MATH_H
#define PT_PORTABLE_DOUBLE_MATH_H

#include "portable/dtype_access.h"
#include "portable/float_math.h"

double pt_exp(double x);             // 1.0
double pt_expm1(double x);           // 2.0
double pt_log(double x);             // 0.9
double pt_log2(double x);            // 1.6, powers of 2 exact
double pt_log10(double x);           // 2.0
double pt_log1p(double x);           // 1.0
double pt_sigmoid(double x);         // 2.4; 1 / (1 + exp(-x))
double pt_tanh(double x);            // 3.0
double pt_erf(double x);             // 1.8
double pt_erfc(double x);            // 4.5; 1 - erf(x), accurate also where it is small
double pt_sin(double x);             // 1.0, of any size of x
double pt_cos(double x);             // 1.0
double pt_tan(double x);             // 2.5
double pt_asin(double x);            // 2.3
double pt_acos(double x);            // 1.5
double pt_atan(double x);            // 1.9
double pt_atan2(double y, double x); // 2.3
double pt_sinh(double x);            // 2.6
double pt_cosh(double x);            // 1.9
double pt_asinh(double x);           // 3.0
double pt_acosh(double x);           // 2.5
double pt_atanh(double x);           // 2.5
double pt_sqrt(double x);            // 0.5, correctly rounded
double pt_pow(double x, double y);   // 1.0

// Steps of a function value for pt_count_work: without an FPU for doubles a value takes up to
// 20,000 instructions.
enum { PT_FLOAT64_STEPS = 256 };

struct pt_double_rows;
struct pt_sampling;

typedef struct pt_float64_functions {
    double (*exp)(double), (*expm1)(double), (*log)(double), (*log2)(double), (*log10)(double);
    double (*log1p)(double), (*sqrt)(double), (*sin)(double), (*cos)(double), (*tan)(double);
    double (*asin)(double), (*acos)(double), (*atan)(double), (*sinh)(double), (*cosh)(double);
    double (*tanh)(double), (*asinh)(double), (*acosh)(double), (*atanh)(double);
    double (*sigmoid)(double), (*erf)(double), (*erfc)(double);
    double (*atan2)(double, double), (*pow)(double, double);
    // the functions of double_rows.h
    int (*measure)(struct pt_double_rows *, double eps);
    int (*normalize)(const struct pt_double_rows *);
    int (*distance)(pt_context *, double *out, const double *a, const double *b, int32_t n,
                    double p);
    // the function of grid_sampler.h
    int (*sample)(pt_context *, const struct pt_sampling *, int32_t n, int32_t row, int32_t column);
} pt_float64_functions;

extern const pt_float64_functions *const pt_float64;

#define PT_REASON_DTYPE "the operator does not support this dtype"

// True if mathematical functions support `dtype`.
static inline bool pt_has_math(uint8_t dtype) {
    return pt_is_floating(dtype) && (dtype != PT_DTYPE_DOUBLE || pt_float64 != NULL);
}

// Rejects other dtypes with the operator's reason, and float64 with the switch that this build
// lacks.
PT_MUST_USE static inline int pt_check_math(pt_context *c, uint8_t dtype, const char *reason) {
    return pt_has_math(dtype)
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                         dtype != PT_DTYPE_DOUBLE ? reason
                                                  : "this build has no functions of float64; use a "
                                                    "build with them or change the model");
}

#endif
