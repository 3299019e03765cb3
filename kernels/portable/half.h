// Conversion of the 16-bit floating dtypes, float16 (PT_DTYPE_HALF) and bfloat16: exact to float32,
// and back rounded to nearest, halves to even.
//
// Integer operations only, so that every core returns the same bits. All NaNs become the quiet NaN
// 0x7E00 of float16 or 0x7FC0 of bfloat16.
#ifndef PT_PORTABLE_HALF_H
#define PT_PORTABLE_HALF_H

#include "portable/dtype_access.h"
#include "portable/float_math.h"

// The difference of the exponent biases of float32 and float16, at the position of float32's
// exponent.
#define PT_HALF_EXPONENT (112u << 23)

static inline float pt_half_to_float(uint16_t h) {
    const uint32_t magnitude = h & 0x7FFFu;
    pt_bits bits;
    if (magnitude < 0x0400) {
        bits.f = (float)(int32_t)magnitude * 0x1p-24f; // subnormal, in units of 2^-24
    } else if (magnitude < 0x7C00) {
        bits.u = (magnitude << 13) + PT_HALF_EXPONENT;
    } else {
        bits.u = magnitude << 13 | 0x7F800000;
    }
    bits.u |= (h & 0x8000u) << 16;
    return bits.f;
}

static inline float pt_bfloat16_to_float(uint16_t h) {
    pt_bits bits = {.u = (uint32_t)h << 16};
    return bits.f;
}

uint16_t pt_float_to_half(float v);
uint16_t pt_float_to_bfloat16(float v);

enum { PT_HALF_BLOCK = 16 }; // elements of a block on the stack in conversions to float32

// Convert n elements of a float16 or bfloat16 array, from element `first` on, `step` apart: to
// contiguous floats, and back.
void pt_read_halves(float *to, const void *data, int32_t first, int32_t step, int32_t n,
                    uint8_t dtype);
void pt_write_halves(void *data, int32_t first, int32_t step, const float *from, int32_t n,
                     uint8_t dtype);

#endif
