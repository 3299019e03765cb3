// Sums of products: the inner part of convolutions and matrix products.
#ifndef PT_PORTABLE_PRODUCTS_H
#define PT_PORTABLE_PRODUCTS_H

#include "../core/core.h"

// out[i, j] = bias[i] + sum over taps t of a[i, t] * b[t, j], for rows i and columns j.
//
// A tap is a triple (outer, middle, inner), summed in that order with the inner index fastest, and
// the bias is added last. All offsets and steps count elements. Columns step by `b_column` in b and
// by `out_column` in out; rows step by `a_row` in a and by `out_row` in out.
typedef struct pt_products {
    const void *a;
    const void *b;
    const void *bias; // one a row; NULL for none
    void *out;
    int32_t a_row;
    int32_t b_column;
    int32_t out_row;
    int32_t out_column;
    int32_t taps[3]; // how many; outermost first
    int32_t a_step[3];
    int32_t b_step[3];
} pt_products;

// The dtypes that pt_sum_products takes: all real ones. Integers wrap as PyTorch's do.
static inline bool pt_can_sum_products(uint8_t dtype) {
    return dtype == PT_DTYPE_FLOAT || dtype == PT_DTYPE_DOUBLE || dtype <= PT_DTYPE_LONG;
}

// Computes `rows` times `columns` outputs; a, b, bias and out are all of `dtype`. `out` overlaps
// none of the others. An output may be written more than once, always with the same value.
void pt_sum_products(const pt_products *p, uint8_t dtype, int32_t rows, int32_t columns);

#endif
