// int8 fully connected layer for ARMv7-M and ARMv6-M, which multiply one value at a time: skips the
// inputs that are zero with their offset, as half of the outputs of a ReLU are. Block: 1 value x 4
// outputs; up to PT_ROW_PART values are listed at a time. Packing: a list of (value, k). Scratch:
// the list and an int32 sum for each output.
#include "arch/fully_connected_s8.h"

#if defined(PT_LOOPS_V7M) || defined(PT_LOOPS_V6M)
#include "arch/offsets.h"
#include "arch/scale.h"
#include <string.h>

typedef struct pt_value_at {
    int32_t value; // offset added
    int32_t k;
} pt_value_at;

PT_OFFSET(pt_value_at, value, 0);
PT_OFFSET(pt_value_at, k, 4);
PT_SIZE(pt_value_at, 8);

#if defined(PT_LOOPS_V7M)
#include "arch/v7m/fully_connected_s8.inc"
#else
#include "arch/v6m/fully_connected_s8.inc"
#endif

// Lists the nonzero ones of n values of x, filled up with zeros to a multiple of 4.
static int32_t list_values(const int8_t *x, int32_t offset, int32_t n, pt_value_at *list) {
    pt_value_at *to = list;
    for (int32_t k = 0; k < n; k++) {
        int32_t value = x[k] + offset;
        if (value) {
            *to++ = (pt_value_at){value, k};
        }
    }
    while ((to - list) & 3) {
        *to++ = (pt_value_at){0, 0};
    }
    return (int32_t)(to - list);
}

static bool scales_fast(const pt_linear *p, int64_t row_sum) {
    int32_t limit = PT_BIAS_LIMIT / 2;
    bool fast = p->depth <= PT_MAX_PRODUCTS && p->range.min == INT8_MIN && p->range.max == INT8_MAX;
    fast = fast && pt_scales_fast(p->multiplier, p->shift) && row_sum < limit && row_sum > -limit;
    for (int32_t j = 0; fast && p->addends && j < p->outputs; j++) {
        fast = p->addends[j] < limit && p->addends[j] > -limit;
    }
    return fast;
}

// Adds products of the listed values with four rows of weights at a time. Missing rows of the last
// four are replaced by the first of them.
static void fc_nonzero_add_products(const pt_linear *p, const pt_value_at *list, int32_t count,
                                    const int8_t *w, int32_t *sums) {
    int32_t left = p->outputs, rest[4];
    for (; left >= 4; left -= 4, w += 4 * p->depth, sums += 4) {
        pt_add_values(list, count, w, p->depth, 2 * p->depth, 3 * p->depth, sums);
    }
    if (left > 0) {
        memcpy(rest, sums, (uint32_t)left * sizeof *sums);
        pt_add_values(list, count, w, left > 1 ? p->depth : 0, left > 2 ? 2 * p->depth : 0, 0,
                      rest);
        memcpy(sums, rest, (uint32_t)left * sizeof *sums);
    }
}

bool pt_multiply_row(const pt_linear *p, const int8_t *x, int64_t row_sum, const int8_t *w,
                     int8_t *y, void *scratch) {
    pt_value_at *list = scratch;
    int32_t *sums = (int32_t *)(list + ((pt_row_part(p->depth) + 3) & ~3));
    if (!scales_fast(p, row_sum)) {
        return false;
    }
    for (int32_t j = 0; j < p->outputs; j++) {
        sums[j] = (int32_t)row_sum + (p->addends ? p->addends[j] : 0);
    }
    for (int32_t k = 0, part; k < p->depth; k += part) {
        part = pt_row_part(p->depth - k);
        fc_nonzero_add_products(p, list, list_values(x + k, p->x_offset, part, list), w + k, sums);
    }
    int32_t multiplier = p->multiplier, right = -p->shift;
    int32_t rounding = pt_rounding(p->shift, p->range.offset);
    for (const int32_t *end = sums + p->outputs; sums != end;) {
        int32_t scaled = pt_scale(2 * *sums++, multiplier, right, rounding);
        *y++ = (int8_t)pt_saturate_int8(scaled);
    }
    return true;
}

#endif
