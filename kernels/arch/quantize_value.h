// Quantize one float32 value: round(x * inverse_scale) + zero_point, halves to even. With a single-
// precision FPU by adding 1.5 * 2^23, else on the bits of the float.
#ifndef PT_ARCH_QUANTIZE_VALUE_H
#define PT_ARCH_QUANTIZE_VALUE_H

#include <stdbool.h>
#include <stdint.h>

// The range of zero points of pt_quantize_value: from minus this to this.
enum { PT_NARROW_ZERO_POINT = 1 << 16 };

static inline bool pt_is_narrow(int32_t zero_point) {
    return zero_point >= -PT_NARROW_ZERO_POINT && zero_point <= PT_NARROW_ZERO_POINT;
}

// round(x * inverse_scale) + zero_point with halves to even; a result beyond 16 bits is not exact,
// but lies beyond them on the same side. NaN gives 0.

#if defined(__arm__) && defined(__ARM_FP) && (__ARM_FP & 4)

// A float near 1.5 * 2^23 has no fraction: adding it rounds, and subtracting it again (less the
// zero point) is exact. VCVT saturates, and turns NaN into 0.
static inline int32_t pt_quantize_value(float x, float inverse_scale, int32_t zero_point) {
    float rounded = (x * inverse_scale + 0x1.8p+23f) - (0x1.8p+23f - (float)zero_point);
    int32_t q;
    __asm__("vcvt.s32.f32 %0, %0" : "+t"(rounded));
    __builtin_memcpy(&q, &rounded, sizeof q);
    return q;
}

#else

#if defined(__arm__)
#define PT_QUANTIZE_VALUE __attribute__((noinline, unused))
#else
#define PT_QUANTIZE_VALUE inline
#endif

static PT_QUANTIZE_VALUE int32_t pt_quantize_value(float x, float inverse_scale,
                                                   int32_t zero_point) {
    float scaled = x * inverse_scale;
    uint32_t bits;
    __builtin_memcpy(&bits, &scaled, sizeof bits);
    uint32_t size = bits & 0x7FFFFFFF;
    uint32_t rounded;
    if (size <= 0x3F000000) { // 0.5
        return zero_point;
    }
    if (size < 0x4A800000) { // 2^22
        uint32_t shift = 150 - (size >> 23);
        uint32_t mantissa = (size & 0x007FFFFF) | 0x00800000;
        rounded = (mantissa + ((1u << (shift - 1)) - 1) + (mantissa >> shift & 1)) >> shift;
    } else if (size <= 0x7F800000) { // infinity
        rounded = 1u << 22;
    } else {
        return 0;
    }
    return zero_point + (bits >> 31 ? -(int32_t)rounded : (int32_t)rounded);
}

#endif

#endif
