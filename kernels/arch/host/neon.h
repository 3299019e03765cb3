// NEON parts of the host's int8 loops (loops.inc, depthwise_pixel.c): 8 int16 values a vector, or
// 16 int8 with FEAT_DotProd; requantization of 4 sums at a time.
#ifndef PT_ARCH_HOST_NEON_H
#define PT_ARCH_HOST_NEON_H

#include "arch/requantize.h"
#include <arm_neon.h>
#include <string.h>

enum { LANES_neon = 8 }; // values of 16 bits

typedef int16_t value_neon;
typedef int16x8_t values_neon;
typedef int32x4_t totals_neon;

static inline int32x4_t zero_neon(void) {
    return vdupq_n_s32(0);
}

static inline int16x8_t spread_neon(int32_t value) {
    return vdupq_n_s16((int16_t)value);
}

static inline int16x8_t load_neon(const int16_t *values) {
    return vld1q_s16(values);
}

static inline void store_neon(int16_t *to, int16x8_t values) {
    vst1q_s16(to, values);
}

static inline int16x8_t widen_neon(const int8_t *values) {
    return vmovl_s8(vld1_s8(values));
}

static inline int16x8_t add_neon(int16x8_t a, int16x8_t b) {
    return vaddq_s16(a, b);
}

static inline int32x4_t add_products_neon(int32x4_t sums, int16x8_t a, int16x8_t b) {
    sums = vmlal_s16(sums, vget_low_s16(a), vget_low_s16(b));
    return vmlal_high_s16(sums, a, b);
}

// Returns the sum of each vector.
static inline int32x4_t sum_of_each(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d) {
    return vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
}

static inline void sum_lanes_neon(int32x4_t s0, int32x4_t s1, int32x4_t s2, int32x4_t s3,
                                  int32x4_t t0, int32x4_t t1, int32x4_t t2, int32x4_t t3,
                                  int32_t sums[8]) {
    vst1q_s32(sums, sum_of_each(s0, s1, s2, s3));
    vst1q_s32(sums + 4, sum_of_each(t0, t1, t2, t3));
}

// From int32 sums to int8 outputs, four at a time: pt_requantize and pt_to_int8.
typedef struct scales_neon {
    int32x4_t bias, multipliers, shifts, offset, min, max;
} scales_neon;

static inline scales_neon scales_of_4_neon(const pt_channels *output, int32_t o) {
    const pt_range *range = &output->range;
    return (scales_neon){output->bias ? vld1q_s32(output->bias + o) : zero_neon(),
                         vld1q_s32(output->multipliers + o),
                         vld1q_s32(output->shifts + o),
                         vdupq_n_s32(range->offset),
                         vdupq_n_s32(range->min),
                         vdupq_n_s32(range->max)};
}

static inline int16x4_t scale_neon(const scales_neon *s, int32x4_t sums) {
    // pt_high_product: only -2^31 times itself would saturate
    int32x4_t high = vqrdmulhq_s32(vaddq_s32(sums, s->bias), s->multipliers);
    high = vrshlq_s32(vsraq_n_s32(high, high, 31), s->shifts);
    int32x4_t scaled = vaddq_s32(high, s->offset);
    return vmovn_s32(vmaxq_s32(s->min, vminq_s32(s->max, scaled)));
}

static inline void finish_4_and_4_neon(const scales_neon *s, const int32_t *sums, int8_t *first,
                                       int8_t *second) {
    int16x8_t both =
        vcombine_s16(scale_neon(s, vld1q_s32(sums)), scale_neon(s, vld1q_s32(sums + 4)));
    int32x2_t outputs = vreinterpret_s32_s8(vmovn_s16(both));
    int32_t low = vget_lane_s32(outputs, 0), upper = vget_lane_s32(outputs, 1);
    memcpy(first, &low, 4);
    memcpy(second, &upper, 4);
}

// Sums of eight channels.
typedef struct eight_neon {
    int32x4_t first, second;
} eight_neon;

static inline eight_neon no_sums_neon(void) {
    return (eight_neon){zero_neon(), zero_neon()};
}

static inline void add_tap_neon(eight_neon *sums, const int8_t *in, int32_t offset,
                                const int8_t *weights) {
    int16x8_t x = add_neon(widen_neon(in), spread_neon(offset)), y = widen_neon(weights);
    sums->first = vmlal_s16(sums->first, vget_low_s16(x), vget_low_s16(y));
    sums->second = vmlal_high_s16(sums->second, x, y);
}

static inline void finish_8_neon(const eight_neon *sums, const pt_channels *output, int32_t o,
                                 int8_t *out) {
    scales_neon s = scales_of_4_neon(output, o), t = scales_of_4_neon(output, o + 4);
    int16x8_t both = vcombine_s16(scale_neon(&s, sums->first), scale_neon(&t, sums->second));
    vst1_s8(out, vmovn_s16(both));
}

// ---- the products of bytes, if the compiler supports them

#if defined(__ARM_FEATURE_DOTPROD)
#define PT_DOT_PRODUCTS
#elif (defined(__clang__) && __clang_major__ >= 16) || (!defined(__clang__) && __GNUC__ >= 8)
#define PT_DOT_PRODUCTS __attribute__((target("arch=armv8.2-a+dotprod")))
#endif

#if defined(PT_DOT_PRODUCTS)

enum { LANES_dot = 16 }; // values of 8 bits

typedef int8_t value_dot;
typedef int8x16_t values_dot;
typedef int32x4_t totals_dot;
typedef scales_neon scales_dot;

static inline int8x16_t spread_dot(int32_t value) {
    return vdupq_n_s8((int8_t)value);
}

static inline int8x16_t load_dot(const int8_t *values) {
    return vld1q_s8(values);
}

static inline void store_dot(int8_t *to, int8x16_t values) {
    vst1q_s8(to, values);
}

static inline PT_DOT_PRODUCTS int32x4_t add_products_dot(int32x4_t sums, int8x16_t a, int8x16_t b) {
    return vdotq_s32(sums, a, b);
}

#define zero_dot zero_neon
#define widen_dot load_dot
#define add_dot vaddq_s8
#define sum_lanes_dot sum_lanes_neon
#define scales_of_4_dot scales_of_4_neon
#define finish_4_and_4_dot finish_4_and_4_neon

#endif

#endif
