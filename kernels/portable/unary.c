// Functions of one operand without parameters, and rounding to decimals.
#include "portable/elementwise.h"

// ---- functions of floating numbers; integers are converted to float32

#define FLOATING(name, float32, float64)                                                     \
    PT_UNARY_F32(name, float32)                                                              \
    PT_UNARY_F64(name, float64)                                                              \
    static const pt_unary name##_op = {NULL, name##_f32, name##_f64, NULL, PT_RULE_FLOATING, \
                                       true, false};                                         \
    PT_UNARY_KERNEL(aten_##name##_out, name##_op, 0)

FLOATING(exp, pt_expf(x), pt_float64->exp(x))
FLOATING(expm1, pt_expm1f(x), pt_float64->expm1(x))
FLOATING(log, pt_logf(x), pt_float64->log(x))
FLOATING(log2, pt_log2f(x), pt_float64->log2(x))
FLOATING(log10, pt_log10f(x), pt_float64->log10(x))
FLOATING(log1p, pt_log1pf(x), pt_float64->log1p(x))
FLOATING(sqrt, pt_sqrtf(x), pt_float64->sqrt(x))
FLOATING(rsqrt, 1.0f / pt_sqrtf(x), 1.0 / pt_float64->sqrt(x))
FLOATING(sin, pt_sinf(x), pt_float64->sin(x))
FLOATING(cos, pt_cosf(x), pt_float64->cos(x))
FLOATING(tan, pt_tanf(x), pt_float64->tan(x))
FLOATING(asin, pt_asinf(x), pt_float64->asin(x))
FLOATING(acos, pt_acosf(x), pt_float64->acos(x))
FLOATING(atan, pt_atanf(x), pt_float64->atan(x))
FLOATING(sinh, pt_sinhf(x), pt_float64->sinh(x))
FLOATING(cosh, pt_coshf(x), pt_float64->cosh(x))
FLOATING(tanh, pt_tanhf(x), pt_float64->tanh(x))
FLOATING(asinh, pt_asinhf(x), pt_float64->asinh(x))
FLOATING(acosh, pt_acoshf(x), pt_float64->acosh(x))
FLOATING(atanh, pt_atanhf(x), pt_float64->atanh(x))
FLOATING(sigmoid, pt_sigmoidf(x), pt_float64->sigmoid(x))
FLOATING(erf, pt_erff(x), pt_float64->erf(x))

PT_UNARY_F32(reciprocal, 1.0f / x)
PT_UNARY_F64(reciprocal, 1.0 / x)
static const pt_unary reciprocal_op = {
    NULL, reciprocal_f32, reciprocal_f64, NULL, PT_RULE_FLOATING, false, false};
PT_UNARY_KERNEL(aten_reciprocal_out, reciprocal_op, 0)

// ---- functions of all numbers; integers wrap

#define SAME(name, float32, float64, integer, rule)                              \
    PT_UNARY_F32(name, float32)                                                  \
    PT_UNARY_F64(name, float64)                                                  \
    PT_UNARY_I64(name, integer)                                                  \
    static const pt_unary name##_op = {NULL, name##_f32, name##_f64, name##_i64, \
                                       rule, false,      false};                 \
    PT_UNARY_KERNEL(aten_##name##_out, name##_op, 0)

#define NEGATIVE_INTEGER ((int64_t)(0 - (uint64_t)x))
#define SIGN ((x > 0) - (x < 0))

SAME(abs, __builtin_fabsf(x), __builtin_fabs(x), x < 0 ? NEGATIVE_INTEGER : x, PT_RULE_SAME)
SAME(neg, -x, -x, NEGATIVE_INTEGER, PT_RULE_NUMBER)
SAME(sign, SIGN, SIGN, SIGN, PT_RULE_SAME)

// ---- rounding; integers are unchanged

SAME(floor, pt_floorf(x), pt_floor(x), x, PT_RULE_SAME)
SAME(ceil, pt_ceilf(x), pt_ceil(x), x, PT_RULE_SAME)
SAME(trunc, pt_truncf(x), pt_trunc(x), x, PT_RULE_SAME)
SAME(round, pt_rintf(x), pt_rint(x), x, PT_RULE_SAME)

// Rounds to p[0] decimals, or to a power of ten if p[0] is negative. Like PyTorch, it rounds a
// product and a quotient.
static double power_of_ten(double exponent) {
    enum { INFINITE = 309 };
    const double size = exponent < 0 ? -exponent : exponent;
    double power = 1, square = 10;
    for (uint32_t n = size < INFINITE ? (uint32_t)size : INFINITE; n > 0; n >>= 1) {
        power = n & 1 ? power * square : power;
        square *= square;
    }
    return power;
}

static float round_decimals_f32(float x, const pt_number *p) {
    const float power = (float)power_of_ten((double)p[0].f32);
    return p[0].f32 < 0 ? pt_rintf(x / power) * power : pt_rintf(x * power) / power;
}

static double round_decimals_f64(double x, const pt_number *p) {
    const double power = power_of_ten(p[0].f64);
    return p[0].f64 < 0 ? pt_rint(x / power) * power : pt_rint(x * power) / power;
}

static const pt_unary round_decimals_op = {
    NULL, round_decimals_f32, round_decimals_f64, NULL, PT_RULE_FLOATING, false, false};
PT_UNARY_KERNEL(aten_round_decimals_out, round_decimals_op, 1)
