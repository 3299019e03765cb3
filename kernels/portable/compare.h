// The order of elements by value.
#ifndef PT_PORTABLE_COMPARE_H
#define PT_PORTABLE_COMPARE_H

#include <picotorch/kernel.h>

// Writes the indices of all elements of t, sorted by value. The dtype of t is in PT_DTYPES_ALL. The
// order of equal elements is kept, and NaN is greater than all numbers.
PT_MUST_USE int pt_order(pt_context *c, const pt_tensor *t, bool descending, int64_t *order);

// True if elements i and j of t are equal: a NaN is not equal to itself.
bool pt_are_equal(const pt_tensor *t, int32_t i, int32_t j);

#endif
