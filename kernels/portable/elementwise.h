// Operators that compute each output element from one element of each operand.
//
// An operator is a table of functions, one for each type that it computes in; the two engines here
// check its arguments, promote, broadcast and walk. If every tensor is float32, they call the
// operator's row function, if it has one.
#ifndef PT_PORTABLE_ELEMENTWISE_H
#define PT_PORTABLE_ELEMENTWISE_H

#include "portable/double_math.h"
#include "portable/dtype_access.h"

// A number in the type that an operator computes in: float32, float64, or int64 for the integral
// dtypes.
typedef union pt_number {
    float f32;
    double f64;
    int64_t i64;
} pt_number;

// Rules that derive two dtypes from the promoted dtype of the operands: the dtype to compute in,
// and the dtype of the result.
typedef enum pt_rule {
    PT_RULE_SAME,      // both dtypes are the promoted dtype
    PT_RULE_NUMBER,    // both dtypes are the promoted dtype, which is not bool
    PT_RULE_FLOATING,  // both dtypes are the promoted dtype if it is floating, else float32
    PT_RULE_PREDICATE, // the result is bool
} pt_rule;

#define PT_REASON_BROADCAST "the sizes of the operands do not broadcast"
#define PT_REASON_CAST "the result cannot be cast to the output's dtype"

// Returns the dtype to compute in. PT_RULE_PREDICATE computes in the promoted dtype; float16 and
// bfloat16 are computed in float32.
uint8_t pt_compute_dtype(uint8_t promoted, pt_rule rule);
// True if PyTorch casts a result of dtype `from` to an output of dtype `to`: not from floating to
// integral, nor from integers to bool.
bool pt_can_cast(uint8_t from, uint8_t to);
// Rejects a result that cannot be cast to the output.
PT_MUST_USE int pt_check_result(pt_context *c, uint8_t compute, pt_rule rule, const pt_tensor *out);

// True if an operator has a function for the dtype `compute`.
#define PT_HAS_FUNCTION(op, compute)                                  \
    (!((compute) == PT_DTYPE_BOOL && (op)->rule == PT_RULE_NUMBER) && \
     ((compute) == PT_DTYPE_FLOAT    ? (op)->f32 != NULL              \
      : (compute) == PT_DTYPE_DOUBLE ? (op)->f64 != NULL              \
                                     : (op)->i64 != NULL))

// Truncates an integer to the bits of `dtype`, since operands and results are cast to the dtype of
// the computation.
int64_t pt_cut_int(int64_t v, uint8_t dtype);
// Returns the number s in the type for computations in the dtype `compute`.
pt_number pt_number_of(pt_scalar s, uint8_t compute);
// Returns the number below (or above) all other numbers, to replace a missing bound.
pt_number pt_no_bound(bool lower, uint8_t compute);
// Returns a 0-d tensor of a number, which is stored in *element.
pt_tensor pt_number_tensor(pt_number *element, pt_scalar s, uint8_t compute);
// Read and write element i of an array of `dtype`, for computations in `compute`.
pt_number pt_load_number(const void *data, int32_t i, uint8_t dtype, uint8_t compute);
void pt_store_number(void *data, int32_t i, uint8_t dtype, pt_number n, uint8_t compute);

// ---- two operands

typedef struct pt_binary {
    // out[i] = f(a[i * a_step], b[i * b_step]) for n elements; out may be a or b.
    void (*row)(int32_t n, float *out, const float *a, int32_t a_step, const float *b,
                int32_t b_step);
    float (*f32)(float, float);
    double (*f64)(double, double);
    int64_t (*i64)(int64_t, int64_t);
    pt_rule rule;
    bool divides; // an integer second operand must not be 0
    bool math;    // f64 calls pt_float64
} pt_binary;

// Positions of the operands among the arguments; the output is always last.
typedef enum pt_operand_order {
    PT_ORDER_TENSORS,       // self, other, out
    PT_ORDER_TENSORS_ALPHA, // self, other, alpha, out: other * alpha is the second operand
    PT_ORDER_TENSORS_MODE,  // self, other, a mode, out
    PT_ORDER_SCALAR,        // self, number, out
    PT_ORDER_SCALAR_ALPHA,  // self, number, alpha, out
    PT_ORDER_SCALAR_MODE,   // self, number, a mode, out
    PT_ORDER_SCALAR_FIRST,  // number, self, out: the number is the first operand
    PT_ORDER_REVERSED,      // self, number, alpha, out: the operands are number, self * alpha
} pt_operand_order;

PT_MUST_USE int pt_binary_check(pt_context *c, const pt_ref *args, const pt_binary *op,
                                pt_operand_order order);
PT_MUST_USE int pt_binary_run(pt_context *c, const pt_ref *args, const pt_binary *op,
                              pt_operand_order order);

#define PT_BINARY_KERNEL(symbol, op, order)                        \
    static int symbol##_check(pt_context *c, const pt_ref *args) { \
        return pt_binary_check(c, args, &op, order);               \
    }                                                              \
    static int symbol##_run(pt_context *c, const pt_ref *args) {   \
        return pt_binary_run(c, args, &op, order);                 \
    }                                                              \
    const pt_kernel pt_##symbol = PT_KERNEL(symbol##_check, symbol##_run);

// The functions evaluate the same expression of x and y in each type.
#define PT_BINARY_F32(name, expression)         \
    static float name##_f32(float x, float y) { \
        return expression;                      \
    }
#define PT_BINARY_F64(name, expression)            \
    static double name##_f64(double x, double y) { \
        return expression;                         \
    }
#define PT_BINARY_I64(name, expression)               \
    static int64_t name##_i64(int64_t x, int64_t y) { \
        return expression;                            \
    }

// The row function evaluates a float32 expression of x and y. Steps are 0, 1, or the steps of a
// broadcast or permuted operand; frequent steps compute four elements at a time.
#define PT_BINARY_ROW(name, expression)                                                           \
    static inline float name##_one(float x, float y) {                                            \
        return expression;                                                                        \
    }                                                                                             \
    static void name##_row(int32_t n, float *out, const float *a, int32_t a_step, const float *b, \
                           int32_t b_step) {                                                      \
        if (a_step == 1 && b_step == 0) {                                                         \
            float y = *b;                                                                         \
            for (; n >= 4; n -= 4, a += 4, out += 4) {                                            \
                float x0 = a[0], x1 = a[1], x2 = a[2], x3 = a[3];                                 \
                out[0] = name##_one(x0, y);                                                       \
                out[1] = name##_one(x1, y);                                                       \
                out[2] = name##_one(x2, y);                                                       \
                out[3] = name##_one(x3, y);                                                       \
            }                                                                                     \
            for (; n > 0; n--) {                                                                  \
                *out++ = name##_one(*a++, y);                                                     \
            }                                                                                     \
            return;                                                                               \
        }                                                                                         \
        if (a_step == 1 && b_step == 1) {                                                         \
            for (; n >= 4; n -= 4, a += 4, b += 4, out += 4) {                                    \
                float x0 = a[0], x1 = a[1], x2 = a[2], x3 = a[3];                                 \
                float y0 = b[0], y1 = b[1], y2 = b[2], y3 = b[3];                                 \
                out[0] = name##_one(x0, y0);                                                      \
                out[1] = name##_one(x1, y1);                                                      \
                out[2] = name##_one(x2, y2);                                                      \
                out[3] = name##_one(x3, y3);                                                      \
            }                                                                                     \
        }                                                                                         \
        for (; n > 0; n--, a += a_step, b += b_step) {                                            \
            *out++ = name##_one(*a, *b);                                                          \
        }                                                                                         \
    }

// ---- one operand

enum { PT_UNARY_PARAMETERS = 3 };

typedef struct pt_unary {
    // out[i] = f(in[i], p) for n elements; out may be in. NULL: calls f32.
    void (*row)(int32_t n, float *out, const float *in, const pt_number *p);
    float (*f32)(float, const pt_number *p);
    double (*f64)(double, const pt_number *p);
    int64_t (*i64)(int64_t, const pt_number *p);
    pt_rule rule;
    bool math;   // f64 calls pt_float64
    bool clamps; // each function clamps x to two bounds
} pt_unary;

// The arguments are the operand, `parameters` numbers (at most PT_UNARY_PARAMETERS) and the output.
// The operator's functions get the numbers in the type of the computation.
PT_MUST_USE int pt_unary_check(pt_context *c, const pt_ref *args, const pt_unary *op,
                               uint32_t parameters);
PT_MUST_USE int pt_unary_run(pt_context *c, const pt_ref *args, const pt_unary *op,
                             uint32_t parameters);

// Check and run for operators that read their numbers themselves, with arguments `in` and `out`.
// `promoted` is the dtype to which `in` and the numbers promote.
PT_MUST_USE int pt_unary_check_as(pt_context *c, pt_ref in, pt_ref out, const pt_unary *op,
                                  uint8_t promoted);
PT_MUST_USE int pt_unary_run_as(pt_context *c, pt_ref in, pt_ref out, const pt_unary *op,
                                uint8_t promoted, const pt_number *p);

#define PT_UNARY_KERNEL(symbol, op, parameters)                    \
    static int symbol##_check(pt_context *c, const pt_ref *args) { \
        return pt_unary_check(c, args, &op, parameters);           \
    }                                                              \
    static int symbol##_run(pt_context *c, const pt_ref *args) {   \
        return pt_unary_run(c, args, &op, parameters);             \
    }                                                              \
    const pt_kernel pt_##symbol = PT_KERNEL(symbol##_check, symbol##_run);

// The functions evaluate the same expression of x (and p) in each type.
#define PT_UNARY_F32(name, expression)                     \
    static float name##_f32(float x, const pt_number *p) { \
        (void)p;                                           \
        return expression;                                 \
    }
#define PT_UNARY_F64(name, expression)                       \
    static double name##_f64(double x, const pt_number *p) { \
        (void)p;                                             \
        return expression;                                   \
    }
#define PT_UNARY_I64(name, expression)                         \
    static int64_t name##_i64(int64_t x, const pt_number *p) { \
        (void)p;                                               \
        return expression;                                     \
    }

#endif
