// quantized_conv2d: int8 convolution, NHWC, grouped, with weights (output channels, height, width,
// channels of a group). Tries the variants of arch/conv_variants.h, then pt_convolve
// (dsp/conv_strip.c, mve/conv_s8.c), then im2col and GEMM (arch/gemm_s8.h); 1x1 patches are read
// from the input by pt_multiply_rows. Without scratch: plain C.
#include "cortex_m/convolution.h"
#include "arch/conv_variants.h"
#include "arch/pack/pack.h"
#include "core/generated/operator_arguments.h"
#include "cortex_m/image_parts.h"

enum { PACKED_LIMIT = 1 << 24 }; // weights of a layer

typedef pt_convolution convolution;

// ---- arguments

// Positions of arguments behind the output's offset, in all convolutions.
enum {
    MULTIPLIERS = QUANTIZED_CONV2D_REQUANTIZE_MULTIPLIERS - QUANTIZED_CONV2D_OUTPUT_OFFSET,
    SHIFTS = QUANTIZED_CONV2D_REQUANTIZE_SHIFTS - QUANTIZED_CONV2D_OUTPUT_OFFSET,
    ACTIVATION_MIN = QUANTIZED_CONV2D_ACTIVATION_MIN - QUANTIZED_CONV2D_OUTPUT_OFFSET,
    ACTIVATION_MAX = QUANTIZED_CONV2D_ACTIVATION_MAX - QUANTIZED_CONV2D_OUTPUT_OFFSET,
};

int pt_read_output(pt_context *c, pt_ref bias, const pt_ref *args, int32_t n,
                   pt_channels *channels) {
    channels->bias = NULL;
    PT_TRY(pt_is_none(bias) ? PT_ERROR_OK : pt_read_channels(c, bias, n, &channels->bias));
    PT_TRY(pt_read_offset(c, *args, &channels->range.offset));
    PT_TRY(pt_read_channels(c, args[MULTIPLIERS], n, &channels->multipliers));
    PT_TRY(pt_read_channels(c, args[SHIFTS], n, &channels->shifts));
    return pt_read_activation(c, args[ACTIVATION_MIN], args[ACTIVATION_MAX], &channels->range);
}

int pt_read_weights(pt_context *c, pt_ref arg, pt_ref scratch, pt_tensor *weights) {
    static const uint8_t contiguous[4] = {0, 1, 2, 3};
    *weights = pt_get_tensor(c, arg);
    if (weights->rank != 4 || weights->dtype != PT_DTYPE_CHAR || pt_numel(weights) == 0 ||
        !(pt_is_none(scratch) || pt_lies_in_order(weights, contiguous))) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "weights must be int8 of 4 dims, contiguous and not empty");
    }
    return PT_ERROR_OK;
}

int pt_begin_convolution(pt_context *c, const pt_ref *args, pt_ref scratch, bool explicit_layout,
                         convolution *x, pt_tensor *weights) {
    pt_window *w = &x->window;
    x->c = c;
    x->packed = NULL;
    x->variant_scratch = NULL;
    x->is_left_out = false;
    PT_TRY(pt_read_image(c, args[QUANTIZED_CONV2D_INPUT], explicit_layout, &x->in));
    PT_TRY(pt_read_weights(c, args[QUANTIZED_CONV2D_WEIGHT], scratch, weights));
    PT_TRY(pt_read_pair(c, args[QUANTIZED_CONV2D_STRIDE], 1, w->stride));
    PT_TRY(pt_read_pair(c, args[QUANTIZED_CONV2D_PADDING], 0, w->padding));
    PT_TRY(pt_read_pair(c, args[QUANTIZED_CONV2D_DILATION], 1, w->dilation));
    x->weights = weights->data;
    w->kernel[PT_HEIGHT] = weights->sizes[1];
    w->kernel[PT_WIDTH] = weights->sizes[2];
    return PT_ERROR_OK;
}

void pt_measure_output(convolution *x, int32_t channels) {
    x->out = (pt_image){NULL, x->in.batch, pt_count_windows(&x->window, PT_HEIGHT, x->in.height),
                        pt_count_windows(&x->window, PT_WIDTH, x->in.width), channels};
    pt_limit_steps(&x->window, &x->in, &x->out);
}

static int read_convolution(pt_context *c, const pt_ref *args, bool explicit_layout,
                            convolution *x) {
    pt_tensor weights;
    const pt_ref scratch = args[QUANTIZED_CONV2D_SCRATCH];
    PT_TRY(pt_begin_convolution(c, args, scratch, explicit_layout, x, &weights));
    PT_TRY(pt_read_int(c, args[QUANTIZED_CONV2D_INPUT_OFFSET], -INT8_MAX, -INT8_MIN, &x->offset));
    PT_TRY(pt_read_output(c, args[QUANTIZED_CONV2D_BIAS], args + QUANTIZED_CONV2D_OUTPUT_OFFSET,
                          weights.sizes[0], &x->output));
    x->channels = weights.sizes[3];
    x->groups = x->in.channels / x->channels;
    if (x->in.channels % x->channels || x->groups == 0 || weights.sizes[0] % x->groups) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "input and output channels are not multiples of the groups");
    }
    x->outputs = weights.sizes[0] / x->groups;
    x->depth = (int32_t)pt_product(weights.sizes + 1, 3);
    const int32_t *padding = x->window.padding;
    x->in_place = x->depth == x->channels && (padding[PT_HEIGHT] | padding[PT_WIDTH]) == 0;
    pt_measure_output(x, weights.sizes[0]);
    return PT_ERROR_OK;
}

uint32_t pt_read_scratch(const pt_context *c, pt_ref arg, uint8_t **data) {
    if (pt_is_none(arg)) {
        *data = NULL;
        return 0;
    }
    const pt_tensor t = pt_get_tensor(c, arg);
    *data = t.data;
    return pt_nbytes(&t);
}

// Returns the bytes of useful scratch beyond pt_useful_scratch.
static uint32_t useful_table(const convolution *x) {
    return x->in_place ? pt_useful_table(x->out.channels) : 0;
}

static __attribute__((noinline)) pt_gemm_s8 layer_of(const convolution *x) {
    return (pt_gemm_s8){.weights = x->weights,
                        .depth = x->depth,
                        .channels = x->groups * x->outputs,
                        .offset = x->offset,
                        .output = x->output,
                        .out_stride = x->out.channels,
                        .core = x->c->core,
                        .packed = x->packed};
}

static __attribute__((noinline)) pt_geometry geometry_of(const convolution *x) {
    const pt_window *w = &x->window;
    return (pt_geometry){.in = {x->in.height, x->in.width},
                         .out = {x->out.height, x->out.width},
                         .kernel = {w->kernel[0], w->kernel[1]},
                         .stride = {w->stride[0], w->stride[1]},
                         .padding = {w->padding[0], w->padding[1]},
                         .dilation = {w->dilation[0], w->dilation[1]},
                         .channels = x->channels,
                         .pixel = x->in.channels};
}

// Prefers the scratch of the first variant that supports this convolution. Not inlined: no other
// part of a check needs its stack.
static __attribute__((noinline)) void prefer_variant(const pt_convolution *x, uint32_t used) {
    const pt_geometry g = geometry_of(x);
    const pt_gemm_s8 layer = layer_of(x);
    uint32_t bytes = 0;
    for (uint8_t i = 0; i < PT_CONV_VARIANTS && !bytes; i++) {
        bytes = pt_build_conv_variants[i] ? pt_build_conv_variants[i]->scratch(&g, &layer) : 0;
#if PT_HAS_ANY_CORE
        x->c->conv_variants |= bytes ? (uint8_t)(1u << i) : 0;
#endif
        if (bytes && pt_prefers_for(x->c) == PT_CORE_DSP) {
            pt_prefer_scratch(x->c, used + bytes);
        }
    }
}

// Returns the bytes of scratch with which the core's loops are fastest.
static uint32_t max_of_loops(const pt_convolution *x, uint8_t core) {
    return pt_max_scratch(core, x->depth, x->outputs, x->out.height * x->out.width);
}

// True if the v6m loops need no more scratch, since weights are packed.
static bool needs_no_more(const pt_convolution *x, uint8_t core, bool packed) {
    return packed && core == PT_CORE_V6M && pt_v6m_uses_packed(x->depth);
}

void pt_prefer_more(const pt_convolution *x, uint32_t used) {
    const uint32_t bytes = max_of_loops(x, pt_prefers_for(x->c));
    if (bytes) {
        pt_prefer_scratch(x->c, used + bytes);
    }
    if (PT_HAS_CONV_VARIANTS) {
        prefer_variant(x, used);
    }
}

enum { MAX_CHANNEL_WORDS = 2048 }; // words for the weights of channels, of temp memory

// DSP cores widen the weights of rows that are no multiples of 4, for as many channels at a time as
// fit, and gather the patches again for each part.
void pt_prefer_parts(const pt_convolution *x, uint32_t used) {
    const uint32_t channel = (((uint32_t)x->depth + 3) & ~3u) / 2; // words
    const uint32_t even = ((uint32_t)x->outputs + 1) & ~1u;
    const uint32_t max = MAX_CHANNEL_WORDS / channel & ~1u;
    const uint32_t words = channel * (even < max ? even : max);
    if (pt_prefers_for(x->c) == PT_CORE_DSP && (x->depth & 3) != 0 &&
        words > PT_DSP_CHANNEL_WORDS) {
        pt_prefer_scratch(x->c, used + words * (uint32_t)sizeof(uint32_t));
    }
}

void pt_set_variant_scratch(pt_convolution *x, uint32_t used) {
    const pt_context *c = x->c;
    if (c->scratch_size > used) {
        x->variant_scratch = c->scratch + used;
        x->variant_bytes = c->scratch_size - used;
    }
}

static bool conv_s8_is_constant(const pt_context *c, pt_ref arg) {
    return pt_is_none(arg) || (pt_get_tensor(c, arg).flags & PT_VALUE_CONSTANT);
}

// The arguments that packed weights replace.
static const uint8_t packed_arguments[] = {QUANTIZED_CONV2D_WEIGHT, QUANTIZED_CONV2D_BIAS,
                                           QUANTIZED_CONV2D_REQUANTIZE_MULTIPLIERS,
                                           QUANTIZED_CONV2D_REQUANTIZE_SHIFTS};

static bool has_constant_weights(const pt_context *c, const pt_ref *args, bool *left_out) {
    bool constant = true;
    for (uint32_t i = 0; i < sizeof(packed_arguments); i++) {
        pt_ref arg = args[packed_arguments[i]];
        constant = constant && conv_s8_is_constant(c, arg);
        *left_out |= !pt_is_none(arg) && pt_is_left_out(c, arg);
    }
    return constant;
}

// True if the im2row variant reads plain weights beside the packed ones.
static bool reads_plain(const convolution *x, uint8_t core, const pt_gemm_s8 *layer) {
    const pt_conv_variant *variant =
        PT_HAS_CONV_VARIANTS ? pt_build_conv_variants[PT_VARIANT_IM2ROW] : NULL;
    const pt_geometry g = geometry_of(x);
    pt_gemm_s8 packed = *layer;
    packed.packed = layer;
    return variant && core == PT_CORE_DSP && x->channels % 4 && variant->scratch(&g, &packed);
}

// Notes for the writer of a .ptm file how all groups use the weights.
static void note_use(pt_context *c, const convolution *x) {
    if (!PT_HAS_ANY_CORE) {
        return; // here, so that a build without optimisation has no call of pt_gemm_s8_use either
    }
    pt_gemm_s8 layer = layer_of(x);
    layer.channels = x->outputs;
    pt_packed_use use = pt_gemm_s8_use(c->core, &layer, x->in_place);
    for (int32_t g = 1; g < x->groups; g++) {
        pt_skip_channels(&layer);
        use = use == pt_gemm_s8_use(c->core, &layer, x->in_place) ? use : PT_USES_BOTH;
    }
    use = reads_plain(x, c->core, &layer) ? PT_USES_BOTH : use;
    for (uint32_t i = 0; i < sizeof(packed_arguments); i++) {
        pt_note_use(c, packed_arguments[i], use);
    }
}

// Packs weights, bias, multipliers and shifts for the core's loops. Returns true if a run has
// packed weights: a .ptm file has packed weights for some calls only.
static __attribute__((noinline)) bool pack_convolution(pt_context *c, const pt_ref *args,
                                                       const convolution *x) {
    pt_gemm_s8 layer = layer_of(x);
    bool left_out = false;
    if (!has_constant_weights(c, args, &left_out) || x->depth > PACKED_LIMIT / x->out.channels ||
        !(left_out || pt_gemm_s8_scales_fast(&layer))) {
        return false;
    }
    note_use(c, x);
    layer.channels = x->outputs;
    const uint32_t bytes = pt_gemm_s8_bytes(x->depth, x->outputs), before = c->packed_needed;
    uint8_t *to = pt_request_packed(c, (uint32_t)x->groups * bytes);
    for (int32_t g = 0; PT_HAS_PACKING && to && g < x->groups; g++, to += bytes) {
        pt_pack_layer(c->core, &layer, to);
        pt_skip_channels(&layer);
    }
    return c->packed_needed != before;
}

static int conv_s8_check_convolution(pt_context *c, const pt_ref *args, bool explicit_layout) {
    convolution x;
    uint8_t *scratch;
    PT_TRY(read_convolution(c, args, explicit_layout, &x));
    PT_TRY(pt_expect_image(c, args[QUANTIZED_CONV2D_OUT], explicit_layout, &x.out));
    const uint32_t bytes = pt_read_scratch(c, args[QUANTIZED_CONV2D_SCRATCH], &scratch);
    uint32_t block = 0;
    if (bytes < pt_min_scratch(x.depth)) {
        block = pt_useful_scratch(x.depth);
        pt_use_scratch(c, block + useful_table(&x));
    }
    if (pt_prefers_for(c) == PT_CORE_PLAIN && bytes < pt_block_scratch(x.depth)) { // MVE
        pt_prefer_scratch(c, pt_block_scratch(x.depth));
    }
    const bool packs = c->packs && pack_convolution(c, args, &x);
    if (x.in.batch > 0 && !needs_no_more(&x, pt_prefers_for(c), packs)) {
        pt_prefer_more(&x, 0);
        if (!packs) {
            pt_prefer_parts(&x, block);
        }
    }
    return PT_ERROR_OK;
}

// ---- patches

// True if the taps of a row are contiguous.
static bool is_contiguous(const convolution *x) {
    return x->window.dilation[PT_WIDTH] == 1 && x->channels == x->in.channels;
}

// ---- images

// Position of the next patch.
typedef struct walk {
    int32_t row, column;
    pt_span rows;
    int32_t inside, outside; // windows from column `inside` to `outside` lie in the input
    const int8_t *line;      // the first of its rows, if it is inside
} walk;

static void conv_s8_begin_row(const convolution *x, const int8_t *in, int32_t row, walk *at) {
    const pt_window *w = &x->window;
    int32_t stride = w->stride[PT_WIDTH], padding = w->padding[PT_WIDTH];
    int32_t slack = x->in.width - w->kernel[PT_WIDTH] + padding;
    at->row = row;
    at->column = 0;
    at->rows = pt_clip_window(w, PT_HEIGHT, row, x->in.height);
    at->inside = (padding + stride - 1) / stride;
    at->outside = 0;
    if (is_contiguous(x) && at->rows.taps == w->kernel[PT_HEIGHT] && slack >= 0) {
        const int32_t fitting = slack / stride + 1; // more than out.width for a limited stride
        at->outside = fitting < x->out.width ? fitting : x->out.width;
        at->line = in + at->rows.start * x->in.width * x->in.channels;
    }
}

// Packs patch i, whose window is partly outside the input or has no contiguous rows, of the group
// whose first channel is at `in`.
static __attribute__((noinline)) void pack_edge(const convolution *x, const pt_gemm_s8 *layer,
                                                const int8_t *in, const walk *at, int32_t i) {
    const pt_window *w = &x->window;
    pt_span columns = pt_clip_window(w, PT_WIDTH, at->column, x->in.width);
    int32_t taps = is_contiguous(x) ? 1 : columns.taps, k = 0;
    int32_t size = columns.taps / (taps > 0 ? taps : 1) * x->channels;
    for (int32_t row = 0; row < w->kernel[PT_HEIGHT]; row++) {
        int32_t inside = row - at->rows.first, end = k + w->kernel[PT_WIDTH] * x->channels;
        if (inside >= 0 && inside < at->rows.taps && columns.taps > 0) {
            int32_t y = at->rows.start + inside * w->dilation[PT_HEIGHT];
            const int8_t *from = in + (y * x->in.width + columns.start) * x->in.channels;
            pt_pad(layer, i, k, columns.first * x->channels);
            k += columns.first * x->channels;
            for (int32_t tap = 0; tap < taps; tap++, k += size) {
                pt_pack(layer, i, k, from, size);
                from += w->dilation[PT_WIDTH] * x->in.channels;
            }
        }
        pt_pad(layer, i, k, end - k);
        k = end;
    }
}

// Counts the patches up to the next poll: all n, unless they are many.
static __attribute__((noinline)) int count_patches(const convolution *x, const pt_gemm_s8 *layer,
                                                   int32_t n, int32_t *used) {
    enum { FEWEST = 24 }; // a multiple of the block of every ISA
    const int32_t patch = x->depth * layer->channels;
    int32_t max = n;
    if ((int64_t)n * patch > PT_PART_STEPS) {
        max = PT_PART_STEPS / patch / FEWEST * FEWEST;
        max = max < FEWEST ? FEWEST : max;
        max = max < n ? max : n;
    }
    *used = max;
    return pt_count_product(x->c, max, patch);
}

// Convolves `left` patches from `at` on.
static void convolve_some(const convolution *x, pt_gemm_s8 *layer, const int8_t *in, walk *at,
                          int32_t left, int8_t *out) {
    const pt_window *w = &x->window;
    for (int32_t n; left > 0; left -= n) {
        n = pt_begin_block(layer, left);
        for (int32_t i = 0; i < n; i++, at->column++) {
            if (at->column == x->out.width) {
                conv_s8_begin_row(x, in, at->row + 1, at);
            }
            if (at->column >= at->inside && at->column < at->outside) {
                int32_t start = at->column * w->stride[PT_WIDTH] - w->padding[PT_WIDTH];
                const int8_t *from = at->line + start * x->in.channels;
                int32_t size = w->kernel[PT_WIDTH] * x->channels, rows = w->kernel[PT_HEIGHT];
                int32_t step = w->dilation[PT_HEIGHT] * x->in.width * x->in.channels;
                if (PT_BY_TWO && !(i & 1) && i + 1 < n && at->column + 1 < at->outside) {
                    pt_pack_two(layer, i++, from, w->stride[PT_WIDTH] * x->in.channels, size, rows,
                                step);
                    at->column++;
                } else {
                    pt_pack_patch(layer, i, from, size, rows, step);
                }
            } else {
                pack_edge(x, layer, in, at, i);
            }
        }
        pt_multiply_block(layer, n, out);
        out += n * layer->out_stride;
    }
}

// Convolves block by block, from row to row.
static int convolve_blocks(const convolution *x, pt_gemm_s8 *layer, const int8_t *in, int8_t *out) {
    int32_t some;
    walk at;
    conv_s8_begin_row(x, in, 0, &at);
    for (int32_t left = x->out.height * x->out.width; left > 0; left -= some) {
        PT_TRY(count_patches(x, layer, left, &some));
        convolve_some(x, layer, in, &at, some, out);
        out += some * layer->out_stride;
    }
    return PT_ERROR_OK;
}

// Convolves patches that are pixels of the input; at stride 1 all pixels lie in a row.
static int convolve_1x1(const convolution *x, pt_gemm_s8 *layer, const int8_t *in, int8_t *out) {
    const int32_t *stride = x->window.stride;
    int32_t n = x->out.width, height = x->out.height, step = stride[PT_WIDTH] * x->in.channels;
    if (stride[PT_HEIGHT] == 1 && stride[PT_WIDTH] == 1) {
        n *= height;
        height = 1;
    }
    for (; height > 0; height--) {
        for (int32_t done = 0, some; done < n; done += some) {
            PT_TRY(count_patches(x, layer, n - done, &some));
            if (!pt_skips_round()) {
                pt_multiply_rows(layer, in + done * step, step, some, out);
            }
            out += some * layer->out_stride;
        }
        in += stride[PT_HEIGHT] * x->in.width * x->in.channels;
    }
    return PT_ERROR_OK;
}

// ---- images that threads share

typedef struct shared_image {
    const convolution *x;
    const pt_gemm_s8 *layer;
    const int8_t *in;
    int8_t *out;
} shared_image;

static int convolve_shared_1x1(pt_context *c, const void *task) {
    const shared_image *t = task;
    convolution x = *t->x;
    pt_gemm_s8 layer = *t->layer;
    x.c = c;
    return convolve_1x1(&x, &layer, t->in, t->out);
}

enum {
    STACK_BLOCK = 1 << 14,
    FEWEST_PATCHES = 12, // of a round
};

static int32_t rows_of_round(const convolution *x) {
    return (FEWEST_PATCHES - 1) / x->out.width + 1;
}

// As convolve_blocks, some rows at a time, with a block of its own.
static int convolve_shared_rows(pt_context *c, const void *task) {
    const shared_image *t = task;
    const convolution *x = t->x;
    const int32_t width = x->out.width, rows = rows_of_round(x);
    int8_t block[STACK_BLOCK];
    pt_gemm_s8 layer = *t->layer;
    pt_begin_layer(&layer, block, sizeof block);
    for (int32_t row = 0; row < x->out.height; row += rows) {
        const int32_t left = x->out.height - row, n = (left < rows ? left : rows) * width;
        walk at;
        if (pt_skips_round()) {
            continue;
        }
        PT_TRY(pt_count_product(c, n, x->depth * layer.channels));
        conv_s8_begin_row(x, t->in, row, &at);
        convolve_some(x, &layer, t->in, &at, n, t->out + row * width * layer.out_stride);
    }
    return PT_ERROR_OK;
}

// Computes the outputs of a group in threads if they are many; else *done stays false.
static int share_channels(const convolution *x, const pt_gemm_s8 *layer, const int8_t *in,
                          int8_t *out, bool *done) {
    const shared_image t = {x, layer, in, out};
    const int64_t row = (int64_t)x->depth * layer->channels * x->out.width;
    const int64_t round = x->in_place ? PT_PART_STEPS : row * rows_of_round(x);
    *done = !layer->packed && (x->in_place || x->depth <= STACK_BLOCK / 2) &&
            pt_shares(row * x->out.height, round);
    if (!*done) {
        return PT_ERROR_OK;
    }
    return pt_share_loop(x->c, x->in_place ? convolve_shared_1x1 : convolve_shared_rows, &t, round);
}

// Computes the outputs of one group.
static int conv_s8_convolve_channels(const convolution *x, pt_gemm_s8 *layer, const int8_t *in,
                                     int8_t *out) {
    bool done = false;
    if (PT_HAS_THREADS) {
        PT_TRY(share_channels(x, layer, in, out, &done));
    }
    if (done) {
        return PT_ERROR_OK;
    }
    return x->in_place ? convolve_1x1(x, layer, in, out) : convolve_blocks(x, layer, in, out);
}

// The same, for as many channels at a time as the ISA begins.
static __attribute__((noinline)) int conv_s8_convolve_parts(const convolution *x, pt_gemm_s8 *layer,
                                                            const int8_t *in, int8_t *out,
                                                            uint32_t *scratch) {
    for (int32_t left = x->outputs; left > 0; left -= layer->channels) {
        layer->channels = left;
        pt_begin_channels(layer, scratch);
        PT_TRY(conv_s8_convolve_channels(x, layer, in, out));
        out += layer->channels;
        pt_skip_channels(layer);
    }
    return PT_ERROR_OK;
}

// Used if temp memory has no space for the channels.
static __attribute__((noinline)) int
convolve_parts_by_stack(const convolution *x, pt_gemm_s8 *layer, const int8_t *in, int8_t *out) {
    uint32_t scratch[PT_CHANNEL_WORDS];
    return conv_s8_convolve_parts(x, layer, in, out, scratch);
}

static bool conv_s8_convolve_part(pt_geometry *g, pt_gemm_s8 *layer, const int8_t *in, int8_t *out,
                                  void *block, uint32_t bytes) {
    return pt_convolve(g, layer, in, out, block, bytes);
}

// Calls pt_convolve, the ISA's loop over whole images. Not inlined: no other path needs its stack.
static __attribute__((noinline)) int convolve_at_once(const convolution *x, pt_gemm_s8 *layer,
                                                      const int8_t *in, int8_t *out, uint32_t bytes,
                                                      bool *done) {
    pt_geometry geometry = geometry_of(x);
    return pt_convolve_in_parts(x->c, conv_s8_convolve_part, &geometry, layer, in, out, bytes,
                                layer->block, done);
}

static __attribute__((noinline)) int convolve_whole(const convolution *x, pt_gemm_s8 *layer,
                                                    const int8_t *in, int8_t *out, uint32_t bytes) {
    bool done = false;
    layer->channels = x->outputs;
    pt_begin_channels(layer, NULL);
    if (PT_CONVOLVES_ALL || (PT_CONVOLVES_SOME && !x->in_place)) {
        PT_TRY(convolve_at_once(x, layer, in, out, bytes, &done));
    }
    if (!done && !PT_CONVOLVES_ALL) {
        PT_TRY(conv_s8_convolve_channels(x, layer, in, out));
    }
    pt_skip_channels(layer);
    return PT_ERROR_OK;
}

// Tries the variants. Not inlined, as convolve_at_once.
static __attribute__((noinline)) int convolve_by_variants(const convolution *x, pt_gemm_s8 *layer,
                                                          const int8_t *in, int8_t *out,
                                                          bool *done) {
    pt_geometry geometry = geometry_of(x);
    layer->weights = x->is_left_out ? NULL : x->weights;
    for (int32_t i = 0; i < PT_CONV_VARIANTS && !*done; i++) {
        uint32_t bytes =
            pt_build_conv_variants[i] ? pt_build_conv_variants[i]->scratch(&geometry, layer) : 0;
        if (bytes) {
            bytes = bytes < x->variant_bytes ? bytes : x->variant_bytes;
            PT_TRY(pt_convolve_in_parts(x->c, pt_build_conv_variants[i]->convolve, &geometry, layer,
                                        in, out, bytes, x->variant_scratch, done));
        }
    }
    layer->weights = x->weights;
    return PT_ERROR_OK;
}

#if defined(PT_IM2COL_PAIRS)
// Returns a larger scratch in temp memory, up to the preferred size, if it exceeds `bytes`; it
// starts at `scratch` if that lies in temp memory.
static void *larger_scratch(const convolution *x, pt_gemm_s8 *layer, void *scratch,
                            uint32_t *bytes) {
    const pt_context *c = x->c;
    const bool enough = needs_no_more(x, PT_CORE_OF_LOOPS, x->packed);
    const uint32_t max = enough ? 0 : max_of_loops(x, PT_CORE_OF_LOOPS);
    const uintptr_t before = (uintptr_t)scratch - (uintptr_t)c->scratch;
    uint8_t *from = before < c->scratch_size ? scratch : c->scratch;
    uint32_t available = (c->scratch_size - (uint32_t)(from - c->scratch)) & ~3u;
#if defined(PT_LOOPS_V6M)
    layer->patches = x->out.height * x->out.width;
#endif
    (void)layer;
    available = available < max ? available : max & ~3u;
    if (available <= *bytes) {
        return scratch;
    }
    *bytes = available;
    return from;
}
#endif

static int convolve_image(const convolution *x, const int8_t *in, int8_t *out, void *scratch,
                          uint32_t bytes) {
    pt_gemm_s8 layer = layer_of(x);
    bool done = false;
    if (PT_HAS_CONV_VARIANTS && x->variant_scratch) {
        PT_TRY(convolve_by_variants(x, &layer, in, out, &done));
    }
    if (done) {
        return PT_ERROR_OK;
    }
    if (PT_HAS_ANY_CORE && layer.packed) {
        pt_unpack_layer(x->c, &layer, x->groups);
    }
    bytes = pt_reserve_unpacked(&layer, scratch, bytes);
    uint32_t *channel_scratch = x->channel_scratch;
#if defined(PT_IM2COL_DSP)
    layer.part_words = channel_scratch ? x->channel_words : PT_CHANNEL_WORDS;
    layer.has_one_patch = x->out.height * x->out.width == 1;
#endif
#if defined(PT_IM2COL_PAIRS)
    const uint32_t own_bytes = bytes;
    scratch = larger_scratch(x, &layer, scratch, &bytes);
    channel_scratch =
        bytes > own_bytes ? NULL : channel_scratch; // the larger scratch may overlap it
#endif
    pt_begin_layer(&layer, scratch, bytes);
    uint32_t *behind = pt_channel_scratch(&layer);
    channel_scratch = behind ? behind : channel_scratch;
    for (int32_t g = 0; g < x->groups; g++) {
        if (PT_CONVOLVES_ALL || !layer.in_parts) {
            PT_TRY(convolve_whole(x, &layer, in, out, bytes));
        } else if (channel_scratch) {
            PT_TRY(conv_s8_convolve_parts(x, &layer, in, out, channel_scratch));
        } else {
            PT_TRY(convolve_parts_by_stack(x, &layer, in, out));
        }
        in += x->channels;
        out += x->outputs;
    }
    return PT_ERROR_OK;
}

void *pt_bind_scratch(pt_convolution *x, const pt_ref *args, uint32_t min, uint32_t useful,
                      uint32_t table, uint32_t *bytes) {
    const pt_context *c = x->c;
    uint8_t *scratch;
    uint32_t used = 0;
    x->out.data = pt_get_data(c, args[1]);
    *bytes = pt_read_scratch(c, args[0], &scratch);
    if (*bytes < min) {
        const uint32_t max = useful + table;
        scratch = c->scratch;
        used = useful;
        *bytes = c->scratch_size < max ? c->scratch_size & ~3u : max;
        *bytes = *bytes < min ? 0 : *bytes;
    }
    bool fits = c->scratch_size >= used + sizeof(uint32_t[PT_CHANNEL_WORDS]);
    x->channel_scratch = fits ? (uint32_t *)(void *)(c->scratch + used) : NULL;
#if defined(PT_IM2COL_DSP)
    const uint32_t words = fits ? (c->scratch_size - used) / (uint32_t)sizeof(uint32_t) : 0;
    x->channel_words = (int32_t)(words < MAX_CHANNEL_WORDS ? words : MAX_CHANNEL_WORDS);
#endif
    return scratch;
}

int pt_convolve_images(const pt_convolution *x, void *scratch, uint32_t bytes) {
    int32_t batch = x->out.height > 0 && x->out.width > 0 ? x->in.batch : 0;
    for (int32_t i = 0; i < batch; i++) {
        PT_TRY(convolve_image(x, x->in.data + i * x->in.height * x->in.width * x->in.channels,
                              x->out.data + i * x->out.height * x->out.width * x->out.channels,
                              scratch, bytes));
    }
    return PT_ERROR_OK;
}

// ---- without scratch

// Cold, optimized for size: used only when memory is short.
#define COLD __attribute__((noinline, cold))

// Sums the products of channel o and the window that begins at (row, left) of the image at `in`.
// Not inlined, so that the inner loop has all registers.
static COLD uint32_t conv_s8_sum_window(const convolution *x, const int8_t *in, int32_t o,
                                        int32_t row, int32_t left) {
    const pt_window *w = &x->window;
    const int8_t *weights = x->weights + o * x->depth;
    uint32_t sum = (uint32_t)pt_bias_of(&x->output, o);
    in += o / x->outputs * x->channels;
    for (int32_t j = w->kernel[PT_HEIGHT]; j > 0; j--, row += w->dilation[PT_HEIGHT]) {
        int32_t column = left;
        for (int32_t k = w->kernel[PT_WIDTH]; k > 0; k--, column += w->dilation[PT_WIDTH]) {
            if ((uint32_t)row >= (uint32_t)x->in.height ||
                (uint32_t)column >= (uint32_t)x->in.width) {
                weights += x->channels;
                continue;
            }
            const int32_t offset = x->offset;
            const int8_t *from = in + (row * x->in.width + column) * x->in.channels;
            const int8_t *end = weights + x->channels;
            do {
                sum += (uint32_t)((*from++ + offset) * *weights++);
            } while (weights != end);
        }
    }
    return sum;
}

static COLD int convolve_plainly(const convolution *x) {
    const pt_window *w = &x->window;
    const int32_t n = x->in.batch * x->out.height * x->out.width;
    const pt_gemm_s8 layer = layer_of(x);
    int8_t *out = x->out.data;
    for (int32_t i = 0; i < n; i++) {
        const int32_t line = i / x->out.width, image = line / x->out.height;
        const int32_t row = line % x->out.height * w->stride[PT_HEIGHT] - w->padding[PT_HEIGHT];
        const int32_t column = i % x->out.width * w->stride[PT_WIDTH] - w->padding[PT_WIDTH];
        const int8_t *in = x->in.data + image * x->in.height * x->in.width * x->in.channels;
        PT_TRY(pt_count_product(x->c, x->depth, x->out.channels));
        // on M55 nothing else needs pt_multiply_patch
        if (PT_MULTIPLIES_PATCH && !PT_CONVOLVES_ALL && x->in_place && x->groups == 1) {
            pt_multiply_patch(&layer, in + (row * x->in.width + column) * x->channels, out);
            out += x->out.channels;
            continue;
        }
        for (int32_t o = 0; o < x->out.channels; o++) {
            const uint32_t sum = conv_s8_sum_window(x, in, o, row, column);
            const int32_t scaled =
                pt_requantize_int64((int32_t)sum, x->output.multipliers[o], x->output.shifts[o]);
            *out++ = pt_to_int8(scaled, &x->output.range);
        }
    }
    return PT_ERROR_OK;
}

// Binds the scratch tensor, or temp memory if that is larger and makes the loops faster.
static void *bind_own_scratch(convolution *x, const pt_ref *args, uint32_t *bytes) {
    const uint32_t min = pt_min_scratch(x->depth), fast = pt_block_scratch(x->depth);
    uint8_t *own;
    if (pt_read_scratch(x->c, args[0], &own) < min) {
        return pt_bind_scratch(x, args, min, pt_useful_scratch(x->depth), useful_table(x), bytes);
    }
    const bool takes_temp = PT_CONVOLVES_ALL && x->c->scratch_size >= fast;
    return pt_bind_scratch(x, args, takes_temp ? fast : min, fast, 0, bytes);
}

static int conv_s8_run_convolution(pt_context *c, const pt_ref *args, bool explicit_layout) {
    convolution x;
    uint32_t bytes;
    PT_TRY(read_convolution(c, args, explicit_layout, &x));
    void *scratch = bind_own_scratch(&x, args + QUANTIZED_CONV2D_SCRATCH, &bytes);
    x.packed = pt_packs_for(c->core) == PT_CORE_PLAIN ? NULL : pt_packed(c);
    if (PT_HAS_CONV_VARIANTS) {
        x.is_left_out = x.packed && pt_is_left_out(c, args[QUANTIZED_CONV2D_WEIGHT]);
        pt_set_variant_scratch(&x, 0);
    }
    if (bytes == 0) { // a .ptm file whose calls are not checked has its scratch
        return PT_HAS_PROGRAMS || PT_HAS_CHECKS ? convolve_plainly(&x)
                                                : PT_ERROR_MEMORY_ALLOCATION_FAILED;
    }
    return pt_convolve_images(&x, scratch, bytes);
}

static int conv_s8_check(pt_context *c, const pt_ref *args) {
    return conv_s8_check_convolution(c, args, false);
}

static int conv_s8_run(pt_context *c, const pt_ref *args) {
    return conv_s8_run_convolution(c, args, false);
}

static int conv_s8_check_nhwc(pt_context *c, const pt_ref *args) {
    return conv_s8_check_convolution(c, args, true);
}

static int conv_s8_run_nhwc(pt_context *c, const pt_ref *args) {
    return conv_s8_run_convolution(c, args, true);
}

const pt_kernel pt_cortex_m_quantized_conv2d_out = PT_KERNEL(conv_s8_check, conv_s8_run);
const pt_kernel pt_cortex_m_quantized_conv2d_nhwc_out =
    PT_KERNEL(conv_s8_check_nhwc, conv_s8_run_nhwc);
