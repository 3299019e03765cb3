// Shared by the families of linalg.h, for numbers of one type.

static inline PT_REAL PT_TYPED(get)(pt_matrix m, int32_t row, int32_t column) {
    return ((const PT_REAL *)m.data)[m.at + row * m.down + column * m.right];
}

static inline void PT_TYPED(put)(pt_matrix m, int32_t row, int32_t column, PT_REAL x) {
    ((PT_REAL *)m.data)[m.at + row * m.down + column * m.right] = x;
}

static inline PT_REAL PT_TYPED(size)(PT_REAL x) {
    return x < 0 ? -x : x;
}

// Exchanges n elements of x and y.
static inline void PT_TYPED(exchange)(PT_REAL *x, PT_REAL *y, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        const PT_REAL kept = x[i];
        x[i] = y[i];
        y[i] = kept;
    }
}

// The sum of the products of n elements.
static inline PT_REAL PT_TYPED(dot)(const PT_REAL *x, const PT_REAL *y, int32_t n) {
    PT_REAL sum = 0;
    for (int32_t i = 0; i < n; i++) {
        sum += x[i] * y[i];
    }
    return sum;
}

// The largest magnitude of n elements; NaNs count as 0.
static inline PT_REAL PT_TYPED(largest)(const PT_REAL *x, int32_t n) {
    PT_REAL most = 0;
    for (int32_t i = 0; i < n; i++) {
        most = PT_TYPED(size)(x[i]) > most ? PT_TYPED(size)(x[i]) : most;
    }
    return most;
}

// The root of the sum of n squares, none of which overflows or vanishes.
static inline PT_REAL PT_TYPED(norm)(const PT_REAL *x, int32_t n) {
    const PT_REAL most = PT_TYPED(largest)(x, n);
    PT_REAL sum = 0;
    for (int32_t i = 0; i < n; i++) {
        const PT_REAL part = most > 0 ? x[i] / most : x[i];
        sum += part * part;
    }
    return most > 0 ? most * PT_SQRT(sum) : PT_SQRT(sum);
}
