// native_dropout: (input, p, train, out, mask). Inference copies the input, and the mask is all
// true. Training, also with train None, sets an element to 0 with probability p, and scales it by 1
// / (1 - p) otherwise. It draws one random number for each element, in memory order of the output.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/copy.h"

// True if elements are dropped.
static bool is_training(const pt_context *c, const pt_ref *args) {
    const pt_ref train = args[NATIVE_DROPOUT_TRAIN];
    return pt_get_double(c, args[NATIVE_DROPOUT_P]) != 0 &&
           (pt_is_none(train) || pt_get_bool(c, train));
}

static int check_dropout(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[NATIVE_DROPOUT_INPUT]);
    pt_tensor out = pt_get_tensor(c, args[NATIVE_DROPOUT_OUT0]);
    double p = pt_get_double(c, args[NATIVE_DROPOUT_P]);
    if (!(p >= 0 && p <= 1)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "p must be a probability");
    }
    if (is_training(c, args) && !pt_is_floating(in.dtype)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "a dropout in training takes floats only");
    }
    if (pt_get_tensor(c, args[NATIVE_DROPOUT_OUT1]).dtype != PT_DTYPE_BOOL) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the mask is not a bool tensor");
    }
    PT_TRY(pt_check_same_dtype(c, &out, &in));
    PT_TRY(pt_expect_sizes(c, args[NATIVE_DROPOUT_OUT0], in.rank, in.sizes));
    return pt_expect_sizes(c, args[NATIVE_DROPOUT_OUT1], in.rank, in.sizes);
}

static void drop_element(const pt_tensor *out, int32_t i, const pt_tensor *in, int32_t j,
                         double factor) {
    if (out->dtype == PT_DTYPE_DOUBLE) {
        ((double *)out->data)[i] = ((const double *)in->data)[j] * factor;
    } else {
        const float x = pt_load_float(in->data, j, in->dtype);
        pt_store_float(out->data, i, out->dtype, x * (float)factor);
    }
}

static int run_training(pt_context *c, const pt_ref *args, const pt_tensor *in,
                        const pt_tensor *out, const pt_tensor *mask) {
    const double p = pt_get_double(c, args[NATIVE_DROPOUT_P]);
    const double factor = p == 1 ? 0 : 1 / (1 - p);
    const pt_tensor *tensors[] = {out, in, mask};
    pt_walk w;
    if (pt_numel(out) == 0) {
        return PT_ERROR_OK;
    }
    pt_walk_tensors(&w, 3, tensors);
    do {
        for (int32_t i = 0; i < w.n; i++) {
            const bool is_kept = (pt_random(c) >> 8) >= p * (1 << 24);
            drop_element(out, w.offset[0] + i * w.strides[0][0], in,
                         w.offset[1] + i * w.strides[1][0], is_kept ? factor : 0);
            ((bool *)mask->data)[w.offset[2] + i * w.strides[2][0]] = is_kept;
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

static int run_dropout(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[NATIVE_DROPOUT_INPUT]);
    pt_tensor out = pt_get_tensor(c, args[NATIVE_DROPOUT_OUT0]);
    pt_tensor mask = pt_get_tensor(c, args[NATIVE_DROPOUT_OUT1]);
    if (is_training(c, args)) {
        return run_training(c, args, &in, &out, &mask);
    }
    PT_TRY(pt_copy_broadcast(c, &out, &in));
    pt_fill(mask.data, pt_numel(&mask), mask.dtype, (pt_scalar){PT_TYPE_BOOL, {1}});
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_native_dropout_out = PT_KERNEL(check_dropout, run_dropout);
