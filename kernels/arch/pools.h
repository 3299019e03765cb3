// int8 average and max pooling of one window, over neighbouring channels. Called by
// cortex_m/pooling.c. Block: 8 channels (average) and 16 (max) with MVE, 4 (max) with SSUB8 and
// SEL; 0 where the ISA has no loop. No packing, no scratch.
#ifndef PT_ARCH_POOLS_H
#define PT_ARCH_POOLS_H

#include <stdint.h>

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#endif

// The taps of one window, in channel 0.
typedef struct pt_taps {
    const int8_t *in;
    int32_t rows, columns;
    int32_t step, row_step; // bytes from tap to tap in a row; from row to row
} pt_taps;

#if defined(__ARM_FEATURE_MVE)

enum { PT_AVERAGES = 8, PT_MAXIMA = 16, PT_FEWEST_MAXIMA = 1 }; // channels at a time

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

// Adds the values plus 128 of n channels, of at most 255 taps, to PT_AVERAGES sums.
static inline void pt_add_sums(const pt_taps *t, int32_t n, uint32_t *sums) {
    const uint32_t bias = 128 * (uint32_t)(t->rows * t->columns);
    int16_t some[PT_AVERAGES];
    vst1q_s16(some, pt_sum_eight(t, t->in, n));
    for (int32_t i = 0; i < PT_AVERAGES; i += 4) {
        uint32x4_t more = vaddq_n_u32(vreinterpretq_u32_s32(vldrhq_s32(some + i)), bias);
        vst1q_u32(sums + i, vaddq_u32(vld1q_u32(sums + i), more));
    }
}

// Averages n channels from `o` on, of 1 to 128 taps, rounded to the nearest integer. Returns a bit
// for each channel whose average lies half-way between two integers.
static inline uint32_t pt_average_taps(const pt_taps *t, int32_t o, int32_t n, int8_t *out) {
    int16x8_t sums = pt_sum_eight(t, t->in + o, n);
    int16_t stored[PT_AVERAGES];
    uint32_t halves = 0, taps = (uint32_t)(t->rows * t->columns), twice = 2 * taps;
    uint32_t inverse = UINT32_MAX / twice + 1; // 2**32 / twice, rounded down, plus 1
    inverse += inverse * twice == 0;           // where twice is a power of two
    vst1q_s16(stored, sums);
    for (int32_t i = 0; i < n; i += 4) {
        uint32x4_t doubled = vreinterpretq_u32_s32(vldrhq_s32(stored + i));
        doubled = vaddq_n_u32(vaddq_u32(doubled, doubled), (INT8_MAX + 1) * twice + taps);
        uint32x4_t average = vmulhq_u32(doubled, vdupq_n_u32(inverse));
        uint32x4_t whole = vmulq_n_u32(average, twice);
        mve_pred16_t half = vcmpeqq_u32(whole, doubled), counts = vctp32q((uint32_t)(n - i));
        average = vsubq_n_u32(average, INT8_MAX + 1);
        vstrbq_p_s32(out + i, vreinterpretq_s32_u32(average), counts);
        half &= counts;
        for (int32_t j = 0; half != 0; j++, half >>= 4) {
            halves |= (half & 1u) << (i + j);
        }
    }
    return halves;
}

// Computes the maxima of n channels from `o` on; n is PT_FEWEST_MAXIMA to PT_MAXIMA.
static inline void pt_max_taps(const pt_taps *t, int32_t o, int32_t n, int8_t *out) {
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
}

#else

enum { PT_AVERAGES = 0 }; // the ISA has no loop

static inline uint32_t pt_average_taps(const pt_taps *t, int32_t o, int32_t n, int8_t *out) {
    (void)t, (void)o, (void)n, (void)out;
    return 0;
}

static inline void pt_add_sums(const pt_taps *t, int32_t n, uint32_t *sums) {
    (void)t, (void)n, (void)sums;
}

#if defined(__ARM_FEATURE_SIMD32)

enum { PT_MAXIMA = 4, PT_FEWEST_MAXIMA = 4 };

typedef uint32_t __attribute__((aligned(1), may_alias)) pt_four_channels;

static inline void pt_max_taps(const pt_taps *t, int32_t o, int32_t n, int8_t *out) {
    (void)n;
    uint32_t max = 0x80808080, difference;
    const int8_t *row = t->in + o;
    for (int32_t i = t->rows; i > 0; i--, row += t->row_step) {
        const int8_t *tap = row;
        for (int32_t j = t->columns; j > 0; j--, tap += t->step) {
            __asm__("ssub8 %[d], %[x], %[max]\n\t"
                    "sel %[max], %[x], %[max]"
                    : [max] "+r"(max), [d] "=&r"(difference)
                    : [x] "r"(*(const pt_four_channels *)(const void *)tap)
                    : "cc");
        }
    }
    *(pt_four_channels *)(void *)out = max;
}

#else

enum { PT_MAXIMA = 0, PT_FEWEST_MAXIMA = 0 };

static inline void pt_max_taps(const pt_taps *t, int32_t o, int32_t n, int8_t *out) {
    (void)t, (void)o, (void)n, (void)out;
}

#endif
#endif

#endif
