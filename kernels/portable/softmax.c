// Softmax and its logarithm, cumulated sums: operators along one dim.
#include "element.h"
#include "float_math.h"

// A dim of a tensor as it lies in memory: `outer` times `size` times `inner` elements.
typedef struct lanes {
    int32_t outer, size, inner;
} lanes;

// The lanes along `dim`, which counts from the end if it is negative. A 0-d tensor has one of
// size 1.
static lanes lanes_of(const pt_tensor *t, int64_t dim) {
    lanes l = {1, 1, 1};
    uint8_t wanted = (uint8_t)(dim < 0 ? dim + t->rank : dim);
    bool before = true;
    for (uint32_t i = 0; i < t->rank; i++) {
        int32_t size = t->sizes[t->dim_order[i]];
        if (t->dim_order[i] == wanted) {
            l.size = size;
            before = false;
        } else if (before) {
            l.outer *= size;
        } else {
            l.inner *= size;
        }
    }
    return l;
}

static int check_lanes(pt_context *c, const pt_tensor *in, pt_ref dim_arg, pt_ref out_arg) {
    pt_tensor out = pt_get_tensor(c, out_arg);
    int64_t dim = pt_get_int(c, dim_arg);
    int64_t rank = in->rank > 0 ? in->rank : 1;
    if (dim < -rank || dim >= rank) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "dim is outside the tensor's dims");
    }
    int error = pt_expect_sizes(c, out_arg, in->rank, in->sizes);
    if (error) {
        return error;
    }
    return pt_same_dim_order(in, &out)
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the dim orders of input and output differ");
}

// ---- softmax

static int softmax_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    pt_tensor out = pt_get_tensor(c, args[3]);
    if (in.dtype != PT_DTYPE_FLOAT || out.dtype != PT_DTYPE_FLOAT) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "softmax supports float32 only");
    }
    if (pt_get_bool(c, args[2])) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "half_to_float is not False");
    }
    return check_lanes(c, &in, args[1], args[3]);
}

static float largest(int32_t n, int32_t step, const float *x) {
    float max = *x;
    for (n--, x += step; n > 0; n--, x += step) {
        max = *x > max ? *x : max;
    }
    return max;
}

// Of `size` elements `step` apart. A NaN among them makes all NaN through the sum.
static void softmax_lane(int32_t size, int32_t step, float *out, const float *in) {
    float max = largest(size, step, in);
    float sum = 0;
    for (int32_t i = 0; i < size; i++) {
        float e = pt_expf(in[i * step] - max);
        out[i * step] = e;
        sum += e;
    }
    float factor = 1.0f / sum;
    for (int32_t i = 0; i < size; i++) {
        out[i * step] *= factor;
    }
}

static void log_softmax_lane(int32_t size, int32_t step, float *out, const float *in) {
    float max = largest(size, step, in);
    float sum = 0;
    for (int32_t i = 0; i < size; i++) {
        sum += pt_expf(in[i * step] - max);
    }
    float log = pt_logf(sum);
    for (int32_t i = 0; i < size; i++) {
        out[i * step] = (in[i * step] - max) - log;
    }
}

static int run_softmax(pt_context *c, const pt_ref *args,
                       void (*lane)(int32_t, int32_t, float *, const float *)) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    float *out = pt_get_tensor(c, args[3]).data;
    lanes l = lanes_of(&in, pt_get_int(c, args[1]));
    const float *x = in.data;
    if (l.size == 0) {
        return PT_ERROR_OK;
    }
    for (int32_t i = 0; i < l.outer; i++) {
        for (int32_t j = 0; j < l.inner; j++) {
            lane(l.size, l.inner, out + j, x + j);
        }
        x += l.size * l.inner;
        out += l.size * l.inner;
    }
    return PT_ERROR_OK;
}

static int softmax_run(pt_context *c, const pt_ref *args) {
    return run_softmax(c, args, softmax_lane);
}

static int log_softmax_run(pt_context *c, const pt_ref *args) {
    return run_softmax(c, args, log_softmax_lane);
}

const pt_kernel pt_aten__softmax_out = {softmax_check, softmax_run};
const pt_kernel pt_aten__log_softmax_out = {softmax_check, log_softmax_run};

// ---- cumsum

// Integers sum as int64, bool too, unless dtype says otherwise; the sum of floats is a float's.
static int cumsum_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    pt_tensor out = pt_get_tensor(c, args[3]);
    if (!pt_dtype_in(in.dtype, PT_DTYPES_ALL) || !pt_dtype_in(out.dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the operator does not support this dtype");
    }
    uint8_t result = pt_is_floating(in.dtype) ? in.dtype : PT_DTYPE_LONG;
    int64_t dtype = pt_is_none(args[2]) ? result : pt_get_int(c, args[2]);
    if (dtype != out.dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output's dtype is not that of the sum");
    }
    return check_lanes(c, &in, args[1], args[3]);
}

static void cumsum_lane(int32_t size, int32_t step, int32_t first, const pt_tensor *out,
                        const pt_tensor *in) {
    uint64_t integers = 0;
    double floats = 0;
    for (int32_t i = first; size > 0; size--, i += step) {
        if (pt_is_floating(out->dtype)) {
            floats += pt_load_double(in->data, i, in->dtype);
            pt_store_double(out->data, i, out->dtype, floats);
        } else {
            integers += (uint64_t)pt_load_int(in->data, i, in->dtype);
            pt_store_int(out->data, i, out->dtype, (int64_t)integers);
        }
    }
}

static int cumsum_run(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    pt_tensor out = pt_get_tensor(c, args[3]);
    lanes l = lanes_of(&in, pt_get_int(c, args[1]));
    for (int32_t i = 0; i < l.outer; i++) {
        for (int32_t j = 0; j < l.inner; j++) {
            cumsum_lane(l.size, l.inner, i * l.size * l.inner + j, &out, &in);
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_cumsum_out = {cumsum_check, cumsum_run};
