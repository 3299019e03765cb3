// The float32 blocks with AVX2. A lane is an output, so that each is summed in the order of
// float_products_plain.h, by multiplication and addition, which round as the scalar ones do.
#ifndef PT_ARCH_X86_FLOAT_PRODUCTS_H
#define PT_ARCH_X86_FLOAT_PRODUCTS_H

#include "../float_products.h"
#include "../vectors.h"

#if defined(PT_X86)
#include <immintrin.h>

#define PT_TARGET __attribute__((target("avx2")))
#define PT_INLINE static inline PT_TARGET __attribute__((always_inline))

enum { LANES = 8 };

// Lanes of a vector: neighbours in b; each second one; or neighbours that see their
// own neighbours, see pt_products.padded.
typedef enum pt_lane_order { NEXT, SECOND, PADDED } pt_lane_order;

// Lanes `begin` to `end`.
PT_INLINE __m256i lanes_from(int32_t begin, int32_t end) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(begin), lane),
                               _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane));
}

PT_INLINE __m256 load_each_second(const float *b) {
    const __m256 low = _mm256_loadu_ps(b), high = _mm256_loadu_ps(b + 7);
    const __m256 mixed = _mm256_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 2, 0));
    return _mm256_castpd_ps(
        _mm256_permute4x64_pd(_mm256_castps_pd(mixed), _MM_SHUFFLE(3, 1, 2, 0)));
}

// `rows` of `vectors` of lanes. If the line has fewer lanes than a vector, those of it.
PT_INLINE void sum_vectors_of(const pt_products *p, const pt_tap_walk *w, const float *a,
                              const float *b, const float *bias, float *out, uint32_t edges,
                              const int rows, const int vectors, const pt_lane_order order) {
    const int32_t n = p->columns.length < LANES ? p->columns.length : LANES;
    const int32_t first = (edges & PT_FIRST_COLUMN) != 0, last = (edges & PT_LAST_COLUMN) != 0;
    // Reads of the first vector for the first of three taps, of any for the second, and of the last
    // for the third
    const __m256i left = lanes_from(first, n), all = lanes_from(0, n),
                  right = lanes_from(0, n - last);
    const int taps = order == PADDED ? 3 : 1;
    const int32_t a_jump = w->a_jump, a_last = w->a_jump + w->a_wrap;
    const int32_t b_jump = w->b_jump, b_last = w->b_jump + w->b_wrap;
    const int64_t a_row = p->a_row;
    int32_t middle = w->middle;
    __m256 sum[8][4];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            sum[i][v] = _mm256_setzero_ps();
        }
    }
    for (int32_t k = w->count; k > 0; k--) {
        int32_t inner = order == PADDED ? 1 : w->inner;
        do {
#pragma GCC unroll 3
            for (int tap = 0; tap < taps; tap++) {
                __m256 x[4];
#pragma GCC unroll 4
                for (int v = 0; v < vectors; v++) {
                    const float *at = b + v * LANES * (order == SECOND ? 2 : 1);
                    if (order == SECOND) {
                        x[v] = load_each_second(at);
                    } else if (order == NEXT) {
                        x[v] = vectors > 1 ? _mm256_loadu_ps(at) : _mm256_maskload_ps(at, all);
                    } else if (tap == 0 && v == 0) {
                        x[v] = _mm256_maskload_ps(at - 1, left);
                    } else if (tap == 2 && v == vectors - 1) {
                        x[v] = _mm256_maskload_ps(at + 1, right);
                    } else {
                        x[v] = vectors > 1 ? _mm256_loadu_ps(at + tap - 1)
                                           : _mm256_maskload_ps(at + tap - 1, all);
                    }
                }
#pragma GCC unroll 8
                for (int i = 0; i < rows; i++) {
                    const __m256 weight = _mm256_broadcast_ss(a + i * a_row + tap);
#pragma GCC unroll 4
                    for (int v = 0; v < vectors; v++) {
                        sum[i][v] = _mm256_add_ps(sum[i][v], _mm256_mul_ps(weight, x[v]));
                    }
                }
            }
            a += order == PADDED ? 0 : 1;
            b += order == PADDED ? 0 : w->b_inner;
        } while (--inner != 0);
        const bool wraps = --middle == 0;
        if (wraps) {
            middle = w->middle;
        }
        b += wraps ? b_last : b_jump;
        a += wraps ? a_last : a_jump;
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        const __m256 add = _mm256_broadcast_ss(bias + i);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            float *to = out + i * (int64_t)p->out_row + v * LANES;
            const __m256 y = _mm256_add_ps(sum[i][v], add);
            if (vectors > 1 || order == SECOND) {
                _mm256_storeu_ps(to, y);
            } else {
                _mm256_maskstore_ps(to, all, y);
            }
        }
    }
}

#define PT_VECTOR_BLOCK(name, rows, vectors, order)                                              \
    static PT_TARGET void name(const pt_products *p, void *walk, const float *a, const float *b, \
                               const float *bias, float *out, uint32_t edges) {                  \
        sum_vectors_of(p, walk, a, b, bias, out, edges, rows, vectors, order);                   \
    }

PT_VECTOR_BLOCK(sum_4x16, 4, 2, NEXT)
PT_VECTOR_BLOCK(sum_8x8, 8, 1, NEXT)
PT_VECTOR_BLOCK(sum_4x8, 4, 1, NEXT)
PT_VECTOR_BLOCK(sum_1x32, 1, 4, NEXT)
PT_VECTOR_BLOCK(sum_1x8, 1, 1, NEXT)
PT_VECTOR_BLOCK(sum_8x8_second, 8, 1, SECOND)
PT_VECTOR_BLOCK(sum_4x8_second, 4, 1, SECOND)
PT_VECTOR_BLOCK(sum_1x8_second, 1, 1, SECOND)
PT_VECTOR_BLOCK(sum_4x16_padded, 4, 2, PADDED)
PT_VECTOR_BLOCK(sum_8x8_padded, 8, 1, PADDED)
PT_VECTOR_BLOCK(sum_4x8_padded, 4, 1, PADDED)

#undef PT_VECTOR_BLOCK
#undef PT_INLINE
#undef PT_TARGET

// One without a function where none is faster.
static pt_block pt_choose_vectors(const pt_products *p) {
    const int32_t length = p->columns.length, step = p->columns.b_step;
    const uint8_t some = (uint8_t)(length < LANES ? length : LANES);
    const bool four_rows = p->rows >= 4 && p->b_row == 0, eight_rows = p->rows >= 8;
    if (pt_vectors() != PT_VECTORS_AVX2 || length < 4 || p->columns.out_step != 1 ||
        !(step == 1 || (step == 2 && length >= LANES))) {
        return (pt_block){.sum = NULL};
    }
    if (p->padded) {
        return length >= 2 * LANES ? (pt_block){sum_4x16_padded, 4, 2 * LANES, true}
               : eight_rows        ? (pt_block){sum_8x8_padded, 8, some, true}
                                   : (pt_block){sum_4x8_padded, 4, some, true};
    }
    if (step == 2) {
        return !four_rows   ? (pt_block){sum_1x8_second, 1, LANES, false}
               : eight_rows ? (pt_block){sum_8x8_second, 8, LANES, false}
                            : (pt_block){sum_4x8_second, 4, LANES, false};
    }
    if (!four_rows) {
        return length >= 4 * LANES ? (pt_block){sum_1x32, 1, 4 * LANES, false}
                                   : (pt_block){sum_1x8, 1, some, false};
    }
    return length >= 2 * LANES ? (pt_block){sum_4x16, 4, 2 * LANES, false}
           : eight_rows        ? (pt_block){sum_8x8, 8, some, false}
                               : (pt_block){sum_4x8, 4, some, false};
}

#endif
#endif
