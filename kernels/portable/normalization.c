// Normalizations of floating dtypes: batch norm
// (aten::_native_batch_norm_legit_no_training and, for instance norm,
// _native_batch_norm_legit.no_stats), native_layer_norm and native_group_norm.
#include "arch/float_rows.h"
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/double_rows.h"
#include "portable/dtype_access.h"
#include "portable/float_math.h"

static int check_float(pt_context *c, const pt_tensor *t) {
    return pt_check_math(c, t->dtype, "a normalization does not support this dtype");
}

// Checks that outputs, and parameters that are not None, have the dtype of `in`.
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

// Checks that a parameter is None or a contiguous tensor of these sizes.
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
    PT_TRY(check_float(c, &t));
    return check_contiguous(c, &t);
}

// Checks that an output has these sizes.
static int check_output(pt_context *c, pt_ref arg, uint32_t rank, const int32_t *sizes) {
    const pt_tensor t = pt_get_tensor(c, arg);
    PT_TRY(check_float(c, &t));
    return pt_expect_sizes(c, arg, rank, sizes);
}

static int check_contiguous_output(pt_context *c, pt_ref arg, uint32_t rank, const int32_t *sizes) {
    const pt_tensor t = pt_get_tensor(c, arg);
    PT_TRY(check_contiguous(c, &t));
    return check_output(c, arg, rank, sizes);
}

// Returns a parameter; without data if it is None.
static pt_tensor norm_parameter(const pt_context *c, pt_ref arg) {
    return pt_is_none(arg) ? (pt_tensor){.data = NULL} : pt_get_tensor(c, arg);
}

static float norm_load(const pt_tensor *parameter, int32_t i, float missing) {
    if (!parameter->data) {
        return missing;
    }
    return parameter->dtype == PT_DTYPE_FLOAT ? ((const float *)parameter->data)[i]
                                              : pt_load_float(parameter->data, i, parameter->dtype);
}

// A group of elements that are normalized together: `rows` rows of `n`; steps count elements.
typedef struct slice {
    int32_t rows;
    int32_t row_step;
    int32_t n;
    int32_t step;
    pt_context *c;
    int error; // error of a poll; values computed since are void
} slice;

static bool norm_goes_on(slice *s, int32_t n) {
    s->error = pt_count_elements(s->c, n);
    return s->error == PT_ERROR_OK;
}

// Computes out = (in - mean) * scale + shift, for n elements of both tensors from element `at` on.
static __attribute__((noinline)) void normalize_row(const pt_tensor *out, const pt_tensor *in,
                                                    int32_t at, int32_t n, int32_t step, float mean,
                                                    float scale, float shift) {
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

// Normalizes a long slice, piece by piece.
static __attribute__((noinline)) int normalize_pieces(const slice *s, const pt_tensor *out,
                                                      const pt_tensor *in, int32_t at, float mean,
                                                      float scale, float shift) {
    for (int32_t row = 0; row < s->rows; row++, at += s->row_step) {
        for (int32_t i = 0; i < s->n; i += PT_PIECE) {
            const int32_t n = s->n - i < PT_PIECE ? s->n - i : PT_PIECE;
            PT_TRY(pt_count_elements(s->c, n));
            normalize_row(out, in, at + i * s->step, n, s->step, mean, scale, shift);
        }
    }
    return PT_ERROR_OK;
}

static inline __attribute__((always_inline)) int
norm_normalize(const slice *s, const pt_tensor *out, const pt_tensor *in, int32_t at, float mean,
               float scale, float shift) {
    const int32_t n = s->rows * s->n;
    if (n > PT_PIECE) {
        return normalize_pieces(s, out, in, at, mean, scale, shift);
    }
    for (int32_t row = 0; row < s->rows; row++) {
        normalize_row(out, in, at + row * s->row_step, s->n, s->step, mean, scale, shift);
    }
    return pt_count_elements(s->c, n);
}

enum { CHUNK = 32 }; // partial sums keep the rounding error of long slices small

// Sums n deviations from `mean`, or their squares.
static inline __attribute__((always_inline)) float
sum_floats(const float *x, int32_t step, int32_t n, float mean, const bool squared) {
    float sum = 0;
#pragma GCC unroll 4
    for (; n > 0; n--, x += step) {
        const float d = *x - mean;
        sum += squared ? d * d : d;
    }
    return sum;
}

static float sum_chunk(const slice *s, const pt_tensor *in, int32_t at, int32_t n, float mean,
                       bool squared) {
    if (in->dtype == PT_DTYPE_FLOAT) {
        const float *x = (const float *)in->data + at;
        return squared ? sum_floats(x, s->step, n, mean, true)
                       : sum_floats(x, s->step, n, mean, false);
    }
    float sum = 0;
    for (; n > 0; n--, at += s->step) {
        const float d = pt_load_float(in->data, at, in->dtype) - mean;
        sum += squared ? d * d : d;
    }
    return sum;
}

static float sum_row(slice *s, const pt_tensor *in, int32_t at, float mean, bool squared) {
    int32_t n = s->n;
    float sum = 0;
    norm_goes_on(s, n % PT_PIECE);
    for (int32_t some; n > 0; n -= some, at += some * s->step) {
        if (n >= PT_PIECE && n % PT_PIECE < CHUNK && !norm_goes_on(s, PT_PIECE)) {
            break;
        }
        some = n < CHUNK ? n : CHUNK;
        sum += sum_chunk(s, in, at, some, mean, squared);
    }
    return sum;
}

// Sums the deviations from `mean`, or their squares, of the slice from element `at` on.
static float norm_sum_deviations(slice *s, const pt_tensor *in, int32_t at, float mean,
                                 bool squared) {
    float sum = 0;
    for (int32_t row = 0; row < s->rows && !s->error; row++, at += s->row_step) {
        sum += sum_row(s, in, at, mean, squared);
    }
    return sum;
}

typedef struct moments {
    float mean;
    float rstd; // 1 / sqrt(variance + eps)
} moments;

// The second sum corrects the rounding error of the first in the mean.
static moments norm_measure(slice *s, const pt_tensor *in, int32_t at, float eps) {
    const float n = (float)(s->rows * s->n);
    if (n == 0) {
        return (moments){0, __builtin_nanf("")};
    }
    float mean = norm_sum_deviations(s, in, at, 0, false) / n;
    mean += norm_sum_deviations(s, in, at, mean, false) / n;
    return (moments){mean, 1 / pt_sqrtf(norm_sum_deviations(s, in, at, mean, true) / n + eps)};
}

// Computes the moments, and writes them to element i of their outputs.
static moments measure_and_store(slice *s, const pt_tensor *in, int32_t at, float eps,
                                 const pt_tensor *means, const pt_tensor *rstds, int32_t i) {
    const moments m = norm_measure(s, in, at, eps);
    pt_store_float(means->data, i, means->dtype, m.mean);
    pt_store_float(rstds->data, i, rstds->dtype, m.rstd);
    return m;
}

// Computes the moments in float64, and writes them. If the moments are arguments, `r` contains
// them.

static pt_double_rows double_rows(const slice *s, const pt_tensor *out, const pt_tensor *in,
                                  int32_t at, const pt_tensor *weight, const pt_tensor *bias,
                                  int32_t parameter, int32_t repeat) {
    const double *w = weight->data, *b = bias->data;
    return (pt_double_rows){.c = s->c,
                            .in = (const double *)in->data + at,
                            .out = (double *)out->data + at,
                            .weight = w ? w + parameter : NULL,
                            .bias = b ? b + parameter : NULL,
                            .repeat = repeat,
                            .rows = s->rows,
                            .row_step = s->row_step,
                            .n = s->n,
                            .step = s->step};
}

// Computes the moments, writes them to element i of their outputs, and normalizes.
static int normalize_double(pt_double_rows r, double eps, const pt_tensor *means,
                            const pt_tensor *rstds, int32_t i) {
    PT_TRY(pt_float64->measure(&r, eps));
    ((double *)means->data)[i] = r.mean;
    ((double *)rstds->data)[i] = r.rstd;
    return pt_float64->normalize(&r);
}

// ---- batch norm, (batch, channels, ...)

// True if the elements of both tensors lie in the same order.
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

static int norm_check_channels(pt_context *c, const pt_tensor *in, pt_ref out_arg) {
    if (in->rank < 2) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input of a batch norm has channels");
    }
    PT_TRY(check_float(c, in));
    PT_TRY(check_output(c, out_arg, in->rank, in->sizes));
    const pt_tensor out = pt_get_tensor(c, out_arg);
    return same_layout(in, &out)
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_NOT_SUPPORTED, "a batch norm keeps the dim order");
}

// Describes a channel of a non-empty tensor: rows of adjacent elements, or one row of single
// elements. Returns the elements from channel to channel.
static int32_t get_channel(pt_context *c, const pt_tensor *in, slice *s) {
    int32_t strides[PT_MAX_RANK];
    pt_strides(in, strides);
    const int32_t channels = in->sizes[1];
    const int32_t n = strides[1];
    const int32_t rows = pt_numel(in) / channels / n;
    *s = n == 1 ? (slice){1, 0, rows, channels, c, 0} : (slice){rows, channels * n, n, 1, c, 0};
    return n;
}

enum {
    IN = NATIVE_BATCH_NORM_LEGIT_NO_TRAINING_INPUT,
    WEIGHT = NATIVE_BATCH_NORM_LEGIT_NO_TRAINING_WEIGHT,
    BIAS = NATIVE_BATCH_NORM_LEGIT_NO_TRAINING_BIAS,
    MEAN = NATIVE_BATCH_NORM_LEGIT_NO_TRAINING_RUNNING_MEAN,
    VARIANCE = NATIVE_BATCH_NORM_LEGIT_NO_TRAINING_RUNNING_VAR,
    EPS = NATIVE_BATCH_NORM_LEGIT_NO_TRAINING_EPS,
    OUT = NATIVE_BATCH_NORM_LEGIT_NO_TRAINING_OUT0,
    SAVE_MEAN = NATIVE_BATCH_NORM_LEGIT_NO_TRAINING_OUT1,
    SAVE_INVSTD = NATIVE_BATCH_NORM_LEGIT_NO_TRAINING_OUT2,
};

static int check_batch_norm(pt_context *c, const pt_ref *args) {
    static const int32_t none = 0;
    const pt_tensor in = pt_get_tensor(c, args[IN]);
    PT_TRY(norm_check_channels(c, &in, args[OUT]));
    for (uint32_t i = WEIGHT; i <= VARIANCE; i++) {
        PT_TRY(check_parameter(c, args[i], 1, &in.sizes[1]));
    }
    for (uint32_t i = SAVE_MEAN; i <= SAVE_INVSTD; i++) {
        PT_TRY(check_output(c, args[i], 1, &none));
    }
    return check_one_dtype(c, args[IN], args + WEIGHT, 4, args + OUT);
}

static int run_batch_norm(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[IN]), out = pt_get_tensor(c, args[OUT]);
    const pt_tensor weight = norm_parameter(c, args[WEIGHT]), bias = norm_parameter(c, args[BIAS]);
    const pt_tensor mean = norm_parameter(c, args[MEAN]),
                    variance = norm_parameter(c, args[VARIANCE]);
    const double exact_eps = pt_get_double(c, args[EPS]);
    const float eps = (float)exact_eps;
    if (pt_numel(&in) == 0) {
        return PT_ERROR_OK;
    }
    slice s;
    const int32_t step = get_channel(c, &in, &s);
    for (int32_t i = 0; i < in.sizes[1]; i++) {
        if (in.dtype == PT_DTYPE_DOUBLE) {
            pt_double_rows r = double_rows(&s, &out, &in, i * step, &weight, &bias, i, s.n);
            r.mean = ((const double *)mean.data)[i];
            r.rstd = 1 / pt_float64->sqrt(((const double *)variance.data)[i] + exact_eps);
            PT_TRY(pt_float64->normalize(&r));
            continue;
        }
        const float invstd = 1 / pt_sqrtf(norm_load(&variance, i, 0) + eps);
        PT_TRY(norm_normalize(&s, &out, &in, i * step, norm_load(&mean, i, 0),
                              invstd * norm_load(&weight, i, 1), norm_load(&bias, i, 0)));
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten__native_batch_norm_legit_no_training_out =
    PT_KERNEL(check_batch_norm, run_batch_norm);

// _native_batch_norm_legit has another argument after the variance: training, which must be false.

static int legit_arguments(pt_context *c, const pt_ref *args, pt_ref *others) {
    for (uint32_t i = IN; i <= SAVE_INVSTD; i++) {
        others[i] = args[i < NATIVE_BATCH_NORM_LEGIT_TRAINING ? i : i + 1];
    }
    return pt_get_bool(c, args[NATIVE_BATCH_NORM_LEGIT_TRAINING])
               ? pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                         "a batch norm with running statistics is not one in training")
               : PT_ERROR_OK;
}

static int check_batch_norm_legit(pt_context *c, const pt_ref *args) {
    pt_ref others[SAVE_INVSTD + 1];
    PT_TRY(legit_arguments(c, args, others));
    return check_batch_norm(c, others);
}

static int run_batch_norm_legit(pt_context *c, const pt_ref *args) {
    pt_ref others[SAVE_INVSTD + 1];
    PT_TRY(legit_arguments(c, args, others));
    return run_batch_norm(c, others);
}

const pt_kernel pt_aten__native_batch_norm_legit_out =
    PT_KERNEL(check_batch_norm_legit, run_batch_norm_legit);

// Batch norm with the mean and variance of the input itself.

enum {
    OWN_IN = NATIVE_BATCH_NORM_LEGIT_NO_STATS_INPUT,
    OWN_WEIGHT = NATIVE_BATCH_NORM_LEGIT_NO_STATS_WEIGHT,
    OWN_BIAS = NATIVE_BATCH_NORM_LEGIT_NO_STATS_BIAS,
    OWN_TRAINING = NATIVE_BATCH_NORM_LEGIT_NO_STATS_TRAINING,
    OWN_EPS = NATIVE_BATCH_NORM_LEGIT_NO_STATS_EPS,
    OWN_OUT = NATIVE_BATCH_NORM_LEGIT_NO_STATS_OUT,
    OWN_MEAN = NATIVE_BATCH_NORM_LEGIT_NO_STATS_SAVE_MEAN,
    OWN_INVSTD = NATIVE_BATCH_NORM_LEGIT_NO_STATS_SAVE_INVSTD,
};

static int check_batch_norm_no_stats(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[OWN_IN]);
    if (!pt_get_bool(c, args[OWN_TRAINING])) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "a batch norm without running statistics is one in training");
    }
    PT_TRY(norm_check_channels(c, &in, args[OWN_OUT]));
    for (uint32_t i = OWN_WEIGHT; i <= OWN_BIAS; i++) {
        PT_TRY(check_parameter(c, args[i], 1, &in.sizes[1]));
    }
    for (uint32_t i = OWN_MEAN; i <= OWN_INVSTD; i++) {
        PT_TRY(check_output(c, args[i], 1, &in.sizes[1]));
    }
    return check_one_dtype(c, args[OWN_IN], args + OWN_WEIGHT, 2, args + OWN_OUT);
}

static int run_batch_norm_no_stats(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[OWN_IN]), out = pt_get_tensor(c, args[OWN_OUT]);
    const pt_tensor weight = norm_parameter(c, args[OWN_WEIGHT]),
                    bias = norm_parameter(c, args[OWN_BIAS]);
    const pt_tensor mean = pt_get_tensor(c, args[OWN_MEAN]);
    const pt_tensor invstd = pt_get_tensor(c, args[OWN_INVSTD]);
    const double exact_eps = pt_get_double(c, args[OWN_EPS]);
    const float eps = (float)exact_eps;
    slice s = {.c = c};
    const int32_t step = pt_numel(&in) ? get_channel(c, &in, &s) : 0;
    for (int32_t i = 0; i < in.sizes[1]; i++) {
        if (in.dtype == PT_DTYPE_DOUBLE) {
            PT_TRY(normalize_double(double_rows(&s, &out, &in, i * step, &weight, &bias, i, s.n),
                                    exact_eps, &mean, &invstd, i));
            continue;
        }
        const moments m = measure_and_store(&s, &in, i * step, eps, &mean, &invstd, i);
        PT_TRY(s.error);
        PT_TRY(norm_normalize(&s, &out, &in, i * step, m.mean, m.rstd * norm_load(&weight, i, 1),
                              norm_load(&bias, i, 0)));
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten__native_batch_norm_legit_no_stats_out =
    PT_KERNEL(check_batch_norm_no_stats, run_batch_norm_no_stats);

// ---- layer norm over the last dims

static int check_layer_norm(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[NATIVE_LAYER_NORM_INPUT]);
    const uint32_t dims = pt_list_length(c, args[NATIVE_LAYER_NORM_NORMALIZED_SHAPE]);
    int32_t sizes[PT_MAX_RANK];
    bool fits = dims >= 1 && dims <= in.rank;
    const uint32_t outer = fits ? in.rank - dims : 0;
    for (uint32_t i = 0; fits && i < in.rank; i++) {
        fits = i < outer ||
               pt_list_int(c, args[NATIVE_LAYER_NORM_NORMALIZED_SHAPE], i - outer) == in.sizes[i];
        sizes[i] = i < outer ? in.sizes[i] : 1;
    }
    if (!fits) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "the normalized shape is not that of the input's last dims");
    }
    PT_TRY(check_float(c, &in));
    PT_TRY(check_contiguous(c, &in));
    for (uint32_t i = NATIVE_LAYER_NORM_WEIGHT; i <= NATIVE_LAYER_NORM_BIAS; i++) {
        PT_TRY(check_parameter(c, args[i], dims, in.sizes + outer));
    }
    PT_TRY(check_contiguous_output(c, args[NATIVE_LAYER_NORM_OUT0], in.rank, in.sizes));
    for (uint32_t i = NATIVE_LAYER_NORM_OUT1; i <= NATIVE_LAYER_NORM_OUT2; i++) {
        PT_TRY(check_contiguous_output(c, args[i], in.rank, sizes));
    }
    return check_one_dtype(c, args[NATIVE_LAYER_NORM_INPUT], args + NATIVE_LAYER_NORM_WEIGHT, 2,
                           args + NATIVE_LAYER_NORM_OUT0);
}

// Computes out[j] = (in[j] - mean) * rstd * weight[j] + bias[j] for n elements. `affine`: there are
// weights and a bias.
static inline __attribute__((always_inline)) void
scale_floats(float *out, const float *in, int32_t n, moments m, const float *weight,
             const float *bias, const bool affine) {
    for (int32_t j = 0; j < n; j++) {
        const float y = (in[j] - m.mean) * m.rstd * (affine || weight ? weight[j] : 1);
        out[j] = y + (affine || bias ? bias[j] : 0);
    }
}

// The same from element `at` of the tensors on.
static int scale_row(pt_context *c, const pt_tensor *out, const pt_tensor *in, int32_t at,
                     int32_t n, moments m, const pt_tensor *weight, const pt_tensor *bias) {
    if (in->dtype != PT_DTYPE_FLOAT) {
        for (int32_t j = 0; j < n; j++) {
            PT_TRY(pt_count_elements(c, 1));
            const float x = pt_load_float(in->data, at + j, in->dtype);
            const float y = (x - m.mean) * m.rstd * norm_load(weight, j, 1);
            pt_store_float(out->data, at + j, out->dtype, y + norm_load(bias, j, 0));
        }
        return PT_ERROR_OK;
    }
    const float *x = (const float *)in->data + at, *w = weight->data, *b = bias->data;
    float *to = (float *)out->data + at;
    for (int32_t some; n > 0; n -= some, x += some, to += some) {
        some = n < PT_PIECE ? n : PT_PIECE;
        PT_TRY(pt_count_elements(c, some));
        if (w && b) {
            scale_floats(to, x, some, m, w, b, true);
        } else {
            scale_floats(to, x, some, m, w, b, false);
        }
        w = w ? w + some : w;
        b = b ? b + some : b;
    }
    return PT_ERROR_OK;
}

static int run_layer_norm(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[NATIVE_LAYER_NORM_INPUT]);
    const pt_tensor out = pt_get_tensor(c, args[NATIVE_LAYER_NORM_OUT0]);
    const pt_tensor means = pt_get_tensor(c, args[NATIVE_LAYER_NORM_OUT1]);
    const pt_tensor rstds = pt_get_tensor(c, args[NATIVE_LAYER_NORM_OUT2]);
    const pt_tensor weight = norm_parameter(c, args[NATIVE_LAYER_NORM_WEIGHT]);
    const pt_tensor bias = norm_parameter(c, args[NATIVE_LAYER_NORM_BIAS]);
    const double exact_eps = pt_get_double(c, args[NATIVE_LAYER_NORM_EPS]);
    const float eps = (float)exact_eps;
    const int32_t slices = pt_numel(&means);
    const int32_t n = slices ? pt_numel(&in) / slices : 0;
    slice s = {1, 0, n, 1, c, 0};
    for (int32_t i = 0; i < slices; i++) {
        if (in.dtype == PT_DTYPE_DOUBLE) {
            PT_TRY(normalize_double(double_rows(&s, &out, &in, i * n, &weight, &bias, 0, 1),
                                    exact_eps, &means, &rstds, i));
            continue;
        }
        const moments m = measure_and_store(&s, &in, i * n, eps, &means, &rstds, i);
        PT_TRY(s.error);
        PT_TRY(scale_row(c, &out, &in, i * n, n, m, &weight, &bias));
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_native_layer_norm_out = PT_KERNEL(check_layer_norm, run_layer_norm);

// ---- group norm, (batch, channels, ...), over the channels of a group

static int check_group_norm(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[NATIVE_GROUP_NORM_INPUT]);
    const int64_t groups = pt_get_int(c, args[NATIVE_GROUP_NORM_GROUP]);
    if (in.rank < 2 || pt_get_int(c, args[NATIVE_GROUP_NORM_N]) != in.sizes[0] ||
        pt_get_int(c, args[NATIVE_GROUP_NORM_C]) != in.sizes[1] ||
        pt_get_int(c, args[NATIVE_GROUP_NORM_HXW]) != pt_product(in.sizes + 2, in.rank - 2u)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "N, C and HxW are not those of the input");
    }
    if (groups < 1 || groups > INT32_MAX || in.sizes[1] % (int32_t)groups != 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the groups do not divide the channels");
    }
    PT_TRY(check_float(c, &in));
    PT_TRY(check_contiguous(c, &in));
    for (uint32_t i = NATIVE_GROUP_NORM_WEIGHT; i <= NATIVE_GROUP_NORM_BIAS; i++) {
        PT_TRY(check_parameter(c, args[i], 1, &in.sizes[1]));
    }
    PT_TRY(check_contiguous_output(c, args[NATIVE_GROUP_NORM_OUT0], in.rank, in.sizes));
    const int32_t sizes[] = {in.sizes[0], (int32_t)groups};
    for (uint32_t i = NATIVE_GROUP_NORM_OUT1; i <= NATIVE_GROUP_NORM_OUT2; i++) {
        PT_TRY(check_contiguous_output(c, args[i], 2, sizes));
    }
    return check_one_dtype(c, args[NATIVE_GROUP_NORM_INPUT], args + NATIVE_GROUP_NORM_WEIGHT, 2,
                           args + NATIVE_GROUP_NORM_OUT0);
}

static int run_group_norm(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[NATIVE_GROUP_NORM_INPUT]);
    const pt_tensor out = pt_get_tensor(c, args[NATIVE_GROUP_NORM_OUT0]);
    const pt_tensor means = pt_get_tensor(c, args[NATIVE_GROUP_NORM_OUT1]);
    const pt_tensor rstds = pt_get_tensor(c, args[NATIVE_GROUP_NORM_OUT2]);
    const pt_tensor weight = norm_parameter(c, args[NATIVE_GROUP_NORM_WEIGHT]);
    const pt_tensor bias = norm_parameter(c, args[NATIVE_GROUP_NORM_BIAS]);
    const int32_t groups = (int32_t)pt_get_int(c, args[NATIVE_GROUP_NORM_GROUP]);
    const double exact_eps = pt_get_double(c, args[NATIVE_GROUP_NORM_EPS]);
    const float eps = (float)exact_eps;
    const bool empty = pt_numel(&in) == 0; // an empty input may have groups, of mean 0
    const int32_t channels = empty ? 0 : in.sizes[1] / groups;
    const int32_t area = empty ? 0 : pt_numel(&in) / in.sizes[0] / in.sizes[1];
    slice group = {1, 0, channels * area, 1, c, 0};
    const slice plane = {1, 0, area, 1, c, 0};
    for (int32_t i = 0; i < in.sizes[0] * groups; i++) {
        if (in.dtype == PT_DTYPE_DOUBLE) {
            PT_TRY(normalize_double(double_rows(&group, &out, &in, i * group.n, &weight, &bias,
                                                i % groups * channels, area),
                                    exact_eps, &means, &rstds, i));
            continue;
        }
        const moments m = measure_and_store(&group, &in, i * group.n, eps, &means, &rstds, i);
        PT_TRY(group.error);
        for (int32_t j = 0; j < channels; j++) {
            const int32_t channel = i % groups * channels + j;
            PT_TRY(norm_normalize(&plane, &out, &in, i * group.n + j * area, m.mean,
                                  m.rstd * norm_load(&weight, channel, 1),
                                  norm_load(&bias, channel, 0)));
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_native_group_norm_out = PT_KERNEL(check_group_norm, run_group_norm);
