#include "../prepare.h"
#include "../pack_by_depth.h"

// The sum of a channel's weights. `fit` becomes 0 where two of a step are -128: their products with
// values of -128 would not fit into 16 bits.
static uint32_t sum_weights(const int8_t *weights, int32_t depth, uint32_t *fit) {
    int32_t sum = depth & 1 ? weights[depth - 1] : 0;
    for (const int8_t *w = weights, *end = w + (depth & ~1); w != end; w += 2) {
        int32_t both = w[0] + w[1];
        sum += both;
        if (both == 2 * INT8_MIN) {
            *fit = 0;
        }
    }
    return (uint32_t)sum;
}

// Of each channel the weights by twos, then bias with the offset, shift and multiplier. The last
// word of the first channel: whether all fit.
void pt_prepare_layer_v6m(const pt_layer *layer, void *to) {
    const pt_channels *output = &layer->output;
    const int8_t *w = layer->weights;
    uint32_t *words = to, all_fit = 1;
    for (int32_t o = 0; o < layer->channels; o++, w += layer->depth) {
        uint32_t sum = sum_weights(w, layer->depth, &all_fit);
        words = pt_pair_weights(w, layer->depth, words);
        *words++ = (uint32_t)pt_bias_of(output, o) + (uint32_t)layer->offset * sum;
        *words++ = (uint32_t)output->shifts[o];
        *words++ = (uint32_t)output->multipliers[o];
        *words++ = 0;
    }
    ((uint32_t *)to)[(layer->depth + 3) / 4 * 2 + 3] = all_fit;
}
