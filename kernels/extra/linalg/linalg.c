#include "extra/linalg/linalg.h"

#include "portable/arguments.h"

pt_batch pt_batch_of(const pt_tensor *t, uint32_t inner) {
    pt_batch b;
    b.rank = t->rank - inner;
    for (uint32_t d = 0; d < b.rank; d++) {
        b.sizes[d] = t->sizes[d];
    }
    return b;
}

int pt_join_batch(pt_context *c, pt_batch *b, const pt_tensor *t, uint32_t inner) {
    pt_tensor outer = *t;
    outer.rank = (uint8_t)(t->rank - inner);
    return pt_broadcast(b->sizes, &b->rank, &outer)
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the operands do not broadcast");
}

int32_t pt_batch_count(const pt_context *c, const pt_batch *b) {
    return pt_has_results(c) ? (int32_t)pt_product(b->sizes, b->rank) : 0;
}

pt_matrix pt_matrix_of(const pt_tensor *t, uint32_t inner, const pt_batch *b, int32_t i) {
    int32_t strides[PT_MAX_RANK];
    pt_strides(t, strides);
    const uint32_t outer = t->rank - inner;
    pt_matrix m = {t->data, 0, 1, 1, 0, 0};
    for (uint32_t d = b->rank, own = outer; own > 0;) {
        const int32_t size = b->sizes[--d];
        own--;
        m.at += t->sizes[own] == 1 ? 0 : i % size * strides[own];
        i /= size;
    }
    if (inner > 0) {
        m.rows = t->sizes[outer];
        m.down = strides[outer];
    }
    if (inner > 1) {
        m.columns = t->sizes[outer + 1];
        m.right = strides[outer + 1];
    }
    return m;
}

int pt_check_matrices(pt_context *c, const pt_tensor *t) {
    if (t->dtype != PT_DTYPE_FLOAT && t->dtype != PT_DTYPE_DOUBLE) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "matrices must be float32 or float64");
    }
    PT_TRY(pt_check_math(c, t->dtype, PT_REASON_DTYPE));
    return t->rank < 2 ? pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a matrix must have two dims")
                       : PT_ERROR_OK;
}

int pt_check_square(pt_context *c, const pt_tensor *t) {
    PT_TRY(pt_check_matrices(c, t));
    return t->sizes[t->rank - 1] != t->sizes[t->rank - 2]
               ? pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the matrices must be square")
               : PT_ERROR_OK;
}

int pt_expect_matrices(pt_context *c, pt_ref arg, uint8_t dtype, const pt_batch *b, int32_t rows,
                       int32_t columns) {
    const int32_t inner[] = {rows, columns};
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank = b->rank;
    if (pt_get_tensor(c, arg).dtype != dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "an output has another dtype");
    }
    for (uint32_t d = 0; d < b->rank; d++) {
        sizes[d] = b->sizes[d];
    }
    for (uint32_t d = 0; d < 2 && inner[d] != PT_NO_COLUMNS; d++) {
        if (rank == PT_MAX_RANK) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "an output would have too many dims");
        }
        sizes[rank++] = inner[d];
    }
    return pt_expect_sizes(c, arg, rank, sizes);
}

int pt_expect_none(pt_context *c, pt_ref arg, uint8_t dtype) {
    pt_batch none;
    none.rank = 0;
    return pt_expect_matrices(c, arg, dtype, &none, 0, PT_NO_COLUMNS);
}

int pt_expect_info(pt_context *c, pt_ref arg, const pt_batch *b) {
    return pt_expect_matrices(c, arg, PT_DTYPE_INT, b, PT_NO_COLUMNS, PT_NO_COLUMNS);
}

uint32_t pt_matrix_scratch(uint32_t size, int64_t reals, int64_t ints) {
    const int64_t bytes = reals * size + ints * (int64_t)sizeof(int32_t);
    return bytes > PT_MEMORY_LIMIT ? UINT32_MAX : (uint32_t)bytes;
}

int pt_request_matrices(pt_context *c, uint32_t bytes) {
    if (bytes > PT_MEMORY_LIMIT) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "a matrix is too large");
    }
    pt_request_scratch(c, bytes);
    return PT_ERROR_OK;
}

int pt_set_info(pt_context *c, bool raises, const pt_tensor *info, const pt_batch *b, int32_t i,
                int32_t value, const char *reason) {
    if (raises && value != 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, reason);
    }
    ((int32_t *)info->data)[pt_matrix_of(info, 0, b, i).at] = value;
    return PT_ERROR_OK;
}
