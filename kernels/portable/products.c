#include "products.h"
#include "element.h"

// A float32 block of ROWS x COLUMNS outputs keeps its sums in registers: with 4 x 4 a tap costs
// 8 loads for 16 products, which fits the 32 registers of a single-precision FPU. ROWS, COLUMNS and
// the flags are constants wherever this is inlined.
static inline __attribute__((always_inline)) void
sum_block(const pt_products *p, const float *a, const float *b, const float *bias, float *out,
          const int rows, const int columns, const bool unit_column) {
    const int32_t b_column = unit_column ? 1 : p->b_column;
    const int32_t a_row = p->a_row;
    const int32_t b_inner = p->b_step[2];
    const int32_t b_middle = p->b_step[1] - p->taps[2] * b_inner;
    const int32_t b_outer = p->b_step[0] - p->taps[1] * p->b_step[1];
    const int32_t a_middle = p->a_step[1] - p->taps[2];
    const int32_t a_outer = p->a_step[0] - p->taps[1] * p->a_step[1];
    float sum[4][8] = {{0}};

    for (int32_t outer = p->taps[0]; outer > 0; outer--) {
        for (int32_t middle = p->taps[1]; middle > 0; middle--) {
            for (int32_t inner = p->taps[2]; inner > 0; inner--) {
#pragma GCC unroll 4
                for (int i = 0; i < rows; i++) {
#pragma GCC unroll 8
                    for (int j = 0; j < columns; j++) {
                        sum[i][j] += a[i * a_row] * b[j * b_column];
                    }
                }
                a++;
                b += b_inner;
            }
            a += a_middle;
            b += b_middle;
        }
        a += a_outer;
        b += b_outer;
    }
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
        const float add = bias ? bias[i] : 0;
#pragma GCC unroll 8
        for (int j = 0; j < columns; j++) {
            out[i * p->out_row + j * p->out_column] = sum[i][j] + add;
        }
    }
}

typedef void block_function(const pt_products *p, const float *a, const float *b, const float *bias,
                            float *out);

#define BLOCK(name, rows, columns, unit_column)                                                 \
    static __attribute__((noinline)) void name(const pt_products *p, const float *a,            \
                                               const float *b, const float *bias, float *out) { \
        sum_block(p, a, b, bias, out, rows, columns, unit_column);                              \
    }

BLOCK(sum_4x4_unit, 4, 4, true)
BLOCK(sum_4x4, 4, 4, false)
BLOCK(sum_4x1, 4, 1, true)
BLOCK(sum_1x8_unit, 1, 8, true)
BLOCK(sum_1x4, 1, 4, false)
BLOCK(sum_1x1, 1, 1, true)

// The largest block for what is left of rows and columns.
typedef struct block {
    block_function *sum;
    uint8_t rows;
    uint8_t columns;
} block;

static block choose_block(const pt_products *p, int32_t rows, int32_t columns) {
    const bool unit = p->b_column == 1;
    if (rows >= 4) {
        return columns >= 4 ? (block){unit ? sum_4x4_unit : sum_4x4, 4, 4} : (block){sum_4x1, 4, 1};
    }
    if (columns >= 8 && unit) {
        return (block){sum_1x8_unit, 1, 8};
    }
    return columns >= 4 ? (block){sum_1x4, 1, 4} : (block){sum_1x1, 1, 1};
}

// Covers all outputs with blocks of one kind; the last ones overlap those before.
static void sum_floats(const pt_products *p, int32_t rows, int32_t columns) {
    const block k = choose_block(p, rows, columns);
    for (int32_t i = 0; i < rows; i += k.rows) {
        const int32_t row = i + k.rows <= rows ? i : rows - k.rows;
        const float *a = (const float *)p->a + row * p->a_row;
        const float *bias = p->bias ? (const float *)p->bias + row : NULL;
        float *out = (float *)p->out + row * p->out_row;
        for (int32_t j = 0; j < columns; j += k.columns) {
            const int32_t column = j + k.columns <= columns ? j : columns - k.columns;
            k.sum(p, a, (const float *)p->b + column * p->b_column, bias,
                  out + column * p->out_column);
        }
    }
}

// ---- any dtype, any steps

typedef union number {
    float f;
    double d;
    uint64_t u; // integers, modulo 2^64
} number;

static void add_product(number *sum, const void *a, int32_t i, const void *b, int32_t j,
                        uint8_t dtype) {
    if (dtype == PT_DTYPE_FLOAT) {
        sum->f += ((const float *)a)[i] * ((const float *)b)[j];
    } else if (dtype == PT_DTYPE_DOUBLE) {
        sum->d += ((const double *)a)[i] * ((const double *)b)[j];
    } else {
        sum->u += (uint64_t)pt_load_int(a, i, dtype) * (uint64_t)pt_load_int(b, j, dtype);
    }
}

static void store_sum(const number *sum, const void *bias, int32_t row, void *out, int32_t i,
                      uint8_t dtype) {
    if (dtype == PT_DTYPE_FLOAT) {
        ((float *)out)[i] = sum->f + (bias ? ((const float *)bias)[row] : 0);
    } else if (dtype == PT_DTYPE_DOUBLE) {
        ((double *)out)[i] = sum->d + (bias ? ((const double *)bias)[row] : 0);
    } else {
        const uint64_t add = bias ? (uint64_t)pt_load_int(bias, row, dtype) : 0;
        pt_store_int(out, i, dtype, (int64_t)(sum->u + add));
    }
}

static void sum_any(const pt_products *p, uint8_t dtype, int32_t row, int32_t column) {
    number sum = {0};
    if (dtype == PT_DTYPE_FLOAT) {
        sum.f = 0;
    } else if (dtype == PT_DTYPE_DOUBLE) {
        sum.d = 0;
    }
    for (int32_t outer = 0; outer < p->taps[0]; outer++) {
        for (int32_t middle = 0; middle < p->taps[1]; middle++) {
            int32_t a = row * p->a_row + outer * p->a_step[0] + middle * p->a_step[1];
            int32_t b = column * p->b_column + outer * p->b_step[0] + middle * p->b_step[1];
            for (int32_t inner = 0; inner < p->taps[2]; inner++) {
                add_product(&sum, p->a, a, p->b, b, dtype);
                a += p->a_step[2];
                b += p->b_step[2];
            }
        }
    }
    store_sum(&sum, p->bias, row, p->out, row * p->out_row + column * p->out_column, dtype);
}

void pt_sum_products(const pt_products *p, uint8_t dtype, int32_t rows, int32_t columns) {
    if (dtype == PT_DTYPE_FLOAT && p->a_step[2] == 1) {
        sum_floats(p, rows, columns);
        return;
    }
    for (int32_t i = 0; i < rows; i++) {
        for (int32_t j = 0; j < columns; j++) {
            sum_any(p, dtype, i, j);
        }
    }
}
