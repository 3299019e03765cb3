// Bits of doubles, for the mathematical functions.
#ifndef PT_PORTABLE_DOUBLE_BITS_H
#define PT_PORTABLE_DOUBLE_BITS_H

#include "portable/double_math.h"

typedef union double_bits {
    double d;
    uint64_t u;
} double_bits;

#define MANTISSA_BITS 52
#define SIGN_BIT ((uint64_t)1 << 63)

static inline double from_bits(uint64_t u) {
    return ((double_bits){.u = u}).d;
}

static inline uint64_t to_bits(double x) {
    return ((double_bits){.d = x}).u;
}

static inline bool is_nan(double x) {
    return x != x;
}

static inline double not_a_number(void) {
    return from_bits((uint64_t)0x7FF8 << 48);
}

static inline double infinity(void) {
    return from_bits((uint64_t)0x7FF0 << 48);
}

static inline double quiet(double nan) {
    return from_bits(to_bits(nan) | (uint64_t)0x8 << 48);
}

// Returns |x| with the sign of `sign`.
static inline double with_sign(double x, double sign) {
    return from_bits((to_bits(x) & ~SIGN_BIT) | (to_bits(sign) & SIGN_BIT));
}

#define COUNT(array) ((uint32_t)(sizeof(array) / sizeof *(array)))

// Evaluates the polynomial of n coefficients, highest first.
static inline double polynomial(const double *coefficients, uint32_t n, double x) {
    double y = *coefficients;
    while (--n > 0) {
        y = y * x + *++coefficients;
    }
    return y;
}

// Returns x with its low 32 bits cleared, which leaves 21 bits of the mantissa.
static inline double high_part(double x) {
    return from_bits(to_bits(x) >> 32 << 32);
}

#endif
