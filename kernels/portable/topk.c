// topk: (self, k, dim, largest, sorted, values, indices). The k greatest or least elements along a
// dim, in their order; of equals the first comes first, a NaN counts as greater than all.
#include "../core/operator_arguments.h"
#include "arguments.h"
#include "extrema.h"

static int check_topk(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[TOPK_SELF]);
    pt_tensor values = pt_get_tensor(c, args[TOPK_VALUES]);
    uint32_t dim;
    int error = pt_read_dim(c, pt_get_int(c, args[TOPK_DIM]), self.rank, &dim);
    error = error ? error : pt_check_same_dtype(c, &values, &self);
    if (error) {
        return error;
    }
    if (!pt_dtype_in(self.dtype, PT_DTYPES_ALL & ~PT_DTYPES_BOOL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "elements of this dtype are not compared");
    }
    if (pt_get_tensor(c, args[TOPK_INDICES]).dtype != PT_DTYPE_LONG) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "indices must be int64");
    }
    int64_t k = pt_get_int(c, args[TOPK_K]);
    if (k < 0 || k > (self.rank ? self.sizes[dim] : 1)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "k is not within the size of the dim");
    }
    int32_t sizes[PT_MAX_RANK];
    for (uint32_t d = 0; d < self.rank; d++) {
        sizes[d] = d == dim ? (int32_t)k : self.sizes[d];
    }
    error = pt_expect_sizes(c, args[TOPK_VALUES], self.rank, sizes);
    return error ? error : pt_expect_sizes(c, args[TOPK_INDICES], self.rank, sizes);
}

// `size` elements of `data` from `first` on, `step` apart.
typedef struct lane {
    const void *data;
    int32_t first, step, size;
    uint8_t dtype;
    bool least;
} lane;

// True if element a is to come before element b whatever their places.
static bool is_ahead(const lane *l, int32_t a, int32_t b) {
    if (l->least) { // a NaN beats all and comes last: ask the other way round
        return pt_beats(l->data, b, a, l->dtype, false) &&
               !pt_beats(l->data, a, b, l->dtype, false);
    }
    return pt_beats(l->data, a, b, l->dtype, false) && !pt_beats(l->data, b, a, l->dtype, false);
}

static bool precedes(const lane *l, int32_t i, int32_t j) {
    int32_t a = l->first + i * l->step, b = l->first + j * l->step;
    return i < j ? !is_ahead(l, b, a) : i > j && is_ahead(l, a, b);
}

// The place that follows `previous` in the order; the first one for -1. Where an output lies over
// self, there may be none: 0 then.
static int find_next(pt_context *c, const lane *l, int32_t previous, int32_t *place) {
    int32_t best = -1;
    for (int32_t i = 0; i < l->size; i++) {
        PT_TRY(pt_count_elements(c, 1));
        if ((best < 0 || precedes(l, i, best)) && (previous < 0 || precedes(l, previous, i))) {
            best = i;
        }
    }
    *place = best < 0 ? 0 : best;
    return PT_ERROR_OK;
}

static int take_lane(pt_context *c, const lane *l, const pt_tensor *values, int32_t to,
                     int32_t to_step, int64_t *indices, int32_t index_step, int32_t k) {
    int32_t place = -1;
    for (; k > 0; k--, to += to_step, indices += index_step) {
        PT_TRY(find_next(c, l, place, &place));
        pt_convert_element(values->data, to, values->dtype, l->data, l->first + place * l->step,
                           l->dtype);
        *indices = place;
    }
    return PT_ERROR_OK;
}

static int run_topk(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[TOPK_SELF]);
    pt_tensor values = pt_get_tensor(c, args[TOPK_VALUES]);
    pt_tensor indices = pt_get_tensor(c, args[TOPK_INDICES]);
    uint32_t dim;
    int error = pt_read_dim(c, pt_get_int(c, args[TOPK_DIM]), self.rank, &dim);
    if (error || pt_numel(&values) == 0) {
        return error;
    }
    pt_walk w;
    w.rank = values.rank;
    w.operands = 3;
    pt_strides(&values, w.strides[0]);
    pt_strides(&self, w.strides[1]);
    pt_strides(&indices, w.strides[2]);
    int32_t steps[3] = {1, 1, 1};
    for (uint32_t i = 0; i < 3; i++) {
        w.offset[i] = 0;
        steps[i] = self.rank ? w.strides[i][dim] : 1;
    }
    for (uint32_t d = 0; d < values.rank; d++) {
        w.sizes[d] = d == dim ? 1 : values.sizes[d];
    }
    pt_walk_start(&w);
    int32_t k = self.rank ? values.sizes[dim] : 1;
    lane l = {self.data,  0,
              steps[1],   self.rank ? self.sizes[dim] : 1,
              self.dtype, !pt_get_bool(c, args[TOPK_LARGEST])};
    do {
        for (int32_t i = 0; i < w.n; i++) {
            l.first = w.offset[1] + i * w.strides[1][0];
            PT_TRY(take_lane(c, &l, &values, w.offset[0] + i * w.strides[0][0], steps[0],
                             (int64_t *)indices.data + w.offset[2] + i * w.strides[2][0], steps[2],
                             k));
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

const pt_kernel pt_aten_topk_values = {check_topk, run_topk};
