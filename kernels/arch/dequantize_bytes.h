// Dequantize int8 or uint8 to float32, (q - zero_point) * scale, in blocks of four values. Called
// by cortex_m/quantize.c. With an FPU and SXTAB: word loads at multiples of 4. Arm without an FPU:
// integer arithmetic. Else plain C. No scratch.
#ifndef PT_ARCH_DEQUANTIZE_BYTES_H
#define PT_ARCH_DEQUANTIZE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// `blocks` times four values of int8 or uint8. `in` is a multiple of PT_DEQUANTIZE_ALIGNMENT.

#if defined(__ARM_FP) && (__ARM_FP & 4) && defined(__ARM_FEATURE_SIMD32)

enum { PT_DEQUANTIZE_ALIGNMENT = 4 };

// clang-format off

// Loads a word of four bytes, extends each and adds -zero_point in one instruction.
#define PT_DEQUANTIZE_BYTES(name, type, extend)                                      \
    static inline void name(int32_t blocks, const type *in, float *out, float scale, \
                            int32_t zero_point) {                                    \
        uint32_t word, q0, q1, q2;                                                   \
        if (blocks == 0) {                                                           \
            return;                                                                  \
        }                                                                            \
        __asm__ volatile(                                                            \
            "1:\n\t"                                                                 \
            "ldr %[word], [%[in]], #4\n\t"                                           \
            "subs %[blocks], #1\n\t"                                                 \
            extend " %[q0], %[minus], %[word]\n\t"                                   \
            extend " %[q1], %[minus], %[word], ror #8\n\t"                           \
            extend " %[q2], %[minus], %[word], ror #16\n\t"                          \
            extend " %[word], %[minus], %[word], ror #24\n\t"                        \
            "vmov s0, s1, %[q0], %[q1]\n\t"                                          \
            "vmov s2, s3, %[q2], %[word]\n\t"                                        \
            "vcvt.f32.s32 s0, s0\n\t"                                                \
            "vcvt.f32.s32 s1, s1\n\t"                                                \
            "vcvt.f32.s32 s2, s2\n\t"                                                \
            "vcvt.f32.s32 s3, s3\n\t"                                                \
            "vmul.f32 s0, s0, %[scale]\n\t"                                          \
            "vmul.f32 s1, s1, %[scale]\n\t"                                          \
            "vmul.f32 s2, s2, %[scale]\n\t"                                          \
            "vmul.f32 s3, s3, %[scale]\n\t"                                          \
            "vstmia %[out]!, {s0-s3}\n\t"                                            \
            "bne 1b"                                                                 \
            : [blocks] "+l"(blocks), [in] "+r"(in), [out] "+r"(out),                 \
              [word] "=&r"(word), [q0] "=&r"(q0), [q1] "=&r"(q1), [q2] "=&r"(q2)     \
            : [minus] "r"(-zero_point), [scale] "t"(scale)                           \
            : "s0", "s1", "s2", "s3", "cc", "memory");                               \
    }

// clang-format on

PT_DEQUANTIZE_BYTES(pt_dequantize_int8, int8_t, "sxtab")
PT_DEQUANTIZE_BYTES(pt_dequantize_uint8, uint8_t, "uxtab")

#else

enum { PT_DEQUANTIZE_ALIGNMENT = 1 };

#if defined(__arm__)

// Returns x * scale without float32 arithmetic, for |x| <= 255 and a scale whose products with x
// are normal numbers. The scale is given as a mantissa of 24 bits and an exponent.
static inline __attribute__((always_inline)) float pt_scale_integer(int32_t x, uint32_t mantissa,
                                                                    uint32_t exponent) {
    uint32_t product = (uint32_t)(x < 0 ? -x : x) * mantissa, bits = 0;
    if (product) {
#if defined(__ARM_FEATURE_CLZ)
        uint32_t zeros = (uint32_t)__builtin_clz(product);
        product <<= zeros;
        exponent += 7 - zeros;
#else
        for (exponent += 7; !(product & 0x80000000); exponent--) {
            product <<= 1;
        }
#endif
        uint32_t upper = product >> 8;
        upper += ((product & 0xFF) + 0x7F + (upper & 1)) >> 8; // halves to even
        bits = (exponent << 23) + upper + ((uint32_t)x & 0x80000000);
    }
    float result;
    __builtin_memcpy(&result, &bits, sizeof result);
    return result;
}

#define PT_DEQUANTIZE_BYTES(name, type)                                                      \
    static inline void name(int32_t blocks, const type *in, float *out, float scale,         \
                            int32_t zero_point) {                                            \
        uint32_t bits;                                                                       \
        __builtin_memcpy(&bits, &scale, sizeof bits);                                        \
        uint32_t exponent = bits >> 23, mantissa = (bits & 0x007FFFFF) | 0x00800000;         \
        bool fits = exponent > 0 && exponent < 246;                                          \
        for (const type *end = in + 4 * blocks; in != end;) {                                \
            int32_t x = *in++ - zero_point;                                                  \
            *out++ = fits && x >= -255 && x <= 255 ? pt_scale_integer(x, mantissa, exponent) \
                                                   : (float)x * scale;                       \
        }                                                                                    \
    }

#else

#define PT_DEQUANTIZE_BYTES(name, type)                                              \
    static inline void name(int32_t blocks, const type *in, float *out, float scale, \
                            int32_t zero_point) {                                    \
        for (; blocks > 0; blocks--, in += 4, out += 4) {                            \
            int32_t q0 = in[0], q1 = in[1], q2 = in[2], q3 = in[3];                  \
            out[0] = (float)(q0 - zero_point) * scale;                               \
            out[1] = (float)(q1 - zero_point) * scale;                               \
            out[2] = (float)(q2 - zero_point) * scale;                               \
            out[3] = (float)(q3 - zero_point) * scale;                               \
        }                                                                            \
    }

#endif

PT_DEQUANTIZE_BYTES(pt_dequantize_int8, int8_t)
PT_DEQUANTIZE_BYTES(pt_dequantize_uint8, uint8_t)

#endif

#endif
