// Singular values and vectors, A = U S Vh, by Jacobi's rotations of the columns of A, or of its
// transpose if it has more columns than rows (Hestenes: Inversion of matrices by
// biorthogonalization, 1958).
//
// The signs of the vectors are arbitrary, and so are the vectors of equal singular values and of
// the value 0. As in PyTorch, an infinity or a NaN in the matrix is an error.
#include "core/generated/operator_arguments.h"
#include "extra/linalg/linalg.h"

typedef struct decomposition {
    pt_tensor a;
    pt_batch batch;
    bool wide;             // decompose the transpose
    bool has_vectors;      // compute U and Vh
    int32_t rows, columns; // sizes of the decomposed matrix
    int32_t wanted;        // number of its left vectors to compute
} decomposition;

static int read_decomposition(pt_context *c, const pt_ref *args, decomposition *d) {
    d->a = pt_get_tensor(c, args[LINALG_SVD_A]);
    PT_TRY(pt_check_matrices(c, &d->a));
    const int32_t rows = d->a.sizes[d->a.rank - 2], columns = d->a.sizes[d->a.rank - 1];
    d->wide = columns > rows;
    d->rows = d->wide ? columns : rows;
    d->columns = d->wide ? rows : columns;
    d->has_vectors = pt_get_bool(c, args[LINALG_SVD_COMPUTE_UV]);
    d->wanted =
        d->has_vectors && pt_get_bool(c, args[LINALG_SVD_FULL_MATRICES]) ? d->rows : d->columns;
    d->batch = pt_batch_of(&d->a, 2);
    return PT_ERROR_OK;
}

// Returns the bytes of the left vectors, the singular values and the right vectors.
static uint32_t svd_scratch(const decomposition *d) {
    const int64_t columns = d->columns, right = d->has_vectors ? columns * columns : 0;
    return pt_matrix_scratch(pt_element_size(d->a.dtype),
                             (int64_t)d->rows * d->wanted + columns + right, 0);
}

static int svd_check(pt_context *c, const pt_ref *args) {
    decomposition d;
    PT_TRY(read_decomposition(c, args, &d));
    const pt_tensor *const a = &d.a;
    PT_TRY(pt_request_matrices(c, svd_scratch(&d)));
    PT_TRY(pt_expect_matrices(c, args[LINALG_SVD_S], a->dtype, &d.batch, d.columns, PT_NO_COLUMNS));
    if (!d.has_vectors) {
        PT_TRY(pt_expect_none(c, args[LINALG_SVD_U], a->dtype));
        return pt_expect_none(c, args[LINALG_SVD_VH], a->dtype);
    }
    const int32_t left = d.wide ? d.columns : d.wanted, right = d.wide ? d.wanted : d.columns;
    PT_TRY(
        pt_expect_matrices(c, args[LINALG_SVD_U], a->dtype, &d.batch, a->sizes[a->rank - 2], left));
    return pt_expect_matrices(c, args[LINALG_SVD_VH], a->dtype, &d.batch, right,
                              a->sizes[a->rank - 1]);
}

#include "extra/linalg/linalg_float.inc"
#include "extra/linalg/linalg_svd_real.inc"

#include "extra/linalg/linalg_double.inc"
#include "extra/linalg/linalg_svd_real.inc"

PT_LINALG_KERNEL(svd, aten__linalg_svd_U, wide_linalg_svd_U)
