// What a convolution and its gradients share.
#ifndef PT_PORTABLE_CONVOLUTION_H
#define PT_PORTABLE_CONVOLUTION_H

#include "../core/kernel.h"

// Runs aten::convolution.out with these arguments, but for what they say of `transposed`. The
// output may have any spatial sizes: what no input reaches becomes 0.
int pt_run_convolution(pt_context *c, const pt_ref *args, bool transposed);

extern const pt_kernel pt_aten_convolution_out;

#endif
