// Requantize with MVE: the test for multipliers and shifts that VQRDMULH and VRSHL cover, and the
// clamp to a range.
#ifndef PT_ARCH_MVE_REQUANTIZE_H
#define PT_ARCH_MVE_REQUANTIZE_H

#include "arch/requantize.h"
#include <arm_mve.h>
#include <stdbool.h>

// True if pt_requantize equals VQRDMULH, adding the sign, and VRSHL.
static inline bool pt_has_fast_scale(int32_t multiplier, int32_t shift) {
    return multiplier >= 0 && ~(uint32_t)shift <= 30;
}

static inline bool pt_have_fast_scales(const pt_channels *output, int32_t channels) {
    const int32_t *multipliers = output->multipliers, *shifts = output->shifts;
    int32_t min = 0;
    uint32_t halvings = 0;
    for (int32_t i = 0; i < channels; i += 4) {
        mve_pred16_t p = vctp32q((uint32_t)(channels - i));
        min = vminvq_p_s32(min, vldrwq_z_s32(multipliers + i, p), p);
        halvings = vmaxvq_p_u32(halvings,
                                vreinterpretq_u32_s32(vmvnq_s32(vldrwq_z_s32(shifts + i, p))), p);
    }
    return min >= 0 && halvings <= 30;
}

// Clamps the saturated outputs of n pixels, `stride` bytes apart, to the range.
static inline void pt_limit_pixels(const pt_range *r, int8_t *out, int32_t n, int32_t stride,
                                   int32_t channels) {
    if (r->min == INT8_MIN && r->max == INT8_MAX) {
        return;
    }
    for (; n > 0; n--, out += stride) {
        for (int32_t i = 0; i < channels; i += 16) {
            mve_pred16_t p = vctp8q((uint32_t)(channels - i));
            int8x16_t values = vldrbq_z_s8(out + i, p);
            values = vminq_s8(values, vdupq_n_s8((int8_t)r->max));
            vstrbq_p_s8(out + i, vmaxq_s8(values, vdupq_n_s8((int8_t)r->min)), p);
        }
    }
}

#endif
