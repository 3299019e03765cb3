#include "elementwise.h"

<<<<<<< HEAD
pt_number pt_number_of(pt_scalar s, uint8_t compute) {
    pt_number n;
    if (!pt_is_floating(compute)) {
        n.i64 = s.type == PT_TYPE_DOUBLE ? pt_double_to_int(s.as.d) : s.as.i;
=======
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
>>>>>>> k2
    } else if (compute == PT_DTYPE_FLOAT) {
        n.f32 = s.type == PT_TYPE_DOUBLE ? (float)s.as.d : (float)s.as.i;
    } else {
        n.f64 = pt_scalar_as_double(s);
    }
    return n;
}

<<<<<<< HEAD
=======
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

>>>>>>> k2
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

<<<<<<< HEAD
static uint8_t compute_dtype(uint8_t promoted, pt_rule rule) {
    return rule == PT_RULE_FLOATING && !pt_is_floating(promoted) ? PT_DTYPE_FLOAT : promoted;
}

static int check_result(pt_context *c, uint8_t compute, pt_rule rule, const pt_tensor *out) {
=======
uint8_t pt_compute_dtype(uint8_t promoted, pt_rule rule) {
    return rule == PT_RULE_FLOATING && !pt_is_floating(promoted) ? PT_DTYPE_FLOAT : promoted;
}

int pt_check_result(pt_context *c, uint8_t compute, pt_rule rule, const pt_tensor *out) {
>>>>>>> k2
    uint8_t result = rule == PT_RULE_PREDICATE ? PT_DTYPE_BOOL : compute;
    return pt_can_cast(result, out->dtype) ? PT_ERROR_OK
                                           : pt_fail(c, PT_ERROR_INVALID_ARGUMENT, PT_REASON_CAST);
}

<<<<<<< HEAD
// Element i of an array as a number to compute with.
pt_number pt_load_number(const void *data, int32_t i, uint8_t dtype, uint8_t compute) {
    pt_number n;
    if (!pt_is_floating(compute)) {
        n.i64 = pt_load_int(data, i, dtype);
    } else if (compute == PT_DTYPE_FLOAT) {
        n.f32 = dtype == PT_DTYPE_FLOAT ? ((const float *)data)[i]
                : pt_is_floating(dtype) ? (float)((const double *)data)[i]
                                        : (float)pt_load_int(data, i, dtype);
=======
pt_number pt_load_number(const void *data, int32_t i, uint8_t dtype, uint8_t compute) {
    pt_number n;
    if (!pt_is_floating(compute)) {
        n.i64 = pt_cut_int(pt_load_int(data, i, dtype), compute);
    } else if (compute == PT_DTYPE_FLOAT) {
        n.f32 = pt_load_float(data, i, dtype);
>>>>>>> k2
    } else {
        n.f64 = pt_load_double(data, i, dtype);
    }
    return n;
}

<<<<<<< HEAD
// An integer cut to what `dtype` holds, as every intermediate result of that dtype is.
static int64_t cut(int64_t v, uint8_t dtype) {
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

void pt_store_number(void *data, int32_t i, uint8_t dtype, pt_number n, uint8_t compute) {
    if (!pt_is_floating(compute)) {
        pt_store_int(data, i, dtype, cut(n.i64, compute));
    } else {
        pt_store_double(data, i, dtype, compute == PT_DTYPE_FLOAT ? n.f32 : n.f64);
    }
}

// ---- two operands

// Places of the arguments, by form.
typedef struct form_places {
    uint8_t a, b, out;
    uint8_t alpha;  // 0 if the form has none
    uint8_t number; // which of a and b is no tensor: 1 + its place, 0 if both are tensors
} form_places;

static const form_places places[] = {
    [PT_FORM_TENSORS] = {0, 1, 2, 0, 0},      [PT_FORM_TENSORS_ALPHA] = {0, 1, 3, 2, 0},
    [PT_FORM_TENSORS_MODE] = {0, 1, 3, 0, 0}, [PT_FORM_SCALAR] = {0, 1, 2, 0, 2},
    [PT_FORM_SCALAR_ALPHA] = {0, 1, 3, 2, 2}, [PT_FORM_SCALAR_MODE] = {0, 1, 3, 0, 2},
    [PT_FORM_SCALAR_FIRST] = {0, 1, 2, 0, 1}, [PT_FORM_REVERSED] = {1, 0, 3, 2, 2},
};

// What the operands promote to; a and b are not read where they stand for the number.
static uint8_t promote_operands(const pt_context *c, const pt_ref *args, const form_places *at,
                                const pt_tensor *a, const pt_tensor *b) {
    if (at->number == 0) {
        return pt_promote_tensors(a, b);
    }
    const pt_tensor *tensor = at->number == at->a + 1 ? b : a;
    return pt_promote_scalar(tensor->dtype, pt_get_scalar(c, args[at->number - 1]));
}

// The tensor of an operand; of a number an empty one.
static pt_tensor operand(const pt_context *c, const pt_ref *args, const form_places *at,
                         uint8_t place) {
    if (at->number != place + 1) {
        return pt_get_tensor(c, args[place]);
    }
    pt_tensor t = {.data = NULL, .flags = PT_VALUE_CONTIGUOUS};
    return t;
}

int pt_binary_check(pt_context *c, const pt_ref *args, const pt_binary *op, pt_form form) {
    const form_places *at = &places[form];
    pt_tensor out = pt_get_tensor(c, args[at->out]);
    pt_tensor a = operand(c, args, at, at->a);
    pt_tensor b = operand(c, args, at, at->b);
    if (!pt_dtype_in(a.dtype, PT_DTYPES_ALL) || !pt_dtype_in(b.dtype, PT_DTYPES_ALL) ||
        !pt_dtype_in(out.dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, PT_REASON_DTYPE);
    }
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank = 0;
    if (!pt_broadcast(sizes, &rank, &a) || !pt_broadcast(sizes, &rank, &b)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, PT_REASON_BROADCAST);
    }
    uint8_t compute = compute_dtype(promote_operands(c, args, at, &a, &b), op->rule);
    bool has = compute == PT_DTYPE_FLOAT    ? op->f32 != NULL
               : compute == PT_DTYPE_DOUBLE ? op->f64 != NULL
                                            : op->i64 != NULL;
    if (!has || (compute == PT_DTYPE_BOOL && op->rule == PT_RULE_NUMBER)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, PT_REASON_DTYPE);
    }
    if (at->alpha && !pt_is_floating(compute) &&
        pt_get_scalar(c, args[at->alpha]).type == PT_TYPE_DOUBLE) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "alpha of integer tensors must be an integer");
    }
    int error = check_result(c, compute, op->rule, &out);
    return error ? error : pt_expect_sizes(c, args[at->out], rank, sizes);
}

static bool is_one(pt_scalar s) {
    return s.type == PT_TYPE_DOUBLE ? s.as.d == 1.0 : s.as.i == 1;
}

// True if `t` has the sizes and dim order of `out`: then both are walked as they lie.
static bool lies_as(const pt_tensor *t, const pt_tensor *out) {
    return pt_same_dim_order(t, out) && pt_same_sizes(t, out);
}

static void run_rows(const pt_binary *op, const pt_tensor *out, const pt_tensor *a,
                     const pt_tensor *b) {
    if (lies_as(a, out)) {
        if (lies_as(b, out)) {
            op->row(pt_numel(out), out->data, a->data, 1, b->data, 1);
            return;
        }
        if (b->rank == 0) {
            op->row(pt_numel(out), out->data, a->data, 1, b->data, 0);
            return;
        }
    }
    pt_walk w;
    pt_walk_tensors(&w, 3, (const pt_tensor *const[]){out, a, b});
    do {
        op->row(w.sizes[0], (float *)out->data + w.offset[0], (const float *)a->data + w.offset[1],
                w.strides[1][0], (const float *)b->data + w.offset[2], w.strides[2][0]);
    } while (pt_walk_next(&w));
}

static pt_number apply_binary(const pt_binary *op, uint8_t compute, pt_number x, pt_number y,
                              pt_number alpha) {
    if (!pt_is_floating(compute)) {
        int64_t scaled = (int64_t)((uint64_t)y.i64 * (uint64_t)alpha.i64);
        x.i64 = op->i64(x.i64, scaled);
    } else if (compute == PT_DTYPE_FLOAT) {
        x.f32 = op->f32(x.f32, y.f32 * alpha.f32);
    } else {
        x.f64 = op->f64(x.f64, y.f64 * alpha.f64);
    }
    return x;
}

static void run_elements(const pt_binary *op, const pt_tensor *out, const pt_tensor *a,
                         const pt_tensor *b, uint8_t compute, pt_number alpha) {
    pt_walk w;
    pt_walk_tensors(&w, 3, (const pt_tensor *const[]){out, a, b});
    do {
        for (int32_t i = 0; i < w.sizes[0]; i++) {
            pt_number x =
                pt_load_number(a->data, w.offset[1] + i * w.strides[1][0], a->dtype, compute);
            pt_number y =
                pt_load_number(b->data, w.offset[2] + i * w.strides[2][0], b->dtype, compute);
            pt_store_number(out->data, w.offset[0] + i, out->dtype,
                            apply_binary(op, compute, x, y, alpha), compute);
        }
    } while (pt_walk_next(&w));
}

static bool has_zero(const pt_tensor *t) {
    int32_t n = pt_numel(t);
    for (int32_t i = 0; i < n; i++) {
        if (pt_load_int(t->data, i, t->dtype) == 0) {
            return true;
        }
    }
    return false;
}

int pt_binary_run(pt_context *c, const pt_ref *args, const pt_binary *op, pt_form form) {
    const form_places *at = &places[form];
    pt_tensor out = pt_get_tensor(c, args[at->out]);
    pt_tensor a = operand(c, args, at, at->a);
    pt_tensor b = operand(c, args, at, at->b);
    uint8_t compute = compute_dtype(promote_operands(c, args, at, &a, &b), op->rule);
    pt_number element;
    if (at->number) {
        pt_tensor *number = at->number == at->a + 1 ? &a : &b;
        *number = pt_number_tensor(&element, pt_get_scalar(c, args[at->number - 1]), compute);
    }
    pt_scalar alpha = {.type = PT_TYPE_INT, .as.i = 1};
    if (at->alpha) {
        alpha = pt_get_scalar(c, args[at->alpha]);
    }
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    if (op->row && a.dtype == PT_DTYPE_FLOAT && b.dtype == PT_DTYPE_FLOAT &&
        out.dtype == PT_DTYPE_FLOAT && is_one(alpha)) {
        run_rows(op, &out, &a, &b);
        return PT_ERROR_OK;
    }
    if (op->divides && !pt_is_floating(compute) && has_zero(&b)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "division of an integer by zero");
    }
    run_elements(op, &out, &a, &b, compute, pt_number_of(alpha, compute));
    return PT_ERROR_OK;
=======
void pt_store_number(void *data, int32_t i, uint8_t dtype, pt_number n, uint8_t compute) {
    if (!pt_is_floating(compute)) {
        pt_store_int(data, i, dtype, pt_cut_int(n.i64, compute));
    } else if (compute == PT_DTYPE_FLOAT) {
        pt_store_float(data, i, dtype, n.f32);
    } else {
        pt_store_double(data, i, dtype, n.f64);
    }
>>>>>>> k2
}

// ---- one operand

int pt_unary_check_as(pt_context *c, pt_ref in_arg, pt_ref out_arg, const pt_unary *op,
                      uint8_t promoted) {
    pt_tensor in = pt_get_tensor(c, in_arg);
    pt_tensor out = pt_get_tensor(c, out_arg);
<<<<<<< HEAD
    uint8_t compute = compute_dtype(promoted, op->rule);
=======
    uint8_t compute = pt_compute_dtype(promoted, op->rule);
>>>>>>> k2
    bool has = compute == PT_DTYPE_FLOAT    ? op->f32 != NULL
               : compute == PT_DTYPE_DOUBLE ? op->f64 != NULL
                                            : op->i64 != NULL;
    if (!has || (compute == PT_DTYPE_BOOL && op->rule == PT_RULE_NUMBER) ||
        !pt_dtype_in(in.dtype, PT_DTYPES_ALL) || !pt_dtype_in(out.dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, PT_REASON_DTYPE);
    }
<<<<<<< HEAD
    int error = check_result(c, compute, op->rule, &out);
=======
    int error = pt_check_result(c, compute, op->rule, &out);
>>>>>>> k2
    return error ? error : pt_expect_sizes(c, out_arg, in.rank, in.sizes);
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

<<<<<<< HEAD
=======
static __attribute__((noinline)) void walk_unary(const pt_unary *op, const pt_tensor *out,
                                                 const pt_tensor *in, uint8_t compute,
                                                 const pt_number *p) {
    pt_walk w;
    pt_walk_tensors(&w, 2, (const pt_tensor *const[]){out, in});
    do {
        for (int32_t i = 0; i < w.sizes[0]; i++) {
            int32_t j = w.offset[1] + i * w.strides[1][0];
            pt_number x = pt_load_number(in->data, j, in->dtype, compute);
            pt_store_number(out->data, w.offset[0] + i, out->dtype, apply_unary(op, compute, x, p),
                            compute);
        }
    } while (pt_walk_next(&w));
}

>>>>>>> k2
int pt_unary_run_as(pt_context *c, pt_ref in_arg, pt_ref out_arg, const pt_unary *op,
                    uint8_t promoted, const pt_number *p) {
    pt_tensor in = pt_get_tensor(c, in_arg);
    pt_tensor out = pt_get_tensor(c, out_arg);
    int32_t n = pt_numel(&out);
    if (in.dtype == PT_DTYPE_FLOAT && out.dtype == PT_DTYPE_FLOAT && pt_same_dim_order(&in, &out)) {
        run_unary_row(op, n, out.data, in.data, p);
<<<<<<< HEAD
        return PT_ERROR_OK;
    }
    if (n == 0) {
        return PT_ERROR_OK;
    }
    uint8_t compute = compute_dtype(promoted, op->rule);
    pt_walk w;
    pt_walk_tensors(&w, 2, (const pt_tensor *const[]){&out, &in});
    do {
        for (int32_t i = 0; i < w.sizes[0]; i++) {
            pt_number x =
                pt_load_number(in.data, w.offset[1] + i * w.strides[1][0], in.dtype, compute);
            pt_store_number(out.data, w.offset[0] + i, out.dtype, apply_unary(op, compute, x, p),
                            compute);
        }
    } while (pt_walk_next(&w));
=======
    } else if (n > 0) {
        walk_unary(op, &out, &in, pt_compute_dtype(promoted, op->rule), p);
    }
>>>>>>> k2
    return PT_ERROR_OK;
}

int pt_unary_check(pt_context *c, const pt_ref *args, const pt_unary *op, uint32_t parameters) {
    return pt_unary_check_as(c, args[0], args[parameters + 1], op, pt_get_tensor(c, args[0]).dtype);
}

int pt_unary_run(pt_context *c, const pt_ref *args, const pt_unary *op, uint32_t parameters) {
    pt_number p[PT_UNARY_PARAMETERS];
    uint8_t promoted = pt_get_tensor(c, args[0]).dtype;
    for (uint32_t i = 0; i < parameters; i++) {
<<<<<<< HEAD
        p[i] = pt_number_of(pt_get_scalar(c, args[1 + i]), compute_dtype(promoted, op->rule));
=======
        p[i] = pt_number_of(pt_get_scalar(c, args[1 + i]), pt_compute_dtype(promoted, op->rule));
>>>>>>> k2
    }
    return pt_unary_run_as(c, args[0], args[parameters + 1], op, promoted, p);
}
