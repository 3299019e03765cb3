// int8 GEMM of patches with the weights of all channels of a layer, requantized: the inner loop of
// convolutions by im2col (cortex_m/convolution.c, transposed depthwise channels too). Rows are
// patches of `depth` int8 values, columns are output channels. Loops: dsp/, v7m/, v6m/, host/ and
// gemm_s8.c; the packing of patches is in their im2col.inc. Every ISA gives the bytes of
// im2col_plain.inc.
#ifndef PT_ARCH_GEMM_S8_H
#define PT_ARCH_GEMM_S8_H

#include "arch/packed.h"
#include "arch/requantize.h"
#include "arch/scale.h"
#include "arch/vectors.h"
#include <picotorch/config.h>
#include <stdbool.h>
#include <string.h>

// A patch either lies in a row in the input, or the caller gathers a block of patches into scratch:
//
//     pt_pack_layer(core, &layer, to)          at load, if wanted and pt_gemm_s8_scales_fast
//     pt_begin_layer(&layer, scratch, bytes)   scratch a multiple of 4, pt_min_scratch or more
//     pt_begin_channels(&layer, NULL)          or, if in_parts, with uint32_t[PT_CHANNEL_WORDS],
//                                              pt_channel_scratch(&layer) if that is not NULL:
//                                              `channels` becomes the number to do first
//     pt_multiply_rows(&layer, patches, stride, n, out)
// or, for a block of at most `left` patches
//     n = pt_begin_block(&layer, left)
//     pt_pack(&layer, i, k, values, count)     values k to k + count of patch i; count may be 0
//     pt_pack_patch(&layer, i, values, count, rows, step)     or all, in rows `step` apart
//     pt_pack_two(&layer, i, values, next, count, rows, step) or, if PT_BY_TWO, of i and i + 1
//     pt_pad(&layer, i, k, count)              zero points there
//     pt_multiply_block(&layer, n, out)
// then
//     pt_skip_channels(&layer)                 to the next channels
//
// All values of a patch are packed in ascending order.

#if defined(PT_LOOPS_V7M) || defined(PT_LOOPS_V6M)
#define PT_IM2COL_PAIRS
#endif

typedef struct pt_gemm_s8 {
    const int8_t *weights; // `depth` for each channel
    int32_t depth, channels;
    int32_t offset; // added to the values of patches; its negative is an int8
    pt_channels output;
    int32_t out_stride; // bytes from the outputs of a patch to those of the next
    void *block;        // scratch
#if defined(PT_LOOPS_DSP) && !defined(__ARM_FEATURE_MVE)
    int32_t capacity_bytes; // of `block`; 0 if patches stay bytes
    int32_t part_words;     // for channels: PT_CHANNEL_WORDS or more
    bool has_one_patch;     // the image has
#else
    int32_t capacity_patches; // of `block`
#endif
    int32_t width;         // patches of the current block
    bool in_parts;         // channels are divided into parts
    uint8_t core;          // the core that the weights are packed for
    const void *packed;    // the channels as pt_pack_layer wrote them, or NULL
    bool scales_fast;      // pt_scale and pt_saturate_int8 cover all sums
    bool by_depth;         // words of the block are pairs of values, not of patches
    const int32_t *folded; // bias plus offset times sum of weights, if the ISA folds them
#if PT_HAS_ANY_CORE
    int8_t *unpacked; // memory for the weights of a channel
#endif
#if defined(PT_IM2COL_PAIRS)
    uint32_t *spare; // scratch behind the block, for packed channels or folded biases
    uint32_t spare_bytes;
#endif
#if defined(PT_LOOPS_V6M)
    int32_t patches; // of the image; 0 if unknown
    bool uses_spare; // `packed` lies in spare
#endif
} pt_gemm_s8;

// Multiplies n patches, the first at `patches`, `stride` bytes apart; the outputs of a patch lie in
// a row.
void pt_multiply_rows(pt_gemm_s8 *layer, const int8_t *patches, int32_t stride, int32_t n,
                      int8_t *out);
void pt_multiply_block(const pt_gemm_s8 *layer, int32_t n, int8_t *out);

// True if pt_scale covers all sums of the layer, before clamping.
bool pt_gemm_s8_scales_fast(const pt_gemm_s8 *layer);

// Returns the bytes that pt_pack_layer writes: two a weight and four words a channel.
static inline uint32_t pt_gemm_s8_bytes(int32_t depth, int32_t channels) {
    return (((uint32_t)channels + 1) & ~1u) * (2 * (((uint32_t)depth + 3) & ~3u) + 16);
}

// ---- packed weights

// Packs the weights of channel o by twos, then folded bias, shift and multiplier. Returns the end;
// *fit becomes 0 if both weights of a word are -128.
uint32_t *pt_pair_channel_v6m(const pt_gemm_s8 *layer, int32_t o, uint32_t *words, uint32_t *fit);

// Packs the doubled weights of two channels: of each four the pairs (k0, k2) and (k1, k3) of the
// first channel, then of the second. Zeros fill the last four. Returns the end.
uint32_t *pt_widen_pair(const int8_t *weights, int32_t depth, uint32_t *to);

// Moves to the channels behind the layer's.
static inline void pt_skip_channels(pt_gemm_s8 *layer) {
    if (layer->packed) {
        layer->packed =
            (const uint8_t *)layer->packed + pt_gemm_s8_bytes(layer->depth, layer->channels);
    }
    layer->weights += layer->channels * layer->depth;
    layer->output.bias += layer->output.bias ? layer->channels : 0;
    layer->output.multipliers += layer->channels;
    layer->output.shifts += layer->channels;
}

// Minimum bytes of scratch on every ISA, and bytes with which all are fastest. They depend on the
// shape alone, so that the host computes the bytes for a board.
static inline uint32_t pt_min_scratch(int32_t depth) {
    return 4 * (((uint32_t)depth + 3) & ~3u);
}

enum { PT_DSP_CHANNEL_WORDS = 112 }; // words on the stack for the widened weights of channels

// Returns the bytes of four patches in blocks of 16 bytes, without which MVE's loops take one
// output at a time. Scratch tensors of exported programs may be smaller.
static inline uint32_t pt_block_scratch(int32_t depth) {
    return 4 * (((uint32_t)depth + 15) & ~15u);
}

static inline uint32_t pt_useful_scratch(int32_t depth) {
    uint32_t min = pt_min_scratch(depth);
    return min <= 170 ? 512 : min <= 2048 ? 3 * min : pt_block_scratch(depth);
}

// Returns the bytes of scratch with which the loops of a core are fastest, for groups of `channels`
// and an image of `patches`; 0 if pt_useful_scratch is enough. The loops keep packed channels in
// scratch, and gather the patches again for channels that do not fit.
static inline uint32_t pt_max_scratch(uint8_t core, int32_t depth, int32_t channels,
                                      int32_t patches) {
    enum { MAX_BYTES = 32768, FEWEST = 8, FEWEST_PATCHES = 48, OTHERS = 48, FEWEST_CHANNELS = 24 };
    const uint32_t even = ((uint32_t)depth + 1) & ~1u, n = (uint32_t)channels;
    if (even > MAX_BYTES / 16 || (core != PT_CORE_V6M && core != PT_CORE_V7M)) {
        return 0;
    }
    if (core == PT_CORE_V7M) { // six patches, and the folded bias of each channel
        const uint32_t biases = n < 32 ? 32 : n, max = (MAX_BYTES - 12 * even) / 4;
        return 12 * even + 4 * (biases < max ? biases : max);
    }
    const uint32_t channel = pt_gemm_s8_bytes(depth, 2) / 2, max = (MAX_BYTES - 4 * even) / channel;
    if (!pt_v6m_uses_packed(depth) || patches < FEWEST_PATCHES || (max < FEWEST && max < n)) {
        // Two pairs of patches.
        return pt_v6m_uses_packed(depth) && n < FEWEST_CHANNELS ? 0 : 8 * even + 4 * OTHERS;
    }
    return 4 * even + channel * (n < max ? n : max);
}

// Additional scratch for layers whose patches lie in a row.
enum { PT_TABLE_BYTES = 1024 };

static inline uint32_t pt_useful_table(int32_t channels) {
    return channels < PT_TABLE_BYTES / 16 ? 16 * (uint32_t)channels : PT_TABLE_BYTES;
}

// If PT_MULTIPLIES_PATCH, pt_multiply_patch multiplies one patch in place, without scratch.
#if defined(PT_IM2COL_PAIRS)
enum { PT_MULTIPLIES_PATCH = 0 };
#else
enum { PT_MULTIPLIES_PATCH = 1 };
#endif
void pt_multiply_patch(const pt_gemm_s8 *layer, const int8_t *patch, int8_t *out);

#if defined(PT_LOOPS_DSP) && !defined(__ARM_FEATURE_MVE)
#define PT_IM2COL_DSP
#include "arch/dsp/im2col.inc"
#elif defined(PT_LOOPS_V7M)
#include "arch/v7m/im2col.inc"
#elif defined(PT_LOOPS_V6M)
#include "arch/v6m/im2col.inc"
#elif defined(PT_HAS_HOST_VECTORS)
#include "arch/host/im2col.inc"
#else
#define PT_IM2COL_PLAIN
#include "arch/im2col_plain.inc"
#endif

#if defined(PT_IM2COL_PAIRS)
static inline void pt_pack(const pt_gemm_s8 *layer, int32_t i, int32_t k, const int8_t *values,
                           int32_t count) {
    pt_pack_values(layer, i, k, values, count, 1, 0);
}

static inline void pt_pack_patch(const pt_gemm_s8 *layer, int32_t i, const int8_t *values,
                                 int32_t count, int32_t rows, int32_t step) {
    pt_pack_values(layer, i, 0, values, count, rows, step);
}
#elif !defined(PT_PACKS_PATCHES)
static inline void pt_pack_patch(const pt_gemm_s8 *layer, int32_t i, const int8_t *values,
                                 int32_t count, int32_t rows, int32_t step) {
    for (int32_t k = 0; rows > 0; rows--, k += count, values += step) {
        pt_pack(layer, i, k, values, count);
    }
}
#endif

#if !defined(PT_IM2COL_PAIRS)
static inline uint32_t *pt_channel_scratch(const pt_gemm_s8 *layer) {
    (void)layer;
    return NULL;
}
#endif

#if defined(PT_PACKS_TWO)
enum { PT_BY_TWO = 1 };
#else
enum { PT_BY_TWO = 0 };

static inline void pt_pack_two(const pt_gemm_s8 *layer, int32_t i, const int8_t *values,
                               int32_t next, int32_t count, int32_t rows, int32_t step) {
    (void)layer, (void)i, (void)values, (void)next, (void)count, (void)rows, (void)step;
}
#endif

#endif
