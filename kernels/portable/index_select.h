// The selection of index.Tensor and index_put: self[i, :, j, ...]. Indices are tensors of integers,
// or masks over some dims, broadcast to each other. A mask counts as one index for each of its
// dims: the positions of its true elements. If the indexed dims are adjacent, the dims of the
// indices replace them. If not, the dims of the indices come first.
#ifndef PT_PORTABLE_INDEX_SELECT_H
#define PT_PORTABLE_INDEX_SELECT_H

#include "portable/dtype_access.h"

typedef struct pt_index_selection {
    uint32_t dims;              // bit d: dim d of self is indexed
    uint32_t before;            // dims of self that come before the dims of the indices in the
                                // result
    uint32_t largest;           // elements of the largest index
    uint32_t rank;              // rank of the broadcast indices
    int32_t sizes[PT_MAX_RANK]; // sizes of the broadcast indices
    bool has_masks;             // the sizes are unknown in a check
    const int32_t *offsets;     // for each mask: number of selected elements, then their offsets
} pt_index_selection;

// For a check: reads the list of indices, and requests scratch for `offsets`.
PT_MUST_USE int pt_read_selection(pt_context *c, const pt_tensor *self, pt_ref list,
                                  pt_index_selection *p);
// For a run: reads the list as pt_read_selection does, with the sizes of masks. Checks that all
// indices lie within their dims, and that writing `out` does not change them.
PT_MUST_USE int pt_find_selection(pt_context *c, const pt_tensor *self, pt_ref list,
                                  const pt_tensor *out, pt_index_selection *p);
// Computes the sizes of the result; returns its rank, which may exceed PT_MAX_RANK. `sizes` has 2 *
// PT_MAX_RANK entries.
uint32_t pt_selected_sizes(const pt_index_selection *p, const pt_tensor *self, int32_t *sizes);
// Returns the position in the result of unindexed dim number `kept` of self.
uint32_t pt_selected_dim(const pt_index_selection *p, uint32_t kept);
// Returns the offset in self of the elements that position `at` of the broadcast indices selects.
int32_t pt_select_offset(const pt_context *c, const pt_index_selection *p, pt_ref list,
                         const pt_tensor *self, const int32_t *strides, int32_t at);
// Returns the offset in the result of the elements that position `at` selects.
int32_t pt_selected_offset(const pt_index_selection *p, const int32_t *strides, int32_t at);

#endif
