// Comparison of elements, for maxima and minima.
#ifndef PT_PORTABLE_EXTREMA_H
#define PT_PORTABLE_EXTREMA_H

#include "portable/dtype_access.h"

// True if element i of an array of `dtype`, in PT_DTYPES_ALL, is above element j (below it for
// `min`) or a NaN. A NaN is thus better than every element, itself included.
bool pt_beats(const void *data, int32_t i, int32_t j, uint8_t dtype, bool min);

#endif
