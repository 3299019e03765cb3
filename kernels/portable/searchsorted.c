// Searches for elements: isin, searchsorted, bucketize.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/dtype_access.h"

// Returns element i of t in the promoted floating dtype.
static double load_promoted(const pt_tensor *t, int32_t i, uint8_t dtype) {
    uint64_t element;
    pt_convert_element(&element, 0, dtype, t->data, i, t->dtype);
    return pt_load_double(&element, 0, dtype);
}

// Compares element i of a with element j of b. Both are promoted to `dtype`.
static bool compares(uint8_t dtype, const pt_tensor *a, int32_t i, const pt_tensor *b, int32_t j,
                     bool greater, bool equal) {
    if (pt_is_floating(dtype)) {
        const double x = load_promoted(a, i, dtype), y = load_promoted(b, j, dtype);
        return (greater && x > y) || (equal && x == y);
    }
    const int64_t x = pt_load_int(a->data, i, a->dtype), y = pt_load_int(b->data, j, b->dtype);
    return (greater && x > y) || (equal && x == y);
}

static int check_compared(pt_context *c, const pt_tensor *a, const pt_tensor *b) {
    return pt_dtype_in(a->dtype, PT_DTYPES_ALL) && pt_dtype_in(b->dtype, PT_DTYPES_ALL)
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_NOT_SUPPORTED, "elements of this dtype are not compared");
}

// ---- isin: (elements, test_elements, assume_unique, invert, out)

static int check_isin(pt_context *c, const pt_ref *args) {
    pt_tensor elements = pt_get_tensor(c, args[ISIN_TENSOR_TENSOR_ELEMENTS]);
    pt_tensor among = pt_get_tensor(c, args[ISIN_TENSOR_TENSOR_TEST_ELEMENTS]);
    PT_TRY(check_compared(c, &elements, &among));
    if (pt_get_tensor(c, args[ISIN_TENSOR_TENSOR_OUT]).dtype != PT_DTYPE_BOOL) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output must be bool");
    }
    return pt_expect_sizes(c, args[ISIN_TENSOR_TENSOR_OUT], elements.rank, elements.sizes);
}

static int run_isin(pt_context *c, const pt_ref *args) {
    pt_tensor elements = pt_get_tensor(c, args[ISIN_TENSOR_TENSOR_ELEMENTS]);
    pt_tensor among = pt_get_tensor(c, args[ISIN_TENSOR_TENSOR_TEST_ELEMENTS]);
    pt_tensor out = pt_get_tensor(c, args[ISIN_TENSOR_TENSOR_OUT]);
    const bool inverts = pt_get_bool(c, args[ISIN_TENSOR_TENSOR_INVERT]);
    const int32_t n = pt_numel(&among);
    const uint8_t dtype = pt_promote(elements.dtype, among.dtype);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    pt_walk w;
    const pt_tensor *const tensors[] = {&out, &elements};
    pt_walk_tensors(&w, 2, tensors);
    do {
        for (int32_t i = 0; i < w.n; i++) {
            const int32_t at = w.offset[1] + i * w.strides[1][0];
            bool found = false;
            for (int32_t j = 0; j < n && !found; j++) {
                PT_TRY(pt_count_elements(c, 1));
                found = compares(dtype, &elements, at, &among, j, false, true);
            }
            ((uint8_t *)out.data)[w.offset[0] + i * w.strides[0][0]] = found != inverts;
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

const pt_kernel pt_aten_isin_Tensor_Tensor_out = PT_KERNEL(check_isin, run_isin);

// ---- searchsorted: (sorted_sequence, self, out_int32, right, side, sorter, out)

static const char left_side[] = "left", right_side[] = "right";

static bool is_right(const pt_context *c, const pt_ref *args) {
    pt_ref side = args[SEARCHSORTED_TENSOR_SIDE];
    return pt_is_none(side) ? pt_get_bool(c, args[SEARCHSORTED_TENSOR_RIGHT])
                            : pt_string_is(c, side, right_side);
}

static int check_search(pt_context *c, pt_ref sequence, pt_ref values, pt_ref narrow, pt_ref to) {
    pt_tensor sorted = pt_get_tensor(c, sequence), self = pt_get_tensor(c, values);
    PT_TRY(check_compared(c, &sorted, &self));
    bool fits = sorted.rank == 1 || (sorted.rank > 0 && sorted.rank == self.rank);
    for (uint32_t d = 0; fits && sorted.rank > 1 && d + 1 < sorted.rank; d++) {
        fits = sorted.sizes[d] == self.sizes[d];
    }
    if (!fits) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "the sorted sequence has neither one dim nor the leading sizes of self");
    }
    if (pt_get_tensor(c, to).dtype != (pt_get_bool(c, narrow) ? PT_DTYPE_INT : PT_DTYPE_LONG)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output must be int64, or int32 as asked");
    }
    return pt_expect_sizes(c, to, self.rank, self.sizes);
}

static int check_searchsorted(pt_context *c, const pt_ref *args) {
    pt_ref side = args[SEARCHSORTED_TENSOR_SIDE];
    if (!pt_is_none(args[SEARCHSORTED_TENSOR_SORTER])) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "a sorter is not supported: sort the sequence");
    }
    if (!pt_is_none(side) && !pt_string_is(c, side, right_side) &&
        (!pt_string_is(c, side, left_side) || pt_get_bool(c, args[SEARCHSORTED_TENSOR_RIGHT]))) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "side is not left or right, or contradicts right");
    }
    return check_search(c, args[SEARCHSORTED_TENSOR_SORTED_SEQUENCE],
                        args[SEARCHSORTED_TENSOR_SELF], args[SEARCHSORTED_TENSOR_OUT_INT32],
                        args[SEARCHSORTED_TENSOR_OUT]);
}

// Returns the first position at which element `at` of self can be inserted among `n` sorted
// elements; the last position if `right`. The sorted elements start at `first` and are `step`
// apart.
static int32_t find_position(const pt_tensor *sorted, int32_t first, int32_t step, int32_t n,
                             const pt_tensor *self, int32_t at, bool right) {
    const uint8_t dtype = pt_promote(sorted->dtype, self->dtype);
    int32_t low = 0, high = n;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2, there = first + middle * step;
        if (compares(dtype, sorted, there, self, at, true, !right)) {
            high = middle;
        } else { // also for a NaN, as in PyTorch
            low = middle + 1;
        }
    }
    return low;
}

static int searchsorted_search(pt_context *c, pt_ref sequence, pt_ref values, pt_ref to,
                               bool right) {
    pt_tensor sorted = pt_get_tensor(c, sequence);
    pt_tensor self = pt_get_tensor(c, values);
    pt_tensor out = pt_get_tensor(c, to);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    int32_t strides[PT_MAX_RANK];
    pt_strides(&sorted, strides);
    const int32_t n = sorted.sizes[sorted.rank - 1], step = strides[sorted.rank - 1];
    pt_walk w;
    w.rank = self.rank;
    w.operands = 3;
    pt_strides(&out, w.strides[0]);
    pt_strides(&self, w.strides[1]);
    for (uint32_t d = 0; d < self.rank; d++) {
        w.sizes[d] = self.sizes[d];
        w.strides[2][d] = sorted.rank > 1 && d + 1 < self.rank ? strides[d] : 0;
    }
    w.offset[0] = w.offset[1] = w.offset[2] = 0;
    pt_walk_start(&w);
    do {
        for (int32_t i = 0; i < w.n; i++) {
            PT_TRY(pt_count_elements(c, 32)); // one step for each comparison
            const int32_t position =
                find_position(&sorted, w.offset[2] + i * w.strides[2][0], step, n, &self,
                              w.offset[1] + i * w.strides[1][0], right);
            pt_store_int(out.data, w.offset[0] + i * w.strides[0][0], out.dtype, position);
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

static int run_searchsorted(pt_context *c, const pt_ref *args) {
    return searchsorted_search(c, args[SEARCHSORTED_TENSOR_SORTED_SEQUENCE],
                               args[SEARCHSORTED_TENSOR_SELF], args[SEARCHSORTED_TENSOR_OUT],
                               is_right(c, args));
}

const pt_kernel pt_aten_searchsorted_Tensor_out = PT_KERNEL(check_searchsorted, run_searchsorted);

// ---- bucketize: (self, boundaries, out_int32, right, out)

static int check_bucketize(pt_context *c, const pt_ref *args) {
    const pt_tensor boundaries = pt_get_tensor(c, args[BUCKETIZE_TENSOR_BOUNDARIES]);
    if (boundaries.rank != 1) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "boundaries must have 1 dim");
    }
    return check_search(c, args[BUCKETIZE_TENSOR_BOUNDARIES], args[BUCKETIZE_TENSOR_SELF],
                        args[BUCKETIZE_TENSOR_OUT_INT32], args[BUCKETIZE_TENSOR_OUT]);
}

static int run_bucketize(pt_context *c, const pt_ref *args) {
    return searchsorted_search(c, args[BUCKETIZE_TENSOR_BOUNDARIES], args[BUCKETIZE_TENSOR_SELF],
                               args[BUCKETIZE_TENSOR_OUT],
                               pt_get_bool(c, args[BUCKETIZE_TENSOR_RIGHT]));
}

const pt_kernel pt_aten_bucketize_Tensor_out = PT_KERNEL(check_bucketize, run_bucketize);
