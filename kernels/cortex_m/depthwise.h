// Depthwise convolution: the interface between depthwise.c and depthwise_planes.c.
#ifndef PT_CORTEX_M_DEPTHWISE_H
#define PT_CORTEX_M_DEPTHWISE_H

#include "cortex_m/convolution.h"

// A depthwise convolution is a pt_convolution with a group for each input channel and weights (1,
// height, width, output channels). Its offset is any.

// Scratch bytes with which a 3x3 convolution goes through planes; 0 for those that do not.
uint32_t pt_plane_scratch(const pt_convolution *x);
// Convolves x->in to x->out through planes in such scratch. *done becomes false, with part of it
// done, when a channel has parameters that planes do not take. Polls.
int pt_run_planes(const pt_convolution *x, void *scratch, bool *done);

#endif
