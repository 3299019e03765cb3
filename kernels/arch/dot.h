// Innermost loops of the int8 kernels: sums of products of int8 values.
//
// Each has a plain C form, which says what it computes and runs on the host, and where the core has
// the DSP extension a form on packed words, which is taken when all addresses are multiples of 4.
// Sums wrap around at 32 bits. `offset` lies in -255..255.
#ifndef PT_ARCH_DOT_H
#define PT_ARCH_DOT_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__ARM_FEATURE_DSP)
#include <arm_acle.h>

typedef uint32_t __attribute__((may_alias)) pt_word;

static inline uint32_t pt_load_word(const int8_t *p) {
    return *(const pt_word *)(const void *)p;
}

// Bytes 0 and 2, or 1 and 3, as two int16.
static inline int16x2_t pt_even_bytes(uint32_t word) {
    return __sxtb16((int8x4_t)word);
}

static inline int16x2_t pt_odd_bytes(uint32_t word) {
    int16x2_t pair;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(pair) : "r"(word));
    return pair;
}

// The same plus a pair of int16.
static inline int16x2_t pt_even_bytes_plus(uint32_t word, int16x2_t pair) {
    return __sxtab16(pair, (int8x4_t)word);
}

static inline int16x2_t pt_odd_bytes_plus(uint32_t word, int16x2_t pair) {
    int16x2_t sum;
    __asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(sum) : "r"(pair), "r"(word));
    return sum;
}

static inline int16x2_t pt_pair_of(int32_t value) {
    return (int16x2_t)(((uint32_t)value & 0xFFFFu) * 0x10001u);
}
#endif

static inline uint32_t pt_product_of(int32_t x, int32_t w) {
    return (uint32_t)(x * w);
}

// sums[2 * i + j] += sum over k of (x_i[k] + offset) * w_j[k], for k below n.
static inline void pt_dot_2x2(const int8_t *x0, const int8_t *x1, int32_t offset, const int8_t *w0,
                              const int8_t *w1, int32_t n, int32_t sums[4]) {
    uint32_t s0 = (uint32_t)sums[0], s1 = (uint32_t)sums[1];
    uint32_t s2 = (uint32_t)sums[2], s3 = (uint32_t)sums[3];
    const int8_t *end = x0 + n;
#if defined(__ARM_FEATURE_DSP)
    if ((((uintptr_t)x0 | (uintptr_t)x1 | (uintptr_t)w0 | (uintptr_t)w1) & 3) == 0) {
        int16x2_t offsets = pt_pair_of(offset);
        for (const int8_t *whole = x0 + (n & ~3); x0 != whole;) {
            uint32_t u = pt_load_word(w0), v = pt_load_word(w1);
            uint32_t a = pt_load_word(x0), b = pt_load_word(x1);
            int16x2_t u_even = pt_even_bytes(u), u_odd = pt_odd_bytes(u);
            int16x2_t v_even = pt_even_bytes(v), v_odd = pt_odd_bytes(v);
            int16x2_t even = pt_even_bytes_plus(a, offsets), odd = pt_odd_bytes_plus(a, offsets);
            s0 = (uint32_t)__smlad(even, u_even, (int32_t)s0);
            s1 = (uint32_t)__smlad(even, v_even, (int32_t)s1);
            s0 = (uint32_t)__smlad(odd, u_odd, (int32_t)s0);
            s1 = (uint32_t)__smlad(odd, v_odd, (int32_t)s1);
            even = pt_even_bytes_plus(b, offsets), odd = pt_odd_bytes_plus(b, offsets);
            s2 = (uint32_t)__smlad(even, u_even, (int32_t)s2);
            s3 = (uint32_t)__smlad(even, v_even, (int32_t)s3);
            s2 = (uint32_t)__smlad(odd, u_odd, (int32_t)s2);
            s3 = (uint32_t)__smlad(odd, v_odd, (int32_t)s3);
            x0 += 4, x1 += 4, w0 += 4, w1 += 4;
        }
    }
#endif
    while (x0 != end) {
        int32_t a = *x0++ + offset, b = *x1++ + offset, u = *w0++, v = *w1++;
        s0 += pt_product_of(a, u);
        s1 += pt_product_of(a, v);
        s2 += pt_product_of(b, u);
        s3 += pt_product_of(b, v);
    }
    sums[0] = (int32_t)s0, sums[1] = (int32_t)s1;
    sums[2] = (int32_t)s2, sums[3] = (int32_t)s3;
}

// sums[j] += sum over k of (x[k] + offset) * w_j[k], for k below n.
static inline void pt_dot_1x4(const int8_t *x, int32_t offset, const int8_t *const w[4], int32_t n,
                              int32_t sums[4]) {
    uint32_t s0 = (uint32_t)sums[0], s1 = (uint32_t)sums[1];
    uint32_t s2 = (uint32_t)sums[2], s3 = (uint32_t)sums[3];
    const int8_t *w0 = w[0], *w1 = w[1], *w2 = w[2], *w3 = w[3], *end = x + n;
#if defined(__ARM_FEATURE_DSP)
    if ((((uintptr_t)x | (uintptr_t)w0 | (uintptr_t)w1 | (uintptr_t)w2 | (uintptr_t)w3) & 3) == 0) {
        int16x2_t offsets = pt_pair_of(offset);
        for (const int8_t *whole = x + (n & ~3); x != whole;) {
            uint32_t a = pt_load_word(x), u = pt_load_word(w0), v = pt_load_word(w1);
            int16x2_t even = pt_even_bytes_plus(a, offsets), odd = pt_odd_bytes_plus(a, offsets);
            s0 = (uint32_t)__smlad(even, pt_even_bytes(u), (int32_t)s0);
            s0 = (uint32_t)__smlad(odd, pt_odd_bytes(u), (int32_t)s0);
            s1 = (uint32_t)__smlad(even, pt_even_bytes(v), (int32_t)s1);
            s1 = (uint32_t)__smlad(odd, pt_odd_bytes(v), (int32_t)s1);
            u = pt_load_word(w2), v = pt_load_word(w3);
            s2 = (uint32_t)__smlad(even, pt_even_bytes(u), (int32_t)s2);
            s2 = (uint32_t)__smlad(odd, pt_odd_bytes(u), (int32_t)s2);
            s3 = (uint32_t)__smlad(even, pt_even_bytes(v), (int32_t)s3);
            s3 = (uint32_t)__smlad(odd, pt_odd_bytes(v), (int32_t)s3);
            x += 4, w0 += 4, w1 += 4, w2 += 4, w3 += 4;
        }
    }
#endif
    while (x != end) {
        int32_t a = *x++ + offset;
        s0 += pt_product_of(a, *w0++);
        s1 += pt_product_of(a, *w1++);
        s2 += pt_product_of(a, *w2++);
        s3 += pt_product_of(a, *w3++);
    }
    sums[0] = (int32_t)s0, sums[1] = (int32_t)s1;
    sums[2] = (int32_t)s2, sums[3] = (int32_t)s3;
}

// sums[j] += (x[j] + offset) * w[j], for j below 4. `aligned`: x and w are multiples of 4.
static inline void pt_products_4(const int8_t *x, int32_t offset, const int8_t *w, bool aligned,
                                 int32_t sums[4]) {
#if defined(__ARM_FEATURE_DSP)
    if (aligned) {
        uint32_t a = pt_load_word(x), u = pt_load_word(w);
        int16x2_t offsets = pt_pair_of(offset);
        int16x2_t even = pt_even_bytes_plus(a, offsets), odd = pt_odd_bytes_plus(a, offsets);
        sums[0] = __smlabb(even, pt_even_bytes(u), sums[0]);
        sums[1] = __smlabb(odd, pt_odd_bytes(u), sums[1]);
        sums[2] = __smlatt(even, pt_even_bytes(u), sums[2]);
        sums[3] = __smlatt(odd, pt_odd_bytes(u), sums[3]);
        return;
    }
#endif
    (void)aligned;
    for (uint32_t j = 0; j < 4; j++) {
        sums[j] = (int32_t)((uint32_t)sums[j] + pt_product_of(x[j] + offset, w[j]));
    }
}

#endif
