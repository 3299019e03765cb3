// The functions of linalg_lu.c for numbers of one type.

// The factors of a matrix: P L U, of which L has ones on its diagonal.
typedef struct PT_TYPED(lu) {
    PT_REAL *a;      // rows x columns, one row behind the other: U, and L below the diagonal
    PT_REAL *x;      // room for a column
    int32_t *pivots; // row k changed places with row pivots[k], the first one first
    int32_t rows, columns;
    int32_t info; // the first 0 on U's diagonal, counted from 1; or 0
} PT_TYPED(lu);

#define LU PT_TYPED(lu)

// Places a matrix in scratch.
static int PT_TYPED(start_lu)(pt_context *c, LU *f, int32_t rows, int32_t columns) {
    void *scratch;
    PT_TRY(pt_take_scratch(c, factor_scratch(sizeof(PT_REAL), rows, columns), &scratch));
    PT_REAL *a = scratch, *x = a + rows * columns;
    *f = (LU){a, x, (int32_t *)(void *)(x + rows), rows, columns, 0};
    return PT_ERROR_OK;
}

static int PT_TYPED(load_lu)(pt_context *c, const LU *f, pt_matrix m) {
    for (int32_t i = 0; i < f->rows; i++) {
        PT_TRY(pt_count_work(c, f->columns));
        for (int32_t j = 0; j < f->columns; j++) {
            f->a[i * f->columns + j] = PT_TYPED(get)(m, i, j);
        }
    }
    return PT_ERROR_OK;
}

// Factors with the largest of a column as pivot, of equal ones the first.
static int PT_TYPED(factor)(pt_context *c, LU *f) {
    PT_REAL *const a = f->a;
    const int32_t n = f->columns, steps = f->rows < n ? f->rows : n;
    for (int32_t k = 0; k < steps; k++) {
        int32_t pivot = k;
        PT_TRY(pt_count_work(c, f->rows));
        for (int32_t i = k + 1; i < f->rows; i++) {
            if (PT_TYPED(size)(a[i * n + k]) > PT_TYPED(size)(a[pivot * n + k])) {
                pivot = i;
            }
        }
        f->pivots[k] = pivot;
        if (pivot != k) {
            PT_TYPED(exchange)(a + k * n, a + pivot * n, n);
        }
        const PT_REAL divisor = a[k * n + k];
        if (divisor == 0) {
            f->info = f->info ? f->info : k + 1;
            continue;
        }
        for (int32_t i = k + 1; i < f->rows; i++) {
            const PT_REAL factor = a[i * n + k] / divisor;
            PT_TRY(pt_count_work(c, n));
            a[i * n + k] = factor;
            for (int32_t j = k + 1; j < n; j++) {
                a[i * n + j] -= factor * a[k * n + j];
            }
        }
    }
    return PT_ERROR_OK;
}

// Loads and factors a matrix.
static int PT_TYPED(factor_matrix)(pt_context *c, LU *f, pt_matrix m) {
    PT_TRY(PT_TYPED(start_lu)(c, f, m.rows, m.columns));
    PT_TRY(pt_count_matrix(c));
    PT_TRY(PT_TYPED(load_lu)(c, f, m));
    return PT_TYPED(factor)(c, f);
}

// x = A^-1 x
static int PT_TYPED(solve_column)(pt_context *c, const LU *f) {
    PT_REAL *const x = f->x;
    const int32_t n = f->columns;
    for (int32_t i = 0; i < n; i++) {
        PT_TYPED(exchange)(x + i, x + f->pivots[i], 1);
    }
    for (int32_t i = 0; i < n; i++) {
        PT_TRY(pt_count_work(c, i));
        x[i] -= PT_TYPED(dot)(f->a + i * n, x, i);
    }
    for (int32_t i = n; i-- > 0;) {
        PT_TRY(pt_count_work(c, n - i));
        const PT_REAL *row = f->a + i * n;
        x[i] = (x[i] - PT_TYPED(dot)(row + i + 1, x + i + 1, n - i - 1)) / row[i];
    }
    return PT_ERROR_OK;
}

// x = (A^T)^-1 x
static int PT_TYPED(solve_transposed)(pt_context *c, const LU *f) {
    PT_REAL *const x = f->x;
    const int32_t n = f->columns;
    for (int32_t i = 0; i < n; i++) {
        const PT_REAL *row = f->a + i * n;
        PT_TRY(pt_count_work(c, n - i));
        x[i] /= row[i];
        for (int32_t j = i + 1; j < n; j++) {
            x[j] -= row[j] * x[i];
        }
    }
    for (int32_t i = n; i-- > 0;) {
        PT_TRY(pt_count_work(c, i));
        for (int32_t j = 0; j < i; j++) {
            x[j] -= f->a[i * n + j] * x[i];
        }
    }
    for (int32_t i = n; i-- > 0;) {
        PT_TYPED(exchange)(x + i, x + f->pivots[i], 1);
    }
    return PT_ERROR_OK;
}

// Solves for column j of b, or of the identity where b has no data.
static int PT_TYPED(solve_into)(pt_context *c, const LU *f, bool transposed, pt_matrix b, int32_t j,
                                pt_matrix to) {
    for (int32_t i = 0; i < f->rows; i++) {
        f->x[i] = b.data ? PT_TYPED(get)(b, i, j) : (PT_REAL)(i == j);
    }
    PT_TRY(transposed ? PT_TYPED(solve_transposed)(c, f) : PT_TYPED(solve_column)(c, f));
    for (int32_t i = 0; i < f->rows; i++) {
        PT_TYPED(put)(to, i, j, f->x[i]);
    }
    return PT_ERROR_OK;
}

static void PT_TYPED(store_pivots)(const LU *f, const pt_tensor *pivots, const pt_batch *b,
                                   int32_t index) {
    const pt_matrix m = pt_matrix_of(pivots, 1, b, index);
    for (int32_t i = 0; i < m.rows; i++) {
        ((int32_t *)m.data)[m.at + i * m.down] = f->pivots[i] + 1;
    }
}

// Stores the factors in the outputs LU and pivots.
static void PT_TYPED(store_factors)(const LU *f, const pt_tensor *lu, const pt_tensor *pivots,
                                    const pt_batch *b, int32_t index) {
    const pt_matrix m = pt_matrix_of(lu, 2, b, index);
    for (int32_t i = 0; i < f->rows; i++) {
        for (int32_t j = 0; j < f->columns; j++) {
            PT_TYPED(put)(m, i, j, f->a[i * f->columns + j]);
        }
    }
    PT_TYPED(store_pivots)(f, pivots, b, index);
}

// ---- inverse

static int PT_TYPED(inv_run)(pt_context *c, const pt_ref *args) {
    const pt_tensor a = pt_get_tensor(c, args[LINALG_INV_EX_A]);
    const pt_tensor inverse = pt_get_tensor(c, args[LINALG_INV_EX_INVERSE]);
    const pt_tensor info = pt_get_tensor(c, args[LINALG_INV_EX_INFO]);
    const bool raises = pt_get_bool(c, args[LINALG_INV_EX_CHECK_ERRORS]);
    const pt_batch b = pt_batch_of(&a, 2);
    for (int32_t i = 0; i < pt_batch_count(c, &b); i++) {
        LU f;
        PT_TRY(PT_TYPED(factor_matrix)(c, &f, pt_matrix_of(&a, 2, &b, i)));
        PT_TRY(pt_give_info(c, raises, &info, &b, i, f.info, SINGULAR));
        const pt_matrix to = pt_matrix_of(&inverse, 2, &b, i);
        for (int32_t j = 0; j < f.columns; j++) {
            PT_TRY(PT_TYPED(solve_into)(c, &f, false, (pt_matrix){0}, j, to));
        }
    }
    return PT_ERROR_OK;
}

// ---- solve

static int PT_TYPED(solve_run)(pt_context *c, const pt_ref *args) {
    solution s;
    PT_TRY(read_solution(c, args, &s));
    const pt_tensor result = pt_get_tensor(c, args[LINALG_SOLVE_EX_RESULT]);
    const pt_tensor lu = pt_get_tensor(c, args[LINALG_SOLVE_EX_LU]);
    const pt_tensor pivots = pt_get_tensor(c, args[LINALG_SOLVE_EX_PIVOTS]);
    const pt_tensor info = pt_get_tensor(c, args[LINALG_SOLVE_EX_INFO]);
    const bool raises = pt_get_bool(c, args[LINALG_SOLVE_EX_CHECK_ERRORS]);
    const bool is_empty = pt_numel(&result) == 0; // A may still have factors
    const pt_batch batch = is_empty ? pt_batch_of(&s.a, 2) : s.batch;
    for (int32_t i = 0; i < pt_batch_count(c, &batch); i++) {
        LU f;
        PT_TRY(PT_TYPED(factor_matrix)(c, &f, pt_matrix_of(&s.a, 2, &batch, i)));
        PT_TRY(pt_give_info(c, raises, &info, &batch, i, f.info, SINGULAR));
        PT_TYPED(store_factors)(&f, &lu, &pivots, &batch, i);
        if (is_empty) {
            continue;
        }
        pt_matrix from = pt_matrix_of(&s.b, s.inner, &s.batch, i);
        pt_matrix to = pt_matrix_of(&result, s.inner, &s.batch, i);
        from = s.left ? from : pt_transposed(from);
        to = s.left ? to : pt_transposed(to);
        for (int32_t j = 0; j < to.columns; j++) {
            PT_TRY(PT_TYPED(solve_into)(c, &f, !s.left, from, j, to));
        }
    }
    return PT_ERROR_OK;
}

// ---- determinant

// The product of the diagonal, times -1 for each two rows that changed places.
static PT_REAL PT_TYPED(determinant)(const LU *f) {
    PT_REAL product = 1;
    for (int32_t i = 0; i < f->rows; i++) {
        const PT_REAL d = f->a[i * f->columns + i];
        product *= f->pivots[i] == i ? d : -d;
    }
    return product;
}

static int PT_TYPED(det_run)(pt_context *c, const pt_ref *args) {
    const pt_tensor a = pt_get_tensor(c, args[LINALG_DET_A]);
    const pt_tensor result = pt_get_tensor(c, args[LINALG_DET_RESULT]);
    const pt_tensor lu = pt_get_tensor(c, args[LINALG_DET_LU]);
    const pt_tensor pivots = pt_get_tensor(c, args[LINALG_DET_PIVOTS]);
    const pt_batch b = pt_batch_of(&a, 2);
    for (int32_t i = 0; i < pt_batch_count(c, &b); i++) {
        LU f;
        PT_TRY(PT_TYPED(factor_matrix)(c, &f, determined(&a, &b, i)));
        PT_TYPED(put)(pt_matrix_of(&result, 0, &b, i), 0, 0, PT_TYPED(determinant)(&f));
        PT_TYPED(store_factors)(&f, &lu, &pivots, &b, i);
    }
    return PT_ERROR_OK;
}

// ---- sign and logarithm of the determinant

static int PT_TYPED(slogdet_run)(pt_context *c, const pt_ref *args) {
    const pt_tensor a = pt_get_tensor(c, args[LINALG_SLOGDET_A]);
    const pt_tensor sign = pt_get_tensor(c, args[LINALG_SLOGDET_SIGN]);
    const pt_tensor logarithm = pt_get_tensor(c, args[LINALG_SLOGDET_LOGABSDET]);
    const pt_tensor lu = pt_get_tensor(c, args[LINALG_SLOGDET_LU]);
    const pt_tensor pivots = pt_get_tensor(c, args[LINALG_SLOGDET_PIVOTS]);
    const pt_batch b = pt_batch_of(&a, 2);
    for (int32_t i = 0; i < pt_batch_count(c, &b); i++) {
        LU f;
        PT_REAL sum = 0;
        PT_TRY(PT_TYPED(factor_matrix)(c, &f, determined(&a, &b, i)));
        PT_TYPED(store_factors)(&f, &lu, &pivots, &b, i);
        for (int32_t k = 0; k < f.rows; k++) {
            PT_REAL *d = f.a + k * f.columns + k;
            PT_TRY(pt_count_elements(c, 1));
            sum += PT_LOG(PT_TYPED(size)(*d));
            *d = (PT_REAL)(*d > 0 ? 1 : *d < 0 ? -1 : *d); // a NaN stays one
        }
        PT_TYPED(put)(pt_matrix_of(&sign, 0, &b, i), 0, 0, PT_TYPED(determinant)(&f));
        PT_TYPED(put)(pt_matrix_of(&logarithm, 0, &b, i), 0, 0, sum);
    }
    return PT_ERROR_OK;
}

// ---- the factors themselves

static int PT_TYPED(lu_factor_run)(pt_context *c, const pt_ref *args) {
    const pt_tensor a = pt_get_tensor(c, args[LINALG_LU_FACTOR_EX_A]);
    const pt_tensor lu = pt_get_tensor(c, args[LINALG_LU_FACTOR_EX_LU]);
    const pt_tensor pivots = pt_get_tensor(c, args[LINALG_LU_FACTOR_EX_PIVOTS]);
    const pt_tensor info = pt_get_tensor(c, args[LINALG_LU_FACTOR_EX_INFO]);
    const bool raises = pt_get_bool(c, args[LINALG_LU_FACTOR_EX_CHECK_ERRORS]);
    const pt_batch b = pt_batch_of(&a, 2);
    for (int32_t i = 0; i < pt_batch_count(c, &b); i++) {
        LU f;
        PT_TRY(PT_TYPED(factor_matrix)(c, &f, pt_matrix_of(&a, 2, &b, i)));
        PT_TRY(pt_give_info(c, raises, &info, &b, i, f.info, SINGULAR));
        PT_TYPED(store_factors)(&f, &lu, &pivots, &b, i);
    }
    return PT_ERROR_OK;
}

#undef LU
