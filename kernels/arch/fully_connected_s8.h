// int8 fully connected layer, one input row by all rows of weights, requantized: the inner loop of
// quantized_linear and quantized_batch_matmul (cortex_m/linear.c, once a row). Loops: dsp/, mve/,
// fully_connected_s8_nonzero.c (v7m, v6m); where pt_multiply_row returns false, dot.h. Scratch:
// pt_row_scratch, none with MVE.
#ifndef PT_ARCH_FULLY_CONNECTED_S8_H
#define PT_ARCH_FULLY_CONNECTED_S8_H

#include "arch/requantize.h"
#include <picotorch/config.h>
#include <stdbool.h>

// y[j] = sum over k of (x[k] + x_offset) * (w[j][k] + w_offset) + addend[j], requantized.
typedef struct pt_linear {
    int32_t rows, depth, outputs;
    int32_t out_step; // outputs from a row to the next
    int32_t x_offset, w_offset;
    const int32_t *addends; // NULL for none
    bool exact_addends;     // added as int64, without the wraparound of the reference's int32
    bool small_addends;     // true: a check found pt_addends_are_small; false: unknown
    int32_t multiplier, shift;
    pt_range range;
    const void *packed; // by pt_pack_rows, or NULL
} pt_linear;

// Scratch, equal for all ISAs: of a whole row two bytes a value, of a part eight bytes a value and
// the sums of the outputs.
enum {
    PT_MAX_ROW = 2048, // longer rows are divided into parts
    PT_ROW_PART = 256,
};

// PT_FOLDS_OFFSET: rows without x_offset are faster, which then is in the addends, times the sums
// of weights.
#if defined(__ARM_FEATURE_MVE)
enum { PT_ROWS_NEED_SCRATCH = 0, PT_FOLDS_OFFSET = 1 };
#else
enum { PT_ROWS_NEED_SCRATCH = 1, PT_FOLDS_OFFSET = 0 };
#endif

#if defined(__ARM_FEATURE_MVE)
#include "arch/mve/sum.h"
#else
static inline int32_t pt_sum_bytes(const int8_t *bytes, int32_t n) {
    int32_t sum = 0;
    for (const int8_t *end = bytes + n; bytes != end;) {
        sum += *bytes++;
    }
    return sum;
}
#endif

static inline int32_t pt_row_part(int32_t depth) {
    return depth < PT_ROW_PART ? depth : PT_ROW_PART;
}

static inline uint32_t pt_row_scratch(int32_t depth, int32_t outputs) {
    uint32_t whole = depth <= PT_MAX_ROW ? 2 * (((uint32_t)depth + 3) & ~3u) : 0;
    uint32_t parts = 8 * (((uint32_t)pt_row_part(depth) + 3) & ~3u) + 4 * (uint32_t)outputs;
    return whole > parts ? whole : parts;
}

static inline bool pt_addends_are_small(const pt_linear *p) {
    uint32_t limits = 0; // bits that stay clear if all addends are small
    for (int32_t j = 0; p->addends && j < p->outputs; j++) {
        limits |= (uint32_t)p->addends[j] + PT_BIAS_LIMIT;
    }
    return limits < 2 * PT_BIAS_LIMIT;
}

// True if pt_scale covers all sums of these rows, for any values.
static inline bool pt_rows_are_fast(const pt_linear *p) {
    return p->depth % 4 == 0 && p->depth > 0 && p->depth <= PT_MAX_ROW &&
           pt_scales_fast(p->multiplier, p->shift) && (p->small_addends || pt_addends_are_small(p));
}

enum { PT_ROWS_BEHIND = 12 }; // bytes that loops may read behind packed rows

// Returns the number of rows that pt_pack_rows packs, a multiple of 4.
static inline int32_t pt_packed_outputs(int32_t outputs) {
    return outputs & ~3;
}

// Returns the bytes that it writes, two a weight; 0 if packing does not help.
static inline uint32_t pt_packed_rows(int32_t depth, int32_t outputs) {
    bool useful = depth > 0 && depth % 4 == 0 && depth <= PT_MAX_ROW && outputs > 3 &&
                  outputs < (1 << 24) / PT_MAX_ROW;
    return useful ? 2 * (uint32_t)depth * (uint32_t)pt_packed_outputs(outputs) + PT_ROWS_BEHIND : 0;
}

#if defined(PT_LOOPS_DSP) || defined(PT_LOOPS_V7M) || defined(PT_LOOPS_V6M) || PT_HAS_ANY_CORE

// Multiplies one row x. Returns false, with nothing done, if the loop does not cover it; dot.h
// gives the same bytes. `row_sum` is w_offset times the sum over k of x[k] + x_offset. Scratch:
// pt_row_scratch bytes if PT_ROWS_NEED_SCRATCH.
bool pt_multiply_row(const pt_linear *p, const int8_t *x, int64_t row_sum, const int8_t *w,
                     int8_t *y, void *scratch);

#else

static inline bool pt_multiply_row(const pt_linear *p, const int8_t *x, int64_t row_sum,
                                   const int8_t *w, int8_t *y, void *scratch) {
    (void)p, (void)x, (void)row_sum, (void)w, (void)y, (void)scratch;
    return false;
}

#endif

#endif
