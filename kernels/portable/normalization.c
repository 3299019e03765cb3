// Normalizations of float32: batch norm (aten::_native_batch_norm_legit_no_training and, for
// instance norm, _native_batch_norm_legit.no_stats), native_layer_norm and native_group_norm.
#include "../arch/float_rows.h"
#include "arguments.h"
#include "float_math.h"

static int check_float(pt_context *c, const pt_tensor *t) {
    return t->dtype == PT_DTYPE_FLOAT
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_NOT_SUPPORTED, "a normalization takes float32");
}

static int check_contiguous(pt_context *c, const pt_tensor *t) {
    return t->flags & PT_VALUE_CONTIGUOUS
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_NOT_SUPPORTED, "this normalization takes contiguous tensors");
}

// A parameter that is given is a contiguous float32 tensor of these sizes.
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

// An output is float32 and of these sizes.
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

// The data of a parameter, NULL if it is None.
static const float *parameter(const pt_context *c, pt_ref arg) {
    return pt_is_none(arg) ? NULL : pt_get_tensor(c, arg).data;
}

// What is normalized together: `rows` rows of `n` elements, in element steps.
typedef struct slice {
    int32_t rows;
    int32_t row_step;
    int32_t n;
    int32_t step;
} slice;

static void normalize_row(float *out, const float *in, int32_t n, int32_t step, float mean,
                          float scale, float shift) {
    if (step == 1) {
        pt_normalize_row(out, in, n, mean, scale, shift);
        return;
    }
    for (; n > 0; n--) {
        *out = (*in - mean) * scale + shift;
        in += step;
        out += step;
    }
}

// out = (in - mean) * scale + shift
static void normalize(const slice *s, float *out, const float *in, float mean, float scale,
                      float shift) {
    for (int32_t row = 0; row < s->rows; row++) {
        normalize_row(out, in, s->n, s->step, mean, scale, shift);
        in += s->row_step;
        out += s->row_step;
    }
}

enum { CHUNK = 32 }; // partial sums keep the rounding error of long slices small

static inline __attribute__((always_inline)) float sum_row(const float *in, int32_t n, int32_t step,
                                                           float mean, const bool squared) {
    float sum = 0;
    while (n > 0) {
        float part = 0;
        for (int32_t left = n < CHUNK ? n : CHUNK; left > 0; left--) {
            const float d = *in - mean;
            part += squared ? d * d : d;
            in += step;
        }
        sum += part;
        n -= CHUNK;
    }
    return sum;
}

// Sum of the deviations from `mean`, or of their squares.
static float sum_deviations(const slice *s, const float *in, float mean, bool squared) {
    float sum = 0;
    for (int32_t row = 0; row < s->rows; row++) {
        const float *x = in + row * s->row_step;
        sum += squared ? sum_row(x, s->n, s->step, mean, true)
                       : sum_row(x, s->n, s->step, mean, false);
    }
    return sum;
}

// Mean and 1 / sqrt(variance + eps). The second sum takes the rounding error of the first out of
// the mean.
static void measure(const slice *s, const float *in, float eps, float *mean, float *rstd) {
    const float n = (float)(s->rows * s->n);
    if (n == 0) {
        *mean = 0;
        *rstd = __builtin_nanf("");
        return;
    }
    *mean = sum_deviations(s, in, 0, false) / n;
    *mean += sum_deviations(s, in, *mean, false) / n;
    *rstd = 1 / pt_sqrtf(sum_deviations(s, in, *mean, true) / n + eps);
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
    return error;
}

static int run_batch_norm(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[IN]);
    const float *weight = parameter(c, args[WEIGHT]);
    const float *bias = parameter(c, args[BIAS]);
    const float *mean = parameter(c, args[MEAN]);
    const float *variance = parameter(c, args[VARIANCE]);
    const float eps = (float)pt_get_double(c, args[EPS]);
    const float *x = in.data;
    float *out = pt_get_tensor(c, args[OUT]).data;
    if (pt_numel(&in) == 0) {
        return PT_ERROR_OK;
    }
    slice s;
    const int32_t step = get_channel(&in, &s);
    for (int32_t i = 0; i < in.sizes[1]; i++) {
        const float invstd = 1 / pt_sqrtf(variance[i] + eps);
        normalize(&s, out, x, mean[i], weight ? invstd * weight[i] : invstd, bias ? bias[i] : 0);
        x += step;
        out += step;
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
    return error;
}

static int run_batch_norm_no_stats(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[IN]);
    const float *weight = parameter(c, args[WEIGHT]);
    const float *bias = parameter(c, args[BIAS]);
    const float eps = (float)pt_get_double(c, args[OWN_EPS]);
    const float *x = in.data;
    float *out = pt_get_tensor(c, args[OWN_OUT]).data;
    float *mean = pt_get_tensor(c, args[OWN_MEAN]).data;
    float *invstd = pt_get_tensor(c, args[OWN_INVSTD]).data;
    slice s = {0};
    const int32_t step = pt_numel(&in) ? get_channel(&in, &s) : 0;
    for (int32_t i = 0; i < in.sizes[1]; i++) {
        measure(&s, x, eps, &mean[i], &invstd[i]);
        normalize(&s, out, x, mean[i], weight ? invstd[i] * weight[i] : invstd[i],
                  bias ? bias[i] : 0);
        x += step;
        out += step;
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
    return error;
}

static int run_layer_norm(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[IN]);
    const pt_tensor means = pt_get_tensor(c, args[LAYER_MEAN]);
    const float *weight = parameter(c, args[LAYER_WEIGHT]);
    const float *bias = parameter(c, args[LAYER_BIAS]);
    const float eps = (float)pt_get_double(c, args[LAYER_EPS]);
    const float *x = in.data;
    float *out = pt_get_tensor(c, args[LAYER_OUT]).data;
    float *mean = means.data;
    float *rstd = pt_get_tensor(c, args[LAYER_RSTD]).data;
    const int32_t slices = pt_numel(&means);
    const int32_t n = slices ? pt_numel(&in) / slices : 0;
    const slice s = {1, 0, n, 1};
    for (int32_t i = 0; i < slices; i++) {
        measure(&s, x, eps, &mean[i], &rstd[i]);
        for (int32_t j = 0; j < n; j++) {
            const float y = (x[j] - mean[i]) * rstd[i] * (weight ? weight[j] : 1);
            out[j] = y + (bias ? bias[j] : 0);
        }
        x += n;
        out += n;
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
    return error;
}

static int run_group_norm(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[IN]);
    const float *weight = parameter(c, args[GROUP_WEIGHT]);
    const float *bias = parameter(c, args[GROUP_BIAS]);
    const int32_t groups = (int32_t)pt_get_int(c, args[GROUPS]);
    const float eps = (float)pt_get_double(c, args[GROUP_EPS]);
    const float *x = in.data;
    float *out = pt_get_tensor(c, args[GROUP_OUT]).data;
    float *mean = pt_get_tensor(c, args[GROUP_MEAN]).data;
    float *rstd = pt_get_tensor(c, args[GROUP_RSTD]).data;
    const bool empty = pt_numel(&in) == 0; // but it may have groups, of mean 0
    const int32_t channels = empty ? 0 : in.sizes[1] / groups;
    const int32_t area = empty ? 0 : pt_numel(&in) / in.sizes[0] / in.sizes[1];
    const slice group = {1, 0, channels * area, 1};
    for (int32_t i = 0; i < in.sizes[0] * groups; i++) {
        measure(&group, x, eps, &mean[i], &rstd[i]);
        for (int32_t j = 0; j < channels; j++) {
            const int32_t channel = i % groups * channels + j;
            normalize_row(out, x, area, 1, mean[i], weight ? rstd[i] * weight[channel] : rstd[i],
                          bias ? bias[channel] : 0);
            x += area;
            out += area;
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_native_group_norm_out = {check_group_norm, run_group_norm};
