// Common parts of the int8 operators of ExecuTorch's Cortex-M dialect. Its Python implementation is
// the reference, to the byte.
#ifndef PT_CORTEX_M_QUANTIZED_H
#define PT_CORTEX_M_QUANTIZED_H

#include "arch/requantize.h"
#include <picotorch/kernel.h>

// multiplier * 2^(shift - 31) in float32, for a multiplier above 0 and |shift| <= 64.
float pt_real_multiplier(int32_t multiplier, int32_t shift);

// ---- arguments: each function returns an error and sets its reason

// Reads an int of min..max.
PT_MUST_USE int pt_read_int(pt_context *c, pt_ref arg, int32_t min, int32_t max, int32_t *value);
// Reads a zero point, or its negative.
PT_MUST_USE int pt_read_offset(pt_context *c, pt_ref arg, int32_t *offset);
// Rejects a multiplier or a shift out of its range.
PT_MUST_USE int pt_check_scale(pt_context *c, int64_t multiplier, int64_t shift);
// Reads a multiplier and, from the next argument, its shift.
PT_MUST_USE int pt_read_multiplier(pt_context *c, const pt_ref *args, int32_t *multiplier,
                                   int32_t *shift);
// Reads the minimum and the maximum of an int8 output.
PT_MUST_USE int pt_read_activation(pt_context *c, pt_ref min, pt_ref max, pt_range *r);
// Reads one or two values of at least `lowest`, for height and width.
PT_MUST_USE int pt_read_pair(pt_context *c, pt_ref list, int32_t lowest, int32_t pair[2]);

// ---- tensors

// True if the dims with more than one element lie in memory in the order `dims`.
bool pt_lies_in_order(const pt_tensor *t, const uint8_t *dims);
// True if equal offsets in memory are the same elements of both tensors, whose sizes are equal.
bool pt_same_layout(const pt_tensor *a, const pt_tensor *b);
// Rejects an output that is not of the dtype, sizes and layout of `in`.
PT_MUST_USE int pt_check_like(pt_context *c, pt_ref out, const pt_tensor *in, uint8_t dtype);
// Reads a constant of one int32 for each of n channels.
PT_MUST_USE int pt_read_channels(pt_context *c, pt_ref arg, int32_t n, const int32_t **data);

// Batch, height, width and channels of a tensor that lies in memory in this order.
typedef struct pt_image {
    int8_t *data;
    int32_t batch, height, width, channels;
} pt_image;

// Reads an int8 tensor of sizes (N, C, H, W) in channels_last, or of (N, H, W, C) if
// `explicit_layout`.
PT_MUST_USE int pt_read_image(pt_context *c, pt_ref arg, bool explicit_layout, pt_image *image);
// Like pt_expect_sizes, for an image of these sizes.
PT_MUST_USE int pt_expect_image(pt_context *c, pt_ref arg, bool explicit_layout,
                                const pt_image *image);

// ---- windows

enum { PT_HEIGHT, PT_WIDTH };

typedef struct pt_window {
    int32_t kernel[2], stride[2], padding[2], dilation[2];
} pt_window;

// Returns the number of positions `stride` apart in 0..slack; 0 for a negative slack. Slack is at
// most a size plus two paddings and a stride, so below 2**32.
int64_t pt_count_steps(int64_t slack, int32_t stride);
// Returns the number of windows along dim d of `size` elements; 0 if none fits.
int32_t pt_count_windows(const pt_window *w, uint32_t d, int32_t size);
// Limits a stride to the input's size if there is one window, and a dilation to 1 if there is one
// tap: these have no effect, and all others are at most the padded input. A stride of 1 is kept: it
// implies that the output of a kernel of one tap is as large as its input.
void pt_limit_steps(pt_window *w, const pt_image *in, const pt_image *out);

// The taps of one window along a dim: from tap `first`, `taps` of them lie inside the input, the
// first at element `start`.
typedef struct pt_span {
    int32_t first, taps, start;
} pt_span;

pt_span pt_clip_window(const pt_window *w, uint32_t d, int32_t position, int32_t size);

#endif
