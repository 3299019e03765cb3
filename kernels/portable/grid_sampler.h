// A call of grid_sampler_2d.
#ifndef PT_PORTABLE_GRID_SAMPLER_H
#define PT_PORTABLE_GRID_SAMPLER_H

#include "portable/double_math.h"
#include "portable/dtype_access.h"

enum { BILINEAR, NEAREST, BICUBIC }; // interpolation_mode
enum { ZEROS, BORDER, REFLECTION };  // padding_mode

typedef struct pt_sampling {
    pt_tensor in, grid, out;
    int32_t from[4], of_grid[4], to[4]; // strides of the input, the grid and the output
    int32_t mode, padding;
    bool align;
} pt_sampling;

// Samples all channels of an output pixel.
PT_MUST_USE int pt_sample_doubles(pt_context *c, const pt_sampling *s, int32_t n, int32_t row,
                                  int32_t column);

#endif
