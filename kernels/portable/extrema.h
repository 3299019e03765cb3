// Comparison of elements, for the operators that look for the greatest or the least.
#ifndef PT_PORTABLE_EXTREMA_H
#define PT_PORTABLE_EXTREMA_H

#include "portable/dtype_access.h"

// True if element i of an array of `dtype`, in PT_DTYPES_ALL, is above element j (below it where
// `least`) or a NaN. So only a NaN beats itself.
bool pt_beats(const void *data, int32_t i, int32_t j, uint8_t dtype, bool min);

#endif
