// quantized_transpose_conv2d: int8 transposed convolution, NHWC, with weights (output channels,
// height, width, channels). Each output gathers the inputs that reach it, by pt_dot_1x4 of
// arch/dot.h. The reference sums in float32, which is exact, and equal to these sums, below 2^24.
#include "arch/dot.h"
#include "core/generated/operator_arguments.h"
#include "cortex_m/convolution.h"

typedef struct transposed {
    pt_image in, out;
    const int8_t *weights;
    pt_window window;
    int32_t offset; // added to the input
    pt_channels output;
} transposed;

// Returns the size of the output along dim d; below 1 if it is empty. The caller rejects more than
// 2^31 - 1.
static int64_t transposed_s8_count_outputs(const pt_window *w, uint32_t d, const int32_t *padding,
                                           int32_t size) {
    return ((int64_t)size - 1) * w->stride[d] - 2 * (int64_t)w->padding[d] +
           (int64_t)w->dilation[d] * (w->kernel[d] - 1) + padding[d] + 1;
}

static int read_transposed(pt_context *c, const pt_ref *args, bool explicit_layout, transposed *x) {
    pt_tensor weights;
    pt_window *w = &x->window;
    int32_t padding[2];
    PT_TRY(pt_read_image(c, args[QUANTIZED_TRANSPOSE_CONV2D_INPUT], explicit_layout, &x->in));
    PT_TRY(pt_read_weights(c, args[QUANTIZED_TRANSPOSE_CONV2D_WEIGHT], &weights));
    PT_TRY(pt_read_pair(c, args[QUANTIZED_TRANSPOSE_CONV2D_STRIDE], 1, w->stride));
    PT_TRY(pt_read_pair(c, args[QUANTIZED_TRANSPOSE_CONV2D_PADDING], 0, w->padding));
    PT_TRY(pt_read_pair(c, args[QUANTIZED_TRANSPOSE_CONV2D_OUTPUT_PADDING], 0, padding));
    PT_TRY(pt_read_pair(c, args[QUANTIZED_TRANSPOSE_CONV2D_DILATION], 1, w->dilation));
    PT_TRY(pt_read_offset(c, args[QUANTIZED_TRANSPOSE_CONV2D_INPUT_OFFSET], &x->offset));
    PT_TRY(pt_read_output(c, args[QUANTIZED_TRANSPOSE_CONV2D_BIAS],
                          args + QUANTIZED_TRANSPOSE_CONV2D_OUTPUT_OFFSET, weights.sizes[0],
                          &x->output));
    if (weights.sizes[3] != x->in.channels) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                       "weights must have the input's channels: there are no groups");
    }
    x->weights = weights.data;
    w->kernel[PT_HEIGHT] = weights.sizes[1];
    w->kernel[PT_WIDTH] = weights.sizes[2];
    int64_t height = transposed_s8_count_outputs(w, PT_HEIGHT, padding, x->in.height);
    int64_t width = transposed_s8_count_outputs(w, PT_WIDTH, padding, x->in.width);
    if (height < 1 || width < 1 || height > PT_MEMORY_LIMIT || width > PT_MEMORY_LIMIT) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output has no element, or too many");
    }
    x->out = (pt_image){NULL, x->in.batch, (int32_t)height, (int32_t)width, weights.sizes[0]};
    return PT_ERROR_OK;
}

static int check_transposed(pt_context *c, const pt_ref *args, bool explicit_layout) {
    transposed x;
    PT_TRY(read_transposed(c, args, explicit_layout, &x));
    return pt_expect_image(c, args[QUANTIZED_TRANSPOSE_CONV2D_OUT], explicit_layout, &x.out);
}

// Returns the input along dim d that reaches output `position` through tap `tap`; -1 for none.
static int32_t source(const pt_window *w, uint32_t d, int32_t position, int32_t tap, int32_t size) {
    int64_t strided = position + w->padding[d] - (int64_t)tap * w->dilation[d];
    if (strided < 0 || strided % w->stride[d]) {
        return -1;
    }
    int64_t at = strided / w->stride[d];
    return at < size ? (int32_t)at : -1;
}

// Computes n channels from `o` on of the output at (row, column): 4, or 1 as four equal ones.
static int transposed_s8_run_channels(pt_context *c, const transposed *x, const int8_t *in,
                                      int32_t row, int32_t column, int32_t o, int32_t n,
                                      int8_t *out) {
    const int32_t *kernel = x->window.kernel;
    int32_t channels = x->in.channels, taps = kernel[PT_HEIGHT] * kernel[PT_WIDTH];
    int32_t stride = n == 4 ? taps * channels : 0;
    const int8_t *w = x->weights + o * taps * channels;
    pt_sums sums = {0, 0, 0, 0};
    for (int32_t i = 0; i < taps; i++, w += channels) {
        PT_TRY(pt_count_work(c, 8 + channels));
        int32_t from_row = source(&x->window, PT_HEIGHT, row, i / kernel[PT_WIDTH], x->in.height);
        int32_t from_column =
            source(&x->window, PT_WIDTH, column, i % kernel[PT_WIDTH], x->in.width);
        if (from_row >= 0 && from_column >= 0) {
            const int8_t *from = in + (from_row * x->in.width + from_column) * channels;
            pt_dot_1x4(from, x->offset, w, stride, channels, &sums);
        }
    }
    int32_t all[4] = {sums.s0, sums.s1, sums.s2, sums.s3};
    for (int32_t j = 0; j < n; j++) {
        int32_t sum = pt_add_int32(all[j], pt_bias_of(&x->output, o + j));
        out[o + j] = pt_finish(&x->output, o + j, sum);
    }
    return PT_ERROR_OK;
}

static int transposed_s8_run_image(pt_context *c, const transposed *x, const int8_t *in,
                                   int8_t *out) {
    for (int32_t i = 0; i < x->out.height; i++) {
        for (int32_t j = 0; j < x->out.width; j++) {
            int32_t o = 0;
            for (; o + 4 <= x->out.channels; o += 4) {
                PT_TRY(transposed_s8_run_channels(c, x, in, i, j, o, 4, out));
            }
            for (; o < x->out.channels; o++) {
                PT_TRY(transposed_s8_run_channels(c, x, in, i, j, o, 1, out));
            }
            out += x->out.channels;
        }
    }
    return PT_ERROR_OK;
}

static int run_transposed(pt_context *c, const pt_ref *args, bool explicit_layout) {
    transposed x;
    PT_TRY(read_transposed(c, args, explicit_layout, &x));
    int8_t *out = pt_get_tensor(c, args[QUANTIZED_TRANSPOSE_CONV2D_OUT]).data;
    for (int32_t i = 0; i < x.in.batch; i++) {
        PT_TRY(transposed_s8_run_image(c, &x,
                                       x.in.data + i * x.in.height * x.in.width * x.in.channels,
                                       out + i * x.out.height * x.out.width * x.out.channels));
    }
    return PT_ERROR_OK;
}

static int transposed_s8_check(pt_context *c, const pt_ref *args) {
    return check_transposed(c, args, false);
}

static int transposed_s8_run(pt_context *c, const pt_ref *args) {
    return run_transposed(c, args, false);
}

static int transposed_s8_check_nhwc(pt_context *c, const pt_ref *args) {
    return check_transposed(c, args, true);
}

static int transposed_s8_run_nhwc(pt_context *c, const pt_ref *args) {
    return run_transposed(c, args, true);
}

const pt_kernel pt_cortex_m_quantized_transpose_conv2d_out =
    PT_KERNEL(transposed_s8_check, transposed_s8_run);
const pt_kernel pt_cortex_m_quantized_transpose_conv2d_nhwc_out =
    PT_KERNEL(transposed_s8_check_nhwc, transposed_s8_run_nhwc);
