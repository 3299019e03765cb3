// Bits of floats, for the mathematical functions.
#ifndef PT_PORTABLE_FLOAT_BITS_H
#define PT_PORTABLE_FLOAT_BITS_H

#include "portable/float_math.h"

static inline float from_bits(uint32_t u) {
    return ((pt_bits){.u = u}).f;
}

static inline uint32_t to_bits(float x) {
    return ((pt_bits){.f = x}).u;
}

static inline float not_a_number(void) {
    return from_bits(0x7FC00000);
}

static inline float infinity(void) {
    return from_bits(0x7F800000);
}

static inline float quiet(float nan) {
    return from_bits(to_bits(nan) | 0x00400000);
}

// Returns |x| with the sign of `sign`. The function works on the bits: without an FPU, gcc 12
// sometimes returns `sign` for __builtin_copysignf.
static inline float with_sign(float x, float sign) {
    return from_bits((to_bits(x) & 0x7FFFFFFF) | (to_bits(sign) & 0x80000000));
}

#endif
