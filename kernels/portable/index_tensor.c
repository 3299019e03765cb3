// index.Tensor: self[i, :, j, ...] with tensors of integers, broadcast to each other. Where the
// indexed dims follow each other, the indices' dims take their place in the output, else they come
// first.
#include "arguments.h"
#include "copy.h"

typedef struct picks {
    uint32_t dims;              // bit d: dim d of self is indexed
    uint32_t before;            // dims of self in the output before those of the indices
    uint32_t rank;              // of the indices, broadcast
    int32_t sizes[PT_MAX_RANK]; // of the indices, broadcast
} picks;

static int check_index_tensor(pt_context *c, const pt_tensor *index) {
    if (index->dtype != PT_DTYPE_LONG && index->dtype != PT_DTYPE_INT) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "indices must be int64 or int32");
    }
    if (!(index->flags & PT_VALUE_CONTIGUOUS)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "indices must be contiguous");
    }
    return PT_ERROR_OK;
}

static int read_picks(pt_context *c, const pt_tensor *self, pt_ref list, picks *p) {
    uint32_t n = pt_list_length(c, list), first = 0, end = 0, count = 0;
    p->dims = p->rank = 0;
    if (n > self->rank) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "more indices than dims");
    }
    for (uint32_t d = 0; d < n; d++) {
        pt_ref item = pt_list_item(c, list, d);
        if (pt_is_none(item)) {
            continue;
        }
        pt_tensor index = pt_get_tensor(c, item);
        int error = check_index_tensor(c, &index);
        if (error) {
            return error;
        }
        if (!pt_broadcast(p->sizes, &p->rank, &index)) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the indices do not broadcast");
        }
        first = count++ == 0 ? d : first;
        end = d + 1;
        p->dims |= 1u << d;
    }
    p->before = end - first == count ? first : 0;
    return count ? PT_ERROR_OK : pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "no index");
}

// The place in the output of the dim of self that `kept` dims without an index precede.
static uint32_t out_dim(const picks *p, uint32_t kept) {
    return kept < p->before ? kept : kept + p->rank;
}

// (self, indices, out)
static int index_tensor_check(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[0]);
    pt_tensor out = pt_get_tensor(c, args[2]);
    picks p;
    int error = read_picks(c, &self, args[1], &p);
    if (error) {
        return error;
    }
    int32_t sizes[2 * PT_MAX_RANK];
    uint32_t kept = 0;
    for (uint32_t d = 0; d < self.rank; d++) {
        if ((p.dims >> d & 1) == 0) {
            sizes[out_dim(&p, kept++)] = self.sizes[d];
        }
    }
    for (uint32_t i = 0; i < p.rank; i++) {
        sizes[p.before + i] = p.sizes[i];
    }
    error = pt_check_same_dtype(c, &out, &self);
    return error ? error : pt_expect_sizes(c, args[2], kept + p.rank, sizes);
}

// All indices lie in -size..size-1 of their dims, and stay so while out is written.
static int check_range(pt_context *c, const pt_tensor *self, pt_ref list, const picks *p,
                       const pt_tensor *out) {
    for (uint32_t d = 0; d < self->rank; d++) {
        if ((p->dims >> d & 1) == 0) {
            continue;
        }
        pt_tensor index = pt_get_tensor(c, pt_list_item(c, list, d));
        int32_t n = pt_numel(&index), size = self->sizes[d];
        for (int32_t i = 0; i < n; i++) {
            int64_t at = pt_load_int(index.data, i, index.dtype);
            if (at < -size || at >= size) {
                return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "an index is out of range");
            }
        }
        int error = pt_check_apart(c, out, &index);
        if (error) {
            return error;
        }
    }
    return PT_ERROR_OK;
}

// The index at place `at` of the broadcast indices, counted from the start of a dim of `size`.
static int32_t pick(const pt_tensor *index, const picks *p, int32_t at, int32_t size) {
    int32_t offset = 0, stride = 1;
    for (uint32_t i = p->rank; i-- > p->rank - index->rank;) {
        int32_t own = index->sizes[i - (p->rank - index->rank)];
        offset += own == 1 ? 0 : at % p->sizes[i] * stride;
        stride *= own;
        at /= p->sizes[i];
    }
    int32_t value = (int32_t)pt_load_int(index->data, offset, index->dtype);
    return value < 0 ? value + size : value;
}

// Where place `at` of the broadcast indices begins in the output.
static int32_t place_in_output(const picks *p, int32_t at, const int32_t *strides) {
    int32_t offset = 0;
    for (uint32_t i = p->rank; i-- > 0;) {
        offset += at % p->sizes[i] * strides[p->before + i];
        at /= p->sizes[i];
    }
    return offset;
}

// Copies the elements of self that place `at` of the broadcast indices picks.
static void copy_picked(pt_context *c, const pt_ref *args, const picks *p, int32_t at) {
    pt_tensor self = pt_get_tensor(c, args[0]);
    pt_tensor out = pt_get_tensor(c, args[2]);
    pt_walk w;
    int32_t *to = w.strides[2], *from = w.strides[3]; // of operands that the walk does not have
    uint32_t kept = 0;
    pt_strides(&out, to);
    pt_strides(&self, from);
    w.operands = 2;
    w.offset[0] = place_in_output(p, at, to);
    w.offset[1] = 0;
    for (uint32_t d = 0; d < self.rank; d++) {
        if (p->dims >> d & 1) {
            pt_tensor index = pt_get_tensor(c, pt_list_item(c, args[1], d));
            w.offset[1] += pick(&index, p, at, self.sizes[d]) * from[d];
        } else {
            w.sizes[kept] = self.sizes[d];
            w.strides[0][kept] = to[out_dim(p, kept)];
            w.strides[1][kept++] = from[d];
        }
    }
    w.rank = (uint8_t)kept;
    pt_copy_run(&w, &out, &self);
}

static int index_tensor_run(pt_context *c, const pt_ref *args) {
    pt_tensor self = pt_get_tensor(c, args[0]);
    pt_tensor out = pt_get_tensor(c, args[2]);
    picks p;
    int error = read_picks(c, &self, args[1], &p);
    if (error == PT_ERROR_OK) {
        error = check_range(c, &self, args[1], &p, &out);
    }
    if (error || pt_numel(&out) == 0) {
        return error;
    }
    int32_t n = (int32_t)pt_product(p.sizes, p.rank);
    for (int32_t at = 0; at < n; at++) {
        copy_picked(c, args, &p, at);
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_index_Tensor_out = {index_tensor_check, index_tensor_run};
