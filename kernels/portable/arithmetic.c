// Arithmetic of two operands: sum, product, quotient, power, extrema.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/elementwise.h"

// ---- add, sub, mul: integers wrap

PT_BINARY_ROW(add, x + y)
PT_BINARY_F32(add, x + y)
PT_BINARY_F64(add, x + y)
PT_BINARY_I64(add, (int64_t)((uint64_t)x + (uint64_t)y))
static const pt_binary add_op = {add_row, add_f32, add_f64, add_i64, PT_RULE_SAME, false, false};
PT_BINARY_KERNEL(aten_add_out, add_op, PT_ORDER_TENSORS_ALPHA)
PT_BINARY_KERNEL(aten_add_Scalar_out, add_op, PT_ORDER_SCALAR_ALPHA)

PT_BINARY_ROW(sub, x - y)
PT_BINARY_F32(sub, x - y)
PT_BINARY_F64(sub, x - y)
PT_BINARY_I64(sub, (int64_t)((uint64_t)x - (uint64_t)y))
static const pt_binary sub_op = {sub_row, sub_f32, sub_f64, sub_i64, PT_RULE_NUMBER, false, false};
PT_BINARY_KERNEL(aten_sub_out, sub_op, PT_ORDER_TENSORS_ALPHA)
PT_BINARY_KERNEL(aten_sub_Scalar_out, sub_op, PT_ORDER_SCALAR_ALPHA)
PT_BINARY_KERNEL(aten_rsub_Scalar_out, sub_op, PT_ORDER_REVERSED)

PT_BINARY_ROW(mul, x *y)
PT_BINARY_F32(mul, x *y)
PT_BINARY_F64(mul, x *y)
PT_BINARY_I64(mul, (int64_t)((uint64_t)x *(uint64_t)y))
static const pt_binary mul_op = {mul_row, mul_f32, mul_f64, mul_i64, PT_RULE_SAME, false, false};
PT_BINARY_KERNEL(aten_mul_out, mul_op, PT_ORDER_TENSORS)
PT_BINARY_KERNEL(aten_mul_Scalar_out, mul_op, PT_ORDER_SCALAR)

// ---- maximum, minimum: NaN if either operand is NaN

PT_BINARY_ROW(maximum, x > y || x != x ? x : y)
PT_BINARY_F32(maximum, x > y || x != x ? x : y)
PT_BINARY_F64(maximum, x > y || x != x ? x : y)
PT_BINARY_I64(maximum, x > y ? x : y)
static const pt_binary maximum_op = {maximum_row,  maximum_f32, maximum_f64, maximum_i64,
                                     PT_RULE_SAME, false,       false};
PT_BINARY_KERNEL(aten_maximum_out, maximum_op, PT_ORDER_TENSORS)

PT_BINARY_ROW(minimum, x < y || x != x ? x : y)
PT_BINARY_F32(minimum, x < y || x != x ? x : y)
PT_BINARY_F64(minimum, x < y || x != x ? x : y)
PT_BINARY_I64(minimum, x < y ? x : y)
static const pt_binary minimum_op = {minimum_row,  minimum_f32, minimum_f64, minimum_i64,
                                     PT_RULE_SAME, false,       false};
PT_BINARY_KERNEL(aten_minimum_out, minimum_op, PT_ORDER_TENSORS)

// ---- division

PT_BINARY_ROW(div, x / y)
PT_BINARY_F32(div, x / y)
PT_BINARY_F64(div, x / y)
static const pt_binary divide_op = {div_row,          div_f32, div_f64, NULL,
                                    PT_RULE_FLOATING, false,   false};
PT_BINARY_KERNEL(aten_div_out, divide_op, PT_ORDER_TENSORS)
PT_BINARY_KERNEL(aten_div_Scalar_out, divide_op, PT_ORDER_SCALAR)

PT_BINARY_F32(trunc_divide, pt_truncf(x / y))
PT_BINARY_F64(trunc_divide, pt_trunc(x / y))
PT_BINARY_I64(trunc_divide, pt_divide_int(x, y))
static const pt_binary trunc_divide_op = {
    NULL, trunc_divide_f32, trunc_divide_f64, trunc_divide_i64, PT_RULE_SAME, true, false};

// Python's floor division: the quotient that matches the exact remainder of pt_fmodf, so that
// rounding x / y never gives the next integer.
static float floor_divide_f32(float x, float y) {
    if (y == 0) {
        return x / y;
    }
    float mod = pt_fmodf(x, y);
    float quotient = (x - mod) / y;
    if (mod != 0 && (y < 0) != (mod < 0)) {
        quotient -= 1.0f;
    }
    if (quotient == 0) {
        return ((x < 0) != (y < 0)) ? -0.0f : 0.0f;
    }
    float floor = pt_floorf(quotient);
    return quotient - floor > 0.5f ? floor + 1.0f : floor;
}

static double floor_divide_f64(double x, double y) {
    if (y == 0) {
        return x / y;
    }
    double mod = pt_fmod(x, y);
    double quotient = (x - mod) / y;
    if (mod != 0 && (y < 0) != (mod < 0)) {
        quotient -= 1.0;
    }
    if (quotient == 0) {
        return ((x < 0) != (y < 0)) ? -0.0 : 0.0;
    }
    double floor = pt_floor(quotient);
    return quotient - floor > 0.5 ? floor + 1.0 : floor;
}

PT_BINARY_I64(floor_divide, pt_divide_int(x, y) - (pt_rest_int(x, y) != 0 && (x < 0) != (y < 0)))
static const pt_binary floor_divide_op = {
    NULL, floor_divide_f32, floor_divide_f64, floor_divide_i64, PT_RULE_SAME, true, false};
PT_BINARY_KERNEL(aten_floor_divide_out, floor_divide_op, PT_ORDER_TENSORS)

PT_BINARY_F32(fmod, pt_fmodf(x, y))
PT_BINARY_F64(fmod, pt_fmod(x, y))
PT_BINARY_I64(fmod, pt_rest_int(x, y))
static const pt_binary fmod_op = {NULL, fmod_f32, fmod_f64, fmod_i64, PT_RULE_SAME, true, false};
PT_BINARY_KERNEL(aten_fmod_Tensor_out, fmod_op, PT_ORDER_TENSORS)
PT_BINARY_KERNEL(aten_fmod_Scalar_out, fmod_op, PT_ORDER_SCALAR)

static float remainder_f32(float x, float y) {
    float mod = pt_fmodf(x, y);
    return mod != 0 && (y < 0) != (mod < 0) ? mod + y : mod;
}

static double remainder_f64(double x, double y) {
    double mod = pt_fmod(x, y);
    return mod != 0 && (y < 0) != (mod < 0) ? mod + y : mod;
}

static int64_t remainder_i64(int64_t x, int64_t y) {
    int64_t mod = pt_rest_int(x, y);
    return mod != 0 && (y < 0) != (mod < 0) ? mod + y : mod;
}

static const pt_binary remainder_op = {NULL,         remainder_f32, remainder_f64, remainder_i64,
                                       PT_RULE_SAME, true,          false};
PT_BINARY_KERNEL(aten_remainder_Tensor_out, remainder_op, PT_ORDER_TENSORS)
PT_BINARY_KERNEL(aten_remainder_Scalar_out, remainder_op, PT_ORDER_SCALAR)

// Returns the division of the rounding mode None, "trunc" or "floor"; NULL for any other.
static const pt_binary *division(const pt_context *c, pt_ref mode) {
    static const char trunc[] = "trunc", floor[] = "floor";
    if (pt_is_none(mode)) {
        return &divide_op;
    }
    return pt_string_is(c, mode, trunc)   ? &trunc_divide_op
           : pt_string_is(c, mode, floor) ? &floor_divide_op
                                          : NULL;
}

static int div_mode_check(pt_context *c, const pt_ref *args, pt_operand_order order) {
    const pt_binary *op = division(c, args[DIV_MODE_ROUNDING_MODE]);
    if (!op) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "rounding_mode is not None, trunc or floor");
    }
    return pt_binary_check(c, args, op, order);
}

#define DIVISION_KERNEL(symbol, order)                                                   \
    static int symbol##_check(pt_context *c, const pt_ref *args) {                       \
        return div_mode_check(c, args, order);                                           \
    }                                                                                    \
    static int symbol##_run(pt_context *c, const pt_ref *args) {                         \
        return pt_binary_run(c, args, division(c, args[DIV_MODE_ROUNDING_MODE]), order); \
    }                                                                                    \
    const pt_kernel pt_##symbol = PT_KERNEL(symbol##_check, symbol##_run);

DIVISION_KERNEL(aten_div_out_mode, PT_ORDER_TENSORS_MODE)
DIVISION_KERNEL(aten_div_Scalar_mode_out, PT_ORDER_SCALAR_MODE)

// ---- power

// Squares repeatedly, and wraps; a negative exponent gives the integer part of the reciprocal.
static int64_t power_i64(int64_t x, int64_t y) {
    if (y < 0) {
        return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
    }
    uint64_t power = 1, square = (uint64_t)x;
    for (; y != 0; y >>= 1) {
        power *= y & 1 ? square : 1;
        square *= square;
    }
    return (int64_t)power;
}

PT_BINARY_F32(power, pt_powf(x, y))
PT_BINARY_F64(power, pt_float64->pow(x, y))
static const pt_binary power_op = {NULL,         power_f32, power_f64, power_i64,
                                   PT_RULE_SAME, false,     true};
PT_BINARY_KERNEL(aten_pow_Tensor_Tensor_out, power_op, PT_ORDER_TENSORS)
PT_BINARY_KERNEL(aten_pow_Scalar_out, power_op, PT_ORDER_SCALAR_FIRST)

// Computes exponents that need no power, as in PyTorch.
PT_BINARY_ROW(square, ((void)y, x *x))
PT_BINARY_F32(square, ((void)y, x *x))
PT_BINARY_F64(square, ((void)y, x *x))
PT_BINARY_ROW(cube, ((void)y, x *x *x))
PT_BINARY_F32(cube, ((void)y, x *x *x))
PT_BINARY_F64(cube, ((void)y, x *x *x))
PT_BINARY_ROW(root, ((void)y, pt_sqrtf(x)))
PT_BINARY_F32(root, ((void)y, pt_sqrtf(x)))
PT_BINARY_F64(root, ((void)y, pt_float64->sqrt(x)))
PT_BINARY_F32(inverse, ((void)y, 1 / x))
PT_BINARY_F64(inverse, ((void)y, 1 / x))
PT_BINARY_F32(inverse_square, ((void)y, 1 / (x * x)))
PT_BINARY_F64(inverse_square, ((void)y, 1 / (x * x)))
PT_BINARY_F32(inverse_root, ((void)y, 1 / pt_sqrtf(x)))
PT_BINARY_F64(inverse_root, ((void)y, 1 / pt_float64->sqrt(x)))

// clang-format off
static const struct {
    float exponent;
    pt_binary op;
} powers[] = {
    {2, {square_row, square_f32, square_f64, power_i64, PT_RULE_SAME, false, false}},
    {3, {cube_row, cube_f32, cube_f64, power_i64, PT_RULE_SAME, false, false}},
    {-1, {NULL, inverse_f32, inverse_f64, power_i64, PT_RULE_SAME, false, false}},
    {-2, {NULL, inverse_square_f32, inverse_square_f64, power_i64, PT_RULE_SAME, false, false}},
    {0.5f, {root_row, root_f32, root_f64, power_i64, PT_RULE_SAME, false, true}},
    {-0.5f, {NULL, inverse_root_f32, inverse_root_f64, power_i64, PT_RULE_SAME, false, true}},
};
// clang-format on

// As in PyTorch, float16 uses a power where other dtypes use a root: the results differ for -0 and
// -inf.
static const pt_binary *power_of(const pt_context *c, const pt_ref *args) {
    const double y = pt_get_double(c, args[POW_TENSOR_SCALAR_EXPONENT]);
    const bool half = pt_get_tensor(c, args[POW_TENSOR_SCALAR_SELF]).dtype == PT_DTYPE_HALF;
    for (uint32_t i = 0; i < sizeof powers / sizeof *powers; i++) {
        if (y == (double)powers[i].exponent && !(half && (y == 0.5 || y == -0.5))) {
            return &powers[i].op;
        }
    }
    return &power_op;
}

static int power_scalar_check(pt_context *c, const pt_ref *args) {
    PT_TRY(pt_binary_check(c, args, &power_op, PT_ORDER_SCALAR));
    pt_scalar exponent = pt_get_scalar(c, args[POW_TENSOR_SCALAR_EXPONENT]);
    if (exponent.type == PT_TYPE_INT && exponent.as.i < 0 &&
        !pt_is_floating(pt_get_tensor(c, args[POW_TENSOR_SCALAR_SELF]).dtype)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "an integer to a negative integer power");
    }
    return PT_ERROR_OK;
}

static int power_scalar_run(pt_context *c, const pt_ref *args) {
    return pt_binary_run(c, args, power_of(c, args), PT_ORDER_SCALAR);
}

const pt_kernel pt_aten_pow_Tensor_Scalar_out = PT_KERNEL(power_scalar_check, power_scalar_run);

// ---- atan2

PT_BINARY_F32(atan2, pt_atan2f(x, y))
PT_BINARY_F64(atan2, pt_float64->atan2(x, y))
static const pt_binary atan2_op = {NULL, atan2_f32, atan2_f64, NULL, PT_RULE_FLOATING, false, true};
PT_BINARY_KERNEL(aten_atan2_out, atan2_op, PT_ORDER_TENSORS)
