// Elementwise float32 rows: ReLU by integer comparison of the bits, and the scaling of batch norm.
// Called by kernels/portable. Block: 4 values with MVE; else ReLU takes 8 at a time and
// pt_normalize_row 4, in plain C.
#ifndef PT_ARCH_FLOAT_ROWS_H
#define PT_ARCH_FLOAT_ROWS_H

#include "arch/float_vectors.h"

typedef int32_t __attribute__((may_alias)) pt_float_bits;

// Compares bits, also where there is an FPU: negative floats have the lowest integers, a NaN's are
// higher than -infinity's 0xFF800000. NaN stays, -0 becomes 0.
enum { PT_MINUS_INFINITY = -0x00800000 };

static inline int32_t pt_relu_bits(int32_t x) {
    return x <= PT_MINUS_INFINITY ? 0 : x;
}

// out may be in
static inline void pt_relu_row(float *out_floats, const float *in_floats, int32_t n) {
    pt_float_bits *out = (pt_float_bits *)(void *)out_floats;
    const pt_float_bits *in = (const pt_float_bits *)(const void *)in_floats;
#if PT_FLOAT_VECTORS
    for (; n >= 4; n -= 4, in += 4, out += 4) {
        int32x4_t x = vldrwq_s32(in);
        __asm__("vpt.s32 le, %q0, %1\n"
                "vmovt.i32 %q0, #0\n"
                : "+w"(x)
                : "r"(PT_MINUS_INFINITY));
        vstrwq_s32(out, x);
    }
#else
    for (; n >= 8; n -= 8, in += 8, out += 8) {
        int32_t x0 = in[0], x1 = in[1], x2 = in[2], x3 = in[3];
        int32_t x4 = in[4], x5 = in[5], x6 = in[6], x7 = in[7];
        out[0] = pt_relu_bits(x0);
        out[1] = pt_relu_bits(x1);
        out[2] = pt_relu_bits(x2);
        out[3] = pt_relu_bits(x3);
        out[4] = pt_relu_bits(x4);
        out[5] = pt_relu_bits(x5);
        out[6] = pt_relu_bits(x6);
        out[7] = pt_relu_bits(x7);
    }
#endif
    for (; n > 0; n--) {
        *out++ = pt_relu_bits(*in++);
    }
}

// Computes the first elements of pt_normalize_row, as many as vectors compute exactly. Returns
// their number.
static inline int32_t pt_normalize_vectors(float *out, const float *in, int32_t n, float mean,
                                           float scale, float shift) {
    int32_t done = 0;
#if PT_FLOAT_VECTORS
    if (n < 16 || (out < in + n && in < out + n)) {
        return 0; // in place the input would be overwritten
    }
    const float32x4_t means = vdupq_n_f32(mean), scales = vdupq_n_f32(scale);
    const float32x4_t shifts = vdupq_n_f32(shift);
    const uint32_t before = pt_watch_subnormal();
    for (; done + 4 <= n; done += 4) {
        const float32x4_t x = vmulq_f32(vsubq_f32(vldrwq_f32(in + done), means), scales);
        vstrwq_f32(out + done, vaddq_f32(x, shifts));
    }
    if (!pt_was_exact(before)) {
        return 0;
    }
#else
    (void)out, (void)in, (void)n, (void)mean, (void)scale, (void)shift;
#endif
    return done;
}

// out = (in - mean) * scale + shift; out may be in
static inline void pt_normalize_row(float *out, const float *in, int32_t n, float mean, float scale,
                                    float shift) {
#pragma GCC unroll 4
    for (int32_t i = pt_normalize_vectors(out, in, n, mean, scale, shift); i < n; i++) {
        out[i] = (in[i] - mean) * scale + shift;
    }
}

#endif
