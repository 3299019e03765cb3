// The picks of index.Tensor and index_put: self[i, :, j, ...] with tensors of integers, or masks
// over some dims, broadcast to each other. A mask stands for as many indices as it has dims, those
// of its true elements. Where the indexed dims follow each other the indices' dims take their
// place, else they come first.
#ifndef PT_PORTABLE_INDEX_SELECT_H
#define PT_PORTABLE_INDEX_SELECT_H

#include "portable/dtype_access.h"

typedef struct pt_index_selection {
    uint32_t dims;              // bit d: dim d of self is indexed
    uint32_t before;            // dims of self in the result before those of the indices
    uint32_t largest;           // elements of the largest index
    uint32_t rank;              // of the indices, broadcast
    int32_t sizes[PT_MAX_RANK]; // of the indices, broadcast
    bool has_masks;             // in a check the sizes are not known
    const int32_t *offsets;     // of what masks pick, for each behind their number
} pt_index_selection;

// For a check: reads the list of indices, and asks for scratch for `offsets`.
PT_MUST_USE int pt_read_selection(pt_context *c, const pt_tensor *self, pt_ref list,
                                  pt_index_selection *p);
// For a run: the same with the sizes of what masks pick. All indices lie within their dims, and
// stay so while `out` is written.
PT_MUST_USE int pt_find_selection(pt_context *c, const pt_tensor *self, pt_ref list,
                                  const pt_tensor *out, pt_index_selection *p);
// The sizes of the result; returns its rank, which may be above PT_MAX_RANK. `sizes` has room for
// twice as many.
uint32_t pt_selected_sizes(const pt_index_selection *p, const pt_tensor *self, int32_t *sizes);
// The position in the result of the dim of self that `kept` dims without an index precede.
uint32_t pt_selected_dim(const pt_index_selection *p, uint32_t kept);
// Where the elements that position `at` of the broadcast indices picks begin, by the strides of
// self.
int32_t pt_select_offset(const pt_context *c, const pt_index_selection *p, pt_ref list,
                         const pt_tensor *self, const int32_t *strides, int32_t at);
// Where they begin in the result, by its strides.
int32_t pt_selected_offset(const pt_index_selection *p, const int32_t *strides, int32_t at);

#endif
