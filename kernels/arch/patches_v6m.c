#include "patches.h"

#if defined(__ARM_ARCH_6M__)
#include "products_v6m.h"

// ---- channels

// The sum of a channel's weights. `fits`: no two of a step are -128, so that their products with
// values of -128 fit into 16 bits.
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

void pt_fold_offset(pt_layer *layer, int32_t *folded) {
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

// ---- packing

static inline void pack_value(uint32_t *to, int32_t i, int32_t value) {
    *to = i & 1 ? *to + ((uint32_t)value << 16) : (uint32_t)value;
}

// Of patch 0 or 1 of a block of one pair, to words that lie in a row.
static inline uint32_t *pack_row(uint32_t *to, int32_t i, const int8_t *values, int32_t count) {
    for (; count >= 4; count -= 4, values += 4, to += 4) {
        int32_t a = values[0], b = values[1], c = values[2], d = values[3];
        pack_value(to, i, a);
        pack_value(to + 1, i, b);
        pack_value(to + 2, i, c);
        pack_value(to + 3, i, d);
    }
    for (; count > 0; count--) {
        pack_value(to++, i, *values++);
    }
    return to;
}

void pt_pack_values(const pt_layer *layer, int32_t i, int32_t k, const int8_t *values,
                    int32_t count, int32_t rows, int32_t step) {
    uint32_t *to = pt_pair_at(layer, i, k);
    for (; rows > 0; rows--, values += step) {
        if (layer->width > 2) {
            for (int32_t j = 0; j < count; j++, k++) {
                pack_value(pt_pair_at(layer, i, k), i, values[j]);
            }
        } else if (i == 0) {
            to = pack_row(to, 0, values, count);
        } else {
            to = pack_row(to, 1, values, count);
        }
    }
}

void pt_pad(const pt_layer *layer, int32_t i, int32_t k, int32_t count) {
    for (; count > 0; count--) {
        pack_value(pt_pair_at(layer, i, k++), i, -layer->offset);
    }
}

// ---- blocks

// A pair, of which n patches are there, in plain C for any parameters and weights.
static void multiply_plainly(const pt_layer *layer, int32_t n, int8_t *out) {
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

// A full block or a pair, both of whose patches are there.
static void multiply_fast(const pt_layer *layer, int32_t n, int8_t *out) {
    const pt_channels *p = &layer->output;
    pt_product product = {.bias = layer->folded,
                          .multipliers = p->multipliers,
                          .shifts = p->shifts,
                          .center = (2 * p->range.offset + 1) * (1 << 20) - PT_ERROR,
                          .out = out,
                          .out_step = n == 1 ? 0 : layer->out_stride,
                          .patches = layer->block,
                          .eights = layer->depth & ~7,
                          .twos = layer->depth & ~1,
                          .odd = layer->depth & 1,
                          .rounding = 2 * p->range.offset + 1,
                          .end = layer->weights + layer->channels * layer->depth};
    if (layer->width == PT_PATCHES) {
        pt_multiply_2x1(&product, layer->weights);
    } else {
        pt_multiply_1x1(&product, layer->weights);
    }
}

// Makes the second patch of a pair a copy of the first.
static void double_first(const pt_layer *layer) {
    int16_t *values = layer->block;
    uint32_t *words = layer->block;
    for (int32_t k = 0; k < layer->depth; k++) {
        words[k] = (uint32_t)values[2 * k] * 0x10001u;
    }
}

void pt_multiply_block(const pt_layer *layer, int32_t n, int8_t *out) {
    if (!layer->scales_fast) {
        multiply_plainly(layer, n, out);
        return;
    }
    if (n == 1) {
        double_first(layer);
    }
    multiply_fast(layer, n, out);
}

// ---- rows

static inline uint32_t pair_of(int32_t first, int32_t second) {
    return (uint32_t)first + ((uint32_t)second << 16);
}

static void pack_rows(uint32_t *to, int32_t gap, const int8_t *first, const int8_t *second,
                      int32_t count) {
    for (; count > 1; count -= 2, to += 2 + gap, first += 2, second += 2) {
        to[0] = pair_of(first[0], second[0]);
        to[1] = pair_of(first[1], second[1]);
    }
    if (count) {
        to[0] = pair_of(*first, *second);
    }
}

// The last block takes rows of the one before it again.
void pt_multiply_rows(pt_layer *layer, const int8_t *patches, int32_t stride, int32_t n,
                      int8_t *out) {
    int32_t taken = pt_begin_block(layer, n);
    for (int32_t done = 0; done < n; done += taken) {
        done = done + taken < n ? done : n - taken;
        for (int32_t i = 0; i < taken; i += 2) {
            const int8_t *row = patches + (done + i) * stride;
            pack_rows(pt_pair_at(layer, i, 0), layer->width - 2, row,
                      taken == 1 ? row : row + stride, layer->depth);
        }
        pt_multiply_block(layer, taken, out + done * layer->out_stride);
    }
}

#endif
