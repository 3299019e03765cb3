// Operators on numbers: arithmetic and comparisons of executorch_prim::, and queries of a tensor's
// sizes and values. ExecuTorch ends the process for a division by 0, and computes nonsense for an
// overflow or for a float beyond the integers. These kernels return InvalidArgument in these cases.
// Numbers of the wrong type are InvalidType.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/dtype_access.h"
#include "portable/float_math.h"

// Arguments of operators on two numbers, and the output of operators on one.
enum {
    A = EXECUTORCH_PRIM_ADD_SCALAR_A,
    B = EXECUTORCH_PRIM_ADD_SCALAR_B,
    OUT = EXECUTORCH_PRIM_ADD_SCALAR_OUT,
    UNARY_OUT = NEG_SCALAR_OUT,
};

static int prim_accept(pt_context *c, const pt_ref *args) {
    (void)c;
    (void)args;
    return PT_ERROR_OK;
}

static int wrong_type(pt_context *c) {
    return pt_fail(c, PT_ERROR_INVALID_TYPE, "numbers of these types");
}

static int prim_overflow(pt_context *c) {
    return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the result does not fit in 64 bits");
}

static int division_by_zero(pt_context *c) {
    return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a division by zero");
}

static int set_int_unless(pt_context *c, bool overflows, pt_ref out, int64_t value) {
    if (overflows) {
        return prim_overflow(c);
    }
    pt_set_int(c, out, value);
    return PT_ERROR_OK;
}

// Two numbers of one type; an int is converted beside a double.
typedef struct pair {
    uint8_t type;
    int64_t a, b; // for ints and bools
    double x, y;  // for doubles
} pair;

static bool prim_is_number(uint8_t type) {
    return type == PT_TYPE_INT || type == PT_TYPE_DOUBLE;
}

// InvalidType unless both are bools, or each is an int or a double.
static int read_pair(pt_context *c, const pt_ref *args, pair *p) {
    pt_scalar a = pt_get_scalar(c, args[A]), b = pt_get_scalar(c, args[B]);
    if (a.type == b.type && a.type != PT_TYPE_DOUBLE) {
        p->a = a.as.i;
        p->b = b.as.i;
        p->type = a.type;
        return PT_ERROR_OK;
    }
    if (!prim_is_number(a.type) || !prim_is_number(b.type)) {
        return wrong_type(c);
    }
    p->x = pt_scalar_as_double(a);
    p->y = pt_scalar_as_double(b);
    p->type = PT_TYPE_DOUBLE;
    return PT_ERROR_OK;
}

// Reads a pair as read_pair does, but rejects bools.
static int read_numbers(pt_context *c, const pt_ref *args, pair *p) {
    PT_TRY(read_pair(c, args, p));
    return p->type == PT_TYPE_BOOL ? wrong_type(c) : PT_ERROR_OK;
}

static int read_ints(pt_context *c, const pt_ref *args, pair *p) {
    PT_TRY(read_pair(c, args, p));
    return p->type != PT_TYPE_INT ? wrong_type(c) : PT_ERROR_OK;
}

// ---- arithmetic

#define ARITHMETIC(name, overflows, operator)                        \
    static int run_##name(pt_context *c, const pt_ref *args) {       \
        pair p;                                                      \
        PT_TRY(read_numbers(c, args, &p));                           \
        if (p.type == PT_TYPE_INT) {                                 \
            int64_t result;                                          \
            bool too_large = overflows(p.a, p.b, &result);           \
            PT_TRY(set_int_unless(c, too_large, args[OUT], result)); \
        } else {                                                     \
            pt_set_double(c, args[OUT], p.x operator p.y);           \
        }                                                            \
        return PT_ERROR_OK;                                          \
    }                                                                \
    const pt_kernel pt_executorch_prim_##name##_Scalar = PT_KERNEL(prim_accept, run_##name);

ARITHMETIC(add, __builtin_add_overflow, +)
ARITHMETIC(sub, __builtin_sub_overflow, -)
ARITHMETIC(mul, __builtin_mul_overflow, *)

// Division of ints: truncated, or rounded down.
static int prim_divide(pt_context *c, const pair *p, bool down, pt_ref out) {
    if (p->b == 0) {
        return division_by_zero(c);
    }
    bool overflows = p->a == INT64_MIN && p->b == -1;
    int64_t rest = pt_rest_int(p->a, p->b);
    down = down && rest != 0 && (p->a < 0) != (p->b < 0);
    return set_int_unless(c, overflows, out, pt_divide_int(p->a, p->b) - down);
}

// A division by 0 results in infinity with the sign bit of the dividend, even if that is 0 or NaN.
static double floor_divide(double x, double y) {
    if (y == 0) {
        double infinity = __builtin_inf();
        return __builtin_signbit(x) ? -infinity : infinity;
    }
    double rest = pt_fmod(x, y);
    double quotient = (x - rest) / y;
    return rest != 0 && (y < 0) != (rest < 0) ? quotient - 1 : quotient;
}

static int run_floordiv(pt_context *c, const pt_ref *args) {
    pair p;
    PT_TRY(read_numbers(c, args, &p));
    if (p.type == PT_TYPE_INT) {
        PT_TRY(prim_divide(c, &p, true, args[OUT]));
    } else {
        pt_set_double(c, args[OUT], floor_divide(p.x, p.y));
    }
    return PT_ERROR_OK;
}

static int run_floordiv_int(pt_context *c, const pt_ref *args) {
    pair p;
    PT_TRY(read_ints(c, args, &p));
    return prim_divide(c, &p, false, args[OUT]);
}

// The result has the sign of the dividend, as in ExecuTorch.
static int run_mod(pt_context *c, const pt_ref *args) {
    pair p;
    PT_TRY(read_ints(c, args, &p));
    if (p.b == 0) {
        return division_by_zero(c);
    }
    pt_set_int(c, args[OUT], pt_rest_int(p.a, p.b));
    return PT_ERROR_OK;
}

static int run_truediv(pt_context *c, const pt_ref *args) {
    pair p;
    PT_TRY(read_numbers(c, args, &p));
    double x = p.type == PT_TYPE_INT ? pt_int_as_double(p.a) : p.x;
    double y = p.type == PT_TYPE_INT ? pt_int_as_double(p.b) : p.y;
    pt_set_double(c, args[OUT], x / y);
    return PT_ERROR_OK;
}

static int run_sym_max(pt_context *c, const pt_ref *args) {
    pair p;
    PT_TRY(read_ints(c, args, &p));
    return set_int_unless(c, false, args[OUT], p.a > p.b ? p.a : p.b);
}

static int run_sym_min(pt_context *c, const pt_ref *args) {
    pair p;
    PT_TRY(read_ints(c, args, &p));
    return set_int_unless(c, false, args[OUT], p.a < p.b ? p.a : p.b);
}

const pt_kernel pt_executorch_prim_floordiv_Scalar = PT_KERNEL(prim_accept, run_floordiv);
const pt_kernel pt_executorch_prim_floordiv_int = PT_KERNEL(prim_accept, run_floordiv_int);
const pt_kernel pt_executorch_prim_mod_Scalar = PT_KERNEL(prim_accept, run_mod);
const pt_kernel pt_executorch_prim_truediv_Scalar = PT_KERNEL(prim_accept, run_truediv);
const pt_kernel pt_executorch_prim_sym_max_Scalar = PT_KERNEL(prim_accept, run_sym_max);
const pt_kernel pt_executorch_prim_sym_min_Scalar = PT_KERNEL(prim_accept, run_sym_min);

// ---- comparisons

#define COMPARISON(name, operator)                                                    \
    static int run_##name(pt_context *c, const pt_ref *args) {                        \
        pair p;                                                                       \
        PT_TRY(read_pair(c, args, &p));                                               \
        bool result = p.type == PT_TYPE_DOUBLE ? p.x operator p.y : p.a operator p.b; \
        pt_set_bool(c, args[OUT], result);                                            \
        return PT_ERROR_OK;                                                           \
    }                                                                                 \
    const pt_kernel pt_executorch_prim_##name##_Scalar = PT_KERNEL(prim_accept, run_##name);

COMPARISON(eq, ==)
COMPARISON(gt, >)
COMPARISON(lt, <)
COMPARISON(ge, >=)
COMPARISON(le, <=)

// ---- operators on one number

static int run_neg(pt_context *c, const pt_ref *args) {
    pt_scalar s = pt_get_scalar(c, args[A]);
    if (s.type == PT_TYPE_INT) {
        return set_int_unless(c, s.as.i == INT64_MIN, args[UNARY_OUT],
                              s.as.i == INT64_MIN ? 0 : -s.as.i);
    }
    if (s.type != PT_TYPE_DOUBLE) {
        return wrong_type(c);
    }
    pt_set_double(c, args[UNARY_OUT], -s.as.d);
    return PT_ERROR_OK;
}

// Sets `out` to a double without fraction, converted to an int.
static int set_whole(pt_context *c, pt_ref out, double value) {
    bool fits = value >= -0x1p63 && value < 0x1p63;
    return set_int_unless(c, !fits, out, fits ? (int64_t)value : 0);
}

static int run_rounded(pt_context *c, const pt_ref *args, double (*rounded)(double)) {
    pt_scalar s = pt_get_scalar(c, args[A]);
    return s.type == PT_TYPE_DOUBLE ? set_whole(c, args[UNARY_OUT], rounded(s.as.d))
                                    : wrong_type(c);
}

static int run_ceil(pt_context *c, const pt_ref *args) {
    return run_rounded(c, args, pt_ceil);
}

static int run_round(pt_context *c, const pt_ref *args) {
    return run_rounded(c, args, pt_rint);
}

static int run_trunc(pt_context *c, const pt_ref *args) {
    return run_rounded(c, args, pt_trunc);
}

static int run_sym_int(pt_context *c, const pt_ref *args) {
    pt_scalar s = pt_get_scalar(c, args[A]);
    return s.type == PT_TYPE_DOUBLE ? set_whole(c, args[UNARY_OUT], pt_trunc(s.as.d))
                                    : set_int_unless(c, false, args[UNARY_OUT], s.as.i);
}

static int run_sym_float(pt_context *c, const pt_ref *args) {
    pt_set_double(c, args[UNARY_OUT], pt_scalar_as_double(pt_get_scalar(c, args[A])));
    return PT_ERROR_OK;
}

static int run_sym_not(pt_context *c, const pt_ref *args) {
    pt_scalar s = pt_get_scalar(c, args[A]);
    if (s.type != PT_TYPE_BOOL) {
        return wrong_type(c);
    }
    pt_set_bool(c, args[UNARY_OUT], !s.as.i);
    return PT_ERROR_OK;
}

static int run_sym_ite(pt_context *c, const pt_ref *args) {
    pt_scalar condition = pt_get_scalar(c, args[SYM_ITE_SCALAR_B]);
    if (condition.type != PT_TYPE_BOOL) {
        return wrong_type(c);
    }
    pt_set_scalar(c, args[SYM_ITE_SCALAR_OUT],
                  pt_get_scalar(c, args[condition.as.i ? SYM_ITE_SCALAR_T : SYM_ITE_SCALAR_F]));
    return PT_ERROR_OK;
}

const pt_kernel pt_executorch_prim_neg_Scalar = PT_KERNEL(prim_accept, run_neg);
const pt_kernel pt_executorch_prim_ceil_Scalar = PT_KERNEL(prim_accept, run_ceil);
const pt_kernel pt_executorch_prim_round_Scalar = PT_KERNEL(prim_accept, run_round);
const pt_kernel pt_executorch_prim_trunc_Scalar = PT_KERNEL(prim_accept, run_trunc);
const pt_kernel pt_executorch_prim_sym_int_Scalar = PT_KERNEL(prim_accept, run_sym_int);
const pt_kernel pt_executorch_prim_sym_float_Scalar = PT_KERNEL(prim_accept, run_sym_float);
const pt_kernel pt_executorch_prim_sym_not_Scalar = PT_KERNEL(prim_accept, run_sym_not);
const pt_kernel pt_executorch_prim_sym_ite_Scalar = PT_KERNEL(prim_accept, run_sym_ite);

// ---- queries of a tensor

static int run_sym_size(pt_context *c, const pt_ref *args) {
    pt_tensor t = pt_get_tensor(c, args[SYM_SIZE_INT_SELF]);
    uint32_t dim;
    PT_TRY(t.rank == 0 ? pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a tensor without dims")
                       : pt_read_dim(c, pt_get_int(c, args[SYM_SIZE_INT_DIM]), t.rank, &dim));
    pt_set_int(c, args[SYM_SIZE_INT_OUT], t.sizes[dim]);
    return PT_ERROR_OK;
}

static int run_sym_numel(pt_context *c, const pt_ref *args) {
    pt_tensor t = pt_get_tensor(c, args[SYM_NUMEL_SELF]);
    pt_set_int(c, args[SYM_NUMEL_OUT], pt_numel(&t));
    return PT_ERROR_OK;
}

static int check_local_scalar(pt_context *c, const pt_ref *args) {
    return pt_dtype_in(pt_get_tensor(c, args[LOCAL_SCALAR_DENSE_SELF]).dtype, PT_DTYPES_ALL)
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a number of this dtype");
}

static int run_local_scalar(pt_context *c, const pt_ref *args) {
    pt_tensor t = pt_get_tensor(c, args[LOCAL_SCALAR_DENSE_SELF]);
    if (pt_numel(&t) == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a tensor without elements");
    }
    if (pt_is_floating(t.dtype)) {
        pt_set_double(c, args[LOCAL_SCALAR_DENSE_OUT], pt_load_double(t.data, 0, t.dtype));
    } else if (t.dtype == PT_DTYPE_BOOL) {
        pt_set_bool(c, args[LOCAL_SCALAR_DENSE_OUT], pt_load_int(t.data, 0, t.dtype) != 0);
    } else {
        pt_set_int(c, args[LOCAL_SCALAR_DENSE_OUT], pt_load_int(t.data, 0, t.dtype));
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_sym_size_int = PT_KERNEL(prim_accept, run_sym_size);
const pt_kernel pt_aten_sym_numel = PT_KERNEL(prim_accept, run_sym_numel);
const pt_kernel pt_aten__local_scalar_dense = PT_KERNEL(check_local_scalar, run_local_scalar);
