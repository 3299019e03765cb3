// Common parts of convolutions of one to three spatial dims and their gradients.
#ifndef PT_PORTABLE_CONVOLUTION_H
#define PT_PORTABLE_CONVOLUTION_H

#include <picotorch/kernel.h>

enum { PT_AXIS_DEPTH, PT_AXIS_HEIGHT, PT_AXIS_WIDTH };

// One spatial dim of a convolution; steps count elements.
typedef struct pt_axis {
    int32_t in;
    int32_t kernel;
    int32_t out;
    int32_t stride;
    int32_t padding;
    int32_t dilation;
    int32_t in_step;
    int32_t kernel_step;
    int32_t out_step;
} pt_axis;

typedef struct pt_aten_convolution {
    const char *in;
    const char *weight;
    const char *bias; // NULL for none
    char *out;
    uint8_t dtype;
    bool transposed;
    bool to_float; // for float16 or bfloat16: out is float32
    int32_t batch;
    int32_t groups;
    int32_t in_channels;  // channels of a group
    int32_t out_channels; // channels of a group
    int32_t in_batch_step;
    int32_t in_channel_step;
    int32_t out_batch_step;
    int32_t out_channel_step;
    int32_t weight_in_step;  // between weights of neighbouring input channels
    int32_t weight_out_step; // between weights of neighbouring output channels
    int32_t weight_group_step;
    pt_axis axes[3]; // the depth is set for 5 dims; a missing height is 1
} pt_aten_convolution;

// Neighbouring outputs along an axis that share a part of the kernel.
typedef struct pt_segment {
    int32_t start; // the first output
    int32_t length;
    int32_t taps;        // kernel positions of each output
    int32_t kernel;      // the first kernel position
    int32_t kernel_step; // step between kernel positions; 0 if there is only one
    int32_t in;          // input of the first output at the first kernel position
    int32_t in_step;     // step between inputs; 0 if there is only one
} pt_segment;

// Checks the arguments of aten::convolution.out, whose input has 3 to 5 dims, and computes the
// sizes of the output.
PT_MUST_USE int pt_check_convolution(pt_context *c, const pt_ref *args, int32_t *sizes);
// For a run: reads a call. Returns false if the output is empty.
PT_MUST_USE bool pt_read_convolution(const pt_context *c, const pt_ref *args, bool transposed,
                                     pt_aten_convolution *v);
// Returns the segment that starts at output `o` of axis i.
void pt_find_taps(const pt_aten_convolution *v, uint32_t i, int32_t o, pt_segment *s);
// Convolves over height and width. Polls.
PT_MUST_USE int pt_convolve_plane(pt_context *c, const pt_aten_convolution *v);

// Runs aten::convolution.out, 1-d or 2-d, with these arguments, except `transposed`. The output may
// have any spatial sizes: outputs that no input reaches become 0.
PT_MUST_USE int pt_run_convolution(pt_context *c, const pt_ref *args, bool transposed);

extern const pt_kernel pt_aten_convolution_out;

#endif
