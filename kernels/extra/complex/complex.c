// Arithmetic of complex tensors: operators with one and two operands, sums, and matrix products.
// complex32 and complex64 are computed in float32, complex128 in float64.
//
// A build with complex tensors uses these kernels in place of the kernels of real tensors. If no
// tensor of a call is complex, these kernels call the kernels of real tensors: see
// PT_EXTENDED_OPERATOR in operators.def.
#include "portable/complex.h"
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/elementwise.h"
#include "portable/reduction.h"

typedef enum operation {
    ADD, // the second operand is multiplied by alpha
    MULTIPLY,
    DIVIDE,
    EQUAL,
    DIFFER,
    NEGATE,
    SIZE,
    CONVERT,
} operation;

enum { STEPS_OF_SIZE = PT_FLOAT64_STEPS / 8 }; // steps of a square root

static bool is_predicate(operation op) {
    return op == EQUAL || op == DIFFER;
}

// The operands of a call. A number is a 0-d tensor.
typedef struct operands {
    pt_tensor out, a, b;
    operation op;
    double alpha;
    uint8_t part; // the dtype to compute the parts in
} operands;

// The matrices of a product, each with the offset of its first element.
typedef struct product {
    pt_tensor a, b, out;
    int32_t a_at, b_at, out_at;
    int32_t m, k, n;
} product;

// The functions are not inlined, so that the walks of both types are not on the stack together.
#define NOINLINE static __attribute__((noinline))

#define PT_REAL float
#define PT_WHOLE PT_DTYPE_COMPLEX_FLOAT
#define PT_PARTS(name) name##_f32
#define PT_LOAD pt_load_float
#define PT_STORE pt_store_float
#define PT_FABS __builtin_fabsf
#define PT_SQRT pt_sqrtf
#define PT_LARGE 0x1p50f
#define PT_SCALE 0x1p90f
#include "extra/complex/complex_parts.inc"
#undef PT_REAL
#undef PT_WHOLE
#undef PT_PARTS
#undef PT_LOAD
#undef PT_STORE
#undef PT_FABS
#undef PT_SQRT
#undef PT_LARGE
#undef PT_SCALE

#define PT_REAL double
#define PT_WHOLE PT_DTYPE_COMPLEX_DOUBLE
#define PT_PARTS(name) name##_f64
#define PT_LOAD pt_load_double
#define PT_STORE pt_store_double
#define PT_FABS __builtin_fabs
#define PT_SQRT pt_float64->sqrt
#define PT_LARGE 0x1p450
#define PT_SCALE 0x1p600
#include "extra/complex/complex_parts.inc"

static bool is_supported(const pt_tensor *t) {
    return pt_dtype_in(t->dtype, PT_DTYPES_ALL | PT_DTYPES_COMPLEX);
}

// Returns the dtype of the parts of a complex tensor; the dtype of a real tensor.
static uint8_t part_of(const pt_tensor *t) {
    return pt_is_complex(t->dtype) ? pt_part_dtype(t->dtype) : t->dtype;
}

static bool is_complex(const pt_context *c, pt_ref arg) {
    return pt_is_complex(pt_get_tensor(c, arg).dtype);
}

// Defines the kernel pt_<symbol>. It calls the kernel `real` unless the conditions hold. If a check
// of `real` notes a variant, it is for real tensors only.
#define COMPLEX_KERNEL(symbol, real, at_check, at_run, complex_check, complex_run) \
    extern const pt_kernel real;                                                   \
    static int symbol##_check(pt_context *c, const pt_ref *args) {                 \
        if (!(at_check)) {                                                         \
            return real.check(c, args);                                            \
        }                                                                          \
        PT_TRY(complex_check);                                                     \
        return pt_note_variant(c, 0);                                              \
    }                                                                              \
    static int symbol##_run(pt_context *c, const pt_ref *args) {                   \
        return !pt_variant(c) && (at_run) ? complex_run : real.run(c, args);       \
    }                                                                              \
    const pt_kernel pt_##symbol = PT_KERNEL(symbol##_check, symbol##_run);

// ---- two operands: (self, other, [alpha,] out); `other` is a tensor or a number

enum { OTHER_IS_NUMBER = 1, HAS_ALPHA = 2, REVERSED = 4, NEGATIVE = 8 };

static pt_ref out_of_two(const pt_ref *args, uint32_t flags) {
    return args[flags & HAS_ALPHA ? ADD_OUT : MUL_OUT];
}

static bool two_are_complex(const pt_context *c, const pt_ref *args, uint32_t flags) {
    return is_complex(c, args[MUL_SELF]) || is_complex(c, out_of_two(args, flags)) ||
           (!(flags & OTHER_IS_NUMBER) && is_complex(c, args[MUL_OTHER]));
}

static void complex_get_operands(const pt_context *c, const pt_ref *args, operation op,
                                 uint32_t flags, operands *o, pt_number *element) {
    o->op = op;
    o->out = pt_get_tensor(c, out_of_two(args, flags));
    o->a = pt_get_tensor(c, args[MUL_SELF]);
    o->alpha = flags & HAS_ALPHA ? pt_get_double(c, args[ADD_ALPHA]) : 1;
    o->alpha = flags & NEGATIVE ? -o->alpha : o->alpha;
    pt_tensor part = o->a;
    part.dtype = part_of(&o->a);
    if (flags & OTHER_IS_NUMBER) {
        const pt_scalar s = pt_get_scalar(c, args[MUL_OTHER]);
        o->part = pt_compute_dtype(pt_promote_scalar(part.dtype, s), PT_RULE_FLOATING);
        o->b = pt_number_tensor(element, s, o->part);
    } else {
        o->b = pt_get_tensor(c, args[MUL_OTHER]);
        pt_tensor other = o->b;
        other.dtype = part_of(&o->b);
        o->part = pt_compute_dtype(pt_promote_tensors(&part, &other), PT_RULE_FLOATING);
    }
    if (flags & REVERSED) {
        const pt_tensor number = o->b;
        o->b = o->a;
        o->a = number;
    }
}

static int check_two(pt_context *c, const pt_ref *args, operation op, uint32_t flags) {
    operands o;
    pt_number element;
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank = 0;
    complex_get_operands(c, args, op, flags, &o, &element);
    if (!is_supported(&o.a) || !is_supported(&o.b) || !is_supported(&o.out) ||
        (!pt_is_complex(o.a.dtype) && !pt_is_complex(o.b.dtype)) ||
        (is_predicate(op) && pt_is_complex(o.out.dtype))) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, PT_REASON_DTYPE);
    }
    if (!is_predicate(op) && !pt_is_complex(o.out.dtype)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, PT_REASON_CAST);
    }
    if (!pt_broadcast(sizes, &rank, &o.a) || !pt_broadcast(sizes, &rank, &o.b)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, PT_REASON_BROADCAST);
    }
    return pt_expect_sizes(c, out_of_two(args, flags), rank, sizes);
}

static int run_two(pt_context *c, const pt_ref *args, operation op, uint32_t flags) {
    operands o;
    pt_number element;
    complex_get_operands(c, args, op, flags, &o, &element);
    if (pt_numel(&o.out) == 0) {
        return PT_ERROR_OK;
    }
    return o.part == PT_DTYPE_DOUBLE ? walk_two_f64(c, &o) : walk_two_f32(c, &o);
}

// The result of an operator that is not a predicate is complex if an operand is.
#define OF_TWO(symbol, real, op, flags)                                       \
    COMPLEX_KERNEL(symbol, real, two_are_complex(c, args, flags),             \
                   is_predicate(op) ? two_are_complex(c, args, flags)         \
                                    : is_complex(c, out_of_two(args, flags)), \
                   check_two(c, args, op, flags), run_two(c, args, op, flags))

OF_TWO(complex_add_out, pt_aten_add_out, ADD, HAS_ALPHA)
OF_TWO(complex_add_Scalar_out, pt_aten_add_Scalar_out, ADD, HAS_ALPHA | OTHER_IS_NUMBER)
OF_TWO(complex_sub_out, pt_aten_sub_out, ADD, HAS_ALPHA | NEGATIVE)
OF_TWO(complex_sub_Scalar_out, pt_aten_sub_Scalar_out, ADD, HAS_ALPHA | NEGATIVE | OTHER_IS_NUMBER)
OF_TWO(complex_rsub_Scalar_out, pt_aten_rsub_Scalar_out, ADD,
       HAS_ALPHA | NEGATIVE | OTHER_IS_NUMBER | REVERSED)
OF_TWO(complex_mul_out, pt_aten_mul_out, MULTIPLY, 0)
OF_TWO(complex_mul_Scalar_out, pt_aten_mul_Scalar_out, MULTIPLY, OTHER_IS_NUMBER)
OF_TWO(complex_div_out, pt_aten_div_out, DIVIDE, 0)
OF_TWO(complex_div_Scalar_out, pt_aten_div_Scalar_out, DIVIDE, OTHER_IS_NUMBER)
OF_TWO(complex_eq_Tensor_out, pt_aten_eq_Tensor_out, EQUAL, 0)
OF_TWO(complex_eq_Scalar_out, pt_aten_eq_Scalar_out, EQUAL, OTHER_IS_NUMBER)
OF_TWO(complex_ne_Tensor_out, pt_aten_ne_Tensor_out, DIFFER, 0)
OF_TWO(complex_ne_Scalar_out, pt_aten_ne_Scalar_out, DIFFER, OTHER_IS_NUMBER)

// ---- one operand

static int check_one(pt_context *c, operation op, pt_ref in_arg, pt_ref out_arg) {
    const pt_tensor in = pt_get_tensor(c, in_arg), out = pt_get_tensor(c, out_arg);
    if (!is_supported(&in) || !is_supported(&out) || (op != CONVERT && !pt_is_complex(in.dtype))) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, PT_REASON_DTYPE);
    }
    const uint32_t real = op == NEGATE ? 0
                          : op == SIZE ? PT_DTYPES_FLOATING
                                       : PT_DTYPES_INTEGER | PT_DTYPES_FLOATING;
    if (pt_is_complex(out.dtype) ? op == SIZE : !pt_dtype_in(out.dtype, real)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, PT_REASON_CAST);
    }
    if (op == SIZE) {
        PT_TRY(pt_check_math(c, part_of(&in), PT_REASON_DTYPE));
    }
    return pt_expect_sizes(c, out_arg, in.rank, in.sizes);
}

static int complex_run_one(pt_context *c, operation op, pt_ref in_arg, pt_ref out_arg) {
    const pt_tensor in = pt_get_tensor(c, in_arg), out = pt_get_tensor(c, out_arg);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    // The conversion keeps all bits that the output has.
    const bool is_double =
        part_of(&in) == PT_DTYPE_DOUBLE || (op == CONVERT && part_of(&out) == PT_DTYPE_DOUBLE);
    return is_double ? walk_one_f64(c, op, &out, &in) : walk_one_f32(c, op, &out, &in);
}

#define OF_ONE(symbol, real, op, in, out)                                                  \
    COMPLEX_KERNEL(symbol, real, is_complex(c, args[in]) || is_complex(c, args[out]),      \
                   is_complex(c, args[in]) || (op == CONVERT && is_complex(c, args[out])), \
                   check_one(c, op, args[in], args[out]),                                  \
                   complex_run_one(c, op, args[in], args[out]))

OF_ONE(complex_neg_out, pt_aten_neg_out, NEGATE, NEG_SELF, NEG_OUT)
OF_ONE(complex_abs_out, pt_aten_abs_out, SIZE, ABS_SELF, ABS_OUT)

// ---- conversion: the kernel of real tensors copies a tensor of the same dtype

static bool converts(const pt_context *c, pt_ref in_arg, pt_ref out_arg) {
    const uint8_t in = pt_get_tensor(c, in_arg).dtype, out = pt_get_tensor(c, out_arg).dtype;
    return in != out && (pt_is_complex(in) || pt_is_complex(out));
}

#define CONVERSION(symbol, real, in, out, complex_check)            \
    COMPLEX_KERNEL(symbol, real, converts(c, args[in], args[out]),  \
                   converts(c, args[in], args[out]), complex_check, \
                   complex_run_one(c, CONVERT, args[in], args[out]))

static int check_to_dim_order(pt_context *c, const pt_ref *args) {
    PT_TRY(check_one(c, CONVERT, args[TO_DIM_ORDER_COPY_SELF], args[TO_DIM_ORDER_COPY_OUT]));
    return pt_check_dim_order(c, args[TO_DIM_ORDER_COPY_DIM_ORDER], args[TO_DIM_ORDER_COPY_OUT]);
}

CONVERSION(complex_to_copy_out, pt_aten__to_copy_out, TO_COPY_SELF, TO_COPY_OUT,
           check_one(c, CONVERT, args[TO_COPY_SELF], args[TO_COPY_OUT]))
CONVERSION(complex_to_dim_order_copy_out, pt_dim_order_ops__to_dim_order_copy_out,
           TO_DIM_ORDER_COPY_SELF, TO_DIM_ORDER_COPY_OUT, check_to_dim_order(c, args))

// ---- sum, mean: sums of the parts, which are the last dim, of size 2

typedef struct parts {
    int32_t sizes[PT_MAX_RANK];
    uint8_t dim_order[PT_MAX_RANK];
} parts;

static void make_parts(pt_tensor *t, parts *p) {
    for (uint32_t d = 0; d < t->rank; d++) {
        p->sizes[d] = t->sizes[d];
        p->dim_order[d] = t->dim_order[d];
    }
    p->sizes[t->rank] = 2;
    p->dim_order[t->rank] = t->rank;
    t->sizes = p->sizes;
    t->dim_order = p->dim_order;
    t->dtype = pt_part_dtype(t->dtype);
    t->rank++;
}

static int check_sum(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[MEAN_SELF]), out = pt_get_tensor(c, args[MEAN_OUT]);
    uint32_t dims;
    if (!pt_is_complex(in.dtype) || !pt_is_complex(out.dtype)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, PT_REASON_DTYPE);
    }
    if (in.rank == PT_MAX_RANK) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "more than 15 dims");
    }
    if (!pt_is_none(args[MEAN_DTYPE]) && pt_get_int(c, args[MEAN_DTYPE]) != out.dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output must have the given dtype");
    }
    PT_TRY(pt_read_dims_or_all(c, args[MEAN_DIM], in.rank, &dims));
    return pt_expect_reduced(c, &in, dims, pt_get_bool(c, args[MEAN_KEEPDIM]), args[MEAN_OUT]);
}

static int run_sum(pt_context *c, const pt_ref *args, pt_reduce_one *one) {
    pt_reduction r = {.in = pt_get_tensor(c, args[MEAN_SELF]),
                      .out = pt_get_tensor(c, args[MEAN_OUT])};
    parts in, out;
    uint32_t dims;
    PT_TRY(pt_read_dims_or_all(c, args[MEAN_DIM], r.in.rank, &dims));
    dims = r.in.rank ? dims : 0; // of a 0-d tensor the dim of the parts is not reduced
    make_parts(&r.in, &in);
    make_parts(&r.out, &out);
    return pt_reduce(c, &r, dims, pt_get_bool(c, args[MEAN_KEEPDIM]), one);
}

#define OVER_DIMS(symbol, real, one)                                                              \
    COMPLEX_KERNEL(symbol, real, is_complex(c, args[MEAN_SELF]) || is_complex(c, args[MEAN_OUT]), \
                   is_complex(c, args[MEAN_OUT]), check_sum(c, args), run_sum(c, args, one))

OVER_DIMS(complex_sum_IntList_out, pt_aten_sum_IntList_out, pt_sum_one)
OVER_DIMS(complex_mean_out, pt_aten_mean_out, pt_mean_one)

// ---- products of matrices, of rank 2, or 3 with a batch

static int complex_check_product(pt_context *c, const pt_ref *args, uint32_t rank) {
    const pt_tensor t[] = {pt_get_tensor(c, args[BMM_SELF]), pt_get_tensor(c, args[BMM_MAT2]),
                           pt_get_tensor(c, args[BMM_OUT])};
    for (uint32_t i = 0; i < 3; i++) {
        if (t[i].dtype != t[0].dtype) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a matrix product needs one dtype");
        }
        if ((t[i].flags & PT_VALUE_CONTIGUOUS) == 0) {
            return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "a matrix product needs contiguous tensors");
        }
    }
    if (t[0].rank != rank || t[1].rank != rank) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the operands have the wrong rank");
    }
    if (t[0].sizes[rank - 1] != t[1].sizes[rank - 2] ||
        (rank == 3 && t[0].sizes[0] != t[1].sizes[0])) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the operands' sizes do not fit together");
    }
    const int32_t sizes[] = {t[0].sizes[0], t[0].sizes[rank - 2], t[1].sizes[rank - 1]};
    return pt_expect_sizes(c, args[BMM_OUT], rank, sizes + 3 - rank);
}

static int run_product(pt_context *c, const pt_ref *args, uint32_t rank) {
    product p = {.a = pt_get_tensor(c, args[BMM_SELF]),
                 .b = pt_get_tensor(c, args[BMM_MAT2]),
                 .out = pt_get_tensor(c, args[BMM_OUT])};
    p.m = p.a.sizes[rank - 2];
    p.k = p.a.sizes[rank - 1];
    p.n = p.b.sizes[rank - 1];
    if (pt_numel(&p.out) == 0) {
        return PT_ERROR_OK;
    }
    const bool is_double = part_of(&p.a) == PT_DTYPE_DOUBLE;
    for (int32_t batch = rank == 3 ? p.out.sizes[0] : 1; batch > 0; batch--) {
        PT_TRY(is_double ? multiply_f64(c, &p) : multiply_f32(c, &p));
        p.a_at += p.m * p.k;
        p.b_at += p.k * p.n;
        p.out_at += p.m * p.n;
    }
    return PT_ERROR_OK;
}

#define PRODUCT(symbol, real, rank)                                                            \
    COMPLEX_KERNEL(symbol, real, is_complex(c, args[BMM_SELF]), is_complex(c, args[BMM_SELF]), \
                   complex_check_product(c, args, rank), run_product(c, args, rank))

PRODUCT(complex_mm_out, pt_aten_mm_out, 2)
PRODUCT(complex_bmm_out, pt_aten_bmm_out, 3)
