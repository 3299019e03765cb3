// quantized_transpose_conv2d: int8 transposed convolution, NHWC, with weights (output channels,
// height, width, channels). Each output sums the inputs that reach it, by pt_dot_1x4 of arch/dot.h:
// along a dim these are every stride-th tap, so that no other tap is tried. The reference sums in
// float32, which is exact, and equal to these sums, below 2^24.
#include "arch/dot.h"
#include "arch/gemm_s8.h"
#include "core/generated/operator_arguments.h"
#include "cortex_m/convolution.h"

typedef struct transposed {
    pt_context *c;
    pt_image in, out;
    const int8_t *weights;
    pt_window window;
    int32_t offset; // added to the input
    pt_channels output;
    bool scales_fast; // pt_scale covers all sums
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
    x->c = c;
    PT_TRY(pt_read_image(c, args[QUANTIZED_TRANSPOSE_CONV2D_INPUT], explicit_layout, &x->in));
    PT_TRY(pt_read_weights(c, args[QUANTIZED_TRANSPOSE_CONV2D_WEIGHT],
                           args[QUANTIZED_TRANSPOSE_CONV2D_SCRATCH], &weights));
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

// The taps that reach an output along a dim, `count` of them: the first is `tap`, from input `at`;
// from one to the next the tap rises by `tap_step`, and the input falls by `at_step`.
typedef struct taps {
    int32_t count, tap, at, tap_step, at_step;
} taps;

static int32_t greatest_divisor(int32_t a, int32_t b) {
    while (b != 0) {
        const int32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// Computes the steps along dim d: taps that reach the same output are apart by them.
static taps steps_along(const pt_window *w, uint32_t d) {
    const int32_t divisor = greatest_divisor(w->stride[d], w->dilation[d]);
    return (taps){.tap_step = w->stride[d] / divisor, .at_step = w->dilation[d] / divisor};
}

// a / b, for a of at least 0: nearly always in 32 bits.
static int64_t divide(int64_t a, int32_t b) {
    return a <= INT32_MAX ? (int32_t)a / b : a / b;
}

// Sets the taps that reach output `position`, of an input of `size` elements.
static void find_taps(const pt_window *w, uint32_t d, int32_t position, int32_t size, taps *t) {
    const int32_t stride = w->stride[d], dilation = w->dilation[d];
    const int64_t shifted = (int64_t)position + w->padding[d];
    const int64_t beyond = shifted - (int64_t)stride * (size - 1);
    int64_t tap =
        beyond > 0 ? divide(beyond + dilation - 1, dilation) : 0; // from an input below size
    int64_t left = shifted - tap * dilation;
    t->count = 0;
    for (int32_t i = 0; i < t->tap_step && tap < w->kernel[d] && left >= 0; i++, tap++) {
        const int64_t at = divide(left, stride);
        if (at * stride == left) {
            const int32_t taps_left = (w->kernel[d] - 1 - (int32_t)tap) / t->tap_step;
            const int32_t at_left = (int32_t)at / t->at_step;
            t->count = 1 + (taps_left < at_left ? taps_left : at_left);
            t->tap = (int32_t)tap;
            t->at = (int32_t)at;
            return;
        }
        left -= dilation;
    }
}

// Returns the taps that find_taps tries at most.
static int32_t tries_of(const pt_window *w, uint32_t d, const taps *t) {
    return w->kernel[d] < t->tap_step ? w->kernel[d] : t->tap_step;
}

static inline int8_t transposed_s8_finish(const transposed *x, int32_t o, int32_t sum) {
    const pt_channels *p = &x->output;
    const int32_t biased = pt_add_int32(sum, pt_bias_of(p, o));
    if (!x->scales_fast) {
        return pt_finish(p, o, biased);
    }
    const int32_t shift = p->shifts[o], rounding = pt_rounding(shift, p->range.offset);
    const int32_t scaled =
        pt_saturate_int8(pt_scale(2 * biased, p->multipliers[o], -shift, rounding));
    return (int8_t)pt_clamp(scaled, p->range.min, p->range.max);
}

// The taps that reach an output, in both dims: bytes from one to the next in weights and input.
typedef struct tap_grid {
    int32_t rows, columns;
    int32_t w_row, w_column, in_row, in_column;
    const int8_t *in, *w; // of the first
} tap_grid;

static tap_grid grid_of(const transposed *x, const int8_t *in, const taps *rows,
                        const taps *columns) {
    const int32_t channels = x->in.channels, width = x->window.kernel[PT_WIDTH];
    // The steps of a single tap, which may exceed 32 bits, are not taken.
    const bool has_rows = rows->count > 1, has_columns = columns->count > 1;
    return (tap_grid){.rows = columns->count > 0 ? rows->count : 0,
                      .columns = columns->count,
                      .w_row = has_rows ? rows->tap_step * width * channels : 0,
                      .w_column = has_columns ? columns->tap_step * channels : 0,
                      .in_row = has_rows ? rows->at_step * x->in.width * channels : 0,
                      .in_column = has_columns ? columns->at_step * channels : 0,
                      .in = in + (rows->at * x->in.width + columns->at) * channels,
                      .w = x->weights + (rows->tap * width + columns->tap) * channels};
}

// Sums the products of four output channels, `stride` bytes apart from w on. Not inlined, so that
// the loops have all registers.
static __attribute__((noinline)) void sum_taps(const tap_grid *g, const int8_t *w, int32_t stride,
                                               int32_t channels, int32_t offset, pt_sums *sums) {
    pt_sums all = {0, 0, 0, 0};
    const int8_t *in = g->in;
    for (int32_t i = g->rows; i > 0; i--, in -= g->in_row, w += g->w_row) {
        const int8_t *x = in, *v = w;
        for (int32_t j = g->columns; j > 0; j--, x -= g->in_column, v += g->w_column) {
            pt_dot_1x4(x, offset, v, stride, channels, &all);
        }
    }
    *sums = all;
}

// Computes the channels of an output four at a time; the last four may overlap the ones before. Of
// less than four each is computed as four equal ones.
static int transposed_s8_run_pixel(const transposed *x, const tap_grid *g, int32_t size,
                                   int8_t *out) {
    const int32_t channels = x->in.channels, outputs = x->out.channels;
    const int32_t n = outputs < 4 ? 1 : 4, stride = outputs < 4 ? 0 : size;
    const int64_t steps = (int64_t)(1 + g->rows * g->columns) * (8 + channels);
    const int32_t work = steps < PT_POLL_WORK ? (int32_t)steps : PT_POLL_WORK;
    for (int32_t o = 0; o < outputs; o += n) {
        const int32_t from = o < outputs - n ? o : outputs - n;
        pt_sums sums;
        PT_TRY(pt_count_work(x->c, work));
        sum_taps(g, g->w + from * size, stride, channels, x->offset, &sums);
        const int32_t all[4] = {sums.s0, sums.s1, sums.s2, sums.s3};
        for (int32_t j = 0; j < n; j++) {
            out[from + j] = transposed_s8_finish(x, from + j, all[j]);
        }
    }
    return PT_ERROR_OK;
}

static int transposed_s8_run_image(const transposed *x, const int8_t *in, int8_t *out) {
    const int32_t *kernel = x->window.kernel;
    const int32_t size = kernel[PT_HEIGHT] * kernel[PT_WIDTH] * x->in.channels;
    taps rows = steps_along(&x->window, PT_HEIGHT), columns = steps_along(&x->window, PT_WIDTH);
    const int32_t row_tries = tries_of(&x->window, PT_HEIGHT, &rows);
    const int32_t column_tries = tries_of(&x->window, PT_WIDTH, &columns);
    for (int32_t i = 0; i < x->out.height; i++) {
        PT_TRY(pt_count_work(x->c, row_tries));
        find_taps(&x->window, PT_HEIGHT, i, x->in.height, &rows);
        for (int32_t j = 0; j < x->out.width; j++, out += x->out.channels) {
            PT_TRY(pt_count_work(x->c, column_tries));
            find_taps(&x->window, PT_WIDTH, j, x->in.width, &columns);
            const tap_grid g = grid_of(x, in, &rows, &columns);
            PT_TRY(transposed_s8_run_pixel(x, &g, size, out));
        }
    }
    return PT_ERROR_OK;
}

static int run_transposed(pt_context *c, const pt_ref *args, bool explicit_layout) {
    transposed x;
    PT_TRY(read_transposed(c, args, explicit_layout, &x));
    int8_t *out = pt_get_data(c, args[QUANTIZED_TRANSPOSE_CONV2D_OUT]);
    const pt_gemm_s8 layer = {
        .depth = (int32_t)pt_product(
            (const int32_t[]){x.window.kernel[PT_HEIGHT], x.window.kernel[PT_WIDTH], x.in.channels},
            3),
        .channels = x.out.channels,
        .output = x.output};
    x.scales_fast = layer.depth >= 0 && pt_gemm_s8_scales_fast(&layer);
    for (int32_t i = 0; i < x.in.batch; i++) {
        PT_TRY(transposed_s8_run_image(&x, x.in.data + i * x.in.height * x.in.width * x.in.channels,
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
