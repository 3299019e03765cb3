#include "portable/arguments.h"
#include "portable/dtype_access.h"

int pt_read_dim(pt_context *c, int64_t dim, uint32_t rank, uint32_t *axis) {
    int64_t n = rank ? rank : 1;
    if (dim < -n || dim >= n) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "dim is out of range");
    }
    *axis = (uint32_t)(dim < 0 ? dim + n : dim);
    return PT_ERROR_OK;
}

int pt_read_dims(pt_context *c, pt_ref arg, uint32_t rank, uint32_t *dims) {
    uint32_t n = pt_list_length(c, arg);
    *dims = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t dim;
        PT_TRY(pt_read_dim(c, pt_list_int(c, arg, i), rank, &dim));
        if (*dims >> dim & 1) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a dim is named twice");
        }
        *dims |= 1u << dim;
    }
    return PT_ERROR_OK;
}

int pt_read_sizes(pt_context *c, pt_ref arg, int32_t minimum, uint32_t *rank, int32_t *sizes) {
    *rank = pt_list_length(c, arg);
    if (*rank > PT_MAX_RANK) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "more than 16 sizes");
    }
    for (uint32_t d = 0; d < *rank; d++) {
        int64_t size = pt_list_int(c, arg, d);
        if (size < minimum || size > INT32_MAX) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a size is out of range");
        }
        sizes[d] = (int32_t)size;
    }
    return PT_ERROR_OK;
}

bool pt_string_is(const pt_context *c, pt_ref arg, const char *text) {
    uint32_t length, i = 0;
    const char *string = pt_get_string(c, arg, &length);
    while (i < length && text[i] != 0 && string[i] == text[i]) {
        i++;
    }
    return i == length && text[i] == 0;
}

int pt_check_positions(pt_context *c, uint32_t positions, uint32_t elements) {
    enum { FEW = 1 << 16 };
    return positions <= FEW || positions <= elements
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the broadcast tensors have too many elements");
}

bool pt_infer_size(int32_t *sizes, uint32_t rank, uint32_t numel) {
    int32_t *unknown = NULL;
    for (uint32_t d = 0; d < rank; d++) {
        if (sizes[d] < 0) {
            if (unknown) {
                return false;
            }
            unknown = &sizes[d];
        }
    }
    if (unknown) {
        *unknown = 1;
        uint32_t product = pt_product(sizes, rank);
        if (product == 0) {
            return false;
        }
        *unknown = (int32_t)(numel / product);
    }
    return pt_product(sizes, rank) == numel;
}

int pt_check_copy(pt_context *c, const pt_tensor *to, const pt_tensor *from) {
    if (to->dtype == from->dtype
            ? pt_element_size(to->dtype) == 0
            : !pt_dtype_in(to->dtype, PT_DTYPES_ALL) || !pt_dtype_in(from->dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "no conversion between these dtypes");
    }
    return PT_ERROR_OK;
}

int pt_check_same_dtype(pt_context *c, const pt_tensor *out, const pt_tensor *in) {
    if (out->dtype != in->dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output's dtype must be the input's");
    }
    return pt_check_copy(c, out, in);
}

static uintptr_t end_of(const pt_tensor *t) {
    return (uintptr_t)t->data + pt_nbytes(t);
}

int pt_check_apart(pt_context *c, const pt_tensor *out, const pt_tensor *indices) {
    bool apart = end_of(out) <= (uintptr_t)indices->data || end_of(indices) <= (uintptr_t)out->data;
    return apart ? PT_ERROR_OK
                 : pt_fail(c, PT_ERROR_INVALID_PROGRAM, "the output overlaps the indices");
}

pt_tensor pt_get_lanes(const pt_context *c, pt_ref arg) {
    static const int32_t size = 1;
    static const uint8_t dim = 0;
    pt_tensor t = pt_get_tensor(c, arg);
    if (t.rank == 0) {
        t.rank = 1;
        t.sizes = &size;
        t.dim_order = &dim;
    }
    return t;
}

int pt_check_indices(pt_context *c, const pt_tensor *index, int32_t size, const pt_tensor *out) {
    int32_t n = pt_numel(index);
    for (int32_t i = 0; i < n; i++) {
        PT_TRY(pt_count_work(c, 1));
        int64_t at = pt_load_int(index->data, i, index->dtype);
        if (at < 0 || at >= size) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "an index is out of range");
        }
    }
    return pt_check_apart(c, out, index);
}

int pt_read_view_sizes(pt_context *c, pt_ref arg, const pt_tensor *of, uint32_t *rank,
                       int32_t *sizes) {
    PT_TRY(pt_read_sizes(c, arg, -1, rank, sizes));
    if (!pt_infer_size(sizes, *rank, (uint32_t)pt_numel(of))) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the sizes do not hold the input's elements");
    }
    return PT_ERROR_OK;
}
