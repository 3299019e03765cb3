// Fill the bands of im2row.c and winograd.c: pt_fill_band transforms the input rows of a band, pads
// rows and columns outside of the image, and moves the rows that two bands share.
#include "arch/dsp/im2row_band.h"

#if defined(PT_IM2COL_DSP)

void pt_begin_band(pt_band *b, int32_t outputs, void *block) {
    b->blocks = pt_band_blocks(b);
    b->outputs = outputs;
    b->rows = pt_band_seen(b->g, outputs);
    b->edge = (int8_t *)block + b->weights;
    b->values = (uint32_t *)(void *)((uint8_t *)block + pt_band_fixed(b) - PT_TILE_OVERREAD);
}

// Copies columns from x on, some of them outside the image, to b->edge.
static void copy_edge(const pt_band *b, const int8_t *row, int32_t x) {
    const pt_geometry *g = b->g;
    int8_t *to = b->edge;
    for (const int8_t *end = to + b->columns * g->channels; to != end; to += g->channels, x++) {
        if (x >= 0 && x < g->in[1]) {
            memcpy(to, row + x * g->pixel, (size_t)g->channels);
        } else {
            memset(to, -b->offset, (size_t)g->channels);
        }
    }
}

// Fills a row of every block, `block` words apart, with padding.
static void fill_outside(const pt_band *b, uint32_t *to, int32_t block) {
    const uint32_t outside = b->outside;
    const int32_t words = b->words;
    for (int32_t j = b->planes * b->blocks; j > 0; j--, to += block) {
        for (int32_t k = words; k > 0; k--) {
            to[k - 1] = outside;
        }
    }
}

// Transforms row y of the input to row i of the band.
static void transform_row(const pt_band *b, const int8_t *in, int32_t i, int32_t y) {
    const pt_geometry *g = b->g;
    const int32_t block = b->rows * b->words, step = b->patches * g->stride[1];
    const int32_t last = (g->out[1] - b->patches) * g->stride[1] - g->padding[1];
    uint32_t *to = b->values + i * b->words;
    if (y < 0 || y >= g->in[0]) {
        fill_outside(b, to, block);
        return;
    }
    const int8_t *row = in + y * g->in[1] * g->pixel;
    for (int32_t j = b->blocks, x = -g->padding[1]; j > 0; j--, x += step, to += block) {
        x = x < last ? x : last;
        if (x < 0 || x + b->columns > g->in[1]) {
            copy_edge(b, row, x);
            b->transform(b, b->edge, g->channels, to);
        } else {
            b->transform(b, row + x * g->pixel, g->pixel, to);
        }
    }
}

// Moves the rows that a band shares with the band before it to the front. Returns their number.
static int32_t keep_rows(const pt_band *b) {
    const pt_geometry *g = b->g;
    const int32_t shared = g->kernel[0] - g->stride[0], block = b->rows * b->words;
    uint32_t *values = b->values;
    for (int32_t i = 0; shared > 0 && i < b->planes * b->blocks; i++, values += block) {
        uint32_t *to = values;
        const uint32_t *from = to + b->outputs * g->stride[0] * b->words;
        const uint32_t *end = to + shared * b->words;
        do {
            *to++ = *from++;
        } while (to != end);
    }
    return shared > 0 ? shared : 0;
}

void pt_fill_band(const pt_band *b, const int8_t *in, int32_t first) {
    const pt_geometry *g = b->g;
    const int32_t left = g->out[0] - first, n = left < b->outputs ? left : b->outputs;
    for (int32_t i = first ? keep_rows(b) : 0; i < pt_band_seen(g, n); i++) {
        transform_row(b, in, i, first * g->stride[0] - g->padding[0] + i);
    }
}

#endif
