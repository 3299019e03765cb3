// Convolution loops of an ISA over whole images (arch/conv_geometry.h, arch/conv_variants.h),
// called for parts of them.
#ifndef PT_CORTEX_M_IMAGE_PARTS_H
#define PT_CORTEX_M_IMAGE_PARTS_H

#include "arch/conv_geometry.h"
#include <picotorch/kernel.h>

// A loop over a whole image, as pt_convolve; it may change *g and *layer.
typedef bool pt_image_loop(pt_geometry *g, pt_gemm_s8 *layer, const int8_t *in, int8_t *out,
                           void *block, uint32_t bytes);

// Calls the loop for some rows of the image at a time, or for parts of long rows. Polls. Sets *done
// to false, and returns, as soon as the loop returns false.
PT_MUST_USE int pt_convolve_in_parts(pt_context *c, pt_image_loop *loop, pt_geometry *g,
                                     pt_gemm_s8 *layer, const int8_t *in, int8_t *out,
                                     uint32_t bytes, void *block, bool *done);

#endif
