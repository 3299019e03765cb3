// Sums of products: the inner part of convolutions and matrix products.
#ifndef PT_PORTABLE_PRODUCTS_H
#define PT_PORTABLE_PRODUCTS_H

#include "arch/float_products.h"
#include "portable/dtype_access.h"

// The dtypes of pt_sum_products: all real dtypes. Integers wrap as in PyTorch. float16 and bfloat16
// are summed as float32, and rounded once.
static inline bool pt_can_sum_products(uint8_t dtype) {
    return pt_dtype_in(dtype, PT_DTYPES_INTEGER | PT_DTYPES_FLOATING);
}

// Computes sums of products. a, b, bias and out are all of `dtype`; `out` overlaps none of the
// other arrays. An output may be written more than once, each time with the same value. Polls.
PT_MUST_USE int pt_sum_products(pt_context *c, const pt_products *p, uint8_t dtype);

#endif
