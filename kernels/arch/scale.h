// Requantize in one step: an int32 sum by multiplier, shift and output offset to an int8, with
// SMMLAR where the core has it. Equals pt_requantize plus the offset, to the bit, for the
// multipliers and shifts that pt_scales_fast accepts and sums below PT_SUM_LIMIT in size. A kernel
// checks both once for each channel: the sums by their number of products and the size of the bias.
#ifndef PT_ARCH_SCALE_H
#define PT_ARCH_SCALE_H

#include <stdbool.h>
#include <stdint.h>

// (value * multiplier + 2^30) >> 31, for a multiplier of at least 0.
#if defined(__ARM_ARCH_6M__)

// Computed from products of 16-bit halves: the core has no long multiplication.
static inline int32_t pt_high_product(int32_t value, int32_t multiplier) {
    uint32_t low = (uint32_t)value & 0xFFFF, m_low = (uint32_t)multiplier & 0xFFFF;
    int32_t high = value >> 16, m_high = multiplier >> 16;
    int32_t middle = high * (int32_t)m_low + (int32_t)(low * m_low >> 16);
    uint32_t rest = ((uint32_t)middle & 0xFFFF) + low * (uint32_t)m_high + 0x4000;
    return (int32_t)((uint32_t)(high * m_high + (middle >> 16)) * 2 + (rest >> 15));
}

#else

static inline int32_t pt_high_product(int32_t value, int32_t multiplier) {
    return (int32_t)(((int64_t)value * multiplier + (1 << 30)) >> 31);
}

#endif

enum {
    PT_SUM_LIMIT = 1 << 30, // twice a smaller sum fits into int32
    PT_BIAS_LIMIT = 1 << 29,
    PT_MAX_PRODUCTS =
        (1 << 29) / (383 * 128), // products of an int8 plus an offset of at most 255, and an int8
    PT_MAX_SHIFT = 20,           // keeps the shifted offset far from the limits of int32
};

static inline bool pt_scales_fast(int32_t multiplier, int32_t shift) {
    return multiplier >= 0 && shift < 0 && shift >= -PT_MAX_SHIFT;
}

// Returns the addend of pt_scale: a half plus the output's offset. A shift that is not fast gives
// an undefined number, without fault: a .ptm file may omit the shifts, and then their values are
// arbitrary.
static inline int32_t pt_rounding(int32_t shift, int32_t offset) {
    return (int32_t)((2 * (uint32_t)offset + 1) << (~(uint32_t)shift & 31));
}

// Returns the output, before saturation, of the sum `doubled` / 2; `right` is -shift.
#if defined(__ARM_FEATURE_DSP)

static inline int32_t pt_scale(int32_t doubled, int32_t multiplier, int32_t right,
                               int32_t rounding) {
    int32_t scaled;
    __asm__("smmlar %0, %1, %2, %3"
            : "=r"(scaled)
            : "r"(doubled), "r"(multiplier), "r"(rounding + (doubled >> 31)));
    return scaled >> right;
}

#elif defined(__ARM_ARCH_6M__)

static inline int32_t pt_scale(int32_t doubled, int32_t multiplier, int32_t right,
                               int32_t rounding) {
    return (pt_high_product(doubled >> 1, multiplier) + (doubled >> 31) + rounding) >> right;
}

#else

static inline int32_t pt_scale(int32_t doubled, int32_t multiplier, int32_t right,
                               int32_t rounding) {
    int64_t sum = (int64_t)(rounding + (doubled >> 31)) * ((int64_t)1 << 32) + (int64_t)0x80000000;
    return (int32_t)((sum + (int64_t)doubled * multiplier) >> 32) >> right;
}

#endif

// An operand of an addition: the difference to a zero point, shifted up by 20 bits and requantized.
typedef struct pt_operand {
    int32_t zero_point; // -255..255
    int32_t multiplier, right, rounding;
    int32_t signs; // -1 if negative products round differently: if `right` is not 0
} pt_operand;

static inline bool pt_is_fast_operand(int32_t shift) {
    return shift <= 0 && shift >= -PT_MAX_SHIFT;
}

static inline pt_operand pt_make_operand(int32_t zero_point, int32_t multiplier, int32_t shift) {
    int32_t right = -shift;
    return (pt_operand){zero_point, multiplier, right, right ? 1 << (right - 1) : 0,
                        right ? -1 : 0};
}

// Scales a value; the result is below PT_SUM_LIMIT / 2 in size.
static inline int32_t pt_scale_operand(const pt_operand *o, int32_t value) {
    int32_t difference = value - o->zero_point;
    int32_t rounding = o->rounding + ((difference ^ o->multiplier) >> 31 & o->signs), high;
#if defined(__ARM_FEATURE_DSP)
    __asm__("smmlar %0, %1, %2, %3"
            : "=r"(high)
            : "r"((int32_t)((uint32_t)difference << 21)), "r"(o->multiplier), "r"(rounding));
#else
    int32_t lower = difference * (o->multiplier & 0xFFFF);
    high = difference * (o->multiplier >> 16) * 32 + ((lower + (1 << 10)) >> 11) + rounding;
#endif
    return high >> o->right;
}

static inline int32_t pt_saturate_int8(int32_t value) {
#if defined(__ARM_FEATURE_SAT)
    int32_t result;
    __asm__("ssat %0, #8, %1" : "=r"(result) : "r"(value));
    return result;
#else
    return value < INT8_MIN ? INT8_MIN : value > INT8_MAX ? INT8_MAX : value;
#endif
}

#endif
