// Normalizations of float32, float16 and bfloat16: batch norm
// (aten::_native_batch_norm_legit_no_training and, for instance norm,
// _native_batch_norm_legit.no_stats), native_layer_norm and native_group_norm.
#include "../arch/float_rows.h"
#include "arguments.h"
#include "element.h"
#include "float_math.h"

static int check_float(pt_context *c, const pt_tensor *t) {
    return t->dtype == PT_DTYPE_FLOAT || pt_is_half(t->dtype)
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                         "a normalization takes float32, float16 and bfloat16");
}

// The parameters that are given, and the outputs, have the dtype of `in`.
static int check_one_dtype(pt_context *c, pt_ref in, const pt_ref *parameters, uint32_t n,
                           const pt_ref *outputs) {
    enum { OUTPUTS = 3 };
    const uint8_t dtype = pt_get_tensor(c, in).dtype;
    for (uint32_t i = 0; i < n + OUTPUTS; i++) {
        const pt_ref arg = i < n ? parameters[i] : outputs[i - n];
        if (!pt_is_none(arg) && pt_get_tensor(c, arg).dtype != dtype) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a normalization takes one dtype");
        }
    }
    return PT_ERROR_OK;
}

static int check_contiguous(pt_context *c, const pt_tensor *t) {
    return t->flags & PT_VALUE_CONTIGUOUS
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_NOT_SUPPORTED, "this normalization takes contiguous tensors");
}

// A parameter that is given is a contiguous tensor of these sizes.
static int check_parameter(pt_context *c, pt_ref arg, uint32_t rank, const int32_t *sizes) {
    if (pt_is_none(arg)) {
        return PT_ERROR_OK;
    }
    const pt_tensor t = pt_get_tensor(c, arg);
    const pt_tensor wanted = {.rank = (uint8_t)rank, .sizes = sizes};
    if (!pt_same_sizes(&t, &wanted)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "a parameter of a normalization has the wrong sizes");
    }
    const int error = check_float(c, &t);
    return error ? error : check_contiguous(c, &t);
}

// An output has these sizes.
static int check_output(pt_context *c, pt_ref arg, uint32_t rank, const int32_t *sizes) {
    const pt_tensor t = pt_get_tensor(c, arg);
    const int error = check_float(c, &t);
    return error ? error : pt_expect_sizes(c, arg, rank, sizes);
}

static int check_contiguous_output(pt_context *c, pt_ref arg, uint32_t rank, const int32_t *sizes) {
    const pt_tensor t = pt_get_tensor(c, arg);
    const int error = check_contiguous(c, &t);
    return error ? error : check_output(c, arg, rank, sizes);
}

// A parameter, without data if it is None.
static pt_tensor parameter(const pt_context *c, pt_ref arg) {
    return pt_is_none(arg) ? (pt_tensor){.data = NULL} : pt_get_tensor(c, arg);
}

static float load(const pt_tensor *parameter, int32_t i, float missing) {
    if (!parameter->data) {
        return missing;
    }
    return parameter->dtype == PT_DTYPE_FLOAT ? ((const float *)parameter->data)[i]
                                              : pt_load_float(parameter->data, i, parameter->dtype);
}

// What is normalized together: `rows` rows of `n` elements, in element steps.
typedef struct slice {
    int32_t rows;
    int32_t row_step;
    int32_t n;
    int32_t step;
} slice;

// out = (in - mean) * scale + shift, n elements of both from element `at` on
static void normalize_row(const pt_tensor *out, const pt_tensor *in, int32_t at, int32_t n,
                          int32_t step, float mean, float scale, float shift) {
    if (in->dtype != PT_DTYPE_FLOAT) {
        for (; n > 0; n--, at += step) {
            const float x = pt_load_float(in->data, at, in->dtype);
            pt_store_float(out->data, at, out->dtype, (x - mean) * scale + shift);
        }
        return;
    }
    const float *from = (const float *)in->data + at;
    float *to = (float *)out->data + at;
    if (step == 1) {
        pt_normalize_row(to, from, n, mean, scale, shift);
        return;
    }
    for (; n > 0; n--) {
        *to = (*from - mean) * scale + shift;
        from += step;
        to += step;
    }
}

static void normalize(const slice *s, const pt_tensor *out, const pt_tensor *in, int32_t at,
                      float mean, float scale, float shift) {
    for (int32_t row = 0; row < s->rows; row++) {
        normalize_row(out, in, at + row * s->row_step, s->n, s->step, mean, scale, shift);
    }
}

enum { CHUNK = 32 }; // partial sums keep the rounding error of long slices small

static inline __attribute__((always_inline)) float sum_row(const pt_tensor *in, int32_t at,
                                                           int32_t n, int32_t step, float mean,
                                                           const bool floats, const bool squared) {
    const float *x = (const float *)in->data + at;
    float sum = 0;
    while (n > 0) {
        float part = 0;
        for (int32_t left = n < CHUNK ? n : CHUNK; left > 0; left--) {
            const float d = (floats ? *x : pt_load_float(in->data, at, in->dtype)) - mean;
            part += squared ? d * d : d;
            x += floats ? step : 0;
            at += step;
        }
        sum += part;
        n -= CHUNK;
    }
    return sum;
}

// Sum of the deviations from `mean`, or of their squares, of the slice from element `at` on.
static float sum_deviations(const slice *s, const pt_tensor *in, int32_t at, float mean,
                            bool squared) {
    float sum = 0;
    for (int32_t row = 0; row < s->rows; row++, at += s->row_step) {
        if (in->dtype != PT_DTYPE_FLOAT) {
            sum += sum_row(in, at, s->n, s->step, mean, false, squared);
        } else {
            sum += squared ? sum_row(in, at, s->n, s->step, mean, true, true)
                           : sum_row(in, at, s->n, s->step, mean, true, false);
        }
    }
    return sum;
}

typedef struct moments {
    float mean;
    float rstd; // 1 / sqrt(variance + eps)
} moments;

// The second sum takes the rounding error of the first out of the mean.
static moments measure(const slice *s, const pt_tensor *in, int32_t at, float eps) {
    const float n = (float)(s->rows * s->n);
    if (n == 0) {
        return (moments){0, __builtin_nanf("")};
    }
    float mean = sum_deviations(s, in, at, 0, false) / n;
    mean += sum_deviations(s, in, at, mean, false) / n;
    return (moments){mean, 1 / pt_sqrtf(sum_deviations(s, in, at, mean, true) / n + eps)};
}

// Measures, and writes the moments to element i of the outputs for them.
static moments measure_and_store(const slice *s, const pt_tensor *in, int32_t at, float eps,
                                 const pt_tensor *means, const pt_tensor *rstds, int32_t i) {
    const moments m = measure(s, in, at, eps);
    pt_store_float(means->data, i, means->dtype, m.mean);
    pt_store_float(rstds->data, i, rstds->dtype, m.rstd);
    return m;
}

// ---- batch norm, (batch, channels, ...)

// True if all elements lie in the same order.
static bool same_layout(const pt_tensor *a, const pt_tensor *b) {
    int32_t a_strides[PT_MAX_RANK], b_strides[PT_MAX_RANK];
    pt_strides(a, a_strides);
    pt_strides(b, b_strides);
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->sizes[i] != 1 && a_strides[i] != b_strides[i]) {
            return false;
        }
    }
    return true;
}

static int check_channels(pt_context *c, const pt_tensor *in, pt_ref out_arg) {
    if (in->rank < 2) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input of a batch norm has channels");
    }
    int error = check_float(c, in);
    if (!error) {
        error = check_output(c, out_arg, in->rank, in->sizes);
    }
    if (error) {
        return error;
    }
    const pt_tensor out = pt_get_tensor(c, out_arg);
    return same_layout(in, &out)
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_NOT_SUPPORTED, "a batch norm keeps the dim order");
}

// A channel of a tensor that is not empty: rows of neighbours or, of single elements, one row.
// Returns the elements from channel to channel.
static int32_t get_channel(const pt_tensor *in, slice *s) {
    int32_t strides[PT_MAX_RANK];
    pt_strides(in, strides);
    const int32_t channels = in->sizes[1];
    const int32_t n = strides[1];
    const int32_t rows = pt_numel(in) / channels / n;
    *s = n == 1 ? (slice){1, 0, rows, channels} : (slice){rows, channels * n, n, 1};
    return n;
}

enum { IN, WEIGHT, BIAS, MEAN, VARIANCE, MOMENTUM, EPS, OUT, SAVE_MEAN, SAVE_INVSTD };

static int check_batch_norm(pt_context *c, const pt_ref *args) {
    static const int32_t none = 0;
    const pt_tensor in = pt_get_tensor(c, args[IN]);
    int error = check_channels(c, &in, args[OUT]);
    for (uint32_t i = WEIGHT; !error && i <= VARIANCE; i++) {
        error = check_parameter(c, args[i], 1, &in.sizes[1]);
    }
    for (uint32_t i = SAVE_MEAN; !error && i <= SAVE_INVSTD; i++) {
        error = check_output(c, args[i], 1, &none);
    }
    return error ? error : check_one_dtype(c, args[IN], args + WEIGHT, 4, args + OUT);
}

static int run_batch_norm(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[IN]), out = pt_get_tensor(c, args[OUT]);
    const pt_tensor weight = parameter(c, args[WEIGHT]), bias = parameter(c, args[BIAS]);
    const pt_tensor mean = parameter(c, args[MEAN]), variance = parameter(c, args[VARIANCE]);
    const float eps = (float)pt_get_double(c, args[EPS]);
    if (pt_numel(&in) == 0) {
        return PT_ERROR_OK;
    }
    slice s;
    const int32_t step = get_channel(&in, &s);
    for (int32_t i = 0; i < in.sizes[1]; i++) {
        const float invstd = 1 / pt_sqrtf(load(&variance, i, 0) + eps);
        normalize(&s, &out, &in, i * step, load(&mean, i, 0), invstd * load(&weight, i, 1),
                  load(&bias, i, 0));
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten__native_batch_norm_legit_no_training_out = {check_batch_norm,
                                                                    run_batch_norm};

// _native_batch_norm_legit has an argument behind the variance: it is not in training.

static int legit_arguments(pt_context *c, const pt_ref *args, pt_ref *others) {
    for (uint32_t i = IN; i <= SAVE_INVSTD; i++) {
        others[i] = args[i < MOMENTUM ? i : i + 1];
    }
    return pt_get_bool(c, args[MOMENTUM])
               ? pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                         "a batch norm with running statistics is not one in training")
               : PT_ERROR_OK;
}

static int check_batch_norm_legit(pt_context *c, const pt_ref *args) {
    pt_ref others[SAVE_INVSTD + 1];
    const int error = legit_arguments(c, args, others);
    return error ? error : check_batch_norm(c, others);
}

static int run_batch_norm_legit(pt_context *c, const pt_ref *args) {
    pt_ref others[SAVE_INVSTD + 1];
    const int error = legit_arguments(c, args, others);
    return error ? error : run_batch_norm(c, others);
}

const pt_kernel pt_aten__native_batch_norm_legit_out = {check_batch_norm_legit,
                                                        run_batch_norm_legit};

// The same with the mean and variance of the input itself.

enum { TRAINING = 3, OWN_EPS = 5, OWN_OUT, OWN_MEAN, OWN_INVSTD };

static int check_batch_norm_no_stats(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[IN]);
    if (!pt_get_bool(c, args[TRAINING])) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "a batch norm without running statistics is one in training");
    }
    int error = check_channels(c, &in, args[OWN_OUT]);
    for (uint32_t i = WEIGHT; !error && i <= BIAS; i++) {
        error = check_parameter(c, args[i], 1, &in.sizes[1]);
    }
    for (uint32_t i = OWN_MEAN; !error && i <= OWN_INVSTD; i++) {
        error = check_output(c, args[i], 1, &in.sizes[1]);
    }
    return error ? error : check_one_dtype(c, args[IN], args + WEIGHT, 2, args + OWN_OUT);
}

static int run_batch_norm_no_stats(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[IN]), out = pt_get_tensor(c, args[OWN_OUT]);
    const pt_tensor weight = parameter(c, args[WEIGHT]), bias = parameter(c, args[BIAS]);
    const pt_tensor mean = pt_get_tensor(c, args[OWN_MEAN]);
    const pt_tensor invstd = pt_get_tensor(c, args[OWN_INVSTD]);
    const float eps = (float)pt_get_double(c, args[OWN_EPS]);
    slice s = {0};
    const int32_t step = pt_numel(&in) ? get_channel(&in, &s) : 0;
    for (int32_t i = 0; i < in.sizes[1]; i++) {
        const moments m = measure_and_store(&s, &in, i * step, eps, &mean, &invstd, i);
        normalize(&s, &out, &in, i * step, m.mean, m.rstd * load(&weight, i, 1), load(&bias, i, 0));
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten__native_batch_norm_legit_no_stats_out = {check_batch_norm_no_stats,
                                                                 run_batch_norm_no_stats};

// ---- layer norm over the last dims

enum { SHAPE = 1, LAYER_WEIGHT, LAYER_BIAS, LAYER_EPS, LAYER_OUT, LAYER_MEAN, LAYER_RSTD };

static int check_layer_norm(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[IN]);
    const uint32_t dims = pt_list_length(c, args[SHAPE]);
    int32_t sizes[PT_MAX_RANK];
    bool fits = dims >= 1 && dims <= in.rank;
    const uint32_t outer = fits ? in.rank - dims : 0;
    for (uint32_t i = 0; fits && i < in.rank; i++) {
        fits = i < outer || pt_list_int(c, args[SHAPE], i - outer) == in.sizes[i];
        sizes[i] = i < outer ? in.sizes[i] : 1;
    }
    if (!fits) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "the normalized shape is not that of the input's last dims");
    }
    int error = check_float(c, &in);
    if (!error) {
        error = check_contiguous(c, &in);
    }
    for (uint32_t i = LAYER_WEIGHT; !error && i <= LAYER_BIAS; i++) {
        error = check_parameter(c, args[i], dims, in.sizes + outer);
    }
    if (!error) {
        error = check_contiguous_output(c, args[LAYER_OUT], in.rank, in.sizes);
    }
    for (uint32_t i = LAYER_MEAN; !error && i <= LAYER_RSTD; i++) {
        error = check_contiguous_output(c, args[i], in.rank, sizes);
    }
    return error ? error : check_one_dtype(c, args[IN], args + LAYER_WEIGHT, 2, args + LAYER_OUT);
}

// out[j] = (in[j] - mean) * rstd * weight[j] + bias[j], for n elements from element `at` on.
static void scale_row(const pt_tensor *out, const pt_tensor *in, int32_t at, int32_t n, moments m,
                      const pt_tensor *weight, const pt_tensor *bias) {
    if (in->dtype != PT_DTYPE_FLOAT) {
        for (int32_t j = 0; j < n; j++) {
            const float x = pt_load_float(in->data, at + j, in->dtype);
            const float y = (x - m.mean) * m.rstd * load(weight, j, 1);
            pt_store_float(out->data, at + j, out->dtype, y + load(bias, j, 0));
        }
        return;
    }
    const float *x = (const float *)in->data + at, *w = weight->data, *b = bias->data;
    float *to = (float *)out->data + at;
    for (int32_t j = 0; j < n; j++) {
        const float y = (x[j] - m.mean) * m.rstd * (w ? w[j] : 1);
        to[j] = y + (b ? b[j] : 0);
    }
}

static int run_layer_norm(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[IN]), out = pt_get_tensor(c, args[LAYER_OUT]);
    const pt_tensor means = pt_get_tensor(c, args[LAYER_MEAN]);
    const pt_tensor rstds = pt_get_tensor(c, args[LAYER_RSTD]);
    const pt_tensor weight = parameter(c, args[LAYER_WEIGHT]);
    const pt_tensor bias = parameter(c, args[LAYER_BIAS]);
    const float eps = (float)pt_get_double(c, args[LAYER_EPS]);
    const int32_t slices = pt_numel(&means);
    const int32_t n = slices ? pt_numel(&in) / slices : 0;
    const slice s = {1, 0, n, 1};
    for (int32_t i = 0; i < slices; i++) {
        const moments m = measure_and_store(&s, &in, i * n, eps, &means, &rstds, i);
        scale_row(&out, &in, i * n, n, m, &weight, &bias);
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_native_layer_norm_out = {check_layer_norm, run_layer_norm};

// ---- group norm, (batch, channels, ...), over the channels of a group

enum {
    GROUP_WEIGHT = 1,
    GROUP_BIAS,
    GROUP_N,
    GROUP_C,
    GROUP_HXW,
    GROUPS,
    GROUP_EPS,
    GROUP_OUT,
    GROUP_MEAN,
    GROUP_RSTD
};

static int check_group_norm(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[IN]);
    const int64_t groups = pt_get_int(c, args[GROUPS]);
    if (in.rank < 2 || pt_get_int(c, args[GROUP_N]) != in.sizes[0] ||
        pt_get_int(c, args[GROUP_C]) != in.sizes[1] ||
        pt_get_int(c, args[GROUP_HXW]) != pt_product(in.sizes + 2, in.rank - 2u)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "N, C and HxW are not those of the input");
    }
    if (groups < 1 || groups > INT32_MAX || in.sizes[1] % (int32_t)groups != 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the groups do not divide the channels");
    }
    int error = check_float(c, &in);
    if (!error) {
        error = check_contiguous(c, &in);
    }
    for (uint32_t i = GROUP_WEIGHT; !error && i <= GROUP_BIAS; i++) {
        error = check_parameter(c, args[i], 1, &in.sizes[1]);
    }
    if (!error) {
        error = check_contiguous_output(c, args[GROUP_OUT], in.rank, in.sizes);
    }
    const int32_t sizes[] = {in.sizes[0], (int32_t)groups};
    for (uint32_t i = GROUP_MEAN; !error && i <= GROUP_RSTD; i++) {
        error = check_contiguous_output(c, args[i], 2, sizes);
    }
    return error ? error : check_one_dtype(c, args[IN], args + GROUP_WEIGHT, 2, args + GROUP_OUT);
}

static int run_group_norm(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[IN]), out = pt_get_tensor(c, args[GROUP_OUT]);
    const pt_tensor means = pt_get_tensor(c, args[GROUP_MEAN]);
    const pt_tensor rstds = pt_get_tensor(c, args[GROUP_RSTD]);
    const pt_tensor weight = parameter(c, args[GROUP_WEIGHT]);
    const pt_tensor bias = parameter(c, args[GROUP_BIAS]);
    const int32_t groups = (int32_t)pt_get_int(c, args[GROUPS]);
    const float eps = (float)pt_get_double(c, args[GROUP_EPS]);
    const bool empty = pt_numel(&in) == 0; // but it may have groups, of mean 0
    const int32_t channels = empty ? 0 : in.sizes[1] / groups;
    const int32_t area = empty ? 0 : pt_numel(&in) / in.sizes[0] / in.sizes[1];
    const slice group = {1, 0, channels * area, 1};
    for (int32_t i = 0; i < in.sizes[0] * groups; i++) {
        const moments m = measure_and_store(&group, &in, i * group.n, eps, &means, &rstds, i);
        for (int32_t j = 0; j < channels; j++) {
            const int32_t channel = i % groups * channels + j;
            normalize_row(&out, &in, i * group.n + j * area, area, 1, m.mean,
                          m.rstd * load(&weight, channel, 1), load(&bias, channel, 0));
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_native_group_norm_out = {check_group_norm, run_group_norm};
