// Common parts of poolings over two and over three spatial dims.
#ifndef PT_PORTABLE_POOLING_H
#define PT_PORTABLE_POOLING_H

#include <picotorch/kernel.h>

// The values of each spatial dim, outermost first.
typedef struct pt_pooling {
    int32_t kernel[3], stride[3], padding[3], dilation[3];
    bool ceil_mode;
} pt_pooling;

// The taps of a window that lie inside the input, along one dim.
typedef struct pt_pool_span {
    int32_t first, taps;
} pt_pool_span;

// Reads a size for each of the `dims` spatial dims, or one for all, between `lowest` and 2^28; an
// empty list stands for `if_empty`. Returns false for any other list.
PT_MUST_USE bool pt_read_spatial(const pt_context *c, pt_ref list, uint32_t dims,
                                 const int32_t *if_empty, int32_t lowest, int32_t *sizes);
// Reads kernel_size, stride and padding, the common arguments of avg_pool and max_pool.
PT_MUST_USE int pt_read_pooling(pt_context *c, const pt_ref *args, uint32_t dims, pt_pooling *p);
// Reads all parameters of max_pool.
PT_MUST_USE int pt_read_max_pooling(pt_context *c, const pt_ref *args, uint32_t dims,
                                    pt_pooling *p);

// Rejects an input without `dims` spatial dims behind channels and an optional batch.
PT_MUST_USE int pt_check_pooled(pt_context *c, const pt_tensor *in, uint32_t dims, uint32_t dtypes);
// Expects an output with the input's sizes and these spatial sizes.
PT_MUST_USE int pt_expect_pooled(pt_context *c, const pt_tensor *in, uint32_t dims,
                                 const int32_t *sizes, pt_ref out);
PT_MUST_USE int pt_check_windows(pt_context *c, const pt_pooling *p, uint32_t dims,
                                 const pt_tensor *in, pt_ref out);
// Runs all checks of a pooling operator.
PT_MUST_USE int pt_check_average(pt_context *c, const pt_ref *args, uint32_t dims);
PT_MUST_USE int pt_check_max(pt_context *c, const pt_ref *args, uint32_t dims);
PT_MUST_USE int pt_check_adaptive(pt_context *c, const pt_ref *args, uint32_t dims);
// Rejects indices that are not int64.
PT_MUST_USE int pt_check_index_output(pt_context *c, pt_ref indices);

// Returns the span of window `o` along dim `d` of an input of `size`.
pt_pool_span pt_taps_inside(const pt_pooling *p, uint32_t d, int32_t o, int32_t size);
// Returns the taps of window `o` in the input and in the padding around it.
int32_t pt_padded_taps(const pt_pooling *p, uint32_t d, int32_t o, int32_t size);
// Returns window o of `count` windows that cover `size` as evenly as possible.
pt_pool_span pt_adaptive_span(int32_t o, int32_t count, int32_t size);

#endif
