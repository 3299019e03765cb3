// Chooses the scale and zero point for the range of values of a tensor, or of each row of its last
// dim.
#include "core/generated/operator_arguments.h"
#include "portable/float_math.h"
#include "quantized/affine.h"

typedef struct parameters {
    double scale;
    int32_t zero_point;
} parameters;

static const float min_scale = 6.1e-5f;

static inline double size_of(double x) {
    return x < 0 ? -x : x;
}

// Widens a range, which includes 0, to the range that the minimum scale covers.
static void qparams_widen(float scale, float steps, float *min, float *max) {
    if (*min == 0) {
        *max = min_scale * steps;
    } else if (*max == 0) {
        *min = -min_scale * steps;
    } else {
        float factor = min_scale / scale;
        *min *= factor;
        *max *= factor;
    }
}

// Computes in double, except for the range, as ExecuTorch's kernel does.
static parameters choose_qparams(float min, float max, int32_t low, int32_t high) {
    int64_t steps = (int64_t)high - low;
    double scale = ((double)max - (double)min) / (double)steps;
    if ((float)scale == 0 || 1.0f / (float)scale > 0x1.fffffep+127f) {
        scale = 0.1;
    }
    if (scale < (double)min_scale) {
        qparams_widen((float)scale, (float)steps, &min, &max);
        scale = min_scale;
    }
    double from_min = (double)min / scale, from_max = (double)max / scale;
    double error_of_min = size_of(low) - size_of(from_min);
    double error_of_max = size_of(high) - size_of(from_max);
    double zero_point = error_of_min < error_of_max ? low - from_min : high - from_max;
    if (!(zero_point >= low)) { // also true if the zero point is NaN, as for infinite values
        return (parameters){scale, low};
    }
    return (parameters){scale, zero_point > high ? high : (int32_t)pt_rintf((float)zero_point)};
}

// Chooses the parameters of n values; skips NaN.
static int choose_row_qparams(pt_context *c, const float *in, int32_t n, int32_t low, int32_t high,
                              parameters *p) {
    float min = 0, max = 0;
    for (int32_t i = 0; i < n;) {
        const int32_t end = n - i < PT_PIECE ? n : i + PT_PIECE;
        PT_TRY(pt_count_elements(c, end - i));
        for (; i < end; i++) {
            float x = in[i];
            min = x < min ? x : min;
            max = x > max ? x : max;
        }
    }
    *p = choose_qparams(min, max, low, high);
    return pt_count_elements(c, 1);
}

static int qparams_check_dtypes(pt_context *c, const pt_tensor *in, const pt_tensor *scale,
                                const pt_tensor *zero_point) {
    if (scale->dtype != PT_DTYPE_DOUBLE || zero_point->dtype != PT_DTYPE_LONG) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "the outputs must be scales in double and zero points in int64");
    }
    return pt_check_float(c, in);
}

// ---- per tensor: (input, quant_min, quant_max, eps, dtype, scale_out, zero_point_out); eps is not
// used

// Expects an output of one element, of any rank.
static int expect_one(pt_context *c, pt_ref arg, const pt_tensor *out) {
    int32_t sizes[PT_MAX_RANK];
    for (uint32_t d = 0; d < out->rank; d++) {
        sizes[d] = 1;
    }
    return pt_expect_sizes(c, arg, out->rank, sizes);
}

static int qparams_check_tensor(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[CHOOSE_QPARAMS_TENSOR_INPUT]);
    pt_tensor scale = pt_get_tensor(c, args[CHOOSE_QPARAMS_TENSOR_SCALE_OUT]);
    pt_tensor zero_point = pt_get_tensor(c, args[CHOOSE_QPARAMS_TENSOR_ZERO_POINT_OUT]);
    int64_t low = pt_get_int(c, args[CHOOSE_QPARAMS_TENSOR_QUANT_MIN]);
    int64_t high = pt_get_int(c, args[CHOOSE_QPARAMS_TENSOR_QUANT_MAX]);
    PT_TRY(qparams_check_dtypes(c, &in, &scale, &zero_point));
    if (low >= high || low < INT32_MIN || high > INT32_MAX) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "quant_min must be below quant_max, both within int32");
    }
    PT_TRY(expect_one(c, args[CHOOSE_QPARAMS_TENSOR_SCALE_OUT], &scale));
    return expect_one(c, args[CHOOSE_QPARAMS_TENSOR_ZERO_POINT_OUT], &zero_point);
}

static int run_tensor(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[CHOOSE_QPARAMS_TENSOR_INPUT]);
    pt_tensor scale = pt_get_tensor(c, args[CHOOSE_QPARAMS_TENSOR_SCALE_OUT]);
    pt_tensor zero_point = pt_get_tensor(c, args[CHOOSE_QPARAMS_TENSOR_ZERO_POINT_OUT]);
    int32_t low = (int32_t)pt_get_int(c, args[CHOOSE_QPARAMS_TENSOR_QUANT_MIN]);
    int32_t high = (int32_t)pt_get_int(c, args[CHOOSE_QPARAMS_TENSOR_QUANT_MAX]);
    parameters p;
    PT_TRY(choose_row_qparams(c, in.data, pt_numel(&in), low, high, &p));
    *(double *)scale.data = p.scale;
    *(int64_t *)zero_point.data = p.zero_point;
    return PT_ERROR_OK;
}

const pt_kernel pt_quantized_decomposed_choose_qparams_Tensor_out =
    PT_KERNEL(qparams_check_tensor, run_tensor);

// ---- per token: (input, dtype, scale_out, zero_point_out); the range is that of int8 for any
// dtype

static int check_tokens(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[CHOOSE_QPARAMS_PER_TOKEN_ASYMMETRIC_INPUT]);
    pt_tensor scale = pt_get_tensor(c, args[CHOOSE_QPARAMS_PER_TOKEN_ASYMMETRIC_SCALE_OUT]);
    pt_tensor zero_point =
        pt_get_tensor(c, args[CHOOSE_QPARAMS_PER_TOKEN_ASYMMETRIC_ZERO_POINT_OUT]);
    PT_TRY(qparams_check_dtypes(c, &in, &scale, &zero_point));
    if (in.rank == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input must have a dim");
    }
    if (!(in.flags & scale.flags & zero_point.flags & PT_VALUE_CONTIGUOUS)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the tensors must be contiguous");
    }
    int32_t sizes[PT_MAX_RANK];
    for (uint32_t d = 0; d < in.rank; d++) {
        sizes[d] = d + 1 == in.rank ? 1 : in.sizes[d];
    }
    PT_TRY(pt_expect_sizes(c, args[CHOOSE_QPARAMS_PER_TOKEN_ASYMMETRIC_SCALE_OUT], in.rank, sizes));
    return pt_expect_sizes(c, args[CHOOSE_QPARAMS_PER_TOKEN_ASYMMETRIC_ZERO_POINT_OUT], in.rank,
                           sizes);
}

static int run_tokens(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[CHOOSE_QPARAMS_PER_TOKEN_ASYMMETRIC_INPUT]);
    pt_tensor scale = pt_get_tensor(c, args[CHOOSE_QPARAMS_PER_TOKEN_ASYMMETRIC_SCALE_OUT]);
    pt_tensor zero_point =
        pt_get_tensor(c, args[CHOOSE_QPARAMS_PER_TOKEN_ASYMMETRIC_ZERO_POINT_OUT]);
    int32_t tokens = pt_numel(&scale), row = in.sizes[in.rank - 1];
    const float *from = in.data;
    for (int32_t i = 0; i < tokens; i++, from += row) {
        parameters p;
        PT_TRY(choose_row_qparams(c, from, row, INT8_MIN, INT8_MAX, &p));
        ((double *)scale.data)[i] = p.scale;
        ((int64_t *)zero_point.data)[i] = p.zero_point;
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_quantized_decomposed_choose_qparams_per_token_asymmetric_out =
    PT_KERNEL(check_tokens, run_tokens);
