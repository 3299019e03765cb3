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
    int32_t groups; // each takes `channels` of the input, and gives `outputs` of the output
    int32_t channels;
    int32_t outputs;
    int32_t depth; // products of a sum
    bool in_place; // a patch is a pixel of the input
    pt_channels output;
    const void *packed;    // by pt_pack_layer, or NULL
    void *variant_scratch; // scratch for the forms of pt_build_conv_variants, which are tried
                           // first; or NULL
    uint32_t variant_bytes;
    bool is_left_out;          // weights that are packed are not there besides
    uint32_t *channel_scratch; // for pt_begin_channels, or NULL: it is taken of the stack
} pt_convolution;

// For a run, whose last arguments, a scratch tensor and the output, are at `args`: sets where the
// output lies, and the room for pt_begin_channels. Returns the scratch tensor where it has `least`
// bytes, or else the temp memory: of it `useful` and `table` bytes, or what there is; 0 bytes where
// that is below `least`. The room may lie in the table.
void *pt_bind_scratch(pt_convolution *x, const pt_ref *args, uint32_t min, uint32_t useful,
                      uint32_t table, uint32_t *bytes);

// Convolves x->in to x->out with at least pt_min_scratch bytes of scratch, a multiple of 4.
// Polls.
int pt_convolve_images(const pt_convolution *x, void *scratch, uint32_t bytes);

// For a check: prefers what the loops of the core and the forms of pt_build_conv_variants take,
// behind the `taken` bytes of scratch.
void pt_prefer_more(const pt_convolution *x, uint32_t used);
// For a run: gives them the temp memory behind these.
void pt_set_variant_scratch(pt_convolution *x, uint32_t used);

// Products of int8 between two polls; threads take as many at a time.
enum { PT_PART_STEPS = PT_HAS_THREADS ? 1 << 19 : 1 << 22 };

// Reads what convolutions, but for transposed ones, begin with: the arguments from input to
// dilation. Then, once the caller knows how many channels it has, the output's sizes follow.
PT_MUST_USE int pt_begin_convolution(pt_context *c, const pt_ref *args, bool explicit_layout,
                                     pt_convolution *x, pt_tensor *weights);
void pt_measure_output(pt_convolution *x, int32_t channels);
// Reads output_offset, multipliers, shifts, activation_min and activation_max, the arguments from
// `args` on, and the bias.
PT_MUST_USE int pt_read_output(pt_context *c, pt_ref bias, const pt_ref *args, int32_t n,
                               pt_channels *channels);
// Reads weights: int8 of 4 dims, none of them 0, contiguous.
PT_MUST_USE int pt_read_weights(pt_context *c, pt_ref arg, pt_tensor *weights);

#endif
