// Convolution of int8 images with weights (output channels, height, width, channels of a group).
#include "convolution.h"
#include "../arch/dot.h"
#include <string.h>

typedef struct convolution {
    pt_image in, out;
    const int8_t *weights;
    pt_window window;
    int32_t offset; // added to the input; its negative is an int8
    int32_t groups; // each takes `channels` of the input, and gives `outputs` of the output
    int32_t channels;
    int32_t outputs;
    int32_t depth; // products of a sum
    bool in_place; // a patch is a pixel of the input
    pt_channels output;
} convolution;

// ---- arguments

int pt_read_output(pt_context *c, pt_ref bias, const pt_ref *args, int32_t n,
                   pt_channels *channels) {
    channels->bias = NULL;
    int error = pt_is_none(bias) ? PT_ERROR_OK : pt_read_channels(c, bias, n, &channels->bias);
    error = error ? error : pt_read_offset(c, args[0], &channels->range.offset);
    error = error ? error : pt_read_channels(c, args[1], n, &channels->multipliers);
    error = error ? error : pt_read_channels(c, args[2], n, &channels->shifts);
    return error ? error : pt_read_activation(c, args[3], args[4], &channels->range);
}

int pt_read_weights(pt_context *c, pt_ref arg, pt_tensor *weights) {
    static const uint8_t contiguous[4] = {0, 1, 2, 3};
    *weights = pt_get_tensor(c, arg);
    if (weights->rank != 4 || weights->dtype != PT_DTYPE_CHAR || pt_numel(weights) == 0 ||
        !pt_lies_in_order(weights, contiguous)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "weights must be int8 of 4 dims, contiguous and not empty");
    }
    return PT_ERROR_OK;
}

static int read_window(pt_context *c, const pt_ref *args, pt_window *w) {
    int error = pt_read_pair(c, args[0], 1, w->stride);
    error = error ? error : pt_read_pair(c, args[1], 0, w->padding);
    return error ? error : pt_read_pair(c, args[2], 1, w->dilation);
}

static int read_convolution(pt_context *c, const pt_ref *args, bool explicit_layout,
                            convolution *x) {
    pt_tensor weights;
    int error = pt_read_image(c, args[0], explicit_layout, &x->in);
    error = error ? error : pt_read_weights(c, args[1], &weights);
    error = error ? error : read_window(c, args + 3, &x->window);
    error = error ? error : pt_read_int(c, args[6], -INT8_MAX, -INT8_MIN, &x->offset);
    error = error ? error : pt_read_output(c, args[2], args + 7, weights.sizes[0], &x->output);
    if (error) {
        return error;
    }
    x->weights = weights.data;
    x->window.kernel[PT_HEIGHT] = weights.sizes[1];
    x->window.kernel[PT_WIDTH] = weights.sizes[2];
    x->channels = weights.sizes[3];
    x->groups = x->in.channels / x->channels;
    if (x->in.channels % x->channels || x->groups == 0 || weights.sizes[0] % x->groups) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "input and output channels are not multiples of the groups");
    }
    x->outputs = weights.sizes[0] / x->groups;
    x->depth = weights.sizes[1] * weights.sizes[2] * weights.sizes[3];
    const int32_t *padding = x->window.padding;
    x->in_place = x->depth == x->channels && (padding[PT_HEIGHT] | padding[PT_WIDTH]) == 0;
    x->out = (pt_image){NULL, x->in.batch, pt_count_windows(&x->window, PT_HEIGHT, x->in.height),
                        pt_count_windows(&x->window, PT_WIDTH, x->in.width), weights.sizes[0]};
    return PT_ERROR_OK;
}

// Bytes for the patch of a pixel.
static uint32_t patch_bytes(const convolution *x) {
    return x->in_place ? 0 : (uint32_t)x->depth;
}

static bool has_room(const pt_context *c, pt_ref scratch, uint32_t bytes) {
    pt_tensor t = pt_get_tensor(c, scratch);
    return (uint32_t)pt_numel(&t) * pt_element_size(t.dtype) >= bytes;
}

static int check_convolution(pt_context *c, const pt_ref *args, bool explicit_layout) {
    convolution x;
    int error = read_convolution(c, args, explicit_layout, &x);
    error = error ? error : pt_expect_image(c, args[13], explicit_layout, &x.out);
    if (!error && !has_room(c, args[12], patch_bytes(&x))) {
        pt_ask_scratch(c, patch_bytes(&x));
    }
    return error;
}

// ---- patches

// A row of a patch: taps[PT_WIDTH] pixels from `in` on, the rest padding.
static void copy_row(const convolution *x, const int8_t *in, const pt_span *columns, int8_t *to) {
    int32_t size = x->channels, kernel = x->window.kernel[PT_WIDTH];
    int32_t step = x->window.dilation[PT_WIDTH] * x->in.channels;
    int32_t before = columns->first * size, inside = columns->taps * size;
    memset(to, -x->offset, (size_t)before);
    if (step == size) {
        memcpy(to + before, in, (size_t)inside);
    } else {
        for (int32_t i = 0; i < columns->taps; i++) {
            memcpy(to + before + i * size, in + i * step, (size_t)size);
        }
    }
    memset(to + before + inside, -x->offset, (size_t)(kernel * size - before - inside));
}

// The patch of the output at (row, column) in the group whose first channel is at `in`.
static const int8_t *make_patch(const convolution *x, const int8_t *in, int32_t row, int32_t column,
                                int8_t *patch) {
    const pt_window *w = &x->window;
    int32_t line = x->in.width * x->in.channels;
    if (x->in_place) {
        return in + row * w->stride[PT_HEIGHT] * line +
               column * w->stride[PT_WIDTH] * x->in.channels;
    }
    pt_span rows = pt_clip_window(w, PT_HEIGHT, row, x->in.height);
    pt_span columns = pt_clip_window(w, PT_WIDTH, column, x->in.width);
    int32_t size = w->kernel[PT_WIDTH] * x->channels;
    int32_t after = w->kernel[PT_HEIGHT] - rows.first - rows.taps;
    int8_t *to = patch;
    if (rows.taps == 0 || columns.taps == 0) {
        memset(patch, -x->offset, (size_t)x->depth);
        return patch;
    }
    memset(to, -x->offset, (size_t)(rows.first * size));
    to += rows.first * size;
    in += rows.start * line + columns.start * x->in.channels;
    for (int32_t i = 0; i < rows.taps; i++) {
        copy_row(x, in, &columns, to);
        to += size;
        in += w->dilation[PT_HEIGHT] * line;
    }
    memset(to, -x->offset, (size_t)(after * size));
    return patch;
}

// ---- products

// One pixel of one group: channels from `first` on, four at a time, and the rest singly, as four of
// which one counts.
static void multiply_patch(const convolution *x, const int8_t *patch, int32_t first, int8_t *out) {
    int32_t end = first + x->outputs, n = 4, stride = x->depth;
    for (int32_t o = first; o < end; o += n) {
        if (end - o < 4) {
            n = 1, stride = 0;
        }
        pt_sums sums = {0, 0, 0, 0};
        pt_dot_1x4(patch, x->offset, x->weights + o * x->depth, stride, x->depth, &sums);
        int32_t all[4] = {sums.s0, sums.s1, sums.s2, sums.s3};
        for (int32_t i = 0; i < n; i++) {
            int32_t sum = pt_add_int32(all[i], pt_bias_of(&x->output, o + i));
            out[o + i] = pt_finish(&x->output, o + i, sum);
        }
    }
}

static void convolve_image(const convolution *x, const int8_t *in, int8_t *out, int8_t *scratch) {
    for (int32_t i = 0; i < x->out.height; i++) {
        for (int32_t j = 0; j < x->out.width; j++) {
            for (int32_t g = 0; g < x->groups; g++) {
                const int8_t *patch = make_patch(x, in + g * x->channels, i, j, scratch);
                multiply_patch(x, patch, g * x->outputs, out);
            }
            out += x->out.channels;
        }
    }
}

static int run_convolution(pt_context *c, const pt_ref *args, bool explicit_layout) {
    convolution x;
    int error = read_convolution(c, args, explicit_layout, &x);
    int8_t *scratch = has_room(c, args[12], patch_bytes(&x)) ? pt_get_tensor(c, args[12]).data
                                                             : (void *)c->scratch;
    int8_t *out = pt_get_tensor(c, args[13]).data;
    for (int32_t i = 0; i < x.in.batch; i++) {
        convolve_image(&x, x.in.data + i * x.in.height * x.in.width * x.in.channels,
                       out + i * x.out.height * x.out.width * x.out.channels, scratch);
    }
    return error;
}

static int check(pt_context *c, const pt_ref *args) {
    return check_convolution(c, args, false);
}

static int run(pt_context *c, const pt_ref *args) {
    return run_convolution(c, args, false);
}

static int check_nhwc(pt_context *c, const pt_ref *args) {
    return check_convolution(c, args, true);
}

static int run_nhwc(pt_context *c, const pt_ref *args) {
    return run_convolution(c, args, true);
}

const pt_kernel pt_cortex_m_quantized_conv2d_out = {check, run};
const pt_kernel pt_cortex_m_quantized_conv2d_nhwc_out = {check_nhwc, run_nhwc};
