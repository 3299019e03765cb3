// Activation functions, and other functions of one operand and some numbers.
#include "arch/float_rows.h"
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/elementwise.h"

// ---- relu

static void relu_row(int32_t n, float *out, const float *in, const pt_number *p) {
    (void)p;
    pt_relu_row(out, in, n);
}

PT_UNARY_F32(relu, x <= 0 ? 0 : x)
PT_UNARY_F64(relu, x <= 0 ? 0 : x)
PT_UNARY_I64(relu, x <= 0 ? 0 : x)
static const pt_unary relu_op = {relu_row,       relu_f32, relu_f64, relu_i64,
                                 PT_RULE_NUMBER, false,    true};
PT_UNARY_KERNEL(aten_relu_out, relu_op, 0)

// ---- clamp: p[0] is the lower bound, p[1] the upper, which has precedence. A NaN stays NaN; a
// bound that is NaN makes all elements NaN.

static float clamp_f32(float x, const pt_number *p) {
    if (pt_is_nanf(p[0].f32) || pt_is_nanf(p[1].f32)) {
        return p[0].f32 + p[1].f32;
    }
    float y = x < p[0].f32 ? p[0].f32 : x;
    return y > p[1].f32 ? p[1].f32 : y;
}

static double clamp_f64(double x, const pt_number *p) {
    if (p[0].f64 != p[0].f64 || p[1].f64 != p[1].f64) {
        return p[0].f64 + p[1].f64;
    }
    double y = x < p[0].f64 ? p[0].f64 : x;
    return y > p[1].f64 ? p[1].f64 : y;
}

static int64_t clamp_i64(int64_t x, const pt_number *p) {
    int64_t y = x < p[0].i64 ? p[0].i64 : x;
    return y > p[1].i64 ? p[1].i64 : y;
}

// The bits of a float as an unsigned integer in the same order: -infinity is 0, and all NaNs are
// above +infinity.
#define ORDER_INFINITY 0xFF000001u

static inline uint32_t order(uint32_t bits) {
    return (bits ^ ((uint32_t)((int32_t)bits >> 31) >> 1)) - 0x807FFFFFu;
}

// Compares bits: as fast as an FPU, and much faster than floats in software.
static void clamp_row(int32_t n, float *out_floats, const float *in_floats, const pt_number *p) {
    if (pt_is_nanf(p[0].f32) || pt_is_nanf(p[1].f32)) {
        for (; n > 0; n--) {
            *out_floats++ = p[0].f32 + p[1].f32;
        }
        return;
    }
    pt_bits high = {p[1].f32};
    pt_bits low = {p[0].f32 > high.f ? high.f : p[0].f32};
    // Both zeros are equal as floats: 0 is within the lower bound -0, and -0 within the upper bound
    // 0.
    uint32_t lowest = order(low.f == 0 ? 0x80000000 : low.u);
    uint32_t highest = order(high.f == 0 ? 0 : high.u);
    pt_bits *out = (pt_bits *)(void *)out_floats;
    const pt_bits *in = (const pt_bits *)(const void *)in_floats;
    for (; n > 0; n--) {
        uint32_t x = (in++)->u;
        uint32_t rank = order(x);
        uint32_t y = rank < lowest ? low.u : x;
        if (rank > highest && rank <= ORDER_INFINITY) {
            y = high.u;
        }
        (out++)->u = y;
    }
}

static const pt_unary clamp_op = {clamp_row,      clamp_f32, clamp_f64, clamp_i64,
                                  PT_RULE_NUMBER, false,     true};
PT_UNARY_KERNEL(aten_hardtanh_out, clamp_op, 2)

// Returns the promoted dtype of self and its bounds.
static uint8_t activation_clamp_dtype(const pt_context *c, const pt_ref *args) {
    uint8_t dtype = pt_get_tensor(c, args[CLAMP_SELF]).dtype;
    for (uint32_t i = CLAMP_MIN; i <= CLAMP_MAX; i++) {
        if (!pt_is_none(args[i])) {
            dtype = pt_promote_scalar(dtype, pt_get_scalar(c, args[i]));
        }
    }
    return dtype;
}

static int activation_clamp_check(pt_context *c, const pt_ref *args) {
    if (pt_is_none(args[CLAMP_MIN]) && pt_is_none(args[CLAMP_MAX])) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "clamp needs min or max");
    }
    return pt_unary_check_as(c, args[CLAMP_SELF], args[CLAMP_OUT], &clamp_op,
                             activation_clamp_dtype(c, args));
}

static int activation_clamp_run(pt_context *c, const pt_ref *args) {
    uint8_t compute = pt_compute_dtype(activation_clamp_dtype(c, args), clamp_op.rule);
    pt_number p[2];
    for (uint32_t i = 0; i < 2; i++) {
        p[i] = pt_is_none(args[CLAMP_MIN + i])
                   ? pt_no_bound(i == 0, compute)
                   : pt_number_of(pt_get_scalar(c, args[CLAMP_MIN + i]), compute);
    }
    return pt_unary_run_as(c, args[CLAMP_SELF], args[CLAMP_OUT], &clamp_op, compute, p);
}

const pt_kernel pt_aten_clamp_out = PT_KERNEL(activation_clamp_check, activation_clamp_run);

// ---- functions of floating numbers only

static void leaky_relu_row(int32_t n, float *out, const float *in, const pt_number *p) {
    float slope = p[0].f32;
    for (; n > 0; n--) {
        float x = *in++;
        *out++ = x > 0 ? x : x * slope;
    }
}

PT_UNARY_F32(leaky_relu, x > 0 ? x : x * p[0].f32)
PT_UNARY_F64(leaky_relu, x > 0 ? x : x * p[0].f64)
static const pt_unary leaky_relu_op = {leaky_relu_row, leaky_relu_f32, leaky_relu_f64, NULL,
                                       PT_RULE_SAME,   false,          false};
PT_UNARY_KERNEL(aten_leaky_relu_out, leaky_relu_op, 1)

// p: alpha, scale, input_scale
PT_UNARY_F32(elu, (x < 0 ? pt_expm1f(x * p[2].f32) * p[0].f32 : x) * p[1].f32)
PT_UNARY_F64(elu, (x < 0 ? pt_float64->expm1(x * p[2].f64) * p[0].f64 : x) * p[1].f64)
static const pt_unary elu_op = {NULL, elu_f32, elu_f64, NULL, PT_RULE_SAME, true, false};
PT_UNARY_KERNEL(aten_elu_out, elu_op, 3)

// x P(X <= x) for a normal X, by erfc, which is also accurate far below zero.
PT_UNARY_F32(gelu, 0.5f * x * pt_erfcf(x * -0x1.6a09e6p-1f))
PT_UNARY_F64(gelu, 0.5 * x * pt_float64->erfc(x * -0x1.6a09e667f3bcdp-1))
static const pt_unary gelu_op = {NULL, gelu_f32, gelu_f64, NULL, PT_RULE_SAME, true, false};

// x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3), which equals x sigmoid(2u).
PT_UNARY_F32(gelu_tanh, x *pt_sigmoidf(0x1.988454p+0f * (x + 0x1.6e4e26p-5f * (x * x * x))))
PT_UNARY_F64(gelu_tanh, x * pt_float64->sigmoid(0x1.9884533d43651p+0 *
                                                (x + 0x1.6e4e26d4801f7p-5 * (x * x * x))))
static const pt_unary gelu_tanh_op = {NULL,         gelu_tanh_f32, gelu_tanh_f64, NULL,
                                      PT_RULE_SAME, true,          false};

// Returns the function of the approximation "none" or "tanh"; NULL for any other.
static const pt_unary *gelu_by(const pt_context *c, pt_ref approximate) {
    static const char none[] = "none", by_tanh[] = "tanh";
    return pt_string_is(c, approximate, none)      ? &gelu_op
           : pt_string_is(c, approximate, by_tanh) ? &gelu_tanh_op
                                                   : NULL;
}

static int gelu_check(pt_context *c, const pt_ref *args) {
    const pt_unary *op = gelu_by(c, args[GELU_APPROXIMATE]);
    if (!op) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "gelu's approximate is not none or tanh");
    }
    return pt_unary_check_as(c, args[GELU_SELF], args[GELU_OUT], op,
                             pt_get_tensor(c, args[GELU_SELF]).dtype);
}

static int gelu_run(pt_context *c, const pt_ref *args) {
    return pt_unary_run_as(c, args[GELU_SELF], args[GELU_OUT], gelu_by(c, args[GELU_APPROXIMATE]),
                           pt_get_tensor(c, args[GELU_SELF]).dtype, NULL);
}

const pt_kernel pt_aten_gelu_out = PT_KERNEL(gelu_check, gelu_run);

// ---- logit: (self, eps, out): log(y / (1 - y)), where y is self, limited to eps..1 - eps if eps
// is not None

// p: the limits
PT_UNARY_F32(logit_limited, x<p[0].f32 ? p[0].f32 : x> p[1].f32 ? p[1].f32 : x)

static float logit_f32(float x, const pt_number *p) {
    float y = logit_limited_f32(x, p);
    return pt_logf(y / (1 - y));
}

PT_UNARY_F64(logit_limited, x<p[0].f64 ? p[0].f64 : x> p[1].f64 ? p[1].f64 : x)
PT_UNARY_F64(logit, (x = logit_limited_f64(x, p), pt_float64->log(x / (1 - x))))
static const pt_unary logit_op = {NULL, logit_f32, logit_f64, NULL, PT_RULE_FLOATING, true, false};

static int logit_check(pt_context *c, const pt_ref *args) {
    return pt_unary_check_as(c, args[LOGIT_SELF], args[LOGIT_OUT], &logit_op,
                             pt_get_tensor(c, args[LOGIT_SELF]).dtype);
}

static int logit_run(pt_context *c, const pt_ref *args) {
    const uint8_t dtype = pt_get_tensor(c, args[LOGIT_SELF]).dtype;
    const uint8_t compute = pt_compute_dtype(dtype, logit_op.rule);
    const double eps = pt_is_none(args[LOGIT_EPS]) ? -1 : pt_get_double(c, args[LOGIT_EPS]);
    pt_number p[2] = {pt_no_bound(true, compute), pt_no_bound(false, compute)};
    if (eps >= 0 && compute == PT_DTYPE_DOUBLE) {
        p[0].f64 = eps;
        p[1].f64 = 1 - eps;
    } else if (eps >= 0) {
        p[0].f32 = (float)eps;
        p[1].f32 = 1 - (float)eps;
    }
    return pt_unary_run_as(c, args[LOGIT_SELF], args[LOGIT_OUT], &logit_op, dtype, p);
}

const pt_kernel pt_aten_logit_out = PT_KERNEL(logit_check, logit_run);
