// Quantize float32 to the whole range of int8 or uint8, in blocks of four values. Called by
// cortex_m/quantize.c. With an FPU and PKHBT, SSAT16: word stores at multiples of 4. Arm without an
// FPU: integer arithmetic. Else plain C. No scratch.
#ifndef PT_ARCH_QUANTIZE_BYTES_H
#define PT_ARCH_QUANTIZE_BYTES_H

#include "arch/quantize_value.h"
#include "arch/scale.h"

// `blocks` times four values, limited to the range of the type; scale and zero point as for
// pt_quantize_value. `out` is a multiple of PT_QUANTIZE_ALIGNMENT.

#if defined(__ARM_FP) && (__ARM_FP & 4) && defined(__ARM_FEATURE_SIMD32)

enum { PT_QUANTIZE_ALIGNMENT = 4 };

// clang-format off

// As pt_quantize_value, but to 16 bits; then two values are limited at a time. `limit` is an
// instruction, `join` joins %[q0] of values 0 and 2 and %[q1] of values 1 and 3.
#define PT_QUANTIZE_BYTES(name, type, limit, join)                                           \
    static inline void name(int32_t blocks, const float *in, type *out, float inverse_scale, \
                            int32_t zero_point) {                                            \
        uint32_t q0, q1, q2, q3;                                                             \
        if (blocks == 0) {                                                                   \
            return;                                                                          \
        }                                                                                    \
        __asm__ volatile(                                                                    \
            "1:\n\t"                                                                         \
            "vldmia %[in]!, {s0-s3}\n\t"                                                     \
            "subs %[blocks], #1\n\t"                                                         \
            "vmul.f32 s0, s0, %[inverse]\n\t"                                                \
            "vmul.f32 s1, s1, %[inverse]\n\t"                                                \
            "vmul.f32 s2, s2, %[inverse]\n\t"                                                \
            "vmul.f32 s3, s3, %[inverse]\n\t"                                                \
            "vadd.f32 s0, s0, %[up]\n\t"                                                     \
            "vadd.f32 s1, s1, %[up]\n\t"                                                     \
            "vadd.f32 s2, s2, %[up]\n\t"                                                     \
            "vadd.f32 s3, s3, %[up]\n\t"                                                     \
            "vsub.f32 s0, s0, %[down]\n\t"                                                   \
            "vsub.f32 s1, s1, %[down]\n\t"                                                   \
            "vsub.f32 s2, s2, %[down]\n\t"                                                   \
            "vsub.f32 s3, s3, %[down]\n\t"                                                   \
            "vcvt.s16.f32 s0, s0, #0\n\t"                                                    \
            "vcvt.s16.f32 s1, s1, #0\n\t"                                                    \
            "vcvt.s16.f32 s2, s2, #0\n\t"                                                    \
            "vcvt.s16.f32 s3, s3, #0\n\t"                                                    \
            "vmov %[q0], %[q1], s0, s1\n\t"                                                  \
            "vmov %[q2], %[q3], s2, s3\n\t"                                                  \
            "pkhbt %[q0], %[q0], %[q2], lsl #16\n\t"                                         \
            "pkhbt %[q1], %[q1], %[q3], lsl #16\n\t"                                         \
            limit " %[q0], #8, %[q0]\n\t"                                                    \
            limit " %[q1], #8, %[q1]\n\t"                                                    \
            join                                                                             \
            "orr %[q0], %[q0], %[q1], lsl #8\n\t"                                            \
            "str %[q0], [%[out]], #4\n\t"                                                    \
            "bne 1b"                                                                         \
            : [blocks] "+l"(blocks), [in] "+r"(in), [out] "+r"(out), [q0] "=&r"(q0),         \
              [q1] "=&r"(q1), [q2] "=&r"(q2), [q3] "=&r"(q3)                                 \
            : [inverse] "t"(inverse_scale), [up] "t"(0x1.8p+23f),                            \
              [down] "t"(0x1.8p+23f - (float)zero_point)                                     \
            : "s0", "s1", "s2", "s3", "cc", "memory");                                       \
    }

// clang-format on

PT_QUANTIZE_BYTES(pt_quantize_int8, int8_t, "ssat16",
                  "uxtb16 %[q0], %[q0]\n\tuxtb16 %[q1], %[q1]\n\t")
PT_QUANTIZE_BYTES(pt_quantize_uint8, uint8_t, "usat16", "")

#else

enum { PT_QUANTIZE_ALIGNMENT = 1 };

static inline int32_t pt_limit_uint8(int32_t v) {
    return v < 0 ? 0 : v > UINT8_MAX ? UINT8_MAX : v;
}

#if defined(__arm__)

// A positive factor of float32 values, for arithmetic on integers: a mantissa of 31 bits, and the
// right shift that turns the upper half of its product with a mantissa of 32 bits into the result,
// for exponent 0.
typedef struct pt_factor {
    uint32_t mantissa;
    int32_t shift;
} pt_factor;

// A factor so large that subnormal values matter, or so small that infinity would scale to a
// number, gets a shift with which no value is fast.
static inline pt_factor pt_make_factor(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    uint32_t exponent = bits >> 23;
    bool fits = exponent > 8 && exponent < 250;
    return (pt_factor){((bits & 0x007FFFFF) | 0x00800000) << 7, fits ? 283 - (int32_t)exponent : 0};
}

// Returns the upper half of a product, or up to 2 less.
static inline uint32_t pt_upper_product(uint32_t a, uint32_t b) {
#if defined(__ARM_ARCH_6M__)
    uint32_t a_low = a & 0xFFFF, a_high = a >> 16, b_low = b & 0xFFFF, b_high = b >> 16;
    return a_high * b_high + (a_high * b_low >> 16) + (a_low * b_high >> 16);
#else
    return (uint32_t)((uint64_t)a * b >> 32);
#endif
}

static inline __attribute__((always_inline)) int32_t
pt_quantize_fast(float x, const pt_factor *inverse, float inverse_scale, int32_t zero_point) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    int32_t shift = inverse->shift - (int32_t)(bits << 1 >> 24), sign = (int32_t)bits >> 31;
    if (__builtin_expect((uint32_t)shift - 20 < 12, 1)) { // from less than 1 to 2^11
        uint32_t product = pt_upper_product(bits << 8 | 0x80000000, inverse->mantissa);
        uint32_t fraction = product << (32 - shift);
        // Near a half the rounding of the product to float32 decides.
        if (__builtin_expect(fraction - 0x80000000 + (1 << 19) >= 1 << 20, 1)) {
            int32_t rounded = (int32_t)((product >> shift) + (fraction >> 31));
            return zero_point + (rounded ^ sign) - sign;
        }
    } else if (shift >= 32) { // less than a half
        return zero_point;
    }
    return pt_quantize_value(x, inverse_scale, zero_point);
}

#define PT_QUANTIZE_BYTES(name, type, limit)                                                    \
    static inline void name(int32_t blocks, const float *in, type *out, float inverse_scale,    \
                            int32_t zero_point) {                                               \
        pt_factor inverse = pt_make_factor(inverse_scale);                                      \
        for (int32_t n = 4 * blocks; n > 0; n--) {                                              \
            *out++ = (type)limit(pt_quantize_fast(*in++, &inverse, inverse_scale, zero_point)); \
        }                                                                                       \
    }

#else

#define PT_QUANTIZE_BYTES(name, type, limit)                                                 \
    static inline void name(int32_t blocks, const float *in, type *out, float inverse_scale, \
                            int32_t zero_point) {                                            \
        for (int32_t n = 4 * blocks; n > 0; n--) {                                           \
            *out++ = (type)limit(pt_quantize_value(*in++, inverse_scale, zero_point));       \
        }                                                                                    \
    }

#endif

PT_QUANTIZE_BYTES(pt_quantize_int8, int8_t, pt_saturate_int8)
PT_QUANTIZE_BYTES(pt_quantize_uint8, uint8_t, pt_limit_uint8)

#endif

#endif
