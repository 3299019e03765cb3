// glu: (self, dim, out). Multiplies the first half of self along a dim by the sigmoid of the second
// half.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/double_math.h"
#include "portable/dtype_access.h"

static int check_glu(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[GLU_SELF]);
    pt_tensor out = pt_get_tensor(c, args[GLU_OUT]);
    uint32_t dim;
    PT_TRY(pt_read_dim(c, pt_get_int(c, args[GLU_DIM]), self.rank, &dim));
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    PT_TRY(pt_check_math(c, self.dtype, PT_REASON_DTYPE));
    if (self.rank == 0 || self.sizes[dim] % 2 != 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the size of the dim must be even");
    }
    int32_t sizes[PT_MAX_RANK];
    for (uint32_t d = 0; d < self.rank; d++) {
        sizes[d] = d == dim ? self.sizes[d] / 2 : self.sizes[d];
    }
    return pt_expect_sizes(c, args[GLU_OUT], self.rank, sizes);
}

static int store_glu(pt_context *c, const pt_tensor *out, int32_t to, const pt_tensor *self,
                     int32_t from, int32_t gate) {
    if (self->dtype == PT_DTYPE_DOUBLE) {
        const double *x = (const double *)self->data + from;
        ((double *)out->data)[to] = x[0] * pt_float64->sigmoid(x[gate]);
        return pt_count_work(c, PT_FLOAT64_STEPS);
    }
    float x = pt_load_float(self->data, from, self->dtype);
    float y = pt_sigmoidf(pt_load_float(self->data, from + gate, self->dtype));
    pt_store_float(out->data, to, out->dtype, x * y);
    return PT_ERROR_OK;
}

static int run_glu(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[GLU_SELF]);
    pt_tensor out = pt_get_tensor(c, args[GLU_OUT]);
    uint32_t dim;
    PT_TRY(pt_read_dim(c, pt_get_int(c, args[GLU_DIM]), self.rank, &dim));
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    pt_walk w = {.rank = out.rank, .operands = 2};
    pt_strides(&out, w.strides[0]);
    pt_strides(&self, w.strides[1]);
    for (uint32_t d = 0; d < out.rank; d++) {
        w.sizes[d] = out.sizes[d];
    }
    int32_t gate = w.strides[1][dim] * out.sizes[dim];
    pt_walk_start(&w);
    do {
        for (int32_t i = 0; i < w.n; i++) {
            PT_TRY(store_glu(c, &out, w.offset[0] + i * w.strides[0][0], &self,
                             w.offset[1] + i * w.strides[1][0], gate));
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

const pt_kernel pt_aten_glu_out = PT_KERNEL(check_glu, run_glu);
