// Common parts of the reductions: the dims, the resulting sizes, and the walk over the outputs.
#ifndef PT_PORTABLE_REDUCTION_H
#define PT_PORTABLE_REDUCTION_H

#include "portable/dtype_access.h"

// The elements that are reduced to one output element: `lines` rows of `n` elements `step` apart.
// The other reduced dims determine the starts of the rows.
typedef struct pt_reduction {
    pt_tensor in, out;
    pt_tensor indices; // second output of extrema
    int32_t lines, n, step;
    uint32_t rank;                                    // number of dims beside the dim of the rows
    int32_t sizes[PT_MAX_RANK], strides[PT_MAX_RANK]; // of these dims, outermost first
    double correction;                                // only for var
    bool min;                                         // only for extrema
    pt_context *c;
    int error; // error of a poll; values reduced since are void
} pt_reduction;

// Reduces the elements from offset `from` of the input to element `to` of the output and element
// `index_to` of the indices.
typedef void pt_reduce_one(pt_reduction *r, int32_t from, int32_t to, int32_t index_to);

// Reductions for floating or integral inputs and outputs, see reduce_sum.c.
pt_reduce_one pt_sum_one, pt_mean_one;

// Reads a list of dims to reduce as a set. None or an empty list stands for all dims.
PT_MUST_USE int pt_read_dims_or_all(pt_context *c, pt_ref arg, uint32_t rank, uint32_t *dims);
// Reads one dim to reduce as a set. None stands for all dims.
PT_MUST_USE int pt_read_dim_or_all(pt_context *c, pt_ref arg, uint32_t rank, uint32_t *dims);
// Expects an output of the sizes of `in` without `dims`, or with size 1 if dims are kept.
PT_MUST_USE int pt_expect_reduced(pt_context *c, const pt_tensor *in, uint32_t dims, bool keep,
                                  pt_ref out);
// Reduces r->in to r->out and, if r->indices has data, to r->indices, which has the same sizes.
PT_MUST_USE int pt_reduce(pt_context *c, pt_reduction *r, uint32_t dims, bool keep,
                          pt_reduce_one *one);
// Returns the offset of row `line` from the first row.
int32_t pt_line_start(const pt_reduction *r, int32_t line);

// Counts `n` elements; returns false if a poll failed.
static inline bool pt_reduces_on(pt_reduction *r, int32_t n) {
    r->error = pt_count_elements(r->c, n);
    return r->error == PT_ERROR_OK;
}

// A piece of row `line`: `n` elements, at most PT_PIECE. It starts at element `at` of the input,
// which is element `first` of the row.
typedef struct pt_piece {
    int32_t line, at, first, n;
} pt_piece;

// Moves to the next piece; the first call starts with {0}. Returns false behind the last piece, or
// if a poll failed. `from` is the offset of the first row.
bool pt_next_piece(pt_reduction *r, int32_t from, pt_piece *p);

#endif
