// Functions of one operand without parameters.
#include "elementwise.h"
#include "float_math.h"

// ---- of floating numbers: integers are taken as float32, float64 is refused

#define FLOATING(name, expression)                                                      \
    PT_UNARY_F32(name, expression)                                                      \
    static const pt_unary name##_op = {NULL, name##_f32, NULL, NULL, PT_RULE_FLOATING}; \
    PT_UNARY_KERNEL(aten_##name##_out, name##_op, 0)

FLOATING(exp, pt_expf(x))
FLOATING(expm1, pt_expm1f(x))
FLOATING(log, pt_logf(x))
FLOATING(log2, pt_log2f(x))
FLOATING(log10, pt_log10f(x))
FLOATING(log1p, pt_log1pf(x))
FLOATING(sqrt, pt_sqrtf(x))
FLOATING(rsqrt, 1.0f / pt_sqrtf(x))
FLOATING(sin, pt_sinf(x))
FLOATING(cos, pt_cosf(x))
FLOATING(tan, pt_tanf(x))
FLOATING(asin, pt_asinf(x))
FLOATING(acos, pt_acosf(x))
FLOATING(atan, pt_atanf(x))
FLOATING(sinh, pt_sinhf(x))
FLOATING(cosh, pt_coshf(x))
FLOATING(tanh, pt_tanhf(x))
FLOATING(asinh, pt_asinhf(x))
FLOATING(acosh, pt_acoshf(x))
FLOATING(atanh, pt_atanhf(x))
FLOATING(sigmoid, pt_sigmoidf(x))
FLOATING(erf, pt_erff(x))

PT_UNARY_F32(reciprocal, 1.0f / x)
PT_UNARY_F64(reciprocal, 1.0 / x)
static const pt_unary reciprocal_op = {NULL, reciprocal_f32, reciprocal_f64, NULL,
                                       PT_RULE_FLOATING};
PT_UNARY_KERNEL(aten_reciprocal_out, reciprocal_op, 0)

// ---- of all numbers; the expressions of integers wrap

#define SAME(name, float32, float64, integer, rule)                                     \
    PT_UNARY_F32(name, float32)                                                         \
    PT_UNARY_F64(name, float64)                                                         \
    PT_UNARY_I64(name, integer)                                                         \
    static const pt_unary name##_op = {NULL, name##_f32, name##_f64, name##_i64, rule}; \
    PT_UNARY_KERNEL(aten_##name##_out, name##_op, 0)

#define NEGATIVE_INTEGER ((int64_t)(0 - (uint64_t)x))
#define SIGN ((x > 0) - (x < 0))

SAME(abs, __builtin_fabsf(x), __builtin_fabs(x), x < 0 ? NEGATIVE_INTEGER : x, PT_RULE_SAME)
SAME(neg, -x, -x, NEGATIVE_INTEGER, PT_RULE_NUMBER)
SAME(sign, SIGN, SIGN, SIGN, PT_RULE_SAME)

// ---- rounding; integers stay as they are

SAME(floor, pt_floorf(x), pt_floor(x), x, PT_RULE_SAME)
SAME(ceil, pt_ceilf(x), pt_ceil(x), x, PT_RULE_SAME)
SAME(trunc, pt_truncf(x), pt_trunc(x), x, PT_RULE_SAME)
SAME(round, pt_rintf(x), pt_rint(x), x, PT_RULE_SAME)
