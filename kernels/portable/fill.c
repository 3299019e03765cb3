// Operators that fill a tensor with numbers.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/copy.h"
#include <string.h>

static const pt_scalar ZERO = {.type = PT_TYPE_INT}, ONE = {.type = PT_TYPE_INT, .as.i = 1};

static int check_fill(pt_context *c, pt_ref out_arg, uint32_t rank, const int32_t *sizes) {
    if (!pt_dtype_in(pt_get_tensor(c, out_arg).dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "this dtype cannot be filled");
    }
    return pt_expect_sizes(c, out_arg, rank, sizes);
}

static int check_size_list(pt_context *c, pt_ref list, pt_ref out_arg) {
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank;
    PT_TRY(pt_read_sizes(c, list, 0, &rank, sizes));
    return check_fill(c, out_arg, rank, sizes);
}

static int check_sizes_of(pt_context *c, pt_ref self_arg, pt_ref out_arg) {
    pt_tensor self = pt_get_tensor(c, self_arg);
    return check_fill(c, out_arg, self.rank, self.sizes);
}

static int run_fill(pt_context *c, pt_ref out_arg, pt_scalar value) {
    pt_tensor out = pt_get_tensor(c, out_arg);
    pt_fill(out.data, pt_numel(&out), out.dtype, value);
    return PT_ERROR_OK;
}

// full: (size, fill_value, out)
static int full_check(pt_context *c, const pt_ref *args) {
    return check_size_list(c, args[FULL_SIZE], args[FULL_OUT]);
}

static int full_run(pt_context *c, const pt_ref *args) {
    return run_fill(c, args[FULL_OUT], pt_get_scalar(c, args[FULL_FILL_VALUE]));
}

const pt_kernel pt_aten_full_out = PT_KERNEL(full_check, full_run);

// full_like: (self, fill_value, memory_format, out)
static int full_like_check(pt_context *c, const pt_ref *args) {
    return check_sizes_of(c, args[FULL_LIKE_SELF], args[FULL_LIKE_OUT]);
}

static int full_like_run(pt_context *c, const pt_ref *args) {
    return run_fill(c, args[FULL_LIKE_OUT], pt_get_scalar(c, args[FULL_LIKE_FILL_VALUE]));
}

const pt_kernel pt_aten_full_like_out = PT_KERNEL(full_like_check, full_like_run);

// zeros: (size, out), of any dtype; ones: (size, out)
static int check_zeros(pt_context *c, pt_ref list, pt_ref out_arg) {
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank;
    PT_TRY(pt_read_sizes(c, list, 0, &rank, sizes));
    return pt_expect_sizes(c, out_arg, rank, sizes);
}

static int run_zeros(pt_context *c, pt_ref out_arg) {
    pt_tensor out = pt_get_tensor(c, out_arg);
    uint32_t nbytes = pt_nbytes(&out);
    if (nbytes > 0) {
        memset(out.data, 0, nbytes);
    }
    return PT_ERROR_OK;
}

static int zeros_check(pt_context *c, const pt_ref *args) {
    return check_zeros(c, args[ZEROS_SIZE], args[ZEROS_OUT]);
}

static int size_check(pt_context *c, const pt_ref *args) {
    return check_size_list(c, args[ONES_SIZE], args[ONES_OUT]);
}

static int zeros_run(pt_context *c, const pt_ref *args) {
    return run_zeros(c, args[ZEROS_OUT]);
}

static int ones_run(pt_context *c, const pt_ref *args) {
    return run_fill(c, args[ONES_OUT], ONE);
}

const pt_kernel pt_aten_zeros_out = PT_KERNEL(zeros_check, zeros_run);
const pt_kernel pt_aten_ones_out = PT_KERNEL(size_check, ones_run);

// empty: (size, memory_format, out); _empty_dim_order: (size, dim_order, out). Writes zeros, so
// that results are the same on every machine.
static int empty_check(pt_context *c, const pt_ref *args) {
    return check_zeros(c, args[EMPTY_SIZE], args[EMPTY_OUT]);
}

static int empty_run(pt_context *c, const pt_ref *args) {
    return run_zeros(c, args[EMPTY_OUT]);
}

const pt_kernel pt_aten_empty_out = PT_KERNEL(empty_check, empty_run);

// scalar_tensor: (s, out)
static int scalar_tensor_check(pt_context *c, const pt_ref *args) {
    return check_fill(c, args[SCALAR_TENSOR_OUT], 0, NULL);
}

static int scalar_tensor_run(pt_context *c, const pt_ref *args) {
    return run_fill(c, args[SCALAR_TENSOR_OUT], pt_get_scalar(c, args[SCALAR_TENSOR_S]));
}

const pt_kernel pt_aten_scalar_tensor_out = PT_KERNEL(scalar_tensor_check, scalar_tensor_run);

// fill: (self, value, out)
static int fill_scalar_check(pt_context *c, const pt_ref *args) {
    return check_sizes_of(c, args[FILL_SCALAR_SELF], args[FILL_SCALAR_OUT]);
}

static int fill_scalar_run(pt_context *c, const pt_ref *args) {
    return run_fill(c, args[FILL_SCALAR_OUT], pt_get_scalar(c, args[FILL_SCALAR_VALUE]));
}

const pt_kernel pt_aten_fill_Scalar_out = PT_KERNEL(fill_scalar_check, fill_scalar_run);

static int fill_tensor_check(pt_context *c, const pt_ref *args) {
    pt_tensor value = pt_get_tensor(c, args[FILL_TENSOR_VALUE]);
    if (value.rank != 0 || !pt_dtype_in(value.dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "value must be a 0-d tensor");
    }
    return check_sizes_of(c, args[FILL_TENSOR_SELF], args[FILL_TENSOR_OUT]);
}

static int fill_tensor_run(pt_context *c, const pt_ref *args) {
    pt_tensor value = pt_get_tensor(c, args[FILL_TENSOR_VALUE]);
    pt_tensor out = pt_get_tensor(c, args[FILL_TENSOR_OUT]);
    return pt_convert_broadcast(c, &out, &value);
}

const pt_kernel pt_aten_fill_Tensor_out = PT_KERNEL(fill_tensor_check, fill_tensor_run);

// ---- arange

// Returns the number of elements from start to before end; -1 for a step of 0, a wrong direction or
// too many elements.
static int64_t int_range_length(int64_t start, int64_t end, int64_t step) {
    if (step == 0 || (step > 0 ? end < start : end > start)) {
        return -1;
    }
    if (start == end) {
        return 0;
    }
    uint64_t distance =
        step > 0 ? (uint64_t)end - (uint64_t)start : (uint64_t)start - (uint64_t)end;
    uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    uint64_t n = (distance - 1) / stride + 1;
    return n <= INT32_MAX ? (int64_t)n : -1;
}

static int64_t double_range_length(double start, double end, double step) {
    double n = (end - start) / step;
    if (!(n >= 0 && n <= INT32_MAX)) {
        return -1;
    }
    int64_t whole = (int64_t)n;
    return whole < n ? whole + 1 : whole;
}

static int check_arange(pt_context *c, pt_scalar start, pt_scalar end, pt_scalar step,
                        pt_ref out_arg) {
    bool floating =
        start.type == PT_TYPE_DOUBLE || end.type == PT_TYPE_DOUBLE || step.type == PT_TYPE_DOUBLE;
    int64_t n = floating ? double_range_length(pt_scalar_as_double(start), pt_scalar_as_double(end),
                                               pt_scalar_as_double(step))
                         : int_range_length(start.as.i, end.as.i, step.as.i);
    if (n < 0 || n > INT32_MAX) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "step does not lead from start to end");
    }
    int32_t size = (int32_t)n;
    return check_fill(c, out_arg, 1, &size);
}

static int run_arange(pt_context *c, pt_scalar start, pt_scalar step, pt_ref out_arg) {
    pt_tensor out = pt_get_tensor(c, out_arg);
    bool floating = start.type == PT_TYPE_DOUBLE || step.type == PT_TYPE_DOUBLE;
    for (int32_t i = 0; i < out.sizes[0]; i++) {
        PT_TRY(pt_count_elements(c, 1));
        if (floating || pt_is_floating(out.dtype)) {
            double v = pt_scalar_as_double(start) + i * pt_scalar_as_double(step);
            pt_store_double(out.data, i, out.dtype, v);
        } else {
            uint64_t v = (uint64_t)start.as.i + (uint64_t)i * (uint64_t)step.as.i;
            pt_store_int(out.data, i, out.dtype, (int64_t)v);
        }
    }
    return PT_ERROR_OK;
}

// arange: (end, out)
static int arange_check(pt_context *c, const pt_ref *args) {
    return check_arange(c, ZERO, pt_get_scalar(c, args[ARANGE_END]), ONE, args[ARANGE_OUT]);
}

static int arange_run(pt_context *c, const pt_ref *args) {
    return run_arange(c, ZERO, ONE, args[ARANGE_OUT]);
}

const pt_kernel pt_aten_arange_out = PT_KERNEL(arange_check, arange_run);

// arange.start: (start, end, step, out)
static int arange_start_check(pt_context *c, const pt_ref *args) {
    return check_arange(c, pt_get_scalar(c, args[ARANGE_START_START]),
                        pt_get_scalar(c, args[ARANGE_START_END]),
                        pt_get_scalar(c, args[ARANGE_START_STEP]), args[ARANGE_START_OUT]);
}

static int arange_start_run(pt_context *c, const pt_ref *args) {
    return run_arange(c, pt_get_scalar(c, args[ARANGE_START_START]),
                      pt_get_scalar(c, args[ARANGE_START_STEP]), args[ARANGE_START_OUT]);
}

const pt_kernel pt_aten_arange_start_out = PT_KERNEL(arange_start_check, arange_start_run);
