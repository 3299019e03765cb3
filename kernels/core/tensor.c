// Sizes, strides and dim orders of tensors.
#include "core.h"

pt_tensor pt_get_tensor(const pt_context *c, pt_ref arg) {
    const pt_value *value = (const pt_value *)(const void *)pt_at(c, arg);
    pt_tensor t = {
        .data = value->data ? pt_at(c, value->data) : NULL,
        .sizes = (const int32_t *)(const void *)pt_at(c, value->sizes),
        .dim_order = pt_at(c, value->dim_order),
        .dtype = value->type,
        .rank = value->flags & PT_VALUE_RANK,
        .flags = value->flags & (uint8_t)~PT_VALUE_RANK,
    };
    return t;
}

// Unsigned: the sizes beside one of 0 may be anything.
int32_t pt_numel(const pt_tensor *t) {
    uint32_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        n *= (uint32_t)t->sizes[i];
    }
    return (int32_t)n;
}

uint32_t pt_element_size(uint8_t dtype) {
    // Bytes by ScalarType, 0 where the schema has no type of whole bytes
    static const uint8_t bytes[] = {
        [PT_DTYPE_BYTE] = 1,
        [PT_DTYPE_CHAR] = 1,
        [PT_DTYPE_SHORT] = 2,
        [PT_DTYPE_INT] = 4,
        [PT_DTYPE_LONG] = 8,
        [PT_DTYPE_HALF] = 2,
        [PT_DTYPE_FLOAT] = 4,
        [PT_DTYPE_DOUBLE] = 8,
        [PT_DTYPE_BOOL] = 1,
        [PT_DTYPE_QINT8] = 1,
        [PT_DTYPE_QUINT8] = 1,
        [PT_DTYPE_QINT32] = 4,
        [PT_DTYPE_BFLOAT16] = 2,
        [PT_DTYPE_QUINT4X2] = 1,
        [PT_DTYPE_QUINT2X4] = 1,
        [PT_DTYPE_BITS16] = 2,
        [PT_DTYPE_FLOAT8_E5M2] = 1,
        [PT_DTYPE_FLOAT8_E4M3FN] = 1,
        [PT_DTYPE_FLOAT8_E5M2FNUZ] = 1,
        [PT_DTYPE_FLOAT8_E4M3FNUZ] = 1,
        [PT_DTYPE_UINT16] = 2,
        [PT_DTYPE_UINT32] = 4,
        [PT_DTYPE_UINT64] = 8,
    };
    return dtype < sizeof(bytes) ? bytes[dtype] : 0;
}

void pt_strides(const pt_tensor *t, int32_t *strides) {
    uint32_t stride = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        uint32_t dim = t->dim_order[i];
        strides[dim] = (int32_t)stride;
        stride *= (uint32_t)t->sizes[dim];
    }
}

bool pt_same_sizes(const pt_tensor *a, const pt_tensor *b) {
    if (a->rank != b->rank) {
        return false;
    }
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->sizes[i] != b->sizes[i]) {
            return false;
        }
    }
    return true;
}

bool pt_same_dim_order(const pt_tensor *a, const pt_tensor *b) {
    if (a->rank != b->rank) {
        return false;
    }
    if (a->flags & b->flags & PT_VALUE_CONTIGUOUS) {
        return true;
    }
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->dim_order[i] != b->dim_order[i]) {
            return false;
        }
    }
    return true;
}

int pt_expect_sizes(pt_context *c, pt_ref arg, uint32_t rank, const int32_t *sizes) {
    pt_tensor t = pt_get_tensor(c, arg);
    bool same = t.rank == rank;
    for (uint32_t i = 0; same && i < rank; i++) {
        same = t.sizes[i] == sizes[i];
    }
    return same ? PT_ERROR_OK
                : pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                          "the output's sizes are not those that the inputs lead to");
}

void pt_ask_scratch(pt_context *c, uint32_t bytes) {
    if (bytes > c->scratch_needed) {
        c->scratch_needed = bytes;
    }
}
