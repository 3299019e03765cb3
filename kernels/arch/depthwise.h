// Rows of outputs of a 3x3 depthwise convolution, one channel at a time: its inner loops.
//
// The input of a channel lies in a plane: rows of its values alone, padded, as numbers of 16 or 32
// bits. Planes of a few channels are made together, from one row of the image after the other.
//
//     pt_plane                                         a value of a plane
//     PT_PLANE_OFFSET                                  true where planes hold the input's offset,
//                                                      false where the bias does
//     pt_widen(in, step, n, offset, to, plane)         n pixels of 4 channels at multiples of 4
//     pt_depthwise_row(channel, rows, stride, n, out)  n outputs from three rows of the channel's
//                                                      plane, limited to int8
//
// depthwise_plain.h says what they compute; every ISA gives the same outputs.
#ifndef PT_ARCH_DEPTHWISE_H
#define PT_ARCH_DEPTHWISE_H

#include "scale.h"

// Where the outputs of a row go.
typedef struct pt_outputs {
    int32_t step; // bytes from one to the next
    int32_t n;
} pt_outputs;

// The steps of loops that store four outputs at a time.
typedef struct pt_depthwise_block {
    int32_t step, second, third; // bytes from the first output to the others
    const int8_t *end;           // where the output after the last block would go
} pt_depthwise_block;

static inline pt_depthwise_block pt_make_block(const int8_t *out, int32_t step, int32_t n) {
    return (pt_depthwise_block){step, 2 * step, 3 * step, out + n * step};
}

// For one to three outputs: what is not wanted goes to the place of the last, before it does.
static inline pt_depthwise_block pt_make_last_block(const int8_t *out, int32_t step, int32_t n) {
    int32_t first = n > 1 ? step : 0, second = n > 2 ? 2 * step : first;
    return (pt_depthwise_block){first, second, second, out + 4 * first};
}

// Most bytes of a pt_depthwise_channel and of a pt_plane on any ISA.
enum { PT_DEPTHWISE_CHANNEL_BYTES = 112, PT_PLANE_BYTES = 4 };

#if defined(__ARM_FEATURE_DSP)
#include "depthwise_dsp.h"
#elif defined(__ARM_ARCH_7M__)
#include "depthwise_v7m.h"
#else
#include "depthwise_plain.h"
#endif

#endif
