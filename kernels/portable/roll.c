// roll: (self, shifts, dims, out). Elements that leave a dim at its end reappear at its start.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/copy.h"
#include <string.h>

// The shift of each dim, from 0 to less than its size. Without dims the tensor is flattened, and
// its shift is shifts[0].
static int read_shifts(pt_context *c, const pt_ref *args, const pt_tensor *self, int32_t *shifts) {
    uint32_t n = pt_list_length(c, args[ROLL_SHIFTS]), dim;
    if (n == 0 || pt_list_length(c, args[ROLL_DIMS]) != n) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "shifts must be as many as dims");
    }
    for (uint32_t d = 0; d < self->rank; d++) {
        shifts[d] = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        PT_TRY(pt_read_dim(c, pt_list_int(c, args[ROLL_DIMS], i), self->rank, &dim));
        int32_t size = self->rank == 0 ? 0 : self->sizes[dim];
        if (size > 0) {
            int64_t shift = (shifts[dim] + pt_list_int(c, args[ROLL_SHIFTS], i) % size) % size;
            shifts[dim] = (int32_t)(shift < 0 ? shift + size : shift);
        }
    }
    return PT_ERROR_OK;
}

static bool is_flat(const pt_context *c, const pt_ref *args) {
    return pt_list_length(c, args[ROLL_DIMS]) == 0;
}

static int check_roll(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[ROLL_SELF]);
    pt_tensor out = pt_get_tensor(c, args[ROLL_OUT]);
    int32_t shifts[PT_MAX_RANK];
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    if (is_flat(c, args)) {
        if (pt_list_length(c, args[ROLL_SHIFTS]) != 1) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "shifts must be as many as dims, or one");
        }
        if (!(self.flags & out.flags & PT_VALUE_CONTIGUOUS)) {
            return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "without dims tensors must be contiguous");
        }
    } else {
        PT_TRY(read_shifts(c, args, &self, shifts));
    }
    return pt_expect_sizes(c, args[ROLL_OUT], self.rank, self.sizes);
}

static void roll_flat(const pt_tensor *out, const pt_tensor *self, int64_t shift) {
    int32_t n = pt_numel(self);
    shift %= n;
    size_t size = pt_element_size(self->dtype), first = (size_t)(shift < 0 ? shift + n : shift);
    memmove((char *)out->data + first * size, self->data, ((size_t)n - first) * size);
    memmove(out->data, (const char *)self->data + ((size_t)n - first) * size, first * size);
}

// Copies the part in which the dims of the set `wraps` wrap around.
static int roll_part(pt_context *c, const pt_tensor *out, const pt_tensor *self,
                     const int32_t *shifts, uint32_t wraps) {
    pt_walk w;
    pt_copy_start(&w, out, self);
    for (uint32_t d = 0; d < self->rank; d++) {
        int32_t rest = self->sizes[d] - shifts[d];
        if (wraps >> d & 1) {
            w.sizes[d] = shifts[d];
            w.offset[1] += rest * w.strides[1][d];
        } else {
            w.sizes[d] = rest;
            w.offset[0] += shifts[d] * w.strides[0][d];
        }
    }
    return pt_copy_run(c, &w, out, self);
}

static int run_roll(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[ROLL_SELF]);
    pt_tensor out = pt_get_tensor(c, args[ROLL_OUT]);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    if (is_flat(c, args)) {
        roll_flat(&out, &self, pt_list_int(c, args[ROLL_SHIFTS], 0));
        return PT_ERROR_OK;
    }
    int32_t shifts[PT_MAX_RANK];
    PT_TRY(read_shifts(c, args, &self, shifts));
    uint32_t moving = 0;
    for (uint32_t d = 0; d < self.rank; d++) {
        moving |= (uint32_t)(shifts[d] != 0) << d;
    }
    // Copy a part for each subset of the shifted dims
    for (uint32_t wraps = moving;; wraps = (wraps - 1) & moving) {
        PT_TRY(roll_part(c, &out, &self, shifts, wraps));
        if (wraps == 0) {
            return PT_ERROR_OK;
        }
    }
}

const pt_kernel pt_aten_roll_out = PT_KERNEL(check_roll, run_roll);
