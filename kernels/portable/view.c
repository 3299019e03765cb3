// Copies to an output with other sizes, whose elements have the same (logical) order.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/copy.h"

// Writes the sizes of t that are not 1, and their strides; returns their number.
static uint32_t without_ones(const pt_tensor *t, int32_t *sizes, int32_t *strides) {
    uint32_t rank = 0;
    pt_strides(t, strides);
    for (uint32_t d = 0; d < t->rank; d++) {
        if (t->sizes[d] != 1) {
            sizes[rank] = t->sizes[d];
            strides[rank++] = strides[d];
        }
    }
    return rank;
}

static bool both_contiguous(const pt_tensor *a, const pt_tensor *b) {
    return (a->flags & b->flags & PT_VALUE_CONTIGUOUS) != 0;
}

// True if a and b have the same sizes, ignoring dims of size 1.
static bool same_except_ones(const pt_tensor *a, const pt_tensor *b) {
    uint32_t i = 0, j = 0;
    for (;;) {
        while (i < a->rank && a->sizes[i] == 1) {
            i++;
        }
        while (j < b->rank && b->sizes[j] == 1) {
            j++;
        }
        if (i == a->rank || j == b->rank) {
            return i == a->rank && j == b->rank;
        }
        if (a->sizes[i++] != b->sizes[j++]) {
            return false;
        }
    }
}

static int view_check(pt_context *c, pt_ref in_arg, pt_ref out_arg, uint32_t rank,
                      const int32_t *sizes) {
    pt_tensor in = pt_get_tensor(c, in_arg);
    pt_tensor out = pt_get_tensor(c, out_arg);
    PT_TRY(pt_check_same_dtype(c, &out, &in));
    PT_TRY(pt_expect_sizes(c, out_arg, rank, sizes));
    if (!both_contiguous(&in, &out) && !same_except_ones(&in, &out)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "a view of other sizes must be contiguous");
    }
    return PT_ERROR_OK;
}

static int view_run_view(pt_context *c, pt_ref in_arg, pt_ref out_arg) {
    pt_tensor in = pt_get_tensor(c, in_arg);
    pt_tensor out = pt_get_tensor(c, out_arg);
    if (both_contiguous(&in, &out)) {
        pt_copy_flat(&out, &in);
    } else if (pt_numel(&out) != 0) {
        pt_walk w;
        w.operands = 2;
        w.offset[0] = w.offset[1] = 0;
        without_ones(&in, w.sizes, w.strides[1]);
        w.rank = (uint8_t)without_ones(&out, w.sizes, w.strides[0]);
        return pt_copy_run(c, &w, &out, &in);
    }
    return PT_ERROR_OK;
}

// (self, list or int, out)
static int view_run(pt_context *c, const pt_ref *args) {
    return view_run_view(c, args[VIEW_COPY_SELF], args[VIEW_COPY_OUT]);
}

static int view_copy_check(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[VIEW_COPY_SELF]);
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank;
    PT_TRY(pt_read_view_sizes(c, args[VIEW_COPY_SIZE], &self, &rank, sizes));
    return view_check(c, args[VIEW_COPY_SELF], args[VIEW_COPY_OUT], rank, sizes);
}

const pt_kernel pt_aten_view_copy_out = PT_KERNEL(view_copy_check, view_run);

static int unsqueeze_copy_check(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[UNSQUEEZE_COPY_SELF]);
    int32_t sizes[PT_MAX_RANK];
    uint32_t dim;
    if (self.rank == PT_MAX_RANK) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "more than 16 dims");
    }
    PT_TRY(pt_read_dim(c, pt_get_int(c, args[UNSQUEEZE_COPY_DIM]), self.rank + 1u, &dim));
    for (uint32_t d = 0; d <= self.rank; d++) {
        sizes[d] = d == dim ? 1 : self.sizes[d < dim ? d : d - 1];
    }
    return view_check(c, args[UNSQUEEZE_COPY_SELF], args[UNSQUEEZE_COPY_OUT], self.rank + 1u,
                      sizes);
}

const pt_kernel pt_aten_unsqueeze_copy_out = PT_KERNEL(unsqueeze_copy_check, view_run);

// Removes the dims of size 1 whose bit is set in `dims`.
static int check_squeeze(pt_context *c, const pt_ref *args, uint32_t dims) {
    pt_tensor self = pt_get_tensor(c, args[SQUEEZE_COPY_DIM_SELF]);
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < self.rank; d++) {
        if (self.sizes[d] != 1 || (dims >> d & 1) == 0) {
            sizes[rank++] = self.sizes[d];
        }
    }
    return view_check(c, args[SQUEEZE_COPY_DIM_SELF], args[SQUEEZE_COPY_DIM_OUT], rank, sizes);
}

static int squeeze_copy_dim_check(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[SQUEEZE_COPY_DIM_SELF]);
    uint32_t dim;
    PT_TRY(pt_read_dim(c, pt_get_int(c, args[SQUEEZE_COPY_DIM_DIM]), self.rank, &dim));
    return check_squeeze(c, args, 1u << dim);
}

static int squeeze_copy_dims_check(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[SQUEEZE_COPY_DIMS_SELF]);
    uint32_t dims;
    PT_TRY(pt_read_dims(c, args[SQUEEZE_COPY_DIMS_DIM], self.rank, &dims));
    return check_squeeze(c, args, dims);
}

const pt_kernel pt_aten_squeeze_copy_dim_out = PT_KERNEL(squeeze_copy_dim_check, view_run);
const pt_kernel pt_aten_squeeze_copy_dims_out = PT_KERNEL(squeeze_copy_dims_check, view_run);
