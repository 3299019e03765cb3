// Look up or clamp a row of int8 values: tables of activations, and the range of max pooling.
// Called by cortex_m/elementwise.c and cortex_m/pooling.c. Block: 16 values with MVE, 4 with SSUB8
// and SEL, else 1 to 4 in plain C. The output may be the input; no scratch.
#ifndef PT_ARCH_BYTE_ROWS_H
#define PT_ARCH_BYTE_ROWS_H

#include <stdint.h>

#if defined(__ARM_FEATURE_MVE)

#include <arm_mve.h>

// out[i] = table[in[i] + 128]
static inline void pt_look_up_row(const int8_t *table, int8_t *out, const int8_t *in, int32_t n) {
    const uint8x16_t flip = vdupq_n_u8(0x80);
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrb.u8 q0, [%[in]], #16\n\t"
                     "veor q0, q0, %q[flip]\n\t"
                     "vldrb.u8 q1, [%[table], q0]\n\t"
                     "vstrb.8 q1, [%[out]], #16\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [in] "+r"(in), [out] "+r"(out)
                     : [n] "r"(n), [table] "r"(table), [flip] "w"(flip)
                     : "lr", "q0", "q1", "memory");
}

// out[i] = in[i], clamped to low..high
static inline void pt_clamp_row(int8_t low, int8_t high, int8_t *out, const int8_t *in, int32_t n) {
    const int8x16_t min = vdupq_n_s8(low), max = vdupq_n_s8(high);
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrb.u8 q0, [%[in]], #16\n\t"
                     "vmax.s8 q0, q0, %q[min]\n\t"
                     "vmin.s8 q0, q0, %q[max]\n\t"
                     "vstrb.8 q0, [%[out]], #16\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [in] "+r"(in), [out] "+r"(out)
                     : [n] "r"(n), [min] "w"(min), [max] "w"(max)
                     : "lr", "q0", "memory");
}

#else

#if defined(__ARM_FEATURE_SIMD32)
typedef uint32_t __attribute__((aligned(1), may_alias)) pt_four_bytes;
#endif

static inline void pt_look_up_row(const int8_t *table, int8_t *out, const int8_t *in, int32_t n) {
    const int8_t *zero = table + 128;
    for (; n >= 4; n -= 4, in += 4, out += 4) {
        out[0] = zero[in[0]];
        out[1] = zero[in[1]];
        out[2] = zero[in[2]];
        out[3] = zero[in[3]];
    }
    for (; n > 0; n--) {
        *out++ = zero[*in++];
    }
}

static inline void pt_clamp_row(int8_t low, int8_t high, int8_t *out, const int8_t *in, int32_t n) {
#if defined(__ARM_FEATURE_SIMD32)
    const uint32_t lows = 0x01010101u * (uint8_t)low, highs = 0x01010101u * (uint8_t)high;
    for (; n >= 4; n -= 4, in += 4, out += 4) {
        uint32_t values = *(const pt_four_bytes *)(const void *)in, differences;
        __asm__("ssub8 %[d], %[x], %[low]\n\t"
                "sel %[x], %[x], %[low]\n\t"
                "ssub8 %[d], %[high], %[x]\n\t"
                "sel %[x], %[x], %[high]"
                : [x] "+&r"(values), [d] "=&r"(differences)
                : [low] "r"(lows), [high] "r"(highs)
                : "cc");
        *(pt_four_bytes *)(void *)out = values;
    }
#endif
    for (; n > 0; n--) {
        const int8_t x = *in++, y = x < low ? low : x;
        *out++ = y > high ? high : y;
    }
}

#endif

#endif
