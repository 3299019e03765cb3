#include "core/generated/operator_arguments.h"
#include "portable/complex.h"
#include "portable/elementwise.h"
#include "portable/half.h"

// Positions of the arguments, by order of operands.
typedef struct operand_positions {
    uint8_t a, b, out;
    uint8_t alpha;  // position of alpha; 0 for none
    uint8_t number; // which of a and b is a number: 1 + its index; 0 if both are tensors
} operand_positions;

static const operand_positions positions[] = {
    [PT_ORDER_TENSORS] = {MUL_SELF, MUL_OTHER, MUL_OUT, 0, 0},
    [PT_ORDER_TENSORS_ALPHA] = {ADD_SELF, ADD_OTHER, ADD_OUT, ADD_ALPHA, 0},
    [PT_ORDER_TENSORS_MODE] = {DIV_MODE_SELF, DIV_MODE_OTHER, DIV_MODE_OUT, 0, 0},
    [PT_ORDER_SCALAR] = {MUL_SCALAR_SELF, MUL_SCALAR_OTHER, MUL_SCALAR_OUT, 0,
                         1 + MUL_SCALAR_OTHER},
    [PT_ORDER_SCALAR_ALPHA] = {ADD_SCALAR_SELF, ADD_SCALAR_OTHER, ADD_SCALAR_OUT, ADD_SCALAR_ALPHA,
                               1 + ADD_SCALAR_OTHER},
    [PT_ORDER_SCALAR_MODE] = {DIV_SCALAR_MODE_SELF, DIV_SCALAR_MODE_OTHER, DIV_SCALAR_MODE_OUT, 0,
                              1 + DIV_SCALAR_MODE_OTHER},
    [PT_ORDER_SCALAR_FIRST] = {POW_SCALAR_SELF, POW_SCALAR_EXPONENT, POW_SCALAR_OUT, 0,
                               1 + POW_SCALAR_SELF},
    [PT_ORDER_REVERSED] = {RSUB_SCALAR_OTHER, RSUB_SCALAR_SELF, RSUB_SCALAR_OUT, RSUB_SCALAR_ALPHA,
                           1 + RSUB_SCALAR_OTHER},
};

// The tensors of a call. A number is a 0-d tensor, without data in a check.
typedef struct operands {
    pt_tensor out, a, b;
    uint8_t compute; // the dtype to compute in
} operands;

// Reads the operands: two tensors, or a tensor and a number.
static void binary_get_operands(const pt_context *c, const pt_ref *args,
                                const operand_positions *at, operands *o, pt_rule rule,
                                pt_number *element) {
    if (at->number == 0) {
        o->a = pt_get_tensor(c, args[at->a]);
        o->b = pt_get_tensor(c, args[at->b]);
        o->compute = pt_compute_dtype(pt_promote_tensors(&o->a, &o->b), rule);
        return;
    }
    bool first = at->number == at->a + 1;
    pt_tensor t = pt_get_tensor(c, args[first ? at->b : at->a]);
    pt_scalar s = pt_get_scalar(c, args[at->number - 1]);
    o->compute = pt_compute_dtype(pt_promote_scalar(t.dtype, s), rule);
    pt_tensor number = pt_number_tensor(element, s, o->compute);
    o->a = first ? number : t;
    o->b = first ? t : number;
}

// True if `t` has the sizes and dim order of `out`: both are then read in memory order.
static bool lies_as(const pt_tensor *t, const pt_tensor *out) {
    if (t->rank != out->rank) {
        return false;
    }
    for (uint32_t d = 0; d < out->rank; d++) {
        if (t->sizes[d] != out->sizes[d]) {
            return false;
        }
    }
    return pt_same_dim_order(t, out);
}

// Variants of a run on float32 operands in the layout of the output. b may have one element, and
// alpha is not used.
enum { ROWS = 1, ROWS_AND_ELEMENT };

static uint32_t binary_variant_of(const pt_context *c, const pt_ref *args, const pt_binary *op,
                                  const operand_positions *at, const operands *o) {
    bool floats = o->a.dtype == PT_DTYPE_FLOAT && o->b.dtype == PT_DTYPE_FLOAT &&
                  o->out.dtype == PT_DTYPE_FLOAT;
    if (!op->row || !floats || at->number || !lies_as(&o->a, &o->out) ||
        (at->alpha && !pt_is_one(pt_get_scalar(c, args[at->alpha])))) {
        return 0;
    }
    return lies_as(&o->b, &o->out) ? ROWS : o->b.rank == 0 ? ROWS_AND_ELEMENT : 0;
}

int pt_binary_check(pt_context *c, const pt_ref *args, const pt_binary *op,
                    pt_operand_order order) {
    const operand_positions *at = &positions[order];
    operands o;
    o.out = pt_get_tensor(c, args[at->out]);
    pt_number element;
    binary_get_operands(c, args, at, &o, op->rule, &element);
    if (!pt_dtype_in(o.a.dtype, PT_DTYPES_ALL) || !pt_dtype_in(o.b.dtype, PT_DTYPES_ALL) ||
        !pt_dtype_in(o.out.dtype, PT_DTYPES_ALL)) {
        return pt_refuse_dtypes(c, &o.a, &o.b, PT_REASON_DTYPE);
    }
    if (!PT_HAS_FUNCTION(op, o.compute)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, PT_REASON_DTYPE);
    }
    if (op->math && o.compute == PT_DTYPE_DOUBLE) {
        PT_TRY(pt_check_math(c, o.compute, PT_REASON_DTYPE));
    }
    if (at->alpha && !pt_is_floating(o.compute) &&
        pt_get_scalar(c, args[at->alpha]).type == PT_TYPE_DOUBLE) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "alpha of integer tensors must be an integer");
    }
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank = 0;
    if (!pt_broadcast(sizes, &rank, &o.a) || !pt_broadcast(sizes, &rank, &o.b)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, PT_REASON_BROADCAST);
    }
    PT_TRY(pt_check_result(c, o.compute, op->rule, &o.out));
    PT_TRY(pt_expect_sizes(c, args[at->out], rank, sizes));
    return pt_note_variant(c, binary_variant_of(c, args, op, at, &o));
}

// ---- rows of float32

static __attribute__((noinline)) int walk_rows(pt_context *c, const pt_binary *op,
                                               const operands *o) {
    pt_walk w;
    pt_walk_tensors(&w, 3, (const pt_tensor *const[]){&o->out, &o->a, &o->b});
    do {
        op->row(w.n, (float *)o->out.data + w.offset[0], (const float *)o->a.data + w.offset[1],
                w.strides[1][0], (const float *)o->b.data + w.offset[2], w.strides[2][0]);
    } while (pt_walk_next(c, &w));
    return w.error;
}

// Computes n elements; b_step is 0 if b has one element.
static int binary_run_row(pt_context *c, const pt_binary *op, int32_t n, float *out, const float *a,
                          const float *b, int32_t b_step) {
    for (int32_t i = 0; i < n; i += PT_PIECE) {
        const int32_t some = n - i < PT_PIECE ? n - i : PT_PIECE;
        PT_TRY(pt_count_elements(c, some));
        op->row(some, out + i, a + i, 1, b + i * b_step, b_step);
    }
    return PT_ERROR_OK;
}

static int run_rows(pt_context *c, const pt_binary *op, const operands *o) {
    int32_t n = pt_numel(&o->out);
    bool same_b = lies_as(&o->b, &o->out);
    if (!lies_as(&o->a, &o->out) || (!same_b && o->b.rank != 0)) {
        return n > 0 ? walk_rows(c, op, o) : PT_ERROR_OK;
    }
    return binary_run_row(c, op, n, o->out.data, o->a.data, o->b.data, same_b);
}

// True if float16 or bfloat16 operands have the layout of run_rows.
static bool are_half_rows(const operands *o) {
    const bool same_b = lies_as(&o->b, &o->out);
    const uint8_t dtype = o->out.dtype;
    return pt_is_half(dtype) && o->a.dtype == dtype && lies_as(&o->a, &o->out) &&
           (same_b ? o->b.dtype == dtype : o->b.rank == 0);
}

// Computes in float32, block by block.
static __attribute__((noinline)) int binary_run_half_rows(pt_context *c, const pt_binary *op,
                                                          const operands *o) {
    const bool same_b = lies_as(&o->b, &o->out);
    const uint8_t dtype = o->out.dtype;
    float a[PT_HALF_BLOCK], b[PT_HALF_BLOCK];
    b[0] = same_b ? 0 : pt_load_float(o->b.data, 0, o->b.dtype);
    const int32_t n = pt_numel(&o->out);
    for (int32_t i = 0; i < n; i += PT_HALF_BLOCK) {
        const int32_t some = n - i < PT_HALF_BLOCK ? n - i : PT_HALF_BLOCK;
        PT_TRY(pt_count_elements(c, some));
        pt_read_halves(a, o->a.data, i, 1, some, dtype);
        if (same_b) {
            pt_read_halves(b, o->b.data, i, 1, some, dtype);
        }
        op->row(some, a, a, 1, b, same_b);
        pt_write_halves(o->out.data, i, 1, a, some, dtype);
    }
    return PT_ERROR_OK;
}

// ---- rows of results of one byte

// True for int8 throughout, and for comparisons of float32 or int8.
static bool are_byte_rows(const operands *o) {
    const uint8_t dtype = o->a.dtype;
    return o->b.dtype == dtype &&
           ((dtype == PT_DTYPE_FLOAT && o->out.dtype == PT_DTYPE_BOOL) ||
            (dtype == PT_DTYPE_CHAR && (o->out.dtype == dtype || o->out.dtype == PT_DTYPE_BOOL)));
}

static void compare_float_row(const pt_binary *op, int32_t n, int8_t *out, const float *a,
                              int32_t a_step, const float *b, int32_t b_step) {
    for (; n > 0; n--, a += a_step, b += b_step) {
        *out++ = op->f32(*a, *b) != 0;
    }
}

// Integers wrap around to the bits of int8; results of comparisons are 0 and 1.
static void binary_run_int8_row(const pt_binary *op, int32_t n, int8_t *out, const int8_t *a,
                                int32_t a_step, const int8_t *b, int32_t b_step) {
    for (; n > 0; n--, a += a_step, b += b_step) {
        *out++ = (int8_t)op->i64(*a, *b);
    }
}

static __attribute__((noinline)) int walk_byte_rows(pt_context *c, const pt_binary *op,
                                                    const operands *o) {
    pt_walk w;
    pt_walk_tensors(&w, 3, (const pt_tensor *const[]){&o->out, &o->a, &o->b});
    do {
        int8_t *out = (int8_t *)o->out.data + w.offset[0];
        if (o->a.dtype == PT_DTYPE_FLOAT) {
            compare_float_row(op, w.n, out, (const float *)o->a.data + w.offset[1], w.strides[1][0],
                              (const float *)o->b.data + w.offset[2], w.strides[2][0]);
        } else {
            binary_run_int8_row(op, w.n, out, (const int8_t *)o->a.data + w.offset[1],
                                w.strides[1][0], (const int8_t *)o->b.data + w.offset[2],
                                w.strides[2][0]);
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

// ---- elements of any dtype

static int64_t load_int(const pt_tensor *t, int32_t i, uint8_t compute) {
    int64_t v = pt_load_int(t->data, i, t->dtype);
    return t->dtype == compute ? v : pt_cut_int(v, compute);
}

// Computes result i from a[j] and b[k].
static void run_element(const pt_binary *op, const operands *o, pt_number alpha, int32_t i,
                        int32_t j, int32_t k) {
    if (!pt_is_floating(o->compute)) {
        int64_t x = load_int(&o->a, j, o->compute), y = load_int(&o->b, k, o->compute);
        int64_t result = op->i64(x, (int64_t)((uint64_t)y * (uint64_t)alpha.i64));
        pt_store_int(o->out.data, i, o->out.dtype, pt_cut_int(result, o->compute));
    } else if (o->compute == PT_DTYPE_FLOAT) {
        float x = pt_load_float(o->a.data, j, o->a.dtype);
        float y = pt_load_float(o->b.data, k, o->b.dtype);
        pt_store_float(o->out.data, i, o->out.dtype, op->f32(x, y * alpha.f32));
    } else {
        double x = pt_load_double(o->a.data, j, o->a.dtype);
        double y = pt_load_double(o->b.data, k, o->b.dtype);
        pt_store_double(o->out.data, i, o->out.dtype, op->f64(x, y * alpha.f64));
    }
}

static __attribute__((noinline)) int walk_elements(pt_context *c, const pt_binary *op,
                                                   const operands *o, pt_number alpha) {
    pt_walk w;
    const int32_t steps = op->math && o->compute == PT_DTYPE_DOUBLE ? PT_FLOAT64_STEPS : 0;
    pt_walk_tensors(&w, 3, (const pt_tensor *const[]){&o->out, &o->a, &o->b});
    do {
        for (int32_t i = 0; i < w.n; i++) {
            PT_TRY(pt_count_work(c, steps));
            run_element(op, o, alpha, w.offset[0] + i, w.offset[1] + i * w.strides[1][0],
                        w.offset[2] + i * w.strides[2][0]);
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

static int check_divisor(pt_context *c, const pt_tensor *t, uint8_t compute) {
    int32_t n = pt_numel(t);
    for (int32_t i = 0; i < n; i++) {
        PT_TRY(pt_count_work(c, 1));
        if (load_int(t, i, compute) == 0) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "division of an integer by zero");
        }
    }
    return PT_ERROR_OK;
}

static __attribute__((noinline)) int
run_operands(pt_context *c, const pt_ref *args, const pt_binary *op, const operand_positions *at) {
    operands o;
    o.out = pt_get_tensor(c, args[at->out]);
    pt_number element;
    binary_get_operands(c, args, at, &o, op->rule, &element);
    pt_scalar alpha = {.type = PT_TYPE_INT, .as.i = 1};
    if (at->alpha) {
        alpha = pt_get_scalar(c, args[at->alpha]);
    }
    if (op->row && o.a.dtype == PT_DTYPE_FLOAT && o.b.dtype == PT_DTYPE_FLOAT &&
        o.out.dtype == PT_DTYPE_FLOAT && pt_is_one(alpha)) {
        return run_rows(c, op, &o);
    }
    if (op->row && pt_is_one(alpha) && are_half_rows(&o)) {
        return binary_run_half_rows(c, op, &o);
    }
    if (pt_numel(&o.out) == 0) {
        return PT_ERROR_OK;
    }
    if (op->divides && !pt_is_floating(o.compute)) {
        PT_TRY(check_divisor(c, &o.b, o.compute));
    }
    if (pt_is_one(alpha) && are_byte_rows(&o)) {
        return walk_byte_rows(c, op, &o);
    }
    return walk_elements(c, op, &o, pt_number_of(alpha, o.compute));
}

int pt_binary_run(pt_context *c, const pt_ref *args, const pt_binary *op, pt_operand_order order) {
    const operand_positions *at = &positions[order];
    const uint32_t variant = pt_variant(c);
    if (!variant) {
        return run_operands(c, args, op, at);
    }
    const pt_tensor out = pt_get_tensor(c, args[at->out]);
    return binary_run_row(c, op, pt_numel(&out), out.data, pt_get_data(c, args[at->a]),
                          pt_get_data(c, args[at->b]), variant == ROWS);
}
