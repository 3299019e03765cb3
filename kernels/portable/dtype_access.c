#include "portable/dtype_access.h"
#include "portable/complex.h"
#include "portable/half.h"

// ---- dtypes

int pt_refuse_dtypes(pt_context *c, const pt_tensor *a, const pt_tensor *b, const char *reason) {
    return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                   !pt_has_complex && (pt_is_complex(a->dtype) || pt_is_complex(b->dtype))
                       ? "this build has no complex arithmetic; use a build with it or change the "
                         "model"
                       : reason);
}

uint8_t pt_promote(uint8_t a, uint8_t b) {
    if (a == b || b == PT_DTYPE_BOOL) {
        return a;
    }
    if (a == PT_DTYPE_BOOL) {
        return b;
    }
    if (!pt_is_floating(a) && pt_is_floating(b)) {
        return b;
    }
    if (!pt_is_floating(b) && pt_is_floating(a)) {
        return a;
    }
    if (pt_is_floating(a)) {
        return a == PT_DTYPE_DOUBLE || b == PT_DTYPE_DOUBLE ? PT_DTYPE_DOUBLE : PT_DTYPE_FLOAT;
    }
    uint8_t wider = a > b ? a : b; // BYTE < CHAR < SHORT < INT < LONG
    return wider == PT_DTYPE_CHAR ? PT_DTYPE_SHORT : wider;
}

// Returns the dtype of `high` promoted with an operand of lower priority (0-d, or a number).
static uint8_t promote_by_category(uint8_t high, uint8_t low) {
    if (high == PT_DTYPE_BOOL || (!pt_is_floating(high) && pt_is_floating(low))) {
        return low;
    }
    return high;
}

uint8_t pt_promote_tensors(const pt_tensor *a, const pt_tensor *b) {
    if ((a->rank == 0) == (b->rank == 0)) {
        return pt_promote(a->dtype, b->dtype);
    }
    return a->rank ? promote_by_category(a->dtype, b->dtype)
                   : promote_by_category(b->dtype, a->dtype);
}

uint8_t pt_promote_scalar(uint8_t dtype, pt_scalar s) {
    uint8_t low = s.type == PT_TYPE_BOOL  ? PT_DTYPE_BOOL
                  : s.type == PT_TYPE_INT ? PT_DTYPE_LONG
                                          : PT_DTYPE_FLOAT;
    return promote_by_category(dtype, low);
}

// ---- conversion

int64_t pt_double_to_int(double v) {
    if (v >= -0x1p63 && v < 0x1p63) {
        return (int64_t)v;
    }
    return v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : 0;
}

double pt_load_double(const void *data, int32_t i, uint8_t dtype) {
    switch (dtype) {
    case PT_DTYPE_FLOAT:
        return ((const float *)data)[i];
    case PT_DTYPE_HALF:
    case PT_DTYPE_BFLOAT16:
        return pt_load_float(data, i, dtype);
    case PT_DTYPE_DOUBLE:
        return ((const double *)data)[i];
    default:
        return (double)pt_load_int(data, i, dtype);
    }
}

int64_t pt_load_int(const void *data, int32_t i, uint8_t dtype) {
    switch (dtype) {
    case PT_DTYPE_CHAR:
        return ((const int8_t *)data)[i];
    case PT_DTYPE_SHORT:
        return ((const int16_t *)data)[i];
    case PT_DTYPE_INT:
        return ((const int32_t *)data)[i];
    case PT_DTYPE_LONG:
        return ((const int64_t *)data)[i];
    case PT_DTYPE_FLOAT:
        return pt_double_to_int(((const float *)data)[i]);
    case PT_DTYPE_HALF:
    case PT_DTYPE_BFLOAT16:
        return pt_double_to_int(pt_load_float(data, i, dtype));
    case PT_DTYPE_DOUBLE:
        return pt_double_to_int(((const double *)data)[i]);
    default:
        return ((const uint8_t *)data)[i];
    }
}

float pt_load_float(const void *data, int32_t i, uint8_t dtype) {
    switch (dtype) {
    case PT_DTYPE_FLOAT:
        return ((const float *)data)[i];
    case PT_DTYPE_DOUBLE:
        return (float)((const double *)data)[i];
    case PT_DTYPE_HALF:
        return pt_half_to_float(((const uint16_t *)data)[i]);
    case PT_DTYPE_BFLOAT16:
        return pt_bfloat16_to_float(((const uint16_t *)data)[i]);
    default:
        return (float)pt_load_int(data, i, dtype);
    }
}

void pt_store_double(void *data, int32_t i, uint8_t dtype, double v) {
    switch (dtype) {
    case PT_DTYPE_FLOAT:
        ((float *)data)[i] = (float)v;
        break;
    case PT_DTYPE_HALF:
    case PT_DTYPE_BFLOAT16:
        pt_store_float(data, i, dtype, (float)v);
        break;
    case PT_DTYPE_DOUBLE:
        ((double *)data)[i] = v;
        break;
    case PT_DTYPE_BOOL:
        ((uint8_t *)data)[i] = v != 0;
        break;
    default:
        pt_store_int(data, i, dtype, pt_double_to_int(v));
    }
}

void pt_store_float(void *data, int32_t i, uint8_t dtype, float v) {
    switch (dtype) {
    case PT_DTYPE_FLOAT:
        ((float *)data)[i] = v;
        break;
    case PT_DTYPE_HALF:
        ((uint16_t *)data)[i] = pt_float_to_half(v);
        break;
    case PT_DTYPE_BFLOAT16:
        ((uint16_t *)data)[i] = pt_float_to_bfloat16(v);
        break;
    case PT_DTYPE_BOOL:
        ((uint8_t *)data)[i] = v != 0;
        break;
    default:
        pt_store_double(data, i, dtype, v);
    }
}

void pt_store_int(void *data, int32_t i, uint8_t dtype, int64_t v) {
    switch (dtype) {
    case PT_DTYPE_SHORT:
        ((int16_t *)data)[i] = (int16_t)v;
        break;
    case PT_DTYPE_INT:
        ((int32_t *)data)[i] = (int32_t)v;
        break;
    case PT_DTYPE_LONG:
        ((int64_t *)data)[i] = v;
        break;
    case PT_DTYPE_FLOAT:
        ((float *)data)[i] = (float)v;
        break;
    case PT_DTYPE_HALF:
    case PT_DTYPE_BFLOAT16:
        pt_store_float(data, i, dtype, (float)v);
        break;
    case PT_DTYPE_DOUBLE:
        ((double *)data)[i] = (double)v;
        break;
    case PT_DTYPE_BOOL:
        ((uint8_t *)data)[i] = v != 0;
        break;
    default:
        ((uint8_t *)data)[i] = (uint8_t)v;
    }
}

void pt_convert_element(void *to, int32_t i, uint8_t to_dtype, const void *from, int32_t j,
                        uint8_t from_dtype) {
    if (pt_is_floating(from_dtype)) {
        pt_store_double(to, i, to_dtype, pt_load_double(from, j, from_dtype));
    } else {
        pt_store_int(to, i, to_dtype, pt_load_int(from, j, from_dtype));
    }
}

// ---- broadcasting

bool pt_broadcast(int32_t *sizes, uint32_t *rank, const pt_tensor *t) {
    uint32_t n = *rank;
    if (t->rank > n) {
        for (uint32_t d = t->rank; d-- > 0;) {
            sizes[d] = d >= t->rank - n ? sizes[d - (t->rank - n)] : 1;
        }
        n = *rank = t->rank;
    }
    for (uint32_t d = 0; d < t->rank; d++) {
        int32_t *size = &sizes[n - t->rank + d];
        if (*size == 1) {
            *size = t->sizes[d];
        } else if (t->sizes[d] != 1 && t->sizes[d] != *size) {
            return false;
        }
    }
    return true;
}

// ---- walk

int pt_count_elements(pt_context *c, int32_t n) {
    return pt_count_work(c, n * PT_ELEMENT_STEPS);
}

// Moves dim `from` of the walk to index `to`.
static void move_dim(pt_walk *w, uint32_t to, uint32_t from) {
    w->sizes[to] = w->sizes[from];
    for (uint32_t k = 0; k < w->operands; k++) {
        w->strides[k][to] = w->strides[k][from];
    }
}

void pt_walk_swap_dims(pt_walk *w, uint32_t a, uint32_t b) {
    int32_t size = w->sizes[a];
    w->sizes[a] = w->sizes[b];
    w->sizes[b] = size;
    for (uint32_t k = 0; k < w->operands; k++) {
        int32_t stride = w->strides[k][a];
        w->strides[k][a] = w->strides[k][b];
        w->strides[k][b] = stride;
    }
}

// True if dim `outer` continues dim `inner` in every operand.
static bool follows(const pt_walk *w, uint32_t inner, uint32_t outer) {
    for (uint32_t k = 0; k < w->operands; k++) {
        if (w->strides[k][outer] != w->strides[k][inner] * w->sizes[inner]) {
            return false;
        }
    }
    return true;
}

// Sorts the dims, innermost first, by the strides of operand 0, and drops dims of size 1.
static void sort_dims(pt_walk *w) {
    uint32_t rank = 0;
    for (uint32_t d = 0; d < w->rank; d++) {
        if (w->sizes[d] != 1) {
            move_dim(w, rank++, d);
        }
    }
    for (uint32_t d = 0; d < rank / 2; d++) {
        pt_walk_swap_dims(w, d, rank - 1 - d);
    }
    for (uint32_t d = 1; d < rank; d++) {
        for (uint32_t e = d; e > 0 && w->strides[0][e] < w->strides[0][e - 1]; e--) {
            pt_walk_swap_dims(w, e, e - 1);
        }
    }
    w->rank = (uint8_t)rank;
}

void pt_walk_start(pt_walk *w) {
    sort_dims(w);
    uint32_t last = 0;
    for (uint32_t d = 1; d < w->rank; d++) {
        if (follows(w, last, d)) {
            w->sizes[last] *= w->sizes[d];
        } else {
            move_dim(w, ++last, d);
        }
    }
    if (w->rank == 0) {
        w->sizes[0] = 1;
        for (uint32_t k = 0; k < w->operands; k++) {
            w->strides[k][0] = 1;
        }
    }
    w->rank = (uint8_t)(last + 1);
    for (uint32_t d = 0; d < w->rank; d++) {
        w->index[d] = 0;
    }
    w->n = w->sizes[0] < PT_PIECE ? w->sizes[0] : PT_PIECE;
    w->error = PT_ERROR_OK;
}

void pt_walk_tensors(pt_walk *w, uint32_t operands, const pt_tensor *const *tensors) {
    uint32_t rank = tensors[0]->rank;
    w->rank = (uint8_t)rank;
    w->operands = (uint8_t)operands;
    for (uint32_t d = 0; d < rank; d++) {
        w->sizes[d] = tensors[0]->sizes[d];
    }
    for (uint32_t k = 0; k < operands; k++) {
        const pt_tensor *t = tensors[k];
        int32_t *strides = w->strides[k];
        uint32_t missing = rank - t->rank;
        w->offset[k] = 0;
        pt_strides(t, strides + missing);
        for (uint32_t d = 0; d < rank; d++) {
            if (d < missing || (t->sizes[d - missing] == 1 && w->sizes[d] != 1)) {
                strides[d] = 0;
            }
        }
    }
    pt_walk_start(w);
}

// Moves the walk along its row to `position`.
static void go_to(pt_walk *w, int32_t position) {
    int32_t steps = position - w->index[0];
    w->index[0] = position;
    for (uint32_t k = 0; k < w->operands; k++) {
        w->offset[k] += steps * w->strides[k][0];
    }
}

bool pt_walk_next(pt_context *c, pt_walk *w) {
    w->error = pt_count_elements(c, w->n);
    if (w->error) {
        return false;
    }
    if (w->sizes[0] <= PT_PIECE) {
        return pt_walk_next_row(w);
    }
    int32_t left = w->sizes[0] - w->index[0] - w->n;
    bool goes_on = true;
    if (left > 0) {
        go_to(w, w->index[0] + w->n);
    } else {
        go_to(w, 0);
        left = w->sizes[0];
        goes_on = pt_walk_next_row(w);
    }
    w->n = left < PT_PIECE ? left : PT_PIECE;
    return goes_on;
}

bool pt_walk_next_row(pt_walk *w) {
    for (uint32_t d = 1; d < w->rank; d++) {
        bool wraps = ++w->index[d] == w->sizes[d];
        int32_t steps = wraps ? 1 - w->sizes[d] : 1;
        for (uint32_t k = 0; k < w->operands; k++) {
            w->offset[k] += steps * w->strides[k][d];
        }
        if (!wraps) {
            return true;
        }
        w->index[d] = 0;
    }
    return false;
}
