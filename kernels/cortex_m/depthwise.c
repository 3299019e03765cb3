// quantized_depthwise_conv2d: int8 depthwise convolution, NHWC, with weights (1, height, width,
// output channels). MVE: pt_convolve_depthwise. 3x3 with up to 3 outputs for each input channel:
// depthwise_planes.c. Other windows with several outputs: each input channel as a convolution, with
// transposed weights (pt_convolve_images), of as many outputs at a time as scratch holds. Else, or
// without scratch: pixel by pixel, by arch/dot.h or arch/depthwise_pixel.h.
#include "cortex_m/depthwise.h"
#include "arch/depthwise_pixel.h"
#include "arch/dot.h"
#include "core/generated/operator_arguments.h"
#include "cortex_m/image_parts.h"
#include <string.h>

static int read_depthwise(pt_context *c, const pt_ref *args, bool explicit_layout,
                          pt_convolution *x) {
    pt_tensor weights;
    const pt_ref scratch = args[QUANTIZED_DEPTHWISE_CONV2D_SCRATCH];
    PT_TRY(pt_begin_convolution(c, args, scratch, explicit_layout, x, &weights));
    PT_TRY(pt_read_int(c, args[QUANTIZED_DEPTHWISE_CONV2D_DEPTH_MULTIPLIER], 1, INT32_MAX,
                       &x->outputs));
    PT_TRY(pt_read_offset(c, args[QUANTIZED_DEPTHWISE_CONV2D_INPUT_OFFSET], &x->offset));
    PT_TRY(pt_read_output(c, args[QUANTIZED_DEPTHWISE_CONV2D_BIAS],
                          args + QUANTIZED_DEPTHWISE_CONV2D_OUTPUT_OFFSET, weights.sizes[3],
                          &x->output));
    if (weights.sizes[0] != 1 || (int64_t)x->outputs * x->in.channels != weights.sizes[3]) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "weights must be (1, height, width, channels * depth_multiplier)");
    }
    x->groups = x->in.channels;
    x->channels = 1;
    x->depth = weights.sizes[1] * weights.sizes[2];
    x->in_place = false;
    pt_measure_output(x, weights.sizes[3]);
    return PT_ERROR_OK;
}

// True if padding, the negative of the offset, is an int8, as patches require.
static bool pads_with_int8(const pt_convolution *x) {
    return x->offset >= -INT8_MAX && x->offset <= -INT8_MIN;
}

// ---- each input channel as a convolution

enum { TRANSPOSED_LIMIT = 6144, PADDED_LIMIT = 2048 };

// Returns the number of outputs of an input channel whose weights are transposed at once; 0 if it
// has one output, if the weights of one are too many, or if planes are used.
static int32_t outputs_at_once(const pt_convolution *x) {
    if (x->outputs == 1 || x->depth > TRANSPOSED_LIMIT || !pads_with_int8(x) ||
        pt_plane_scratch(x) != 0) {
        return 0;
    }
    const int32_t fit = TRANSPOSED_LIMIT / (x->depth > 0 ? x->depth : 1);
    return x->outputs <= fit ? x->outputs : fit < 4 ? fit : fit & ~3;
}

// Returns the bytes of the transposed weights.
static uint32_t transposed_bytes(const pt_convolution *x) {
    return ((uint32_t)(x->depth * outputs_at_once(x)) + 3) & ~3u;
}

static void transpose_weights(const pt_convolution *x, const int8_t *weights, int8_t *to) {
    int32_t outputs = x->out.channels, taps = x->depth;
    for (const int8_t *end = weights + x->outputs; weights != end; weights++) {
        const int8_t *from = weights;
        for (int32_t k = taps; k > 0; k--, from += outputs) {
            *to++ = *from;
        }
    }
}

// Returns the bytes of a padded channel of an image; 0 if they are too many for a copy.
static uint32_t padded_bytes(const pt_convolution *x) {
    const int32_t *padding = x->window.padding;
    int64_t bytes = (x->in.height + 2 * (int64_t)padding[PT_HEIGHT]) *
                    (x->in.width + 2 * (int64_t)padding[PT_WIDTH]);
    return bytes <= PADDED_LIMIT ? ((uint32_t)bytes + 3) & ~3u : 0;
}

// Copies the channel at `from` to the middle of an image that is larger by the padding.
static void pad_channel(const pt_image *in, const int8_t *from, const pt_image *to, int8_t value) {
    int32_t above = (to->height - in->height) / 2, before = (to->width - in->width) / 2;
    int8_t *row = to->data + above * to->width + before;
    memset(to->data, value, (size_t)(to->height * to->width));
    for (int32_t i = 0; i < in->height; i++, row += to->width) {
        for (int32_t j = 0; j < in->width; j++, from += in->channels) {
            row[j] = *from;
        }
    }
}

// Convolves x->outputs outputs of an input channel. padded: x->in is memory for a padded image.
static int convolve_channel(pt_convolution *x, const pt_image *in, int8_t *out, bool padded,
                            int8_t *scratch, uint32_t bytes) {
    for (int32_t i = 0; i < in->batch; i++) {
        int8_t *from = in->data + i * in->height * in->width * in->channels;
        if (padded) {
            pad_channel(in, from, &x->in, (int8_t)-x->offset);
        } else {
            x->in.data = from;
        }
        x->out.data = out + i * x->out.height * x->out.width * x->out.channels;
        PT_TRY(pt_convolve_images(x, scratch, bytes));
    }
    return PT_ERROR_OK;
}

// Convolves each input channel on its own; x describes the last one afterwards.
static __attribute__((noinline)) int depthwise_s8_run_channels(pt_convolution *x, int8_t *scratch,
                                                               uint32_t bytes) {
    pt_image in = x->in;
    const int8_t *weights = x->weights;
    int8_t *out = x->out.data;
    const int32_t outputs = x->outputs, at_once = outputs_at_once(x);
    uint32_t transposed = transposed_bytes(x), padded = padded_bytes(x);
    padded = padded + transposed + pt_min_scratch(x->depth) <= bytes ? padded : 0;
    if (padded) {
        int32_t *padding = x->window.padding;
        x->in = (pt_image){scratch + transposed, 1, in.height + 2 * padding[PT_HEIGHT],
                           in.width + 2 * padding[PT_WIDTH], 1};
        padding[PT_HEIGHT] = padding[PT_WIDTH] = 0;
    }
    x->groups = x->in.batch = 1;
    x->weights = scratch;
    for (int32_t channel = 0; channel < in.channels; channel++, in.data++) {
        for (int32_t left = outputs; left > 0; left -= x->outputs) {
            PT_TRY(pt_count_work(x->c, 1024));
            x->outputs = left < at_once ? left : at_once;
            transpose_weights(x, weights, scratch);
            PT_TRY(convolve_channel(x, &in, out, padded != 0, scratch + transposed + padded,
                                    bytes - transposed - padded));
            weights += x->outputs;
            out += x->outputs;
            x->output.bias += x->output.bias ? x->outputs : 0;
            x->output.multipliers += x->outputs;
            x->output.shifts += x->outputs;
        }
    }
    return PT_ERROR_OK;
}

// ---- arguments

// Return the minimum scratch, and the scratch with which the convolution is fastest.
static uint32_t min_scratch(const pt_convolution *x) {
    uint32_t transposed = transposed_bytes(x);
    return transposed ? transposed + pt_min_scratch(x->depth) : pt_plane_scratch(x);
}

static uint32_t useful_scratch(const pt_convolution *x) {
    uint32_t transposed = transposed_bytes(x);
    return transposed ? transposed + padded_bytes(x) + pt_useful_scratch(x->depth)
                      : pt_plane_scratch(x);
}

static int check_depthwise(pt_context *c, const pt_ref *args, bool explicit_layout) {
    pt_convolution x;
    PT_TRY(read_depthwise(c, args, explicit_layout, &x));
    PT_TRY(pt_expect_image(c, args[QUANTIZED_DEPTHWISE_CONV2D_OUT], explicit_layout, &x.out));
    uint8_t *scratch;
    const uint32_t bytes = pt_read_scratch(c, args[QUANTIZED_DEPTHWISE_CONV2D_SCRATCH], &scratch);
    uint32_t used = 0;
    if (bytes < min_scratch(&x)) {
        used = useful_scratch(&x);
        pt_use_scratch(c, used);
    }
    if (transposed_bytes(&x)) {
        used = bytes < useful_scratch(&x) ? useful_scratch(&x) : 0;
        if (used) {
            pt_prefer_scratch(c, used);
        }
        x.outputs = outputs_at_once(&x); // as the run calls them
        x.groups = x.in.channels = 1;
        pt_prefer_more(&x, (used + 7) & ~7u);
        pt_prefer_parts(&x, used);
    }
    return PT_ERROR_OK;
}

// ---- one pixel after the other

static bool uses_vectors(const pt_convolution *x) {
    return x->outputs == 1 && pt_supports_taps(&x->output, x->out.channels);
}

static pt_pixel_taps make_taps(const pt_convolution *x, const int8_t *in, const pt_span *rows,
                               const pt_span *columns) {
    const pt_window *w = &x->window;
    int32_t line = x->in.width * x->in.channels, outputs = x->out.channels;
    pt_pixel_taps p = {in, x->weights, rows->taps, columns->taps, .weight_step = outputs};
    p.in_step = (ptrdiff_t)w->dilation[PT_WIDTH] * x->in.channels;
    p.in_row = (ptrdiff_t)w->dilation[PT_HEIGHT] * line - p.columns * p.in_step;
    p.weight_row = (w->kernel[PT_WIDTH] - p.columns) * outputs;
    if (p.rows == 0 || p.columns == 0) {
        p.rows = 0;
        return p;
    }
    p.in += rows->start * line + columns->start * x->in.channels;
    p.weights += (rows->first * w->kernel[PT_WIDTH] + columns->first) * outputs;
    return p;
}

// Computes four channels from `o` on, one for each input channel.
static inline __attribute__((always_inline)) void
run_four(const pt_convolution *x, const pt_pixel_taps *p, int32_t o, bool aligned, int8_t *out) {
    pt_sums sums = {0, 0, 0, 0};
    const int8_t *in = p->in + o, *w = p->weights + o;
    ptrdiff_t in_step = p->in_step;
    int32_t weight_step = p->weight_step, offset = x->offset;
    for (int32_t i = p->rows; i > 0; i--) {
        for (int32_t k = p->columns; k > 0; k--) {
            pt_products_4(in, offset, w, aligned, &sums);
            in += in_step;
            w += weight_step;
        }
        in += p->in_row;
        w += p->weight_row;
    }
    int32_t all[4] = {sums.s0, sums.s1, sums.s2, sums.s3};
    for (int32_t j = 0; j < 4; j++) {
        int32_t sum = pt_add_int32(all[j], pt_bias_of(&x->output, o + j));
        out[o + j] = pt_finish(&x->output, o + j, sum);
    }
}

// Not inlined, so that each loop has all registers.
#define DEFINE_RUN_FOUR(name, aligned)                                                          \
    static __attribute__((noinline)) void name(const pt_convolution *x, const pt_pixel_taps *p, \
                                               int32_t o, int8_t *out) {                        \
        run_four(x, p, o, aligned, out);                                                        \
    }
DEFINE_RUN_FOUR(run_four_aligned, true)
DEFINE_RUN_FOUR(run_four_unaligned, false)

static void depthwise_s8_run_one(const pt_convolution *x, const pt_pixel_taps *p, int32_t input,
                                 int32_t o, int8_t *out) {
    uint32_t sum = (uint32_t)pt_bias_of(&x->output, o);
    const int8_t *in = p->in + input, *w = p->weights + o;
    for (int32_t i = p->rows; i > 0; i--) {
        for (int32_t k = p->columns; k > 0; k--) {
            sum += pt_product_of(*in + x->offset, *w);
            in += p->in_step;
            w += p->weight_step;
        }
        in += p->in_row;
        w += p->weight_row;
    }
    out[o] = pt_finish(&x->output, o, (int32_t)sum);
}

static void run_pixel(const pt_convolution *x, const pt_pixel_taps *p, bool vectors, int8_t *out) {
    int32_t outputs = x->out.channels, fours = x->outputs == 1 ? outputs & ~3 : 0, o = 0;
    if (vectors) {
        o = pt_multiply_taps(p, x->offset, &x->output, outputs, out);
    }
    uintptr_t addresses = (uintptr_t)x->weights | (uintptr_t)x->in.data | (uint32_t)outputs;
    if ((addresses & 3) == 0) {
        for (; o < fours; o += 4) {
            run_four_aligned(x, p, o, out);
        }
    }
    for (; PT_HAS_OWN_LOOPS && o < fours; o += 4) {
        run_four_unaligned(x, p, o, out);
    }
    for (int32_t input = o, rest = x->outputs; o < outputs; o++) {
        depthwise_s8_run_one(x, p, input, o, out);
        if (--rest == 0) {
            input++;
            rest = x->outputs;
        }
    }
}

static __attribute__((noinline)) int depthwise_s8_run_image(const pt_convolution *x,
                                                            const int8_t *in, int8_t *out) {
    const bool vectors = uses_vectors(x);
    for (int32_t i = 0; i < x->out.height; i++) {
        if (pt_skips_round()) {
            out += x->out.width * x->out.channels;
            continue;
        }
        pt_span rows = pt_clip_window(&x->window, PT_HEIGHT, i, x->in.height);
        for (int32_t j = 0; j < x->out.width; j++) {
            pt_span columns = pt_clip_window(&x->window, PT_WIDTH, j, x->in.width);
            pt_pixel_taps p = make_taps(x, in, &rows, &columns);
            PT_TRY(pt_count_product(x->c, x->out.channels, 1 + rows.taps * columns.taps));
            run_pixel(x, &p, vectors, out);
            out += x->out.channels;
        }
    }
    return PT_ERROR_OK;
}

typedef struct shared_image {
    const pt_convolution *x;
    const int8_t *in;
    int8_t *out;
} shared_image;

static int run_shared_image(pt_context *c, const void *task) {
    const shared_image *t = task;
    pt_convolution x = *t->x;
    x.c = c;
    return depthwise_s8_run_image(&x, t->in, t->out);
}

static int share_image(const pt_convolution *x, const int8_t *in, int8_t *out) {
    const shared_image t = {x, in, out};
    enum { TAP = 4 }; // steps of a tap, which takes as long as 4 products of other layers
    const int64_t row = (int64_t)x->out.width * x->out.channels * x->depth * TAP;
    return pt_shares(row * x->out.height, row) ? pt_share_loop(x->c, run_shared_image, &t, row)
                                               : depthwise_s8_run_image(x, in, out);
}

static bool depthwise_s8_convolve_part(pt_geometry *g, pt_gemm_s8 *layer, const int8_t *in,
                                       int8_t *out, void *block, uint32_t bytes) {
    pt_convolve_depthwise(g, layer, in, out, block, bytes);
    return true;
}

// Calls the ISA's loop over whole images.
static int run_images(const pt_convolution *x, void *scratch, uint32_t bytes) {
    const pt_window *w = &x->window;
    int32_t in_size = x->in.height * x->in.width * x->in.channels;
    int32_t out_size = x->out.height * x->out.width * x->out.channels;
    for (int32_t i = 0; i < x->in.batch; i++) {
        pt_geometry g = {.in = {x->in.height, x->in.width},
                         .out = {x->out.height, x->out.width},
                         .kernel = {w->kernel[0], w->kernel[1]},
                         .stride = {w->stride[0], w->stride[1]},
                         .padding = {w->padding[0], w->padding[1]},
                         .dilation = {w->dilation[0], w->dilation[1]},
                         .channels = x->outputs,
                         .pixel = x->in.channels};
        pt_gemm_s8 layer = {.weights = x->weights,
                            .depth = w->kernel[0] * w->kernel[1],
                            .channels = x->out.channels,
                            .offset = x->offset,
                            .output = x->output,
                            .out_stride = x->out.channels};
        bool done;
        PT_TRY(pt_convolve_in_parts(x->c, depthwise_s8_convolve_part, &g, &layer,
                                    x->in.data + i * in_size, x->out.data + i * out_size, bytes,
                                    scratch, &done));
    }
    return PT_ERROR_OK;
}

static int run_depthwise(pt_context *c, const pt_ref *args, bool explicit_layout) {
    pt_convolution x;
    PT_TRY(read_depthwise(c, args, explicit_layout, &x));
    if (x.out.batch == 0 || x.out.height == 0 || x.out.width == 0) {
        return PT_ERROR_OK;
    }
    const uint32_t needed = min_scratch(&x), useful = useful_scratch(&x);
    const bool has_useful = transposed_bytes(&x) && c->scratch_size >= useful;
    uint32_t bytes;
    void *scratch = pt_bind_scratch(&x, args + QUANTIZED_DEPTHWISE_CONV2D_SCRATCH,
                                    has_useful ? useful : needed, useful, 0, &bytes);
    if (PT_CONVOLVES_DEPTHWISE) {
        return run_images(&x, scratch, bytes); // of any size
    }
    if (needed && bytes >= needed && ((uintptr_t)scratch & 3) == 0 && !uses_vectors(&x)) {
        if (transposed_bytes(&x)) {
            if (PT_HAS_CONV_VARIANTS) {
                pt_set_variant_scratch(&x, scratch == c->scratch ? (bytes + 7) & ~7u : 0);
            }
            return depthwise_s8_run_channels(&x, scratch, bytes);
        }
        bool done = false;
        if (PT_HAS_OWN_LOOPS) { // without them planes are not worth their code
            PT_TRY(pt_run_planes(&x, scratch, &done));
        }
        if (done) {
            return PT_ERROR_OK;
        }
    }
    for (int32_t i = 0; i < x.in.batch; i++) {
        const int8_t *in = x.in.data + i * x.in.height * x.in.width * x.in.channels;
        int8_t *out = x.out.data + i * x.out.height * x.out.width * x.out.channels;
        PT_TRY(PT_HAS_THREADS ? share_image(&x, in, out) : depthwise_s8_run_image(&x, in, out));
    }
    return PT_ERROR_OK;
}

static int depthwise_s8_check(pt_context *c, const pt_ref *args) {
    return check_depthwise(c, args, false);
}

static int depthwise_s8_run(pt_context *c, const pt_ref *args) {
    return run_depthwise(c, args, false);
}

static int depthwise_s8_check_nhwc(pt_context *c, const pt_ref *args) {
    return check_depthwise(c, args, true);
}

static int depthwise_s8_run_nhwc(pt_context *c, const pt_ref *args) {
    return run_depthwise(c, args, true);
}

const pt_kernel pt_cortex_m_quantized_depthwise_conv2d_out =
    PT_KERNEL(depthwise_s8_check, depthwise_s8_run);
const pt_kernel pt_cortex_m_quantized_depthwise_conv2d_nhwc_out =
    PT_KERNEL(depthwise_s8_check_nhwc, depthwise_s8_run_nhwc);
