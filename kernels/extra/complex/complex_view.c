// Conversion of complex tensors from and to real tensors, and the conjugate.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/complex.h"
#include "portable/copy.h"
#include "portable/elementwise.h"

#define REASON_PARTS "the dtypes must be a complex one and that of its parts"
#define REASON_COMPLEX "the tensors must be of one complex dtype"

static bool are_parts(const pt_tensor *whole, const pt_tensor *parts) {
    return pt_is_complex(whole->dtype) && parts->dtype == pt_part_dtype(whole->dtype);
}

// ---- view_as_real_copy, view_as_complex_copy: the real tensor has the parts as a last dim of 2

static int view_as_real_check(pt_context *c, const pt_ref *args) {
    const pt_tensor self = pt_get_tensor(c, args[VIEW_AS_REAL_COPY_SELF]);
    const pt_tensor out = pt_get_tensor(c, args[VIEW_AS_REAL_COPY_OUT]);
    int32_t sizes[PT_MAX_RANK];
    if (!are_parts(&self, &out)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, REASON_PARTS);
    }
    if (self.rank == PT_MAX_RANK) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "more than 16 dims");
    }
    for (uint32_t d = 0; d < self.rank; d++) {
        sizes[d] = self.sizes[d];
    }
    sizes[self.rank] = 2;
    return pt_expect_sizes(c, args[VIEW_AS_REAL_COPY_OUT], self.rank + 1u, sizes);
}

static int view_as_complex_check(pt_context *c, const pt_ref *args) {
    const pt_tensor self = pt_get_tensor(c, args[VIEW_AS_COMPLEX_COPY_SELF]);
    const pt_tensor out = pt_get_tensor(c, args[VIEW_AS_COMPLEX_COPY_OUT]);
    if (!are_parts(&out, &self)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, REASON_PARTS);
    }
    if (self.rank == 0 || self.sizes[self.rank - 1] != 2) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the last dim must have size 2");
    }
    return pt_expect_sizes(c, args[VIEW_AS_COMPLEX_COPY_OUT], self.rank - 1u, self.sizes);
}

// Computes the strides of a complex tensor in parts, with the parts as the last dim.
static void part_strides(const pt_tensor *whole, int32_t *strides) {
    pt_strides(whole, strides);
    for (uint32_t d = 0; d < whole->rank; d++) {
        strides[d] *= 2;
    }
    strides[whole->rank] = 1;
}

static int copy_parts(pt_context *c, pt_tensor to, pt_tensor from) {
    if (pt_numel(&to) == 0) {
        return PT_ERROR_OK;
    }
    const bool split = pt_is_complex(from.dtype);
    const pt_tensor *whole = split ? &from : &to, *parts = split ? &to : &from;
    pt_walk w;
    pt_copy_start(&w, parts, parts);
    part_strides(whole, w.strides[split]);
    to.dtype = from.dtype = parts->dtype;
    return pt_copy_run(c, &w, &to, &from);
}

static int view_parts_run(pt_context *c, const pt_ref *args) {
    return copy_parts(c, pt_get_tensor(c, args[VIEW_AS_REAL_COPY_OUT]),
                      pt_get_tensor(c, args[VIEW_AS_REAL_COPY_SELF]));
}

const pt_kernel pt_aten_view_as_real_copy_out = PT_KERNEL(view_as_real_check, view_parts_run);
const pt_kernel pt_aten_view_as_complex_copy_out = PT_KERNEL(view_as_complex_check, view_parts_run);

// ---- conjugate

static int conjugate_check(pt_context *c, const pt_ref *args) {
    const pt_tensor self = pt_get_tensor(c, args[CONJ_PHYSICAL_SELF]);
    const pt_tensor out = pt_get_tensor(c, args[CONJ_PHYSICAL_OUT]);
    if (!pt_is_complex(self.dtype) || out.dtype != self.dtype) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, REASON_COMPLEX);
    }
    return pt_expect_sizes(c, args[CONJ_PHYSICAL_OUT], self.rank, self.sizes);
}

// Inverts the sign bit of a number of `size` bytes, also for NaN and 0.
static void negate(uint8_t *number, uint32_t size) {
    number[size - 1] ^= 0x80; // the last byte has the sign: numbers are little-endian
}

static int conjugate_run(pt_context *c, const pt_ref *args) {
    const pt_tensor self = pt_get_tensor(c, args[CONJ_PHYSICAL_SELF]);
    const pt_tensor out = pt_get_tensor(c, args[CONJ_PHYSICAL_OUT]);
    const uint32_t size = pt_element_size(pt_part_dtype(self.dtype));
    PT_TRY(pt_copy_broadcast(c, &out, &self));
    uint8_t *imaginary = (uint8_t *)out.data + size;
    for (int32_t n = pt_numel(&out); n > 0; n--, imaginary += 2 * size) {
        PT_TRY(pt_count_work(c, 1));
        negate(imaginary, size);
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten__conj_physical_out = PT_KERNEL(conjugate_check, conjugate_run);

// ---- complex, polar: a complex tensor from two real tensors

static int from_parts_check(pt_context *c, const pt_ref *args) {
    const pt_tensor a = pt_get_tensor(c, args[COMPLEX_REAL]);
    const pt_tensor b = pt_get_tensor(c, args[COMPLEX_IMAG]);
    const pt_tensor out = pt_get_tensor(c, args[COMPLEX_OUT]);
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank = 0;
    if (!are_parts(&out, &a) || b.dtype != a.dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, REASON_PARTS);
    }
    if (!pt_broadcast(sizes, &rank, &a) || !pt_broadcast(sizes, &rank, &b)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, PT_REASON_BROADCAST);
    }
    return pt_expect_sizes(c, args[COMPLEX_OUT], rank, sizes);
}

static int from_parts_run(pt_context *c, const pt_ref *args, bool polar) {
    const pt_tensor a = pt_get_tensor(c, args[COMPLEX_REAL]);
    const pt_tensor b = pt_get_tensor(c, args[COMPLEX_IMAG]);
    const pt_tensor out = pt_get_tensor(c, args[COMPLEX_OUT]);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    pt_walk w;
    pt_walk_tensors(&w, 3, (const pt_tensor *const[]){&out, &a, &b});
    do {
        for (int32_t i = 0; i < w.n; i++) {
            const int32_t at = 2 * (w.offset[0] + i);
            const int32_t j = w.offset[1] + i * w.strides[1][0];
            const int32_t k = w.offset[2] + i * w.strides[2][0];
            double x = pt_load_double(a.data, j, a.dtype), y = pt_load_double(b.data, k, a.dtype);
            if (polar && a.dtype == PT_DTYPE_DOUBLE) {
                const double angle = y;
                y = x * pt_float64->sin(angle);
                x *= pt_float64->cos(angle);
            } else if (polar) {
                const float size = (float)x, angle = (float)y;
                x = size * pt_cosf(angle);
                y = size * pt_sinf(angle);
            }
            pt_store_double(out.data, at, a.dtype, x);
            pt_store_double(out.data, at + 1, a.dtype, y);
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

static int complex_run(pt_context *c, const pt_ref *args) {
    return from_parts_run(c, args, false);
}

const pt_kernel pt_aten_complex_out = PT_KERNEL(from_parts_check, complex_run);

static int polar_check(pt_context *c, const pt_ref *args) {
    PT_TRY(from_parts_check(c, args));
    const uint8_t dtype = pt_get_tensor(c, args[POLAR_ABS]).dtype;
    return dtype == PT_DTYPE_FLOAT || dtype == PT_DTYPE_DOUBLE
               ? pt_check_math(c, dtype, PT_REASON_DTYPE)
               : pt_fail(c, PT_ERROR_NOT_SUPPORTED, PT_REASON_DTYPE);
}

static int polar_run(pt_context *c, const pt_ref *args) {
    return from_parts_run(c, args, true);
}

const pt_kernel pt_aten_polar_out = PT_KERNEL(polar_check, polar_run);
