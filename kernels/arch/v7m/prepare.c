#include "../prepare.h"
#include "../pack_by_depth.h"

// Of each channel the weights by twos, then doubled bias, multiplier, right shift and rounding.
void pt_prepare_layer_v7m(const pt_layer *layer, void *to) {
    const pt_channels *output = &layer->output;
    uint32_t *words = to;
    for (int32_t o = 0; o < layer->channels; o++) {
        words =
            pt_pair_weights(layer->weights + o * layer->depth, layer->depth, PT_SHIFT_V7M, words);
        *words++ = 2 * (uint32_t)pt_bias_of(output, o);
        *words++ = (uint32_t)output->multipliers[o];
        *words++ = (uint32_t)-output->shifts[o];
        *words++ = (uint32_t)pt_rounding(output->shifts[o], output->range.offset);
    }
}
