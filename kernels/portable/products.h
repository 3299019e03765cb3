// Sums of products: the inner part of convolutions and matrix products.
#ifndef PT_PORTABLE_PRODUCTS_H
#define PT_PORTABLE_PRODUCTS_H

#include "../arch/float_products.h"
#include "../core/core.h"

// The dtypes that pt_sum_products takes: all real ones. Integers wrap as PyTorch's do.
static inline bool pt_can_sum_products(uint8_t dtype) {
    return dtype == PT_DTYPE_FLOAT || dtype == PT_DTYPE_DOUBLE || dtype <= PT_DTYPE_LONG;
}

// a, b, bias and out are all of `dtype`; `out` overlaps none of the others. An output may be
// written more than once; what is there in the end does not depend on it.
void pt_sum_products(const pt_products *p, uint8_t dtype);

#endif
