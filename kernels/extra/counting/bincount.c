// bincount: (self, weights, minlength, out): counts how often each number from 0 on occurs, or sums
// its weights in the order of the elements. The run sets the output's size.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/double_math.h"
#include "portable/dtype_access.h"

static int check_bincount(pt_context *c, const pt_ref *args) {
    const pt_tensor self = pt_get_tensor(c, args[BINCOUNT_SELF]);
    const int64_t min = pt_get_int(c, args[BINCOUNT_MINLENGTH]);
    const pt_tensor out = pt_get_tensor(c, args[BINCOUNT_OUT]);
    uint8_t dtype = PT_DTYPE_LONG;
    if (!pt_is_none(args[BINCOUNT_WEIGHTS])) {
        const pt_tensor weights = pt_get_tensor(c, args[BINCOUNT_WEIGHTS]);
        if (!pt_dtype_in(weights.dtype, PT_DTYPES_ALL)) {
            return pt_fail(c, PT_ERROR_NOT_SUPPORTED, PT_REASON_DTYPE);
        }
        if (!pt_same_sizes(&weights, &self)) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the sizes of weights are others");
        }
        dtype = weights.dtype == PT_DTYPE_FLOAT ? PT_DTYPE_FLOAT : PT_DTYPE_DOUBLE;
    }
    if (!pt_dtype_in(self.dtype, PT_DTYPES_INTEGER)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "bincount supports integers only");
    }
    if (self.rank != 1 || out.rank != 1) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the numbers and the output must have 1 dim");
    }
    if (out.dtype != dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "the output must be int64; of weights float32 as they are, else float64");
    }
    if (min < 0 || min > INT32_MAX) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "minlength is not in 0..2^31 - 1");
    }
    return PT_ERROR_OK;
}

static int run_bincount(pt_context *c, const pt_ref *args) {
    const pt_tensor self = pt_get_tensor(c, args[BINCOUNT_SELF]);
    const int32_t n = pt_numel(&self);
    int32_t size = (int32_t)pt_get_int(c, args[BINCOUNT_MINLENGTH]);
    for (int32_t i = 0; i < n; i++) {
        const int64_t at = pt_load_int(self.data, i, self.dtype);
        PT_TRY(pt_count_work(c, 1));
        if (at < 0 || at >= INT32_MAX) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a number is below 0 or too large");
        }
        size = at < size ? size : (int32_t)at + 1;
    }
    PT_TRY(pt_expect_sizes(c, args[BINCOUNT_OUT], 1, &size));
    const pt_tensor out = pt_get_tensor(c, args[BINCOUNT_OUT]);
    if (n > 0) {
        PT_TRY(pt_check_apart(c, &out, &self));
    }
    for (int32_t i = 0; i < size; i++) {
        PT_TRY(pt_count_work(c, 1));
        pt_store_int(out.data, i, out.dtype, 0);
    }
    for (int32_t i = 0; i < n; i++) {
        const int32_t at = (int32_t)pt_load_int(self.data, i, self.dtype);
        PT_TRY(pt_count_elements(c, 1));
        if (pt_is_none(args[BINCOUNT_WEIGHTS])) {
            ((int64_t *)out.data)[at]++;
        } else {
            const pt_tensor weights = pt_get_tensor(c, args[BINCOUNT_WEIGHTS]);
            pt_store_double(out.data, at, out.dtype,
                            pt_load_double(out.data, at, out.dtype) +
                                pt_load_double(weights.data, i, weights.dtype));
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_bincount_out = PT_KERNEL(check_bincount, run_bincount);
