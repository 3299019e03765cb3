// int8 GEMM tile of 3 patches x 2 channels x 4 values, on cores with the DSP extension. Called by
// im2row.c (rows of blocks) and pointwise.c (one row). Packing: words of two int16 of three patches
// in turn, and the packed weights of two channels. No scratch of its own.
#ifndef PT_ARCH_DSP_TILE_3X2_H
#define PT_ARCH_DSP_TILE_3X2_H

#include <stdint.h>

enum {
    PT_TILE_PATCHES = 3,
    PT_TILE_OVERREAD = 20, // bytes that a sum may read behind the values
};

// Rows of blocks of three patches. The words of a block alternate: for each step the first word of
// the three patches, then the second word of the three.
typedef struct pt_tile_3x2 {
    const uint32_t *values; // of the first block
    int32_t steps;          // of a sum, two words each
    int32_t gap;            // bytes from the end of a sum's values to the next block
    int32_t last;           // bytes from a row's first output to that of its last block
    int32_t rows;
    int32_t row, out_row; // bytes from a row's values and outputs to those of the next
} pt_tile_3x2;

// Multiplies the rows with two channels, whose doubled biases, weights and parameters are at
// `pair`:
//
//     [doubled bias of each][two words of each ...][multiplier, right shift, rounding of each]
//
// `stride`: bytes from an output to its neighbour. The last block of a row ends with the row.
void pt_multiply_tile_3x2(const pt_tile_3x2 *x, const uint32_t *pair, int32_t stride, int8_t *out);

#endif
