// Defines the functions of grid_sampling.h for float64.
#define PT_SAMPLES_DOUBLES
#include "portable/grid_sampling.h"

int pt_sample_doubles(pt_context *c, const pt_sampling *s, int32_t n, int32_t row, int32_t column) {
    return sample_pixel(c, s, n, row, column);
}
