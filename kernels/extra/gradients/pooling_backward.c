// The gradient of aten::max_pool2d_with_indices, in any dim order: adds the gradient of each output
// to the maximum of its window.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/dtype_access.h"
#include <string.h>

extern const pt_kernel pt_aten_max_pool2d_with_indices_out;

static int pooling_backward_check(pt_context *c, const pt_ref *args) {
    const pt_ref self = args[MAX_POOL2D_WITH_INDICES_BACKWARD_SELF];
    const pt_ref out = args[MAX_POOL2D_WITH_INDICES_BACKWARD_GRAD_INPUT];
    const pt_tensor in = pt_get_tensor(c, self), to = pt_get_tensor(c, out);
    if (!pt_is_floating(in.dtype)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "no gradients of this dtype");
    }
    // Arguments of the pooling that has computed the output and the indices.
    pt_ref pooling[MAX_POOL2D_WITH_INDICES_INDICES + 1];
    for (uint32_t i = 0; i < MAX_POOL2D_WITH_INDICES_OUT; i++) {
        pooling[i] = args[MAX_POOL2D_WITH_INDICES_BACKWARD_SELF + i];
    }
    pooling[MAX_POOL2D_WITH_INDICES_OUT] = args[MAX_POOL2D_WITH_INDICES_BACKWARD_GRAD_OUTPUT];
    pooling[MAX_POOL2D_WITH_INDICES_INDICES] = args[MAX_POOL2D_WITH_INDICES_BACKWARD_INDICES];
    PT_TRY(pt_aten_max_pool2d_with_indices_out.check(c, pooling));
    PT_TRY(pt_check_same_dtype(c, &to, &in));
    return pt_expect_sizes(c, out, in.rank, in.sizes);
}

// Sets the strides of (N, C, H, W), 0 for a missing batch.
static void pooling_backward_image_strides(const pt_tensor *t, int32_t *strides) {
    strides[0] = 0;
    pt_strides(t, strides + 4 - t->rank);
}

static void pooling_backward_add(const pt_tensor *out, int32_t i, const pt_tensor *grad,
                                 int32_t j) {
    if (out->dtype == PT_DTYPE_DOUBLE) {
        ((double *)out->data)[i] += ((const double *)grad->data)[j];
    } else {
        const float sum = pt_load_float(out->data, i, out->dtype);
        pt_store_float(out->data, i, out->dtype, sum + pt_load_float(grad->data, j, out->dtype));
    }
}

static int pooling_backward_run(pt_context *c, const pt_ref *args) {
    const pt_tensor grad = pt_get_tensor(c, args[MAX_POOL2D_WITH_INDICES_BACKWARD_GRAD_OUTPUT]);
    const pt_tensor indices = pt_get_tensor(c, args[MAX_POOL2D_WITH_INDICES_BACKWARD_INDICES]);
    const pt_tensor out = pt_get_tensor(c, args[MAX_POOL2D_WITH_INDICES_BACKWARD_GRAD_INPUT]);
    const int32_t *last = grad.sizes + grad.rank, width = out.sizes[out.rank - 1];
    int32_t from[4], index[4], to[4];
    pooling_backward_image_strides(&grad, from);
    pooling_backward_image_strides(&indices, index);
    pooling_backward_image_strides(&out, to);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    PT_TRY(pt_check_indices(c, &indices, width * out.sizes[out.rank - 2], &out));
    memset(out.data, 0, pt_nbytes(&out));
    const int32_t batch = grad.rank == 4 ? grad.sizes[0] : 1;
    for (int32_t n = 0; n < batch; n++) {
        for (int32_t k = 0; k < last[-3]; k++) {
            for (int32_t y = 0; y < last[-2]; y++) {
                PT_TRY(pt_count_product(c, last[-1], 2));
                for (int32_t x = 0; x < last[-1]; x++) {
                    const int32_t position =
                        (int32_t)((const int64_t *)indices.data)[n * index[0] + k * index[1] +
                                                                 y * index[2] + x * index[3]];
                    pooling_backward_add(
                        &out,
                        n * to[0] + k * to[1] + position / width * to[2] + position % width * to[3],
                        &grad, n * from[0] + k * from[1] + y * from[2] + x * from[3]);
                }
            }
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_max_pool2d_with_indices_backward_grad_input =
    PT_KERNEL(pooling_backward_check, pooling_backward_run);
