#include "portable/index_select.h"
#include "portable/arguments.h"

static bool is_mask(const pt_tensor *index) {
    return pt_dtype_in(index->dtype, PT_DTYPES_BOOL | 1 << PT_DTYPE_BYTE);
}

static int index_select_check_index(pt_context *c, const pt_tensor *self, const pt_tensor *index,
                                    uint32_t dim) {
    if (!is_mask(index) && index->dtype != PT_DTYPE_LONG && index->dtype != PT_DTYPE_INT) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "indices must be int64, int32, bool or uint8");
    }
    if (!(index->flags & PT_VALUE_CONTIGUOUS)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "indices must be contiguous");
    }
    if (is_mask(index) && index->rank == 0) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "a mask must have dims");
    }
    if (dim + (is_mask(index) ? index->rank : 1) > self->rank) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "more indices than dims");
    }
    for (uint32_t i = 0; is_mask(index) && i < index->rank; i++) {
        if (index->sizes[i] != self->sizes[dim + i]) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                           "a mask does not have the sizes of its dims");
        }
    }
    return PT_ERROR_OK;
}

// Writes the number of elements that a mask over the dims from `dim` on selects, and their offsets
// in self.
static int find_true(pt_context *c, const pt_tensor *self, const pt_tensor *mask, uint32_t dim,
                     int32_t *offsets) {
    int32_t strides[PT_MAX_RANK], n = pt_numel(mask), count = 0;
    pt_strides(self, strides);
    for (int32_t i = 0; i < n; i++) {
        PT_TRY(pt_count_elements(c, 1));
        if (((const uint8_t *)mask->data)[i]) {
            int32_t rest = i, offset = 0;
            for (uint32_t d = mask->rank; d-- > 0;) {
                offset += rest % mask->sizes[d] * strides[dim + d];
                rest /= mask->sizes[d];
            }
            offsets[++count] = offset;
        }
    }
    offsets[0] = count;
    return PT_ERROR_OK;
}

// Reads the list of indices. With `running`, reads masks into the scratch that the check requests.
static int read_selection(pt_context *c, const pt_tensor *self, pt_ref list, bool running,
                          pt_index_selection *p) {
    uint32_t n = pt_list_length(c, list), dim = 0, first = 0, end = 0, count = 0, n_offsets = 0;
    *p = (pt_index_selection){0};
    for (uint32_t i = 0; i < n; i++) {
        pt_ref item = pt_list_item(c, list, i);
        if (pt_is_none(item)) {
            dim++;
            continue;
        }
        pt_tensor index = pt_get_tensor(c, item);
        PT_TRY(index_select_check_index(c, self, &index, dim));
        uint32_t dims = 1, elements = (uint32_t)pt_numel(&index);
        int32_t one = 1; // a size of 1 broadcasts to any size
        pt_tensor selected = index;
        if (is_mask(&index)) {
            dims = index.rank;
            const uint32_t first_offset = n_offsets;
            n_offsets += elements + 1;
            if (n_offsets > PT_MEMORY_LIMIT / sizeof(int32_t)) {
                return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the masks are too large");
            }
            if (running) {
                void *scratch;
                PT_TRY(pt_get_scratch(c, n_offsets * (uint32_t)sizeof(int32_t), &scratch));
                int32_t *offsets = (int32_t *)scratch + first_offset;
                PT_TRY(find_true(c, self, &index, dim, offsets));
                one = *offsets;
                p->offsets = scratch;
            }
            selected = (pt_tensor){.sizes = &one, .rank = 1};
            p->has_masks = true;
        }
        if (!pt_broadcast(p->sizes, &p->rank, &selected)) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the indices do not broadcast");
        }
        p->largest = elements > p->largest ? elements : p->largest;
        first = count == 0 ? dim : first;
        count += dims;
        p->dims |= ((1u << dims) - 1) << dim;
        end = dim += dims;
    }
    p->before = end - first == count ? first : 0;
    pt_request_scratch(c, running ? 0 : n_offsets * (uint32_t)sizeof(int32_t));
    if (dim > self->rank) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "more indices than dims");
    }
    return count ? PT_ERROR_OK : pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "no index");
}

int pt_read_selection(pt_context *c, const pt_tensor *self, pt_ref list, pt_index_selection *p) {
    return read_selection(c, self, list, false, p);
}

static int index_select_check_range(pt_context *c, const pt_tensor *index, int32_t size) {
    int32_t n = pt_numel(index);
    for (int32_t i = 0; i < n; i++) {
        PT_TRY(pt_count_work(c, 1));
        int64_t at = pt_load_int(index->data, i, index->dtype);
        if (at < -size || at >= size) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "an index is out of range");
        }
    }
    return PT_ERROR_OK;
}

int pt_find_selection(pt_context *c, const pt_tensor *self, pt_ref list, const pt_tensor *out,
                      pt_index_selection *p) {
    PT_TRY(read_selection(c, self, list, true, p));
    uint32_t n = pt_list_length(c, list), dim = 0;
    for (uint32_t i = 0; i < n; i++) {
        pt_ref item = pt_list_item(c, list, i);
        pt_tensor index = {.dtype = PT_DTYPE_LONG};
        if (!pt_is_none(item)) {
            index = pt_get_tensor(c, item);
        }
        if (!pt_is_none(item) && !is_mask(&index)) {
            PT_TRY(index_select_check_range(c, &index, self->sizes[dim]));
            PT_TRY(pt_check_apart(c, out, &index));
        }
        dim += is_mask(&index) ? index.rank : 1;
    }
    return PT_ERROR_OK;
}

uint32_t pt_selected_dim(const pt_index_selection *p, uint32_t kept) {
    return kept < p->before ? kept : kept + p->rank;
}

uint32_t pt_selected_sizes(const pt_index_selection *p, const pt_tensor *self, int32_t *sizes) {
    uint32_t kept = 0;
    for (uint32_t d = 0; d < self->rank; d++) {
        if ((p->dims >> d & 1) == 0) {
            sizes[pt_selected_dim(p, kept++)] = self->sizes[d];
        }
    }
    for (uint32_t i = 0; i < p->rank; i++) {
        sizes[p->before + i] = p->sizes[i];
    }
    return kept + p->rank;
}

// Returns the element of an index of these sizes for position `at` of the broadcast indices.
static int32_t index_select_element_at(const pt_index_selection *p, uint32_t rank,
                                       const int32_t *sizes, int32_t at) {
    int32_t element = 0, stride = 1;
    for (uint32_t i = p->rank; i-- > p->rank - rank;) {
        int32_t own = sizes[i - (p->rank - rank)];
        element += own == 1 ? 0 : at % p->sizes[i] * stride;
        stride *= own;
        at /= p->sizes[i];
    }
    return element;
}

int32_t pt_select_offset(const pt_context *c, const pt_index_selection *p, pt_ref list,
                         const pt_tensor *self, const int32_t *strides, int32_t at) {
    uint32_t n = pt_list_length(c, list), dim = 0;
    const int32_t *offsets = p->offsets;
    int32_t offset = 0;
    for (uint32_t i = 0; i < n; i++) {
        pt_ref item = pt_list_item(c, list, i);
        if (pt_is_none(item)) {
            dim++;
            continue;
        }
        pt_tensor index = pt_get_tensor(c, item);
        if (is_mask(&index)) {
            offset += offsets[*offsets == 1 ? 1 : 1 + at % p->sizes[p->rank - 1]];
            offsets += 1 + pt_numel(&index);
            dim += index.rank;
            continue;
        }
        int32_t element = index_select_element_at(p, index.rank, index.sizes, at);
        int32_t value = (int32_t)pt_load_int(index.data, element, index.dtype);
        offset += (value < 0 ? value + self->sizes[dim] : value) * strides[dim];
        dim++;
    }
    return offset;
}

int32_t pt_selected_offset(const pt_index_selection *p, const int32_t *strides, int32_t at) {
    int32_t offset = 0;
    for (uint32_t i = p->rank; i-- > 0;) {
        offset += at % p->sizes[i] * strides[p->before + i];
        at /= p->sizes[i];
    }
    return offset;
}
