// Operators that pick elements by indices which a tensor holds. All indices are checked before the
// first element is written.
#include "../core/operator_arguments.h"
#include "arguments.h"
#include "copy.h"
#include <string.h>

static int check_index_dtype(pt_context *c, const pt_tensor *index) {
    return index->dtype == PT_DTYPE_LONG || index->dtype == PT_DTYPE_INT
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "indices must be int64 or int32");
}

// ---- embedding: (weight, indices, padding_idx, scale_grad_by_freq, sparse, out)

static int check_embedding(pt_context *c, const pt_ref *args) {
    pt_tensor weight = pt_get_tensor(c, args[EMBEDDING_WEIGHT]);
    pt_tensor indices = pt_get_tensor(c, args[EMBEDDING_INDICES]);
    pt_tensor out = pt_get_tensor(c, args[EMBEDDING_OUT]);
    if (weight.rank != 2) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "weight must have 2 dims");
    }
    if (indices.rank == PT_MAX_RANK) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "more than 16 dims");
    }
    if (!(weight.flags & indices.flags & out.flags & PT_VALUE_CONTIGUOUS)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the tensors must be contiguous");
    }
    int error = check_index_dtype(c, &indices);
    if (error) {
        return error;
    }
    error = pt_check_same_dtype(c, &out, &weight);
    if (error) {
        return error;
    }
    int32_t sizes[PT_MAX_RANK];
    for (uint32_t d = 0; d < indices.rank; d++) {
        sizes[d] = indices.sizes[d];
    }
    sizes[indices.rank] = weight.sizes[1];
    return pt_expect_sizes(c, args[EMBEDDING_OUT], indices.rank + 1u, sizes);
}

static int run_embedding(pt_context *c, const pt_ref *args) {
    pt_tensor weight = pt_get_tensor(c, args[EMBEDDING_WEIGHT]);
    pt_tensor indices = pt_get_tensor(c, args[EMBEDDING_INDICES]);
    pt_tensor out = pt_get_tensor(c, args[EMBEDDING_OUT]);
    int error = pt_check_indices(c, &indices, weight.sizes[0], &out);
    if (error) {
        return error;
    }
    uint32_t row = (uint32_t)weight.sizes[1] * pt_element_size(weight.dtype);
    int32_t n = row ? pt_numel(&indices) : 0;
    uint8_t *to = out.data;
    for (int32_t i = 0; i < n; i++, to += row) {
        size_t at = (size_t)pt_load_int(indices.data, i, indices.dtype);
        PT_TRY(pt_count_work(c, weight.sizes[1]));
        memmove(to, (const uint8_t *)weight.data + at * row, row);
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_embedding_out = PT_KERNEL(check_embedding, run_embedding);

// ---- index_select: (self, dim, index, out)

static int check_index_select(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[INDEX_SELECT_SELF]);
    pt_tensor index = pt_get_tensor(c, args[INDEX_SELECT_INDEX]);
    pt_tensor out = pt_get_tensor(c, args[INDEX_SELECT_OUT]);
    uint32_t dim;
    int error = pt_read_dim(c, pt_get_int(c, args[INDEX_SELECT_DIM]), self.rank, &dim);
    if (error) {
        return error;
    }
    if (index.rank > 1) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "index must have 1 dim");
    }
    error = check_index_dtype(c, &index);
    if (error) {
        return error;
    }
    error = pt_check_same_dtype(c, &out, &self);
    if (error) {
        return error;
    }
    int32_t sizes[PT_MAX_RANK];
    for (uint32_t d = 0; d < self.rank; d++) {
        sizes[d] = d == dim ? pt_numel(&index) : self.sizes[d];
    }
    if (self.rank == 0 && pt_numel(&index) != 1) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a 0-d tensor takes one index");
    }
    return pt_expect_sizes(c, args[INDEX_SELECT_OUT], self.rank, sizes);
}

static int run_index_select(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[INDEX_SELECT_SELF]);
    pt_tensor index = pt_get_tensor(c, args[INDEX_SELECT_INDEX]);
    pt_tensor out = pt_get_tensor(c, args[INDEX_SELECT_OUT]);
    uint32_t dim;
    int error = pt_read_dim(c, pt_get_int(c, args[INDEX_SELECT_DIM]), self.rank, &dim);
    if (error) {
        return error;
    }
    error = pt_check_indices(c, &index, self.rank ? self.sizes[dim] : 1, &out);
    if (error || pt_numel(&out) == 0) {
        return error;
    }
    int32_t n = pt_numel(&index);
    for (int32_t i = 0; i < n; i++) {
        pt_walk w;
        pt_copy_start(&w, &out, &self);
        if (self.rank) {
            w.sizes[dim] = 1;
            w.offset[0] = i * w.strides[0][dim];
            w.offset[1] = (int32_t)pt_load_int(index.data, i, index.dtype) * w.strides[1][dim];
        }
        PT_TRY(pt_copy_run(c, &w, &out, &self));
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_index_select_out = PT_KERNEL(check_index_select, run_index_select);

// ---- gather: (self, dim, index, sparse_grad, out)

static int check_gather(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_lanes(c, args[GATHER_SELF]);
    pt_tensor index = pt_get_lanes(c, args[GATHER_INDEX]);
    pt_tensor out = pt_get_lanes(c, args[GATHER_OUT]);
    uint32_t dim;
    int error = pt_read_dim(c, pt_get_int(c, args[GATHER_DIM]), self.rank, &dim);
    if (error) {
        return error;
    }
    error = check_index_dtype(c, &index);
    if (error) {
        return error;
    }
    bool fits = index.rank == self.rank || pt_numel(&index) == 0;
    for (uint32_t d = 0; fits && pt_numel(&index) != 0 && d < self.rank; d++) {
        fits = d == dim || index.sizes[d] <= self.sizes[d];
    }
    if (!fits) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "index is larger than self outside the dim");
    }
    error = pt_check_same_dtype(c, &out, &self);
    index = pt_get_tensor(c, args[GATHER_INDEX]);
    return error ? error : pt_expect_sizes(c, args[GATHER_OUT], index.rank, index.sizes);
}

static int run_gather(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_lanes(c, args[GATHER_SELF]);
    pt_tensor index = pt_get_lanes(c, args[GATHER_INDEX]);
    pt_tensor out = pt_get_lanes(c, args[GATHER_OUT]);
    uint32_t dim;
    int error = pt_read_dim(c, pt_get_int(c, args[GATHER_DIM]), self.rank, &dim);
    if (error || pt_numel(&index) == 0) {
        return error;
    }
    error = pt_check_indices(c, &index, self.sizes[dim], &out);
    if (error) {
        return error;
    }
    pt_walk w;
    pt_copy_start(&w, &out, &self);
    w.operands = 3;
    w.offset[2] = 0;
    pt_strides(&index, w.strides[2]);
    const int32_t step = w.strides[1][dim];
    w.strides[1][dim] = 0;
    pt_walk_start(&w);
    uint32_t size = pt_element_size(out.dtype);
    do {
        for (int32_t i = 0; i < w.n; i++) {
            int64_t at = pt_load_int(index.data, w.offset[2] + i * w.strides[2][0], index.dtype);
            int32_t from = w.offset[1] + i * w.strides[1][0] + (int32_t)at * step;
            int32_t to = w.offset[0] + i * w.strides[0][0];
            memmove((uint8_t *)out.data + (size_t)to * size,
                    (const uint8_t *)self.data + (size_t)from * size, size);
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

const pt_kernel pt_aten_gather_out = PT_KERNEL(check_gather, run_gather);
