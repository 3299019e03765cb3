// Bands of the variants im2row and Winograd: some input rows as pairs of int16, from which tiles of
// neighbouring patches are multiplied. The rows of a block are contiguous, so that the rows of a
// kernel are, too, and input rows that several outputs share are stored once. Layout:
//
//     [plane][block of a row of outputs][row of the input][word]
#ifndef PT_ARCH_DSP_IM2ROW_BAND_H
#define PT_ARCH_DSP_IM2ROW_BAND_H

#include "arch/conv_geometry.h"
#include "arch/dsp/tile_3x2.h"

typedef struct pt_band {
    const pt_geometry *g;
    int32_t patches; // neighbours, of a block; the last block ends with the row
    int32_t columns; // input columns of a block
    int32_t planes, words;
    uint32_t weights; // bytes of the weights of two channels before the band; 0 if packed
    // Set by pt_begin_band.
    int32_t blocks, rows; // rows of the input
    int32_t outputs;      // rows of the output
    int8_t *edge;
    uint32_t *values;
    // Transforms `columns` pixels, `pixel` bytes apart.
    void (*transform)(const struct pt_band *b, const int8_t *x, int32_t pixel, uint32_t *to);
    int32_t offset;
    uint32_t outside; // a word of rows outside of the image
} pt_band;

static inline int32_t pt_band_blocks(const pt_band *b) {
    return (b->g->out[1] + b->patches - 1) / b->patches;
}

// Scratch: the fixed bytes, and the bytes of an input row.
static inline uint32_t pt_band_fixed(const pt_band *b) {
    return b->weights + (((uint32_t)(b->columns * b->g->channels) + 3) & ~3u) + PT_TILE_OVERREAD;
}

static inline uint32_t pt_band_row(const pt_band *b) {
    return 4 * (uint32_t)(b->planes * pt_band_blocks(b) * b->words);
}

// Returns the input rows of n rows of outputs.
static inline int32_t pt_band_seen(const pt_geometry *g, int32_t n) {
    return (n - 1) * g->stride[0] + g->kernel[0];
}

// Returns the rows of outputs of a band, at most `max`, so that `bytes` of scratch need the fewest
// bands of about the same size; 0 for too little scratch.
static inline int32_t pt_band_outputs(const pt_band *b, uint32_t bytes, int32_t max) {
    const pt_geometry *g = b->g;
    uint32_t fixed = pt_band_fixed(b);
    int32_t rows = bytes < fixed ? 0 : (int32_t)((bytes - fixed) / pt_band_row(b));
    if (rows < g->kernel[0]) {
        return 0;
    }
    rows = (rows - g->kernel[0]) / g->stride[0] + 1;
    rows = rows < max ? rows : max;
    rows = rows < g->out[0] ? rows : g->out[0];
    int32_t bands = (g->out[0] + rows - 1) / rows;
    return (g->out[0] + bands - 1) / bands;
}

static inline uint32_t pt_band_bytes(const pt_band *b, int32_t outputs) {
    return pt_band_fixed(b) + (uint32_t)pt_band_seen(b->g, outputs) * pt_band_row(b);
}

// Begins a band of `outputs` rows with pt_band_bytes of scratch at `block`, the first of which are
// for weights.
void pt_begin_band(pt_band *b, int32_t outputs, void *block);
// Fills the band with the input rows of the outputs from row `first` on. Bands follow one another:
// shared rows are kept.
void pt_fill_band(const pt_band *b, const int8_t *in, int32_t first);

// The convolve function of a variant. A build for another core computes only the scratch of a DSP
// core.
#if defined(PT_IM2COL_DSP)
#define PT_BAND_VARIANT(convolve) convolve
#else
#define PT_BAND_VARIANT(convolve) pt_no_band

static inline bool pt_no_band(pt_geometry *g, pt_gemm_s8 *layer, const int8_t *in, int8_t *out,
                              void *block, uint32_t bytes) {
    (void)g, (void)layer, (void)in, (void)out, (void)block, (void)bytes;
    return false;
}
#endif

#endif
