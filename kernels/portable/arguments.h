// Reads and checks arguments of many operators: a dim, a list of sizes, dtypes.
#ifndef PT_PORTABLE_ARGUMENTS_H
#define PT_PORTABLE_ARGUMENTS_H

#include <picotorch/kernel.h>

// Sets the index of dim `dim`, which may count from the end, in a tensor of `rank` dims; 0-d counts
// as one dim. InvalidArgument.
PT_MUST_USE int pt_read_dim(pt_context *c, int64_t dim, uint32_t rank, uint32_t *axis);
// Reads the list of dims `arg` as a set: bit d for dim d. InvalidArgument, also for a repeated dim.
PT_MUST_USE int pt_read_dims(pt_context *c, pt_ref arg, uint32_t rank, uint32_t *dims);
// Reads the list `arg` as sizes of at least `minimum`: 0, or -1 for "to be inferred". `sizes` has
// PT_MAX_RANK entries.
PT_MUST_USE int pt_read_sizes(pt_context *c, pt_ref arg, int32_t minimum, uint32_t *rank,
                              int32_t *sizes);
// True if the string `arg` is `text`.
bool pt_string_is(const pt_context *c, pt_ref arg, const char *text);
// Rejects a walk over more than 65,536 `positions` of tensors that are broadcast to each other. It
// accepts the walk if `positions` does not exceed `elements`, the size of the largest tensor, or if
// an output has that many elements. Without this limit small tensors could have any number of
// positions.
PT_MUST_USE int pt_check_positions(pt_context *c, uint32_t positions, uint32_t elements);
// Replaces the -1 among sizes so that the product is numel. Returns false if no size does that.
PT_MUST_USE bool pt_infer_size(int32_t *sizes, uint32_t rank, uint32_t numel);
// Reads the list `arg` as sizes for all elements of a tensor; one size may be -1.
PT_MUST_USE int pt_read_view_sizes(pt_context *c, pt_ref arg, const pt_tensor *of, uint32_t *rank,
                                   int32_t *sizes);
// Rejects a pair of dtypes that pt_copy_run does not copy. It copies any dtype to itself, and
// converts within PT_DTYPES_ALL.
PT_MUST_USE int pt_check_copy(pt_context *c, const pt_tensor *to, const pt_tensor *from);
// Rejects an output whose dtype differs from the input's.
PT_MUST_USE int pt_check_same_dtype(pt_context *c, const pt_tensor *out, const pt_tensor *in);
// Rejects an output whose dim order is not the dim order in the list `list`, unless the list is
// None.
PT_MUST_USE int pt_check_dim_order(pt_context *c, pt_ref list, pt_ref to_arg);

// Returns the tensor `arg`, with one dim if it is 0-d: gather and scatter treat both alike.
pt_tensor pt_get_lanes(const pt_context *c, pt_ref arg);

// For a run: rejects an output that shares bytes with checked indices. The indices are read again
// while the output is written.
PT_MUST_USE int pt_check_apart(pt_context *c, const pt_tensor *out, const pt_tensor *indices);
// For a run: checks that all elements of `index` lie in 0..size-1, and that writing out does not
// change them.
PT_MUST_USE int pt_check_indices(pt_context *c, const pt_tensor *index, int32_t size,
                                 const pt_tensor *out);

#endif
