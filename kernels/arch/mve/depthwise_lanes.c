// int8 depthwise convolution of any window and any parameters with MVE: pt_convolve_any_depthwise.
// Tile: 1 pixel x 16 neighbouring channels, or up to 8 channels where an input channel has several
// outputs. No packing, no scratch.
#include "arch/conv_geometry.h"

#if defined(__ARM_FEATURE_MVE)

#include "arch/mve/depthwise_lanes.h"
#include "arch/mve/requantize.h"

// Not inlined, so that their stack frames are not live together.
#define NOINLINE __attribute__((noinline))

enum { PIXELS = 8 }; // pixels of a list

// Some channels: 16 neighbours, or up to eight.
typedef struct group {
    const pt_geometry *g;
    const pt_gemm_s8 *layer;
    int32_t first, n;
    pt_window_lanes lanes;
} group;

// The taps inside the image along a dim: the first, their number, and their position.
typedef struct inside {
    int32_t first, n, position;
} inside;

static NOINLINE inside find_inside(const pt_geometry *g, uint32_t d, int32_t i) {
    int32_t position = i * g->stride[d] - g->padding[d], rest = g->in[d] - position;
    int32_t dilation = g->dilation[d], first = 0, end = g->kernel[d];
    if (position < 0) {
        first = (dilation - 1 - position) / dilation;
    }
    if (rest <= dilation * (end - 1)) {
        end = rest > 0 ? (rest + dilation - 1) / dilation : 0;
    }
    return end > first ? (inside){first, end - first, position + first * dilation} : (inside){0};
}

// Writes the even, then the odd ones of each eight of n values, and zeros behind the last. A null
// `from` counts as n = 0.
static NOINLINE void spread(int32_t *to, const int32_t *from, int32_t n) {
    const uint32x4_t even = vidupq_n_u32(0, 2);
    n = from ? n : 0;
    for (int32_t i = 0; i < 4; i++, to += 4) {
        const int32_t first = 8 * (i / 2) + i % 2;
        const mve_pred16_t p = vcmpltq_n_s32(vreinterpretq_s32_u32(even), n - first);
        vst1q_s32(to, vldrwq_gather_shifted_offset_z_s32(from + first, even, p));
    }
}

// Begins a group at the channel `first`, or before it so that 16 channels fit.
static NOINLINE void begin_group(group *x, int32_t first) {
    static const int8_t zeros[PT_LANES];
    const pt_geometry *g = x->g;
    const pt_channels *output = &x->layer->output;
    pt_window_lanes *l = &x->lanes;
    int32_t channels = x->layer->channels, rest = channels - first;
    x->n = rest < 8 ? rest : 8;
    if (g->channels == 1 && rest > 8 && channels >= PT_LANES) {
        first = rest < PT_LANES ? channels - PT_LANES : first;
        x->n = PT_LANES;
    }
    x->first = first;
    for (int32_t i = 0; i < 8; i++) {
        l->inputs[i] = (uint16_t)((first % g->channels + i) / g->channels);
    }
    spread(l->multipliers, output->multipliers + first, x->n);
    spread(l->shifts, output->shifts + first, x->n);
    spread(l->bias, output->bias ? output->bias + first : NULL, x->n);
    if (x->n == PT_LANES) {
        const int32_t keeps_sums = l->keeps_sums;
        const pt_lanes_pixel all = {zeros, x->layer->weights + first, l->bias, 4 * g->kernel[0]};
        const pt_lanes_run window = {.pixels = &all,
                                     .out = (int8_t *)l->full_bias,
                                     .column = x->layer->offset,
                                     .end = &all + 1,
                                     .record = l};
        l->kind = PT_SIXTEEN;
        l->keeps_sums = true;
        l->columns = g->kernel[1];
        l->row = l->weight_row = 0;
        pt_run_lanes(&window);
        l->keeps_sums = keeps_sums;
    }
}

// Requantizes the sums of a pixel, for any parameters.
static NOINLINE void finish_slowly(const group *x, const int32_t sums[PT_LANES], int8_t *out) {
    const pt_channels *output = &x->layer->output;
    for (int32_t i = 0; i < x->n; i++) {
        const int32_t lane = (i & 8) + (i & 1) * 4 + (i & 7) / 2, o = x->first + i;
        out[i] =
            pt_to_int8(pt_requantize_int64(sums[lane], output->multipliers[o], output->shifts[o]),
                       &output->range);
    }
}

// Returns the number of outputs from column j on whose windows have the same taps.
static int32_t count_same(const pt_geometry *g, int32_t j, const inside *columns) {
    if (columns->n < g->kernel[1]) {
        return 1;
    }
    const int32_t slack = g->in[1] - columns->position - (g->kernel[1] - 1) * g->dilation[1] - 1;
    const int32_t n = slack / g->stride[1] + 1, rest = g->out[1] - j;
    return n < rest ? n : rest;
}

// Computes the outputs of a row.
static NOINLINE void mve_lanes_run_row(group *x, int32_t i, const int8_t *in, int8_t *out) {
    const pt_geometry *g = x->g;
    pt_window_lanes *l = &x->lanes;
    const int32_t line = g->in[1] * g->pixel, channels = l->weight_step;
    const int32_t step = g->dilation[1] * g->pixel, move = g->stride[1] * g->pixel;
    const inside rows = find_inside(g, 0, i);
    pt_lanes_pixel pixels[PIXELS];
    int32_t sums[PT_LANES];
    pt_lanes_run window = {.pixels = pixels,
                           .column = x->layer->offset,
                           .row = step,
                           .out_stride = x->layer->out_stride,
                           .record = l};
    for (int32_t j = 0, n; j < g->out[1]; j += n) {
        const inside columns = find_inside(g, 1, j);
        const bool is_full = rows.n == g->kernel[0] && columns.n == g->kernel[1];
        n = columns.n == 0 || l->keeps_sums ? 1 : count_same(g, j, &columns);
        n = n < PIXELS ? n : PIXELS;
        l->columns = columns.n;
        l->row = g->dilation[0] * line - columns.n * step;
        l->weight_row = (g->kernel[1] - columns.n) * channels;
        l->kind = x->n < PT_LANES ? x->n : is_full ? PT_SIXTEEN_FULL : PT_SIXTEEN;
        pt_lanes_pixel one = {
            in + rows.position * line + columns.position * g->pixel,
            x->layer->weights + x->first + (rows.first * g->kernel[1] + columns.first) * channels,
            l->kind == PT_SIXTEEN_FULL ? l->full_bias : l->bias, columns.n ? 4 * rows.n : 0};
        for (pt_lanes_pixel *end = pixels + n, *to = pixels; to != end; to++, one.in += move) {
            *to = one;
        }
        window.out = l->keeps_sums ? (int8_t *)sums : out;
        window.end = pixels + n;
        pt_run_lanes(&window);
        if (l->keeps_sums) {
            finish_slowly(x, sums, out);
        }
        out += n * window.out_stride;
    }
}

void pt_convolve_any_depthwise(const pt_geometry *g, const pt_gemm_s8 *layer, const int8_t *in,
                               int8_t *out) {
    group x = {.g = g, .layer = layer};
    const bool fast = pt_have_fast_scales(&layer->output, layer->channels);
    x.lanes.one = 1;
    x.lanes.offset = layer->output.range.offset;
    x.lanes.weight_step = layer->channels;
    x.lanes.keeps_sums = !fast;
    for (int32_t first = 0; first < layer->channels; first = x.first + x.n) {
        begin_group(&x, first);
        for (int32_t i = 0; i < g->out[0]; i++) {
            mve_lanes_run_row(&x, i, in + x.first / g->channels,
                              out + i * g->out[1] * layer->out_stride + x.first);
        }
    }
    if (fast) {
        pt_limit_pixels(&layer->output.range, out, g->out[0] * g->out[1], layer->out_stride,
                        layer->channels);
    }
}

#endif
