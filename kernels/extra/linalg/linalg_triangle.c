// Cholesky factors, and linear equations of triangular matrices.
#include "core/generated/operator_arguments.h"
#include "extra/linalg/linalg.h"

// Returns the bytes of a column.
static uint32_t triangular_scratch(const pt_tensor *a) {
    return pt_matrix_scratch(pt_element_size(a->dtype), a->sizes[a->rank - 1], 0);
}

static int triangular_check(pt_context *c, const pt_ref *args) {
    const pt_tensor a = pt_get_tensor(c, args[LINALG_SOLVE_TRIANGULAR_SELF]);
    const pt_tensor b = pt_get_tensor(c, args[LINALG_SOLVE_TRIANGULAR_B]);
    const bool left = pt_get_bool(c, args[LINALG_SOLVE_TRIANGULAR_LEFT]);
    PT_TRY(pt_check_square(c, &a));
    const int32_t n = a.sizes[a.rank - 1];
    if (b.dtype != a.dtype || b.rank < 2 || b.sizes[b.rank - (left ? 2 : 1)] != n) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, PT_REASON_FIT);
    }
    pt_batch batch = pt_batch_of(&a, 2);
    PT_TRY(pt_join_batch(c, &batch, &b, 2));
    PT_TRY(pt_request_matrices(c, triangular_scratch(&a)));
    return pt_expect_matrices(c, args[LINALG_SOLVE_TRIANGULAR_OUT], a.dtype, &batch,
                              b.sizes[b.rank - 2], b.sizes[b.rank - 1]);
}

static int cholesky_check(pt_context *c, const pt_ref *args) {
    const pt_tensor a = pt_get_tensor(c, args[LINALG_CHOLESKY_EX_SELF]);
    PT_TRY(pt_check_square(c, &a));
    const pt_batch b = pt_batch_of(&a, 2);
    const int32_t n = a.sizes[a.rank - 1];
    PT_TRY(pt_expect_matrices(c, args[LINALG_CHOLESKY_EX_L], a.dtype, &b, n, n));
    return pt_expect_info(c, args[LINALG_CHOLESKY_EX_INFO], &b);
}

#include "extra/linalg/linalg_float.inc"
#include "extra/linalg/linalg_triangle_real.inc"

#include "extra/linalg/linalg_double.inc"
#include "extra/linalg/linalg_triangle_real.inc"

PT_LINALG_KERNEL(triangular, aten_linalg_solve_triangular_out, wide_linalg_solve_triangular_out)
PT_LINALG_KERNEL(cholesky, aten_linalg_cholesky_ex_L, wide_linalg_cholesky_ex_L)
