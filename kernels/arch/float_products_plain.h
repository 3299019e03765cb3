// float32 GEMM and convolution in plain C, the specification of all ISAs. Tiles (rows x columns):
// 4x4, 4x1, 1x8, 1x4 and 1x1, chosen by pt_choose_block; rows of their own with 2 or 3 by 2 or 3
// taps keep the weights in registers. On a core with an FPU the sums of a tile stay in registers.
// No packing, no scratch.
#ifndef PT_ARCH_FLOAT_PRODUCTS_PLAIN_H
#define PT_ARCH_FLOAT_PRODUCTS_PLAIN_H

#include "arch/float_products.h"

// Not inlined, so that each inner loop has all registers.
#define NOINLINE static __attribute__((noinline))

// Stores the sums of a block, with the bias of each row.
static inline __attribute__((always_inline)) void store_block(const pt_products *p, float sum[][8],
                                                              const float *bias, float *out,
                                                              const int rows, const int columns,
                                                              const int32_t out_column) {
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 8
        for (int j = 0; j < columns; j++) {
            out[j * out_column] = sum[i][j] + bias[i];
        }
        out += p->out_row;
    }
}

// A float32 block of ROWS x COLUMNS outputs keeps its sums in registers: with 4 x 4 a tap costs
// 8 loads for 16 products, which fits the 32 registers of a single-precision FPU. ROWS, COLUMNS and
// the flags are constants wherever this is inlined: `unit` if columns are neighbours in b and out,
// `three` if there are three inner taps, neighbours in b, that are all done at once.
static inline __attribute__((always_inline)) void
sum_block(const pt_products *p, const pt_tap_walk *w, const float *a_0, const float *b,
          const float *bias, float *out, const int rows, const int columns, const bool unit,
          const bool three) {
    const int unroll = three ? 3 : 1;
    const int32_t b_column = unit ? 1 : p->columns.b_step;
    const float *a[4] = {a_0, a_0 + p->a_row, a_0 + 2 * p->a_row, a_0 + 3 * p->a_row};
    float sum[4][8] = {{0}};
    const int32_t a_jump = w->a_jump, a_last = w->a_jump + w->a_wrap;
    const int32_t b_jump = w->b_jump, b_last = w->b_jump + w->b_wrap;
    int32_t middle = w->middle;

    for (int32_t n = w->count; n > 0; n--) {
        int32_t inner = three ? 1 : w->inner;
        do {
#pragma GCC unroll 3
            for (int tap = 0; tap < unroll; tap++) {
#pragma GCC unroll 4
                for (int i = 0; i < rows; i++) {
#pragma GCC unroll 8
                    for (int j = 0; j < columns; j++) {
                        sum[i][j] += a[i][tap] * b[j * b_column + tap];
                    }
                }
            }
#pragma GCC unroll 4
            for (int i = 0; i < rows; i++) {
                a[i] += three ? 0 : 1;
            }
            b += three ? 0 : w->b_inner;
        } while (--inner != 0);
        const bool wraps = --middle == 0;
        if (wraps) {
            middle = w->middle;
        }
        b += wraps ? b_last : b_jump;
        const int32_t a_step = wraps ? a_last : a_jump;
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++) {
            a[i] += a_step;
        }
    }
    store_block(p, sum, bias, out, rows, columns, unit ? 1 : p->columns.out_step);
}

// The block of 4 x 4 for padded lines. Its 4 columns share 6 elements of b.
NOINLINE void sum_4x4_padded(const pt_products *p, void *walk, const float *a_0, const float *b,
                             const float *bias, float *out, uint32_t edges) {
    const pt_tap_walk *w = walk;
    const bool first = (edges & PT_FIRST_COLUMN) != 0;
    const bool last = (edges & PT_LAST_COLUMN) != 0;
    const float *a[4] = {a_0, a_0 + p->a_row, a_0 + 2 * p->a_row, a_0 + 3 * p->a_row};
    float sum[4][8] = {{0}};
    const int32_t a_jump = w->a_jump, a_last = w->a_jump + w->a_wrap;
    const int32_t b_jump = w->b_jump, b_last = w->b_jump + w->b_wrap;
    int32_t middle = w->middle;

    for (int32_t n = w->count; n > 0; n--) {
        const float x[6] = {first ? 0 : b[-1], b[0], b[1], b[2], b[3], last ? 0 : b[4]};
#pragma GCC unroll 3
        for (int tap = 0; tap < 3; tap++) {
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
#pragma GCC unroll 4
                for (int j = 0; j < 4; j++) {
                    sum[i][j] += a[i][tap] * x[j + tap];
                }
            }
        }
        const bool wraps = --middle == 0;
        if (wraps) {
            middle = w->middle;
        }
        b += wraps ? b_last : b_jump;
        const int32_t a_step = wraps ? a_last : a_jump;
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            a[i] += a_step;
        }
    }
    store_block(p, sum, bias, out, 4, 4, 1);
}

#define BLOCK(name, rows, columns, unit, three)                                          \
    NOINLINE void name(const pt_products *p, void *walk, const float *a, const float *b, \
                       const float *bias, float *out, uint32_t edges) {                  \
        (void)edges;                                                                     \
        sum_block(p, walk, a, b, bias, out, rows, columns, unit, three);                 \
    }

BLOCK(sum_4x4_unit, 4, 4, true, false)
BLOCK(sum_4x4, 4, 4, false, false)
BLOCK(sum_4x4_three, 4, 4, false, true)
BLOCK(sum_4x1, 4, 1, true, false)
BLOCK(sum_1x8_unit, 1, 8, true, false)
BLOCK(sum_1x4, 1, 4, false, false)
BLOCK(sum_1x1, 1, 1, true, false)

static pt_block pt_choose_block(const pt_products *p) {
    const int32_t columns = p->columns.length;
    const bool unit = p->columns.b_step == 1 && p->columns.out_step == 1;
    if (p->padded) {
        return (pt_block){sum_4x4_padded, 4, 4, true};
    }
    const bool four_rows = p->rows >= 4 && p->b_row == 0;
    if (four_rows && columns >= 4) {
        if (p->taps[2] == 3 && p->b_step[2] == 1) {
            return (pt_block){sum_4x4_three, 4, 4, true};
        }
        return (pt_block){unit ? sum_4x4_unit : sum_4x4, 4, 4, false};
    }
    if (four_rows) {
        return (pt_block){sum_4x1, 4, 1, false};
    }
    if (columns >= 8 && unit) {
        return (pt_block){sum_1x8_unit, 1, 8, false};
    }
    if (columns >= 4) {
        return (pt_block){sum_1x4, 1, 4, false};
    }
    return (pt_block){sum_1x1, 1, 1, false};
}

// The block for single columns of at least four rows.
static const pt_block pt_column_block = {sum_4x1, 4, 1, false};

// ---- rows with few taps: the weights stay in registers

static inline __attribute__((always_inline)) void
sum_single_row(const pt_products *p, int32_t row, const int middle, const int inner) {
    const float *weights = (const float *)p->a + row * p->a_row;
    const float add = p->bias ? ((const float *)p->bias)[row] : 0;
    const pt_line columns = p->columns;
    float a[3][3];
#pragma GCC unroll 3
    for (int i = 0; i < middle; i++) {
#pragma GCC unroll 3
        for (int j = 0; j < inner; j++) {
            a[i][j] = weights[i * p->a_step[1] + j];
        }
    }
    for (int32_t line = 0; line < p->lines.length; line++) {
        const float *b_0 = (const float *)p->b + row * p->b_row + line * p->lines.b_step;
        const float *b_1 = b_0 + p->b_step[1];
        const float *b_2 = b_1 + p->b_step[1];
        float *out = (float *)p->out + row * p->out_row + line * p->lines.out_step;
        for (int32_t n = columns.length; n > 0; n--) {
            float sum = 0;
#pragma GCC unroll 3
            for (int j = 0; j < inner; j++) {
                sum += a[0][j] * b_0[j];
            }
#pragma GCC unroll 3
            for (int j = 0; j < inner; j++) {
                sum += a[1][j] * b_1[j];
            }
            if (middle == 3) {
#pragma GCC unroll 3
                for (int j = 0; j < inner; j++) {
                    sum += a[2][j] * b_2[j];
                }
                b_2 += columns.b_step;
            }
            *out = sum + add;
            b_0 += columns.b_step;
            b_1 += columns.b_step;
            out += columns.out_step;
        }
    }
}

static inline __attribute__((always_inline)) void sum_rows(const pt_products *p, const int middle,
                                                           const int inner) {
    for (int32_t row = 0; row < p->rows; row++) {
        sum_single_row(p, row, middle, inner);
    }
}

NOINLINE void pt_sum_few_taps(const pt_products *p) {
    if (p->taps[1] == 3) {
        if (p->taps[2] == 3) {
            sum_rows(p, 3, 3);
        } else {
            sum_rows(p, 3, 2);
        }
    } else if (p->taps[2] == 3) {
        sum_rows(p, 2, 3);
    } else {
        sum_rows(p, 2, 2);
    }
}

#endif
