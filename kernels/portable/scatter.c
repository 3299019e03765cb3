// scatter, scatter_add and scatter_reduce: write elements to the positions that a tensor of indices
// selects along a dim, in a copy of self. All indices are checked before the first write. If
// scatter writes several elements to one position, the last one stays.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/copy.h"

// Checks the sizes of index against self, except along the dim, and all sizes of index against src.
static bool scatter_fits(const pt_tensor *index, const pt_tensor *t, int64_t dim) {
    bool within = index->rank == t->rank || pt_numel(index) == 0;
    for (uint32_t d = 0; within && pt_numel(index) != 0 && d < t->rank; d++) {
        within = d == dim || index->sizes[d] <= t->sizes[d];
    }
    return within;
}

static int scatter_check_scatter(pt_context *c, const pt_ref *args, const pt_tensor *source) {
    pt_tensor self = pt_get_lanes(c, args[SCATTER_SRC_SELF]);
    pt_tensor index = pt_get_lanes(c, args[SCATTER_SRC_INDEX]);
    pt_tensor out = pt_get_lanes(c, args[SCATTER_SRC_OUT]);
    uint32_t dim;
    PT_TRY(pt_read_dim(c, pt_get_int(c, args[SCATTER_SRC_DIM]), self.rank, &dim));
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    if (index.dtype != PT_DTYPE_LONG && index.dtype != PT_DTYPE_INT) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "indices must be int64 or int32");
    }
    if (!pt_dtype_in(self.dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "elements of this dtype are not scattered");
    }
    if (!scatter_fits(&index, &self, dim) || (source && !scatter_fits(&index, source, -1))) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "index is larger than self or src");
    }
    if (source && source->dtype != self.dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "src must have self's dtype");
    }
    self = pt_get_tensor(c, args[SCATTER_SRC_SELF]);
    return pt_expect_sizes(c, args[SCATTER_SRC_OUT], self.rank, self.sizes);
}

// Combines element j of `from` into element i of `to`.
typedef void combine(const pt_tensor *to, int32_t i, const pt_tensor *from, int32_t j);

// Walks the index: operand 1 is out without the dim, operand 2 the source, broadcast if 0-d.
static int scatter(pt_context *c, const pt_tensor *out, const pt_tensor *index,
                   const pt_tensor *source, uint32_t dim, combine *one) {
    pt_walk w;
    w.rank = index->rank;
    w.operands = 3;
    pt_strides(index, w.strides[0]);
    pt_strides(out, w.strides[1]);
    pt_strides(source, w.strides[2]);
    for (uint32_t d = 0; d < index->rank; d++) {
        w.sizes[d] = index->sizes[d];
        w.strides[2][d] = source->rank ? w.strides[2][d] : 0;
    }
    const int32_t step = w.strides[1][dim];
    w.strides[1][dim] = 0;
    w.offset[0] = w.offset[1] = w.offset[2] = 0;
    pt_walk_start(&w);
    do {
        for (int32_t i = 0; i < w.n; i++) {
            int64_t at = pt_load_int(index->data, w.offset[0] + i * w.strides[0][0], index->dtype);
            int32_t to = w.offset[1] + i * w.strides[1][0] + (int32_t)at * step;
            int32_t from = w.offset[2] + i * w.strides[2][0];
            one(out, to, source, from);
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

static int run_scatter(pt_context *c, const pt_ref *args, const pt_tensor *source, combine *one) {
    pt_tensor self = pt_get_lanes(c, args[SCATTER_SRC_SELF]);
    pt_tensor index = pt_get_lanes(c, args[SCATTER_SRC_INDEX]);
    pt_tensor out = pt_get_lanes(c, args[SCATTER_SRC_OUT]);
    uint32_t dim;
    PT_TRY(pt_read_dim(c, pt_get_int(c, args[SCATTER_SRC_DIM]), self.rank, &dim));
    PT_TRY(pt_check_indices(c, &index, self.sizes[dim], &out));
    PT_TRY(pt_copy_broadcast(c, &out, &self));
    return pt_numel(&index) != 0 ? scatter(c, &out, &index, source, dim, one) : PT_ERROR_OK;
}

static int check_source(pt_context *c, const pt_ref *args) {
    pt_tensor source = pt_get_lanes(c, args[SCATTER_SRC_SRC]);
    return scatter_check_scatter(c, args, &source);
}

static int run_src(pt_context *c, const pt_ref *args) {
    pt_tensor source = pt_get_lanes(c, args[SCATTER_SRC_SRC]);
    return run_scatter(c, args, &source, pt_copy_element);
}

static int run_add(pt_context *c, const pt_ref *args) {
    pt_tensor source = pt_get_lanes(c, args[SCATTER_SRC_SRC]);
    return run_scatter(c, args, &source, pt_add_element);
}

static int scatter_check_value(pt_context *c, const pt_ref *args) {
    return scatter_check_scatter(c, args, NULL);
}

static int run_value(pt_context *c, const pt_ref *args) {
    uint64_t element = 0;
    pt_tensor value = {.data = &element, .dtype = pt_get_tensor(c, args[SCATTER_VALUE_OUT]).dtype};
    pt_fill(&element, 1, value.dtype, pt_get_scalar(c, args[SCATTER_VALUE_VALUE]));
    return run_scatter(c, args, &value, pt_copy_element);
}

const pt_kernel pt_aten_scatter_src_out = PT_KERNEL(check_source, run_src);
const pt_kernel pt_aten_scatter_value_out = PT_KERNEL(scatter_check_value, run_value);
const pt_kernel pt_aten_scatter_add_out = PT_KERNEL(check_source, run_add);

// ---- scatter_reduce.two: (self, dim, index, src, reduce, include_self, out)

static void scatter_multiply(const pt_tensor *to, int32_t i, const pt_tensor *from, int32_t j) {
    if (pt_is_floating(to->dtype)) {
        pt_store_double(to->data, i, to->dtype,
                        pt_load_double(to->data, i, to->dtype) *
                            pt_load_double(from->data, j, from->dtype));
    } else {
        pt_store_int(to->data, i, to->dtype,
                     (int64_t)((uint64_t)pt_load_int(to->data, i, to->dtype) *
                               (uint64_t)pt_load_int(from->data, j, from->dtype)));
    }
}

// Stores the maximum, or the minimum; a NaN counts as the extremum.
static inline __attribute__((always_inline)) void
reduce_extremum(const pt_tensor *to, int32_t i, const pt_tensor *from, int32_t j, const bool min) {
    bool takes;
    if (pt_is_floating(to->dtype)) {
        const double a = pt_load_double(to->data, i, to->dtype);
        const double b = pt_load_double(from->data, j, from->dtype);
        takes = a == a && (b != b || (min ? b < a : b > a));
    } else {
        const int64_t a = pt_load_int(to->data, i, to->dtype);
        const int64_t b = pt_load_int(from->data, j, from->dtype);
        takes = min ? b < a : b > a;
    }
    if (takes) {
        pt_copy_element(to, i, from, j);
    }
}

static void reduce_max(const pt_tensor *to, int32_t i, const pt_tensor *from, int32_t j) {
    reduce_extremum(to, i, from, j, false);
}

static void reduce_min(const pt_tensor *to, int32_t i, const pt_tensor *from, int32_t j) {
    reduce_extremum(to, i, from, j, true);
}

enum { BY_SUM, BY_PROD, BY_MEAN, BY_MAX, BY_MIN, REDUCTIONS };

static uint32_t read_reduction(const pt_context *c, pt_ref arg) {
    static const char names[REDUCTIONS][5] = {"sum", "prod", "mean", "amax", "amin"};
    uint32_t by = 0;
    while (by < REDUCTIONS && !pt_string_is(c, arg, names[by])) {
        by++;
    }
    return by;
}

// True if the reduction `by` of t is computed in float32 until the end, as in PyTorch.
static bool is_wide(const pt_tensor *t, uint32_t by) {
    return pt_is_half(t->dtype) && by < BY_MAX;
}

// Returns the bytes of the counts of a mean, then of the float32 results.
static uint32_t reduce_scratch(const pt_tensor *t, uint32_t by) {
    return (uint32_t)pt_numel(t) * ((by == BY_MEAN) + (uint32_t)is_wide(t, by)) *
           (uint32_t)sizeof(int32_t);
}

static int check_reduce(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_lanes(c, args[SCATTER_REDUCE_TWO_SELF]);
    pt_tensor source = pt_get_lanes(c, args[SCATTER_REDUCE_TWO_SRC]);
    const pt_ref own[] = {args[SCATTER_REDUCE_TWO_SELF], args[SCATTER_REDUCE_TWO_DIM],
                          args[SCATTER_REDUCE_TWO_INDEX], args[SCATTER_REDUCE_TWO_SRC],
                          args[SCATTER_REDUCE_TWO_OUT]};
    const uint32_t by = read_reduction(c, args[SCATTER_REDUCE_TWO_REDUCE]);
    if (by == REDUCTIONS) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "reduce is not sum, prod, mean, amax or amin");
    }
    if (by == BY_MEAN && self.dtype == PT_DTYPE_BOOL) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "there is no mean of bools");
    }
    pt_request_scratch(c, reduce_scratch(&self, by));
    return scatter_check_scatter(c, own, &source);
}

// Divides the sums in `out` by `counts`, integers rounded down.
static int scatter_divide(pt_context *c, const pt_tensor *out, const int32_t *counts) {
    const int32_t n = pt_numel(out);
    for (int32_t i = 0; i < n; i++) {
        const int32_t count = counts[i] > 0 ? counts[i] : 1;
        PT_TRY(pt_count_elements(c, 1));
        if (pt_is_floating(out->dtype)) {
            pt_store_double(out->data, i, out->dtype,
                            pt_load_double(out->data, i, out->dtype) / count);
        } else {
            const int64_t sum = pt_load_int(out->data, i, out->dtype);
            pt_store_int(out->data, i, out->dtype, sum / count - (sum % count < 0));
        }
    }
    return PT_ERROR_OK;
}

static int run_reduce(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_lanes(c, args[SCATTER_REDUCE_TWO_SELF]);
    pt_tensor index = pt_get_lanes(c, args[SCATTER_REDUCE_TWO_INDEX]);
    pt_tensor source = pt_get_lanes(c, args[SCATTER_REDUCE_TWO_SRC]);
    pt_tensor out = pt_get_lanes(c, args[SCATTER_REDUCE_TWO_OUT]);
    const uint32_t by = read_reduction(c, args[SCATTER_REDUCE_TWO_REDUCE]);
    const bool include_self = pt_get_bool(c, args[SCATTER_REDUCE_TWO_INCLUDE_SELF]);
    uint32_t dim;
    PT_TRY(pt_read_dim(c, pt_get_int(c, args[SCATTER_REDUCE_TWO_DIM]), self.rank, &dim));
    PT_TRY(pt_check_indices(c, &index, self.sizes[dim], &out));
    if (pt_numel(&index) == 0) {
        return pt_copy_broadcast(c, &out, &self);
    }
    const int32_t n = pt_numel(&out);
    void *scratch;
    PT_TRY(pt_get_scratch(c, reduce_scratch(&out, by), &scratch));
    int32_t *const counts = scratch;
    pt_tensor result = out; // destination of the reduction
    if (is_wide(&out, by)) {
        result.data = by == BY_MEAN ? counts + n : counts;
        result.dtype = PT_DTYPE_FLOAT;
    }
    PT_TRY(pt_convert_broadcast(c, &result, &self));
    uint64_t element = 0;
    pt_tensor neutral = {.data = &element, .dtype = result.dtype};
    const pt_scalar number = {.type = PT_TYPE_INT, .as.i = by == BY_PROD};
    pt_fill(&element, 1, neutral.dtype, number);
    if (!include_self) { // the first element replaces the initial value of a maximum or minimum
        PT_TRY(scatter(c, &result, &index, by < BY_MAX ? &neutral : &source, dim, pt_copy_element));
    }
    combine *const one = by == BY_PROD  ? scatter_multiply
                         : by == BY_MAX ? reduce_max
                         : by == BY_MIN ? reduce_min
                                        : pt_add_element;
    PT_TRY(scatter(c, &result, &index, &source, dim, one));
    if (by == BY_MEAN) {
        int32_t each = 1;
        for (int32_t i = 0; i < n; i++) {
            counts[i] = include_self;
        }
        pt_tensor counted = out;
        counted.data = counts;
        counted.dtype = PT_DTYPE_INT;
        const pt_tensor count = {.data = &each, .dtype = PT_DTYPE_INT};
        PT_TRY(scatter(c, &counted, &index, &count, dim, pt_add_element));
        PT_TRY(scatter_divide(c, &result, counts));
    }
    return result.dtype == out.dtype ? PT_ERROR_OK : pt_convert_broadcast(c, &out, &result);
}

const pt_kernel pt_aten_scatter_reduce_two_out = PT_KERNEL(check_reduce, run_reduce);
