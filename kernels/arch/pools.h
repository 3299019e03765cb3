// int8 average and max pooling of one window, over neighbouring channels. Called by
// cortex_m/pooling.c. Block: 16 channels with MVE; on other cores 4, as words of four channels or
// pairs of 16 bits, by SXTAB16, SSUB8 and SEL with the DSP extension. No packing, no scratch.
#ifndef PT_ARCH_POOLS_H
#define PT_ARCH_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#elif defined(__ARM_FEATURE_DSP)
#include "arch/dot.h"
#endif

// The taps of one window, in channel 0.
typedef struct pt_taps {
    const int8_t *in;
    int32_t rows, columns;
    int32_t step, row_step; // bytes from tap to tap in a row; from row to row
} pt_taps;

// Returns the number of the highest bit that is set, of the lower 8.
static inline uint32_t pt_highest_bit(uint32_t bits) {
#if defined(__ARM_ARCH_6M__)
    uint32_t bit = 7;
    while (!(bits >> bit & 1)) {
        bit--;
    }
    return bit;
#else
    return 31u - (uint32_t)__builtin_clz(bits);
#endif
}

// Rounds averages of 1 to 128 taps: the sum of values plus 128, doubled, plus the taps, is below
// 2^16.
typedef struct pt_average {
    uint32_t twice;   // the taps, doubled
    uint32_t inverse; // 2^32 / twice, rounded up: the high word of a product is the exact quotient
    uint32_t shift;   // by which the sum of a power of two of taps is divided; else 32
} pt_average;

static inline pt_average pt_average_over(uint32_t taps) {
    const bool is_power = (taps & (taps - 1)) == 0;
    return (pt_average){2 * taps, UINT32_MAX / (2 * taps) + 1,
                        is_power ? pt_highest_bit(taps) : 32};
}

// Returns the average of values plus 128, rounded; *rest becomes 0 if it lies half-way between two
// integers.
static inline uint32_t pt_round_average(pt_average a, uint32_t sum, uint32_t *rest) {
    const uint32_t doubled = 2 * sum + a.twice / 2;
#if defined(__ARM_ARCH_6M__)
    const uint32_t low = doubled * (a.inverse & 0xFFFF) >> 16;
    const uint32_t average = (doubled * (a.inverse >> 16) + low) >> 16;
#else
    const uint32_t average = (uint32_t)((uint64_t)doubled * a.inverse >> 32);
#endif
    *rest = doubled - average * a.twice;
    return average;
}

#if defined(__ARM_FEATURE_MVE)

enum { PT_AVERAGES = 16, PT_SUMS = 8, PT_MAXIMA = 16 }; // channels at a time
enum { PT_FEWEST_CHANNELS = 1, PT_HALF_BITS = 2 };      // bits for each channel of halves

// Sums n channels from `row` on, of at most 255 taps.
static inline int16x8_t pt_sum_eight(const pt_taps *t, const int8_t *row, int32_t n) {
    int16x8_t sums = vdupq_n_s16(0);
    for (int32_t i = t->rows; i > 0; i--, row += t->row_step) {
        const int8_t *tap = row;
        __asm__ volatile("vctp.16 %[n]\n\t"
                         "dls lr, %[columns]\n"
                         "1:\n\t"
                         "vpst\n\t"
                         "vldrbt.s16 q0, [%[tap]]\n\t"
                         "add %[tap], %[tap], %[step]\n\t"
                         "vadd.i16 %q[sums], %q[sums], q0\n\t"
                         "le lr, 1b"
                         : [tap] "+l"(tap), [sums] "+w"(sums)
                         : [columns] "r"(t->columns), [step] "r"(t->step), [n] "r"(n)
                         : "lr", "q0", "cc", "memory");
    }
    return sums;
}

// The same for 16 channels.
static inline void pt_sum_sixteen(const pt_taps *t, const int8_t *row, int16x8_t *low,
                                  int16x8_t *high) {
    int16x8_t a = vdupq_n_s16(0), b = a;
    for (int32_t i = t->rows; i > 0; i--, row += t->row_step) {
        const int8_t *tap = row;
        __asm__ volatile("dls lr, %[columns]\n"
                         "1:\n\t"
                         "vldrb.s16 q0, [%[tap]]\n\t"
                         "vadd.i16 %q[a], %q[a], q0\n\t"
                         "vldrb.s16 q0, [%[tap], #8]\n\t"
                         "add %[tap], %[tap], %[step]\n\t"
                         "vadd.i16 %q[b], %q[b], q0\n\t"
                         "le lr, 1b"
                         : [tap] "+l"(tap), [a] "+w"(a), [b] "+w"(b)
                         : [columns] "r"(t->columns), [step] "r"(t->step)
                         : "lr", "q0", "memory");
    }
    *low = a;
    *high = b;
}

// Adds the values plus 128 of n channels, of at most 255 taps, to PT_SUMS sums.
static inline void pt_add_sums(const pt_taps *t, int32_t n, uint32_t *sums) {
    const uint32_t bias = 128 * (uint32_t)(t->rows * t->columns);
    int16_t some[PT_SUMS];
    vst1q_s16(some, pt_sum_eight(t, t->in, n));
    for (int32_t i = 0; i < PT_SUMS; i += 4) {
        uint32x4_t more = vaddq_n_u32(vreinterpretq_u32_s32(vldrhq_s32(some + i)), bias);
        vst1q_u32(sums + i, vaddq_u32(vld1q_u32(sums + i), more));
    }
}

// Rounds the averages of n sums. Returns PT_HALF_BITS for each that lies half-way.
static inline uint32_t pt_round_eight(const pt_average *a, int16x8_t sums, int32_t n, int8_t *out) {
    const uint16_t twice = (uint16_t)a->twice;
    const mve_pred16_t counts = vctp16q((uint32_t)n);
    if (a->shift < 32) {
        const int16_t taps = (int16_t)(twice / 2);
        const int16x8_t rest = vandq_s16(sums, vdupq_n_s16((int16_t)(taps - 1)));
        const int16_t half = taps > 1 ? taps / 2 : -1; // one tap is never half-way
        vstrbq_p_s16(out, vrshlq_n_s16(sums, -(int32_t)a->shift), counts);
        return vcmpeqq_m_n_s16(rest, half, counts);
    }
    const uint16x8_t one = vdupq_n_u16(1), inverse = vdupq_n_u16((uint16_t)(a->inverse >> 16));
    const uint16x8_t doubled = vaddq_n_u16(vshlq_n_u16(vreinterpretq_u16_s16(sums), 1),
                                           (uint16_t)(twice * 128 + twice / 2));
    uint16x8_t average = vmulhq_u16(doubled, inverse); // at most one too low
    const uint16x8_t rest = vsubq_u16(doubled, vmulq_n_u16(average, twice));
    average = vaddq_m_u16(average, average, one, vcmpcsq_n_u16(rest, twice));
    vstrbq_p_u16((uint8_t *)out, vsubq_n_u16(average, 128), counts);
    return counts & (vcmpeqq_n_u16(rest, 0) | vcmpeqq_n_u16(rest, twice));
}

// Averages n channels from `o` on, of 1 to 128 taps, rounded to the nearest integer. Returns
// PT_HALF_BITS for each channel whose average lies half-way between two integers.
static inline uint32_t pt_average_taps(const pt_taps *t, const pt_average *a, int32_t o,
                                       int32_t *channels, int8_t *out) {
    const int8_t *in = t->in + o;
    const int32_t n = *channels;
    int16x8_t low, high;
    if (n < 16) {
        uint32_t halves = 0;
        for (int32_t i = 0; i < n; i += 8) {
            halves |= pt_round_eight(a, pt_sum_eight(t, in + i, n - i), n - i, out + i) << 2 * i;
        }
        return halves;
    }
    pt_sum_sixteen(t, in, &low, &high);
    return pt_round_eight(a, low, 8, out) | pt_round_eight(a, high, 8, out + 8) << 16;
}

#if __ARM_FEATURE_MVE & 2

enum { PT_SETTLES_HALVES = 1 };

// Sums (x - zero_point) * scale over the taps of the channels at n offsets, at most 4, in float32,
// tap by tap. The absolute value of no product is below 2^-94, so none and no sum is subnormal.
static inline float32x4_t pt_sum_scaled(const pt_taps *t, uint32x4_t offsets, int32_t n,
                                        int32_t zero_point, float scale) {
    float32x4_t all = vdupq_n_f32(0);
    const int8_t *row = t->in;
    for (int32_t i = t->rows; i > 0; i--, row += t->row_step) {
        const int8_t *tap = row;
        __asm__ volatile("vctp.32 %[n]\n\t"
                         "dls lr, %[columns]\n"
                         "1:\n\t"
                         "vpst\n\t"
                         "vldrbt.s32 q0, [%[tap], %q[offsets]]\n\t"
                         "add %[tap], %[tap], %[step]\n\t"
                         "vsub.i32 q0, q0, %[zero]\n\t"
                         "vcvt.f32.s32 q0, q0\n\t"
                         "vmul.f32 q0, q0, %[scale]\n\t"
                         "vadd.f32 %q[all], %q[all], q0\n\t"
                         "le lr, 1b"
                         : [tap] "+r"(tap), [all] "+w"(all)
                         : [columns] "r"(t->columns), [step] "r"(t->step), [n] "r"(n),
                           [zero] "r"(zero_point), [scale] "r"(scale), [offsets] "w"(offsets)
                         : "lr", "q0", "cc", "memory");
    }
    return all;
}

// Divides by y, whose inverse is rounded to the nearest. Exact to the last bit: P. Markstein,
// Computation of elementary functions on the IBM RISC System/6000, 1990. The first step gives a
// quotient that is off by less than one unit in the last place.
static inline float32x4_t pt_divide(float32x4_t x, float y, float inverse) {
    float32x4_t quotient = vmulq_n_f32(x, inverse);
    for (int32_t i = 0; i < 2; i++) {
        const float32x4_t rest = vfmaq_n_f32(x, quotient, -y);
        quotient = vfmaq_n_f32(quotient, rest, inverse);
    }
    return quotient;
}

// Computes again the averages from channel `o` on that lie half-way, as the reference does it: in
// float32, four at a time.
static inline void pt_settle_halves(const pt_taps *t, uint32_t halves, int32_t o,
                                    int32_t zero_point, float scale, int8_t *out) {
    const int32_t taps = t->rows * t->columns;
    const bool is_power = (taps & (taps - 1)) == 0; // a product with its inverse is exact
    const float of_taps = 1 / (float)taps, of_scale = 1 / scale;
    pt_taps from = *t;
    from.in += o;
    halves &= 0x55555555; // a bit for each channel
    while (halves != 0) {
        uint32_t channels[4];
        int32_t n = 0;
        for (; halves != 0 && n < 4; halves &= halves - 1) {
            channels[n++] = (uint32_t)__builtin_ctz(halves) / PT_HALF_BITS;
        }
        const uint32x4_t offsets = vld1q_u32(channels);
        float32x4_t x = pt_sum_scaled(&from, offsets, n, zero_point, scale);
        x = is_power ? vmulq_n_f32(x, of_taps) : pt_divide(x, (float)taps, of_taps);
        x = pt_divide(x, scale, of_scale);
        const int32x4_t average = vaddq_n_s32(vcvtnq_s32_f32(x), zero_point);
        vstrbq_scatter_offset_p_s32(out, offsets, average, vctp32q((uint32_t)n));
    }
}

#endif

// Computes the maxima of n channels from `o` on, at most PT_MAXIMA. Returns their number.
static inline int32_t pt_max_taps(const pt_taps *t, int32_t o, int32_t n, int8_t *out) {
    mve_pred16_t p = vctp8q((uint32_t)n);
    int8x16_t max = vdupq_n_s8(INT8_MIN);
    const int8_t *row = t->in + o;
    for (int32_t i = t->rows; i > 0; i--, row += t->row_step) {
        const int8_t *tap = row;
        for (int32_t j = t->columns; j > 0; j--, tap += t->step) {
            max = vmaxq_s8(max, vldrbq_z_s8(tap, p));
        }
    }
    vstrbq_p_s8(out, max, p);
    return n;
}

#else

enum { PT_AVERAGES = 8, PT_SUMS = 4 };
enum { PT_FEWEST_CHANNELS = 4, PT_HALF_BITS = 1 };

typedef uint32_t __attribute__((may_alias)) pt_channel_word;
typedef uint32_t __attribute__((aligned(1), may_alias)) pt_four_channels;

// Returns four channels; `words`: of an address that is a multiple of 4.
static inline uint32_t pt_load_channels(const int8_t *in, bool words) {
    const void *from = in;
    return words ? *(const pt_channel_word *)from : *(const pt_four_channels *)from;
}

static inline void pt_store_channels(uint32_t channels, int8_t *out) {
    *(pt_four_channels *)(void *)out = channels;
}

static inline bool pt_taps_are_words(const pt_taps *t, const int8_t *in) {
    return (((uintptr_t)in | (uint32_t)t->step | (uint32_t)t->row_step) & 3) == 0;
}

// Sums of channels 0 and 2, and of channels 1 and 3.
typedef struct pt_pairs {
    uint32_t even, odd;
} pt_pairs;

// Adds four channels.
static inline void pt_add_channels(pt_pairs *sums, uint32_t x) {
#if defined(__ARM_FEATURE_DSP)
    sums->even = (uint32_t)pt_even_bytes_plus(x, (int16x2_t)sums->even);
    sums->odd = (uint32_t)pt_odd_bytes_plus(x, (int16x2_t)sums->odd);
#else
    sums->even += (x ^ 0x80808080) & 0x00FF00FF;
    sums->odd += (x ^ 0x80808080) >> 8 & 0x00FF00FF;
#endif
}

// Adds 128 for each of `taps` taps to the sums of values.
static inline void pt_add_bias(pt_pairs *sums, int32_t taps) {
#if defined(__ARM_FEATURE_DSP)
    const int16x2_t bias = pt_pair_of(128 * taps);
    sums->even = (uint32_t)__sadd16((int16x2_t)sums->even, bias);
    sums->odd = (uint32_t)__sadd16((int16x2_t)sums->odd, bias);
#else
    (void)sums, (void)taps;
#endif
}

// Sums the values plus 128 of four channels, of at most 255 taps.
static inline __attribute__((always_inline)) pt_pairs
pt_sum_four_of(const pt_taps *t, const int8_t *row, bool words) {
    pt_pairs sums = {0, 0};
    for (int32_t i = t->rows; i > 0; i--, row += t->row_step) {
        const int8_t *tap = row;
        for (int32_t j = t->columns; j > 0; j--, tap += t->step) {
            pt_add_channels(&sums, pt_load_channels(tap, words));
        }
    }
    pt_add_bias(&sums, t->rows * t->columns);
    return sums;
}

// Sums four channels at an address that is no multiple of 4. Not inlined, so that other loops have
// all registers.
static __attribute__((noinline, unused)) uint64_t pt_sum_four_bytes(const pt_taps *t,
                                                                    const int8_t *row) {
    const pt_pairs sums = pt_sum_four_of(t, row, false);
    return (uint64_t)sums.odd << 32 | sums.even;
}

static inline pt_pairs pt_sum_four(const pt_taps *t, const int8_t *row) {
    if (pt_taps_are_words(t, row)) {
        return pt_sum_four_of(t, row, true);
    }
    const uint64_t sums = pt_sum_four_bytes(t, row);
    return (pt_pairs){(uint32_t)sums, (uint32_t)(sums >> 32)};
}

// Adds n taps of eight channels, which are words; n is above 0.
static inline void pt_add_taps(pt_pairs *a, pt_pairs *b, const int8_t *tap, int32_t step,
                               int32_t n) {
#if defined(__ARM_FEATURE_DSP)
    uint32_t x, y;
    __asm__ volatile("1:\n\t"
                     "ldrd %[x], %[y], [%[tap]]\n\t"
                     "add %[tap], %[step]\n\t"
                     "sxtab16 %[ae], %[ae], %[x]\n\t"
                     "sxtab16 %[ao], %[ao], %[x], ror #8\n\t"
                     "sxtab16 %[be], %[be], %[y]\n\t"
                     "sxtab16 %[bo], %[bo], %[y], ror #8\n\t"
                     "subs %[n], #1\n\t"
                     "bne 1b"
                     : [tap] "+r"(tap), [n] "+r"(n), [ae] "+r"(a->even), [ao] "+r"(a->odd),
                       [be] "+r"(b->even), [bo] "+r"(b->odd), [x] "=&r"(x), [y] "=&r"(y)
                     : [step] "r"(step)
                     : "cc", "memory");
#else
    for (; n > 0; n--, tap += step) {
        pt_add_channels(a, pt_load_channels(tap, true));
        pt_add_channels(b, pt_load_channels(tap + 4, true));
    }
#endif
}

// Sums the values plus 128 of eight channels, of taps that are words.
static inline void pt_sum_eight(const pt_taps *t, const int8_t *row, pt_pairs *low,
                                pt_pairs *high) {
    pt_pairs a = {0, 0}, b = {0, 0};
    const int32_t columns = t->columns, step = t->step, row_step = t->row_step;
    for (int32_t i = t->rows; i > 0; i--, row += row_step) {
        pt_add_taps(&a, &b, row, step, columns);
    }
    pt_add_bias(&a, t->rows * columns);
    pt_add_bias(&b, t->rows * columns);
    *low = a;
    *high = b;
}

static inline void pt_add_sums(const pt_taps *t, int32_t n, uint32_t *sums) {
    const pt_pairs p = pt_sum_four(t, t->in);
    (void)n;
    sums[0] += p.even & 0xFFFF;
    sums[1] += p.odd & 0xFFFF;
    sums[2] += p.even >> 16;
    sums[3] += p.odd >> 16;
}

// Returns the averages of four channels, and in the upper word a bit for each that lies half-way
// between two integers. The functions below are not inlined, so that they are in flash once, and no
// part of one is hoisted into the path of the other.
static inline uint64_t pt_pack_rounded(uint32_t averages, uint32_t halves) {
    return (averages ^ 0x80808080) | (uint64_t)halves << 32;
}

// Rounds the averages of a power of two of taps.
static __attribute__((noinline, unused)) uint64_t pt_round_by_shift(uint32_t even, uint32_t odd,
                                                                    uint32_t shift) {
    const uint32_t bytes = 0x00FF00FF, ones = 0x00010001, high = shift > 0 ? 0x80008000 : 0;
    const uint32_t half = (1u << shift >> 1) * ones, lower = (ones << shift) - ones;
    even += half;
    odd += half;
    // A rest of 0 borrows from the high bit of its half of the word.
    const uint32_t even_halves = ~(((even & lower) | 0x80008000) - ones) & high;
    const uint32_t odd_halves = ~(((odd & lower) | 0x80008000) - ones) & high;
    const uint32_t halves = even_halves >> 1 | odd_halves; // bits 14, 15, 30 and 31
    return pt_pack_rounded((even >> shift & bytes) | (odd >> shift & bytes) << 8,
                           (halves >> 14 | halves >> 28) & 15);
}

// The same for any number of taps.
static __attribute__((noinline, unused)) uint64_t pt_round_by_product(uint32_t even, uint32_t odd,
                                                                      const pt_average *average) {
    const pt_average a = *average;
    uint32_t r0, r1, r2, r3;
    uint32_t averages = pt_round_average(a, even & 0xFFFF, &r0);
    averages |= pt_round_average(a, odd & 0xFFFF, &r1) << 8;
    averages |= pt_round_average(a, even >> 16, &r2) << 16;
    averages |= pt_round_average(a, odd >> 16, &r3) << 24;
    if ((int32_t)((r0 - 1) | (r1 - 1) | (r2 - 1) | (r3 - 1)) >= 0) {
        return pt_pack_rounded(averages, 0);
    }
    return pt_pack_rounded(averages, (r0 == 0 ? 1 : 0) | (r1 == 0 ? 2 : 0) | (r2 == 0 ? 4 : 0) |
                                         (r3 == 0 ? 8 : 0));
}

// Stores the averages of four channels. Returns a bit for each that lies half-way.
static inline uint32_t pt_store_averages(pt_pairs p, const pt_average *a, int8_t *out) {
    const uint64_t found = a->shift < 32 ? pt_round_by_shift(p.even, p.odd, a->shift)
                                         : pt_round_by_product(p.even, p.odd, a);
    if (((uintptr_t)out & 3) == 0) {
        *(pt_channel_word *)(void *)out = (uint32_t)found;
    } else {
        pt_store_channels((uint32_t)found, out);
    }
    return (uint32_t)(found >> 32);
}

// Averages 4 channels from `o` on, or 8; *n becomes their number, at most n.
static inline uint32_t pt_average_taps(const pt_taps *t, const pt_average *a, int32_t o, int32_t *n,
                                       int8_t *out) {
    const int8_t *in = t->in + o;
    if (*n < 8 || !pt_taps_are_words(t, in)) {
        *n = 4;
        return pt_store_averages(pt_sum_four(t, in), a, out);
    }
    pt_pairs low, high;
    pt_sum_eight(t, in, &low, &high);
    const uint32_t halves = pt_store_averages(low, a, out);
    return halves | pt_store_averages(high, a, out + 4) << 4;
}

#if defined(__ARM_FEATURE_DSP)

enum { PT_MAXIMA = 16 };

static inline __attribute__((always_inline)) void pt_max_four(const pt_taps *t, const int8_t *row,
                                                              int8_t *out, bool words) {
    uint32_t max = 0x80808080, difference;
    const int32_t step = t->step;
    for (int32_t i = t->rows; i > 0; i--, row += t->row_step) {
        const int8_t *tap = row;
        for (int32_t j = t->columns; j > 0; j--, tap += step) {
            __asm__("ssub8 %[d], %[x], %[max]\n\t"
                    "sel %[max], %[x], %[max]"
                    : [max] "+r"(max), [d] "=&r"(difference)
                    : [x] "r"(pt_load_channels(tap, words))
                    : "cc");
        }
    }
    pt_store_channels(max, out);
}

// The same for 16 channels, of taps that are words.
static inline void pt_max_sixteen(const pt_taps *t, const int8_t *row, int8_t *out) {
    uint32_t m0 = 0x80808080, m1 = m0, m2 = m0, m3 = m0;
    for (int32_t i = t->rows; i > 0; i--, row += t->row_step) {
        const int8_t *tap = row;
        int32_t columns = t->columns;
        __asm__ volatile("1:\n\t"
                         "ldm %[tap], {r8, r9, r10, r12}\n\t"
                         "add %[tap], %[step]\n\t"
                         "ssub8 lr, r8, %[m0]\n\t"
                         "sel %[m0], r8, %[m0]\n\t"
                         "ssub8 lr, r9, %[m1]\n\t"
                         "sel %[m1], r9, %[m1]\n\t"
                         "ssub8 lr, r10, %[m2]\n\t"
                         "sel %[m2], r10, %[m2]\n\t"
                         "ssub8 lr, r12, %[m3]\n\t"
                         "sel %[m3], r12, %[m3]\n\t"
                         "subs %[columns], #1\n\t"
                         "bne 1b"
                         : [tap] "+l"(tap), [columns] "+l"(columns), [m0] "+r"(m0), [m1] "+r"(m1),
                           [m2] "+r"(m2), [m3] "+r"(m3)
                         : [step] "r"(t->step)
                         : "r8", "r9", "r10", "r12", "lr", "cc", "memory");
    }
    pt_store_channels(m0, out);
    pt_store_channels(m1, out + 4);
    pt_store_channels(m2, out + 8);
    pt_store_channels(m3, out + 12);
}

// Computes the maxima of 4 channels from `o` on, or 16. Returns their number, at most n.
static inline int32_t pt_max_taps(const pt_taps *t, int32_t o, int32_t n, int8_t *out) {
    const int8_t *in = t->in + o;
    if (!pt_taps_are_words(t, in)) {
        pt_max_four(t, in, out, false);
        return 4;
    }
    if (n < 16) {
        pt_max_four(t, in, out, true);
        return 4;
    }
    pt_max_sixteen(t, in, out);
    return 16;
}

#else

enum { PT_MAXIMA = 0 }; // the ISA has no loop

static inline int32_t pt_max_taps(const pt_taps *t, int32_t o, int32_t n, int8_t *out) {
    (void)t, (void)o, (void)n, (void)out;
    return 0;
}

#endif
#endif

#if !defined(__ARM_FEATURE_MVE) || !(__ARM_FEATURE_MVE & 2)

enum { PT_SETTLES_HALVES = 0 }; // the ISA has no loop

static inline void pt_settle_halves(const pt_taps *t, uint32_t halves, int32_t o,
                                    int32_t zero_point, float scale, int8_t *out) {
    (void)t, (void)halves, (void)o, (void)zero_point, (void)scale, (void)out;
}

#endif

#endif
