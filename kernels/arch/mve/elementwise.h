// Elementwise int8 operators with MVE, four or sixteen values at a time.
#include "../offsets.h"
#include "requantize.h"

// Requantization by scalars: VQRDMULH, VQDMLAH by `fix`, VRSHL. A shift of 0 rounds only once.
static inline bool pt_has_vector_scale(int32_t multiplier, int32_t shift) {
    return multiplier >= 0 && shift <= 0 && shift >= -31;
}

static inline int32_t pt_fix(int32_t shift) {
    return shift < 0;
}

static inline bool pt_is_byte_range(int32_t zero_point) {
    return zero_point >= -255 && zero_point <= 255;
}

// All operands of a scale, by the value as a uint8.
static inline void pt_fill_table(const pt_scaled *s, int32_t *table) {
    for (int32_t i = 0; i < 256; i += 4) {
        int32x4_t value = vreinterpretq_s32_u32(vidupq_n_u32((uint32_t)i, 1));
        value = vsubq_n_s32(value, (i < 128 ? 0 : 256) + s->zero_point);
        value = vqrdmulhq_n_s32(vshlq_n_s32(value, 20), s->multiplier);
        value = vrshlq_n_s32(vqdmlahq_n_s32(value, value, pt_fix(s->shift)), s->shift);
        vst1q_s32(table + i, value);
    }
}

// Looks both operands up in tables, of 256 each: eight values at a time, of which the even and the
// odd ones make vectors. Requantization of the even ones stands between the odd ones' loads.
static inline void pt_add_by_tables(const pt_scaled *sum, const pt_range *range, const int8_t *a,
                                    const int8_t *b, int8_t *out, int32_t times,
                                    const int32_t *tables) {
    int16x8_t min = vdupq_n_s16((int16_t)range->min), max = vdupq_n_s16((int16_t)range->max);
    const int32_t *of_b = tables + 256;
    __asm__ volatile(
        "dls lr, %[times]\n"
        "1:\n\t"
        "vldrb.u16 q0, [%[a]], #8\n\t"
        "vmovlb.u16 q2, q0\n\t"
        "vldrb.u16 q1, [%[b]], #8\n\t"
        "vmovlb.u16 q3, q1\n\t"
        "vmovlt.u16 q4, q0\n\t"
        "vldrw.u32 q0, [%[of_a], q2, uxtw #2]\n\t"
        "vldrw.u32 q2, [%[of_b], q3, uxtw #2]\n\t"
        "vmovlt.u16 q3, q1\n\t"
        "vldrw.u32 q1, [%[of_a], q4, uxtw #2]\n\t"
        "vadd.i32 q0, q0, q2\n\t"
        "vqrdmulh.s32 q0, q0, %[multiplier]\n\t"
        "vldrw.u32 q2, [%[of_b], q3, uxtw #2]\n\t"
        "vqdmlah.s32 q0, q0, %[fix]\n\t"
        "vrshl.s32 q0, %[shift]\n\t"
        "vadd.i32 q1, q1, q2\n\t"
        "vqrdmulh.s32 q1, q1, %[multiplier]\n\t"
        "vqmovnb.s32 q0, q0\n\t"
        "vqdmlah.s32 q1, q1, %[fix]\n\t"
        "vrshl.s32 q1, %[shift]\n\t"
        "vqmovnt.s32 q0, q1\n\t"
        "vqadd.s16 q0, q0, %[offset]\n\t"
        "vmax.s16 q0, q0, %q[min]\n\t"
        "vmin.s16 q0, q0, %q[max]\n\t"
        "vstrb.16 q0, [%[out]], #8\n\t"
        "le lr, 1b"
        : [a] "+l"(a), [b] "+l"(b), [out] "+l"(out)
        : [times] "r"(times), [of_a] "r"(tables), [of_b] "r"(of_b),
          [multiplier] "r"(sum->multiplier), [fix] "r"(pt_fix(sum->shift)), [shift] "r"(sum->shift),
          [offset] "r"(range->offset), [min] "w"(min), [max] "w"(max)
        : "lr", "q0", "q1", "q2", "q3", "q4", "memory");
}

enum { PT_TABLES_PAY = 1024 }; // values

static inline int32_t pt_add_some(const pt_scaled *a_scale, const pt_scaled *b_scale,
                                  const pt_scaled *sum, const pt_range *range, const int8_t *a,
                                  const int8_t *b, int8_t *out, int32_t n, int32_t *tables) {
    if (n < 4 || !pt_has_vector_scale(a_scale->multiplier, a_scale->shift) ||
        !pt_has_vector_scale(b_scale->multiplier, b_scale->shift) ||
        !pt_has_vector_scale(sum->multiplier, sum->shift)) {
        return 0;
    }
    if (n >= PT_TABLES_PAY) {
        pt_fill_table(a_scale, tables);
        pt_fill_table(b_scale, tables + 256);
        pt_add_by_tables(sum, range, a, b, out, n / 8, tables);
        return n & ~7;
    }
    int32x4_t zero_a = vdupq_n_s32(a_scale->zero_point), zero_b = vdupq_n_s32(b_scale->zero_point);
    int32x4_t offset = vdupq_n_s32(range->offset);
    int32x4_t min = vdupq_n_s32(range->min), max = vdupq_n_s32(range->max);
    int32_t scales[10] = {a_scale->multiplier,
                          pt_fix(a_scale->shift),
                          a_scale->shift,
                          b_scale->multiplier,
                          pt_fix(b_scale->shift),
                          b_scale->shift,
                          sum->multiplier,
                          pt_fix(sum->shift),
                          sum->shift,
                          n / 4};
    PT_STATIC_ASSERT(sizeof scales == 40, "assembler has the last at 36");
    register const int8_t *r0 __asm__("r0") = a, *r1 __asm__("r1") = b;
    register int8_t *r2 __asm__("r2") = out;
    register const int32_t *r12 __asm__("r12") = scales;
    // clang-format off
    __asm__ volatile(
        "ldr lr, [r12, #36]\n\t" // times
        "dls lr, lr\n\t"
        "ldm r12, {r3-r11}\n"    // multiplier, fix and shift of each scale
        "1:\n\t"
        "vldrb.s32 q0, [r0], #4\n\t"
        "vsub.i32 q0, q0, %q[zero_a]\n\t"
        "vshl.i32 q0, q0, #20\n\t"
        "vldrb.s32 q1, [r1], #4\n\t"
        "vqrdmulh.s32 q0, q0, r3\n\t"
        "vsub.i32 q1, q1, %q[zero_b]\n\t"
        "vqdmlah.s32 q0, q0, r4\n\t"
        "vshl.i32 q1, q1, #20\n\t"
        "vqrdmulh.s32 q1, q1, r6\n\t"
        "vrshl.s32 q0, r5\n\t"
        "vqdmlah.s32 q1, q1, r7\n\t"
        "vrshl.s32 q1, r8\n\t"
        "vadd.i32 q0, q0, q1\n\t"
        "vqrdmulh.s32 q0, q0, r9\n\t"
        "vqdmlah.s32 q0, q0, r10\n\t"
        "vrshl.s32 q0, r11\n\t"
        "vadd.i32 q0, q0, %q[offset]\n\t"
        "vmax.s32 q0, q0, %q[min]\n\t"
        "vmin.s32 q0, q0, %q[max]\n\t"
        "vstrb.32 q0, [r2], #4\n\t"
        "le lr, 1b"
        : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r12)
        : [zero_a] "w"(zero_a), [zero_b] "w"(zero_b), [offset] "w"(offset), [min] "w"(min),
          [max] "w"(max)
        : "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "lr", "q0", "q1", "memory");
    // clang-format on
    return n & ~3;
}

static inline int32_t pt_multiply_some(int32_t a_zero_point, int32_t b_zero_point,
                                       const pt_scaled *product, const pt_range *range,
                                       const int8_t *a, const int8_t *b, int8_t *out, int32_t n) {
    if (!pt_has_vector_scale(product->multiplier, product->shift)) {
        return 0;
    }
    int32x4_t min = vdupq_n_s32(range->min), max = vdupq_n_s32(range->max);
    int32_t fix = pt_fix(product->shift);
    for (int32_t i = 0; i + 4 <= n; i += 4) {
        int32x4_t value = vsubq_n_s32(vldrbq_s32(a + i), a_zero_point);
        value = vmulq_s32(value, vsubq_n_s32(vldrbq_s32(b + i), b_zero_point));
        value = vqrdmulhq_n_s32(value, product->multiplier);
        value = vrshlq_n_s32(vqdmlahq_n_s32(value, value, fix), product->shift);
        value = vaddq_n_s32(value, range->offset);
        vstrbq_s32(out + i, vminq_s32(vmaxq_s32(value, min), max));
    }
    return n & ~3;
}

// Helium takes subnormal numbers for 0: between these limits of the factor that changes no result.
static inline bool pt_is_ordinary(float factor) {
    return factor >= 0x1p-60f && factor <= 0x1p60f;
}

// clang-format off

#define PT_LOAD_16                           \
    "vld40.32 {q0, q1, q2, q3}, [%[x]]\n\t"  \
    "vld41.32 {q0, q1, q2, q3}, [%[x]]\n\t"  \
    "vld42.32 {q0, q1, q2, q3}, [%[x]]\n\t"  \
    "vld43.32 {q0, q1, q2, q3}, [%[x]]!\n\t"

#define PT_SCALE(q) "vmul.f32 " q ", " q ", %[inverse]\n\t"

// Beside 1.5 * 2^23 a float has no fraction: adding it rounds, and taking it away again (with the
// zero point) is exact. VCVT saturates and makes 0 of NaN.
#define PT_QUANTIZE_4(q)                 \
    "vadd.f32 " q ", " q ", %[up]\n\t"   \
    "vsub.f32 " q ", " q ", %[down]\n\t" \
    "vcvt.s32.f32 " q ", " q "\n\t"

// clang-format on

// 16 at a time, and NaN to 0.
static __attribute__((noinline)) void pt_quantize_any(const float *x, int8_t *q, int32_t times,
                                                      uint32_t inverse, int32_t zero_point) {
    union {
        float value;
        uint32_t bits;
    } up = {0x1.8p+23f}, down = {0x1.8p+23f - (float)zero_point};
    // clang-format off
    __asm__ volatile(
        "dls lr, %[times]\n"
        "1:\n\t"
        PT_LOAD_16
        PT_SCALE("q0")
        PT_SCALE("q1")
        PT_SCALE("q2")
        PT_SCALE("q3")
        PT_QUANTIZE_4("q0")
        PT_QUANTIZE_4("q1")
        PT_QUANTIZE_4("q2")
        PT_QUANTIZE_4("q3")
        "vqmovnb.s32 q0, q0\n\t"
        "vqmovnt.s32 q0, q2\n\t"
        "vqmovnb.s32 q1, q1\n\t"
        "vqmovnt.s32 q1, q3\n\t"
        "vqmovnb.s16 q0, q0\n\t"
        "vqmovnt.s16 q0, q1\n\t"
        "vstrb.8 q0, [%[q]], #16\n\t"
        "le lr, 1b"
        : [x] "+r"(x), [q] "+r"(q)
        : [times] "r"(times), [inverse] "r"(inverse), [up] "r"(up.bits), [down] "r"(down.bits)
        : "lr", "q0", "q1", "q2", "q3", "memory");
    // clang-format on
}

// The same, where VCVTN has no fault to report: then all are numbers, in the range of int32.
static inline int32_t pt_quantize_some(const float *x, int8_t *q, int32_t n, float inverse,
                                       int32_t zero_point) {
    if (n < 16 || !pt_is_ordinary(inverse) || !pt_is_byte_range(zero_point)) {
        return 0;
    }
    union {
        float value;
        uint32_t bits;
    } factor = {inverse};
    const float *from = x;
    int8_t *to = q;
    uint32_t flags;
    // clang-format off
    __asm__ volatile(
        "vmrs %[flags], fpscr\n\t"
        "bic %[flags], %[flags], #1\n\t" // invalid operation
        "vmsr fpscr, %[flags]\n\t"
        "dls lr, %[times]\n"
        "1:\n\t"
        PT_LOAD_16
        PT_SCALE("q0")
        "vcvtn.s32.f32 q0, q0\n\t"
        PT_SCALE("q2")
        "vqmovnb.s32 q0, q0\n\t"
        "vcvtn.s32.f32 q2, q2\n\t"
        PT_SCALE("q1")
        "vqmovnt.s32 q0, q2\n\t"
        "vcvtn.s32.f32 q1, q1\n\t"
        "vqmovnb.s32 q1, q1\n\t"
        PT_SCALE("q3")
        "vqadd.s16 q0, q0, %[zero_point]\n\t"
        "vcvtn.s32.f32 q3, q3\n\t"
        "vqmovnt.s32 q1, q3\n\t"
        "vqmovnb.s16 q0, q0\n\t"
        "vqadd.s16 q1, q1, %[zero_point]\n\t"
        "vqmovnt.s16 q0, q1\n\t"
        "vstrb.8 q0, [%[to]], #16\n\t"
        "le lr, 1b\n\t"
        "vmrs %[flags], fpscr"
        : [x] "+r"(from), [to] "+r"(to), [flags] "=&r"(flags)
        : [times] "r"(n / 16), [inverse] "r"(factor.bits), [zero_point] "r"(zero_point)
        : "lr", "q0", "q1", "q2", "q3", "memory");
    // clang-format on
    if (flags & 1) {
        pt_quantize_any(x, q, n / 16, factor.bits, zero_point);
    }
    return n & ~15;
}

static inline int32_t pt_dequantize_some(const int8_t *q, float *x, int32_t n, float scale,
                                         int32_t zero_point) {
    if (n < 4 || !pt_is_ordinary(scale) || !pt_is_byte_range(zero_point)) {
        return 0;
    }
    union {
        float value;
        uint32_t bits;
    } factor = {scale};
    __asm__ volatile("dls lr, %[times]\n"
                     "1:\n\t"
                     "vldrb.s32 q0, [%[q]], #4\n\t"
                     "vsub.i32 q0, q0, %[zero_point]\n\t"
                     "vcvt.f32.s32 q0, q0\n\t"
                     "vmul.f32 q0, q0, %[factor]\n\t"
                     "vstrw.32 q0, [%[x]], #16\n\t"
                     "le lr, 1b"
                     : [q] "+l"(q), [x] "+r"(x)
                     : [times] "r"(n / 4), [zero_point] "r"(zero_point), [factor] "r"(factor.bits)
                     : "lr", "q0", "memory");
    return n & ~3;
}
