// Padding with the tensor's own elements: replication_pad and reflection_pad in one to three dims.
// Negative padding crops.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/copy.h"
#include <string.h>

// The arguments (self, padding, out). padding has the elements before and behind each dim, from the
// last dim on.
typedef struct edges {
    uint32_t dims; // padded dims, the last ones
    bool reflects; // if false, repeats the outermost element
} edges;

static int check_edge_pad(pt_context *c, const pt_ref *args, edges e) {
    pt_tensor self = pt_get_tensor(c, args[REPLICATION_PAD1D_SELF]);
    pt_tensor out = pt_get_tensor(c, args[REPLICATION_PAD1D_OUT]);
    if (self.rank != e.dims + 1 && self.rank != e.dims + 2) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "the input must have one or two dims more than are padded");
    }
    if (pt_list_length(c, args[REPLICATION_PAD1D_PADDING]) != 2 * e.dims) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "padding must have two items for each dim");
    }
    int32_t sizes[PT_MAX_RANK];
    for (uint32_t d = 0; d < self.rank; d++) {
        sizes[d] = self.sizes[d];
    }
    for (uint32_t i = 0; i < e.dims; i++) {
        int64_t before = pt_list_int(c, args[REPLICATION_PAD1D_PADDING], 2 * i);
        int64_t after = pt_list_int(c, args[REPLICATION_PAD1D_PADDING], 2 * i + 1);
        int32_t *size = &sizes[self.rank - 1 - i];
        int64_t max = e.reflects ? *size - 1 : *size ? INT32_MAX : 0;
        if (before < -INT32_MAX || after < -INT32_MAX || before > max || after > max ||
            *size + before + after < (before < 0 || after < 0) ||
            *size + before + after > INT32_MAX) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a padding is out of range");
        }
        *size += (int32_t)(before + after);
    }
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    return pt_expect_sizes(c, args[REPLICATION_PAD1D_OUT], self.rank, sizes);
}

// Copies one position of dim `dim` to another.
static int copy_place(pt_context *c, const pt_tensor *t, uint32_t dim, int32_t to, int32_t from) {
    pt_walk w;
    pt_copy_start(&w, t, t);
    w.sizes[dim] = 1;
    w.offset[0] = to * w.strides[0][dim];
    w.offset[1] = from * w.strides[1][dim];
    return pt_copy_run(c, &w, t, t);
}

static int32_t padding(const pt_context *c, const pt_ref *args, uint32_t i) {
    return (int32_t)pt_list_int(c, args[REPLICATION_PAD1D_PADDING], i);
}

static int copy_inside(pt_context *c, const pt_ref *args, edges e, const pt_tensor *self,
                       const pt_tensor *out) {
    pt_walk w;
    pt_copy_start(&w, out, self);
    for (uint32_t i = 0; i < e.dims; i++) {
        uint32_t d = self->rank - 1 - i;
        w.sizes[d] = self->sizes[d];
        w.offset[0] += padding(c, args, 2 * i) * w.strides[0][d];
    }
    return pt_copy_run(c, &w, out, self);
}

// Returns the source of element `at` of a padded dim.
static int32_t source_of(int32_t at, int32_t size, edges e) {
    const int32_t last = size - 1;
    if (at < 0) {
        return e.reflects ? -at : 0;
    }
    return at <= last ? at : e.reflects ? 2 * last - at : last;
}

// Copies element by element: an element cropped on one side may be reflected on the other.
static int copy_each(pt_context *c, const pt_ref *args, edges e, const pt_tensor *self,
                     const pt_tensor *out) {
    int32_t from[PT_MAX_RANK], to[PT_MAX_RANK], index[PT_MAX_RANK] = {0};
    pt_strides(self, from);
    pt_strides(out, to);
    const size_t size = pt_element_size(out->dtype);
    const int32_t n = pt_numel(out);
    for (int32_t i = 0; i < n; i++) {
        int32_t at = 0, source = 0;
        PT_TRY(pt_count_elements(c, 1));
        for (uint32_t d = 0; d < out->rank; d++) {
            const uint32_t behind = out->rank - 1 - d;
            const int32_t before = behind < e.dims ? padding(c, args, 2 * behind) : 0;
            at += index[d] * to[d];
            source += source_of(index[d] - before, self->sizes[d], e) * from[d];
        }
        memmove((uint8_t *)out->data + (size_t)at * size,
                (const uint8_t *)self->data + (size_t)source * size, size);
        for (uint32_t d = out->rank; d-- > 0 && ++index[d] == out->sizes[d];) {
            index[d] = 0;
        }
    }
    return PT_ERROR_OK;
}

static bool crops(const pt_context *c, const pt_ref *args, edges e) {
    bool any = false;
    for (uint32_t i = 0; i < 2 * e.dims; i++) {
        any |= padding(c, args, i) < 0;
    }
    return any;
}

// Copies the inside first, then pads dim by dim, before and behind. A dim may copy positions that
// are not padded yet, since later dims overwrite them.
static int run_edge_pad(pt_context *c, const pt_ref *args, edges e) {
    pt_tensor self = pt_get_tensor(c, args[REPLICATION_PAD1D_SELF]);
    pt_tensor out = pt_get_tensor(c, args[REPLICATION_PAD1D_OUT]);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    if (crops(c, args, e)) {
        return copy_each(c, args, e, &self, &out);
    }
    PT_TRY(copy_inside(c, args, e, &self, &out));
    for (uint32_t i = 0; i < e.dims; i++) {
        uint32_t d = self.rank - 1 - i;
        int32_t first = padding(c, args, 2 * i), after = padding(c, args, 2 * i + 1);
        int32_t last = first + self.sizes[d] - 1;
        for (int32_t k = 1; k <= first; k++) {
            PT_TRY(copy_place(c, &out, d, first - k, e.reflects ? first + k : first));
        }
        for (int32_t k = 1; k <= after; k++) {
            PT_TRY(copy_place(c, &out, d, last + k, e.reflects ? last - k : last));
        }
    }
    return PT_ERROR_OK;
}

#define EDGE_PAD_KERNEL(name, dims, reflects)                    \
    static int check_##name(pt_context *c, const pt_ref *args) { \
        return check_edge_pad(c, args, (edges){dims, reflects}); \
    }                                                            \
    static int run_##name(pt_context *c, const pt_ref *args) {   \
        return run_edge_pad(c, args, (edges){dims, reflects});   \
    }                                                            \
    const pt_kernel pt_aten_##name##_out = PT_KERNEL(check_##name, run_##name);

EDGE_PAD_KERNEL(replication_pad1d, 1, false)
EDGE_PAD_KERNEL(replication_pad2d, 2, false)
EDGE_PAD_KERNEL(replication_pad3d, 3, false)
EDGE_PAD_KERNEL(reflection_pad1d, 1, true)
EDGE_PAD_KERNEL(reflection_pad2d, 2, true)
EDGE_PAD_KERNEL(reflection_pad3d, 3, true)
