// Common parts of int8 convolutions: arguments, scratch, and the run that depthwise.c uses for its
// transposed channels.
#ifndef PT_CORTEX_M_CONVOLUTION_H
#define PT_CORTEX_M_CONVOLUTION_H

#include "arch/threads.h"
#include "cortex_m/quantized.h"

typedef struct pt_convolution {
    pt_context *c;
    pt_image in, out;
    const int8_t *weights;
    pt_window window;
    int32_t offset; // added to the input; its negative is an int8
    int32_t groups; // each has `channels` of the input and `outputs` of the output
    int32_t channels;
    int32_t outputs;
    int32_t depth; // products of a sum
    bool in_place; // a patch is a pixel of the input
    pt_channels output;
    const void *packed;    // by pt_pack_layer, or NULL
    void *variant_scratch; // scratch of the variants, which are tried
                           // first; or NULL
    uint32_t variant_bytes;
    bool is_left_out;          // the plain weights are omitted
    uint32_t *channel_scratch; // for pt_begin_channels, or NULL: on the stack
    int32_t channel_words;
} pt_convolution;

// Returns the bytes of a scratch tensor, and its data in *data; 0 and NULL for None. Programs of
// releases before ExecuTorch 1.4 have no scratch tensor.
uint32_t pt_read_scratch(const pt_context *c, pt_ref arg, uint8_t **data);
// For a run, whose last arguments at `args` are a scratch tensor and the output: sets the output's
// data and channel_scratch. Returns the scratch tensor if it has at least `min` bytes, else temp
// memory: `useful` plus `table` bytes of it, or all of it, or 0 bytes if it has fewer than `min`.
// channel_scratch may overlap the table.
void *pt_bind_scratch(pt_convolution *x, const pt_ref *args, uint32_t min, uint32_t useful,
                      uint32_t table, uint32_t *bytes);

// Convolves x->in to x->out with at least pt_min_scratch bytes of scratch, a multiple of 4. Polls.
int pt_convolve_images(const pt_convolution *x, void *scratch, uint32_t bytes);

// For a check: prefers the scratch of the core's loops and of the variants, behind the `used` bytes
// of scratch.
void pt_prefer_more(const pt_convolution *x, uint32_t used);
// For a check: prefers scratch for the weights of channels, behind the `used` bytes.
void pt_prefer_parts(const pt_convolution *x, uint32_t used);
// For a run: assigns the temp memory behind the `used` bytes to the variants.
void pt_set_variant_scratch(pt_convolution *x, uint32_t used);

// int8 products between two polls, and in a thread's round.
enum { PT_PART_STEPS = PT_HAS_THREADS ? 1 << 19 : 1 << 22 };

// Reads the first arguments of convolutions that are not transposed, from input to dilation. Once
// the caller has read the number of channels, pt_measure_output computes the output's sizes.
// scratch: the call's scratch argument.
PT_MUST_USE int pt_begin_convolution(pt_context *c, const pt_ref *args, pt_ref scratch,
                                     bool explicit_layout, pt_convolution *x, pt_tensor *weights);
void pt_measure_output(pt_convolution *x, int32_t channels);
// Reads output_offset, multipliers, shifts, activation_min and activation_max, the arguments from
// `args` on, and the bias.
PT_MUST_USE int pt_read_output(pt_context *c, pt_ref bias, const pt_ref *args, int32_t n,
                               pt_channels *channels);
// Reads weights: int8 of 4 dims, none of them 0, contiguous. Calls without a scratch tensor may
// state any dim order: ExecuTorch 1.1 states channels_last for weights that are contiguous.
PT_MUST_USE int pt_read_weights(pt_context *c, pt_ref arg, pt_ref scratch, pt_tensor *weights);

#endif
