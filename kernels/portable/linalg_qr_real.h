// The functions of linalg_qr.c for numbers of one type.

// x += factor v, of n elements.
static void PT_TYPED(add_multiple)(PT_REAL *x, PT_REAL factor, const PT_REAL *v, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        x[i] += factor * v[i];
    }
}

// Makes a reflection I - factor v v^T that turns the n elements of x into a multiple of the first
// unit vector, with the opposite sign of x[0]: x[0] becomes what is left there, the others those of
// v, whose first is 1. Returns the factor.
static PT_REAL PT_TYPED(make_reflection)(PT_REAL *x, int32_t n) {
    const PT_REAL first = x[0], parts[] = {first, PT_TYPED(norm)(x + 1, n - 1)};
    if (parts[1] == 0) {
        return 0; // it is one already
    }
    x[0] = PT_TYPED(norm)(parts, 2);
    x[0] = first < 0 ? x[0] : -x[0];
    for (int32_t i = 1; i < n; i++) {
        x[i] /= first - x[0];
    }
    return (x[0] - first) / x[0];
}

// Reflects the n elements of x.
static void PT_TYPED(reflect)(PT_REAL *x, const PT_REAL *v, PT_REAL factor, int32_t n) {
    const PT_REAL by = -factor * (x[0] + PT_TYPED(dot)(v + 1, x + 1, n - 1));
    x[0] += by;
    PT_TYPED(add_multiple)(x + 1, by, v + 1, n - 1);
}

// Factors a, whose columns lie one behind the other; `factors` has one for each reflection.
static int PT_TYPED(factor)(pt_context *c, PT_REAL *a, int32_t rows, int32_t columns,
                            PT_REAL *factors) {
    for (int32_t k = 0; k < rows && k < columns; k++) {
        PT_REAL *const v = a + k * rows + k;
        PT_TRY(pt_count_work(c, rows));
        factors[k] = PT_TYPED(make_reflection)(v, rows - k);
        for (int32_t j = k + 1; j < columns; j++) {
            PT_TRY(pt_count_work(c, rows - k));
            PT_TYPED(reflect)(a + j * rows + k, v, factors[k], rows - k);
        }
    }
    return PT_ERROR_OK;
}

// Writes the columns of Q, by reflecting unit vectors in x.
static int PT_TYPED(store_q)(pt_context *c, pt_matrix q, const PT_REAL *a, const PT_REAL *factors,
                             int32_t reflections, PT_REAL *x) {
    const int32_t rows = q.rows;
    for (int32_t j = 0; j < q.columns; j++) {
        for (int32_t i = 0; i < rows; i++) {
            x[i] = (PT_REAL)(i == j);
        }
        for (int32_t k = j < reflections ? j + 1 : reflections; k-- > 0;) {
            PT_TRY(pt_count_work(c, rows - k));
            PT_TYPED(reflect)(x + k, a + k * rows + k, factors[k], rows - k);
        }
        for (int32_t i = 0; i < rows; i++) {
            PT_TYPED(put)(q, i, j, x[i]);
        }
    }
    return PT_ERROR_OK;
}

static int PT_TYPED(qr_run)(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[LINALG_QR_A]);
    const pt_tensor q = pt_get_tensor(c, args[LINALG_QR_Q]);
    const pt_tensor r = pt_get_tensor(c, args[LINALG_QR_R]);
    const int32_t rows = in.sizes[in.rank - 2], columns = in.sizes[in.rank - 1];
    const int32_t reflections = rows < columns ? rows : columns;
    void *scratch;
    PT_TRY(pt_take_scratch(c, qr_scratch(&in), &scratch));
    PT_REAL *const a = scratch;
    PT_REAL *const factors = a + rows * columns, *const x = factors + reflections;
    const pt_batch b = pt_batch_of(&in, 2);
    for (int32_t i = 0; i < pt_batch_count(c, &b); i++) {
        const pt_matrix from = pt_matrix_of(&in, 2, &b, i), to = pt_matrix_of(&r, 2, &b, i);
        PT_TRY(pt_count_matrix(c));
        for (int32_t j = 0; j < columns; j++) {
            for (int32_t k = 0; k < rows; k++) {
                a[j * rows + k] = PT_TYPED(get)(from, k, j);
            }
        }
        PT_TRY(PT_TYPED(factor)(c, a, rows, columns, factors));
        for (int32_t j = 0; j < columns; j++) {
            for (int32_t k = 0; k < to.rows; k++) {
                PT_TYPED(put)(to, k, j, k <= j ? a[j * rows + k] : 0);
            }
        }
        if (has_q(c, args)) {
            PT_TRY(PT_TYPED(store_q)(c, pt_matrix_of(&q, 2, &b, i), a, factors, reflections, x));
        }
    }
    return PT_ERROR_OK;
}
