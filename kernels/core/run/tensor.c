// Sizes, strides and dim orders of tensors.
#include "core/record.h"
#include <string.h>

#define REASON_BOUND "the sizes have more elements than the tensor's upper bound"
#define REASON_RANK "a tensor cannot change its rank"

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

uint32_t pt_capacity(const pt_context *c, pt_ref arg) {
    pt_tensor t = pt_get_tensor(c, arg);
    return t.flags & PT_VALUE_DYNAMIC ? ((const uint32_t *)(const void *)t.sizes)[-1]
                                      : (uint32_t)pt_numel(&t);
}

// Factors of 16 bits avoid a long multiplication, which not all cores have.
__attribute__((noinline)) uint32_t pt_product(const int32_t *sizes, uint32_t n) {
    uint32_t product = 1;
    for (const int32_t *end = sizes + n; sizes != end; sizes++) {
        uint32_t size = (uint32_t)*sizes;
        if ((product | size) >> 16 == 0) {
            product *= size;
        } else {
            uint64_t exact = (uint64_t)product * size;
            product = exact >> 32 ? UINT32_MAX : (uint32_t)exact; // still 0 if a 0 follows
        }
    }
    return product;
}

int32_t pt_numel(const pt_tensor *t) {
    return (int32_t)pt_product(t->sizes, t->rank);
}

uint32_t pt_nbytes(const pt_tensor *t) {
    return pt_product(t->sizes, t->rank) * pt_element_size(t->dtype);
}

uint32_t pt_element_size(uint8_t dtype) {
    // Bytes by ScalarType, 0 for a type without whole bytes
    static const uint8_t bytes[] = {
        [PT_DTYPE_BYTE] = 1,
        [PT_DTYPE_CHAR] = 1,
        [PT_DTYPE_SHORT] = 2,
        [PT_DTYPE_INT] = 4,
        [PT_DTYPE_LONG] = 8,
        [PT_DTYPE_HALF] = 2,
        [PT_DTYPE_FLOAT] = 4,
        [PT_DTYPE_DOUBLE] = 8,
        [PT_DTYPE_COMPLEX_HALF] = 4,
        [PT_DTYPE_COMPLEX_FLOAT] = 8,
        [PT_DTYPE_COMPLEX_DOUBLE] = 16,
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

pt_lanes pt_lanes_of(const pt_tensor *t, uint32_t dim) {
    uint32_t outer = 1, inner = 1, position = 0;
    for (; position < t->rank && t->dim_order[position] != dim; position++) {
        outer *= (uint32_t)t->sizes[t->dim_order[position]];
    }
    while (++position < t->rank) {
        inner *= (uint32_t)t->sizes[t->dim_order[position]];
    }
    return (pt_lanes){(int32_t)outer, t->rank ? t->sizes[dim] : 1, (int32_t)inner};
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

static const pt_value *tensor_record(const pt_context *c, pt_ref arg) {
    return (const pt_value *)(const void *)pt_at(c, arg);
}

// True for at most `bound` elements and no negative size. Beside a size of 0 the product of the
// other sizes is limited as for a static tensor, so that products stay in int32.
static bool is_within(uint32_t bound, uint32_t rank, const int32_t *sizes) {
    uint64_t n = 1;
    bool empty = false;
    for (uint32_t i = 0; i < rank; i++) {
        if (sizes[i] < 0) {
            return false;
        }
        empty |= sizes[i] == 0;
        n = n > PT_MEMORY_LIMIT || sizes[i] == 0 ? n : n * (uint32_t)sizes[i];
    }
    return n <= (empty ? PT_MEMORY_LIMIT : bound);
}

static bool has_sizes(const pt_context *c, const pt_value *value, uint32_t rank,
                      const int32_t *sizes) {
    const int32_t *own = (const int32_t *)(const void *)pt_at(c, value->sizes);
    bool same = (value->flags & PT_VALUE_RANK) == rank;
    for (uint32_t i = 0; same && i < rank; i++) {
        same = own[i] == sizes[i];
    }
    return same;
}

int pt_resize_tensor(pt_context *c, pt_ref arg, uint32_t rank, const int32_t *sizes) {
    const pt_value *value = tensor_record(c, arg);
    if (has_sizes(c, value, rank, sizes)) {
        return PT_ERROR_OK;
    }
    if (!PT_HAS_DYNAMIC || !(value->flags & PT_VALUE_DYNAMIC)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the tensor is static: its sizes cannot change");
    }
    if ((value->flags & PT_VALUE_RANK) != rank) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, REASON_RANK);
    }
    int32_t *own = (int32_t *)(void *)pt_at(c, value->sizes);
    if (!is_within((uint32_t)own[-1], rank, sizes)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, REASON_BOUND);
    }
    memmove(own, sizes, rank * sizeof(*own));
    return PT_ERROR_OK;
}

int pt_expect_sizes(pt_context *c, pt_ref arg, uint32_t rank, const int32_t *sizes) {
    uint8_t flags = tensor_record(c, arg)->flags;
    if (c->checking == PT_CHECK_BOUNDS && flags & PT_VALUE_DYNAMIC) {
        return (flags & PT_VALUE_RANK) == rank ? PT_ERROR_OK
                                               : pt_fail(c, PT_ERROR_INVALID_ARGUMENT, REASON_RANK);
    }
    const pt_value *value = tensor_record(c, arg);
    if (flags & PT_VALUE_DYNAMIC && !has_sizes(c, value, rank, sizes) && pt_is_elsewhere(c, arg)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "an input or output that is also the output would get other sizes");
    }
    if (pt_resize_tensor(c, arg, rank, sizes) == PT_ERROR_OK) {
        return PT_ERROR_OK;
    }
    bool above = value->flags & PT_VALUE_DYNAMIC && (value->flags & PT_VALUE_RANK) == rank;
    return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                   above ? REASON_BOUND
                         : "the output's sizes differ from those computed from the inputs");
}

uint32_t pt_make_dynamic(const pt_context *c, pt_ref tensor, uint32_t at) {
    pt_value *value = (pt_value *)(void *)pt_at(c, tensor);
    pt_tensor t = pt_get_tensor(c, tensor);
    if (!(t.flags & PT_VALUE_DYNAMIC)) {
        return 0;
    }
    int32_t *bound = (int32_t *)(void *)(c->memory[PT_MEMORY_POOL] + at);
    if (t.rank == 0) {
        value->flags &= (uint8_t)~PT_VALUE_DYNAMIC;
    } else {
        *bound = pt_numel(&t);
        memcpy(bound + 1, t.sizes, t.rank * sizeof(*t.sizes));
        value->sizes = pt_make_ref(PT_MEMORY_POOL, at + sizeof(*bound));
    }
    return 4 + 4u * t.rank;
}

__attribute__((noinline)) bool pt_lacks_idle_scratch(const pt_context *c, uint32_t bytes) {
    return !c->idle_scratch || c->checking != PT_CHECK_STATIC ||
           bytes > pt_idle_scratch_of(c)->bytes;
}

static uint32_t max_of(const pt_context *c, uint32_t max, uint32_t bytes) {
    return bytes > max && (!PT_HAS_PTM || pt_lacks_idle_scratch(c, bytes)) ? bytes : max;
}

void pt_request_scratch(pt_context *c, uint32_t bytes) {
    c->min_scratch = max_of(c, c->min_scratch, bytes);
    c->scratch_needed = max_of(c, c->scratch_needed, bytes);
}

int pt_get_scratch(pt_context *c, uint32_t bytes, void **scratch) {
    if (bytes > c->scratch_size) {
        return pt_fail(c, PT_ERROR_INTERNAL, "needs more temp memory than its check asked for");
    }
    *scratch = c->scratch;
    return PT_ERROR_OK;
}

// A .ptm file with packed weights omits the plain weights that kernels need without scratch.
void pt_use_scratch(pt_context *c, uint32_t bytes) {
    if (PT_HAS_PTM && c->packed && pt_is_ptm(c)) {
        pt_request_scratch(c, bytes);
        return;
    }
    c->scratch_needed = max_of(c, c->scratch_needed, bytes);
}
