// Complex tensors. Each element is a real part, followed by an imaginary part.
#ifndef PT_PORTABLE_COMPLEX_H
#define PT_PORTABLE_COMPLEX_H

#include "portable/dtype_access.h"

enum {
    PT_DTYPES_COMPLEX =
        1 << PT_DTYPE_COMPLEX_HALF | 1 << PT_DTYPE_COMPLEX_FLOAT | 1 << PT_DTYPE_COMPLEX_DOUBLE,
};

static inline bool pt_is_complex(uint8_t dtype) {
    return pt_dtype_in(dtype, PT_DTYPES_COMPLEX);
}

// Returns the dtype of the parts of a complex dtype.
static inline uint8_t pt_part_dtype(uint8_t dtype) {
    return (uint8_t)(dtype - PT_DTYPE_COMPLEX_FLOAT + PT_DTYPE_FLOAT);
}

// True if this build has arithmetic of complex tensors: see config.h.
extern const bool pt_has_complex;
// Rejects a pair of dtypes with the operator's reason, and a complex dtype with the switch that
// this build lacks.
PT_MUST_USE int pt_refuse_dtypes(pt_context *c, const pt_tensor *a, const pt_tensor *b,
                                 const char *reason);

#endif
