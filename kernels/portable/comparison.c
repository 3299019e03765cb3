// Comparisons, and logic on truth values and on bits.
#include "core/generated/operator_arguments.h"
#include "portable/elementwise.h"

#define PREDICATE(name, expression)      \
    PT_BINARY_F32(name, expression)      \
    PT_BINARY_F64(name, expression)      \
    PT_BINARY_I64(name, expression)      \
    static const pt_binary name##_op = { \
        NULL, name##_f32, name##_f64, name##_i64, PT_RULE_PREDICATE, false, false};

#define COMPARISON(name, operation)                                         \
    PREDICATE(name, x operation y)                                          \
    PT_BINARY_KERNEL(aten_##name##_Tensor_out, name##_op, PT_ORDER_TENSORS) \
    PT_BINARY_KERNEL(aten_##name##_Scalar_out, name##_op, PT_ORDER_SCALAR)

COMPARISON(eq, ==)
COMPARISON(ne, !=)
COMPARISON(lt, <)
COMPARISON(le, <=)
COMPARISON(gt, >)
COMPARISON(ge, >=)

PREDICATE(logical_and, x != 0 && y != 0)
PREDICATE(logical_or, x != 0 || y != 0)
PREDICATE(logical_xor, (x != 0) != (y != 0))
PT_BINARY_KERNEL(aten_logical_and_out, logical_and_op, PT_ORDER_TENSORS)
PT_BINARY_KERNEL(aten_logical_or_out, logical_or_op, PT_ORDER_TENSORS)
PT_BINARY_KERNEL(aten_logical_xor_out, logical_xor_op, PT_ORDER_TENSORS)

#define BITWISE(name, operation)                                                                   \
    PT_BINARY_I64(name, x operation y)                                                             \
    static const pt_binary name##_op = {NULL, NULL, NULL, name##_i64, PT_RULE_SAME, false, false}; \
    PT_BINARY_KERNEL(aten_##name##_Tensor_out, name##_op, PT_ORDER_TENSORS)                        \
    PT_BINARY_KERNEL(aten_##name##_Scalar_out, name##_op, PT_ORDER_SCALAR)

BITWISE(bitwise_and, &)
BITWISE(bitwise_or, |)
BITWISE(bitwise_xor, ^)

// Shifts by `other` positions. A shift beyond the dtype's bits, or a negative one, gives 0 to the
// left, and the sign to the right.
#define IS_FAR(limit) (y < 0 || y >= (limit))

#define SHIFT(name, expression)                                             \
    PT_BINARY_I64(name, expression)                                         \
    static const pt_binary name##_op = {                                    \
        NULL, NULL, NULL, name##_i64, PT_RULE_NUMBER, false, false};        \
    PT_BINARY_KERNEL(aten_##name##_Tensor_out, name##_op, PT_ORDER_TENSORS) \
    PT_BINARY_KERNEL(aten_##name##_Tensor_Scalar_out, name##_op, PT_ORDER_SCALAR)

SHIFT(bitwise_left_shift, IS_FAR(64) ? 0 : (int64_t)((uint64_t)x << y))
SHIFT(bitwise_right_shift, x >> (IS_FAR(63) ? 63 : y))

PT_UNARY_F32(logical_not, x == 0)
PT_UNARY_F64(logical_not, x == 0)
PT_UNARY_I64(logical_not, x == 0)
static const pt_unary logical_not_op = {
    NULL, logical_not_f32, logical_not_f64, logical_not_i64, PT_RULE_PREDICATE, false, false};
PT_UNARY_KERNEL(aten_logical_not_out, logical_not_op, 0)

PT_UNARY_F32(isnan, x != x)
PT_UNARY_F64(isnan, x != x)
PT_UNARY_I64(isnan, ((void)x, 0))
static const pt_unary isnan_op = {NULL,  isnan_f32, isnan_f64, isnan_i64, PT_RULE_PREDICATE,
                                  false, false};
PT_UNARY_KERNEL(aten_isnan_out, isnan_op, 0)

PT_UNARY_F32(isinf, x - x != 0 && x == x)
PT_UNARY_F64(isinf, x - x != 0 && x == x)
PT_UNARY_I64(isinf, ((void)x, 0))
static const pt_unary isinf_op = {NULL,  isinf_f32, isinf_f64, isinf_i64, PT_RULE_PREDICATE,
                                  false, false};
PT_UNARY_KERNEL(aten_isinf_out, isinf_op, 0)

// For bool the result is the logical not, since only the lowest bit counts.
PT_UNARY_I64(bitwise_not, ~x)
static const pt_unary bitwise_not_op = {NULL,         NULL,  NULL, bitwise_not_i64,
                                        PT_RULE_SAME, false, false};

static const pt_unary *bitwise_not_of(const pt_context *c, pt_ref in) {
    return pt_get_tensor(c, in).dtype == PT_DTYPE_BOOL ? &logical_not_op : &bitwise_not_op;
}

static int bitwise_not_check(pt_context *c, const pt_ref *args) {
    return pt_unary_check(c, args, bitwise_not_of(c, args[BITWISE_NOT_SELF]), 0);
}

static int bitwise_not_run(pt_context *c, const pt_ref *args) {
    return pt_unary_run(c, args, bitwise_not_of(c, args[BITWISE_NOT_SELF]), 0);
}

const pt_kernel pt_aten_bitwise_not_out = PT_KERNEL(bitwise_not_check, bitwise_not_run);
