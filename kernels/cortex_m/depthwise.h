// Depthwise convolution: what its two ways to compute have in common.
#ifndef PT_CORTEX_M_DEPTHWISE_H
#define PT_CORTEX_M_DEPTHWISE_H

#include "convolution.h"

typedef struct pt_depthwise {
    pt_image in, out;
    const int8_t *weights; // (1, height, width, output channels)
    pt_window window;
    int32_t multiplier; // output channels of an input channel
    int32_t offset;     // added to the input
    pt_channels output;
} pt_depthwise;

// Scratch bytes with which a 3x3 convolution goes through planes; 0 for those that do not.
uint32_t pt_plane_scratch(const pt_depthwise *x);
// Convolves x->in to x->out through planes in such scratch. False, with part of it done, when a
// channel has parameters that planes do not take.
bool pt_run_planes(const pt_depthwise *x, void *scratch);

#endif
