// Rows of outputs of a 3x3 depthwise convolution, of a few channels: its inner loops.
//
// The input of a channel lies in a plane: rows of its values alone, padded, as numbers of 16 or 32
// bits. Planes of four channels are made together, from one row of the image after the other.
//
//     pt_plane                          a value of a plane
//     PT_PLANE_OFFSET                   1 where planes hold the input's offset, 0 where the bias
//     does pt_widen(in, step, n, offset, to, plane)
//                                       n pixels of 4 channels, at multiples of 4
//     pt_set_bias(channel, bias)
//     pt_set_weights(channel, row, w0, w1, w2)
//     pt_set_scale(channel, multiplier, right, rounding)
//                                       as of pt_scale
//     pt_plan_rows(plan, channels, row) once for rows that differ in `rows` and `out` alone
//     pt_multiply_rows(plan, channels, row)
//                                       outputs, limited to int8
//
// depthwise_plain.inc is their specification; every ISA gives the same outputs.
#ifndef PT_ARCH_DEPTHWISE_H
#define PT_ARCH_DEPTHWISE_H

#include "arch/offsets.h"
#include "arch/scale.h"
#include <picotorch/config.h>
#include <stddef.h>

// PT_ROW_OUTPUTS of a row are made together.
#if defined(PT_LOOPS_DSP)
typedef int16_t pt_plane;
enum { PT_ROW_OUTPUTS = 6 };
#else
typedef int32_t pt_plane;
enum { PT_ROW_OUTPUTS = 4 };
#endif

// Most bytes of a pt_depthwise_channel and of a pt_plane on any ISA.
enum { PT_DEPTHWISE_CHANNEL_BYTES = 80, PT_PLANE_BYTES = 4 };

// A row of the image.
typedef struct pt_pixels {
    int32_t n;
    int32_t step;  // bytes from one to the next
    int32_t plane; // values from a channel's plane to the next
    int32_t offset;
} pt_pixels;

// A row of `n` outputs, at least one, of `channels` channels.
typedef struct pt_depthwise_row {
    const pt_plane *rows[3]; // of the first channel
    int32_t plane;           // values from a channel's plane to the next
    int32_t stride;          // 1 or 2
    int8_t *out;             // of the first channel; the other channels follow
    int32_t step;            // bytes from an output to the next
    int32_t n, channels;
} pt_depthwise_row;

#if defined(PT_LOOPS_DSP) || defined(PT_LOOPS_V7M)
#include "arch/depthwise_blocks.inc"
#elif defined(PT_LOOPS_V6M)
#include "arch/v6m/depthwise.inc"
#else
#include "arch/depthwise_plain.inc"
#endif

PT_STATIC_ASSERT(sizeof(pt_depthwise_channel) <= PT_DEPTHWISE_CHANNEL_BYTES &&
                     sizeof(pt_plane) <= PT_PLANE_BYTES,
                 "more bytes than are asked for");

#endif
