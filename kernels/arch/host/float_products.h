// float32 GEMM and convolution with the host's vectors (AVX2, NEON). A lane is an output. Tiles
// (rows x vectors): 4 x WIDE, 8x1, 4x1, 1x4 and 1x1; pt_choose_vectors selects one by rows and line
// length. Sums are in the order of float_products_plain.h, by multiplication and addition, which
// round as scalars do. No packing, no scratch.
#ifndef PT_ARCH_HOST_FLOAT_PRODUCTS_H
#define PT_ARCH_HOST_FLOAT_PRODUCTS_H

#include "arch/float_products.h"

#if defined(PT_HAS_HOST_VECTORS)
#include "arch/host/float_lanes.h"

// Order of lanes in b: adjacent; every second element; or adjacent in padded lines, see
// pt_products.padded.
typedef enum pt_lane_order { NEXT, SECOND, PADDED } pt_lane_order;

// Computes `rows` x `vectors` of lanes, or the lanes of a line that is shorter than a vector.
PT_INLINE void sum_vectors_of(const pt_products *p, const pt_tap_walk *w, const float *a,
                              const float *b, const float *bias, float *out, uint32_t edges,
                              const int rows, const int vectors, const pt_lane_order order) {
    const pt_line_part part = {p->columns.length < LANES ? p->columns.length : LANES,
                               (edges & PT_FIRST_COLUMN) != 0, (edges & PT_LAST_COLUMN) != 0};
    const line_masks masks = masks_of(&part);
    const int taps = order == PADDED ? 3 : 1;
    const int32_t a_jump = w->a_jump, a_last = w->a_jump + w->a_wrap;
    const int32_t b_jump = w->b_jump, b_last = w->b_jump + w->b_wrap;
    const int64_t a_row = p->a_row;
    int32_t middle = w->middle;
    lanes sum[8][4];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            sum[i][v] = zero_lanes();
        }
    }
    for (int32_t k = w->count; k > 0; k--) {
        int32_t inner = order == PADDED ? 1 : w->inner;
        do {
#pragma GCC unroll 3
            for (int tap = 0; tap < taps; tap++) {
                lanes x[4];
#pragma GCC unroll 4
                for (int v = 0; v < vectors; v++) {
                    const float *at = b + v * LANES * (order == SECOND ? 2 : 1);
                    if (order == SECOND) {
                        x[v] = load_each_second(at);
                    } else if (order == NEXT) {
                        x[v] = vectors > 1 ? load_lanes(at) : load_part(at, &masks);
                    } else if (tap == 0 && v == 0) {
                        x[v] = load_before(at, &masks);
                    } else if (tap == 2 && v == vectors - 1) {
                        x[v] = load_behind(at, &masks);
                    } else {
                        x[v] = vectors > 1 ? load_lanes(at + tap - 1)
                                           : load_part(at + tap - 1, &masks);
                    }
                }
#pragma GCC unroll 8
                for (int i = 0; i < rows; i++) {
                    const lanes weight = all_lanes(a + i * a_row + tap);
#pragma GCC unroll 4
                    for (int v = 0; v < vectors; v++) {
                        sum[i][v] = add_lanes(sum[i][v], multiply_lanes(weight, x[v]));
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
        const lanes add = all_lanes(bias + i);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) {
            float *to = out + i * (int64_t)p->out_row + v * LANES;
            const lanes y = add_lanes(sum[i][v], add);
            if (vectors > 1 || order == SECOND) {
                store_lanes(to, y);
            } else {
                store_part(to, &masks, y);
            }
        }
    }
}

#define PT_VECTOR_BLOCK(name, rows, vectors, order)                                              \
    static PT_TARGET void name(const pt_products *p, void *walk, const float *a, const float *b, \
                               const float *bias, float *out, uint32_t edges) {                  \
        sum_vectors_of(p, walk, a, b, bias, out, edges, rows, vectors, order);                   \
    }

PT_VECTOR_BLOCK(sum_4_wide, 4, WIDE, NEXT)
PT_VECTOR_BLOCK(sum_8, 8, 1, NEXT)
PT_VECTOR_BLOCK(sum_4, 4, 1, NEXT)
PT_VECTOR_BLOCK(sum_1_wide, 1, 4, NEXT)
PT_VECTOR_BLOCK(sum_1, 1, 1, NEXT)
PT_VECTOR_BLOCK(sum_8_second, 8, 1, SECOND)
PT_VECTOR_BLOCK(sum_4_second, 4, 1, SECOND)
PT_VECTOR_BLOCK(sum_1_second, 1, 1, SECOND)
PT_VECTOR_BLOCK(sum_4_wide_padded, 4, WIDE, PADDED)
PT_VECTOR_BLOCK(sum_8_padded, 8, 1, PADDED)
PT_VECTOR_BLOCK(sum_4_padded, 4, 1, PADDED)

#undef PT_VECTOR_BLOCK
#undef PT_INLINE
#undef PT_TARGET

// Selects a block; its function is NULL if no vector block is faster.
static pt_block pt_choose_vectors(const pt_products *p) {
    const int32_t length = p->columns.length, step = p->columns.b_step;
    const uint8_t some = (uint8_t)(length < LANES ? length : LANES);
    const bool four_rows = p->rows >= 4 && p->b_row == 0, eight_rows = p->rows >= 8;
    if (pt_vectors() < (int)FLOAT_KIND || length < 4 || p->columns.out_step != 1 ||
        !(step == 1 || (step == 2 && length >= LANES))) {
        return (pt_block){.sum = NULL};
    }
    if (p->padded) {
        return length >= WIDE * LANES ? (pt_block){sum_4_wide_padded, 4, WIDE * LANES, true}
               : eight_rows           ? (pt_block){sum_8_padded, 8, some, true}
                                      : (pt_block){sum_4_padded, 4, some, true};
    }
    if (step == 2) {
        return !four_rows   ? (pt_block){sum_1_second, 1, LANES, false}
               : eight_rows ? (pt_block){sum_8_second, 8, LANES, false}
                            : (pt_block){sum_4_second, 4, LANES, false};
    }
    if (!four_rows) {
        return length >= 4 * LANES ? (pt_block){sum_1_wide, 1, 4 * LANES, false}
                                   : (pt_block){sum_1, 1, some, false};
    }
    return length >= WIDE * LANES ? (pt_block){sum_4_wide, 4, WIDE * LANES, false}
           : eight_rows           ? (pt_block){sum_8, 8, some, false}
                                  : (pt_block){sum_4, 4, some, false};
}

#endif
#endif
