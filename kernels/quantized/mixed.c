// Matrix products of a floating input and an int8 weight with scales, without zero points. Input,
// scales and output are float32, float16 or bfloat16, computed in float32. Input and scales have
// the same dtype; the output of mixed_mm has it, too.
#include "core/generated/operator_arguments.h"
#include "portable/half.h"
#include "quantized/affine.h"

// Returns the bytes to convert an input row and the scales to float32; 0 if they are float32.
static uint32_t mixed_scratch(const pt_tensor *in, const pt_tensor *scales) {
    const uint32_t floats = (uint32_t)pt_numel(scales) + (uint32_t)in->sizes[1];
    return in->dtype == PT_DTYPE_FLOAT ? 0 : floats * (uint32_t)sizeof(float);
}

// Checks all of (input, weight, scales, zero_points, [dtype,] out), except for their sizes.
static int mixed_check(pt_context *c, const pt_ref *args, pt_ref dtype, const pt_tensor *out) {
    pt_tensor in = pt_get_tensor(c, args[MIXED_MM_INPUT]);
    pt_tensor weight = pt_get_tensor(c, args[MIXED_MM_WEIGHT]);
    pt_tensor scales = pt_get_tensor(c, args[MIXED_MM_WEIGHT_SCALES]);
    if (!pt_is_none(args[MIXED_MM_WEIGHT_ZERO_POINTS])) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "no zero points of the weight");
    }
    if (weight.dtype != PT_DTYPE_CHAR) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "weight must be int8");
    }
    if (in.rank != 2 || weight.rank != 2) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "input and weight must have 2 dims");
    }
    if (!(in.flags & weight.flags & scales.flags & out->flags & PT_VALUE_CONTIGUOUS)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the tensors must be contiguous");
    }
    PT_TRY(pt_check_real(c, &in));
    PT_TRY(pt_check_real_output(c, out, dtype));
    if (scales.dtype != in.dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "scales must have the dtype of the input");
    }
    pt_request_scratch(c, mixed_scratch(&in, &scales));
    return PT_ERROR_OK;
}

// Returns elements `first` to `first` + n as float32: the elements in place, or a copy in `buffer`.
static const float *as_floats(const pt_tensor *t, int32_t first, int32_t n, float *buffer) {
    if (t->dtype == PT_DTYPE_FLOAT) {
        return (const float *)t->data + first;
    }
    pt_read_halves(buffer, t->data, first, 1, n, t->dtype);
    return buffer;
}

// ---- mixed_mm: out[i, j] = sum over k of input[i, k] * weight[k, j] * scales[k]

static int mixed_check_mm(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[MIXED_MM_INPUT]);
    pt_tensor weight = pt_get_tensor(c, args[MIXED_MM_WEIGHT]);
    pt_tensor scales = pt_get_tensor(c, args[MIXED_MM_WEIGHT_SCALES]);
    pt_tensor out = pt_get_tensor(c, args[MIXED_MM_OUT]);
    PT_TRY(mixed_check(c, args, 0, &out));
    if (out.dtype != in.dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output must have the input's dtype");
    }
    if (in.sizes[1] != weight.sizes[0] || scales.rank != 1 || scales.sizes[0] != weight.sizes[0]) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "input must have a column, and scales an element, for each row of weight");
    }
    int32_t sizes[2] = {in.sizes[0], weight.sizes[1]};
    return pt_expect_sizes(c, args[MIXED_MM_OUT], 2, sizes);
}

static int mixed_run_mm(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[MIXED_MM_INPUT]);
    pt_tensor weight = pt_get_tensor(c, args[MIXED_MM_WEIGHT]);
    pt_tensor scale = pt_get_tensor(c, args[MIXED_MM_WEIGHT_SCALES]);
    pt_tensor out = pt_get_tensor(c, args[MIXED_MM_OUT]);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    int32_t terms = weight.sizes[0], columns = weight.sizes[1], to = 0;
    void *scratch;
    PT_TRY(pt_get_scratch(c, mixed_scratch(&in, &scale), &scratch));
    float *buffer = scratch;
    const float *scales = as_floats(&scale, 0, terms, buffer + terms);
    for (int32_t i = 0; i < in.sizes[0]; i++) {
        const float *row = as_floats(&in, i * terms, terms, buffer);
        for (int32_t j = 0; j < columns; j++) {
            const int8_t *column = (const int8_t *)weight.data + j;
            float sum = 0;
            for (int32_t k = 0; k < terms;) {
                const int32_t end = terms - k < PT_PIECE ? terms : k + PT_PIECE;
                PT_TRY(pt_count_work(c, end - k));
                for (; k < end; k++, column += columns) {
                    sum += row[k] * (float)*column * scales[k];
                }
            }
            pt_store_float(out.data, to++, out.dtype, sum);
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_quantized_decomposed_mixed_mm_out = PT_KERNEL(mixed_check_mm, mixed_run_mm);

// ---- mixed_linear: out[i, j] = sum over groups g of scales[j, g] times the sum over k in g of
// input[i, k] * weight[j, k]

// Returns the columns of a group, of which the last one may have fewer; 0 if the numbers of columns
// and groups do not match.
static int32_t size_of_group(const pt_tensor *weight, const pt_tensor *scales) {
    int32_t terms = weight->sizes[1], groups = scales->rank == 2 ? scales->sizes[1] : 1;
    if (groups <= 0 || terms == 0) {
        return groups > 0;
    }
    int32_t size = (int32_t)(((int64_t)terms + groups - 1) / groups);
    return ((int64_t)terms + size - 1) / size == groups ? size : 0;
}

static int mixed_check_linear(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[MIXED_LINEAR_INPUT]);
    pt_tensor weight = pt_get_tensor(c, args[MIXED_LINEAR_WEIGHT]);
    pt_tensor scales = pt_get_tensor(c, args[MIXED_LINEAR_WEIGHT_SCALES]);
    pt_tensor out = pt_get_tensor(c, args[MIXED_LINEAR_OUT]);
    PT_TRY(mixed_check(c, args, args[MIXED_LINEAR_DTYPE], &out));
    if (in.sizes[1] != weight.sizes[1] || (scales.rank != 1 && scales.rank != 2) ||
        scales.sizes[0] != weight.sizes[0] || size_of_group(&weight, &scales) == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "input must have weight's columns, scales its rows, and groups that fit");
    }
    int32_t sizes[2] = {in.sizes[0], weight.sizes[0]};
    return pt_expect_sizes(c, args[MIXED_LINEAR_OUT], 2, sizes);
}

static int sum_groups(pt_context *c, const float *in, const int8_t *weight, const float *scales,
                      int32_t terms, int32_t group, float *to) {
    float sum = 0;
    for (int32_t k = 0; k < terms;) {
        int32_t end = terms - k > group ? k + group : terms;
        float part = 0;
        while (k < end) {
            const int32_t stop = end - k < PT_PIECE ? end : k + PT_PIECE;
            PT_TRY(pt_count_work(c, stop - k));
            for (; k < stop; k++) {
                part += in[k] * (float)weight[k];
            }
        }
        sum += part * *scales++;
    }
    *to = sum;
    return PT_ERROR_OK;
}

static int mixed_run_linear(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[MIXED_LINEAR_INPUT]);
    pt_tensor weight = pt_get_tensor(c, args[MIXED_LINEAR_WEIGHT]);
    pt_tensor scales = pt_get_tensor(c, args[MIXED_LINEAR_WEIGHT_SCALES]);
    pt_tensor out = pt_get_tensor(c, args[MIXED_LINEAR_OUT]);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    int32_t terms = weight.sizes[1], groups = scales.rank == 2 ? scales.sizes[1] : 1;
    int32_t group = size_of_group(&weight, &scales), to = 0;
    void *scratch;
    PT_TRY(pt_get_scratch(c, mixed_scratch(&in, &scales), &scratch));
    float *buffer = scratch;
    const float *scale = as_floats(&scales, 0, pt_numel(&scales), buffer + terms);
    for (int32_t i = 0; i < in.sizes[0]; i++) {
        const float *row = as_floats(&in, i * terms, terms, buffer);
        for (int32_t j = 0; j < weight.sizes[0]; j++) {
            float sum;
            PT_TRY(sum_groups(c, row, (const int8_t *)weight.data + j * terms, scale + j * groups,
                              terms, group, &sum));
            pt_store_float(out.data, to++, out.dtype, sum);
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_quantized_decomposed_mixed_linear_out =
    PT_KERNEL(mixed_check_linear, mixed_run_linear);
