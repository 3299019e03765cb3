// A = Q R by Householder's reflections. The signs of R's diagonal are LAPACK's.
#include "core/generated/operator_arguments.h"
#include "extra/linalg/linalg.h"
#include "portable/arguments.h"

static const char complete_q[] = "complete", reduced_q[] = "reduced", no_q[] = "r";

static bool has_q(const pt_context *c, const pt_ref *args) {
    return !pt_string_is(c, args[LINALG_QR_MODE], no_q);
}

// Returns the bytes of a matrix, the factors of its reflections, and a column.
static uint32_t qr_scratch(const pt_tensor *a) {
    const int64_t rows = a->sizes[a->rank - 2], columns = a->sizes[a->rank - 1];
    return pt_matrix_scratch(pt_element_size(a->dtype),
                             rows * columns + (rows < columns ? rows : columns) + rows, 0);
}

static int qr_check(pt_context *c, const pt_ref *args) {
    const pt_tensor a = pt_get_tensor(c, args[LINALG_QR_A]);
    const bool complete = pt_string_is(c, args[LINALG_QR_MODE], complete_q);
    PT_TRY(pt_check_matrices(c, &a));
    if (!complete && has_q(c, args) && !pt_string_is(c, args[LINALG_QR_MODE], reduced_q)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "mode must be reduced, complete or r");
    }
    const pt_batch b = pt_batch_of(&a, 2);
    const int32_t rows = a.sizes[a.rank - 2], columns = a.sizes[a.rank - 1];
    const int32_t fewer = rows < columns ? rows : columns, inner = complete ? rows : fewer;
    PT_TRY(pt_request_matrices(c, qr_scratch(&a)));
    PT_TRY(has_q(c, args) ? pt_expect_matrices(c, args[LINALG_QR_Q], a.dtype, &b, rows, inner)
                          : pt_expect_none(c, args[LINALG_QR_Q], a.dtype));
    return pt_expect_matrices(c, args[LINALG_QR_R], a.dtype, &b, inner, columns);
}

#include "extra/linalg/linalg_float.inc"
#include "extra/linalg/linalg_qr_real.inc"

#include "extra/linalg/linalg_double.inc"
#include "extra/linalg/linalg_qr_real.inc"

PT_LINALG_KERNEL(qr, aten_linalg_qr_out, wide_linalg_qr_out)
