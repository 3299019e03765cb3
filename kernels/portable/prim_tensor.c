// executorch_prim:: operators on tensors: a view that shares its source's data, and the copy of a
// slice that builds the result of a loop.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include <string.h>

// et_view: (self, size, out). The view shares the data since load; the run sets the view's sizes.
static int et_view_check(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[ET_VIEW_SELF]);
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank;
    PT_TRY(pt_read_view_sizes(c, args[ET_VIEW_SIZE], &self, &rank, sizes));
    return pt_expect_sizes(c, args[ET_VIEW_OUT], rank, sizes);
}

static int et_view_run(pt_context *c, const pt_ref *args) {
    (void)c;
    (void)args;
    return PT_ERROR_OK;
}

const pt_kernel pt_executorch_prim_et_view_default = PT_KERNEL(et_view_check, et_view_run);

// True if `slice` has the dims of `whole` except the first, in the same order.
static bool is_slice(const pt_tensor *whole, const pt_tensor *slice) {
    bool is_slice = whole->rank == slice->rank + 1u && whole->dim_order[0] == 0;
    for (uint32_t i = 0; is_slice && i < slice->rank; i++) {
        is_slice = whole->dim_order[i + 1] == slice->dim_order[i] + 1;
    }
    return is_slice;
}

// et_copy_index: copy_to[index] = copy_from, (copy_to, copy_from, index). A dynamic copy_to has as
// many slices as a loop from index 0 on has written.
static int et_copy_index_check(pt_context *c, const pt_ref *args) {
    pt_tensor to = pt_get_tensor(c, args[ET_COPY_INDEX_TENSOR_COPY_TO]);
    pt_tensor from = pt_get_tensor(c, args[ET_COPY_INDEX_TENSOR_COPY_FROM]);
    int64_t index = pt_get_int(c, args[ET_COPY_INDEX_TENSOR_INDEX]);
    if (to.dtype != from.dtype || !is_slice(&to, &from)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the source is not a slice of the output");
    }
    if (index < 0 || index >= INT32_MAX) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "there is no such index");
    }
    int32_t sizes[PT_MAX_RANK];
    bool is_new = index == 0 && to.flags & PT_VALUE_DYNAMIC;
    sizes[0] = !is_new && to.sizes[0] > index ? to.sizes[0] : (int32_t)index + 1;
    memcpy(sizes + 1, from.sizes, from.rank * sizeof(*sizes));
    return pt_expect_sizes(c, args[ET_COPY_INDEX_TENSOR_COPY_TO], to.rank, sizes);
}

static int et_copy_index_run(pt_context *c, const pt_ref *args) {
    pt_tensor to = pt_get_tensor(c, args[ET_COPY_INDEX_TENSOR_COPY_TO]);
    pt_tensor from = pt_get_tensor(c, args[ET_COPY_INDEX_TENSOR_COPY_FROM]);
    size_t nbytes = pt_nbytes(&from);
    if (nbytes > 0) {
        memmove((uint8_t *)to.data +
                    (size_t)pt_get_int(c, args[ET_COPY_INDEX_TENSOR_INDEX]) * nbytes,
                from.data, nbytes);
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_executorch_prim_et_copy_index_tensor =
    PT_KERNEL(et_copy_index_check, et_copy_index_run);
