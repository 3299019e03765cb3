// The functions of linalg_symmetric.c for numbers of one type.
#include "linalg_jacobi.h"

// A symmetric matrix, and the rotations that made it diagonal.
typedef struct PT_TYPED(eigen) {
    PT_REAL *a; // n x n
    PT_REAL *v; // the same, column after column; NULL: not wanted
    PT_REAL scale;
    int32_t n;
} PT_TYPED(eigen);

#define EIGEN PT_TYPED(eigen)

// Makes a[p][q] 0 by a rotation of rows and columns p and q. False if it is small enough.
static bool PT_TYPED(eliminate)(const EIGEN *f, int32_t p, int32_t q) {
    const int32_t n = f->n;
    PT_REAL *const row = f->a + p * n, *const other = f->a + q * n;
    const PT_REAL b = row[q], first = row[p], last = other[q];
    if (PT_TYPED(size)(b) <= PT_EPSILON / 8 / (PT_REAL)n) {
        return false;
    }
    const PT_TYPED(rotation) r = PT_TYPED(rotation_of)(first, b, last);
    PT_TYPED(rotate)(r, row, other, n, 1);
    PT_TYPED(rotate)(r, f->a + p, f->a + q, n, n);
    row[p] = first - r.tangent * b;
    other[q] = last + r.tangent * b;
    row[q] = other[p] = 0;
    if (f->v) {
        PT_TYPED(rotate)(r, f->v + p * n, f->v + q * n, n, 1);
    }
    return true;
}

static int PT_TYPED(make_diagonal)(pt_context *c, const EIGEN *f) {
    bool rotated = true;
    for (int32_t sweep = 0; sweep < PT_TYPED(SWEEPS) && rotated; sweep++) {
        rotated = false;
        for (int32_t p = 0; p < f->n; p++) {
            for (int32_t q = p + 1; q < f->n; q++) {
                PT_TRY(pt_count_work(c, 3 * f->n));
                rotated |= PT_TYPED(eliminate)(f, p, q);
            }
        }
    }
    return PT_ERROR_OK;
}

// Puts the diagonal in order, the smallest first, and the columns of v with it.
static int PT_TYPED(order)(pt_context *c, const EIGEN *f) {
    const int32_t n = f->n;
    for (int32_t j = 0; j < n; j++) {
        int32_t least = j;
        for (int32_t k = j + 1; k < n; k++) {
            least = f->a[k * n + k] < f->a[least * n + least] ? k : least;
        }
        PT_TRY(pt_count_work(c, n));
        if (least != j) {
            PT_TYPED(exchange)(f->a + j * n + j, f->a + least * n + least, 1);
            if (f->v) {
                PT_TYPED(exchange)(f->v + j * n, f->v + least * n, n);
            }
        }
    }
    return PT_ERROR_OK;
}

// Loads the lower triangle of m on both sides, scaled.
static int PT_TYPED(load_symmetric)(pt_context *c, EIGEN *f, pt_matrix m) {
    const int32_t n = f->n;
    for (int32_t i = 0; i < n; i++) {
        PT_TRY(pt_count_work(c, i + 1));
        for (int32_t j = 0; j <= i; j++) {
            f->a[i * n + j] = f->a[j * n + i] = PT_TYPED(get)(m, i, j);
        }
    }
    f->scale = PT_TYPED(scale_of)(f->a, n * n);
    for (int32_t i = 0; i < n * n; i++) {
        f->a[i] *= f->scale;
    }
    return f->scale == 0 ? pt_fail(c, PT_ERROR_INVALID_ARGUMENT, PT_REASON_NOT_FINITE)
                         : PT_ERROR_OK;
}

static int PT_TYPED(eigh_run)(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[LINALG_EIGH_A]);
    const pt_tensor values = pt_get_tensor(c, args[LINALG_EIGH_EIGENVALUES]);
    const pt_tensor vectors = pt_get_tensor(c, args[LINALG_EIGH_EIGENVECTORS]);
    const bool upper = is_upper(c, args[LINALG_EIGH_UPLO]);
    const bool has_vectors = pt_get_bool(c, args[LINALG_EIGH_COMPUTE_V]);
    void *scratch;
    PT_TRY(pt_take_scratch(c, eigh_scratch(&in, has_vectors), &scratch));
    EIGEN f = {.a = scratch, .n = in.sizes[in.rank - 1]};
    f.v = has_vectors ? f.a + f.n * f.n : NULL;
    const pt_batch b = pt_batch_of(&in, 2);
    for (int32_t i = 0; i < pt_batch_count(c, &b); i++) {
        const pt_matrix m = pt_matrix_of(&in, 2, &b, i), to = pt_matrix_of(&values, 1, &b, i);
        PT_TRY(pt_count_matrix(c));
        PT_TRY(PT_TYPED(load_symmetric)(c, &f, upper ? pt_transposed(m) : m));
        if (f.v) {
            PT_TYPED(make_identity)(f.v, f.n);
        }
        PT_TRY(PT_TYPED(make_diagonal)(c, &f));
        PT_TRY(PT_TYPED(order)(c, &f));
        for (int32_t j = 0; j < f.n; j++) {
            PT_TYPED(put)(to, j, 0, f.a[j * (f.n + 1)] / f.scale);
        }
        if (f.v) {
            PT_TYPED(store_columns)(pt_matrix_of(&vectors, 2, &b, i), f.v);
        }
    }
    return PT_ERROR_OK;
}

#undef EIGEN
