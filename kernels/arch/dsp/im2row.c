// im2row variant of int8 convolutions on cores with the DSP extension (pt_im2row in
// conv_variants.h): any kernel but 1x1, where im2row_scratch is not 0. Tile: 3 neighbouring patches
// x 2 channels x 4 values (tile_3x2.h). Packing: a band of input rows as int16 (im2row_band.h);
// weights of two channels, doubled, packed at load or widened for each band. Scratch: both, at most
// PT_VARIANT_SCRATCH.
#include "arch/conv_variants.h"

#if PT_HAS_CONV_VARIANTS

#include "arch/dsp/im2row_band.h"
#include "arch/dsp/tile_3x2.h"

// A word of the band contains two values of a patch: of each four of a row of the kernel (k0, k2)
// and (k1, k3), of what is left of the row (k0) or (k0, k1) or (k0, k2) and (k1). The words of the
// patches alternate. Weights are in the same order, doubled, as pt_pack_layer_dsp makes them:
//
//     [doubled bias of each][two words of each ...][multiplier, right shift, rounding of each]
//
// If the number of channels is no multiple of 4, the band has values without the offset, and the
// bias contains it.

enum {
    PATCHES = PT_TILE_PATCHES,
    FEWEST = 16, // outputs of a channel for which widening its weights pays
    ENOUGH = 128,
    MANY = 64,          // channels, where kernel rows are packed quickly
    MANY_OF_NINES = 24, // times the stride
    MANY_OF_THREES = 32,
    LONG = 16, // a row in which one more patch costs little
};

// Returns the words of a kernel row of a patch.
static int32_t words_of_row(const pt_geometry *g) {
    int32_t values = g->kernel[1] * g->channels;
    return values / 4 * 2 + (values % 4 + 1) / 2;
}

// Returns the steps of a sum for a band of `words`; a step multiplies two words of each patch.
static inline int32_t steps_of(const pt_geometry *g, int32_t words) {
    return (g->kernel[0] * words / PATCHES + 1) / 2;
}

static pt_band im2row_band_of(const pt_geometry *g, bool is_packed) {
    const int32_t words = PATCHES * words_of_row(g);
    return (pt_band){.g = g,
                     .patches = PATCHES,
                     .columns = (PATCHES - 1) * g->stride[1] + g->kernel[1],
                     .planes = 1,
                     .words = words,
                     .weights = is_packed ? 0 : 32 + 16 * (uint32_t)steps_of(g, words)};
}

// Returns the rows of outputs of a band; 0 for too little scratch.
static int32_t im2row_outputs_of(const pt_band *b, uint32_t bytes) {
    int32_t rows = pt_band_outputs(b, bytes, (ENOUGH + b->g->out[1] - 1) / b->g->out[1]);
    return b->weights && rows * b->g->out[1] < FEWEST ? 0 : rows;
}

// True if pt_multiply_block is faster. With packed weights: for many channels if bands have to
// widen their weights, or if patches share few values. Without: if a row of four outputs takes two
// blocks and pixels are words. Never where loads issue beside products.
static bool suits_blocks(const pt_geometry *g, const pt_gemm_s8 *layer) {
#ifdef PT_LOADS_BESIDE
    (void)g, (void)layer;
    return false;
#else
    if (!layer->packed) {
        return g->out[1] == PATCHES + 1 && g->channels % 4 == 0;
    }
    const int32_t row = g->kernel[0] == 3 ? g->kernel[1] * g->channels : 0;
    const int32_t many = row == 9 ? MANY_OF_NINES / g->stride[1] : row == 3 ? MANY_OF_THREES : MANY;
    const bool share = g->kernel[0] > g->stride[0] && g->kernel[1] > g->stride[1];
    const bool fits = g->out[1] % PATCHES == 0 || g->out[1] > LONG;
    return g->channels % 4 ? layer->channels >= many : !(share && fits);
#endif
}

static uint32_t im2row_scratch(const pt_geometry *g, const pt_gemm_s8 *layer) {
    if (pt_is_pointwise(g) || suits_blocks(g, layer) || g->out[1] < PATCHES ||
        g->stride[1] > g->kernel[1] || !pt_suits_bands(g, layer)) {
        return 0;
    }
    pt_band b = im2row_band_of(g, false);
    int32_t rows = im2row_outputs_of(&b, PT_VARIANT_SCRATCH);
    return rows ? pt_band_bytes(&b, rows) : 0;
}

#if defined(PT_IM2COL_DSP)

#include "arch/dot.h"
#include "arch/dsp/tile_2x2.h"

// ---- weights

static inline uint32_t im2row_pair_of(int32_t low, int32_t high) {
    uint32_t pair;
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(pair) : "r"(low), "r"(high));
    return pair;
}

// Widens a kernel row of a channel from word `at` on, doubled. Returns the sum of the doubled
// weights.
static int32_t widen_row(const int8_t *w, int32_t n, uint32_t *to, int32_t at) {
    int32_t sum = 0;
    for (int32_t k = 0; k < n; k += 4, w += 4, at += 2) {
        const int32_t left = n - k, w0 = 2 * w[0], w1 = left > 1 ? 2 * w[1] : 0;
        const int32_t w2 = left > 2 ? 2 * w[2] : 0, w3 = left > 3 ? 2 * w[3] : 0;
        to[at / 2 * 4 + at % 2] = im2row_pair_of(w0, left == 2 ? w1 : w2);
        if (left > 2) {
            to[(at + 1) / 2 * 4 + (at + 1) % 2] = im2row_pair_of(w1, w3);
        }
        sum += w0 + w1 + w2 + w3;
    }
    return sum;
}

static void widen_words(const int8_t *w, int32_t n, uint32_t *to) {
    for (const int8_t *end = w + n; w != end; w += 4, to += 4) {
        const uint32_t word = pt_load_word(w);
        const int16x2_t even = pt_even_bytes(word), odd = pt_odd_bytes(word);
        to[0] = (uint32_t)pt_even_bytes_plus(word, even);
        to[1] = (uint32_t)pt_odd_bytes_plus(word, odd);
    }
}

// Widens channel o, the first or second of a pair.
static void im2row_widen_channel(const pt_band *b, const pt_gemm_s8 *layer, int32_t o,
                                 int32_t second, uint32_t *pair) {
    const pt_geometry *g = b->g;
    const int32_t n = g->kernel[1] * g->channels;
    const int8_t *w = layer->weights + o * layer->depth;
    uint32_t *to = pair + 2 + 2 * second, *end = pair + 2 + 4 * steps_of(g, b->words);
    int32_t sum = 0;
    if (g->channels % 4 == 0) {
        widen_words(w, layer->depth, to);
    } else {
        end[-3 + 2 * second] = 0; // where the number of words is odd
        for (int32_t row = 0; row < g->kernel[0]; row++, w += n) {
            sum += widen_row(w, n, to, row * b->words / PATCHES);
        }
    }
    pair[second] = 2 * (uint32_t)pt_bias_of(&layer->output, o) + (uint32_t)(sum * layer->offset);
    pt_put_parameters(layer, o, end + 3 * second);
}

// ---- values

static void transform_words(const pt_band *b, const int8_t *x, int32_t pixel, uint32_t *to) {
    const int16x2_t offsets = pt_pair_of(b->offset);
    const int8_t *y = x + b->g->stride[1] * pixel, *z = y + (y - x);
    for (const uint32_t *end = to + b->words; to != end; to += 6, x += 4, y += 4, z += 4) {
        const uint32_t first = pt_load_word(x), second = pt_load_word(y), third = pt_load_word(z);
        to[0] = (uint32_t)pt_even_bytes_plus(first, offsets);
        to[1] = (uint32_t)pt_even_bytes_plus(second, offsets);
        to[2] = (uint32_t)pt_even_bytes_plus(third, offsets);
        to[3] = (uint32_t)pt_odd_bytes_plus(first, offsets);
        to[4] = (uint32_t)pt_odd_bytes_plus(second, offsets);
        to[5] = (uint32_t)pt_odd_bytes_plus(third, offsets);
    }
}

static void transform_bytes(const pt_band *b, const int8_t *x, int32_t pixel, uint32_t *to) {
    const int8_t *y = x + b->g->stride[1] * pixel, *z = y + (y - x);
    int32_t left = b->g->kernel[1] * b->g->channels;
    for (; left > 3; left -= 4, to += 6, x += 4, y += 4, z += 4) {
        to[0] = im2row_pair_of(x[0], x[2]);
        to[1] = im2row_pair_of(y[0], y[2]);
        to[2] = im2row_pair_of(z[0], z[2]);
        to[3] = im2row_pair_of(x[1], x[3]);
        to[4] = im2row_pair_of(y[1], y[3]);
        to[5] = im2row_pair_of(z[1], z[3]);
    }
    if (left == 1) {
        to[0] = (uint32_t)x[0];
        to[1] = (uint32_t)y[0];
        to[2] = (uint32_t)z[0];
    } else if (left > 0) {
        to[0] = im2row_pair_of(x[0], x[left - 1]);
        to[1] = im2row_pair_of(y[0], y[left - 1]);
        to[2] = im2row_pair_of(z[0], z[left - 1]);
    }
    if (left == 3) {
        to[3] = (uint32_t)x[1];
        to[4] = (uint32_t)y[1];
        to[5] = (uint32_t)z[1];
    }
}

// ---- layers

static bool im2row_convolve(pt_geometry *g, pt_gemm_s8 *layer, const int8_t *in, int8_t *out,
                            void *block, uint32_t bytes) {
    const bool by_words = g->channels % 4 == 0;
    const uint8_t *packed = by_words && layer->channels % 2 == 0 ? layer->packed : NULL;
    if (im2row_scratch(g, layer) == 0 || !(packed || layer->weights) ||
        !(layer->packed || pt_gemm_s8_scales_fast(layer))) {
        return false;
    }
    pt_band b = im2row_band_of(g, packed);
    const int32_t rows = im2row_outputs_of(&b, bytes), line = g->out[1] * layer->out_stride;
    if (rows == 0) {
        return false;
    }
    b.transform = by_words ? transform_words : transform_bytes;
    b.offset = layer->offset;
    b.outside = by_words ? 0 : im2row_pair_of(-layer->offset, -layer->offset);
    pt_begin_band(&b, rows, block);
    const int32_t steps = steps_of(g, b.words), band_row = 4 * b.words;
    pt_tile_3x2 tile = {.values = b.values,
                        .steps = steps,
                        .gap = b.rows * band_row - 8 * PATCHES * steps,
                        .last = (g->out[1] - PATCHES) * layer->out_stride,
                        .row = g->stride[0] * band_row,
                        .out_row = line};
    for (int32_t first = 0; first < g->out[0]; first += rows, out += rows * line) {
        const int32_t n = g->out[0] - first < rows ? g->out[0] - first : rows;
        uint32_t *pair = packed ? (uint32_t *)(uintptr_t)packed : block;
        tile.rows = n;
        pt_fill_band(&b, in, first);
        for (int32_t o = 0; o < layer->channels; o += 2) {
            const int32_t channel = pt_first_of_pair(layer, o);
            for (int32_t i = 0; !packed && i < 2; i++) {
                im2row_widen_channel(&b, layer, channel + i, i, pair);
            }
            pt_multiply_tile_3x2(&tile, pair, layer->out_stride, out + channel);
            pair += packed ? 8 + 4 * steps : 0;
        }
        pt_limit(layer, n * g->out[1], out);
    }
    return true;
}

#endif

const pt_conv_variant pt_im2row = {im2row_scratch, PT_BAND_VARIANT(im2row_convolve)};

#endif
