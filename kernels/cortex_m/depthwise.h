// Depthwise convolution: the interface between depthwise.c and depthwise_planes.c.
#ifndef PT_CORTEX_M_DEPTHWISE_H
#define PT_CORTEX_M_DEPTHWISE_H

#include "cortex_m/convolution.h"

// A depthwise convolution is a pt_convolution with a group for each input channel and weights (1,
// height, width, output channels). Its offset may have any value.

// Returns the bytes of scratch for planes; 0 for a convolution that planes do not support.
uint32_t pt_plane_scratch(const pt_convolution *x);
// Convolves x->in to x->out by planes in this scratch. Sets *done to false, with part of the output
// written, if planes do not support a channel's parameters. Polls.
int pt_run_planes(const pt_convolution *x, void *scratch, bool *done);

#endif
