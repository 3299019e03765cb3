// int8 depthwise convolution of one output pixel with one output per input channel, any kernel
// size: the interface of the host's vectors (host/depthwise_pixel.c, 8 channels at a time).
// cortex_m/depthwise.c calls it if pt_supports_taps. Other builds have no such loop. No packing, no
// scratch.
#ifndef PT_ARCH_DEPTHWISE_PIXEL_H
#define PT_ARCH_DEPTHWISE_PIXEL_H

#include "arch/requantize.h"
#include "arch/vectors.h"
#include <stdbool.h>
#include <stddef.h>

// The taps of the pixel that lie inside the input.
typedef struct pt_pixel_taps {
    const int8_t *in, *weights; // of the first tap, channel 0
    int32_t rows, columns;
    ptrdiff_t in_step, in_row; // from a tap to the next of its row; from a row's end to the next
    int32_t weight_step, weight_row;
} pt_pixel_taps;

#if defined(PT_HAS_HOST_VECTORS)

// True if pt_multiply_taps supports n channels with these multipliers and shifts.
bool pt_supports_taps(const pt_channels *output, int32_t n);

// Computes the outputs of the first of n channels, as many as fill vectors. Returns their number.
int32_t pt_multiply_taps(const pt_pixel_taps *taps, int32_t offset, const pt_channels *output,
                         int32_t n, int8_t *out);

#else

static inline bool pt_supports_taps(const pt_channels *output, int32_t n) {
    (void)output, (void)n;
    return false;
}

static inline int32_t pt_multiply_taps(const pt_pixel_taps *taps, int32_t offset,
                                       const pt_channels *output, int32_t n, int8_t *out) {
    (void)taps, (void)offset, (void)output, (void)n, (void)out;
    return 0;
}

#endif

#endif
