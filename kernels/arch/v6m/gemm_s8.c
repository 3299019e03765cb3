// int8 GEMM for ARMv6-M, for all convolutions. Tiles: 4 patches x 1 channel x 2 values; 2 patches x
// 1 channel x 2 or 4 values; with packed weights (depth above 47) 2 patches x 1 channel x 4 values.
// One MULS makes two products (products.h). Weights are packed at load, or at run where scratch and
// patches suffice. Patches: see im2col.inc. Scratch: the block, then packed channels or folded
// biases.
#include "arch/gemm_s8.h"

#if defined(PT_LOOPS_V6M)
#include "arch/pack/pack.h"
#include "arch/v6m/products.h"

// ---- channels

// Returns the sum of a channel's weights. *fits: no two weights of a step are -128, so that their
// products with values of -128 fit into 16 bits.
static int32_t sum_weights(const int8_t *weights, int32_t depth, bool *fits) {
    const int8_t *end = weights + depth, *w = weights;
    int32_t sum = 0;
    *fits = true;
    while (w != end) {
        sum += pt_sum_weights(&w, (int32_t)(end - w) & ~3);
        for (bool stop = false; w != end && !stop; w++) {
            int32_t k = (int32_t)(w - weights);
            sum += *w;
            *fits &= *w != INT8_MIN || !(k & 1) || w[-1] != INT8_MIN;
            stop = *w == INT8_MIN;
        }
    }
    return sum;
}

// Folds the layer's offset into the bias of each channel. A channel whose weights need wider sums
// becomes a part of its own.
static void gemm_s8_fold_offset(pt_gemm_s8 *layer, int32_t *folded) {
    const int8_t *w = layer->weights;
    for (int32_t o = 0; o < layer->channels; o++, w += layer->depth) {
        bool fits;
        uint32_t sum = (uint32_t)sum_weights(w, layer->depth, &fits);
        if (!fits && layer->scales_fast) { // a part of its own
            layer->channels = o > 0 ? o : 1;
            layer->scales_fast = o > 0;
        }
        uint32_t offset = (uint32_t)layer->offset * sum;
        folded[o] = pt_add_int32(pt_bias_of(&layer->output, o), (int32_t)offset);
    }
}

// True if packed weights exist, all words fit, and patches are long.
static bool uses_packed(const pt_gemm_s8 *layer) {
    const uint32_t *words = layer->packed;
    return words && pt_v6m_uses_packed(layer->depth) && words[(layer->depth + 3) / 4 * 2 + 3];
}

// Packs the channels that fit into the spare scratch, up to one with two weights of -128 in a word.
// Returns false if there are none, or too few channels or patches to pay for packing.
static bool pack_some(pt_gemm_s8 *layer) {
    enum { FEWEST = 8, FEWEST_PATCHES = 48 };
    const uint32_t channel = pt_gemm_s8_bytes(layer->depth, 2) / 2;
    uint32_t *words = layer->spare, fit = 1;
    int32_t max = (int32_t)(layer->spare_bytes / channel), n = 0;
    max = max < layer->channels ? max : layer->channels;
    if (!pt_v6m_uses_packed(layer->depth) || layer->patches < FEWEST_PATCHES ||
        (max < FEWEST && max < layer->channels)) {
        return false;
    }
    while (n < max && fit) {
        words = pt_pair_channel_v6m(layer, n, words, &fit);
        n += (int32_t)fit;
    }
    if (n > 0) {
        layer->channels = n;
        layer->packed = layer->spare;
    }
    return n > 0;
}

void pt_begin_channels(pt_gemm_s8 *layer, uint32_t *scratch) {
    if (layer->uses_spare) {
        layer->packed = NULL;
    }
    layer->scales_fast = !pt_narrows(&layer->output.range) &&
                         (layer->packed || pt_gemm_s8_scales_fast(layer)) &&
                         layer->output.range.offset == (int8_t)layer->output.range.offset;
    layer->by_depth = layer->scales_fast && uses_packed(layer);
    layer->uses_spare = layer->scales_fast && !layer->by_depth && pack_some(layer);
    if (layer->by_depth || layer->uses_spare) {
        layer->by_depth = true;
        return;
    }
    layer->packed = NULL; // parts may begin at any channel
    layer->channels = layer->channels < PT_CHANNEL_WORDS ? layer->channels : PT_CHANNEL_WORDS;
    layer->folded = (int32_t *)scratch;
    gemm_s8_fold_offset(layer, (int32_t *)scratch);
}

// ---- packing

// Packs four values of a row at a time, by depth: sums of a value and 2^16 times the next. `count`
// is a multiple of 4, not 0.
static uint32_t *pack_fours_by_depth(uint32_t *words, const int8_t *values, int32_t count) {
    register const int8_t *end __asm__("r0") = values + count;
    register int32_t k __asm__("r4") = -count;
    register uint32_t *to __asm__("r5") = words;
    __asm__ volatile(PT_UNIFIED "adds r1, r0, #1\n\t"
                                "adds r2, r0, #2\n\t"
                                "adds r3, r0, #3\n"
                                "1:\n\t"
                                "ldrsb r6, [r1, r4]\n\t"
                                "lsls r6, r6, #16\n\t"
                                "ldrsb r7, [r0, r4]\n\t"
                                "adds r6, r6, r7\n\t"
                                "str r6, [r5]\n\t"
                                "ldrsb r6, [r3, r4]\n\t"
                                "lsls r6, r6, #16\n\t"
                                "ldrsb r7, [r2, r4]\n\t"
                                "adds r6, r6, r7\n\t"
                                "str r6, [r5, #8]\n\t"
                                "adds r5, #16\n\t"
                                "adds r4, #4\n\t"
                                "bne 1b"
                     : "+r"(k), "+r"(to)
                     : "r"(end)
                     : "r1", "r2", "r3", "r6", "r7", "cc", "memory");
    return to;
}

// Packs a row of `count` values from value k of patch i, 0 or 1, on.
static void pack_row_by_depth(uint32_t *block, int32_t i, int32_t k, const int8_t *values,
                              int32_t count) {
    uint32_t *to = block + (k & ~1) + i;
    const int8_t *end = values + count;
    if (k & 1 && count > 0) {
        *to += (uint32_t)*values++ << 16;
        to += 2;
    }
    int32_t whole = (int32_t)(end - values) & ~3;
    if (whole > 0) {
        to = pack_fours_by_depth(to, values, whole);
        values += whole;
    }
    if (end - values > 1) {
        *to = (uint32_t)values[0] + ((uint32_t)values[1] << 16);
        to += 2;
        values += 2;
    }
    if (values != end) {
        *to = (uint32_t)*values;
    }
}

// Makes the second patch a copy of the first.
static void double_patch_by_depth(uint32_t *block, int32_t depth) {
    for (int32_t k = 0; k < depth; k += 2) {
        block[k + 1] = block[k];
    }
}

static inline void gemm_s8_pack_value(uint32_t *to, int32_t i, int32_t value) {
    *to = i & 1 ? *to + ((uint32_t)value << 16) : (uint32_t)value;
}

// Adds values of patch 1 to the words of a block of one pair. `count` is a multiple of 4.
static uint32_t *add_fours(uint32_t *words, const int8_t *values, int32_t count) {
    register uint32_t *to __asm__("r0") = words;
    register const int8_t *from __asm__("r1") = values;
    register const int8_t *end __asm__("r12") = values + count;
    __asm__ volatile(PT_UNIFIED "b 2f\n"
                                "1:\n\t"
                                "ldmia r0!, {r4, r5, r6, r7}\n\t"
                                "subs r0, #16\n\t"
                                "ldrb r2, [r1]\n\t"
                                "lsls r2, r2, #24\n\t"
                                "asrs r2, r2, #8\n\t"
                                "adds r4, r4, r2\n\t"
                                "ldrb r2, [r1, #1]\n\t"
                                "lsls r2, r2, #24\n\t"
                                "asrs r2, r2, #8\n\t"
                                "adds r5, r5, r2\n\t"
                                "ldrb r2, [r1, #2]\n\t"
                                "lsls r2, r2, #24\n\t"
                                "asrs r2, r2, #8\n\t"
                                "adds r6, r6, r2\n\t"
                                "ldrb r2, [r1, #3]\n\t"
                                "lsls r2, r2, #24\n\t"
                                "asrs r2, r2, #8\n\t"
                                "adds r7, r7, r2\n\t"
                                "stmia r0!, {r4, r5, r6, r7}\n\t"
                                "adds r1, #4\n"
                                "2:\n\t"
                                "cmp r1, r12\n\t"
                                "bne 1b"
                     : "+r"(to), "+r"(from)
                     : "r"(end)
                     : "r2", "r4", "r5", "r6", "r7", "cc", "memory");
    return to;
}

// Packs values of patch i, 0 or 1, of such a block.
static inline uint32_t *gemm_s8_pack_row(uint32_t *to, int32_t i, const int8_t *values,
                                         int32_t count) {
    int32_t whole = count & ~3;
    if (i) {
        to = add_fours(to, values, whole);
    }
    for (int32_t k = i ? whole : 0; k < whole; k += 4, to += 4) {
        int32_t a = values[k], b = values[k + 1], c = values[k + 2], d = values[k + 3];
        to[0] = (uint32_t)a;
        to[1] = (uint32_t)b;
        to[2] = (uint32_t)c;
        to[3] = (uint32_t)d;
    }
    for (int32_t k = whole; k < count; k++) {
        gemm_s8_pack_value(to++, i, values[k]);
    }
    return to;
}

void pt_pack_values(const pt_gemm_s8 *layer, int32_t i, int32_t k, const int8_t *values,
                    int32_t count, int32_t rows, int32_t step) {
    uint32_t *to = pt_pair_at(layer, i, k);
    for (; rows > 0; rows--, values += step) {
        if (layer->by_depth) {
            pack_row_by_depth(layer->block, i, k, values, count);
            k += count;
        } else if (layer->width > 2) {
            for (int32_t j = 0; j < count; j++, k++) {
                gemm_s8_pack_value(to, i, values[j]);
                to += k & 1 ? layer->width - 1 : 1;
            }
        } else {
            to = gemm_s8_pack_row(to, i, values, count);
        }
    }
}

static void pad_by_depth(uint32_t *block, int32_t i, int32_t k, uint32_t value, int32_t count) {
    uint32_t *to = block + (k & ~1) + i;
    const uint32_t both = value + (value << 16);
    if (k & 1 && count > 0) {
        *to += value << 16;
        to += 2;
        count--;
    }
    for (; count > 1; count -= 2, to += 2) {
        *to = both;
    }
    if (count > 0) {
        *to = value;
    }
}

void pt_pad(const pt_gemm_s8 *layer, int32_t i, int32_t k, int32_t count) {
    const int32_t value = -layer->offset;
    if (layer->by_depth) {
        pad_by_depth(layer->block, i, k, (uint32_t)value, count);
        return;
    }
    for (uint32_t *to = pt_pair_at(layer, i, k); count > 0; count--) {
        gemm_s8_pack_value(to, i, value);
        to += k++ & 1 ? layer->width - 1 : 1;
    }
}

// ---- blocks

// Multiplies a pair, of which n patches exist, in plain C for any parameters and weights.
static void gemm_s8_multiply_plainly(const pt_gemm_s8 *layer, int32_t n, int8_t *out) {
    const int8_t *w = layer->weights;
    for (int32_t o = 0; o < layer->channels; o++) {
        uint32_t first = (uint32_t)layer->folded[o], second = first;
        const int32_t *words = layer->block;
        for (const int8_t *end = w + layer->depth; w != end; w++) {
            int32_t word = *words++, low = (int16_t)word;
            first += (uint32_t)(low * *w);
            second += (uint32_t)(((word - low) >> 16) * *w);
        }
        out[o] = pt_finish(&layer->output, o, (int32_t)first);
        if (n == 2) {
            out[o + layer->out_stride] = pt_finish(&layer->output, o, (int32_t)second);
        }
    }
}

// Multiplies a full block or a pair of two patches.
static void multiply_fast(const pt_gemm_s8 *layer, int32_t n, int8_t *out) {
    const pt_channels *p = &layer->output;
    pt_tile_args args = {.bias = layer->folded,
                         .multipliers = p->multipliers,
                         .shifts = p->shifts,
                         .center = (2 * p->range.offset + 1) * (1 << 20) - PT_ERROR,
                         .out = out,
                         .out_step = n == 1 ? 0 : layer->out_stride,
                         .patches = layer->block,
                         .unrolled = layer->depth & ~7,
                         .steps = layer->depth & ~1,
                         .odd = layer->depth & 1,
                         .rounding = 2 * p->range.offset + 1,
                         .end = layer->weights + layer->channels * layer->depth};
    if (layer->width == PT_PATCHES) {
        pt_multiply_2x1(&args, layer->weights);
    } else if ((((uintptr_t)layer->weights | (uint32_t)layer->depth) & 3) == 0) {
        args.unrolled = layer->depth & ~15;
        pt_multiply_words(&args, layer->weights);
    } else {
        pt_multiply_1x1(&args, layer->weights);
    }
}

static void gemm_s8_multiply_packed(const pt_gemm_s8 *layer, int32_t n, int8_t *out) {
    int32_t offset = layer->output.range.offset, bytes = 2 * ((layer->depth + 3) & ~3);
    const uint8_t *w = layer->packed;
    pt_tile_args args = {.center = (2 * offset + 1) * (1 << 20) - PT_ERROR,
                         .out = out,
                         .out_step = n == 1 ? 0 : layer->out_stride,
                         .patches = layer->block,
                         .unrolled = bytes & ~31,
                         .steps = bytes,
                         .rounding = 2 * offset + 1,
                         .end = w + layer->channels * (bytes + 16)};
    if (n == 1) {
        double_patch_by_depth(layer->block, layer->depth);
    }
    pt_multiply_packed(&args, w);
}

// Makes the second patch of a pair a copy of the first.
static void double_first(const pt_gemm_s8 *layer) {
    int16_t *values = layer->block;
    uint32_t *words = layer->block;
    for (int32_t k = 0; k < layer->depth; k++) {
        words[k] = (uint32_t)values[2 * k] * 0x10001u;
    }
}

void pt_multiply_block(const pt_gemm_s8 *layer, int32_t n, int8_t *out) {
    if (layer->by_depth) {
        gemm_s8_multiply_packed(layer, n, out);
        return;
    }
    if (!layer->scales_fast) {
        gemm_s8_multiply_plainly(layer, n, out);
        return;
    }
    if (n == 1) {
        double_first(layer);
    }
    multiply_fast(layer, n, out);
}

// ---- rows

static inline uint32_t gemm_s8_pair_of(int32_t first, int32_t second) {
    return (uint32_t)first + ((uint32_t)second << 16);
}

static void pack_rows(uint32_t *to, int32_t gap, const int8_t *first, const int8_t *second,
                      int32_t count) {
    for (; count > 1; count -= 2, to += 2 + gap, first += 2, second += 2) {
        to[0] = gemm_s8_pair_of(first[0], second[0]);
        to[1] = gemm_s8_pair_of(first[1], second[1]);
    }
    if (count) {
        to[0] = gemm_s8_pair_of(*first, *second);
    }
}

// The last block overlaps the block before it.
void pt_multiply_rows(pt_gemm_s8 *layer, const int8_t *patches, int32_t stride, int32_t n,
                      int8_t *out) {
    int32_t count = pt_begin_block(layer, n);
    for (int32_t done = 0; done < n; done += count) {
        done = done + count < n ? done : n - count;
        for (int32_t i = 0; i < count && layer->by_depth; i++) {
            pack_row_by_depth(layer->block, i, 0, patches + (done + i) * stride, layer->depth);
        }
        for (int32_t i = 0; i < count && !layer->by_depth; i += 2) {
            const int8_t *row = patches + (done + i) * stride;
            pack_rows(pt_pair_at(layer, i, 0), layer->width - 2, row,
                      count == 1 ? row : row + stride, layer->depth);
        }
        pt_multiply_block(layer, count, out + done * layer->out_stride);
    }
}

#endif
