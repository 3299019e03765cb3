// Operators that repeat, pad, flip or crop.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/complex.h"
#include "portable/copy.h"

// ---- repeat: (self, repeats, out)

static int check_repeat(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[REPEAT_SELF]);
    pt_tensor out = pt_get_tensor(c, args[REPEAT_OUT]);
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank, moving = 0;
    PT_TRY(pt_read_sizes(c, args[REPEAT_REPEATS], 0, &rank, sizes));
    if (rank < self.rank) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "fewer repeats than dims");
    }
    for (uint32_t d = 0; d < rank; d++) {
        int32_t size = d < rank - self.rank ? 1 : self.sizes[d - (rank - self.rank)];
        int64_t product = (int64_t)sizes[d] * size;
        if (product > INT32_MAX) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a dim becomes too large");
        }
        moving += (sizes[d] > 1) + (size > 1);
        sizes[d] = (int32_t)product;
    }
    if (moving > PT_MAX_RANK) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "more than 16 sizes and repeats above 1");
    }
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    return pt_expect_sizes(c, args[REPEAT_OUT], rank, sizes);
}

static void repeat_add_dim(pt_walk *w, int32_t size, int32_t to_stride, int32_t from_stride) {
    if (size > 1) {
        w->sizes[w->rank] = size;
        w->strides[0][w->rank] = to_stride;
        w->strides[1][w->rank++] = from_stride;
    }
}

static int run_repeat(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[REPEAT_SELF]);
    pt_tensor out = pt_get_tensor(c, args[REPEAT_OUT]);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    pt_walk w;
    int32_t *to = w.strides[2], *from = w.strides[3]; // of operands that are not used
    pt_strides(&out, to);
    pt_strides(&self, from);
    w.rank = 0;
    w.operands = 2;
    w.offset[0] = w.offset[1] = 0;
    uint32_t added = (uint32_t)(out.rank - self.rank);
    for (uint32_t d = 0; d < out.rank; d++) {
        int32_t size = d < added ? 1 : self.sizes[d - added];
        repeat_add_dim(&w, out.sizes[d] / size, to[d] * size, 0);
        repeat_add_dim(&w, size, to[d], d < added ? 0 : from[d - added]);
    }
    return pt_copy_run(c, &w, &out, &self);
}

const pt_kernel pt_aten_repeat_out = PT_KERNEL(check_repeat, run_repeat);

// ---- constant_pad_nd: (self, pad, value, out); pad: before and after, from the last dim on

static int check_pad(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[CONSTANT_PAD_ND_SELF]);
    pt_tensor out = pt_get_tensor(c, args[CONSTANT_PAD_ND_OUT]);
    uint32_t n = pt_list_length(c, args[CONSTANT_PAD_ND_PAD]);
    if (n % 2 || n / 2 > self.rank) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "pad must have two items for each of its dims");
    }
    int32_t sizes[PT_MAX_RANK];
    for (uint32_t d = 0; d < self.rank; d++) {
        sizes[d] = self.sizes[d];
    }
    for (uint32_t i = 0; i < n / 2; i++) {
        int64_t before = pt_list_int(c, args[CONSTANT_PAD_ND_PAD], 2 * i);
        int64_t after = pt_list_int(c, args[CONSTANT_PAD_ND_PAD], 2 * i + 1);
        int32_t *size = &sizes[self.rank - 1 - i];
        if (before > INT32_MAX || after > INT32_MAX || before < -*size || after < -*size ||
            (before < 0 ? -before : 0) + (after < 0 ? -after : 0) > *size ||
            *size + before + after > INT32_MAX) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a pad is out of range");
        }
        *size += (int32_t)(before + after);
    }
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    const pt_scalar value = pt_get_scalar(c, args[CONSTANT_PAD_ND_VALUE]);
    if (!pt_dtype_in(out.dtype, PT_DTYPES_ALL) &&
        !(pt_is_complex(out.dtype) && pt_is_zero(value))) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                       "this dtype cannot be padded, complex ones only with 0");
    }
    return pt_expect_sizes(c, args[CONSTANT_PAD_ND_OUT], self.rank, sizes);
}

static int run_pad(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[CONSTANT_PAD_ND_SELF]);
    pt_tensor out = pt_get_tensor(c, args[CONSTANT_PAD_ND_OUT]);
    const bool pairs = pt_is_complex(out.dtype);
    pt_fill(out.data, pt_numel(&out) << pairs, pairs ? pt_part_dtype(out.dtype) : out.dtype,
            pt_get_scalar(c, args[CONSTANT_PAD_ND_VALUE]));
    if (pt_numel(&out) == 0 || pt_numel(&self) == 0) {
        return PT_ERROR_OK;
    }
    pt_walk w;
    pt_copy_start(&w, &out, &self);
    uint32_t n = pt_list_length(c, args[CONSTANT_PAD_ND_PAD]) / 2;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t d = self.rank - 1 - i;
        int32_t before = (int32_t)pt_list_int(c, args[CONSTANT_PAD_ND_PAD], 2 * i);
        int32_t after = (int32_t)pt_list_int(c, args[CONSTANT_PAD_ND_PAD], 2 * i + 1);
        int32_t first = before < 0 ? -before : 0;
        w.sizes[d] = self.sizes[d] - first + (after < 0 ? after : 0);
        w.offset[0] += (before > 0 ? before : 0) * w.strides[0][d];
        w.offset[1] += first * w.strides[1][d];
        if (w.sizes[d] == 0) {
            return PT_ERROR_OK;
        }
    }
    return pt_copy_run(c, &w, &out, &self);
}

const pt_kernel pt_aten_constant_pad_nd_out = PT_KERNEL(check_pad, run_pad);

// ---- flip: (self, dims, out)

static int check_flip(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[FLIP_SELF]);
    pt_tensor out = pt_get_tensor(c, args[FLIP_OUT]);
    uint32_t dims;
    PT_TRY(pt_read_dims(c, args[FLIP_DIMS], self.rank, &dims));
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    return pt_expect_sizes(c, args[FLIP_OUT], self.rank, self.sizes);
}

static int run_flip(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[FLIP_SELF]);
    pt_tensor out = pt_get_tensor(c, args[FLIP_OUT]);
    uint32_t dims;
    PT_TRY(pt_read_dims(c, args[FLIP_DIMS], self.rank, &dims));
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    pt_walk w;
    pt_copy_start(&w, &out, &self);
    for (uint32_t d = 0; d < self.rank; d++) {
        if (dims >> d & 1) {
            w.offset[1] += (self.sizes[d] - 1) * w.strides[1][d];
            w.strides[1][d] = -w.strides[1][d];
        }
    }
    return pt_copy_run(c, &w, &out, &self);
}

const pt_kernel pt_aten_flip_out = PT_KERNEL(check_flip, run_flip);

// ---- tril: (self, diagonal, out)

static int check_tril_copy(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[TRIL_SELF]);
    pt_tensor out = pt_get_tensor(c, args[TRIL_OUT]);
    if (self.rank < 2) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a matrix has at least 2 dims");
    }
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    if (!pt_dtype_in(out.dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "this dtype cannot be cut");
    }
    return pt_expect_sizes(c, args[TRIL_OUT], self.rank, self.sizes);
}

static int run_tril_copy(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[TRIL_SELF]);
    pt_tensor out = pt_get_tensor(c, args[TRIL_OUT]);
    int64_t diagonal = pt_get_int(c, args[TRIL_DIAGONAL]);
    int32_t numel = pt_numel(&out), rows = self.sizes[self.rank - 2],
            columns = self.sizes[self.rank - 1];
    diagonal = diagonal < -rows ? -rows : diagonal > columns ? columns : diagonal;
    pt_fill(out.data, numel, out.dtype, (pt_scalar){.type = PT_TYPE_INT});
    for (int32_t row = 0; numel != 0 && row < rows; row++) {
        int64_t n = row + diagonal + 1;
        if (n > 0) {
            pt_walk w;
            pt_copy_start(&w, &out, &self);
            w.offset[0] = row * w.strides[0][self.rank - 2];
            w.offset[1] = row * w.strides[1][self.rank - 2];
            w.sizes[self.rank - 2] = 1;
            w.sizes[self.rank - 1] = n < columns ? (int32_t)n : columns;
            PT_TRY(pt_copy_run(c, &w, &out, &self));
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_tril_out = PT_KERNEL(check_tril_copy, run_tril_copy);

// ---- as_strided_copy: (self, size, stride, storage_offset, out)

static int check_as_strided(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[AS_STRIDED_COPY_SELF]);
    pt_tensor out = pt_get_tensor(c, args[AS_STRIDED_COPY_OUT]);
    int32_t sizes[PT_MAX_RANK], strides[PT_MAX_RANK];
    uint32_t rank, n_strides;
    PT_TRY(pt_read_sizes(c, args[AS_STRIDED_COPY_SIZE], 0, &rank, sizes));
    PT_TRY(pt_read_sizes(c, args[AS_STRIDED_COPY_STRIDE], 0, &n_strides, strides));
    if (rank != n_strides) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "size and stride must have the same length");
    }
    int64_t last = pt_is_none(args[AS_STRIDED_COPY_STORAGE_OFFSET])
                       ? 0
                       : pt_get_int(c, args[AS_STRIDED_COPY_STORAGE_OFFSET]);
    int32_t numel = pt_numel(&self);
    bool inside = last >= 0 && last < numel;
    for (uint32_t d = 0; inside && d < rank; d++) {
        last += sizes[d] ? (int64_t)(sizes[d] - 1) * strides[d] : 0;
        inside = last < numel;
    }
    if (!inside && pt_product(sizes, rank) != 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "elements beyond the tensor's memory");
    }
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    return pt_expect_sizes(c, args[AS_STRIDED_COPY_OUT], rank, sizes);
}

static int run_as_strided(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[AS_STRIDED_COPY_SELF]);
    pt_tensor out = pt_get_tensor(c, args[AS_STRIDED_COPY_OUT]);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    pt_walk w;
    w.rank = out.rank;
    w.operands = 2;
    pt_strides(&out, w.strides[0]);
    w.offset[0] = 0;
    w.offset[1] = pt_is_none(args[AS_STRIDED_COPY_STORAGE_OFFSET])
                      ? 0
                      : (int32_t)pt_get_int(c, args[AS_STRIDED_COPY_STORAGE_OFFSET]);
    for (uint32_t d = 0; d < out.rank; d++) {
        w.sizes[d] = out.sizes[d];
        w.strides[1][d] = (int32_t)pt_list_int(c, args[AS_STRIDED_COPY_STRIDE], d);
    }
    return pt_copy_run(c, &w, &out, &self);
}

const pt_kernel pt_aten_as_strided_copy_out = PT_KERNEL(check_as_strided, run_as_strided);
