// int8 dot products: 1 row x 4 weight rows (pt_dot_1x4), and 4 channels x 1 tap (pt_products_4),
// for convolutions and linear layers that no other loop covers. Plain C is the specification; with
// the DSP extension SMLAD multiplies words of four values if all addresses are multiples of 4, with
// MVE VMLADAVA eight values at any address. Sums wrap around at 32 bits. `offset` lies in
// -255..255.
#ifndef PT_ARCH_DOT_H
#define PT_ARCH_DOT_H

#include "arch/vectors.h"
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

#if defined(__arm__)
// Orders uses of the pointer behind the sum: otherwise gcc loads ahead and keeps a pointer for each
// row, more than there are registers.
#define PT_IN_ORDER(pointer, sum) __asm__("" : "+r"(pointer), "+r"(sum))
#else
#define PT_IN_ORDER(pointer, sum)
#endif

static inline uint32_t pt_product_of(int32_t x, int32_t w) {
    return (uint32_t)(x * w);
}

// Not inlined without the DSP loop: the registers that the plain loop gains outweigh the call.
#if defined(__arm__) && !defined(__ARM_FEATURE_DSP)
#define PT_DOT __attribute__((noinline, unused))
#else
#define PT_DOT inline
#endif

// Four sums that stay in registers.
typedef struct pt_sums {
    int32_t s0, s1, s2, s3;
} pt_sums;

#if defined(PT_HAS_HOST_VECTORS)
// Computes pt_dot_1x4 of the first of n values, as many as fill vectors. Returns their number.
int32_t pt_dot_vectors(const int8_t *x, int32_t offset, const int8_t *w, int32_t stride, int32_t n,
                       int32_t sums[4]);
#endif

#if defined(__ARM_FEATURE_MVE)

// Adds the products of (x[k] + offset) with w[k] and with v[k], for k below n, to two sums.
static inline void pt_dot_1x2(const int8_t *x, int32_t offset, const int8_t *w, const int8_t *v,
                              int32_t n, int32_t *sum_w, int32_t *sum_v) {
    int32_t s0 = *sum_w, s1 = *sum_v;
    __asm__ volatile("wlstp.16 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrb.s16 q0, [%[x]], #8\n\t"
                     "vldrb.s16 q1, [%[w]], #8\n\t"
                     "vadd.i16 q0, q0, %[offset]\n\t"
                     "vldrb.s16 q2, [%[v]], #8\n\t"
                     "vmladava.s16 %[s0], q0, q1\n\t"
                     "vmladava.s16 %[s1], q0, q2\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [x] "+l"(x), [w] "+l"(w), [v] "+l"(v), [s0] "+Te"(s0), [s1] "+Te"(s1)
                     : [n] "r"(n), [offset] "r"(offset)
                     : "lr", "q0", "q1", "q2", "memory");
    *sum_w = s0;
    *sum_v = s1;
}

// Adds the products of (x[k] + offset) and w[j * stride + k], for k below n, to sum j: eight at a
// time, in 16 bits.
static inline void pt_dot_1x4(const int8_t *x, int32_t offset, const int8_t *w, int32_t stride,
                              int32_t n, pt_sums *sums) {
    pt_dot_1x2(x, offset, w, w + stride, n, &sums->s0, &sums->s1);
    pt_dot_1x2(x, offset, w + 2 * stride, w + 3 * stride, n, &sums->s2, &sums->s3);
}

#else

// Adds the products of (x[k] + offset) and w[j * stride + k], for k below n, to sum j.
static PT_DOT void pt_dot_1x4(const int8_t *x, int32_t offset, const int8_t *w, int32_t stride,
                              int32_t n, pt_sums *sums) {
    uint32_t s0 = (uint32_t)sums->s0, s1 = (uint32_t)sums->s1;
    uint32_t s2 = (uint32_t)sums->s2, s3 = (uint32_t)sums->s3;
    const int8_t *end = x + n;
#if defined(PT_HAS_HOST_VECTORS)
    int32_t all[4] = {0, 0, 0, 0}, done = pt_dot_vectors(x, offset, w, stride, n, all);
    s0 += (uint32_t)all[0], s1 += (uint32_t)all[1], s2 += (uint32_t)all[2], s3 += (uint32_t)all[3];
    x += done, w += done;
#elif defined(__ARM_FEATURE_DSP)
    if ((((uintptr_t)x | (uintptr_t)w | (uint32_t)stride) & 3) == 0) {
        int16x2_t offsets = pt_pair_of(offset);
        for (const int8_t *whole = x + (n & ~3); x != whole; x += 4, w += 4) {
            uint32_t u = pt_load_word(x);
            int16x2_t even = pt_even_bytes_plus(u, offsets), odd = pt_odd_bytes_plus(u, offsets);
            u = pt_load_word(w);
            s0 = (uint32_t)__smlad(even, pt_even_bytes(u), (int32_t)s0);
            s0 = (uint32_t)__smlad(odd, pt_odd_bytes(u), (int32_t)s0);
            PT_IN_ORDER(w, s0);
            u = pt_load_word(w + stride);
            s1 = (uint32_t)__smlad(even, pt_even_bytes(u), (int32_t)s1);
            s1 = (uint32_t)__smlad(odd, pt_odd_bytes(u), (int32_t)s1);
            PT_IN_ORDER(w, s1);
            u = pt_load_word(w + 2 * stride);
            s2 = (uint32_t)__smlad(even, pt_even_bytes(u), (int32_t)s2);
            s2 = (uint32_t)__smlad(odd, pt_odd_bytes(u), (int32_t)s2);
            PT_IN_ORDER(w, s2);
            u = pt_load_word(w + 3 * stride);
            s3 = (uint32_t)__smlad(even, pt_even_bytes(u), (int32_t)s3);
            s3 = (uint32_t)__smlad(odd, pt_odd_bytes(u), (int32_t)s3);
        }
    }
#endif
    for (; x != end; x++, w++) {
        int32_t a = *x + offset;
        s0 += pt_product_of(a, w[0]);
        PT_IN_ORDER(w, s0);
        s1 += pt_product_of(a, w[stride]);
        PT_IN_ORDER(w, s1);
        s2 += pt_product_of(a, w[2 * stride]);
        PT_IN_ORDER(w, s2);
        s3 += pt_product_of(a, w[3 * stride]);
    }
    *sums = (pt_sums){(int32_t)s0, (int32_t)s1, (int32_t)s2, (int32_t)s3};
}

#endif

// Adds (x[j] + offset) * w[j] to sum j. `aligned`: x and w are multiples of 4.
static inline __attribute__((always_inline)) void
pt_products_4(const int8_t *x, int32_t offset, const int8_t *w, bool aligned, pt_sums *sums) {
#if defined(__ARM_FEATURE_DSP)
    if (aligned) {
        uint32_t a = pt_load_word(x), u = pt_load_word(w);
        int16x2_t offsets = pt_pair_of(offset);
        int16x2_t even = pt_even_bytes_plus(a, offsets), odd = pt_odd_bytes_plus(a, offsets);
        int16x2_t u_even = pt_even_bytes(u), u_odd = pt_odd_bytes(u);
        sums->s0 = __smlabb(even, u_even, sums->s0);
        sums->s1 = __smlabb(odd, u_odd, sums->s1);
        sums->s2 = __smlatt(even, u_even, sums->s2);
        sums->s3 = __smlatt(odd, u_odd, sums->s3);
        return;
    }
#endif
    (void)aligned;
    sums->s0 = (int32_t)((uint32_t)sums->s0 + pt_product_of(x[0] + offset, w[0]));
    sums->s1 = (int32_t)((uint32_t)sums->s1 + pt_product_of(x[1] + offset, w[1]));
    sums->s2 = (int32_t)((uint32_t)sums->s2 + pt_product_of(x[2] + offset, w[2]));
    sums->s3 = (int32_t)((uint32_t)sums->s3 + pt_product_of(x[3] + offset, w[3]));
}

#endif
