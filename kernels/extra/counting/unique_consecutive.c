// unique_consecutive: (self, return_inverse, return_counts, dim, out, inverse, counts): selects the
// slices along the dim, or the elements if dim is None, that differ from the slice before. With a
// dim, inverse and counts are always written. Without a dim, an output that is not requested has no
// elements. The run sets the outputs' sizes.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/compare.h"
#include "portable/reduction.h"
#include <string.h>

typedef struct runs {
    pt_tensor self;
    pt_lanes lanes;
    int32_t groups;
    void *out;                 // NULL: counts only
    int64_t *inverse, *counts; // NULL: not requested
} runs;

static int check_runs(pt_context *c, const pt_ref *args) {
    const pt_tensor self = pt_get_tensor(c, args[UNIQUE_CONSECUTIVE_SELF]);
    const pt_tensor out = pt_get_tensor(c, args[UNIQUE_CONSECUTIVE_OUT0]);
    const pt_ref to = args[UNIQUE_CONSECUTIVE_OUT1];
    const int32_t none = 0;
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    if (!pt_dtype_in(self.dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "elements of this dtype are not compared");
    }
    if (!(self.flags & out.flags & PT_VALUE_CONTIGUOUS)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "input and output must be contiguous");
    }
    if (pt_get_tensor(c, to).dtype != PT_DTYPE_LONG ||
        pt_get_tensor(c, args[UNIQUE_CONSECUTIVE_OUT2]).dtype != PT_DTYPE_LONG) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "inverse and counts must be int64");
    }
    if (!pt_is_none(args[UNIQUE_CONSECUTIVE_DIM])) {
        uint32_t dim;
        PT_TRY(pt_read_dim(c, pt_get_int(c, args[UNIQUE_CONSECUTIVE_DIM]), self.rank, &dim));
        if (self.rank == 0 || out.rank != self.rank) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output has another rank");
        }
        return pt_expect_sizes(c, to, 1, &self.sizes[dim]);
    }
    if (out.rank != 1) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output must have 1 dim");
    }
    if (!pt_get_bool(c, args[UNIQUE_CONSECUTIVE_RETURN_COUNTS])) {
        PT_TRY(pt_expect_sizes(c, args[UNIQUE_CONSECUTIVE_OUT2], 1, &none));
    }
    const bool inverts = pt_get_bool(c, args[UNIQUE_CONSECUTIVE_RETURN_INVERSE]);
    PT_TRY(pt_expect_sizes(c, to, inverts ? self.rank : 1, inverts ? self.sizes : &none));
    return pt_get_tensor(c, to).flags & PT_VALUE_CONTIGUOUS
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the inverse must be contiguous");
}

static int compare_slices(pt_context *c, const runs *r, int32_t i, int32_t j, bool *differ) {
    const pt_lanes *l = &r->lanes;
    for (int32_t o = 0; o < l->outer && !*differ; o++) {
        const int32_t start = o * l->size * l->inner;
        for (int32_t k = start; k < start + l->inner && !*differ; k++) {
            PT_TRY(pt_count_elements(c, 1));
            *differ = !pt_are_equal(&r->self, k + i * l->inner, k + j * l->inner);
        }
    }
    return PT_ERROR_OK;
}

static int copy_slice(pt_context *c, const runs *r, int32_t to, int32_t from) {
    const pt_lanes *l = &r->lanes;
    for (int32_t o = 0; o < l->outer; o++) {
        const int32_t at = (o * r->groups + to) * l->inner, of = (o * l->size + from) * l->inner;
        for (int32_t k = 0; k < l->inner; k++) {
            PT_TRY(pt_count_elements(c, 1));
            pt_convert_element(r->out, at + k, r->self.dtype, r->self.data, of + k, r->self.dtype);
        }
    }
    return PT_ERROR_OK;
}

static int find_runs(pt_context *c, const runs *r, int32_t *groups) {
    *groups = 0;
    for (int32_t i = 0; i < r->lanes.size; i++) {
        bool differ = i == 0;
        PT_TRY(compare_slices(c, r, i - 1, i, &differ));
        PT_TRY(pt_count_work(c, 1));
        if (differ && r->out) {
            PT_TRY(copy_slice(c, r, *groups, i));
        }
        *groups += differ;
        if (r->counts) {
            r->counts[*groups - 1] = differ ? 1 : r->counts[*groups - 1] + 1;
        }
        if (r->inverse) {
            r->inverse[i] = *groups - 1;
        }
    }
    return PT_ERROR_OK;
}

static int run_runs(pt_context *c, const pt_ref *args) {
    const bool flat = pt_is_none(args[UNIQUE_CONSECUTIVE_DIM]);
    const bool inverts = !flat || pt_get_bool(c, args[UNIQUE_CONSECUTIVE_RETURN_INVERSE]);
    const bool counts = !flat || pt_get_bool(c, args[UNIQUE_CONSECUTIVE_RETURN_COUNTS]);
    runs r = {.self = pt_get_tensor(c, args[UNIQUE_CONSECUTIVE_SELF])};
    int32_t sizes[PT_MAX_RANK];
    uint32_t dim = 0, rank = 1;
    r.lanes = (pt_lanes){1, pt_numel(&r.self), 1};
    if (!flat) {
        rank = r.self.rank;
        PT_TRY(pt_read_dim(c, pt_get_int(c, args[UNIQUE_CONSECUTIVE_DIM]), rank, &dim));
        if (r.lanes.size == 0 && r.self.sizes[dim] > 0) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "another size than the dim's is 0");
        }
        r.lanes = pt_lanes_of(&r.self, dim);
        memcpy(sizes, r.self.sizes, rank * sizeof(*sizes));
    }
    PT_TRY(find_runs(c, &r, &r.groups));
    sizes[dim] = r.groups;
    PT_TRY(pt_expect_sizes(c, args[UNIQUE_CONSECUTIVE_OUT0], rank, sizes));
    if (counts) {
        PT_TRY(pt_expect_sizes(c, args[UNIQUE_CONSECUTIVE_OUT2], 1, &r.groups));
    }
    for (uint32_t i = UNIQUE_CONSECUTIVE_OUT0; i <= UNIQUE_CONSECUTIVE_OUT2; i++) {
        const pt_tensor out = pt_get_tensor(c, args[i]);
        if (pt_numel(&out) > 0) {
            // if out overlapped self, the second pass would find other runs
            PT_TRY(pt_check_apart(c, &out, &r.self));
        }
    }
    r.out = pt_get_data(c, args[UNIQUE_CONSECUTIVE_OUT0]);
    r.inverse = inverts ? pt_get_data(c, args[UNIQUE_CONSECUTIVE_OUT1]) : NULL;
    r.counts = counts ? pt_get_data(c, args[UNIQUE_CONSECUTIVE_OUT2]) : NULL;
    return find_runs(c, &r, sizes); // the second pass finds the same number of runs
}

const pt_kernel pt_aten_unique_consecutive_out = PT_KERNEL(check_runs, run_runs);
