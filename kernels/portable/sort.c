// Operators that sort along a dim: topk, sort, kthvalue, median, mode, unique; and cummax, cummin.
// The order of equal elements is kept, except by topk; NaN is greater than all numbers.
//
// A heap contains the indices of the first k of n elements in the order, with the last of them on
// top. It takes n log k comparisons, and memory only for the indices.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/compare.h"
#include "portable/extrema.h"
#include "portable/reduction.h"
#include <string.h>

enum {
    DESCENDING = 1, // from maximum to minimum
    TIES = 2,       // equal elements have no order, as in topk
    UNORDERED = 4,  // topk may return its elements in any order
    STILL_NANS = 8, // NaNs are unordered, as in PyTorch's mode; for ascending order
};

// The elements of a lane: `size` elements of `data` from `first` on, `step` apart.
typedef struct lane {
    const void *data;
    int32_t first, step, size;
    uint8_t dtype;
    uint8_t order;
} lane;

// A heap of indices of elements of a lane, `step` apart.
typedef struct heap {
    int64_t *indices;
    int32_t step, size;
} heap;

static int32_t get(const heap *h, int32_t i) {
    return (int32_t)h->indices[i * h->step];
}

static void set(const heap *h, int32_t i, int32_t index) {
    h->indices[i * h->step] = index;
}

// Returns true if the element at offset a is greater than the element at b.
static bool is_greater(const lane *l, int32_t a, int32_t b) {
    return pt_beats(l->data, a, b, l->dtype, false) && !pt_beats(l->data, b, a, l->dtype, false);
}

// True if element i of the lane comes before element j.
static bool precedes(const lane *l, int32_t i, int32_t j) {
    int32_t a = l->first + i * l->step, b = l->first + j * l->step;
    if (l->order & STILL_NANS && pt_beats(l->data, b, b, l->dtype, false)) {
        return false;
    }
    const bool earlier = i < j && !(l->order & TIES);
    return earlier !=
           (earlier != (l->order & DESCENDING) ? is_greater(l, a, b) : is_greater(l, b, a));
}

// Inserts `index` at position i of the heap or below: later elements move up, down to a leaf, from
// which the index rises to its position. The moves of equal elements define topk's order.
static int sort_sift_down(pt_context *c, const heap *h, const lane *l, int32_t i, int32_t index) {
    const int32_t top = i;
    for (int32_t below = 2 * i + 2; below <= h->size; below = 2 * i + 2) {
        PT_TRY(pt_count_elements(c, 1));
        if (below == h->size || precedes(l, get(h, below), get(h, below - 1))) {
            below--;
        }
        set(h, i, get(h, below));
        i = below;
    }
    for (; i > top && precedes(l, get(h, (i - 1) / 2), index); i = (i - 1) / 2) {
        set(h, i, get(h, (i - 1) / 2));
    }
    set(h, i, index);
    return PT_ERROR_OK;
}

static int make_heap(pt_context *c, const heap *h, const lane *l) {
    for (int32_t i = h->size / 2 - 1; i >= 0; i--) {
        PT_TRY(sort_sift_down(c, h, l, i, get(h, i)));
    }
    return PT_ERROR_OK;
}

// Replaces the heap's last element by `index`, if it comes before that element.
static int offer(pt_context *c, const heap *h, const lane *l, int32_t index) {
    PT_TRY(pt_count_elements(c, 1));
    return precedes(l, index, get(h, 0)) ? sort_sift_down(c, h, l, 0, index) : PT_ERROR_OK;
}

static void sort_number(const heap *h) {
    for (int32_t i = 0; i < h->size; i++) {
        set(h, i, i);
    }
}

// Makes `h` the heap of the first k elements of the order; k is at most the lane's size.
static int keep_first(pt_context *c, heap *h, const lane *l, int32_t k) {
    h->size = k;
    sort_number(h);
    PT_TRY(make_heap(c, h, l));
    for (int32_t i = k; i < l->size && k > 0; i++) {
        PT_TRY(offer(c, h, l, i));
    }
    return PT_ERROR_OK;
}

// Sorts the indices of a heap, which is not a heap afterwards.
static int order_heap(pt_context *c, heap *h, const lane *l) {
    while (h->size > 1) {
        int32_t last = get(h, --h->size);
        set(h, h->size, get(h, 0));
        PT_TRY(sort_sift_down(c, h, l, 0, last));
    }
    return PT_ERROR_OK;
}

int pt_order(pt_context *c, const pt_tensor *t, bool descending, int64_t *order) {
    const lane l = {t->data, 0, 1, pt_numel(t), t->dtype, descending ? DESCENDING : 0};
    heap h = {order, 1, 0};
    PT_TRY(keep_first(c, &h, &l, l.size));
    return order_heap(c, &h, &l);
}

// ---- topk, sort

// topk returns the same equal elements as ExecuTorch and PyTorch, in the same order, since it takes
// the same steps. A heap collects few of many elements. Otherwise quickselect moves the first k
// elements to the front, and quicksort sorts them except the last, which is already in its
// position. Both partition a range by the median of three elements, and use a heap for a range that
// `max_partitions` partitions have not finished.
enum { MANY = 64, MIN_SELECTED = 4, MIN_PARTED = 17 };

static int32_t max_partitions(int32_t n) {
    int32_t parts = 0;
    for (; n > 1; n /= 2) {
        parts += 2;
    }
    return parts;
}

static void swap(const heap *h, int32_t i, int32_t j) {
    const int32_t index = get(h, i);
    set(h, i, get(h, j));
    set(h, j, index);
}

static bool in_order(const heap *h, const lane *l, int32_t i, int32_t j) {
    return precedes(l, get(h, i), get(h, j));
}

// Partitions elements [first, last), at least 4, at *cut: no element before *cut follows, in the
// order, an element from *cut on.
static int partition(pt_context *c, const heap *h, const lane *l, int32_t first, int32_t last,
                     int32_t *cut) {
    int32_t i = first + 1, j = first + (last - first) / 2;
    const bool ordered = in_order(h, l, i, j);
    const int32_t low = ordered ? i : j, high = ordered ? j : i;
    swap(h, first,
         in_order(h, l, high, last - 1)  ? high
         : in_order(h, l, low, last - 1) ? last - 1
                                         : low);
    for (j = last;; i++) {
        for (; i < last && in_order(h, l, i, first); i++) {
            PT_TRY(pt_count_elements(c, 1));
        }
        for (j--; j > first && in_order(h, l, first, j); j--) {
            PT_TRY(pt_count_elements(c, 1));
        }
        if (i >= j) {
            *cut = i;
            return PT_ERROR_OK;
        }
        PT_TRY(pt_count_elements(c, 1));
        swap(h, i, j);
    }
}

static int insert_range(pt_context *c, const heap *h, const lane *l, int32_t first, int32_t last) {
    for (int32_t i = first + 1; i < last; i++) {
        const int32_t index = get(h, i);
        // also for the unordered NaNs of mode
        const bool is_first = precedes(l, index, get(h, first));
        int32_t to = i;
        for (; to > first && (is_first || precedes(l, index, get(h, to - 1))); to--) {
            PT_TRY(pt_count_elements(c, 1));
            set(h, to, get(h, to - 1));
        }
        set(h, to, index);
    }
    return PT_ERROR_OK;
}

static heap range(const heap *h, int32_t first, int32_t last) {
    return (heap){h->indices + first * h->step, h->step, last - first};
}

// Moves the first k elements of the order to the front, with the last of them at position k - 1.
static int select_first(pt_context *c, const heap *h, const lane *l, int32_t k) {
    int32_t first = 0, last = h->size, cut;
    for (int32_t parts = max_partitions(last); last - first >= MIN_SELECTED; parts--) {
        if (parts == 0) {
            const heap kept = range(h, first, k);
            PT_TRY(make_heap(c, &kept, l));
            for (int32_t i = k; i < last; i++) {
                PT_TRY(offer(c, &kept, l, get(h, i)));
            }
            swap(h, first, k - 1);
            return PT_ERROR_OK;
        }
        PT_TRY(partition(c, h, l, first, last, &cut));
        first = cut < k ? cut : first;
        last = cut < k ? last : cut;
    }
    return insert_range(c, h, l, first, last);
}

// Sorts the first n elements of the order. `left` contains the ranges to sort; it has an entry for
// each element, and at most 2 for each partition of 17 or more elements.
static int order_first(pt_context *c, const heap *h, const lane *l, int32_t n, const heap *left) {
    int32_t first = 0, last = n, parts = max_partitions(n), end = 0;
    while (first < n) {
        if (last - first >= MIN_PARTED && parts > 0) {
            int32_t cut;
            PT_TRY(partition(c, h, l, first, last, &cut));
            parts--;
            set(left, end++, parts);
            set(left, end++, last);
            last = cut;
            continue;
        }
        if (last - first >= MIN_PARTED) {
            heap all = range(h, first, last);
            PT_TRY(make_heap(c, &all, l));
            PT_TRY(order_heap(c, &all, l));
        } else {
            PT_TRY(insert_range(c, h, l, first, last));
        }
        first = last;
        if (end > 0) {
            last = get(left, --end);
            parts = get(left, --end);
        }
    }
    return PT_ERROR_OK;
}

// Returns the bytes of n indices.
static uint32_t indices_scratch(int32_t n) {
    return (uint32_t)n * (uint32_t)sizeof(int64_t);
}

// Requests scratch for n indices.
static int request_indices(pt_context *c, int32_t n) {
    if (n > INT32_MAX / (int32_t)sizeof(int64_t)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "too many elements");
    }
    pt_request_scratch(c, indices_scratch(n));
    return PT_ERROR_OK;
}

// For a run: returns a heap for the n indices that the check requested.
static int get_heap(pt_context *c, int32_t n, heap *h) {
    void *scratch;
    PT_TRY(pt_get_scratch(c, indices_scratch(n), &scratch));
    *h = (heap){scratch, 1, n};
    return PT_ERROR_OK;
}

static int check_ordered(pt_context *c, const pt_tensor *self, pt_ref dim_arg, pt_ref values_arg,
                         pt_ref indices_arg, uint32_t *dim) {
    pt_tensor values = pt_get_tensor(c, values_arg);
    PT_TRY(pt_read_dim(c, pt_get_int(c, dim_arg), self->rank, dim));
    PT_TRY(pt_check_same_dtype(c, &values, self));
    if (!pt_dtype_in(self->dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "elements of this dtype are not compared");
    }
    if (pt_get_tensor(c, indices_arg).dtype != PT_DTYPE_LONG) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "indices must be int64");
    }
    return PT_ERROR_OK;
}

// Returns the elements of a tensor along a dim. A 0-d tensor has one, which topk returns for any k.
static int32_t length_along(const pt_tensor *t, uint32_t dim) {
    return t->rank ? t->sizes[dim] : 1;
}

// Returns the indices in scratch of topk for k of n elements: all, unless a heap collects few of
// many.
static int32_t topk_scratch(int32_t n, int32_t k) {
    return k > n / MANY ? n : 0;
}

static int request_topk(pt_context *c, const pt_tensor *self, uint32_t dim, int32_t k,
                        pt_ref values) {
    const int32_t n = length_along(self, dim);
    if (c->checking != PT_CHECK_BOUNDS) {
        return request_indices(c, topk_scratch(n, k));
    }
    // A computed k has no value yet: the output's bound limits it. For fewer elements k may be too
    // large for a heap.
    const uint32_t max = pt_capacity(c, values);
    return request_indices(c, max > (uint32_t)n / MANY ? n : (int32_t)max * MANY);
}

static int check_topk(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[TOPK_SELF]);
    uint32_t dim;
    PT_TRY(check_ordered(c, &self, args[TOPK_DIM], args[TOPK_VALUES], args[TOPK_INDICES], &dim));
    if (self.dtype == PT_DTYPE_BOOL) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "elements of this dtype are not compared");
    }
    int64_t k = pt_get_int(c, args[TOPK_K]);
    const int32_t kept = self.rank ? (int32_t)k : 1;
    PT_TRY(request_topk(c, &self, dim, kept, args[TOPK_VALUES]));
    if (k < 0 || k > length_along(&self, dim)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "k is not within the size of the dim");
    }
    int32_t sizes[PT_MAX_RANK];
    for (uint32_t d = 0; d < self.rank; d++) {
        sizes[d] = d == dim ? (int32_t)k : self.sizes[d];
    }
    PT_TRY(pt_expect_sizes(c, args[TOPK_VALUES], self.rank, sizes));
    return pt_expect_sizes(c, args[TOPK_INDICES], self.rank, sizes);
}

// Writes one lane to values from offset `to` on, and to the heap's indices.
typedef int write_function(pt_context *c, const lane *l, heap *h, const pt_tensor *values,
                           int32_t to, int32_t to_step, int32_t k);

// Computes the first k elements in order.
static int write_lane(pt_context *c, const lane *l, heap *h, const pt_tensor *values, int32_t to,
                      int32_t to_step, int32_t k) {
    if (l->order & TIES && topk_scratch(l->size, k) > 0) {
        heap all;
        PT_TRY(get_heap(c, topk_scratch(l->size, k), &all));
        sort_number(&all);
        PT_TRY(select_first(c, &all, l, k));
        if (!(l->order & UNORDERED)) {
            PT_TRY(order_first(c, &all, l, k - 1, h));
        }
        for (int32_t i = 0; i < k; i++) {
            set(h, i, get(&all, i));
        }
    } else {
        PT_TRY(keep_first(c, h, l, k));
        PT_TRY(order_heap(c, h, l));
    }
    for (int32_t i = 0; i < k; i++, to += to_step) {
        pt_convert_element(values->data, to, values->dtype, l->data, l->first + get(h, i) * l->step,
                           l->dtype);
    }
    return PT_ERROR_OK;
}

// Writes the elements of each lane, as many as the outputs have along the dim. `outs`: values and
// indices.
static int write_lanes(pt_context *c, pt_ref self_arg, pt_ref dim_arg, const pt_ref *outs,
                       uint8_t order, write_function *write) {
    const pt_tensor self_tensor = pt_get_tensor(c, self_arg), *self = &self_tensor;
    const pt_tensor values_tensor = pt_get_tensor(c, outs[0]), *values = &values_tensor;
    const pt_tensor indices_tensor = pt_get_tensor(c, outs[1]), *indices = &indices_tensor;
    uint32_t dim;
    PT_TRY(pt_read_dim(c, pt_get_int(c, dim_arg), self->rank, &dim));
    if (pt_numel(values) == 0) {
        return PT_ERROR_OK;
    }
    PT_TRY(pt_check_apart(c, values, indices)); // else the run would read overwritten indices
    pt_walk w;
    w.rank = values->rank;
    w.operands = 3;
    pt_strides(values, w.strides[0]);
    pt_strides(self, w.strides[1]);
    pt_strides(indices, w.strides[2]);
    int32_t steps[3] = {1, 1, 1};
    for (uint32_t i = 0; i < 3; i++) {
        w.offset[i] = 0;
        steps[i] = self->rank ? w.strides[i][dim] : 1;
    }
    for (uint32_t d = 0; d < values->rank; d++) {
        w.sizes[d] = d == dim ? 1 : values->sizes[d];
    }
    pt_walk_start(&w);
    lane l = {self->data, 0, steps[1], self->rank ? self->sizes[dim] : 1, self->dtype, order};
    const int32_t k = self->rank ? values->sizes[dim] : 1;
    do {
        for (int32_t i = 0; i < w.n; i++) {
            heap h = {(int64_t *)indices->data + w.offset[2] + i * w.strides[2][0], steps[2], 0};
            l.first = w.offset[1] + i * w.strides[1][0];
            PT_TRY(write(c, &l, &h, values, w.offset[0] + i * w.strides[0][0], steps[0], k));
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

static int run_topk(pt_context *c, const pt_ref *args) {
    return write_lanes(c, args[TOPK_SELF], args[TOPK_DIM], &args[TOPK_VALUES],
                       (pt_get_bool(c, args[TOPK_LARGEST]) ? DESCENDING : 0) | TIES |
                           (pt_get_bool(c, args[TOPK_SORTED]) ? 0 : UNORDERED),
                       write_lane);
}

const pt_kernel pt_aten_topk_values = PT_KERNEL(check_topk, run_topk);

// sort.values has no argument `stable`; the order is the same.
static int sort_check_lanes(pt_context *c, pt_ref self_arg, pt_ref dim_arg, const pt_ref *outs) {
    pt_tensor self = pt_get_tensor(c, self_arg);
    uint32_t dim;
    PT_TRY(check_ordered(c, &self, dim_arg, outs[0], outs[1], &dim));
    PT_TRY(pt_expect_sizes(c, outs[0], self.rank, self.sizes));
    return pt_expect_sizes(c, outs[1], self.rank, self.sizes);
}

static int check_sort(pt_context *c, const pt_ref *args) {
    return sort_check_lanes(c, args[SORT_SELF], args[SORT_DIM], &args[SORT_VALUES]);
}

static int run_sort(pt_context *c, const pt_ref *args) {
    return write_lanes(c, args[SORT_SELF], args[SORT_DIM], &args[SORT_VALUES],
                       pt_get_bool(c, args[SORT_DESCENDING]) ? DESCENDING : 0, write_lane);
}

static int check_sort_stable(pt_context *c, const pt_ref *args) {
    return sort_check_lanes(c, args[SORT_STABLE_SELF], args[SORT_STABLE_DIM],
                            &args[SORT_STABLE_VALUES]);
}

static int run_sort_stable(pt_context *c, const pt_ref *args) {
    return write_lanes(c, args[SORT_STABLE_SELF], args[SORT_STABLE_DIM], &args[SORT_STABLE_VALUES],
                       pt_get_bool(c, args[SORT_STABLE_DESCENDING]) ? DESCENDING : 0, write_lane);
}

const pt_kernel pt_aten_sort_values = PT_KERNEL(check_sort, run_sort);
const pt_kernel pt_aten_sort_values_stable = PT_KERNEL(check_sort_stable, run_sort_stable);

// ---- cummax, cummin: the maximum or minimum so far, and its index: the last of equal ones, but
// the first NaN

static int sort_cumulate_lane(pt_context *c, const lane *l, heap *h, const pt_tensor *values,
                              int32_t to, int32_t to_step, int32_t k) {
    int32_t best = 0;
    for (int32_t i = 0; i < k; i++, to += to_step) {
        const int32_t at = l->first + i * l->step, best_at = l->first + best * l->step;
        PT_TRY(pt_count_elements(c, 1));
        if (pt_beats(l->data, at, best_at, l->dtype, l->order & DESCENDING) ||
            !pt_beats(l->data, best_at, at, l->dtype, l->order & DESCENDING)) {
            best = i;
        }
        set(h, i, best);
        pt_convert_element(values->data, to, values->dtype, l->data, l->first + best * l->step,
                           l->dtype);
    }
    return PT_ERROR_OK;
}

static int sort_check_cumulated(pt_context *c, const pt_ref *args) {
    return sort_check_lanes(c, args[CUMMAX_SELF], args[CUMMAX_DIM], &args[CUMMAX_VALUES]);
}

static int run_cummax(pt_context *c, const pt_ref *args) {
    return write_lanes(c, args[CUMMAX_SELF], args[CUMMAX_DIM], &args[CUMMAX_VALUES], 0,
                       sort_cumulate_lane);
}

static int run_cummin(pt_context *c, const pt_ref *args) {
    return write_lanes(c, args[CUMMAX_SELF], args[CUMMAX_DIM], &args[CUMMAX_VALUES], DESCENDING,
                       sort_cumulate_lane);
}

const pt_kernel pt_aten_cummax_out = PT_KERNEL(sort_check_cumulated, run_cummax);
const pt_kernel pt_aten_cummin_out = PT_KERNEL(sort_check_cumulated, run_cummin);

// ---- kthvalue, median: element k of the order, counted from 1

// A reduction to element k of its rows, with the scratch of a heap.
typedef struct kth {
    pt_reduction r;
    int32_t k;
    bool median; // compute the median, which is NaN if an element is NaN
} kth;

// Finds element k of a lane; its index is *index.
static int find_kth(pt_context *c, const lane *l, int32_t k, int64_t *index) {
    heap h;
    PT_TRY(get_heap(c, k, &h));
    PT_TRY(keep_first(c, &h, l, k));
    *index = get(&h, 0);
    return PT_ERROR_OK;
}

// Returns the k of the median: of n elements, it is the lower of the two in the middle.
static int32_t median_of(int32_t n) {
    return (n + 1) / 2;
}

// Finds the median of a lane, or the first NaN.
static int find_median(pt_context *c, const lane *l, int64_t *index) {
    for (int32_t i = 0; pt_is_floating(l->dtype) && i < l->size; i++) {
        int32_t at = l->first + i * l->step;
        PT_TRY(pt_count_elements(c, 1));
        if (pt_beats(l->data, at, at, l->dtype, false)) {
            *index = i;
            return PT_ERROR_OK;
        }
    }
    return find_kth(c, l, median_of(l->size), index);
}

static void store_kth(pt_reduction *r, int32_t from, int32_t to, int32_t index_to) {
    const kth *own = (const kth *)(const void *)r;
    lane l = {r->in.data, from, r->step, r->n, r->in.dtype, 0};
    int64_t index = 0;
    r->error = own->median ? find_median(r->c, &l, &index) : find_kth(r->c, &l, own->k, &index);
    if (r->error == PT_ERROR_OK) {
        pt_convert_element(r->out.data, to, r->out.dtype, r->in.data,
                           from + (int32_t)index * r->step, r->in.dtype);
        ((int64_t *)r->indices.data)[index_to] = index;
    }
}

// Checks a call for element k. `rest` has dim, keepdim, values, indices. `k` is 0 for the median.
static int check_kth(pt_context *c, const pt_tensor *self, const pt_ref *rest, int64_t k,
                     bool median) {
    uint32_t dim;
    PT_TRY(check_ordered(c, self, rest[0], rest[2], rest[3], &dim));
    const int32_t size = length_along(self, dim);
    k = median ? median_of(size) : k;
    // In a check of bounds a computed k has no value yet.
    const int64_t max = c->checking == PT_CHECK_BOUNDS && !median ? size : k;
    PT_TRY(request_indices(c, max < 0 ? 0 : max > size ? size : (int32_t)max));
    if (median && size == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "no elements to choose from");
    }
    if (k < 1 || k > size) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "k is not within the size of the dim");
    }
    const bool keep = pt_get_bool(c, rest[1]);
    PT_TRY(pt_expect_reduced(c, self, 1u << dim, keep, rest[2]));
    return pt_expect_reduced(c, self, 1u << dim, keep, rest[3]);
}

static int run_kth(pt_context *c, const pt_ref *args, const pt_ref *rest, int64_t k, bool median) {
    kth own;
    uint32_t dim;
    own.r.in = pt_get_tensor(c, args[KTHVALUE_SELF]);
    own.r.out = pt_get_tensor(c, rest[2]);
    own.r.indices = pt_get_tensor(c, rest[3]);
    own.k = (int32_t)k;
    own.median = median;
    PT_TRY(pt_read_dim(c, pt_get_int(c, rest[0]), own.r.in.rank, &dim));
    return pt_reduce(c, &own.r, 1u << dim, pt_get_bool(c, rest[1]), store_kth);
}

static int check_kthvalue(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[KTHVALUE_SELF]);
    return check_kth(c, &self, &args[KTHVALUE_DIM], pt_get_int(c, args[KTHVALUE_K]), false);
}

static int run_kthvalue(pt_context *c, const pt_ref *args) {
    return run_kth(c, args, &args[KTHVALUE_DIM], pt_get_int(c, args[KTHVALUE_K]), false);
}

static int check_median_dim(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[MEDIAN_DIM_SELF]);
    return check_kth(c, &self, &args[MEDIAN_DIM_DIM], 0, true);
}

static int run_median_dim(pt_context *c, const pt_ref *args) {
    return run_kth(c, args, &args[MEDIAN_DIM_DIM], 0, true);
}

const pt_kernel pt_aten_kthvalue_values = PT_KERNEL(check_kthvalue, run_kthvalue);
const pt_kernel pt_aten_median_dim_values = PT_KERNEL(check_median_dim, run_median_dim);

// The median of all elements, in the order of memory: (self, out)
static int check_median(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[MEDIAN_SELF]);
    pt_tensor out = pt_get_tensor(c, args[MEDIAN_OUT]);
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    if (!pt_dtype_in(self.dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "elements of this dtype are not compared");
    }
    if (pt_numel(&self) == 0 && !pt_is_floating(self.dtype)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "no elements to choose from");
    }
    PT_TRY(request_indices(c, median_of(pt_numel(&self))));
    return pt_expect_sizes(c, args[MEDIAN_OUT], 0, NULL);
}

static int run_median(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[MEDIAN_SELF]);
    pt_tensor out = pt_get_tensor(c, args[MEDIAN_OUT]);
    lane l = {self.data, 0, 1, pt_numel(&self), self.dtype, 0};
    int64_t index;
    if (l.size == 0) {
        pt_store_float(out.data, 0, out.dtype, __builtin_nanf(""));
        return PT_ERROR_OK;
    }
    PT_TRY(find_median(c, &l, &index));
    pt_convert_element(out.data, 0, out.dtype, self.data, (int32_t)index, self.dtype);
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_median_out = PT_KERNEL(check_median, run_median);

// ---- mode: (self, dim, keepdim, values, indices): the smallest of the most frequent elements, and
// the last index of it, as PyTorch returns for up to 16 elements. For so few, NaNs are unordered as
// in PyTorch: a NaN stays in its place, and separates the elements on its sides. For more, a NaN is
// greater than all numbers.

bool pt_are_equal(const pt_tensor *t, int32_t i, int32_t j) {
    return pt_is_floating(t->dtype)
               ? pt_load_double(t->data, i, t->dtype) == pt_load_double(t->data, j, t->dtype)
               : pt_load_int(t->data, i, t->dtype) == pt_load_int(t->data, j, t->dtype);
}

static int find_mode(const pt_reduction *r, int32_t from, int32_t *index) {
    lane l = {r->in.data, from, r->step, r->n, r->in.dtype, 0};
    heap h;
    int32_t first = 0, max = 0;
    PT_TRY(get_heap(r->c, r->n, &h));
    if (l.size < MIN_PARTED) {
        l.order = TIES | STILL_NANS;
        sort_number(&h);
        PT_TRY(insert_range(r->c, &h, &l, 0, l.size));
    } else {
        PT_TRY(keep_first(r->c, &h, &l, l.size));
        PT_TRY(order_heap(r->c, &h, &l));
    }
    for (int32_t i = 0; i < l.size; i++) {
        const int32_t at = from + get(&h, i) * l.step;
        PT_TRY(pt_count_elements(r->c, 1));
        if (!pt_are_equal(&r->in, from + get(&h, first) * l.step, at)) {
            first = i;
        }
        if (i - first >= max) {
            max = i - first + 1;
            *index = get(&h, i);
        }
    }
    return PT_ERROR_OK;
}

static void store_mode(pt_reduction *r, int32_t from, int32_t to, int32_t index_to) {
    int32_t index = 0;
    r->error = find_mode(r, from, &index);
    pt_convert_element(r->out.data, to, r->out.dtype, r->in.data, from + index * r->step,
                       r->in.dtype);
    ((int64_t *)r->indices.data)[index_to] = index;
}

static int check_mode(pt_context *c, const pt_ref *args) {
    const pt_tensor self = pt_get_tensor(c, args[MODE_SELF]);
    uint32_t dim;
    PT_TRY(check_kth(c, &self, &args[MODE_DIM], 0, true));
    PT_TRY(pt_read_dim(c, pt_get_int(c, args[MODE_DIM]), self.rank, &dim));
    return request_indices(c, length_along(&self, dim));
}

static int run_mode(pt_context *c, const pt_ref *args) {
    pt_reduction r;
    uint32_t dim;
    r.in = pt_get_tensor(c, args[MODE_SELF]);
    r.out = pt_get_tensor(c, args[MODE_VALUES]);
    r.indices = pt_get_tensor(c, args[MODE_INDICES]);
    PT_TRY(pt_read_dim(c, pt_get_int(c, args[MODE_DIM]), r.in.rank, &dim));
    return pt_reduce(c, &r, 1u << dim, pt_get_bool(c, args[MODE_KEEPDIM]), store_mode);
}

const pt_kernel pt_aten_mode_values = PT_KERNEL(check_mode, run_mode);

// ---- unique: (self, sorted, return_inverse, return_counts, out, inverse, counts). Always sorted;
// an output that is not requested has no elements. The run sets the output's size.

static int check_unique(pt_context *c, const pt_ref *args) {
    const pt_tensor self = pt_get_tensor(c, args[UNIQUE2_SELF]);
    const pt_tensor out = pt_get_tensor(c, args[UNIQUE2_OUT0]);
    const pt_tensor inverse = pt_get_tensor(c, args[UNIQUE2_OUT1]);
    const int32_t n = pt_numel(&self), none = 0;
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    if (!pt_dtype_in(self.dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "elements of this dtype are not compared");
    }
    if (out.rank != 1 || inverse.dtype != PT_DTYPE_LONG ||
        pt_get_tensor(c, args[UNIQUE2_OUT2]).dtype != PT_DTYPE_LONG) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "the output must have 1 dim, the others must be int64");
    }
    PT_TRY(request_indices(c, n));
    if (!pt_get_bool(c, args[UNIQUE2_RETURN_COUNTS])) {
        PT_TRY(pt_expect_sizes(c, args[UNIQUE2_OUT2], 1, &none));
    }
    if (!pt_get_bool(c, args[UNIQUE2_RETURN_INVERSE])) {
        return pt_expect_sizes(c, args[UNIQUE2_OUT1], 1, &none);
    }
    PT_TRY(pt_expect_sizes(c, args[UNIQUE2_OUT1], self.rank, self.sizes));
    const pt_tensor sized = pt_get_tensor(c, args[UNIQUE2_OUT1]);
    return pt_same_dim_order(&self, &sized)
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the inverse has another dim order");
}

// Sorts the indices of n elements. Each entry becomes 2 * index, plus 1 if the element differs from
// the one before; *groups becomes the number of different elements.
static int group(pt_context *c, const pt_tensor *self, int64_t *order, int32_t n, int32_t *groups) {
    PT_TRY(pt_order(c, self, false, order));
    *groups = 0;
    for (int32_t i = 0; i < n; i++) {
        PT_TRY(pt_count_elements(c, 1));
        const int32_t at = (int32_t)order[i];
        const bool differs = i == 0 || !pt_are_equal(self, (int32_t)(order[i - 1] / 2), at);
        order[i] = (int64_t)at * 2 + differs;
        *groups += differs;
    }
    return PT_ERROR_OK;
}

static int run_unique(pt_context *c, const pt_ref *args) {
    const pt_tensor self = pt_get_tensor(c, args[UNIQUE2_SELF]);
    heap h;
    const bool inverts = pt_get_bool(c, args[UNIQUE2_RETURN_INVERSE]);
    const bool counts = pt_get_bool(c, args[UNIQUE2_RETURN_COUNTS]);
    const int32_t n = pt_numel(&self);
    int32_t groups, last = -1;
    PT_TRY(get_heap(c, n, &h));
    int64_t *const order = h.indices;
    PT_TRY(group(c, &self, order, n, &groups));
    PT_TRY(pt_expect_sizes(c, args[UNIQUE2_OUT0], 1, &groups));
    if (counts) {
        PT_TRY(pt_expect_sizes(c, args[UNIQUE2_OUT2], 1, &groups));
    }
    const pt_tensor out = pt_get_tensor(c, args[UNIQUE2_OUT0]);
    int64_t *const inverse = pt_get_tensor(c, args[UNIQUE2_OUT1]).data;
    int64_t *const numbers = pt_get_tensor(c, args[UNIQUE2_OUT2]).data;
    for (int32_t i = 0; i < n; i++) {
        const int32_t at = (int32_t)(order[i] / 2);
        PT_TRY(pt_count_elements(c, 1));
        if (order[i] & 1) {
            last++;
            pt_convert_element(out.data, last, out.dtype, self.data, at, self.dtype);
            if (counts) {
                numbers[last] = 0;
            }
        }
        if (counts) {
            numbers[last]++;
        }
        if (inverts) {
            inverse[at] = last;
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten__unique2_out = PT_KERNEL(check_unique, run_unique);
