// Requantize int32 sums to int8 outputs, for any multiplier and shift; scale.h has the fast way for
// most of them.
#ifndef PT_ARCH_REQUANTIZE_H
#define PT_ARCH_REQUANTIZE_H

#include "arch/scale.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Sums wrap around, as the reference's int32 tensors do.
static inline int32_t pt_add_int32(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static inline int32_t pt_clamp(int32_t value, int32_t min, int32_t max) {
    return value < min ? min : value > max ? max : value;
}

// value * multiplier * 2^(shift - 31), rounded twice: to a multiple of 2^shift with halves up,
// then, if shift is negative, to an integer with halves away from zero.
int32_t pt_requantize_int64(int64_t value, int32_t multiplier, int32_t shift);

static inline int32_t pt_requantize(int32_t value, int32_t multiplier, int32_t shift) {
    uint32_t halvings = ~(uint32_t)shift; // all but the last
    if (halvings > 30 || multiplier < 0) {
        return shift == 0 && multiplier >= 0 ? pt_high_product(value, multiplier)
                                             : pt_requantize_int64(value, multiplier, shift);
    }
    int32_t high = pt_high_product(value, multiplier);
    return (((high + (high >> 31)) >> halvings) + 1) >> 1;
}

// Output offset and range of the int8 output.
typedef struct pt_range {
    int32_t offset, min, max;
} pt_range;

static inline int8_t pt_to_int8(int32_t requantized, const pt_range *r) {
    return (int8_t)pt_clamp(pt_add_int32(requantized, r->offset), r->min, r->max);
}

// True if the range is narrower than int8's.
static inline bool pt_narrows(const pt_range *r) {
    return r->min > INT8_MIN || r->max < INT8_MAX;
}

// Requantization parameters of each channel.
typedef struct pt_channels {
    const int32_t *bias; // NULL for none
    const int32_t *multipliers, *shifts;
    pt_range range;
} pt_channels;

static inline int32_t pt_bias_of(const pt_channels *channels, int32_t channel) {
    return channels->bias ? channels->bias[channel] : 0;
}

static inline int8_t pt_finish(const pt_channels *channels, int32_t channel, int32_t sum) {
    return pt_to_int8(pt_requantize(sum, channels->multipliers[channel], channels->shifts[channel]),
                      &channels->range);
}

#endif
