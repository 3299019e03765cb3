// Eigenvalues and eigenvectors of symmetric matrices, by Jacobi's rotations. The eigenvalues
// ascend. The signs of the vectors are arbitrary, and so are the vectors of equal values. As in
// PyTorch, only one triangle is read, and an infinity or a NaN in it is an error.
#include "core/generated/operator_arguments.h"
#include "extra/linalg/linalg.h"
#include "portable/arguments.h"

static bool is_upper(const pt_context *c, pt_ref uplo) {
    static const char upper[] = "U", small_upper[] = "u";
    return pt_string_is(c, uplo, upper) || pt_string_is(c, uplo, small_upper);
}

static bool is_lower(const pt_context *c, pt_ref uplo) {
    static const char lower[] = "L", small_lower[] = "l";
    return pt_string_is(c, uplo, lower) || pt_string_is(c, uplo, small_lower);
}

// Returns the bytes of a matrix and of its eigenvectors.
static uint32_t eigh_scratch(const pt_tensor *a, bool has_vectors) {
    const int64_t n = a->sizes[a->rank - 1];
    return pt_matrix_scratch(pt_element_size(a->dtype), n * n * (has_vectors ? 2 : 1), 0);
}

static int eigh_check(pt_context *c, const pt_ref *args) {
    const pt_tensor a = pt_get_tensor(c, args[LINALG_EIGH_A]);
    const pt_ref uplo = args[LINALG_EIGH_UPLO];
    PT_TRY(pt_check_square(c, &a));
    if (!is_upper(c, uplo) && !is_lower(c, uplo)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "UPLO must be L or U");
    }
    const pt_batch b = pt_batch_of(&a, 2);
    const int32_t n = a.sizes[a.rank - 1];
    const bool has_vectors = pt_get_bool(c, args[LINALG_EIGH_COMPUTE_V]);
    PT_TRY(pt_request_matrices(c, eigh_scratch(&a, has_vectors)));
    PT_TRY(pt_expect_matrices(c, args[LINALG_EIGH_EIGENVALUES], a.dtype, &b, n, PT_NO_COLUMNS));
    return has_vectors ? pt_expect_matrices(c, args[LINALG_EIGH_EIGENVECTORS], a.dtype, &b, n, n)
                       : pt_expect_none(c, args[LINALG_EIGH_EIGENVECTORS], a.dtype);
}

#include "extra/linalg/linalg_float.inc"
#include "extra/linalg/linalg_symmetric_real.inc"

#include "extra/linalg/linalg_double.inc"
#include "extra/linalg/linalg_symmetric_real.inc"

PT_LINALG_KERNEL(eigh, aten__linalg_eigh_eigenvalues, wide_linalg_eigh_eigenvalues)
