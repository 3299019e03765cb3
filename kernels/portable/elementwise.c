#include "portable/elementwise.h"
#include "arch/byte_rows.h"
#include "arch/threads.h"
#include "core/generated/operator_arguments.h"
#include "portable/complex.h"
#include "portable/half.h"

int64_t pt_cut_int(int64_t v, uint8_t dtype) {
    switch (dtype) {
    case PT_DTYPE_BOOL:
        return v != 0;
    case PT_DTYPE_BYTE:
        return (uint8_t)v;
    case PT_DTYPE_CHAR:
        return (int8_t)v;
    case PT_DTYPE_SHORT:
        return (int16_t)v;
    case PT_DTYPE_INT:
        return (int32_t)v;
    default:
        return v;
    }
}

pt_number pt_number_of(pt_scalar s, uint8_t compute) {
    pt_number n;
    if (!pt_is_floating(compute)) {
        n.i64 = pt_cut_int(s.type == PT_TYPE_DOUBLE ? pt_double_to_int(s.as.d) : s.as.i, compute);
    } else if (compute == PT_DTYPE_FLOAT) {
        n.f32 = s.type == PT_TYPE_DOUBLE ? (float)s.as.d : (float)s.as.i;
    } else {
        n.f64 = pt_scalar_as_double(s);
    }
    return n;
}

pt_number pt_no_bound(bool lower, uint8_t compute) {
    pt_number n;
    if (!pt_is_floating(compute)) {
        n.i64 = lower ? INT64_MIN : INT64_MAX;
    } else if (compute == PT_DTYPE_FLOAT) {
        n.f32 = lower ? -__builtin_inff() : __builtin_inff();
    } else {
        n.f64 = lower ? -__builtin_inf() : __builtin_inf();
    }
    return n;
}

pt_tensor pt_number_tensor(pt_number *element, pt_scalar s, uint8_t compute) {
    *element = pt_number_of(s, compute);
    pt_tensor t = {.data = element,
                   .dtype = pt_is_floating(compute) ? compute : PT_DTYPE_LONG,
                   .flags = PT_VALUE_CONTIGUOUS};
    return t;
}

bool pt_can_cast(uint8_t from, uint8_t to) {
    if (to == PT_DTYPE_BOOL) {
        return from == PT_DTYPE_BOOL;
    }
    return pt_is_floating(to) || !pt_is_floating(from);
}

uint8_t pt_compute_dtype(uint8_t promoted, pt_rule rule) {
    bool as_float = rule == PT_RULE_FLOATING && !pt_is_floating(promoted);
    return as_float || pt_is_half(promoted) ? PT_DTYPE_FLOAT : promoted;
}

int pt_check_result(pt_context *c, uint8_t compute, pt_rule rule, const pt_tensor *out) {
    uint8_t result = rule == PT_RULE_PREDICATE ? PT_DTYPE_BOOL : compute;
    return pt_can_cast(result, out->dtype) ? PT_ERROR_OK
                                           : pt_fail(c, PT_ERROR_INVALID_ARGUMENT, PT_REASON_CAST);
}

pt_number pt_load_number(const void *data, int32_t i, uint8_t dtype, uint8_t compute) {
    pt_number n;
    if (!pt_is_floating(compute)) {
        n.i64 = pt_cut_int(pt_load_int(data, i, dtype), compute);
    } else if (compute == PT_DTYPE_FLOAT) {
        n.f32 = pt_load_float(data, i, dtype);
    } else {
        n.f64 = pt_load_double(data, i, dtype);
    }
    return n;
}

void pt_store_number(void *data, int32_t i, uint8_t dtype, pt_number n, uint8_t compute) {
    if (!pt_is_floating(compute)) {
        pt_store_int(data, i, dtype, pt_cut_int(n.i64, compute));
    } else if (compute == PT_DTYPE_FLOAT) {
        pt_store_float(data, i, dtype, n.f32);
    } else {
        pt_store_double(data, i, dtype, n.f64);
    }
}

// ---- one operand

int pt_unary_check_as(pt_context *c, pt_ref in_arg, pt_ref out_arg, const pt_unary *op,
                      uint8_t promoted) {
    pt_tensor in = pt_get_tensor(c, in_arg);
    pt_tensor out = pt_get_tensor(c, out_arg);
    uint8_t compute = pt_compute_dtype(promoted, op->rule);
    if (!PT_HAS_FUNCTION(op, compute) || !pt_dtype_in(in.dtype, PT_DTYPES_ALL) ||
        !pt_dtype_in(out.dtype, PT_DTYPES_ALL)) {
        return pt_refuse_dtypes(c, &in, &out, PT_REASON_DTYPE);
    }
    if (op->math && compute == PT_DTYPE_DOUBLE) {
        PT_TRY(pt_check_math(c, compute, PT_REASON_DTYPE));
    }
    PT_TRY(pt_check_result(c, compute, op->rule, &out));
    return pt_expect_sizes(c, out_arg, in.rank, in.sizes);
}

static void run_unary_row(const pt_unary *op, int32_t n, float *out, const float *in,
                          const pt_number *p) {
    if (op->row) {
        op->row(n, out, in, p);
        return;
    }
    for (; n > 0; n--) {
        *out++ = op->f32(*in++, p);
    }
}

static int run_unary_rows(pt_context *c, const pt_unary *op, int32_t n, float *out, const float *in,
                          const pt_number *p) {
    for (; n > 0; n -= PT_PIECE, out += PT_PIECE, in += PT_PIECE) {
        const int32_t some = n < PT_PIECE ? n : PT_PIECE;
        if (pt_skips_round()) {
            continue;
        }
        PT_TRY(pt_count_elements(c, some));
        run_unary_row(op, some, out, in, p);
    }
    return PT_ERROR_OK;
}

typedef struct unary_rows {
    const pt_unary *op;
    int32_t n;
    float *out;
    const float *in;
    const pt_number *p;
} unary_rows;

static int run_shared_rows(pt_context *c, const void *task) {
    const unary_rows *t = task;
    return run_unary_rows(c, t->op, t->n, t->out, t->in, t->p);
}

// Runs rows as run_unary_rows does, for float16 or bfloat16 in float32, block by block.
static int elementwise_run_half_rows(pt_context *c, const pt_unary *op, int32_t n,
                                     const pt_tensor *out, const pt_tensor *in,
                                     const pt_number *p) {
    float block[PT_HALF_BLOCK];
    for (int32_t i = 0; i < n; i += PT_HALF_BLOCK) {
        const int32_t some = n - i < PT_HALF_BLOCK ? n - i : PT_HALF_BLOCK;
        PT_TRY(pt_count_elements(c, some));
        pt_read_halves(block, in->data, i, 1, some, in->dtype);
        run_unary_row(op, some, block, block, p);
        pt_write_halves(out->data, i, 1, block, some, out->dtype);
    }
    return PT_ERROR_OK;
}

static pt_number apply_unary(const pt_unary *op, uint8_t compute, pt_number x, const pt_number *p) {
    if (!pt_is_floating(compute)) {
        x.i64 = op->i64(x.i64, p);
    } else if (compute == PT_DTYPE_FLOAT) {
        x.f32 = op->f32(x.f32, p);
    } else {
        x.f64 = op->f64(x.f64, p);
    }
    return x;
}

static __attribute__((noinline)) int walk_unary(pt_context *c, const pt_unary *op,
                                                const pt_tensor *out, const pt_tensor *in,
                                                uint8_t compute, const pt_number *p) {
    pt_walk w;
    const int32_t steps = op->math && compute == PT_DTYPE_DOUBLE ? PT_FLOAT64_STEPS : 0;
    pt_walk_tensors(&w, 2, (const pt_tensor *const[]){out, in});
    do {
        for (int32_t i = 0; i < w.n; i++) {
            PT_TRY(pt_count_work(c, steps));
            int32_t j = w.offset[1] + i * w.strides[1][0];
            pt_number x = pt_load_number(in->data, j, in->dtype, compute);
            pt_store_number(out->data, w.offset[0] + i, out->dtype, apply_unary(op, compute, x, p),
                            compute);
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

// Runs a clamping operator on int8; its bounds are the results for the minimum and the maximum.
static __attribute__((noinline)) int run_clamped_rows(pt_context *c, const pt_unary *op, int32_t n,
                                                      int8_t *out, const int8_t *in,
                                                      const pt_number *p) {
    const int8_t low = (int8_t)op->i64(INT8_MIN, p), high = (int8_t)op->i64(INT8_MAX, p);
    for (; n > 0; n -= PT_PIECE, out += PT_PIECE, in += PT_PIECE) {
        const int32_t some = n < PT_PIECE ? n : PT_PIECE;
        PT_TRY(pt_count_work(c, some));
        pt_clamp_row(low, high, out, in, some);
    }
    return PT_ERROR_OK;
}

static int run_unary(pt_context *c, const pt_tensor *in, const pt_tensor *out, const pt_unary *op,
                     uint8_t promoted, const pt_number *p) {
    int32_t n = pt_numel(out);
    if (in->dtype == PT_DTYPE_FLOAT && out->dtype == PT_DTYPE_FLOAT && pt_same_dim_order(in, out)) {
        enum { ELEMENT = 16 }; // steps of an element in pt_shares
        const int64_t piece = PT_PIECE * ELEMENT;
        if (pt_shares((int64_t)n * ELEMENT, piece)) {
            const unary_rows t = {op, n, out->data, in->data, p};
            return pt_share_loop(c, run_shared_rows, &t, piece);
        }
        return run_unary_rows(c, op, n, out->data, in->data, p);
    }
    if (pt_is_half(in->dtype) && out->dtype == in->dtype && pt_same_dim_order(in, out)) {
        return elementwise_run_half_rows(c, op, n, out, in, p);
    }
    const uint8_t compute = pt_compute_dtype(promoted, op->rule);
    if (op->clamps && !pt_is_floating(compute) && in->dtype == PT_DTYPE_CHAR &&
        out->dtype == PT_DTYPE_CHAR && pt_same_dim_order(in, out)) {
        return run_clamped_rows(c, op, n, out->data, in->data, p);
    }
    return n > 0 ? walk_unary(c, op, out, in, compute, p) : PT_ERROR_OK;
}

int pt_unary_run_as(pt_context *c, pt_ref in_arg, pt_ref out_arg, const pt_unary *op,
                    uint8_t promoted, const pt_number *p) {
    pt_tensor in = pt_get_tensor(c, in_arg);
    pt_tensor out = pt_get_tensor(c, out_arg);
    return run_unary(c, &in, &out, op, promoted, p);
}

// Arguments of all operators with one operand: the operand, numbers, then the output.
enum { OPERAND = HARDTANH_SELF, NUMBERS = HARDTANH_MIN_VAL };

int pt_unary_check(pt_context *c, const pt_ref *args, const pt_unary *op, uint32_t parameters) {
    return pt_unary_check_as(c, args[OPERAND], args[NUMBERS + parameters], op,
                             pt_get_tensor(c, args[OPERAND]).dtype);
}

int pt_unary_run(pt_context *c, const pt_ref *args, const pt_unary *op, uint32_t parameters) {
    pt_tensor in = pt_get_tensor(c, args[OPERAND]);
    pt_tensor out = pt_get_tensor(c, args[NUMBERS + parameters]);
    pt_number p[PT_UNARY_PARAMETERS];
    for (uint32_t i = 0; i < parameters; i++) {
        p[i] =
            pt_number_of(pt_get_scalar(c, args[NUMBERS + i]), pt_compute_dtype(in.dtype, op->rule));
    }
    return run_unary(c, &in, &out, op, in.dtype, p);
}
