// Matrix products: aten::mm, addmm, bmm, linear and dot. Contiguous tensors, one real dtype.
#include "core/generated/operator_arguments.h"
#include "portable/complex.h"
#include "portable/dtype_access.h"
#include "portable/products.h"

// Checks that all tensors are contiguous and have the dtype of the first tensor, which products
// support.
static int matrix_check_tensors(pt_context *c, const pt_tensor *tensors, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (!pt_can_sum_products(tensors[i].dtype)) {
            return pt_refuse_dtypes(c, &tensors[0], &tensors[i], "no matrix product of this dtype");
        }
        if (tensors[i].dtype != tensors[0].dtype) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a matrix product needs one dtype");
        }
        if ((tensors[i].flags & PT_VALUE_CONTIGUOUS) == 0) {
            return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "a matrix product needs contiguous tensors");
        }
    }
    return PT_ERROR_OK;
}

static int check_rank(pt_context *c, const pt_tensor *a, const pt_tensor *b, uint32_t rank) {
    if (a->rank != rank || b->rank != rank) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the operands have the wrong rank");
    }
    if (a->sizes[rank - 1] != b->sizes[rank == 1 ? 0 : rank - 2]) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the operands' sizes do not fit together");
    }
    return PT_ERROR_OK;
}

// out (rows, n) = a (rows, k) times b (k, n)
static pt_products make_products(const void *a, const void *b, void *out, int32_t rows, int32_t k,
                                 int32_t n) {
    pt_products p;
    p.a = a;
    p.b = b;
    p.bias = NULL;
    p.out = out;
    p.rows = rows;
    p.a_row = k;
    p.b_row = 0;
    p.out_row = n;
    p.lines = (pt_line){1, 0, 0};
    p.columns = (pt_line){n, 1, 1};
    p.padded = false;
    p.to_float = false;
    for (int i = 0; i < 2; i++) {
        p.taps[i] = 1;
        p.a_step[i] = 0;
        p.b_step[i] = 0;
    }
    p.taps[2] = k;
    p.a_step[2] = 1;
    p.b_step[2] = n;
    return p;
}

// Without outputs m or n may be huge.
static int matrix_multiply(pt_context *c, const void *a, const void *b, void *out, uint8_t dtype,
                           int32_t m, int32_t k, int32_t n) {
    if (m == 0 || n == 0) {
        return PT_ERROR_OK;
    }
    const pt_products p = make_products(a, b, out, m, k, n);
    return pt_sum_products(c, &p, dtype);
}

// ---- mm and bmm

// Operands and output of rank `rank`: (batch, m, k) and (batch, k, n), or without batch.
static int matrix_check_product(pt_context *c, const pt_ref *args, uint32_t rank) {
    const pt_tensor t[] = {pt_get_tensor(c, args[MM_SELF]), pt_get_tensor(c, args[MM_MAT2]),
                           pt_get_tensor(c, args[MM_OUT])};
    PT_TRY(check_rank(c, &t[0], &t[1], rank));
    PT_TRY(matrix_check_tensors(c, t, 3));
    if (rank == 3 && t[0].sizes[0] != t[1].sizes[0]) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the operands differ in batch size");
    }
    const int32_t sizes[] = {t[0].sizes[0], t[0].sizes[rank - 2], t[1].sizes[rank - 1]};
    return pt_expect_sizes(c, args[MM_OUT], rank, sizes + 3 - rank);
}

static int matrix_check_mm(pt_context *c, const pt_ref *args) {
    return matrix_check_product(c, args, 2);
}

static int matrix_run_mm(pt_context *c, const pt_ref *args) {
    const pt_tensor a = pt_get_tensor(c, args[MM_SELF]);
    const pt_tensor b = pt_get_tensor(c, args[MM_MAT2]);
    return matrix_multiply(c, a.data, b.data, pt_get_tensor(c, args[MM_OUT]).data, a.dtype,
                           a.sizes[0], a.sizes[1], b.sizes[1]);
}

const pt_kernel pt_aten_mm_out = PT_KERNEL(matrix_check_mm, matrix_run_mm);

static int check_bmm(pt_context *c, const pt_ref *args) {
    return matrix_check_product(c, args, 3);
}

static int run_bmm(pt_context *c, const pt_ref *args) {
    const pt_tensor a = pt_get_tensor(c, args[BMM_SELF]);
    const pt_tensor b = pt_get_tensor(c, args[BMM_MAT2]);
    const int32_t m = a.sizes[1], k = a.sizes[2], n = b.sizes[2];
    const int32_t size = (int32_t)pt_element_size(a.dtype);
    const char *a_data = a.data;
    const char *b_data = b.data;
    char *out = pt_get_tensor(c, args[BMM_OUT]).data;
    if (m == 0 || n == 0) {
        return PT_ERROR_OK;
    }
    for (int32_t i = 0; i < a.sizes[0]; i++) {
        PT_TRY(matrix_multiply(c, a_data, b_data, out, a.dtype, m, k, n));
        a_data += m * k * size;
        b_data += k * n * size;
        out += m * n * size;
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_bmm_out = PT_KERNEL(check_bmm, run_bmm);

// ---- dot

static int check_dot(pt_context *c, const pt_ref *args) {
    const pt_tensor t[] = {pt_get_tensor(c, args[DOT_SELF]), pt_get_tensor(c, args[DOT_TENSOR]),
                           pt_get_tensor(c, args[DOT_OUT])};
    PT_TRY(check_rank(c, &t[0], &t[1], 1));
    PT_TRY(matrix_check_tensors(c, t, 3));
    return pt_expect_sizes(c, args[DOT_OUT], 0, NULL);
}

static int run_dot(pt_context *c, const pt_ref *args) {
    const pt_tensor a = pt_get_tensor(c, args[DOT_SELF]);
    const pt_tensor b = pt_get_tensor(c, args[DOT_TENSOR]);
    return matrix_multiply(c, a.data, b.data, pt_get_tensor(c, args[DOT_OUT]).data, a.dtype, 1,
                           a.sizes[0], 1);
}

const pt_kernel pt_aten_dot_out = PT_KERNEL(check_dot, run_dot);

// ---- linear: out (..., n) = in (..., k) times the transposed weight (n, k), plus bias (n)

static int check_linear_bias(pt_context *c, pt_ref arg, const pt_tensor *weight) {
    const pt_tensor bias = pt_get_tensor(c, arg);
    if (bias.rank != 1 || bias.sizes[0] != weight->sizes[0] || bias.dtype != weight->dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "the bias has one number for each output feature, of the input's dtype");
    }
    return PT_ERROR_OK;
}

static int matrix_check_linear(pt_context *c, const pt_ref *args) {
    const pt_tensor t[] = {pt_get_tensor(c, args[LINEAR_INPUT]),
                           pt_get_tensor(c, args[LINEAR_WEIGHT]),
                           pt_get_tensor(c, args[LINEAR_OUT])};
    if (t[0].rank < 1 || t[1].rank != 2 || t[0].sizes[t[0].rank - 1] != t[1].sizes[1]) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the weight does not fit the input");
    }
    PT_TRY(matrix_check_tensors(c, t, 3));
    if (!pt_is_none(args[LINEAR_BIAS])) {
        PT_TRY(check_linear_bias(c, args[LINEAR_BIAS], &t[1]));
    }
    int32_t sizes[PT_MAX_RANK];
    for (uint32_t i = 0; i < t[0].rank; i++) {
        sizes[i] = t[0].sizes[i];
    }
    sizes[t[0].rank - 1] = t[1].sizes[0];
    return pt_expect_sizes(c, args[LINEAR_OUT], t[0].rank, sizes);
}

static int matrix_run_linear(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[LINEAR_INPUT]);
    const pt_tensor weight = pt_get_tensor(c, args[LINEAR_WEIGHT]);
    const pt_tensor out = pt_get_tensor(c, args[LINEAR_OUT]);
    const int32_t k = weight.sizes[1], n = weight.sizes[0];
    const int32_t numel = pt_numel(&out);
    if (numel == 0) {
        return PT_ERROR_OK;
    }
    // The rows of the weight are the rows of a, and the rows of the input are the columns of b.
    pt_products p = make_products(weight.data, in.data, out.data, n, k, 1);
    p.bias = pt_is_none(args[LINEAR_BIAS]) ? NULL : pt_get_tensor(c, args[LINEAR_BIAS]).data;
    p.columns = (pt_line){numel / n, k, n};
    return pt_sum_products(c, &p, in.dtype);
}

const pt_kernel pt_aten_linear_out = PT_KERNEL(matrix_check_linear, matrix_run_linear);

// ---- addmm: out = beta * self + alpha * (a times b); self broadcasts

static bool fits_dtype(pt_scalar s, uint8_t dtype) {
    return s.type != PT_TYPE_DOUBLE || pt_is_floating(dtype);
}

static bool broadcasts(const pt_tensor *self, const int32_t *sizes) {
    for (uint32_t i = 0; i < self->rank; i++) {
        if (self->rank > 2 ||
            (self->sizes[i] != 1 && self->sizes[i] != sizes[2 - self->rank + i])) {
            return false;
        }
    }
    return true;
}

enum {
    SMALL_ROW = 1,     // variant of a run: one row of float32 by a small matrix, plus a row
    MAX_PRODUCTS = 64, // most products of this variant: with more, blocks are faster
};

// t: mat1, mat2, self.
static bool is_small_row(const pt_context *c, const pt_ref *args, const pt_tensor *t) {
    return t[0].dtype == PT_DTYPE_FLOAT && t[0].sizes[0] == 1 && t[1].sizes[0] <= MAX_PRODUCTS &&
           t[1].sizes[1] > 0 && t[1].sizes[1] <= MAX_PRODUCTS &&
           t[1].sizes[0] * t[1].sizes[1] <= MAX_PRODUCTS && pt_numel(&t[2]) == t[1].sizes[1] &&
           pt_is_one(pt_get_scalar(c, args[ADDMM_ALPHA])) &&
           pt_is_one(pt_get_scalar(c, args[ADDMM_BETA]));
}

// Returns the bytes of a float32 row for float16 and bfloat16.
static uint32_t addmm_scratch(uint8_t dtype, int32_t rows, int32_t columns) {
    return pt_is_half(dtype) && rows > 0 ? (uint32_t)columns * (uint32_t)sizeof(float) : 0;
}

static int check_addmm(pt_context *c, const pt_ref *args) {
    const pt_tensor t[] = {pt_get_tensor(c, args[ADDMM_MAT1]), pt_get_tensor(c, args[ADDMM_MAT2]),
                           pt_get_tensor(c, args[ADDMM_SELF]), pt_get_tensor(c, args[ADDMM_OUT])};
    PT_TRY(check_rank(c, &t[0], &t[1], 2));
    PT_TRY(matrix_check_tensors(c, t, 4));
    const int32_t sizes[] = {t[0].sizes[0], t[1].sizes[1]};
    if (!broadcasts(&t[2], sizes)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "self does not broadcast to the product");
    }
    if (!fits_dtype(pt_get_scalar(c, args[ADDMM_BETA]), t[0].dtype) ||
        !fits_dtype(pt_get_scalar(c, args[ADDMM_ALPHA]), t[0].dtype)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "beta and alpha of integer matrices are integers");
    }
    pt_request_scratch(c, addmm_scratch(t[0].dtype, sizes[0], sizes[1]));
    PT_TRY(pt_expect_sizes(c, args[ADDMM_OUT], 2, sizes));
    return pt_note_variant(c, is_small_row(c, args, t) ? SMALL_ROW : 0);
}

// Combines one row: out[i] = alpha * out[i] + beta * self[i * step]. A factor of 0 omits its term,
// even a NaN.
static void matrix_add_row(float *out, const float *self, int32_t n, int32_t step, float alpha,
                           float beta) {
    if (alpha == 1 && beta == 1) {
        for (int32_t i = 0; i < n; i++) {
            out[i] += *self;
            self += step;
        }
        return;
    }
    for (int32_t i = 0; i < n; i++) {
        out[i] = (alpha == 0 ? 0 : alpha * out[i]) + (beta == 0 ? 0 : beta * *self);
        self += step;
    }
}

// Converts a number. Small integers need no double arithmetic.
static float as_float(pt_scalar s) {
    if (s.type != PT_TYPE_DOUBLE && s.as.i == (int32_t)s.as.i) {
        return (float)(int32_t)s.as.i;
    }
    return (float)pt_scalar_as_double(s);
}

// Combines one element of any other dtype, as matrix_add_row does a row of float32.
static void matrix_add_element(void *out, int32_t i, const void *self, int32_t j, uint8_t dtype,
                               pt_scalar alpha, pt_scalar beta) {
    if (dtype == PT_DTYPE_DOUBLE) {
        const double scale = pt_scalar_as_double(alpha), self_scale = pt_scalar_as_double(beta);
        const double product = scale == 0 ? 0 : scale * ((const double *)out)[i];
        const double add = self_scale == 0 ? 0 : self_scale * ((const double *)self)[j];
        ((double *)out)[i] = product + add;
        return;
    }
    const uint64_t sum = (uint64_t)pt_load_int(out, i, dtype);
    const uint64_t add = (uint64_t)pt_load_int(self, j, dtype);
    pt_store_int(out, i, dtype, (int64_t)((uint64_t)alpha.as.i * sum + (uint64_t)beta.as.i * add));
}

typedef struct addmm {
    const void *self;
    void *out;
    int32_t step, row_step; // steps of self
    pt_scalar alpha, beta;
} addmm;

// Computes float16 and bfloat16 in the float32 row `sums`.
static int run_half_addmm(pt_context *c, const pt_tensor *a, const pt_tensor *b, const addmm *v,
                          float *sums) {
    const int32_t m = a->sizes[0], k = a->sizes[1], n = b->sizes[1];
    const float alpha = as_float(v->alpha), beta = as_float(v->beta);
    for (int32_t i = 0; i < m; i++) {
        pt_products p = make_products((const uint16_t *)a->data + i * k, b->data, sums, 1, k, n);
        p.to_float = true;
        PT_TRY(pt_sum_products(c, &p, a->dtype));
        for (int32_t j = 0; j < n; j++) {
            const int32_t at = i * v->row_step + j * v->step;
            const float sum = alpha == 0 ? 0 : alpha * sums[j];
            const float add = beta == 0 ? 0 : beta * pt_load_float(v->self, at, a->dtype);
            pt_store_float(v->out, i * n + j, a->dtype, sum + add);
        }
    }
    return PT_ERROR_OK;
}

static int run_small_row(pt_context *c, const pt_ref *args) {
    const pt_tensor b = pt_get_tensor(c, args[ADDMM_MAT2]);
    const float *a = pt_get_data(c, args[ADDMM_MAT1]);
    const float *self = pt_get_data(c, args[ADDMM_SELF]);
    float *out = pt_get_data(c, args[ADDMM_OUT]);
    const int32_t k = b.sizes[0], n = b.sizes[1];
    PT_TRY(pt_count_work(c, k * n + n));
    for (int32_t j = 0; j < n; j++) {
        const float *column = (const float *)b.data + j;
        float sum = 0;
        for (int32_t i = 0; i < k; i++) {
            sum += a[i] * *column;
            column += n;
        }
        out[j] = sum + self[j];
    }
    return PT_ERROR_OK;
}

static int run_addmm(pt_context *c, const pt_ref *args) {
    if (pt_variant(c)) {
        return run_small_row(c, args);
    }
    const pt_tensor a = pt_get_tensor(c, args[ADDMM_MAT1]);
    const pt_tensor b = pt_get_tensor(c, args[ADDMM_MAT2]);
    const pt_tensor self = pt_get_tensor(c, args[ADDMM_SELF]);
    void *out = pt_get_tensor(c, args[ADDMM_OUT]).data;
    const pt_scalar alpha = pt_get_scalar(c, args[ADDMM_ALPHA]);
    const pt_scalar beta = pt_get_scalar(c, args[ADDMM_BETA]);
    const int32_t m = a.sizes[0], n = b.sizes[1];
    const int32_t step = self.rank > 0 && self.sizes[self.rank - 1] != 1;
    const int32_t row_step = self.rank == 2 && self.sizes[0] != 1 ? self.sizes[1] : 0;
    if (m == 0 || n == 0) {
        return PT_ERROR_OK;
    }
    if (pt_is_half(a.dtype)) {
        const addmm v = {self.data, out, step, row_step, alpha, beta};
        void *scratch;
        PT_TRY(pt_get_scratch(c, addmm_scratch(a.dtype, m, n), &scratch));
        return run_half_addmm(c, &a, &b, &v, scratch);
    }
    PT_TRY(matrix_multiply(c, a.data, b.data, out, a.dtype, m, a.sizes[1], n));
    for (int32_t i = 0; i < m; i++) {
        PT_TRY(pt_count_work(c, n));
        if (a.dtype == PT_DTYPE_FLOAT) {
            matrix_add_row((float *)out + i * n, (const float *)self.data + i * row_step, n, step,
                           as_float(alpha), as_float(beta));
            continue;
        }
        for (int32_t j = 0; j < n; j++) {
            matrix_add_element(out, i * n + j, self.data, i * row_step + j * step, a.dtype, alpha,
                               beta);
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_addmm_out = PT_KERNEL(check_addmm, run_addmm);
