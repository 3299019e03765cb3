// Sums of products: the inner part of convolutions and matrix products.
#ifndef PT_PORTABLE_PRODUCTS_H
#define PT_PORTABLE_PRODUCTS_H

#include "../core/core.h"

// Outputs in a line, or lines of outputs: how many, and the elements between neighbours.
typedef struct pt_line {
    int32_t length;
    int32_t b_step; // 0 if there is only one
    int32_t out_step;
} pt_line;

// out[i, j] = bias[i] + sum over taps t of a[i, t] * b[t, j], for rows i and places j.
//
// The places are a rectangle: `lines` of `columns`. A tap is a triple (outer, middle, inner); they
// are summed in that order, the inner index fastest, and the bias is added last. All offsets and
// steps count elements.
typedef struct pt_products {
    const void *a;
    const void *b;
    const void *bias; // one a row; NULL for none
    void *out;
    int32_t rows;
    int32_t a_row;
    int32_t out_row;
    pt_line lines;
    pt_line columns;
    int32_t taps[3]; // how many; outermost first
    int32_t a_step[3];
    int32_t b_step[3];
    // Of each line, with three inner taps that are neighbours in b, as columns are in b and out:
    // column j sees b[j - 1], b[j] and b[j + 1], where b[-1] and b[length] are not read but count
    // as 0. Float32 only, at least 4 rows and columns.
    bool padded;
} pt_products;

// The dtypes that pt_sum_products takes: all real ones. Integers wrap as PyTorch's do.
static inline bool pt_can_sum_products(uint8_t dtype) {
    return dtype == PT_DTYPE_FLOAT || dtype == PT_DTYPE_DOUBLE || dtype <= PT_DTYPE_LONG;
}

// a, b, bias and out are all of `dtype`; `out` overlaps none of the others. An output may be
// written more than once, always with the same value.
void pt_sum_products(const pt_products *p, uint8_t dtype);

#endif
