// int8 convolutions of a whole image, for ISAs whose loops address the image themselves instead of
// one im2col patch: dsp/conv_strip.c, mve/conv_s8.c and mve/depthwise.c. cortex_m/convolution.c and
// cortex_m/depthwise.c call them by way of image_parts.c.
#ifndef PT_ARCH_CONV_GEOMETRY_H
#define PT_ARCH_CONV_GEOMETRY_H

#include "arch/gemm_s8.h"

// The pairs are (height, width).
typedef struct pt_geometry {
    int32_t in[2], out[2], kernel[2], stride[2], padding[2], dilation[2];
    int32_t channels; // input channels of a patch
    int32_t pixel;    // bytes from a pixel of the input to the next
} pt_geometry;

#if defined(PT_LOOPS_DSP)

enum { PT_CONVOLVES_SOME = 1 };

// Convolves one group of an image, with `bytes` of scratch at `block`. Returns false, with nothing
// done, if only gemm_s8.h covers it; the outputs are the same. Changes layer->width.
bool pt_convolve(const pt_geometry *g, pt_gemm_s8 *layer, const int8_t *in, int8_t *out,
                 void *block, uint32_t bytes);

#else

enum { PT_CONVOLVES_SOME = 0 };

static inline bool pt_convolve(const pt_geometry *g, pt_gemm_s8 *layer, const int8_t *in,
                               int8_t *out, void *block, uint32_t bytes) {
    (void)g, (void)layer, (void)in, (void)out, (void)block, (void)bytes;
    return false;
}

#endif

#if defined(__ARM_FEATURE_MVE)

// pt_convolve covers every convolution.
enum { PT_CONVOLVES_ALL = 1, PT_CONVOLVES_DEPTHWISE = 1 };

// The same for a depthwise convolution: g->channels is the number of outputs of an input channel,
// the weights are (height, width, outputs). The function may change *g and *layer.
void pt_convolve_depthwise(pt_geometry *g, pt_gemm_s8 *layer, const int8_t *in, int8_t *out,
                           void *block, uint32_t bytes);

// The same with several outputs of each input channel. Returns false, perhaps with a part of the
// image done, if `bytes` are too few.
bool pt_convolve_multiplied(pt_geometry *g, pt_gemm_s8 *layer, const int8_t *in, int8_t *out,
                            void *block, uint32_t bytes);

#else

enum { PT_CONVOLVES_ALL = 0, PT_CONVOLVES_DEPTHWISE = 0 };

static inline void pt_convolve_depthwise(pt_geometry *g, pt_gemm_s8 *layer, const int8_t *in,
                                         int8_t *out, void *block, uint32_t bytes) {
    (void)g, (void)layer, (void)in, (void)out, (void)block, (void)bytes;
}

#endif

#endif
