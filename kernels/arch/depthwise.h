// int8 3x3 depthwise convolution of a row of outputs, from planes: three padded rows of each
// channel, widened to int16 (DSP) or int32. cortex_m/depthwise_planes.c fills the planes and calls
// the loops. Tile: 1 channel x 6 outputs (DSP), 4 (v7m) or 1 (v6m, plain C) x 9 taps. Scratch:
// planes and parameters, the caller's.
#ifndef PT_ARCH_DEPTHWISE_H
#define PT_ARCH_DEPTHWISE_H

#include "arch/offsets.h"
#include "arch/scale.h"
#include <picotorch/config.h>
#include <stddef.h>

// Each ISA defines:
//
//     pt_plane                          a value of a plane
//     PT_PLANE_OFFSET                   1 if planes contain the input's offset, 0 if the bias does
//     pt_widen(pixels, in, to)          n pixels of 4 channels, at multiples of 4, to 4 planes
//     pt_set_bias(channel, bias)
//     pt_set_weights(channel, row, w0, w1, w2)
//     pt_set_scale(channel, multiplier, right, rounding)
//                                       the arguments of pt_scale
//     pt_plan_rows(plan, channels, row) once for rows that differ in `rows` and `out` alone
//     pt_multiply_rows(plan, channels, row)
//                                       outputs, saturated to int8
//
// depthwise_plain.inc is the specification; every ISA gives the same outputs.

// PT_ROW_OUTPUTS: outputs of a row that a loop computes together.
#if defined(PT_LOOPS_DSP)
typedef int16_t pt_plane;
enum { PT_ROW_OUTPUTS = 6 };
#else
typedef int32_t pt_plane;
enum { PT_ROW_OUTPUTS = 4 };
#endif

// Maximum bytes of a pt_depthwise_channel and of a pt_plane on any ISA.
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
