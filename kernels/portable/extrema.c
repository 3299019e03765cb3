// Maxima and minima over dims: amax, amin, max, min, argmax, argmin.
#include "portable/extrema.h"
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/reduction.h"

bool pt_beats(const void *data, int32_t i, int32_t j, uint8_t dtype, bool min) {
    if (dtype == PT_DTYPE_FLOAT || pt_is_half(dtype)) {
        float a = pt_load_float(data, i, dtype), b = pt_load_float(data, j, dtype);
        return (min ? a < b : a > b) || a != a;
    }
    if (dtype == PT_DTYPE_DOUBLE) {
        double a = pt_load_double(data, i, dtype), b = pt_load_double(data, j, dtype);
        return (min ? a < b : a > b) || a != a;
    }
    int64_t a = pt_load_int(data, i, dtype), b = pt_load_int(data, j, dtype);
    return min ? a < b : a > b;
}

// Searches a piece for a better extremum than the element at `best`. Returns its offset, or `best`;
// *index is its index in the piece.
static int32_t beat_float(const pt_reduction *r, const pt_piece *p, int32_t best, int32_t *index) {
    const float *values = r->in.data;
    int32_t at = p->at;
    float value = values[best];
    for (int32_t i = 0; i < p->n; i++, at += r->step) {
        float v = values[at];
        if (r->min ? v >= value : v <= value) {
            continue;
        }
        if (value != value) {
            break; // nothing beats the first NaN
        }
        value = v;
        best = at;
        *index = i;
    }
    return best;
}

static int32_t beat_any(const pt_reduction *r, const pt_piece *p, int32_t best, int32_t *index) {
    int32_t at = p->at;
    const void *data = r->in.data;
    for (int32_t i = 0; i < p->n; i++, at += r->step) {
        if (pt_beats(data, at, best, r->in.dtype, r->min)) {
            if (pt_beats(data, best, best, r->in.dtype, r->min)) {
                break;
            }
            best = at;
            *index = i;
        }
    }
    return best;
}

// Returns the offset of the extremum: the first of equal elements, but the first NaN before all
// numbers. *index is its number among the reduced elements.
static int32_t find_extremum(pt_reduction *r, int32_t from, int32_t *index) {
    int32_t best = from;
    *index = 0;
    for (pt_piece p = {0}; pt_next_piece(r, from, &p);) {
        int32_t previous = best, found = 0;
        best = r->in.dtype == PT_DTYPE_FLOAT ? beat_float(r, &p, best, &found)
                                             : beat_any(r, &p, best, &found);
        if (best != previous) {
            *index = p.line * r->n + p.first + found;
        }
    }
    return best;
}

static void store_value(pt_reduction *r, int32_t from, int32_t to, int32_t index_to) {
    (void)index_to;
    int32_t index, best = find_extremum(r, from, &index);
    pt_convert_element(r->out.data, to, r->out.dtype, r->in.data, best, r->in.dtype);
}

static void store_index(pt_reduction *r, int32_t from, int32_t to, int32_t index_to) {
    (void)index_to;
    int32_t index;
    find_extremum(r, from, &index);
    ((int64_t *)r->out.data)[to] = index;
}

static void store_both(pt_reduction *r, int32_t from, int32_t to, int32_t index_to) {
    int32_t index, best = find_extremum(r, from, &index);
    pt_convert_element(r->out.data, to, r->out.dtype, r->in.data, best, r->in.dtype);
    ((int64_t *)r->indices.data)[index_to] = index;
}

// ---- kernels

static int check_extremum(pt_context *c, const pt_tensor *in, uint32_t dims, bool keep,
                          pt_ref out_arg) {
    if (!pt_dtype_in(in->dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "elements of this dtype are not compared");
    }
    for (uint32_t d = 0; d < in->rank; d++) {
        if ((dims >> d & 1) && in->sizes[d] == 0) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "no elements to choose from");
        }
    }
    return pt_expect_reduced(c, in, dims, keep, out_arg);
}

static int extrema_check_value(pt_context *c, const pt_tensor *in, uint32_t dims, bool keep,
                               pt_ref out_arg) {
    pt_tensor out = pt_get_tensor(c, out_arg);
    PT_TRY(pt_check_same_dtype(c, &out, in));
    return check_extremum(c, in, dims, keep, out_arg);
}

static int extrema_check_index(pt_context *c, const pt_tensor *in, uint32_t dims, bool keep,
                               pt_ref out_arg) {
    if (pt_get_tensor(c, out_arg).dtype != PT_DTYPE_LONG) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "indices must be int64");
    }
    return check_extremum(c, in, dims, keep, out_arg);
}

static int run_extremum(pt_context *c, pt_ref in, pt_ref out, uint32_t dims, bool keep, bool min,
                        pt_reduce_one *one) {
    pt_reduction r;
    r.in = pt_get_tensor(c, in);
    r.out = pt_get_tensor(c, out);
    r.indices.data = NULL;
    r.min = min;
    return pt_reduce(c, &r, dims, keep, one);
}

// amax, amin: (self, dim, keepdim, out)
static int amax_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[AMAX_SELF]);
    uint32_t dims;
    PT_TRY(pt_read_dims_or_all(c, args[AMAX_DIM], in.rank, &dims));
    return extrema_check_value(c, &in, dims, pt_get_bool(c, args[AMAX_KEEPDIM]), args[AMAX_OUT]);
}

static int run_amax(pt_context *c, const pt_ref *args, bool min) {
    uint32_t dims;
    PT_TRY(pt_read_dims_or_all(c, args[AMAX_DIM], pt_get_tensor(c, args[AMAX_SELF]).rank, &dims));
    return run_extremum(c, args[AMAX_SELF], args[AMAX_OUT], dims,
                        pt_get_bool(c, args[AMAX_KEEPDIM]), min, store_value);
}

static int amax_run(pt_context *c, const pt_ref *args) {
    return run_amax(c, args, false);
}

static int amin_run(pt_context *c, const pt_ref *args) {
    return run_amax(c, args, true);
}

const pt_kernel pt_aten_amax_out = PT_KERNEL(amax_check, amax_run);
const pt_kernel pt_aten_amin_out = PT_KERNEL(amax_check, amin_run);

// argmax, argmin: (self, dim, keepdim, out)
static int argmax_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[ARGMAX_SELF]);
    uint32_t dims;
    PT_TRY(pt_read_dim_or_all(c, args[ARGMAX_DIM], in.rank, &dims));
    return extrema_check_index(c, &in, dims, pt_get_bool(c, args[ARGMAX_KEEPDIM]),
                               args[ARGMAX_OUT]);
}

static int run_argmax(pt_context *c, const pt_ref *args, bool min) {
    uint32_t dims;
    PT_TRY(
        pt_read_dim_or_all(c, args[ARGMAX_DIM], pt_get_tensor(c, args[ARGMAX_SELF]).rank, &dims));
    return run_extremum(c, args[ARGMAX_SELF], args[ARGMAX_OUT], dims,
                        pt_get_bool(c, args[ARGMAX_KEEPDIM]), min, store_index);
}

static int argmax_run(pt_context *c, const pt_ref *args) {
    return run_argmax(c, args, false);
}

static int argmin_run(pt_context *c, const pt_ref *args) {
    return run_argmax(c, args, true);
}

const pt_kernel pt_aten_argmax_out = PT_KERNEL(argmax_check, argmax_run);
const pt_kernel pt_aten_argmin_out = PT_KERNEL(argmax_check, argmin_run);

// max.dim, min.dim: (self, dim, keepdim, values, indices). The schema of max calls the outputs max
// and max_values.
static int max_dim_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[MIN_DIM_SELF]);
    bool keep = pt_get_bool(c, args[MIN_DIM_KEEPDIM]);
    uint32_t dims;
    PT_TRY(pt_read_dim_or_all(c, args[MIN_DIM_DIM], in.rank, &dims));
    PT_TRY(extrema_check_value(c, &in, dims, keep, args[MIN_DIM_MIN]));
    return extrema_check_index(c, &in, dims, keep, args[MIN_DIM_MIN_INDICES]);
}

static int run_max_dim(pt_context *c, const pt_ref *args, bool min) {
    pt_reduction r;
    uint32_t dims;
    r.in = pt_get_tensor(c, args[MIN_DIM_SELF]);
    r.out = pt_get_tensor(c, args[MIN_DIM_MIN]);
    r.indices = pt_get_tensor(c, args[MIN_DIM_MIN_INDICES]);
    r.min = min;
    PT_TRY(pt_read_dim_or_all(c, args[MIN_DIM_DIM], r.in.rank, &dims));
    return pt_reduce(c, &r, dims, pt_get_bool(c, args[MIN_DIM_KEEPDIM]), store_both);
}

static int max_dim_run(pt_context *c, const pt_ref *args) {
    return run_max_dim(c, args, false);
}

static int min_dim_run(pt_context *c, const pt_ref *args) {
    return run_max_dim(c, args, true);
}

const pt_kernel pt_aten_max_dim_max = PT_KERNEL(max_dim_check, max_dim_run);
const pt_kernel pt_aten_min_dim_min = PT_KERNEL(max_dim_check, min_dim_run);

// max, min over all dims: (self, out)
enum { ALL_DIMS = (1 << PT_MAX_RANK) - 1 };

static int max_all_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[MAX_UNARY_SELF]);
    return extrema_check_value(c, &in, ALL_DIMS, false, args[MAX_UNARY_OUT]);
}

static int max_all_run(pt_context *c, const pt_ref *args) {
    return run_extremum(c, args[MAX_UNARY_SELF], args[MAX_UNARY_OUT], ALL_DIMS, false, false,
                        store_value);
}

static int min_all_run(pt_context *c, const pt_ref *args) {
    return run_extremum(c, args[MIN_UNARY_SELF], args[MIN_UNARY_OUT], ALL_DIMS, false, true,
                        store_value);
}

const pt_kernel pt_aten_max_unary_out = PT_KERNEL(max_all_check, max_all_run);
const pt_kernel pt_aten_min_unary_out = PT_KERNEL(max_all_check, min_all_run);
