// The functions of linalg_svd.c for numbers of one type.
#include "linalg_jacobi.h"

// A matrix with no more columns than rows, as its product with `v` that is orthogonal, and v. The
// columns of each lie one behind the other.
typedef struct PT_TYPED(svd) {
    PT_REAL *w;               // rows x columns, with room for more columns if they are wanted
    PT_REAL *s;               // norms of the columns
    PT_REAL *v;               // columns x columns; NULL: not wanted
    PT_REAL scale, tolerance; // of what counts as orthogonal
    int32_t rows, columns;
} PT_TYPED(svd);

#define SVD PT_TYPED(svd)

// Columns whose norm is below this part of the largest element count as 0: their squares vanish.
#define TINY (PT_SMALLEST / PT_EPSILON)

// Makes columns p and q orthogonal. True if they were not.
static bool PT_TYPED(part)(const SVD *f, int32_t p, int32_t q) {
    PT_REAL *const x = f->w + p * f->rows, *const y = f->w + q * f->rows;
    const PT_REAL a = PT_TYPED(dot)(x, x, f->rows), d = PT_TYPED(dot)(y, y, f->rows);
    const PT_REAL b = PT_TYPED(dot)(x, y, f->rows);
    if (a < TINY || d < TINY || PT_TYPED(size)(b) <= f->tolerance * PT_SQRT(a) * PT_SQRT(d)) {
        return false;
    }
    const PT_TYPED(rotation) r = PT_TYPED(rotation_of)(a, b, d);
    PT_TYPED(rotate)(r, x, y, f->rows, 1);
    if (f->v) {
        PT_TYPED(rotate)(r, f->v + p * f->columns, f->v + q * f->columns, f->columns, 1);
    }
    return true;
}

static int PT_TYPED(make_orthogonal)(pt_context *c, const SVD *f) {
    bool rotated = true;
    for (int32_t sweep = 0; sweep < PT_TYPED(SWEEPS) && rotated; sweep++) {
        rotated = false;
        for (int32_t p = 0; p < f->columns; p++) {
            for (int32_t q = p + 1; q < f->columns; q++) {
                PT_TRY(pt_count_work(c, 4 * f->rows));
                rotated |= PT_TYPED(part)(f, p, q);
            }
        }
    }
    return PT_ERROR_OK;
}

// Puts the columns in order, the one of the largest norm first.
static int PT_TYPED(order)(pt_context *c, const SVD *f) {
    for (int32_t j = 0; j < f->columns; j++) {
        f->s[j] = PT_TYPED(norm)(f->w + j * f->rows, f->rows);
    }
    for (int32_t j = 0; j < f->columns; j++) {
        int32_t most = j;
        for (int32_t k = j + 1; k < f->columns; k++) {
            most = f->s[k] > f->s[most] ? k : most;
        }
        PT_TRY(pt_count_work(c, f->rows + f->columns));
        if (most != j) {
            PT_TYPED(exchange)(f->s + j, f->s + most, 1);
            PT_TYPED(exchange)(f->w + j * f->rows, f->w + most * f->rows, f->rows);
            if (f->v) {
                PT_TYPED(exchange)(f->v + j * f->columns, f->v + most * f->columns, f->columns);
            }
        }
    }
    return PT_ERROR_OK;
}

// The unit vector that the first n columns, which are orthonormal, leave most of.
static int32_t PT_TYPED(farthest)(const SVD *f, int32_t n) {
    int32_t found = 0;
    PT_REAL least = 2;
    for (int32_t i = 0; i < f->rows; i++) {
        PT_REAL sum = 0;
        for (int32_t j = 0; j < n; j++) {
            sum += f->w[j * f->rows + i] * f->w[j * f->rows + i];
        }
        if (sum < least) {
            least = sum;
            found = i;
        }
    }
    return found;
}

// Makes the norm of `wanted` columns 1. Those that are 0, or behind the last one, become any that
// are orthogonal to those before: what is left of a unit vector without its parts along them, which
// are taken off twice since the first time leaves their rounding.
static int PT_TYPED(make_unit)(pt_context *c, const SVD *f, int32_t wanted) {
    for (int32_t j = 0; j < wanted; j++) {
        PT_REAL *const x = f->w + j * f->rows;
        PT_REAL norm = j < f->columns ? f->s[j] : 0;
        PT_TRY(pt_count_work(c, f->rows));
        if (norm * norm < TINY) {
            const int32_t at = PT_TYPED(farthest)(f, j);
            for (int32_t i = 0; i < f->rows; i++) {
                x[i] = (PT_REAL)(i == at);
            }
            for (int32_t k = 0; k < 2 * j; k++) {
                const PT_REAL *other = f->w + k % j * f->rows;
                const PT_REAL part = PT_TYPED(dot)(x, other, f->rows);
                PT_TRY(pt_count_work(c, 2 * f->rows));
                for (int32_t i = 0; i < f->rows; i++) {
                    x[i] -= part * other[i];
                }
            }
            norm = PT_TYPED(norm)(x, f->rows);
        }
        for (int32_t i = 0; i < f->rows; i++) {
            x[i] /= norm;
        }
    }
    return PT_ERROR_OK;
}

static int PT_TYPED(decompose)(pt_context *c, SVD *f, pt_matrix m, int32_t wanted) {
    for (int32_t j = 0; j < f->columns; j++) {
        PT_TRY(pt_count_work(c, f->rows));
        for (int32_t i = 0; i < f->rows; i++) {
            f->w[j * f->rows + i] = PT_TYPED(get)(m, i, j);
        }
    }
    const int32_t n = f->rows * f->columns;
    f->scale = PT_TYPED(scale_of)(f->w, n);
    if (f->scale == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, PT_REASON_NOT_FINITE);
    }
    for (int32_t i = 0; i < n; i++) {
        f->w[i] *= f->scale;
    }
    if (f->v) {
        PT_TYPED(make_identity)(f->v, f->columns);
    }
    PT_TRY(PT_TYPED(make_orthogonal)(c, f));
    PT_TRY(PT_TYPED(order)(c, f));
    return f->v ? PT_TYPED(make_unit)(c, f, wanted) : PT_ERROR_OK;
}

static int PT_TYPED(svd_run)(pt_context *c, const pt_ref *args) {
    decomposition d;
    PT_TRY(read_decomposition(c, args, &d));
    const pt_tensor s = pt_get_tensor(c, args[LINALG_SVD_S]);
    const pt_tensor u = pt_get_tensor(c, args[LINALG_SVD_U]);
    const pt_tensor vh = pt_get_tensor(c, args[LINALG_SVD_VH]);
    void *scratch;
    PT_TRY(pt_take_scratch(c, svd_scratch(&d), &scratch));
    SVD f = {.w = scratch, .rows = d.rows, .columns = d.columns};
    f.tolerance = PT_EPSILON * PT_SQRT((PT_REAL)d.rows);
    f.s = f.w + d.rows * d.wanted;
    f.v = d.has_vectors ? f.s + d.columns : NULL;
    for (int32_t i = 0; i < pt_batch_count(c, &d.batch); i++) {
        const pt_matrix m = pt_matrix_of(&d.a, 2, &d.batch, i);
        const pt_matrix norms = pt_matrix_of(&s, 1, &d.batch, i);
        PT_TRY(pt_count_matrix(c));
        PT_TRY(PT_TYPED(decompose)(c, &f, d.wide ? pt_transposed(m) : m, d.wanted));
        for (int32_t j = 0; j < d.columns; j++) {
            PT_TYPED(put)(norms, j, 0, f.s[j] / f.scale);
        }
        if (f.v) {
            const pt_matrix left = pt_matrix_of(&u, 2, &d.batch, i);
            const pt_matrix right = pt_transposed(pt_matrix_of(&vh, 2, &d.batch, i));
            PT_TYPED(store_columns)(d.wide ? right : left, f.w);
            PT_TYPED(store_columns)(d.wide ? left : right, f.v);
        }
    }
    return PT_ERROR_OK;
}

#undef SVD
#undef TINY
