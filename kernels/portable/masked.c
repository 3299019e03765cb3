// Operators whose elements follow each other in logical order where a mask is true: masked_select,
// masked_scatter, nonzero; and repeat_interleave. The output sizes of masked_select, nonzero and
// repeat_interleave depend on data, and are set by the run.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/copy.h"
#include "portable/elementwise.h"

// Starts a walk in logical order over tensors that are broadcast to these sizes. Operand 0 is the
// position in this order. No size is 0.
static void walk_positions(pt_walk *w, uint32_t rank, const int32_t *sizes, uint32_t n,
                           const pt_tensor *const *tensors) {
    w->rank = (uint8_t)rank;
    w->operands = (uint8_t)(n + 1);
    for (uint32_t k = 0; k < n; k++) {
        const pt_tensor *t = tensors[k];
        uint32_t missing = rank - t->rank;
        pt_strides(t, w->strides[k + 1] + missing);
        for (uint32_t d = 0; d < rank; d++) {
            if (d < missing || t->sizes[d - missing] == 1) {
                w->strides[k + 1][d] = 0;
            }
        }
    }
    int32_t stride = 1;
    for (uint32_t d = rank; d-- > 0;) {
        w->sizes[d] = sizes[d];
        w->strides[0][d] = stride;
        stride *= sizes[d];
    }
    for (uint32_t k = 0; k <= n; k++) {
        w->offset[k] = 0;
    }
    pt_walk_start(w);
}

static int check_mask(pt_context *c, const pt_tensor *self, const pt_tensor *mask, int32_t *sizes,
                      uint32_t *rank) {
    *rank = 0;
    if (!pt_dtype_in(mask->dtype, PT_DTYPES_BOOL | 1 << PT_DTYPE_BYTE)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the mask is not a bool tensor");
    }
    if (!pt_broadcast(sizes, rank, self) || !pt_broadcast(sizes, rank, mask)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, PT_REASON_BROADCAST);
    }
    return pt_product(sizes, *rank) <= INT32_MAX
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_NOT_SUPPORTED, "more than 2^31 elements of the mask");
}

static bool is_set(const pt_tensor *mask, int32_t i) {
    return ((const uint8_t *)mask->data)[i] != 0;
}

static int count_set(pt_context *c, const pt_tensor *mask, uint32_t rank, const int32_t *sizes,
                     int32_t *n) {
    pt_walk w;
    *n = 0;
    if (pt_product(sizes, rank) == 0) {
        return PT_ERROR_OK;
    }
    walk_positions(&w, rank, sizes, 1, (const pt_tensor *const[]){mask});
    do {
        for (int32_t i = 0; i < w.n; i++) {
            *n += is_set(mask, w.offset[1] + i * w.strides[1][0]);
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

// ---- masked_select: (self, mask, out)

static int check_select(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[MASKED_SELECT_SELF]);
    pt_tensor mask = pt_get_tensor(c, args[MASKED_SELECT_MASK]);
    pt_tensor out = pt_get_tensor(c, args[MASKED_SELECT_OUT]);
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank;
    PT_TRY(check_mask(c, &self, &mask, sizes, &rank));
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    if (out.rank != 1) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output must have 1 dim");
    }
    uint32_t max = 0;
    for (uint32_t i = MASKED_SELECT_SELF; i <= MASKED_SELECT_OUT; i++) {
        uint32_t elements = pt_capacity(c, args[i]);
        max = elements > max ? elements : max;
    }
    return pt_check_positions(c, pt_product(sizes, rank), max);
}

static int run_select(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[MASKED_SELECT_SELF]);
    pt_tensor mask = pt_get_tensor(c, args[MASKED_SELECT_MASK]);
    pt_tensor out = pt_get_tensor(c, args[MASKED_SELECT_OUT]);
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank;
    PT_TRY(check_mask(c, &self, &mask, sizes, &rank));
    int32_t n = 0, to = 0;
    PT_TRY(count_set(c, &mask, rank, sizes, &n));
    PT_TRY(pt_expect_sizes(c, args[MASKED_SELECT_OUT], 1, &n));
    if (n == 0) {
        return PT_ERROR_OK;
    }
    pt_walk w;
    walk_positions(&w, rank, sizes, 2, (const pt_tensor *const[]){&self, &mask});
    do {
        for (int32_t i = 0; i < w.n && to < n; i++) {
            if (is_set(&mask, w.offset[2] + i * w.strides[2][0])) {
                pt_copy_element(&out, to++, &self, w.offset[1] + i * w.strides[1][0]);
            }
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

const pt_kernel pt_aten_masked_select_out = PT_KERNEL(check_select, run_select);

// ---- masked_scatter: (self, mask, source, out): replaces each element where the mask is true by
// the next one of source

static int masked_check_scatter(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[MASKED_SCATTER_SELF]);
    pt_tensor mask = pt_get_tensor(c, args[MASKED_SCATTER_MASK]);
    pt_tensor source = pt_get_tensor(c, args[MASKED_SCATTER_SOURCE]);
    pt_tensor out = pt_get_tensor(c, args[MASKED_SCATTER_OUT]);
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank;
    PT_TRY(check_mask(c, &self, &mask, sizes, &rank));
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    if (source.dtype != self.dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "source must have self's dtype");
    }
    if (!(source.flags & PT_VALUE_CONTIGUOUS)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "source must be contiguous");
    }
    return pt_expect_sizes(c, args[MASKED_SCATTER_OUT], rank, sizes);
}

static int run_masked_scatter(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[MASKED_SCATTER_SELF]);
    pt_tensor mask = pt_get_tensor(c, args[MASKED_SCATTER_MASK]);
    pt_tensor source = pt_get_tensor(c, args[MASKED_SCATTER_SOURCE]);
    pt_tensor out = pt_get_tensor(c, args[MASKED_SCATTER_OUT]);
    int32_t from = 0, max = pt_numel(&source), set;
    PT_TRY(count_set(c, &mask, out.rank, out.sizes, &set));
    if (set > max) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "source has fewer elements than the mask selects");
    }
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    pt_walk w;
    walk_positions(&w, out.rank, out.sizes, 3, (const pt_tensor *const[]){&out, &self, &mask});
    do {
        for (int32_t i = 0; i < w.n; i++) {
            int32_t to = w.offset[1] + i * w.strides[1][0];
            if (is_set(&mask, w.offset[3] + i * w.strides[3][0]) && from < max) {
                pt_copy_element(&out, to, &source, from++);
            } else {
                pt_copy_element(&out, to, &self, w.offset[2] + i * w.strides[2][0]);
            }
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

const pt_kernel pt_aten_masked_scatter_out = PT_KERNEL(masked_check_scatter, run_masked_scatter);

// ---- nonzero: (self, out): a row with the position of each element that is not 0

static int check_found(pt_context *c, const pt_tensor *self, pt_ref out_arg) {
    const pt_tensor out = pt_get_tensor(c, out_arg);
    if (!pt_dtype_in(self->dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, PT_REASON_DTYPE);
    }
    if (out.dtype != PT_DTYPE_LONG || out.rank != 2) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output must be int64 of 2 dims");
    }
    return PT_ERROR_OK;
}

static int check_nonzero(pt_context *c, const pt_ref *args) {
    const pt_tensor self = pt_get_tensor(c, args[NONZERO_SELF]);
    return check_found(c, &self, args[NONZERO_OUT]);
}

static bool is_nonzero(const pt_tensor *t, int32_t i) {
    return pt_is_floating(t->dtype) ? pt_load_double(t->data, i, t->dtype) != 0
                                    : pt_load_int(t->data, i, t->dtype) != 0;
}

static void store_position(const pt_tensor *out, int32_t row, const pt_tensor *self,
                           int32_t position) {
    int32_t strides[2];
    pt_strides(out, strides);
    for (uint32_t d = self->rank; d-- > 0;) {
        int32_t at = row * strides[0] + (int32_t)d * strides[1];
        ((int64_t *)out->data)[at] = position % self->sizes[d];
        position /= self->sizes[d];
    }
}

// Stores up to *rows rows; *rows becomes their number.
static int find_nonzero(pt_context *c, const pt_tensor *self, const pt_tensor *out, int32_t *rows) {
    pt_walk w;
    int32_t row = 0;
    walk_positions(&w, self->rank, self->sizes, 1, (const pt_tensor *const[]){self});
    do {
        for (int32_t i = 0; i < w.n; i++) {
            if (is_nonzero(self, w.offset[1] + i * w.strides[1][0])) {
                if (row < *rows) {
                    store_position(out, row, self, w.offset[0] + i * w.strides[0][0]);
                }
                row++;
            }
        }
    } while (pt_walk_next(c, &w));
    *rows = row;
    return w.error;
}

static int run_nonzero(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[NONZERO_SELF]);
    pt_tensor out = pt_get_tensor(c, args[NONZERO_OUT]);
    bool empty = pt_numel(&self) == 0;
    int32_t sizes[2] = {0, self.rank};
    PT_TRY(empty ? PT_ERROR_OK : find_nonzero(c, &self, &out, &sizes[0]));
    PT_TRY(pt_expect_sizes(c, args[NONZERO_OUT], 2, sizes));
    return empty ? PT_ERROR_OK : find_nonzero(c, &self, &out, &sizes[0]);
}

const pt_kernel pt_aten_nonzero_out = PT_KERNEL(check_nonzero, run_nonzero);

// ---- nonzero_static: (self, size, fill_value, out): `size` rows of nonzero; fill_value in missing
// rows

static int check_nonzero_static(pt_context *c, const pt_ref *args) {
    const pt_tensor self = pt_get_tensor(c, args[NONZERO_STATIC_SELF]);
    const int64_t size = pt_get_int(c, args[NONZERO_STATIC_SIZE]);
    PT_TRY(check_found(c, &self, args[NONZERO_STATIC_OUT]));
    if (size < 0 || size > INT32_MAX) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "size is not in 0..2^31 - 1");
    }
    return pt_expect_sizes(c, args[NONZERO_STATIC_OUT], 2,
                           (const int32_t[]){(int32_t)size, self.rank});
}

static int run_nonzero_static(pt_context *c, const pt_ref *args) {
    const pt_tensor self = pt_get_tensor(c, args[NONZERO_STATIC_SELF]);
    const pt_tensor out = pt_get_tensor(c, args[NONZERO_STATIC_OUT]);
    int32_t rows = out.sizes[0];
    pt_fill(out.data, pt_numel(&out), out.dtype, pt_get_scalar(c, args[NONZERO_STATIC_FILL_VALUE]));
    return pt_numel(&self) == 0 ? PT_ERROR_OK : find_nonzero(c, &self, &out, &rows);
}

const pt_kernel pt_aten_nonzero_static_out = PT_KERNEL(check_nonzero_static, run_nonzero_static);

// ---- repeat_interleave: (repeats, output_size, out): each index i, repeats[i] times

static int check_repeats(pt_context *c, const pt_ref *args) {
    pt_tensor repeats = pt_get_tensor(c, args[REPEAT_INTERLEAVE_TENSOR_REPEATS]);
    pt_tensor out = pt_get_tensor(c, args[REPEAT_INTERLEAVE_TENSOR_OUT]);
    if (repeats.dtype != PT_DTYPE_INT && repeats.dtype != PT_DTYPE_LONG) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "repeats must be int64 or int32");
    }
    if (repeats.rank != 1 || out.rank != 1) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "repeats and output must have 1 dim");
    }
    return pt_check_same_dtype(c, &out, &repeats);
}

static int count_repeats(pt_context *c, const pt_tensor *repeats, int32_t *n) {
    int64_t sum = 0;
    for (int32_t i = 0; i < repeats->sizes[0]; i++) {
        PT_TRY(pt_count_work(c, 1));
        int64_t times = pt_load_int(repeats->data, i, repeats->dtype);
        if (times < 0 || times > INT32_MAX - sum) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a repeat is out of range");
        }
        sum += times;
    }
    *n = (int32_t)sum;
    return PT_ERROR_OK;
}

static int run_repeats(pt_context *c, const pt_ref *args) {
    pt_tensor repeats = pt_get_tensor(c, args[REPEAT_INTERLEAVE_TENSOR_REPEATS]);
    pt_tensor out = pt_get_tensor(c, args[REPEAT_INTERLEAVE_TENSOR_OUT]);
    int32_t n = 0, to = 0;
    PT_TRY(count_repeats(c, &repeats, &n));
    if (!pt_is_none(args[REPEAT_INTERLEAVE_TENSOR_OUTPUT_SIZE]) &&
        pt_get_int(c, args[REPEAT_INTERLEAVE_TENSOR_OUTPUT_SIZE]) != n) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "output_size is not the sum of the repeats");
    }
    PT_TRY(pt_expect_sizes(c, args[REPEAT_INTERLEAVE_TENSOR_OUT], 1, &n));
    PT_TRY(pt_check_apart(c, &out, &repeats));
    for (int32_t i = 0; i < repeats.sizes[0]; i++) {
        PT_TRY(pt_count_work(c, 1));
        for (int64_t k = pt_load_int(repeats.data, i, repeats.dtype); k > 0; k--) {
            PT_TRY(pt_count_work(c, 1));
            pt_store_int(out.data, to++, out.dtype, i);
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_repeat_interleave_Tensor_out = PT_KERNEL(check_repeats, run_repeats);
