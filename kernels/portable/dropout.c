// native_dropout: (input, p, train, out, mask). In inference it copies, and the mask is all true;
// in training it would need random numbers.
#include "../core/operator_arguments.h"
#include "arguments.h"
#include "copy.h"

static int check_dropout(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[NATIVE_DROPOUT_INPUT]);
    pt_tensor out = pt_get_tensor(c, args[NATIVE_DROPOUT_OUT0]);
    double p = pt_get_double(c, args[NATIVE_DROPOUT_P]);
    if (!(p >= 0 && p <= 1)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "p must be a probability");
    }
    if (p != 0 && !pt_is_none(args[NATIVE_DROPOUT_TRAIN]) &&
        pt_get_bool(c, args[NATIVE_DROPOUT_TRAIN])) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "no random numbers for a dropout in training");
    }
    if (pt_get_tensor(c, args[NATIVE_DROPOUT_OUT1]).dtype != PT_DTYPE_BOOL) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the mask is not a bool tensor");
    }
    int error = pt_check_same_dtype(c, &out, &in);
    error = error ? error : pt_expect_sizes(c, args[NATIVE_DROPOUT_OUT0], in.rank, in.sizes);
    return error ? error : pt_expect_sizes(c, args[NATIVE_DROPOUT_OUT1], in.rank, in.sizes);
}

static int run_dropout(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[NATIVE_DROPOUT_INPUT]);
    pt_tensor out = pt_get_tensor(c, args[NATIVE_DROPOUT_OUT0]);
    pt_tensor mask = pt_get_tensor(c, args[NATIVE_DROPOUT_OUT1]);
    PT_TRY(pt_copy_broadcast(c, &out, &in));
    pt_fill(mask.data, pt_numel(&mask), mask.dtype, (pt_scalar){PT_TYPE_BOOL, {1}});
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_native_dropout_out = PT_KERNEL(check_dropout, run_dropout);
