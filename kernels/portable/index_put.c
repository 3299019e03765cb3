// index_put: (self, indices, values, accumulate, out); index_put_: the same arguments without out.
// Writes values to the indexed positions of a copy of self, or of self itself, or adds the values.
// Values are broadcast. If several values have the same position, the last one stays.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/copy.h"
#include "portable/index_select.h"

static uint32_t index_put_max(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

// Values are broadcast to the selection.
static int index_put_check_values(pt_context *c, const pt_tensor *self, const pt_tensor *values,
                                  const pt_index_selection *p) {
    int32_t sizes[2 * PT_MAX_RANK];
    uint32_t rank = pt_selected_sizes(p, self, sizes);
    uint32_t max = index_put_max(
        p->largest, index_put_max((uint32_t)pt_numel(self), (uint32_t)pt_numel(values)));
    PT_TRY(pt_check_positions(c, pt_product(p->sizes, p->rank), max));
    bool fits = values->rank <= rank;
    for (uint32_t d = 0; fits && d < values->rank; d++) {
        fits = values->sizes[d] == 1 || values->sizes[d] == sizes[rank - values->rank + d];
    }
    return fits ? PT_ERROR_OK
                : pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "values do not broadcast to the indices");
}

static int check_put(pt_context *c, const pt_ref *args, const pt_tensor *self) {
    pt_tensor values = pt_get_tensor(c, args[INDEX_PUT_VALUES]);
    pt_index_selection p;
    if (values.dtype != self->dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "values must have self's dtype");
    }
    if (pt_get_bool(c, args[INDEX_PUT_ACCUMULATE]) && !pt_dtype_in(self->dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "elements of this dtype are not added");
    }
    PT_TRY(pt_read_selection(c, self, args[INDEX_PUT_INDICES], &p));
    PT_TRY(pt_check_copy(c, self, self));
    return p.has_masks ? PT_ERROR_OK : index_put_check_values(c, self, &values, &p);
}

// Computes the strides of values along all dims of the result. The dims that values lack get stride
// 0.
static void broadcast_strides(const pt_tensor *values, uint32_t rank, int32_t *strides) {
    uint32_t missing = rank - values->rank;
    for (uint32_t d = 0; d < missing; d++) {
        strides[d] = 0;
    }
    pt_strides(values, strides + missing);
    for (uint32_t d = 0; d < values->rank; d++) {
        if (values->sizes[d] == 1) {
            strides[missing + d] = 0;
        }
    }
}

static int add_rows(pt_context *c, pt_walk *w, const pt_tensor *to, const pt_tensor *from) {
    pt_walk_start(w);
    do {
        for (int32_t i = 0; i < w->n; i++) {
            pt_add_element(to, w->offset[0] + i * w->strides[0][0], from,
                           w->offset[1] + i * w->strides[1][0]);
        }
    } while (pt_walk_next(c, w));
    return w->error;
}

// Writes the values of position `at` of the broadcast indices.
static int put_selected(pt_context *c, const pt_ref *args, const pt_tensor *self,
                        const pt_tensor *values, const pt_index_selection *p, int32_t at) {
    pt_walk w;
    int32_t strides[2 * PT_MAX_RANK];
    int32_t *to = w.strides[2]; // space of an operand that the walk does not use
    uint32_t kept = 0;
    pt_strides(self, to);
    broadcast_strides(values, pt_selected_sizes(p, self, strides), strides);
    w.operands = 2;
    w.offset[0] = pt_select_offset(c, p, args[INDEX_PUT_INDICES], self, to, at);
    w.offset[1] = pt_selected_offset(p, strides, at);
    for (uint32_t d = 0; d < self->rank; d++) {
        if ((p->dims >> d & 1) == 0) {
            w.sizes[kept] = self->sizes[d];
            w.strides[0][kept] = to[d];
            w.strides[1][kept] = strides[pt_selected_dim(p, kept)];
            kept++;
        }
    }
    w.rank = (uint8_t)kept;
    return pt_get_bool(c, args[INDEX_PUT_ACCUMULATE]) ? add_rows(c, &w, self, values)
                                                      : pt_copy_run(c, &w, self, values);
}

// Checks the indices before the first write.
static int read_put_selection(pt_context *c, const pt_ref *args, const pt_tensor *self,
                              pt_index_selection *p) {
    pt_tensor values = pt_get_tensor(c, args[INDEX_PUT_VALUES]);
    PT_TRY(pt_find_selection(c, self, args[INDEX_PUT_INDICES], self, p));
    return !p->has_masks ? PT_ERROR_OK : index_put_check_values(c, self, &values, p);
}

enum { POSITION = 32 }; // steps of an index position, in addition to its elements
static int index_put(pt_context *c, const pt_ref *args, const pt_tensor *self,
                     const pt_index_selection *p) {
    pt_tensor values = pt_get_tensor(c, args[INDEX_PUT_VALUES]);
    int32_t sizes[2 * PT_MAX_RANK];
    uint32_t rank = pt_selected_sizes(p, self, sizes);
    if (pt_product(sizes, rank) == 0) {
        return PT_ERROR_OK;
    }
    int32_t n = (int32_t)pt_product(p->sizes, p->rank);
    for (int32_t at = 0; at < n; at++) {
        PT_TRY(pt_count_work(c, POSITION));
        PT_TRY(put_selected(c, args, self, &values, p, at));
    }
    return PT_ERROR_OK;
}

static int index_put_in_place_check(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[INDEX_PUT__SELF]);
    return check_put(c, args, &self);
}

static int index_put_in_place_run(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[INDEX_PUT__SELF]);
    pt_index_selection p;
    PT_TRY(read_put_selection(c, args, &self, &p));
    return index_put(c, args, &self, &p);
}

const pt_kernel pt_aten_index_put_ = PT_KERNEL(index_put_in_place_check, index_put_in_place_run);

static int index_put_check(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[INDEX_PUT_SELF]);
    pt_tensor out = pt_get_tensor(c, args[INDEX_PUT_OUT]);
    PT_TRY(pt_check_same_dtype(c, &out, &self));
    PT_TRY(pt_expect_sizes(c, args[INDEX_PUT_OUT], self.rank, self.sizes));
    return check_put(c, args, &self);
}

static int index_put_run(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[INDEX_PUT_SELF]);
    pt_tensor out = pt_get_tensor(c, args[INDEX_PUT_OUT]);
    pt_index_selection p;
    PT_TRY(read_put_selection(c, args, &out, &p));
    PT_TRY(pt_copy_broadcast(c, &out, &self));
    return index_put(c, args, &out, &p);
}

const pt_kernel pt_aten_index_put_out = PT_KERNEL(index_put_check, index_put_run);
