// Variants of int8 convolutions that need much scratch: Winograd, 1x1 and im2row, for cores with
// the DSP extension. cortex_m/convolution.c tries them in the order of pt_build_conv_variants
// before im2col; a build leaves out the variants that none of its models gains by. Outputs equal
// those of gemm_s8.h, to the byte.
#ifndef PT_ARCH_CONV_VARIANTS_H
#define PT_ARCH_CONV_VARIANTS_H

#include "arch/conv_geometry.h"
#include <picotorch/kernel.h>

typedef struct pt_conv_variant {
    // Bytes of scratch with which it is at its best, or so near that more gains less than 1 %; 0 of
    // a convolution that it is not for.
    uint32_t (*scratch)(const pt_geometry *g, const pt_gemm_s8 *layer);
    // An image, or some rows of it, with `room` bytes at `block`. Takes what is packed, or the
    // weights, which may be NULL then. False, with nothing done, where another form has to do it.
    bool (*convolve)(pt_geometry *g, pt_gemm_s8 *layer, const int8_t *in, int8_t *out, void *block,
                     uint32_t bytes);
} pt_conv_variant;

enum {
    PT_VARIANT_SCRATCH = 32768,    // most that is asked for
    PT_VARIANT_PRODUCTS = 1 << 22, // most in a row: of more the caller makes parts
};

// Kernels of three columns at stride 1, by Winograd's F(2,3) along the rows: two outputs that are
// neighbours in a row take four products where three columns take six.
//
// Of a row of the kernel (w0, w1, w2) and the values (x0 to x3, the offset added) that the two see:
//
//     m1 = (x1 + x2) (w0 + w1 + w2)    2 y0 = m1 + m2 + m0
//     m2 = (x2 - x1) (w0 - w1 + w2)    2 y1 = m1 - m2 + m3
//     m0 = (x0 - x2) 2 w0
//     m3 = (x3 - x1) 2 w2
//
// Each m is a sum over the rows of the kernel and the channels. All of it is exact in integers: the
// factors are int16, and sums may wrap around, since the outputs' do not.
extern const pt_conv_variant pt_winograd;

// Single pixels, of which as many as there is room for share the weights of two channels.
extern const pt_conv_variant pt_pointwise;

// Any other kernels: two patches that are neighbours, by two channels.
extern const pt_conv_variant pt_im2row;

// Patches that are pixels of the input.
static inline bool pt_is_pointwise(const pt_geometry *g) {
    return g->kernel[0] == 1 && g->kernel[1] == 1 && (g->padding[0] | g->padding[1]) == 0;
}

// Conditions of all bands. Without packed weights the layer has to scale fast, too.
static inline bool pt_suits_bands(const pt_geometry *g, const pt_gemm_s8 *layer) {
    return g->dilation[0] == 1 && g->dilation[1] == 1 && g->pixel == g->channels && g->out[0] > 0 &&
           layer->channels >= 2 &&
           (int64_t)layer->depth * layer->channels * g->out[1] <= PT_VARIANT_PRODUCTS;
}

// The first channel of the pair from `o` on: the last pair of an odd number begins with the one
// before the last.
static inline int32_t pt_first_of_pair(const pt_gemm_s8 *layer, int32_t o) {
    return o < layer->channels - 2 ? o : layer->channels - 2;
}

#endif
