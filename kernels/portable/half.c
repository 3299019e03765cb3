#include "portable/half.h"

// Bits of float32 without the sign: infinity, 2^16, 2^-14 (the smallest normal float16), and 2^-25
// (the largest that rounds to 0).
#define INFINITY_BITS 0x7F800000u
#define OVERFLOW_BITS 0x47800000u
#define NORMAL_BITS 0x38800000u
#define ZERO_BITS 0x33000000u

// Returns `bits` shifted right, rounded to nearest, halves to even.
static uint32_t shift_rounded(uint32_t bits, uint32_t shift) {
    return (bits + (1u << (shift - 1)) - 1 + (bits >> shift & 1)) >> shift;
}

uint16_t pt_float_to_half(float v) {
    const pt_bits bits = {v};
    const uint32_t magnitude = bits.u & 0x7FFFFFFF;
    uint32_t half = 0;
    if (magnitude > INFINITY_BITS) {
        return 0x7E00;
    }
    if (magnitude >= OVERFLOW_BITS) {
        half = 0x7C00;
    } else if (magnitude >= NORMAL_BITS) {
        half = shift_rounded(magnitude - PT_HALF_EXPONENT, 13);
    } else if (magnitude > ZERO_BITS) {
        half = shift_rounded((magnitude & 0x7FFFFF) | 0x800000, 126 - (magnitude >> 23));
    }
    return (uint16_t)(half | (bits.u >> 16 & 0x8000));
}

uint16_t pt_float_to_bfloat16(float v) {
    const pt_bits bits = {v};
    if ((bits.u & 0x7FFFFFFF) > INFINITY_BITS) {
        return 0x7FC0;
    }
    return (uint16_t)((bits.u + 0x7FFF + (bits.u >> 16 & 1)) >> 16);
}

void pt_read_halves(float *to, const void *data, int32_t first, int32_t step, int32_t n,
                    uint8_t dtype) {
    const uint16_t *from = (const uint16_t *)data + first;
    if (dtype == PT_DTYPE_HALF) {
        for (; n > 0; n--, from += step) {
            *to++ = pt_half_to_float(*from);
        }
    } else {
        for (; n > 0; n--, from += step) {
            *to++ = pt_bfloat16_to_float(*from);
        }
    }
}

void pt_write_halves(void *data, int32_t first, int32_t step, const float *from, int32_t n,
                     uint8_t dtype) {
    uint16_t *to = (uint16_t *)data + first;
    if (dtype == PT_DTYPE_HALF) {
        for (; n > 0; n--, to += step) {
            *to = pt_float_to_half(*from++);
        }
    } else {
        for (; n > 0; n--, to += step) {
            *to = pt_float_to_bfloat16(*from++);
        }
    }
}
