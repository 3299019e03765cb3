// Shared by linalg_svd.c and linalg_symmetric.c, for numbers of one type: Jacobi's rotations.
//
// Rotations of two columns at a time make a matrix more and more orthogonal, or diagonal. After the
// last of SWEEPS sweeps over all pairs it is taken as it is; 6 to 10 are usual.
enum { PT_TYPED(SWEEPS) = 30 };

typedef struct PT_TYPED(rotation) {
    PT_REAL sine, tangent, half; // the last one: tangent of half the angle
} PT_TYPED(rotation);

// The smaller angle that makes both sides of a symmetric matrix {{a, b}, {b, d}} 0, b is not.
static PT_TYPED(rotation) PT_TYPED(rotation_of)(PT_REAL a, PT_REAL b, PT_REAL d) {
    const PT_REAL z = (d - a) / (2 * b), size = PT_TYPED(size)(z);
    const PT_REAL far = size * PT_EPSILON > 1 ? 2 * size : size + PT_SQRT(size * size + 1);
    const PT_REAL t = (z < 0 ? -1 : 1) / far, cosine = 1 / PT_SQRT(t * t + 1);
    return (PT_TYPED(rotation)){cosine * t, t, cosine * t / (1 + cosine)};
}

// Rotates n elements of x and y, `step` apart. A small angle changes them by little, so its
// rounding does, too.
static void PT_TYPED(rotate)(PT_TYPED(rotation) r, PT_REAL *x, PT_REAL *y, int32_t n,
                             int32_t step) {
    for (int32_t i = 0; i < n * step; i += step) {
        const PT_REAL a = x[i], b = y[i];
        x[i] = a - r.sine * (b + r.half * a);
        y[i] = b + r.sine * (a - r.half * b);
    }
}

static void PT_TYPED(make_identity)(PT_REAL *v, int32_t n) {
    for (int32_t i = 0; i < n * n; i++) {
        v[i] = (PT_REAL)(i % (n + 1) == 0);
    }
}

// The power of 2 that makes the largest of n magnitudes at most 1, and more than 1/2 unless it is
// tiny. 0 if one of them is not finite.
static PT_REAL PT_TYPED(scale_of)(const PT_REAL *x, int32_t n) {
    const PT_REAL most = PT_TYPED(largest)(x, n);
    PT_REAL scale = 1;
    for (int32_t i = 0; i < n; i++) {
        if (x[i] - x[i] != 0) {
            return 0;
        }
    }
    while (most * scale > 1) {
        scale /= 2;
    }
    while (most > 0 && most * scale <= (PT_REAL)0.5 && scale < 1 / PT_SMALLEST) {
        scale *= 2;
    }
    return scale;
}

// Stores columns that lie one behind the other.
static void PT_TYPED(store_columns)(pt_matrix to, const PT_REAL *from) {
    for (int32_t j = 0; j < to.columns; j++) {
        for (int32_t i = 0; i < to.rows; i++) {
            PT_TYPED(put)(to, i, j, from[j * to.rows + i]);
        }
    }
}
