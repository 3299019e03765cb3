// Copies of elements between tensors: whole tensors or parts, between dim orders, broadcast,
// converted to another dtype. Plain copies need equal dtypes, and do not link the conversion.
// Functions that return an error code poll.
#ifndef PT_PORTABLE_COPY_H
#define PT_PORTABLE_COPY_H

#include "arch/copy_rows.h"
#include "portable/dtype_access.h"

// Sets up a copy of all of `from` to `to`, of the same rank and not empty: sizes of `to`, strides
// of both, offsets 0. Change these to copy a part, then call pt_copy_run.
void pt_copy_start(pt_walk *w, const pt_tensor *to, const pt_tensor *from);
// Copies operand 1 of the walk, in `from`, to operand 0, in `to`. The caller has set rank, sizes,
// strides and offsets, as for pt_walk_start; no size is 0.
PT_MUST_USE int pt_copy_run(pt_context *c, pt_walk *w, const pt_tensor *to, const pt_tensor *from);
// Copy `rows` rows of n bytes, above 0, and a plane of elements of `size` bytes: arch/copy_rows.h.
PT_MUST_USE int pt_copy_rows_in_pieces(pt_context *c, uint8_t *to, int32_t to_step,
                                       const uint8_t *from, int32_t from_step, int32_t n,
                                       int32_t rows);
PT_MUST_USE int pt_copy_plane_in_pieces(pt_context *c, const pt_plane *p, uint8_t *to,
                                        const uint8_t *from, uint32_t size);
// Copies all elements in memory order: `to` has the number of elements and the dtype of `from`.
void pt_copy_flat(const pt_tensor *to, const pt_tensor *from);
// Copy `from`, broadcast, to all of `to`. The second function also converts.
PT_MUST_USE int pt_copy_broadcast(pt_context *c, const pt_tensor *to, const pt_tensor *from);
PT_MUST_USE int pt_convert_broadcast(pt_context *c, const pt_tensor *to, const pt_tensor *from);

// A part of a tensor along a dim: `count` positions from `start` on, `step` apart. With `drop` the
// other side of the copy lacks the dim, and count is 1.
typedef struct pt_section {
    uint32_t dim;
    int32_t start, count, step;
    bool drop;
} pt_section;

// Copy the section of `whole` to all of `part`, and `part` to the section; the last function also
// converts. The section may be empty.
PT_MUST_USE int pt_copy_section(pt_context *c, const pt_tensor *part, const pt_tensor *whole,
                                const pt_section *section);
PT_MUST_USE int pt_copy_to_section(pt_context *c, const pt_tensor *whole, const pt_section *section,
                                   const pt_tensor *part);
PT_MUST_USE int pt_convert_to_section(pt_context *c, const pt_tensor *whole,
                                      const pt_section *section, const pt_tensor *part);

// Copies to[i] = from[j], of the same dtype.
void pt_copy_element(const pt_tensor *to, int32_t i, const pt_tensor *from, int32_t j);
// Adds to[i] += from[j], of the same dtype, which is in PT_DTYPES_ALL.
void pt_add_element(const pt_tensor *to, int32_t i, const pt_tensor *from, int32_t j);

// Fills `n` elements from `data` on with the bits of a number.
void pt_fill(void *data, int32_t n, uint8_t dtype, pt_scalar value);

#endif
