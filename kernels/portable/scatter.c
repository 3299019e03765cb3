// scatter and scatter_add: a copy of self in which elements go where a tensor of indices along a
// dim says. All indices are checked before the first element is written; where several elements go
// to the same place the last one stays.
#include "../core/operator_arguments.h"
#include "arguments.h"
#include "copy.h"

// Index is, beside the dim, within self, and within what there is to take from.
static bool fits(const pt_tensor *index, const pt_tensor *t, int64_t dim) {
    bool within = index->rank == t->rank || pt_numel(index) == 0;
    for (uint32_t d = 0; within && pt_numel(index) != 0 && d < t->rank; d++) {
        within = d == dim || index->sizes[d] <= t->sizes[d];
    }
    return within;
}

static int check_scatter(pt_context *c, const pt_ref *args, const pt_tensor *source) {
    pt_tensor self = pt_get_tensor(c, args[SCATTER_SRC_SELF]);
    pt_tensor index = pt_get_tensor(c, args[SCATTER_SRC_INDEX]);
    pt_tensor out = pt_get_tensor(c, args[SCATTER_SRC_OUT]);
    uint32_t dim;
    int error = pt_read_dim(c, pt_get_int(c, args[SCATTER_SRC_DIM]), self.rank, &dim);
    error = error ? error : pt_check_same_dtype(c, &out, &self);
    if (error) {
        return error;
    }
    if (index.dtype != PT_DTYPE_LONG && index.dtype != PT_DTYPE_INT) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "indices must be int64 or int32");
    }
    if (!pt_dtype_in(self.dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "elements of this dtype are not scattered");
    }
    if (!fits(&index, &self, dim) || (source && !fits(&index, source, -1))) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "index is larger than self or src");
    }
    if (source && source->dtype != self.dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "src must have self's dtype");
    }
    return pt_expect_sizes(c, args[SCATTER_SRC_OUT], self.rank, self.sizes);
}

// Walks the index: operand 1 is out without the dim, operand 2 the source, broadcast if 0-d.
static int scatter(pt_context *c, const pt_tensor *out, const pt_tensor *index,
                   const pt_tensor *source, uint32_t dim, bool adds) {
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
    int32_t step = index->rank ? w.strides[1][dim] : 0;
    w.strides[1][dim] = 0;
    w.offset[0] = w.offset[1] = w.offset[2] = 0;
    pt_walk_start(&w);
    do {
        for (int32_t i = 0; i < w.n; i++) {
            int64_t at = pt_load_int(index->data, w.offset[0] + i * w.strides[0][0], index->dtype);
            int32_t to = w.offset[1] + i * w.strides[1][0] + (int32_t)at * step;
            int32_t from = w.offset[2] + i * w.strides[2][0];
            (adds ? pt_add_element : pt_copy_element)(out, to, source, from);
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

static int run_scatter(pt_context *c, const pt_ref *args, const pt_tensor *source, bool adds) {
    pt_tensor self = pt_get_tensor(c, args[SCATTER_SRC_SELF]);
    pt_tensor index = pt_get_tensor(c, args[SCATTER_SRC_INDEX]);
    pt_tensor out = pt_get_tensor(c, args[SCATTER_SRC_OUT]);
    uint32_t dim;
    int error = pt_read_dim(c, pt_get_int(c, args[SCATTER_SRC_DIM]), self.rank, &dim);
    error = error ? error : pt_check_indices(c, &index, self.rank ? self.sizes[dim] : 1, &out);
    if (error) {
        return error;
    }
    PT_TRY(pt_copy_broadcast(c, &out, &self));
    return pt_numel(&index) != 0 ? scatter(c, &out, &index, source, dim, adds) : PT_ERROR_OK;
}

static int check_source(pt_context *c, const pt_ref *args) {
    pt_tensor source = pt_get_tensor(c, args[SCATTER_SRC_SRC]);
    return check_scatter(c, args, &source);
}

static int run_src(pt_context *c, const pt_ref *args) {
    pt_tensor source = pt_get_tensor(c, args[SCATTER_SRC_SRC]);
    return run_scatter(c, args, &source, false);
}

static int run_add(pt_context *c, const pt_ref *args) {
    pt_tensor source = pt_get_tensor(c, args[SCATTER_SRC_SRC]);
    return run_scatter(c, args, &source, true);
}

static int check_value(pt_context *c, const pt_ref *args) {
    return check_scatter(c, args, NULL);
}

static int run_value(pt_context *c, const pt_ref *args) {
    uint64_t element = 0;
    pt_tensor value = {.data = &element, .dtype = pt_get_tensor(c, args[SCATTER_VALUE_OUT]).dtype};
    pt_fill(&element, 1, value.dtype, pt_get_scalar(c, args[SCATTER_VALUE_VALUE]));
    return run_scatter(c, args, &value, false);
}

const pt_kernel pt_aten_scatter_src_out = {check_source, run_src};
const pt_kernel pt_aten_scatter_value_out = {check_value, run_value};
const pt_kernel pt_aten_scatter_add_out = {check_source, run_add};
