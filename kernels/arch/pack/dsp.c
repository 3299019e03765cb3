// Pack weights for cores with the DSP extension: of convolutions two channels at a time with bias
// and scale (pt_pack_layer_dsp), of fully connected layers four rows at a time (pt_pack_rows_dsp),
// as int16 pairs (k0, k2), (k1, k3). Written at load, read by dsp/gemm_s8.c, the variants and
// dsp/fully_connected_s8.c.
#include "arch/pack/pack.h"

#if PT_HAS_PACKING

// Writes for each pair of channels the doubled biases, the widened weights, then for each channel
// multiplier, right shift and rounding. Omits the last of an odd number of channels.
void pt_pack_layer_dsp(const pt_gemm_s8 *layer, void *to) {
    const pt_channels *output = &layer->output;
    uint32_t *words = to;
    for (int32_t o = 0; o + 1 < layer->channels; o += 2) {
        *words++ = 2 * (uint32_t)pt_bias_of(output, o);
        *words++ = 2 * (uint32_t)pt_bias_of(output, o + 1);
        words = pt_widen_pair(layer->weights + o * layer->depth, layer->depth, words);
        for (int32_t i = o; i < o + 2; i++) {
            *words++ = (uint32_t)output->multipliers[i];
            *words++ = (uint32_t)-output->shifts[i];
            *words++ = (uint32_t)pt_rounding(output->shifts[i], output->range.offset);
        }
    }
}

// Writes the values of four rows in turn, four at a time, as the pairs (k0, k2) and (k1, k3).
void pt_pack_rows_dsp(const pt_linear *p, const int8_t *w, void *to) {
    const int8_t *end = w + pt_packed_outputs(p->outputs) * p->depth;
    uint32_t *words = to;
    for (; w != end; w += 4 * p->depth) {
        for (int32_t k = 0; k < p->depth; k += 4) {
            for (int32_t i = 0; i < 4; i++) {
                const int8_t *row = w + i * p->depth + k;
                *words++ = pt_word_of(row[0], row[2]);
                *words++ = pt_word_of(row[1], row[3]);
            }
        }
    }
    memset(words, 0, PT_ROWS_BEHIND);
}

#endif
