// Copies of whole tensors: to another dtype, dim order or shape, or broadcast.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/copy.h"

static int check_copy(pt_context *c, pt_ref from_arg, pt_ref to_arg) {
    pt_tensor from = pt_get_tensor(c, from_arg);
    pt_tensor to = pt_get_tensor(c, to_arg);
    PT_TRY(pt_check_copy(c, &to, &from));
    return pt_expect_sizes(c, to_arg, from.rank, from.sizes);
}

static int run_copy(pt_context *c, pt_ref from_arg, pt_ref to_arg) {
    pt_tensor from = pt_get_tensor(c, from_arg);
    pt_tensor to = pt_get_tensor(c, to_arg);
    return pt_convert_broadcast(c, &to, &from);
}

static int run_same_dtype(pt_context *c, pt_ref from_arg, pt_ref to_arg) {
    pt_tensor from = pt_get_tensor(c, from_arg);
    pt_tensor to = pt_get_tensor(c, to_arg);
    return pt_copy_broadcast(c, &to, &from);
}

static int check_same_dtype(pt_context *c, pt_ref from_arg, pt_ref to_arg) {
    pt_tensor from = pt_get_tensor(c, from_arg);
    pt_tensor to = pt_get_tensor(c, to_arg);
    PT_TRY(pt_check_same_dtype(c, &to, &from));
    return pt_expect_sizes(c, to_arg, from.rank, from.sizes);
}

// alias_copy, detach_copy, lift_fresh_copy: (self, out)
static int alias_copy_check(pt_context *c, const pt_ref *args) {
    return check_same_dtype(c, args[ALIAS_COPY_SELF], args[ALIAS_COPY_OUT]);
}

static int alias_copy_run(pt_context *c, const pt_ref *args) {
    return run_same_dtype(c, args[ALIAS_COPY_SELF], args[ALIAS_COPY_OUT]);
}

const pt_kernel pt_aten_alias_copy_out = PT_KERNEL(alias_copy_check, alias_copy_run);

// clone: (self, memory_format, out); the output's dim order decides
static int clone_check(pt_context *c, const pt_ref *args) {
    return check_same_dtype(c, args[CLONE_SELF], args[CLONE_OUT]);
}

static int clone_run(pt_context *c, const pt_ref *args) {
    return run_same_dtype(c, args[CLONE_SELF], args[CLONE_OUT]);
}

const pt_kernel pt_aten_clone_out = PT_KERNEL(clone_check, clone_run);

// _to_copy: (self, non_blocking, memory_format, out)
static int to_copy_check(pt_context *c, const pt_ref *args) {
    return check_copy(c, args[TO_COPY_SELF], args[TO_COPY_OUT]);
}

static int to_copy_run(pt_context *c, const pt_ref *args) {
    return run_copy(c, args[TO_COPY_SELF], args[TO_COPY_OUT]);
}

const pt_kernel pt_aten__to_copy_out = PT_KERNEL(to_copy_check, to_copy_run);

// _clone_dim_order, _to_dim_order_copy: (self, non_blocking, dim_order, out)
int pt_check_dim_order(pt_context *c, pt_ref list, pt_ref to_arg) {
    if (pt_is_none(list)) {
        return PT_ERROR_OK;
    }
    pt_tensor to = pt_get_tensor(c, to_arg);
    bool same = pt_list_length(c, list) == to.rank;
    for (uint32_t d = 0; same && d < to.rank; d++) {
        same = pt_list_int(c, list, d) == to.dim_order[d];
    }
    return same ? PT_ERROR_OK
                : pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output must have the given dim order");
}

static int to_dim_order_copy_check(pt_context *c, const pt_ref *args) {
    PT_TRY(check_copy(c, args[TO_DIM_ORDER_COPY_SELF], args[TO_DIM_ORDER_COPY_OUT]));
    return pt_check_dim_order(c, args[TO_DIM_ORDER_COPY_DIM_ORDER], args[TO_DIM_ORDER_COPY_OUT]);
}

static int clone_dim_order_check(pt_context *c, const pt_ref *args) {
    PT_TRY(check_same_dtype(c, args[CLONE_DIM_ORDER_SELF], args[CLONE_DIM_ORDER_OUT]));
    return pt_check_dim_order(c, args[CLONE_DIM_ORDER_DIM_ORDER], args[CLONE_DIM_ORDER_OUT]);
}

// Also expand_copy: (self, size, implicit, out)
static int same_dtype_run(pt_context *c, const pt_ref *args) {
    return run_same_dtype(c, args[CLONE_DIM_ORDER_SELF], args[CLONE_DIM_ORDER_OUT]);
}

const pt_kernel pt_dim_order_ops__to_dim_order_copy_out =
    PT_KERNEL(to_dim_order_copy_check, to_copy_run);
const pt_kernel pt_dim_order_ops__clone_dim_order_out =
    PT_KERNEL(clone_dim_order_check, same_dtype_run);

// copy: (self, src, non_blocking, out); copy_: (self, src, non_blocking). src is broadcast.
static int check_copy_from(pt_context *c, const pt_tensor *to, pt_ref from_arg) {
    pt_tensor from = pt_get_tensor(c, from_arg);
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank = 0;
    pt_tensor target = {.sizes = sizes};
    if (!pt_broadcast(sizes, &rank, to) || !pt_broadcast(sizes, &rank, &from)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "src does not broadcast to self");
    }
    target.rank = (uint8_t)rank;
    if (!pt_same_sizes(&target, to)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "src does not broadcast to self");
    }
    return pt_check_copy(c, to, &from);
}

static int copy_check(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[COPY_SELF]);
    pt_tensor out = pt_get_tensor(c, args[COPY_OUT]);
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    PT_TRY(check_copy_from(c, &self, args[COPY_SRC]));
    return pt_expect_sizes(c, args[COPY_OUT], self.rank, self.sizes);
}

static int copy_run(pt_context *c, const pt_ref *args) {
    return run_copy(c, args[COPY_SRC], args[COPY_OUT]);
}

static int copy_in_place_check(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[COPY__SELF]);
    return check_copy_from(c, &self, args[COPY__SRC]);
}

static int copy_in_place_run(pt_context *c, const pt_ref *args) {
    return run_copy(c, args[COPY__SRC], args[COPY__SELF]);
}

const pt_kernel pt_aten_copy_out = PT_KERNEL(copy_check, copy_run);
const pt_kernel pt_aten_copy_ = PT_KERNEL(copy_in_place_check, copy_in_place_run);

// expand_copy: (self, size, implicit, out); -1 keeps a size
static int expand_copy_check(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[EXPAND_COPY_SELF]);
    pt_tensor out = pt_get_tensor(c, args[EXPAND_COPY_OUT]);
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank;
    PT_TRY(pt_read_sizes(c, args[EXPAND_COPY_SIZE], -1, &rank, sizes));
    if (rank < self.rank) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "fewer sizes than dims");
    }
    for (uint32_t d = 0; d < rank; d++) {
        bool is_new = d < rank - self.rank;
        int32_t size = is_new ? 1 : self.sizes[d - (rank - self.rank)];
        if (sizes[d] < 0 && !is_new) {
            sizes[d] = size;
        }
        if (sizes[d] < 0 || (size != 1 && sizes[d] != size)) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a dim does not expand to the given size");
        }
    }
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    return pt_expect_sizes(c, args[EXPAND_COPY_OUT], rank, sizes);
}

const pt_kernel pt_aten_expand_copy_out = PT_KERNEL(expand_copy_check, same_dtype_run);
