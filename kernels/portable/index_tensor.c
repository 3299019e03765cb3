// index.Tensor: (self, indices, out)
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/copy.h"
#include "portable/index_select.h"

static int expect_selected(pt_context *c, const pt_ref *args, const pt_tensor *self,
                           const pt_index_selection *p) {
    int32_t sizes[2 * PT_MAX_RANK];
    uint32_t rank = pt_selected_sizes(p, self, sizes);
    return pt_expect_sizes(c, args[INDEX_TENSOR_OUT], rank, sizes);
}

static int index_tensor_check(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[INDEX_TENSOR_SELF]);
    pt_tensor out = pt_get_tensor(c, args[INDEX_TENSOR_OUT]);
    pt_index_selection p;
    PT_TRY(pt_read_selection(c, &self, args[INDEX_TENSOR_INDICES], &p));
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    return p.has_masks ? PT_ERROR_OK : expect_selected(c, args, &self, &p);
}

// Copies the elements of self that position `at` of the broadcast indices selects.
static int copy_selected(pt_context *c, const pt_ref *args, const pt_index_selection *p,
                         int32_t at) {
    pt_tensor self = pt_get_tensor(c, args[INDEX_TENSOR_SELF]);
    pt_tensor out = pt_get_tensor(c, args[INDEX_TENSOR_OUT]);
    pt_walk w;
    int32_t *to = w.strides[2], *from = w.strides[3]; // of operands that are not used
    uint32_t kept = 0;
    pt_strides(&out, to);
    pt_strides(&self, from);
    w.operands = 2;
    w.offset[0] = pt_selected_offset(p, to, at);
    w.offset[1] = pt_select_offset(c, p, args[INDEX_TENSOR_INDICES], &self, from, at);
    for (uint32_t d = 0; d < self.rank; d++) {
        if ((p->dims >> d & 1) == 0) {
            w.sizes[kept] = self.sizes[d];
            w.strides[0][kept] = to[pt_selected_dim(p, kept)];
            w.strides[1][kept++] = from[d];
        }
    }
    w.rank = (uint8_t)kept;
    return pt_copy_run(c, &w, &out, &self);
}

static int index_tensor_run(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[INDEX_TENSOR_SELF]);
    pt_tensor out = pt_get_tensor(c, args[INDEX_TENSOR_OUT]);
    pt_index_selection p;
    PT_TRY(pt_find_selection(c, &self, args[INDEX_TENSOR_INDICES], &out, &p));
    if (p.has_masks) {
        PT_TRY(expect_selected(c, args, &self, &p));
    }
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    int32_t n = (int32_t)pt_product(p.sizes, p.rank);
    for (int32_t at = 0; at < n; at++) {
        PT_TRY(copy_selected(c, args, &p, at));
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_index_Tensor_out = PT_KERNEL(index_tensor_check, index_tensor_run);
