// native_dropout: (input, p, train, out, mask). In inference it copies, and the mask is all true;
// in training it would need random numbers.
#include "arguments.h"
#include "copy.h"

static int check_dropout(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    pt_tensor out = pt_get_tensor(c, args[3]);
    double p = pt_get_double(c, args[1]);
    if (!(p >= 0 && p <= 1)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "p must be a probability");
    }
    if (p != 0 && !pt_is_none(args[2]) && pt_get_bool(c, args[2])) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "no random numbers for a dropout in training");
    }
    if (pt_get_tensor(c, args[4]).dtype != PT_DTYPE_BOOL) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the mask is not a bool tensor");
    }
    int error = pt_check_same_dtype(c, &out, &in);
    error = error ? error : pt_expect_sizes(c, args[3], in.rank, in.sizes);
    return error ? error : pt_expect_sizes(c, args[4], in.rank, in.sizes);
}

static int run_dropout(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    pt_tensor out = pt_get_tensor(c, args[3]);
    pt_tensor mask = pt_get_tensor(c, args[4]);
    pt_copy_broadcast(&out, &in);
    pt_fill(mask.data, pt_numel(&mask), mask.dtype, (pt_scalar){PT_TYPE_BOOL, {1}});
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_native_dropout_out = {check_dropout, run_dropout};
