// int8 GEMM in plain C, the specification of gemm_s8.h: 1 patch x 4 channels x 1 value by
// pt_dot_1x4 (SMLAD on words of 4 values with the DSP extension), then requantize.
// pt_multiply_patch also serves the DSP loops where sums could overflow, and convolutions without
// scratch.
#include "arch/gemm_s8.h"
#include "arch/dot.h"
#include "arch/pack/pack.h"

bool pt_gemm_s8_scales_fast(const pt_gemm_s8 *layer) {
    const pt_channels *p = &layer->output;
    bool fast = layer->depth <= PT_MAX_PRODUCTS;
    for (int32_t o = 0; fast && o < layer->channels; o++) {
        uint32_t bias = (uint32_t)pt_bias_of(p, o) + PT_BIAS_LIMIT;
        fast = pt_scales_fast(p->multipliers[o], p->shifts[o]) && bias < 2 * PT_BIAS_LIMIT;
    }
    return fast;
}

#if !defined(PT_IM2COL_PAIRS)

// Multiplies four channels at a time; the last four may overlap the ones before. Of less than four
// each is multiplied as four equal ones.
void pt_multiply_patch(const pt_gemm_s8 *layer, const int8_t *patch, int8_t *out) {
    const int32_t channels = layer->channels, depth = layer->depth;
    const int32_t n = channels < 4 ? 1 : 4, stride = channels < 4 ? 0 : depth;
    for (int32_t o = 0; o < channels; o += n) {
        const int32_t from = o < channels - n ? o : channels - n;
        pt_sums sums = {0, 0, 0, 0};
        pt_dot_1x4(patch, layer->offset, layer->weights + from * depth, stride, depth, &sums);
        int32_t all[4] = {sums.s0, sums.s1, sums.s2, sums.s3};
        for (int32_t i = 0; i < n; i++) {
            int32_t sum = pt_add_int32(all[i], pt_bias_of(&layer->output, from + i));
            out[from + i] = pt_finish(&layer->output, from + i, sum);
        }
    }
}

#if defined(PT_IM2COL_PLAIN)

void pt_multiply_rows(pt_gemm_s8 *layer, const int8_t *patches, int32_t stride, int32_t n,
                      int8_t *out) {
    if (PT_HAS_ANY_CORE && layer->packed) {
        pt_multiply_unpacked(layer, patches, stride, n, out);
        return;
    }
    for (; n > 0; n--, patches += stride, out += layer->out_stride) {
        pt_multiply_patch(layer, patches, out);
    }
}

void pt_multiply_block(const pt_gemm_s8 *layer, int32_t n, int8_t *out) {
    if (PT_HAS_ANY_CORE && layer->packed) {
        pt_multiply_unpacked(layer, layer->block, layer->depth, n, out);
    } else {
        pt_multiply_patch(layer, layer->block, out);
    }
}

#endif
#endif
