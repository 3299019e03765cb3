// What convolutions, depthwise and transposed ones have in common.
#ifndef PT_CORTEX_M_CONVOLUTION_H
#define PT_CORTEX_M_CONVOLUTION_H

#include "quantized.h"

// Reads output_offset, multipliers, shifts, activation_min and activation_max, the arguments from
// `args` on, and the bias.
int pt_read_output(pt_context *c, pt_ref bias, const pt_ref *args, int32_t n,
                   pt_channels *channels);
// Reads weights: int8 of 4 dims, none of them 0, contiguous.
int pt_read_weights(pt_context *c, pt_ref arg, pt_tensor *weights);

#endif
