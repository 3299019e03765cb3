// Selection of elements by a tensor of indices. All indices are checked before the first element is
// written.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/copy.h"
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
    PT_TRY(check_index_dtype(c, &indices));
    PT_TRY(pt_check_same_dtype(c, &out, &weight));
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
    PT_TRY(pt_check_indices(c, &indices, weight.sizes[0], &out));
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

// ---- embedding_bag: (weight, indices, offsets, scale_grad_by_freq, mode, sparse,
// per_sample_weights, include_last_offset, padding_idx, out0 .. out3). Writes only the first
// output: the others are for gradients.

enum { BAG_SUM, BAG_MEAN, BAG_MAX };

// Counts the bags; offsets has one more entry if it includes the end of the last bag.
static int32_t bags_of(const pt_context *c, const pt_ref *args, const pt_tensor *offsets) {
    return offsets->sizes[0] - pt_get_bool(c, args[EMBEDDING_BAG_INCLUDE_LAST_OFFSET]);
}

static int check_bag_lists(pt_context *c, const pt_ref *args, int64_t mode, uint8_t dtype,
                           const pt_tensor *indices, const pt_tensor *offsets) {
    const pt_ref factors = args[EMBEDDING_BAG_PER_SAMPLE_WEIGHTS];
    PT_TRY(check_index_dtype(c, indices));
    PT_TRY(check_index_dtype(c, offsets));
    if (indices->rank != 1 || offsets->rank != 1) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "indices and offsets must have 1 dim");
    }
    if (bags_of(c, args, offsets) < 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the last offset is missing");
    }
    if (!pt_is_none(factors)) {
        const pt_tensor t = pt_get_tensor(c, factors);
        if (mode != BAG_SUM || t.rank != 1 || t.sizes[0] != indices->sizes[0] || t.dtype != dtype) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                           "per_sample_weights must be one for each index, of a sum");
        }
    }
    return PT_ERROR_OK;
}

static int check_bags(pt_context *c, const pt_ref *args, bool forward_only) {
    const pt_tensor weight = pt_get_tensor(c, args[EMBEDDING_BAG_WEIGHT]);
    const pt_tensor out = pt_get_tensor(c, args[EMBEDDING_BAG_OUT0]);
    const int64_t mode = pt_get_int(c, args[EMBEDDING_BAG_MODE]);
    if (weight.rank != 2 || !pt_is_floating(weight.dtype)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "weight must have 2 dims, of floats");
    }
    if (!(weight.flags & out.flags & PT_VALUE_CONTIGUOUS)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the tensors must be contiguous");
    }
    if (mode < BAG_SUM || mode > BAG_MAX) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "mode must be a sum, a mean or a maximum");
    }
    const pt_tensor indices = pt_get_tensor(c, args[EMBEDDING_BAG_INDICES]);
    const pt_tensor offsets = pt_get_tensor(c, args[EMBEDDING_BAG_OFFSETS]);
    PT_TRY(check_bag_lists(c, args, mode, weight.dtype, &indices, &offsets));
    PT_TRY(pt_check_same_dtype(c, &out, &weight));
    const int32_t sizes[2] = {bags_of(c, args, &offsets), weight.sizes[1]};
    PT_TRY(pt_expect_sizes(c, args[EMBEDDING_BAG_OUT0], 2, sizes));
    // Sizes of the other outputs, as in PyTorch's exporter: the first has [indices] or is empty,
    // the second [bags] or [offsets], the third [bags, columns] for max, else [bags].
    const bool is_fast = mode == BAG_SUM && pt_get_int(c, args[EMBEDDING_BAG_PADDING_IDX]) < 0 &&
                         (weight.dtype == PT_DTYPE_FLOAT || weight.dtype == PT_DTYPE_HALF);
    const int32_t positions = is_fast ? 0 : indices.sizes[0];
    PT_TRY(pt_expect_sizes(c, args[EMBEDDING_BAG_OUT1], 1, &positions));
    PT_TRY(pt_expect_sizes(c, args[EMBEDDING_BAG_OUT2], 1, forward_only ? offsets.sizes : sizes));
    return pt_expect_sizes(c, args[EMBEDDING_BAG_OUT3], mode == BAG_MAX ? 2 : 1, sizes);
}

static int check_embedding_bag(pt_context *c, const pt_ref *args) {
    return check_bags(c, args, false);
}

static int check_forward_only(pt_context *c, const pt_ref *args) {
    return check_bags(c, args, true);
}

typedef struct bag {
    pt_tensor weight, indices, factors, out;
    int64_t mode, padding;
    int32_t first, end; // positions among the indices
} bag;

// True if index i of the bag is not padding; *at becomes the offset of its element in the column.
static bool is_in_bag(const bag *b, int32_t i, int32_t column, int32_t *at) {
    const int64_t row = pt_load_int(b->indices.data, i, b->indices.dtype);
    *at = (int32_t)row * b->weight.sizes[1] + column;
    return row != b->padding;
}

// Computes an element of the bag's output in `type`. A NaN is the maximum only as the first
// element, as in PyTorch. The count is a floating number, too: GCC 12 compiles conditional
// conversions of integers to instructions that its assembler rejects for Cortex-M55.
#define REDUCE_BAG(name, type, load)                                       \
    static type name(const bag *b, int32_t column) {                       \
        type result = 0, count = 0;                                        \
        for (int32_t i = b->first, at; i < b->end; i++) {                  \
            if (!is_in_bag(b, i, column, &at)) {                           \
                continue;                                                  \
            }                                                              \
            type x = load(b->weight.data, at, b->weight.dtype);            \
            if (b->factors.data) {                                         \
                x *= load(b->factors.data, i, b->weight.dtype);            \
            }                                                              \
            if (b->mode != BAG_MAX) {                                      \
                result += x;                                               \
            } else if (count == 0 || x > result) {                         \
                result = x;                                                \
            }                                                              \
            count += 1;                                                    \
        }                                                                  \
        return b->mode == BAG_MEAN && count > 0 ? result / count : result; \
    }

REDUCE_BAG(reduce_floats, float, pt_load_float)
REDUCE_BAG(reduce_doubles, double, pt_load_double)

// Returns the start of bag i among the n indices; n behind the last bag.
static int32_t bag_start(const pt_tensor *offsets, int32_t i, int32_t n) {
    return i < offsets->sizes[0] ? (int32_t)pt_load_int(offsets->data, i, offsets->dtype) : n;
}

static int check_bag_starts(pt_context *c, const pt_tensor *offsets, int32_t bags, int32_t n) {
    int32_t last = 0;
    for (int32_t i = 0; i <= bags; i++) {
        const int32_t start = bag_start(offsets, i, n);
        if (i == 0 ? start != 0 && bags > 0 : start < last) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "offsets do not rise from 0");
        }
        last = start;
    }
    return PT_ERROR_OK;
}

static int run_embedding_bag(pt_context *c, const pt_ref *args) {
    bag b = {.weight = pt_get_tensor(c, args[EMBEDDING_BAG_WEIGHT]),
             .indices = pt_get_tensor(c, args[EMBEDDING_BAG_INDICES]),
             .out = pt_get_tensor(c, args[EMBEDDING_BAG_OUT0]),
             .mode = pt_get_int(c, args[EMBEDDING_BAG_MODE]),
             .padding = pt_get_int(c, args[EMBEDDING_BAG_PADDING_IDX])};
    const pt_tensor offsets = pt_get_tensor(c, args[EMBEDDING_BAG_OFFSETS]);
    const pt_ref factors = args[EMBEDDING_BAG_PER_SAMPLE_WEIGHTS];
    const int32_t n = b.indices.sizes[0], bags = b.out.sizes[0], columns = b.out.sizes[1];
    if (!pt_is_none(factors)) {
        b.factors = pt_get_tensor(c, factors);
    }
    PT_TRY(pt_check_indices(c, &b.indices, b.weight.sizes[0], &b.out));
    PT_TRY(pt_check_indices(c, &offsets, n + 1, &b.out));
    PT_TRY(check_bag_starts(c, &offsets, bags, n));
    for (int32_t i = 0; i < bags; i++) {
        b.first = bag_start(&offsets, i, n);
        b.end = bag_start(&offsets, i + 1, n);
        for (int32_t k = 0; k < columns; k++) {
            PT_TRY(pt_count_product(c, b.end - b.first + 1, PT_ELEMENT_STEPS));
            if (b.out.dtype == PT_DTYPE_DOUBLE) {
                pt_store_double(b.out.data, i * columns + k, b.out.dtype, reduce_doubles(&b, k));
            } else {
                pt_store_float(b.out.data, i * columns + k, b.out.dtype, reduce_floats(&b, k));
            }
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten__embedding_bag_out = PT_KERNEL(check_embedding_bag, run_embedding_bag);
const pt_kernel pt_aten__embedding_bag_forward_only_out =
    PT_KERNEL(check_forward_only, run_embedding_bag);

// ---- index_select: (self, dim, index, out)

static int check_index_select(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[INDEX_SELECT_SELF]);
    pt_tensor index = pt_get_tensor(c, args[INDEX_SELECT_INDEX]);
    pt_tensor out = pt_get_tensor(c, args[INDEX_SELECT_OUT]);
    uint32_t dim;
    PT_TRY(pt_read_dim(c, pt_get_int(c, args[INDEX_SELECT_DIM]), self.rank, &dim));
    if (index.rank > 1) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "index must have 1 dim");
    }
    PT_TRY(check_index_dtype(c, &index));
    PT_TRY(pt_check_same_dtype(c, &out, &self));
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
    PT_TRY(pt_read_dim(c, pt_get_int(c, args[INDEX_SELECT_DIM]), self.rank, &dim));
    PT_TRY(pt_check_indices(c, &index, self.rank ? self.sizes[dim] : 1, &out));
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
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
    PT_TRY(pt_read_dim(c, pt_get_int(c, args[GATHER_DIM]), self.rank, &dim));
    PT_TRY(check_index_dtype(c, &index));
    bool fits = index.rank == self.rank || pt_numel(&index) == 0;
    for (uint32_t d = 0; fits && pt_numel(&index) != 0 && d < self.rank; d++) {
        fits = d == dim || index.sizes[d] <= self.sizes[d];
    }
    if (!fits) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "index is larger than self outside the dim");
    }
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    index = pt_get_tensor(c, args[GATHER_INDEX]);
    return pt_expect_sizes(c, args[GATHER_OUT], index.rank, index.sizes);
}

static int run_gather(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_lanes(c, args[GATHER_SELF]);
    pt_tensor index = pt_get_lanes(c, args[GATHER_INDEX]);
    pt_tensor out = pt_get_lanes(c, args[GATHER_OUT]);
    uint32_t dim;
    PT_TRY(pt_read_dim(c, pt_get_int(c, args[GATHER_DIM]), self.rank, &dim));
    if (pt_numel(&index) == 0) {
        return PT_ERROR_OK;
    }
    PT_TRY(pt_check_indices(c, &index, self.sizes[dim], &out));
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
