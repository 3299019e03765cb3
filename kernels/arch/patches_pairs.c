#include "patches.h"

#if defined(PT_PATCHES_PAIRS)

// What pt_scale needs for a channel.
typedef struct pt_scaling {
    int32_t bias, multiplier, right, rounding;
} pt_scaling;

#if defined(__ARM_ARCH_7M__)
#include "pairs_v7m.h"
#else
#include "pairs_v6m.h"
#endif

// ---- outputs

// Of `n` patches and channel o, for any parameters.
static void finish(const pt_layer *layer, int32_t o, const int32_t *sums, int32_t n, int8_t *out) {
    int32_t bias = pt_bias_of(&layer->output, o);
    for (int32_t i = 0; i < n; i++, out += layer->out_stride) {
        *out = pt_finish(&layer->output, o, pt_add_int32(sums[i], bias));
    }
}

static inline pt_scaling get_scaling(const pt_layer *layer, int32_t o) {
    const pt_channels *p = &layer->output;
    int32_t shift = p->shifts[o];
    return (pt_scaling){pt_bias_of(p, o), p->multipliers[o], -shift,
                        pt_rounding(shift, p->range.offset)};
}

static void put(const pt_layer *layer, int32_t o, const int32_t *sums, int32_t n, int8_t *out) {
    if (layer->scales_fast) {
        pt_scaling scaling = get_scaling(layer, o);
        pt_scale_sums(&scaling, sums, n, out, layer->out_stride);
    } else {
        finish(layer, o, sums, n, out);
    }
}

// ---- blocks

// The patches of a full block with a channel at a time.
static void multiply_full(const pt_layer *layer, int8_t *out) {
#if defined(__ARM_ARCH_7M__)
    static const int32_t no_bias = 0;
    const pt_channels *p = &layer->output;
    pt_product product = {.bias = p->bias ? p->bias : &no_bias,
                          .bias_step = p->bias ? sizeof *p->bias : 0,
                          .multipliers = p->multipliers,
                          .shifts = p->shifts,
                          .out = out,
                          .out_step = layer->out_stride,
                          .patches = layer->block,
                          .depth = layer->depth,
                          .rounding = 2 * p->range.offset + 1,
                          .w = layer->weights,
                          .end = layer->weights + layer->channels * layer->depth};
    pt_multiply_3x1(&product);
#else
    const int8_t *w = layer->weights;
    for (int32_t o = 0; o < layer->channels; o++, w += layer->depth) {
        int32_t sums[4];
        pt_sum_2x1(layer->block, w, layer->depth, sums);
        put(layer, o, sums, 4, out++);
    }
#endif
}

// A pair with two channels at a time.
static void multiply_pair(const pt_layer *layer, int32_t n, int8_t *out) {
    const int8_t *w = layer->weights;
    int32_t channels = layer->channels;
    for (int32_t o = 0; o < channels; o += 2, w += 2 * layer->depth) {
        int32_t sums[4];
        bool last = o + 1 == channels;
        pt_sum_1x2(layer->block, w, last ? w : w + layer->depth, layer->depth, sums);
        put(layer, o, sums, n, out++);
        if (!last) {
            put(layer, o + 1, sums + 2, n, out++);
        }
    }
}

void pt_multiply_block(const pt_layer *layer, int32_t n, int8_t *out) {
    if (layer->width == PT_PATCHES) {
        multiply_full(layer, out);
    } else {
        multiply_pair(layer, n, out);
    }
}

// ---- rows

static inline void pack_pair(const pt_layer *layer, uint32_t *to, int32_t pairs,
                             const int8_t *first, const int8_t *second) {
    uint32_t offsets = (uint32_t)layer->offset + ((uint32_t)layer->offset << PT_PAIR_SHIFT);
    const int8_t *end = first + layer->depth;
#pragma GCC unroll 4
    for (; first != end; to += pairs) {
        *to = offsets + (uint32_t)*first++ + ((uint32_t)*second++ << PT_PAIR_SHIFT);
    }
}

// The last full block takes patches of the one before it again.
void pt_multiply_rows(pt_layer *layer, const int8_t *patches, int32_t stride, int32_t n,
                      int8_t *out) {
    int32_t done = 0;
    if (n >= PT_PATCHES && pt_takes_all(layer)) {
        layer->width = PT_PATCHES;
        for (; done < n; done += PT_PATCHES) {
            int32_t first = done + PT_PATCHES < n ? done : n - PT_PATCHES;
            for (int32_t i = 0; i < PT_PATCHES; i += 2) {
                const int8_t *row = patches + (first + i) * stride;
                pack_pair(layer, pt_pair_at(layer, i, 0), PT_PATCHES / 2, row, row + stride);
            }
            multiply_full(layer, out + first * layer->out_stride);
        }
        return;
    }
    layer->width = 2;
    for (; done < n; done += 2) {
        int32_t taken = done + 1 < n ? 2 : 1;
        const int8_t *row = patches + done * stride;
        pack_pair(layer, layer->block, 1, row, taken == 2 ? row + stride : row);
        multiply_pair(layer, taken, out + done * layer->out_stride);
    }
}
#endif
