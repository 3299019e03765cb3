// The functions of linalg_triangle.c for numbers of one type.

// x = A^-1 x for a lower or upper triangle, whose diagonal is `unit` ones or what lies there.
static int PT_TYPED(substitute)(pt_context *c, pt_matrix a, bool upper, bool unit, PT_REAL *x) {
    const int32_t n = a.rows;
    for (int32_t k = 0; k < n; k++) {
        const int32_t i = upper ? n - 1 - k : k, from = upper ? i + 1 : 0;
        PT_REAL sum = x[i];
        PT_TRY(pt_count_work(c, k + 1));
        for (int32_t j = from; j < from + k; j++) {
            sum -= PT_TYPED(get)(a, i, j) * x[j];
        }
        x[i] = unit ? sum : sum / PT_TYPED(get)(a, i, i);
    }
    return PT_ERROR_OK;
}

static int PT_TYPED(triangular_run)(pt_context *c, const pt_ref *args) {
    const pt_tensor a = pt_get_tensor(c, args[LINALG_SOLVE_TRIANGULAR_SELF]);
    const pt_tensor b = pt_get_tensor(c, args[LINALG_SOLVE_TRIANGULAR_B]);
    const pt_tensor out = pt_get_tensor(c, args[LINALG_SOLVE_TRIANGULAR_OUT]);
    const bool left = pt_get_bool(c, args[LINALG_SOLVE_TRIANGULAR_LEFT]);
    const bool upper = pt_get_bool(c, args[LINALG_SOLVE_TRIANGULAR_UPPER]) == left;
    const bool unit = pt_get_bool(c, args[LINALG_SOLVE_TRIANGULAR_UNITRIANGULAR]);
    void *scratch;
    PT_TRY(pt_take_scratch(c, triangular_scratch(&a), &scratch));
    PT_REAL *const x = scratch;
    const pt_batch batch = pt_batch_of(&out, 2);
    for (int32_t i = 0; i < pt_batch_count(c, &batch); i++) {
        pt_matrix from = pt_matrix_of(&b, 2, &batch, i), to = pt_matrix_of(&out, 2, &batch, i);
        pt_matrix triangle = pt_matrix_of(&a, 2, &batch, i);
        if (!left) { // A^T X^T = B^T
            triangle = pt_transposed(triangle);
            from = pt_transposed(from);
            to = pt_transposed(to);
        }
        PT_TRY(pt_count_matrix(c));
        for (int32_t j = 0; j < to.columns; j++) {
            for (int32_t k = 0; k < to.rows; k++) {
                x[k] = PT_TYPED(get)(from, k, j);
            }
            PT_TRY(PT_TYPED(substitute)(c, triangle, upper, unit, x));
            for (int32_t k = 0; k < to.rows; k++) {
                PT_TYPED(put)(to, k, j, x[k]);
            }
        }
    }
    return PT_ERROR_OK;
}

// a[i][j] minus the product of rows i and j of l, up to column n.
static PT_REAL PT_TYPED(rest)(pt_matrix a, pt_matrix l, int32_t i, int32_t j, int32_t n) {
    PT_REAL sum = PT_TYPED(get)(a, i, j);
    for (int32_t k = 0; k < n; k++) {
        sum -= PT_TYPED(get)(l, i, k) * PT_TYPED(get)(l, j, k);
    }
    return sum;
}

// a = l l^T, row after row. *info is the first column, counted from 1, up to which a is not
// positive definite, or 0; from that column on l has elements of a.
static int PT_TYPED(cholesky)(pt_context *c, pt_matrix a, pt_matrix l, int32_t *info) {
    int32_t columns = a.rows; // that are factored
    *info = 0;
    for (int32_t i = 0; i < a.rows; i++) {
        for (int32_t j = 0; j < i; j++) {
            PT_TRY(pt_count_work(c, j + 1));
            PT_REAL x = PT_TYPED(rest)(a, l, i, j, j < columns ? j : 0);
            x = j < columns ? x / PT_TYPED(get)(l, j, j) : x;
            PT_TYPED(put)(l, i, j, x);
            PT_TYPED(put)(l, j, i, 0);
        }
        const PT_REAL d = PT_TYPED(rest)(a, l, i, i, i < columns ? i : 0);
        if (i < columns && !(d > 0)) {
            columns = i;
            *info = i + 1;
        }
        PT_TRY(pt_count_work(c, i + 1));
        PT_TYPED(put)(l, i, i, i < columns ? PT_SQRT(d) : d);
    }
    return PT_ERROR_OK;
}

static int PT_TYPED(cholesky_run)(pt_context *c, const pt_ref *args) {
    const pt_tensor self = pt_get_tensor(c, args[LINALG_CHOLESKY_EX_SELF]);
    const pt_tensor out = pt_get_tensor(c, args[LINALG_CHOLESKY_EX_L]);
    const pt_tensor infos = pt_get_tensor(c, args[LINALG_CHOLESKY_EX_INFO]);
    const bool upper = pt_get_bool(c, args[LINALG_CHOLESKY_EX_UPPER]);
    const bool raises = pt_get_bool(c, args[LINALG_CHOLESKY_EX_CHECK_ERRORS]);
    const pt_batch b = pt_batch_of(&self, 2);
    for (int32_t i = 0; i < pt_batch_count(c, &b); i++) {
        const pt_matrix a = pt_matrix_of(&self, 2, &b, i), l = pt_matrix_of(&out, 2, &b, i);
        int32_t info;
        PT_TRY(pt_count_matrix(c));
        PT_TRY(PT_TYPED(cholesky)(c, upper ? pt_transposed(a) : a, upper ? pt_transposed(l) : l,
                                  &info));
        PT_TRY(pt_give_info(c, raises, &infos, &b, i, info, "a matrix is not positive definite"));
    }
    return PT_ERROR_OK;
}
