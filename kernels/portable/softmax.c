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
    int64_t dim = pt_get_int(c, dim_arg);
    int64_t rank = in->rank > 0 ? in->rank : 1;
    if (dim < -rank || dim >= rank) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "dim is outside the tensor's dims");
    }
    return pt_expect_sizes(c, out_arg, in->rank, in->sizes);
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

// Of `size` elements of `in`, `in_step` apart, to `out`. A NaN among them makes all NaN through the
// sum.
static void softmax_lane(int32_t size, int32_t out_step, float *out, int32_t in_step,
                         const float *in) {
    float max = largest(size, in_step, in);
    float sum = 0;
    for (int32_t i = 0; i < size; i++) {
        float e = pt_expf(in[i * in_step] - max);
        out[i * out_step] = e;
        sum += e;
    }
    float factor = 1.0f / sum;
    for (int32_t i = 0; i < size; i++) {
        out[i * out_step] *= factor;
    }
}

static void log_softmax_lane(int32_t size, int32_t out_step, float *out, int32_t in_step,
                             const float *in) {
    float max = largest(size, in_step, in);
    float sum = 0;
    for (int32_t i = 0; i < size; i++) {
        sum += pt_expf(in[i * in_step] - max);
    }
    float log = pt_logf(sum);
    for (int32_t i = 0; i < size; i++) {
        out[i * out_step] = (in[i * in_step] - max) - log;
    }
}

typedef void (*lane_function)(int32_t size, int32_t out_step, float *out, int32_t in_step,
                              const float *in);

static void run_same_order(const pt_tensor *in, const pt_tensor *out, lanes l, lane_function lane) {
    const float *x = in->data;
    float *y = out->data;
    for (int32_t i = 0; i < l.outer; i++) {
        for (int32_t j = 0; j < l.inner; j++) {
            lane(l.size, l.inner, y + j, l.inner, x + j);
        }
        x += l.size * l.inner;
        y += l.size * l.inner;
    }
}

// Where the output has another dim order than the input: lane by lane, counting through the other
// dims.
static void run_across_orders(const pt_tensor *in, const pt_tensor *out, uint32_t dim,
                              lane_function lane) {
    int32_t in_steps[PT_MAX_RANK], out_steps[PT_MAX_RANK], at[PT_MAX_RANK] = {0};
    const float *x = in->data;
    float *y = out->data;
    uint32_t i;
    pt_strides(in, in_steps);
    pt_strides(out, out_steps);
    do {
        lane(in->sizes[dim], out_steps[dim], y, in_steps[dim], x);
        for (i = 0; i < in->rank; i++) {
            if (i == dim) {
                continue;
            }
            x += in_steps[i];
            y += out_steps[i];
            if (++at[i] < in->sizes[i]) {
                break;
            }
            x -= at[i] * in_steps[i];
            y -= at[i] * out_steps[i];
            at[i] = 0;
        }
    } while (i < in->rank);
}

static int run_softmax(pt_context *c, const pt_ref *args, lane_function lane) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    pt_tensor out = pt_get_tensor(c, args[3]);
    int64_t dim = pt_get_int(c, args[1]);
    if (pt_numel(&in) == 0) {
        return PT_ERROR_OK;
    }
    if (pt_same_dim_order(&in, &out)) {
        run_same_order(&in, &out, lanes_of(&in, dim), lane);
    } else {
        run_across_orders(&in, &out, (uint32_t)(dim < 0 ? dim + in.rank : dim), lane);
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
    if (!pt_same_dim_order(&in, &out)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the dim orders of input and output differ");
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
