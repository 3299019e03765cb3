// Operators that factor matrices as P L U: inverse, solution of linear equations, determinant.
//
// Partial pivoting, row by row. A singular matrix results in infinities and NaNs and an info above
// 0, or in an error if the operator checks errors.
#include "core/generated/operator_arguments.h"
#include "extra/linalg/linalg.h"

#define SINGULAR "a matrix is singular"

// Returns the matrix to factor for a determinant. PyTorch factors the transpose if the tensor is
// contiguous; the factors and pivots are outputs, and show it.
static pt_matrix determinant_matrix(const pt_tensor *a, const pt_batch *b, int32_t i) {
    const pt_matrix m = pt_matrix_of(a, 2, b, i);
    return a->flags & PT_VALUE_CONTIGUOUS ? pt_transposed(m) : m;
}

// Returns the bytes of the factors of a matrix, a column and the pivots; numbers have `size` bytes.
static uint32_t factor_scratch(uint32_t size, int64_t rows, int64_t columns) {
    return pt_matrix_scratch(size, rows * columns + rows, rows < columns ? rows : columns);
}

static int request_factors(pt_context *c, const pt_tensor *a) {
    const int32_t *inner = a->sizes + a->rank - 2;
    return pt_request_matrices(c, factor_scratch(pt_element_size(a->dtype), inner[0], inner[1]));
}

// Rejects matrices that are not square, and requests the scratch of their factors.
static int check_factored(pt_context *c, const pt_tensor *a) {
    PT_TRY(pt_check_square(c, a));
    return request_factors(c, a);
}

// Expects the outputs LU and pivots.
static int expect_factors(pt_context *c, const pt_tensor *a, const pt_batch *b, pt_ref lu,
                          pt_ref pivots) {
    const int32_t rows = a->sizes[a->rank - 2], columns = a->sizes[a->rank - 1];
    PT_TRY(pt_expect_matrices(c, lu, a->dtype, b, rows, columns));
    return pt_expect_matrices(c, pivots, PT_DTYPE_INT, b, rows < columns ? rows : columns,
                              PT_NO_COLUMNS);
}

static int inv_check(pt_context *c, const pt_ref *args) {
    const pt_tensor a = pt_get_tensor(c, args[LINALG_INV_EX_A]);
    PT_TRY(check_factored(c, &a));
    const pt_batch b = pt_batch_of(&a, 2);
    const int32_t n = a.sizes[a.rank - 1];
    PT_TRY(pt_expect_matrices(c, args[LINALG_INV_EX_INVERSE], a.dtype, &b, n, n));
    return pt_expect_info(c, args[LINALG_INV_EX_INFO], &b);
}

// The equations A X = B (`left`), or X A = B. B is a batch of vectors or matrices.
typedef struct solution {
    pt_tensor a, b;
    uint32_t inner; // 1 if b has vectors, 2 if it has matrices
    bool left;
    pt_batch batch;
} solution;

static bool linalg_lu_is_vector(const pt_tensor *a, const pt_tensor *b) {
    if (b->rank != 1 && b->rank + 1u != a->rank) {
        return false;
    }
    for (uint32_t d = 0; d < b->rank && b->rank != 1; d++) {
        if (a->sizes[d] != b->sizes[d]) {
            return false;
        }
    }
    return true;
}

static int read_solution(pt_context *c, const pt_ref *args, solution *s) {
    s->a = pt_get_tensor(c, args[LINALG_SOLVE_EX_A]);
    s->b = pt_get_tensor(c, args[LINALG_SOLVE_EX_B]);
    s->left = pt_get_bool(c, args[LINALG_SOLVE_EX_LEFT]);
    PT_TRY(pt_check_square(c, &s->a));
    s->inner = linalg_lu_is_vector(&s->a, &s->b) ? 1 : 2;
    const int32_t n = s->a.sizes[s->a.rank - 1];
    if (s->b.dtype != s->a.dtype || s->b.rank < s->inner || (s->inner == 1 && !s->left) ||
        s->b.sizes[s->b.rank - (s->left ? s->inner : 1)] != n) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, PT_REASON_FIT);
    }
    s->batch = pt_batch_of(&s->b, s->inner);
    return pt_join_batch(c, &s->batch, &s->a, 2);
}

static int solve_check(pt_context *c, const pt_ref *args) {
    solution s;
    PT_TRY(read_solution(c, args, &s));
    PT_TRY(check_factored(c, &s.a));
    const pt_batch own = pt_batch_of(&s.a, 2);
    const int32_t *inner = s.b.sizes + s.b.rank - s.inner;
    PT_TRY(pt_expect_matrices(c, args[LINALG_SOLVE_EX_RESULT], s.a.dtype, &s.batch, inner[0],
                              s.inner == 2 ? inner[1] : PT_NO_COLUMNS));
    PT_TRY(expect_factors(c, &s.a, &own, args[LINALG_SOLVE_EX_LU], args[LINALG_SOLVE_EX_PIVOTS]));
    return pt_expect_info(c, args[LINALG_SOLVE_EX_INFO], &own);
}

static int det_check(pt_context *c, const pt_ref *args) {
    const pt_tensor a = pt_get_tensor(c, args[LINALG_DET_A]);
    PT_TRY(check_factored(c, &a));
    const pt_batch b = pt_batch_of(&a, 2);
    PT_TRY(
        pt_expect_matrices(c, args[LINALG_DET_RESULT], a.dtype, &b, PT_NO_COLUMNS, PT_NO_COLUMNS));
    return expect_factors(c, &a, &b, args[LINALG_DET_LU], args[LINALG_DET_PIVOTS]);
}

static int slogdet_check(pt_context *c, const pt_ref *args) {
    const pt_tensor a = pt_get_tensor(c, args[LINALG_SLOGDET_A]);
    PT_TRY(check_factored(c, &a));
    const pt_batch b = pt_batch_of(&a, 2);
    for (uint32_t i = LINALG_SLOGDET_SIGN; i <= LINALG_SLOGDET_LOGABSDET; i++) {
        PT_TRY(pt_expect_matrices(c, args[i], a.dtype, &b, PT_NO_COLUMNS, PT_NO_COLUMNS));
    }
    return expect_factors(c, &a, &b, args[LINALG_SLOGDET_LU], args[LINALG_SLOGDET_PIVOTS]);
}

static int lu_factor_check(pt_context *c, const pt_ref *args) {
    const pt_tensor a = pt_get_tensor(c, args[LINALG_LU_FACTOR_EX_A]);
    PT_TRY(pt_check_matrices(c, &a));
    if (!pt_get_bool(c, args[LINALG_LU_FACTOR_EX_PIVOT])) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "factors without pivoting");
    }
    const pt_batch b = pt_batch_of(&a, 2);
    PT_TRY(request_factors(c, &a));
    PT_TRY(
        expect_factors(c, &a, &b, args[LINALG_LU_FACTOR_EX_LU], args[LINALG_LU_FACTOR_EX_PIVOTS]));
    return pt_expect_info(c, args[LINALG_LU_FACTOR_EX_INFO], &b);
}

#include "extra/linalg/linalg_float.inc"
#include "extra/linalg/linalg_lu_real.inc"

#include "extra/linalg/linalg_double.inc"
#include "extra/linalg/linalg_lu_real.inc"

PT_LINALG_KERNEL(inv, aten_linalg_inv_ex_inverse, wide_linalg_inv_ex_inverse)
PT_LINALG_KERNEL(solve, aten__linalg_solve_ex_result, wide_linalg_solve_ex_result)
PT_LINALG_KERNEL(det, aten__linalg_det_result, wide_linalg_det_result)
PT_LINALG_KERNEL(slogdet, aten__linalg_slogdet_sign, wide_linalg_slogdet_sign)
PT_LINALG_KERNEL(lu_factor, aten_linalg_lu_factor_ex_out, wide_linalg_lu_factor_ex_out)
