// Pack the weights of a channel for ARMv6-M: two int8 in a word, then folded bias, shift and
// multiplier. Called at load (pack/v6m.c) and at run (v6m/gemm_s8.c). Plain C, also built for the
// host.
#include "arch/gemm_s8.h"

// Writes the sum of the second weight and 2^16 times the first for each two weights, up to a
// multiple of four, to *words, which becomes the end. Returns the sum of all weights. *fit becomes
// 0 if both weights of a word are -128, whose products with values of -128 would not fit into 16
// bits.
static uint32_t pair_weights(const int8_t *w, int32_t depth, uint32_t **words, uint32_t *fit) {
    const int8_t *end = w + (depth & ~1);
    uint32_t *to = *words;
    int32_t sum = 0;
    while (w != end) {
        int32_t first = *w++, second = *w++, both = first + second;
        sum += both;
        *to++ = ((uint32_t)first << 16) + (uint32_t)second;
        if (both == 2 * INT8_MIN) {
            *fit = 0;
        }
    }
    if (depth & 1) {
        sum += *w;
        *to++ = (uint32_t)*w << 16;
    }
    if ((to - *words) & 1) {
        *to++ = 0;
    }
    *words = to;
    return (uint32_t)sum;
}

uint32_t *pt_pair_channel_v6m(const pt_gemm_s8 *layer, int32_t o, uint32_t *words, uint32_t *fit) {
    const pt_channels *output = &layer->output;
    uint32_t sum = pair_weights(layer->weights + o * layer->depth, layer->depth, &words, fit);
    *words++ = (uint32_t)pt_bias_of(output, o) + (uint32_t)layer->offset * sum;
    *words++ = (uint32_t)output->shifts[o];
    *words++ = (uint32_t)output->multipliers[o];
    *words++ = 0;
    return words;
}
