#include "patches.h"
#include "dot.h"

// Four channels at a time, and the rest singly, as four of which one counts.
static void multiply_patch(const pt_layer *layer, const int8_t *patch, int8_t *out) {
    int32_t n = 4, stride = layer->depth;
    for (int32_t o = 0; o < layer->channels; o += n) {
        if (layer->channels - o < 4) {
            n = 1, stride = 0;
        }
        pt_sums sums = {0, 0, 0, 0};
        pt_dot_1x4(patch, layer->offset, layer->weights + o * layer->depth, stride, layer->depth,
                   &sums);
        int32_t all[4] = {sums.s0, sums.s1, sums.s2, sums.s3};
        for (int32_t i = 0; i < n; i++) {
            int32_t sum = pt_add_int32(all[i], pt_bias_of(&layer->output, o + i));
            out[o + i] = pt_finish(&layer->output, o + i, sum);
        }
    }
}

void pt_multiply_patches(const pt_layer *layer, const void *patches, int32_t n, int8_t *out) {
    const int8_t *patch = patches;
    for (; n > 0; n--, patch += layer->patch_stride, out += layer->out_stride) {
        multiply_patch(layer, patch, out);
    }
}
