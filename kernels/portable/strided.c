// Copies of views with other sizes and strides: unfold_copy, diagonal_copy.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/copy.h"

// Starts a walk over the view's elements in self. Sets operand 1 of the walk, and its sizes.
static void start_view(pt_walk *w, const pt_tensor *self) {
    w->rank = self->rank;
    w->operands = 2;
    w->offset[0] = w->offset[1] = 0;
    pt_strides(self, w->strides[1]);
    for (uint32_t d = 0; d < self->rank; d++) {
        w->sizes[d] = self->sizes[d];
    }
}

static int strided_check_view(pt_context *c, const pt_walk *w, const pt_tensor *self,
                              pt_ref out_arg) {
    pt_tensor out = pt_get_tensor(c, out_arg);
    PT_TRY(pt_check_same_dtype(c, &out, self));
    return pt_expect_sizes(c, out_arg, w->rank, w->sizes);
}

static int strided_run_view(pt_context *c, pt_walk *w, const pt_tensor *self, pt_ref out_arg) {
    pt_tensor out = pt_get_tensor(c, out_arg);
    if (pt_numel(&out) != 0) {
        pt_strides(&out, w->strides[0]);
        return pt_copy_run(c, w, &out, self);
    }
    return PT_ERROR_OK;
}

// ---- unfold_copy: (self, dimension, size, step, out): windows along a dim, whose elements are a
// new last dim

static int read_unfold(pt_context *c, const pt_ref *args, const pt_tensor *self, pt_walk *w) {
    int64_t size = pt_get_int(c, args[UNFOLD_COPY_SIZE]);
    int64_t step = pt_get_int(c, args[UNFOLD_COPY_STEP]);
    uint32_t dim;
    PT_TRY(pt_read_dim(c, pt_get_int(c, args[UNFOLD_COPY_DIMENSION]), self->rank, &dim));
    if (self->rank == PT_MAX_RANK) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "more than 16 dims");
    }
    int32_t length = self->rank ? self->sizes[dim] : 1;
    if (size < 0 || size > length || step < 1) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "size or step of the windows is out of range");
    }
    start_view(w, self);
    int32_t stride = self->rank ? w->strides[1][dim] : 0;
    w->sizes[self->rank] = (int32_t)size;
    w->strides[1][self->rank] = stride;
    w->rank++;
    if (self->rank) {
        int64_t n = (length - size) / step + 1;
        w->sizes[dim] = (int32_t)n;
        w->strides[1][dim] = n > 1 ? (int32_t)((uint32_t)stride * (uint32_t)step) : 0;
    }
    return PT_ERROR_OK;
}

static int check_unfold(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[UNFOLD_COPY_SELF]);
    pt_walk w;
    PT_TRY(read_unfold(c, args, &self, &w));
    return strided_check_view(c, &w, &self, args[UNFOLD_COPY_OUT]);
}

static int run_unfold(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[UNFOLD_COPY_SELF]);
    pt_walk w;
    PT_TRY(read_unfold(c, args, &self, &w));
    return strided_run_view(c, &w, &self, args[UNFOLD_COPY_OUT]);
}

const pt_kernel pt_aten_unfold_copy_out = PT_KERNEL(check_unfold, run_unfold);

// ---- diagonal_copy: (self, offset, dim1, dim2, out): the diagonal of two dims as a new last dim

static int read_diagonal(pt_context *c, const pt_ref *args, const pt_tensor *self, pt_walk *w) {
    uint32_t row, column;
    PT_TRY(pt_read_dim(c, pt_get_int(c, args[DIAGONAL_COPY_DIM1]), self->rank, &row));
    PT_TRY(pt_read_dim(c, pt_get_int(c, args[DIAGONAL_COPY_DIM2]), self->rank, &column));
    if (self->rank < 2 || row == column) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a diagonal is one of two dims");
    }
    start_view(w, self);
    int32_t rows = self->sizes[row], columns = self->sizes[column];
    int64_t offset = pt_get_int(c, args[DIAGONAL_COPY_OFFSET]);
    offset = offset < -rows ? -rows : offset > columns ? columns : offset;
    int32_t below = offset < 0 ? (int32_t)-offset : 0, right = offset > 0 ? (int32_t)offset : 0;
    int32_t n = rows - below < columns - right ? rows - below : columns - right;
    uint32_t stride = (uint32_t)w->strides[1][row] + (uint32_t)w->strides[1][column];
    if (n > 0 && pt_numel(self) != 0) {
        w->offset[1] = below * w->strides[1][row] + right * w->strides[1][column];
    }
    uint32_t kept = 0;
    for (uint32_t d = 0; d < self->rank; d++) {
        if (d != row && d != column) {
            w->sizes[kept] = w->sizes[d];
            w->strides[1][kept++] = w->strides[1][d];
        }
    }
    w->sizes[kept] = n;
    w->strides[1][kept] = n > 1 ? (int32_t)stride : 0;
    w->rank--;
    return PT_ERROR_OK;
}

static int check_diagonal(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[DIAGONAL_COPY_SELF]);
    pt_walk w;
    PT_TRY(read_diagonal(c, args, &self, &w));
    return strided_check_view(c, &w, &self, args[DIAGONAL_COPY_OUT]);
}

static int run_diagonal(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[DIAGONAL_COPY_SELF]);
    pt_walk w;
    PT_TRY(read_diagonal(c, args, &self, &w));
    return strided_run_view(c, &w, &self, args[DIAGONAL_COPY_OUT]);
}

const pt_kernel pt_aten_diagonal_copy_out = PT_KERNEL(check_diagonal, run_diagonal);
