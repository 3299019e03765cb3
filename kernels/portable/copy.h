// The one mechanism that moves elements between tensors: whole tensors or parts of them, between
// dim orders, broadcast, converted to another dtype. Copies need tensors of the same dtype;
// only what converts links the code for it. What returns an error code polls.
#ifndef PT_PORTABLE_COPY_H
#define PT_PORTABLE_COPY_H

#include "portable/dtype_access.h"

// Prepares to copy all of `from` to `to`, of the same rank and with elements: sizes of `to`,
// strides of both, offsets 0. Change these to mean a part, then pt_copy_run.
void pt_copy_start(pt_walk *w, const pt_tensor *to, const pt_tensor *from);
// Copies operand 1 of the walk, in `from`, to operand 0, in `to`. Rank, sizes, strides and offsets
// are set, as for pt_walk_start; no size is 0.
PT_MUST_USE int pt_copy_run(pt_context *c, pt_walk *w, const pt_tensor *to, const pt_tensor *from);
// Copies all elements as they lie in memory: `to` has as many as `from` and the same dtype.
void pt_copy_flat(const pt_tensor *to, const pt_tensor *from);
// Copies `from`, broadcast, to all of `to`; the other one converts, too.
PT_MUST_USE int pt_copy_broadcast(pt_context *c, const pt_tensor *to, const pt_tensor *from);
PT_MUST_USE int pt_convert_broadcast(pt_context *c, const pt_tensor *to, const pt_tensor *from);

// Part of a tensor along a dim: `count` positions from `start`, `step` apart. `drop`: the other
// side of the copy lacks the dim, and count is 1.
typedef struct pt_section {
    uint32_t dim;
    int32_t start, count, step;
    bool drop;
} pt_section;

// The section of `whole` to all of `part`, and the way back, also converted. No elements are fine.
PT_MUST_USE int pt_copy_section(pt_context *c, const pt_tensor *part, const pt_tensor *whole,
                                const pt_section *section);
PT_MUST_USE int pt_copy_to_section(pt_context *c, const pt_tensor *whole, const pt_section *section,
                                   const pt_tensor *part);
PT_MUST_USE int pt_convert_to_section(pt_context *c, const pt_tensor *whole,
                                      const pt_section *section, const pt_tensor *part);

// to[i] = from[j], of the same dtype.
void pt_copy_element(const pt_tensor *to, int32_t i, const pt_tensor *from, int32_t j);
// to[i] += from[j], of the same dtype, which is in PT_DTYPES_ALL.
void pt_add_element(const pt_tensor *to, int32_t i, const pt_tensor *from, int32_t j);

// The bits of the number in all `n` elements from `data`.
void pt_fill(void *data, int32_t n, uint8_t dtype, pt_scalar value);

#endif
