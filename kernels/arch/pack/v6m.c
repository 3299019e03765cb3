// Pack the weights of a convolution for ARMv6-M (v6m/pair_channel.c), read by v6m/gemm_s8.c.
#include "arch/pack/pack.h"

#if PT_HAS_PACKING

// The last word of the first channel is 1 if no word has two weights of -128.
void pt_pack_layer_v6m(const pt_gemm_s8 *layer, void *to) {
    uint32_t *words = to, all_fit = 1;
    for (int32_t o = 0; o < layer->channels; o++) {
        words = pt_pair_channel_v6m(layer, o, words, &all_fit);
    }
    ((uint32_t *)to)[(layer->depth + 3) / 4 * 2 + 3] = all_fit;
}

#endif
