// Functions of one operand without parameters.
#include "elementwise.h"
#include "float_math.h"

// ---- of floating numbers: integers are taken as float32. float64 has no such functions.

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
FLOATING(tanh, pt_tanhf(x))
FLOATING(sigmoid, pt_sigmoidf(x))
FLOATING(erf, pt_erff(x))

PT_UNARY_F32(reciprocal, 1.0f / x)
PT_UNARY_F64(reciprocal, 1.0 / x)
static const pt_unary reciprocal_op = {NULL, reciprocal_f32, reciprocal_f64, NULL,
                                       PT_RULE_FLOATING};
PT_UNARY_KERNEL(aten_reciprocal_out, reciprocal_op, 0)

// ---- of all numbers; the expressions of integers wrap

#define SAME(name, floating, integer, rule)                                             \
    PT_UNARY_F32(name, floating)                                                        \
    PT_UNARY_F64(name, floating)                                                        \
    PT_UNARY_I64(name, integer)                                                         \
    static const pt_unary name##_op = {NULL, name##_f32, name##_f64, name##_i64, rule}; \
    PT_UNARY_KERNEL(aten_##name##_out, name##_op, 0)

#define NEGATIVE_INTEGER ((int64_t)(0 - (uint64_t)x))

SAME(abs, x > 0 ? x : 0 - x, x < 0 ? NEGATIVE_INTEGER : x, PT_RULE_SAME)
SAME(neg, -x, NEGATIVE_INTEGER, PT_RULE_NUMBER)
SAME(sign, (x > 0) - (x < 0), (x > 0) - (x < 0), PT_RULE_SAME)

// ---- rounding; integers stay as they are

#define ROUNDING(name, symbol, function)                                                  \
    PT_UNARY_F32(name, function(x))                                                       \
    PT_UNARY_I64(name, x)                                                                 \
    static const pt_unary name##_op = {NULL, name##_f32, NULL, name##_i64, PT_RULE_SAME}; \
    PT_UNARY_KERNEL(symbol, name##_op, 0)

ROUNDING(floor, aten_floor_out, pt_floorf)
ROUNDING(ceil, aten_ceil_out, pt_ceilf)
ROUNDING(trunc, aten_trunc_out, pt_truncf)
ROUNDING(rint, aten_round_out, pt_rintf)
