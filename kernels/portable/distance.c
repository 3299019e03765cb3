// Distances between the rows of matrices: _cdist_forward (x1, x2, p, compute_mode, out) between all
// rows of x1 and x2, with broadcast batches; _pdist_forward (self, p, out) between all pairs of
// rows of one matrix. Contiguous floating tensors; p is 0 (which counts the differences), positive
// or infinite.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/double_rows.h"
#include "portable/dtype_access.h"
#include "portable/float_math.h"

// Writes the distance of n elements of a, from i on, and of b, from j on, to element `to` of out.
static int store_distance(pt_context *c, const pt_tensor *out, int32_t to, const pt_tensor *a,
                          int32_t i, const pt_tensor *b, int32_t j, int32_t n, double norm) {
    if (a->dtype == PT_DTYPE_DOUBLE) {
        return pt_float64->distance(c, (double *)out->data + to, (const double *)a->data + i,
                                    (const double *)b->data + j, n, norm);
    }
    const float p = (float)norm;
    float sum = 0;
    PT_TRY(pt_count_elements(c, 1));
    for (int32_t k = 0; k < n; k++) {
        PT_TRY(pt_count_elements(c, 1));
        float x = pt_load_float(a->data, i + k, a->dtype);
        float d = __builtin_fabsf(x - pt_load_float(b->data, j + k, b->dtype));
        if (p == 0) {
            sum += d != 0;
        } else if (p == 1) {
            sum += d;
        } else if (p == 2) {
            sum += d * d;
        } else if (p == __builtin_inff()) {
            sum = d > sum || pt_is_nanf(d) ? d : sum;
        } else {
            sum += pt_powf(d, p);
        }
    }
    bool is_sum = p == 0 || p == 1 || p == __builtin_inff();
    sum = is_sum ? sum : p == 2 ? pt_sqrtf(sum) : pt_powf(sum, 1.0f / p);
    pt_store_float(out->data, to, out->dtype, sum);
    return PT_ERROR_OK;
}

static int check_points(pt_context *c, const pt_tensor *t, const pt_tensor *out, pt_ref p) {
    double value = pt_get_double(c, p);
    if (!(value >= 0)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "p must not be negative");
    }
    PT_TRY(pt_check_math(c, t->dtype, PT_REASON_DTYPE));
    if (!(t->flags & out->flags & PT_VALUE_CONTIGUOUS)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the tensors must be contiguous");
    }
    return pt_check_same_dtype(c, out, t);
}

// ---- cdist

static int check_cdist(pt_context *c, const pt_ref *args) {
    pt_tensor a = pt_get_tensor(c, args[CDIST_FORWARD_X1]);
    pt_tensor b = pt_get_tensor(c, args[CDIST_FORWARD_X2]);
    pt_tensor out = pt_get_tensor(c, args[CDIST_FORWARD_OUT]);
    PT_TRY(check_points(c, &a, &out, args[CDIST_FORWARD_P]));
    PT_TRY(check_points(c, &b, &out, args[CDIST_FORWARD_P]));
    if (a.rank < 2 || b.rank < 2 || a.sizes[a.rank - 1] != b.sizes[b.rank - 1]) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the matrices must have rows of one length");
    }
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank = 0;
    pt_tensor a_batch = a, b_batch = b;
    a_batch.rank = (uint8_t)(a.rank - 2);
    b_batch.rank = (uint8_t)(b.rank - 2);
    if (!pt_broadcast(sizes, &rank, &a_batch) || !pt_broadcast(sizes, &rank, &b_batch)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the batches do not broadcast");
    }
    sizes[rank] = a.sizes[a.rank - 2];
    sizes[rank + 1] = b.sizes[b.rank - 2];
    return pt_expect_sizes(c, args[CDIST_FORWARD_OUT], rank + 2, sizes);
}

// Returns the offset in t, which is broadcast, of the matrix of batch `batch` of out.
static int32_t start_of_batch(const pt_tensor *t, const pt_tensor *out, int32_t batch) {
    int32_t offset = 0, stride = t->sizes[t->rank - 2] * t->sizes[t->rank - 1];
    for (uint32_t i = 3; i <= t->rank; i++) {
        int32_t size = t->sizes[t->rank - i], of_out = out->sizes[out->rank - i];
        offset += size == 1 ? 0 : batch % of_out * stride;
        stride *= size;
        batch /= of_out;
    }
    return offset;
}

static int run_cdist(pt_context *c, const pt_ref *args) {
    pt_tensor a = pt_get_tensor(c, args[CDIST_FORWARD_X1]);
    pt_tensor b = pt_get_tensor(c, args[CDIST_FORWARD_X2]);
    pt_tensor out = pt_get_tensor(c, args[CDIST_FORWARD_OUT]);
    double p = pt_get_double(c, args[CDIST_FORWARD_P]);
    int32_t rows = a.sizes[a.rank - 2], columns = b.sizes[b.rank - 2], n = a.sizes[a.rank - 1];
    int32_t numel = pt_numel(&out), to = 0;
    for (int32_t batch = 0; to < numel; batch++) {
        int32_t first_a = start_of_batch(&a, &out, batch);
        int32_t first_b = start_of_batch(&b, &out, batch);
        for (int32_t i = 0; i < rows; i++) {
            for (int32_t j = 0; j < columns; j++) {
                PT_TRY(
                    store_distance(c, &out, to++, &a, first_a + i * n, &b, first_b + j * n, n, p));
            }
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten__cdist_forward_out = PT_KERNEL(check_cdist, run_cdist);

// ---- pdist

static int check_pdist(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[PDIST_FORWARD_SELF]);
    pt_tensor out = pt_get_tensor(c, args[PDIST_FORWARD_OUT]);
    PT_TRY(check_points(c, &self, &out, args[PDIST_FORWARD_P]));
    if (self.rank != 2) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input must be a matrix");
    }
    int64_t rows = self.sizes[0], pairs = rows * (rows - 1) / 2;
    if (pairs > INT32_MAX) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "there are too many pairs");
    }
    int32_t size = (int32_t)pairs;
    return pt_expect_sizes(c, args[PDIST_FORWARD_OUT], 1, &size);
}

static int run_pdist(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[PDIST_FORWARD_SELF]);
    pt_tensor out = pt_get_tensor(c, args[PDIST_FORWARD_OUT]);
    double p = pt_get_double(c, args[PDIST_FORWARD_P]);
    int32_t rows = self.sizes[0], n = self.sizes[1], to = 0;
    for (int32_t i = 0; i < rows; i++) {
        for (int32_t j = i + 1; j < rows; j++) {
            PT_TRY(store_distance(c, &out, to++, &self, i * n, &self, j * n, n, p));
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten__pdist_forward_out = PT_KERNEL(check_pdist, run_pdist);
