// Variants of int8 convolutions that need much scratch: Winograd, 1x1 and im2row, for cores with
// the DSP extension. cortex_m/convolution.c tries them in the order of pt_build_conv_variants
// before im2col; a build leaves out the variants that none of its models gains by. Outputs equal
// those of gemm_s8.h, to the byte.
#ifndef PT_ARCH_CONV_VARIANTS_H
#define PT_ARCH_CONV_VARIANTS_H

#include "arch/conv_geometry.h"
#include <picotorch/kernel.h>

typedef struct pt_conv_variant {
    // Returns the preferred scratch: with more the variant gains less than 1 %. 0 for a convolution
    // that the variant does not cover.
    uint32_t (*scratch)(const pt_geometry *g, const pt_gemm_s8 *layer);
    // Convolves an image, or some rows of it, with `bytes` of scratch at `block`, by the packed
    // weights or, if there are none, by the plain ones. With packed weights the plain ones may be
    // NULL. Returns false, with nothing done, if another variant has to convolve.
    bool (*convolve)(pt_geometry *g, pt_gemm_s8 *layer, const int8_t *in, int8_t *out, void *block,
                     uint32_t bytes);
} pt_conv_variant;

enum {
    PT_VARIANT_SCRATCH = 32768,    // maximum scratch of a variant
    PT_VARIANT_PRODUCTS = 1 << 22, // maximum in a row; the caller divides longer rows
};

// Kernels of three columns at stride 1, by Winograd's F(2,3) along the rows: two neighbouring
// outputs of a row take four products instead of six.
//
// For a row of the kernel (w0, w1, w2) and the values (x0 to x3, the offset added) of the two
// patches:
//
//     m1 = (x1 + x2) (w0 + w1 + w2)    2 y0 = m1 + m2 + m0
//     m2 = (x2 - x1) (w0 - w1 + w2)    2 y1 = m1 - m2 + m3
//     m0 = (x0 - x2) 2 w0
//     m3 = (x3 - x1) 2 w2
//
// Each m is a sum over the rows of the kernel and the channels. The transform is exact in integers:
// the factors are int16, and intermediate sums may wrap around, since the sums of the outputs do
// not.
extern const pt_conv_variant pt_winograd;

// 1x1 kernels: as many pixels as fit into the scratch share the weights of two channels.
extern const pt_conv_variant pt_pointwise;

// All other kernels: three neighbouring patches by two channels.
extern const pt_conv_variant pt_im2row;

// True if patches are pixels of the input.
static inline bool pt_is_pointwise(const pt_geometry *g) {
    return g->kernel[0] == 1 && g->kernel[1] == 1 && (g->padding[0] | g->padding[1]) == 0;
}

// Conditions of all variants. Without packed weights the layer must also scale fast.
static inline bool pt_suits_bands(const pt_geometry *g, const pt_gemm_s8 *layer) {
    return g->dilation[0] == 1 && g->dilation[1] == 1 && g->pixel == g->channels && g->out[0] > 0 &&
           layer->channels >= 2 &&
           (int64_t)layer->depth * layer->channels * g->out[1] <= PT_VARIANT_PRODUCTS;
}

// Returns the first channel of the pair from `o` on. The last pair of an odd number overlaps the
// pair before it.
static inline int32_t pt_first_of_pair(const pt_gemm_s8 *layer, int32_t o) {
    return o < layer->channels - 2 ? o : layer->channels - 2;
}

#endif
