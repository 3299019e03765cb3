// What convolutions, depthwise and transposed ones have in common.
#ifndef PT_CORTEX_M_CONVOLUTION_H
#define PT_CORTEX_M_CONVOLUTION_H

#include "quantized.h"

// From sums to outputs, with a multiplier for each channel.
typedef struct pt_channels {
    const int32_t *bias; // NULL for none
    const int32_t *multipliers, *shifts;
    pt_range range;
} pt_channels;

static inline int32_t pt_bias_of(const pt_channels *channels, int32_t channel) {
    return channels->bias ? channels->bias[channel] : 0;
}

static inline int8_t pt_finish(const pt_channels *channels, int32_t channel, int32_t sum) {
    return pt_to_int8(pt_requantize(sum, channels->multipliers[channel], channels->shifts[channel]),
                      &channels->range);
}

// Reads output_offset, multipliers, shifts, activation_min and activation_max, the arguments from
// `args` on, and the bias.
int pt_read_output(pt_context *c, pt_ref bias, const pt_ref *args, int32_t n,
                   pt_channels *channels);
// Reads weights: int8 of 4 dims, none of them 0, contiguous.
int pt_read_weights(pt_context *c, pt_ref arg, pt_tensor *weights);

#endif
