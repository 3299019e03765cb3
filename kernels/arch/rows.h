// Products of a row with many rows, for instruction sets that have a way of their own for them: the
// inner loop of linear layers.
#ifndef PT_ARCH_ROWS_H
#define PT_ARCH_ROWS_H

#include "requantize.h"
#include <stdbool.h>

// y[j] = sum over k of (x[k] + x_offset) * (w[j][k] + w_offset) + addend[j], requantized.
typedef struct pt_product {
    int32_t rows, depth, outputs;
    int32_t x_offset, w_offset;
    const int32_t *addends; // NULL for none
    bool exact_addends;     // added as int64: the reference's int32 sums wrap around, not these
    int32_t multiplier, shift;
    pt_range range;
} pt_product;

// Bytes of scratch for a row, the same for all instruction sets.
enum { PT_MAX_ROW = 2048 }; // longer ones have none

static inline uint32_t pt_row_scratch(int32_t depth) {
    return depth <= PT_MAX_ROW ? 2 * (((uint32_t)depth + 3) & ~3u) : 0;
}

#if defined(__ARM_FEATURE_DSP)

// One row x. False, with nothing done, where it has to be computed otherwise, to the same bytes.
// `row_sum` is w_offset times the sum over k of x[k] + x_offset.
bool pt_multiply_row(const pt_product *p, const int8_t *x, int64_t row_sum, const int8_t *w,
                     int8_t *y, void *scratch);

#else

static inline bool pt_multiply_row(const pt_product *p, const int8_t *x, int64_t row_sum,
                                   const int8_t *w, int8_t *y, void *scratch) {
    (void)p, (void)x, (void)row_sum, (void)w, (void)y, (void)scratch;
    return false;
}

#endif

#endif
