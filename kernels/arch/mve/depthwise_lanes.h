// int8 depthwise convolution with channels in lanes, MVE: the arguments of pt_run_lanes, which
// depthwise.c (3x3) and depthwise_lanes.c (any window) share.
#ifndef PT_ARCH_MVE_DEPTHWISE_LANES_H
#define PT_ARCH_MVE_DEPTHWISE_LANES_H

#include "arch/conv_geometry.h"
#include "arch/offsets.h"

enum { PT_LANES = 16 }; // channels at a time

// A pixel of the output: its taps that lie in the image.
typedef struct pt_lanes_pixel {
    const int8_t *in, *weights; // of the first tap; weights of the first 16 channels
    const int32_t *bias;
    int32_t shape; // 4 * rows + columns; for a pt_window_lanes 4 * rows
} pt_lanes_pixel;

PT_SIZE(pt_lanes_pixel, 16);

// Loops over the taps of 16 neighbouring channels.
typedef enum pt_lanes_kind {
    PT_SIXTEEN = 16,      // with the input's offset added
    PT_SIXTEEN_FULL = 17, // without it
} pt_lanes_kind;

// Parameters of a window of any size, of 16 channels or of up to eight. Lanes contain the even
// channels of 8, then the odd ones.
typedef struct pt_window_lanes {
    int32_t one, offset;
    int32_t multipliers[PT_LANES], shifts[PT_LANES];
    int32_t weight_step, columns; // bytes from a column of taps to the next; taps of a row
    int32_t row, weight_row;      // bytes from the end of a row of taps to the next
    int32_t kind;                 // a pt_lanes_kind, or the number of channels: at most eight
    int32_t keeps_sums;           // true: stores sums in place of outputs
    uint16_t inputs[8];           // channels of the input, from the first on
    int32_t bias[PT_LANES],
        full_bias[PT_LANES]; // full_bias: plus the input's offset times all weights
} pt_window_lanes;

PT_OFFSET(pt_window_lanes, one, 0);
PT_OFFSET(pt_window_lanes, offset, 4);
PT_OFFSET(pt_window_lanes, multipliers, 8);
PT_OFFSET(pt_window_lanes, shifts, 72);
PT_OFFSET(pt_window_lanes, weight_step, 136);
PT_OFFSET(pt_window_lanes, columns, 140);
PT_OFFSET(pt_window_lanes, row, 144);
PT_OFFSET(pt_window_lanes, weight_row, 148);
PT_OFFSET(pt_window_lanes, kind, 152);
PT_OFFSET(pt_window_lanes, keeps_sums, 156);
PT_OFFSET(pt_window_lanes, inputs, 160);

// Listed pixels and their outputs. With a pt_window_lanes as record, `column` is the input's offset
// and `row` the step from a column of taps to the next.
typedef struct pt_lanes_run {
    const pt_lanes_pixel *pixels;
    int32_t skip; // bytes of a pixel of the input before the first channel
    int8_t *out;
    int32_t column, row; // bytes from tap to tap, and from row to row
    int32_t out_stride;
    const pt_lanes_pixel *end;
    const void *record; // the parameters
} pt_lanes_run;

PT_OFFSET(pt_lanes_run, pixels, 0);
PT_OFFSET(pt_lanes_run, record, 28);

// Writes the outputs of the record's channels, saturated to int8, or the sums of one pixel if
// keeps_sums.
void pt_run_lanes(const pt_lanes_run *x);

// Computes a depthwise convolution of any window with any parameters, without scratch.
void pt_convolve_any_depthwise(const pt_geometry *g, const pt_gemm_s8 *layer, const int8_t *in,
                               int8_t *out);

#endif
