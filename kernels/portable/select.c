// Operators that choose between the elements of several operands.
#include "core/generated/operator_arguments.h"
#include "portable/elementwise.h"
#include "portable/float_math.h"

// ---- where, masked_fill: out = mask ? yes : no

static int choose_check(pt_context *c, pt_ref out_arg, const pt_tensor *mask, const pt_tensor *yes,
                        const pt_tensor *no, uint8_t result) {
    pt_tensor out = pt_get_tensor(c, out_arg);
    if (!pt_dtype_in(mask->dtype, PT_DTYPES_BOOL | 1 << PT_DTYPE_BYTE)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the mask is not a bool tensor");
    }
    if (!pt_dtype_in(yes->dtype, PT_DTYPES_ALL) || !pt_dtype_in(no->dtype, PT_DTYPES_ALL) ||
        !pt_dtype_in(out.dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, PT_REASON_DTYPE);
    }
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank = 0;
    if (!pt_broadcast(sizes, &rank, mask) || !pt_broadcast(sizes, &rank, yes) ||
        !pt_broadcast(sizes, &rank, no)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, PT_REASON_BROADCAST);
    }
    if (!pt_can_cast(result, out.dtype)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, PT_REASON_CAST);
    }
    return pt_expect_sizes(c, out_arg, rank, sizes);
}

// Copies to[i] = from[j], of the same dtype.
static void copy_element(void *to, int32_t i, const void *from, int32_t j, uint32_t size) {
    if (size == 4) {
        ((pt_bits *)to)[i] = ((const pt_bits *)from)[j];
    } else if (size == 1) {
        ((uint8_t *)to)[i] = ((const uint8_t *)from)[j];
    } else if (size == 2) {
        ((int16_t *)to)[i] = ((const int16_t *)from)[j];
    } else {
        ((pt_number *)to)[i] = ((const pt_number *)from)[j];
    }
}

static int choose_run(pt_context *c, const pt_tensor *out, const pt_tensor *mask,
                      const pt_tensor *yes, const pt_tensor *no) {
    if (pt_numel(out) == 0) {
        return PT_ERROR_OK;
    }
    bool same_dtype = yes->dtype == out->dtype && no->dtype == out->dtype;
    uint32_t size = pt_element_size(out->dtype);
    pt_walk w;
    pt_walk_tensors(&w, 4, (const pt_tensor *const[]){out, mask, yes, no});
    do {
        for (int32_t i = 0; i < w.n; i++) {
            bool chosen = ((const uint8_t *)mask->data)[w.offset[1] + i * w.strides[1][0]] != 0;
            uint32_t k = chosen ? 2 : 3;
            const pt_tensor *from = chosen ? yes : no;
            int32_t j = w.offset[k] + i * w.strides[k][0];
            if (same_dtype) {
                copy_element(out->data, w.offset[0] + i, from->data, j, size);
            } else {
                pt_convert_element(out->data, w.offset[0] + i, out->dtype, from->data, j,
                                   from->dtype);
            }
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

static int where_check(pt_context *c, const pt_ref *args) {
    pt_tensor mask = pt_get_tensor(c, args[WHERE_SELF_CONDITION]);
    pt_tensor yes = pt_get_tensor(c, args[WHERE_SELF_SELF]);
    pt_tensor no = pt_get_tensor(c, args[WHERE_SELF_OTHER]);
    return choose_check(c, args[WHERE_SELF_OUT], &mask, &yes, &no, pt_promote_tensors(&yes, &no));
}

static int where_run(pt_context *c, const pt_ref *args) {
    pt_tensor mask = pt_get_tensor(c, args[WHERE_SELF_CONDITION]);
    pt_tensor yes = pt_get_tensor(c, args[WHERE_SELF_SELF]);
    pt_tensor no = pt_get_tensor(c, args[WHERE_SELF_OTHER]);
    pt_tensor out = pt_get_tensor(c, args[WHERE_SELF_OUT]);
    return choose_run(c, &out, &mask, &yes, &no);
}

const pt_kernel pt_aten_where_self_out = PT_KERNEL(where_check, where_run);

static int masked_fill_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[MASKED_FILL_SCALAR_SELF]);
    pt_tensor mask = pt_get_tensor(c, args[MASKED_FILL_SCALAR_MASK]);
    pt_scalar value = pt_get_scalar(c, args[MASKED_FILL_SCALAR_VALUE]);
    if (pt_promote_scalar(in.dtype, value) != in.dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the value cannot be cast to self's dtype");
    }
    return choose_check(c, args[MASKED_FILL_SCALAR_OUT], &mask, &in, &in, in.dtype);
}

static int masked_fill_run(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[MASKED_FILL_SCALAR_SELF]);
    pt_tensor mask = pt_get_tensor(c, args[MASKED_FILL_SCALAR_MASK]);
    pt_tensor out = pt_get_tensor(c, args[MASKED_FILL_SCALAR_OUT]);
    pt_number element;
    pt_tensor value = pt_number_tensor(&element, pt_get_scalar(c, args[MASKED_FILL_SCALAR_VALUE]),
                                       pt_compute_dtype(in.dtype, PT_RULE_SAME));
    return choose_run(c, &out, &mask, &value, &in);
}

const pt_kernel pt_aten_masked_fill_Scalar_out = PT_KERNEL(masked_fill_check, masked_fill_run);

// ---- clamp by tensors: the upper bound has precedence; the result is NaN if one of the three
// operands is NaN

// The numbers are self, min, max.
static pt_number select_clamp(const pt_number n[3], uint8_t compute) {
    pt_number y = n[0];
    if (!pt_is_floating(compute)) {
        y.i64 = y.i64 > n[1].i64 ? y.i64 : n[1].i64;
        y.i64 = y.i64 < n[2].i64 ? y.i64 : n[2].i64;
    } else if (compute == PT_DTYPE_FLOAT) {
        y.f32 = y.f32 > n[1].f32 || y.f32 != y.f32 ? y.f32 : n[1].f32;
        y.f32 = y.f32 < n[2].f32 || y.f32 != y.f32 ? y.f32 : n[2].f32;
    } else {
        y.f64 = y.f64 > n[1].f64 || y.f64 != y.f64 ? y.f64 : n[1].f64;
        y.f64 = y.f64 < n[2].f64 || y.f64 != y.f64 ? y.f64 : n[2].f64;
    }
    return y;
}

// Reads the three operands; self replaces a bound that is None.
static void clamp_operands(const pt_context *c, const pt_ref *args, pt_tensor operands[3]) {
    for (uint32_t i = CLAMP_TENSOR_SELF; i <= CLAMP_TENSOR_MAX; i++) {
        operands[i] = pt_get_tensor(c, args[pt_is_none(args[i]) ? CLAMP_TENSOR_SELF : i]);
    }
}

static uint8_t select_clamp_dtype(const pt_tensor operands[3]) {
    pt_tensor pair = operands[0];
    pair.dtype = pt_promote_tensors(&operands[0], &operands[1]);
    pair.rank = operands[0].rank | operands[1].rank;
    return pt_promote_tensors(&pair, &operands[2]);
}

static int select_clamp_check(pt_context *c, const pt_ref *args) {
    pt_tensor t[3];
    pt_tensor out = pt_get_tensor(c, args[CLAMP_TENSOR_OUT]);
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank = 0;
    clamp_operands(c, args, t);
    if (pt_is_none(args[CLAMP_TENSOR_MIN]) && pt_is_none(args[CLAMP_TENSOR_MAX])) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "clamp needs min or max");
    }
    for (uint32_t i = 0; i < 3; i++) {
        if (!pt_dtype_in(t[i].dtype, PT_DTYPES_ALL & ~PT_DTYPES_BOOL)) {
            return pt_fail(c, PT_ERROR_NOT_SUPPORTED, PT_REASON_DTYPE);
        }
        if (!pt_broadcast(sizes, &rank, &t[i])) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, PT_REASON_BROADCAST);
        }
    }
    if (!pt_dtype_in(out.dtype, PT_DTYPES_ALL) || !pt_can_cast(select_clamp_dtype(t), out.dtype)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, PT_REASON_CAST);
    }
    return pt_expect_sizes(c, args[CLAMP_TENSOR_OUT], rank, sizes);
}

// Computes element i from elements j of t: self, min, max; self replaces a missing bound.
static __attribute__((noinline)) void clamp_element(const pt_tensor *out, int32_t i,
                                                    const pt_tensor t[3], const int32_t j[3],
                                                    const pt_ref *args, uint8_t compute) {
    pt_number n[3];
    for (uint32_t k = CLAMP_TENSOR_SELF; k <= CLAMP_TENSOR_MAX; k++) {
        n[k] = k != CLAMP_TENSOR_SELF && pt_is_none(args[k])
                   ? pt_no_bound(k == CLAMP_TENSOR_MIN, compute)
                   : pt_load_number(t[k].data, j[k], t[k].dtype, compute);
    }
    pt_store_number(out->data, i, out->dtype, select_clamp(n, compute), compute);
}

static __attribute__((noinline)) int walk_clamp(pt_context *c, const pt_tensor *out,
                                                const pt_tensor t[3], const pt_ref *args,
                                                uint8_t compute) {
    pt_walk w;
    pt_walk_tensors(&w, 4, (const pt_tensor *const[]){out, &t[0], &t[1], &t[2]});
    do {
        for (int32_t i = 0; i < w.n; i++) {
            int32_t j[3];
            for (uint32_t k = 0; k < 3; k++) {
                j[k] = w.offset[k + 1] + i * w.strides[k + 1][0];
            }
            clamp_element(out, w.offset[0] + i, t, j, args, compute);
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

static int select_clamp_run(pt_context *c, const pt_ref *args) {
    pt_tensor t[3];
    pt_tensor out = pt_get_tensor(c, args[CLAMP_TENSOR_OUT]);
    clamp_operands(c, args, t);
    return pt_numel(&out) > 0
               ? walk_clamp(c, &out, t, args, pt_compute_dtype(select_clamp_dtype(t), PT_RULE_SAME))
               : PT_ERROR_OK;
}

const pt_kernel pt_aten_clamp_Tensor_out = PT_KERNEL(select_clamp_check, select_clamp_run);
