// float32 GEMM and convolution: the task (pt_products) and the walk over its taps, for the tiles of
// float_products_plain.h, host/float_products.h and mve/float_products.h. Called by
// portable/products.c. Every ISA gives the bits of float_products_plain.h: each output is summed in
// the order of its taps, product by product, each rounded.
#ifndef PT_ARCH_FLOAT_PRODUCTS_H
#define PT_ARCH_FLOAT_PRODUCTS_H

#include "arch/vectors.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Outputs of a line, or lines of outputs: their number, and the elements between neighbours.
typedef struct pt_line {
    int32_t length;
    int32_t b_step; // 0 if there is only one
    int32_t out_step;
} pt_line;

// out[i, j] = bias[i] + sum over taps t of a[i, t] * b[i, t, j], for rows i and positions j.
//
// The positions are a rectangle: `lines` of `columns`. A tap is a triple (outer, middle, inner);
// they are summed in that order, the inner index fastest, and the bias is added last. All offsets
// and steps count elements.
typedef struct pt_products {
    const void *a;
    const void *b;
    const void *bias; // one a row; NULL for none
    void *out;
    int32_t rows;
    int32_t a_row;
    int32_t b_row; // 0 if all rows share b: all but depthwise convolutions
    int32_t out_row;
    pt_line lines;
    pt_line columns;
    int32_t taps[3]; // how many; outermost first
    int32_t a_step[3];
    int32_t b_step[3];
    // Lines with three inner taps that are neighbours in b, as columns are in b and out: column j
    // sees b[j - 1], b[j] and b[j + 1], where b[-1] and b[length] are not read but count as 0.
    // Float32 only, at least 4 rows and columns.
    bool padded;
    bool to_float; // of float16 or bfloat16: out is float32
} pt_products;

// The walk of a block over the taps: all middle taps of all outer taps in turn. A jump moves from
// behind the last inner (or middle) tap to the first of the next.
typedef struct pt_tap_walk {
    int32_t count; // middle taps of all outer ones; 0 if there are no taps
    int32_t middle;
    int32_t inner;
    int32_t b_inner;
    int32_t a_jump;
    int32_t b_jump;
    int32_t a_wrap; // besides, at the end of the middle taps
    int32_t b_wrap;
} pt_tap_walk;

// `a`, `b` and `out` belong to the block's first output, `bias` to its first row; `walk` describes
// the taps, for most blocks as a pt_tap_walk.
typedef void pt_block_function(const pt_products *p, void *walk, const float *a, const float *b,
                               const float *bias, float *out, uint32_t edges);

// Flags of a block that begins or ends a padded line.
enum { PT_FIRST_COLUMN = 1, PT_LAST_COLUMN = 2 };

#if defined(PT_HAS_HOST_VECTORS)
enum { PT_MAX_ROWS = 8 }; // of a block
#else
enum { PT_MAX_ROWS = 4 };
#endif

typedef struct pt_block {
    pt_block_function *sum;
    uint8_t rows;
    uint8_t columns;
    bool whole; // the function loops over the inner taps
} pt_block;

// Makes the walk of a block: over all inner taps at once if `whole`, else one by one.
static inline pt_tap_walk pt_make_tap_walk(const pt_products *p, bool whole) {
    const int32_t inner = whole ? 0 : p->taps[2];
    return (pt_tap_walk){
        .count = p->taps[2] > 0 ? p->taps[0] * p->taps[1] : 0,
        .middle = p->taps[1],
        .inner = inner,
        .b_inner = p->b_step[2],
        .a_jump = p->a_step[1] - inner,
        .b_jump = p->b_step[1] - inner * p->b_step[2],
        .a_wrap = p->a_step[0] - p->taps[1] * p->a_step[1],
        .b_wrap = p->b_step[0] - p->taps[1] * p->b_step[1],
    };
}

// True for rows with separate b and few taps, whose weights fit into registers.
static inline bool pt_has_few_taps(const pt_products *p) {
    return (p->rows == 1 || p->b_row != 0) && p->taps[0] == 1 && p->b_step[2] == 1 &&
           (p->taps[1] == 2 || p->taps[1] == 3) && (p->taps[2] == 2 || p->taps[2] == 3);
}

#endif
