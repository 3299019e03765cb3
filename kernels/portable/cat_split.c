// Operators that copy parts of a tensor along one dim, or put a tensor together from such parts.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/copy.h"

// ---- parts out of a tensor

// Computes the sizes of part `s` of self; returns its rank.
static uint32_t part_sizes(const pt_tensor *self, const pt_section *s, int32_t *sizes) {
    uint32_t rank = 0;
    for (uint32_t d = 0; d < self->rank; d++) {
        if (d != s->dim) {
            sizes[rank++] = self->sizes[d];
        } else if (!s->drop) {
            sizes[rank++] = s->count;
        }
    }
    return rank;
}

// Checks the output for part `s` of self: its sizes and dtype.
static int check_part(pt_context *c, const pt_tensor *self, const pt_section *s, pt_ref out_arg) {
    pt_tensor out = pt_get_tensor(c, out_arg);
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank = part_sizes(self, s, sizes);
    PT_TRY(pt_check_same_dtype(c, &out, self));
    return pt_expect_sizes(c, out_arg, rank, sizes);
}

static int copy_part(pt_context *c, const pt_tensor *self, const pt_section *s, pt_ref out_arg) {
    pt_tensor out = pt_get_tensor(c, out_arg);
    return pt_copy_section(c, &out, self, s);
}

// Reads a dim of a tensor that is not 0-d.
static int read_dim(pt_context *c, pt_ref dim, const pt_tensor *self, pt_section *s) {
    if (self->rank == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a 0-d tensor has no parts");
    }
    return pt_read_dim(c, pt_get_int(c, dim), self->rank, &s->dim);
}

// Positions of arguments behind the dim.
enum {
    INDEX = SELECT_COPY_INT_INDEX - SELECT_COPY_INT_DIM,
    START = SLICE_COPY_TENSOR_START - SLICE_COPY_TENSOR_DIM,
    END = SLICE_COPY_TENSOR_END - SLICE_COPY_TENSOR_DIM,
    STEP = SLICE_COPY_TENSOR_STEP - SLICE_COPY_TENSOR_DIM,
    NARROW_START = NARROW_COPY_START - NARROW_COPY_DIM,
    NARROW_LENGTH = NARROW_COPY_LENGTH - NARROW_COPY_DIM,
};

// select: (dim, index); drops the dim.
static int read_select(pt_context *c, const pt_tensor *self, const pt_ref *args, pt_section *s) {
    PT_TRY(read_dim(c, *args, self, s));
    int64_t index = pt_get_int(c, args[INDEX]);
    int32_t size = self->sizes[s->dim];
    if (index < -size || index >= size) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "index is out of range");
    }
    s->start = (int32_t)(index < 0 ? index + size : index);
    s->count = s->step = 1;
    s->drop = true;
    return PT_ERROR_OK;
}

// Counts a bound of a slice from the end if it is negative, and moves it into 0..size.
static int32_t slice_bound(const pt_context *c, pt_ref arg, int32_t if_none, int32_t size) {
    if (pt_is_none(arg)) {
        return if_none;
    }
    int64_t bound = pt_get_int(c, arg);
    bound = bound < 0 ? bound + size : bound;
    return bound < 0 ? 0 : bound > size ? size : (int32_t)bound;
}

// slice: (dim, start, end, step)
static int read_slice(pt_context *c, const pt_tensor *self, const pt_ref *args, pt_section *s) {
    PT_TRY(read_dim(c, *args, self, s));
    int64_t step = pt_get_int(c, args[STEP]);
    if (step < 1) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "step must be positive");
    }
    int32_t size = self->sizes[s->dim];
    int32_t end = slice_bound(c, args[END], size, size);
    s->start = slice_bound(c, args[START], 0, size);
    s->step = step < size ? (int32_t)step : size;
    s->count = s->start < end ? (end - s->start - 1) / s->step + 1 : 0;
    s->drop = false;
    return PT_ERROR_OK;
}

// narrow: (dim, start, length)
static int read_narrow(pt_context *c, const pt_tensor *self, const pt_ref *args, pt_section *s) {
    PT_TRY(read_dim(c, *args, self, s));
    int32_t size = self->sizes[s->dim];
    int64_t start = pt_get_int(c, args[NARROW_START]), length = pt_get_int(c, args[NARROW_LENGTH]);
    if (start < -size || start > size) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "start is out of range");
    }
    start = start < 0 ? start + size : start;
    if (length < 0 || length > size - start) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "length is out of range");
    }
    s->start = (int32_t)start;
    s->count = (int32_t)length;
    s->step = 1;
    s->drop = false;
    return PT_ERROR_OK;
}

typedef int read_section(pt_context *c, const pt_tensor *self, const pt_ref *args, pt_section *s);

// (self, arguments of `read`, out)
static int check_part_of(pt_context *c, const pt_ref *args, read_section *read, pt_ref out) {
    pt_tensor self = pt_get_tensor(c, args[SELECT_COPY_INT_SELF]);
    pt_section s;
    PT_TRY(read(c, &self, args + SELECT_COPY_INT_DIM, &s));
    return check_part(c, &self, &s, out);
}

static int run_part_of(pt_context *c, const pt_ref *args, read_section *read, pt_ref out) {
    pt_tensor self = pt_get_tensor(c, args[SELECT_COPY_INT_SELF]);
    pt_section s;
    PT_TRY(read(c, &self, args + SELECT_COPY_INT_DIM, &s));
    return copy_part(c, &self, &s, out);
}

static int select_check(pt_context *c, const pt_ref *args) {
    return check_part_of(c, args, read_select, args[SELECT_COPY_INT_OUT]);
}

static int select_run(pt_context *c, const pt_ref *args) {
    return run_part_of(c, args, read_select, args[SELECT_COPY_INT_OUT]);
}

const pt_kernel pt_aten_select_copy_int_out = PT_KERNEL(select_check, select_run);

static int slice_check(pt_context *c, const pt_ref *args) {
    return check_part_of(c, args, read_slice, args[SLICE_COPY_TENSOR_OUT]);
}

static int slice_run(pt_context *c, const pt_ref *args) {
    return run_part_of(c, args, read_slice, args[SLICE_COPY_TENSOR_OUT]);
}

const pt_kernel pt_aten_slice_copy_Tensor_out = PT_KERNEL(slice_check, slice_run);

static int narrow_check(pt_context *c, const pt_ref *args) {
    return check_part_of(c, args, read_narrow, args[NARROW_COPY_OUT]);
}

static int narrow_run(pt_context *c, const pt_ref *args) {
    return run_part_of(c, args, read_narrow, args[NARROW_COPY_OUT]);
}

const pt_kernel pt_aten_narrow_copy_out = PT_KERNEL(narrow_check, narrow_run);

// ---- a tensor with a part replaced: (self, src, arguments of `read`, out)

static int check_replaced(pt_context *c, const pt_ref *args, read_section *read, pt_ref out_arg) {
    pt_tensor self = pt_get_tensor(c, args[SELECT_SCATTER_SELF]);
    pt_tensor src = pt_get_tensor(c, args[SELECT_SCATTER_SRC]);
    pt_tensor out = pt_get_tensor(c, out_arg);
    pt_section s;
    PT_TRY(read(c, &self, args + SELECT_SCATTER_DIM, &s));
    int32_t sizes[PT_MAX_RANK];
    pt_tensor part = {.sizes = sizes, .rank = (uint8_t)part_sizes(&self, &s, sizes)};
    if (src.dtype != self.dtype || !pt_same_sizes(&src, &part)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "src must have dtype and sizes of the part");
    }
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    return pt_expect_sizes(c, out_arg, self.rank, self.sizes);
}

static int run_replaced(pt_context *c, const pt_ref *args, read_section *read, pt_ref out_arg) {
    pt_tensor self = pt_get_tensor(c, args[SELECT_SCATTER_SELF]);
    pt_tensor src = pt_get_tensor(c, args[SELECT_SCATTER_SRC]);
    pt_tensor out = pt_get_tensor(c, out_arg);
    pt_section s;
    PT_TRY(read(c, &self, args + SELECT_SCATTER_DIM, &s));
    PT_TRY(pt_copy_broadcast(c, &out, &self));
    return pt_copy_to_section(c, &out, &s, &src);
}

static int select_scatter_check(pt_context *c, const pt_ref *args) {
    return check_replaced(c, args, read_select, args[SELECT_SCATTER_OUT]);
}

static int select_scatter_run(pt_context *c, const pt_ref *args) {
    return run_replaced(c, args, read_select, args[SELECT_SCATTER_OUT]);
}

const pt_kernel pt_aten_select_scatter_out = PT_KERNEL(select_scatter_check, select_scatter_run);

static int slice_scatter_check(pt_context *c, const pt_ref *args) {
    return check_replaced(c, args, read_slice, args[SLICE_SCATTER_OUT]);
}

static int slice_scatter_run(pt_context *c, const pt_ref *args) {
    return run_replaced(c, args, read_slice, args[SLICE_SCATTER_OUT]);
}

const pt_kernel pt_aten_slice_scatter_out = PT_KERNEL(slice_scatter_check, slice_scatter_run);

// ---- a tensor cut into parts: split_copy, split_with_sizes_copy, unbind_copy

static const char WRONG_PARTS[] = "the outputs are not as many as the parts";

static int check_split(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[SPLIT_COPY_TENSOR_SELF]);
    pt_section s = {.step = 1};
    PT_TRY(read_dim(c, args[SPLIT_COPY_TENSOR_DIM], &self, &s));
    int64_t split = pt_get_int(c, args[SPLIT_COPY_TENSOR_SPLIT_SIZE]);
    int32_t left = self.sizes[s.dim];
    if (split < 0 || (split == 0 && left != 0)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "split_size must be positive");
    }
    uint32_t n = pt_list_length(c, args[SPLIT_COPY_TENSOR_OUT]);
    int64_t expected = split == 0 || left == 0 ? 1 : (left - 1) / split + 1;
    if (n != expected) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, WRONG_PARTS);
    }
    for (uint32_t i = 0; i < n; i++, left -= s.count) {
        s.count = split < left ? (int32_t)split : left;
        PT_TRY(check_part(c, &self, &s, pt_list_item(c, args[SPLIT_COPY_TENSOR_OUT], i)));
    }
    return PT_ERROR_OK;
}

static int check_split_with_sizes(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[SPLIT_WITH_SIZES_COPY_SELF]);
    pt_section s = {.step = 1};
    PT_TRY(read_dim(c, args[SPLIT_WITH_SIZES_COPY_DIM], &self, &s));
    uint32_t n = pt_list_length(c, args[SPLIT_WITH_SIZES_COPY_SPLIT_SIZES]);
    if (n != pt_list_length(c, args[SPLIT_WITH_SIZES_COPY_OUT])) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, WRONG_PARTS);
    }
    int32_t left = self.sizes[s.dim];
    for (uint32_t i = 0; i < n; i++, left -= s.count) {
        int64_t count = pt_list_int(c, args[SPLIT_WITH_SIZES_COPY_SPLIT_SIZES], i);
        if (count < 0 || count > left) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the parts are larger than the dim");
        }
        s.count = (int32_t)count;
        PT_TRY(check_part(c, &self, &s, pt_list_item(c, args[SPLIT_WITH_SIZES_COPY_OUT], i)));
    }
    return left == 0 ? PT_ERROR_OK
                     : pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the parts are smaller than the dim");
}

static int check_unbind(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[UNBIND_COPY_INT_SELF]);
    pt_section s = {.count = 1, .step = 1, .drop = true};
    PT_TRY(read_dim(c, args[UNBIND_COPY_INT_DIM], &self, &s));
    uint32_t n = pt_list_length(c, args[UNBIND_COPY_INT_OUT]);
    if (n != (uint32_t)self.sizes[s.dim]) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, WRONG_PARTS);
    }
    for (uint32_t i = 0; i < n; i++) {
        PT_TRY(check_part(c, &self, &s, pt_list_item(c, args[UNBIND_COPY_INT_OUT], i)));
    }
    return PT_ERROR_OK;
}

// Rejects an output that is listed twice. It has the sizes of its last part, so the parts would
// reach beyond self.
static int check_parts(pt_context *c, const pt_tensor *self, uint32_t dim, pt_ref outs) {
    int64_t left = self->sizes[dim];
    for (uint32_t i = 0; i < pt_list_length(c, outs); i++) {
        left -= pt_get_tensor(c, pt_list_item(c, outs, i)).sizes[dim];
    }
    return left >= 0 ? PT_ERROR_OK
                     : pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "an output is given for two parts");
}

// Copies self to the outputs of the list, part by part along the dim.
static int run_split(pt_context *c, pt_ref self_arg, pt_ref dim, pt_ref outs, bool drop) {
    pt_tensor self = pt_get_tensor(c, self_arg);
    pt_section s = {.step = 1, .drop = drop};
    PT_TRY(read_dim(c, dim, &self, &s));
    PT_TRY(drop ? PT_ERROR_OK : check_parts(c, &self, s.dim, outs));
    uint32_t n = pt_list_length(c, outs);
    for (uint32_t i = 0; i < n; i++, s.start += s.count) {
        pt_tensor out = pt_get_tensor(c, pt_list_item(c, outs, i));
        s.count = drop ? 1 : out.sizes[s.dim];
        PT_TRY(pt_copy_section(c, &out, &self, &s));
    }
    return PT_ERROR_OK;
}

static int split_run(pt_context *c, const pt_ref *args) {
    return run_split(c, args[SPLIT_COPY_TENSOR_SELF], args[SPLIT_COPY_TENSOR_DIM],
                     args[SPLIT_COPY_TENSOR_OUT], false);
}

static int unbind_run(pt_context *c, const pt_ref *args) {
    return run_split(c, args[UNBIND_COPY_INT_SELF], args[UNBIND_COPY_INT_DIM],
                     args[UNBIND_COPY_INT_OUT], true);
}

const pt_kernel pt_aten_split_copy_Tensor_out = PT_KERNEL(check_split, split_run);
const pt_kernel pt_aten_split_with_sizes_copy_out = PT_KERNEL(check_split_with_sizes, split_run);
const pt_kernel pt_aten_unbind_copy_int_out = PT_KERNEL(check_unbind, unbind_run);

// ---- a tensor of parts: (tensors, dim, out)

// cat skips 1-d tensors without elements, whatever the sizes of the other tensors.
static bool is_empty_1d(const pt_tensor *t) {
    return t->rank == 1 && t->sizes[0] == 0;
}

static int check_cat(pt_context *c, const pt_ref *args) {
    pt_tensor out = pt_get_tensor(c, args[CAT_OUT]);
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank = 0, dim = 0, n = pt_list_length(c, args[CAT_TENSORS]);
    int64_t total = 0;
    if (n == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "no tensors to join");
    }
    for (uint32_t i = 0; i < n; i++) {
        pt_tensor t = pt_get_tensor(c, pt_list_item(c, args[CAT_TENSORS], i));
        PT_TRY(pt_check_copy(c, &out, &t));
        if (is_empty_1d(&t)) {
            continue;
        }
        if (t.rank == 0) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a 0-d tensor cannot be joined");
        }
        if (rank == 0) {
            rank = t.rank;
            PT_TRY(pt_read_dim(c, pt_get_int(c, args[CAT_DIM]), rank, &dim));
            for (uint32_t d = 0; d < rank; d++) {
                sizes[d] = t.sizes[d];
            }
        }
        bool fits = t.rank == rank;
        for (uint32_t d = 0; fits && d < rank; d++) {
            fits = d == dim || t.sizes[d] == sizes[d];
        }
        if (!fits) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the tensors differ outside the dim");
        }
        total += t.sizes[dim];
    }
    if (rank == 0) {
        rank = 1;
        PT_TRY(pt_read_dim(c, pt_get_int(c, args[CAT_DIM]), rank, &dim));
    }
    if (total > INT32_MAX) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the dim becomes too large");
    }
    sizes[dim] = (int32_t)total;
    return pt_expect_sizes(c, args[CAT_OUT], rank, sizes);
}

static int run_cat(pt_context *c, const pt_ref *args) {
    pt_tensor out = pt_get_tensor(c, args[CAT_OUT]);
    pt_section s = {.step = 1};
    PT_TRY(read_dim(c, args[CAT_DIM], &out, &s));
    uint32_t n = pt_list_length(c, args[CAT_TENSORS]);
    for (uint32_t i = 0; i < n; i++) {
        pt_tensor t = pt_get_tensor(c, pt_list_item(c, args[CAT_TENSORS], i));
        if (!is_empty_1d(&t)) {
            s.count = t.sizes[s.dim];
            PT_TRY(pt_convert_to_section(c, &out, &s, &t));
            s.start += s.count;
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_cat_out = PT_KERNEL(check_cat, run_cat);

static int check_stack(pt_context *c, const pt_ref *args) {
    pt_tensor out = pt_get_tensor(c, args[STACK_OUT]);
    uint32_t dim, n = pt_list_length(c, args[STACK_TENSORS]);
    if (n == 0 || n > INT32_MAX) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "no tensors to join");
    }
    pt_tensor first = pt_get_tensor(c, pt_list_item(c, args[STACK_TENSORS], 0));
    if (first.rank == PT_MAX_RANK) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "more than 16 dims");
    }
    PT_TRY(pt_read_dim(c, pt_get_int(c, args[STACK_DIM]), first.rank + 1u, &dim));
    for (uint32_t i = 0; i < n; i++) {
        pt_tensor t = pt_get_tensor(c, pt_list_item(c, args[STACK_TENSORS], i));
        PT_TRY(pt_same_sizes(&t, &first)
                   ? pt_check_copy(c, &out, &t)
                   : pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the tensors differ in sizes"));
    }
    int32_t sizes[PT_MAX_RANK];
    for (uint32_t d = 0; d <= first.rank; d++) {
        sizes[d] = d == dim ? (int32_t)n : first.sizes[d < dim ? d : d - 1];
    }
    return pt_expect_sizes(c, args[STACK_OUT], first.rank + 1u, sizes);
}

static int run_stack(pt_context *c, const pt_ref *args) {
    pt_tensor out = pt_get_tensor(c, args[STACK_OUT]);
    pt_section s = {.count = 1, .step = 1, .drop = true};
    PT_TRY(read_dim(c, args[STACK_DIM], &out, &s));
    uint32_t n = pt_list_length(c, args[STACK_TENSORS]);
    for (; s.start < (int32_t)n; s.start++) {
        pt_tensor t = pt_get_tensor(c, pt_list_item(c, args[STACK_TENSORS], (uint32_t)s.start));
        PT_TRY(pt_convert_to_section(c, &out, &s, &t));
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_stack_out = PT_KERNEL(check_stack, run_stack);
