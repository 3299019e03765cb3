#include "portable/copy.h"
#include <string.h>

// A row of elements: their number, and the bytes between neighbours.
typedef struct row {
    uint8_t *to;
    const uint8_t *from;
    int32_t n, to_step, from_step;
} row;

typedef uint32_t __attribute__((may_alias)) word;
typedef uint16_t __attribute__((may_alias)) half_word;

static void copy_words(const row *r) {
    uint8_t *to = r->to;
    const uint8_t *from = r->from;
    const int32_t t1 = r->to_step, t2 = 2 * t1, t3 = 3 * t1;
    const int32_t f1 = r->from_step, f2 = 2 * f1, f3 = 3 * f1;
    int32_t n = r->n;
    for (; n >= 4; n -= 4) {
        word a = *(const word *)(const void *)from;
        word b = *(const word *)(const void *)(from + f1);
        word c = *(const word *)(const void *)(from + f2);
        word d = *(const word *)(const void *)(from + f3);
        *(word *)(void *)to = a;
        *(word *)(void *)(to + t1) = b;
        *(word *)(void *)(to + t2) = c;
        *(word *)(void *)(to + t3) = d;
        from += 4 * f1;
        to += 4 * t1;
    }
    for (; n > 0; n--, from += f1, to += t1) {
        *(word *)(void *)to = *(const word *)(const void *)from;
    }
}

// Copies elements of any size.
static void copy_elements(const row *r, uint32_t size) {
    uint8_t *to = r->to;
    const uint8_t *from = r->from;
    for (int32_t n = r->n; n > 0; n--, from += r->from_step, to += r->to_step) {
        if (!PT_HAS_OWN_LOOPS) {
            for (uint32_t i = 0; i < size; i++) {
                to[i] = from[i];
            }
        } else if (size == 1) {
            *to = *from;
        } else if (size == 2) {
            *(half_word *)(void *)to = *(const half_word *)(const void *)from;
        } else {
            word low = ((const word *)(const void *)from)[0];
            word high = ((const word *)(const void *)from)[1];
            ((word *)(void *)to)[0] = low;
            ((word *)(void *)to)[1] = high;
            if (size == 16) {
                ((word *)(void *)to)[2] = ((const word *)(const void *)from)[2];
                ((word *)(void *)to)[3] = ((const word *)(const void *)from)[3];
            }
        }
    }
}

static void swap_inner_dims(pt_walk *w) {
    int32_t size = w->sizes[0];
    w->sizes[0] = w->sizes[1];
    w->sizes[1] = size;
    for (uint32_t k = 0; k < w->operands; k++) {
        int32_t stride = w->strides[k][0];
        w->strides[k][0] = w->strides[k][1];
        w->strides[k][1] = stride;
    }
}

static bool copy_in_blocks(const pt_walk *w) {
    return w->strides[0][0] == 1 && w->strides[1][0] == 1;
}

// Copies a row whose elements are not contiguous.
static int copy_row(pt_context *c, const row *r, uint32_t size) {
    row piece = *r;
    for (int32_t left = r->n;; left -= PT_PIECE) {
        piece.n = left < PT_PIECE ? left : PT_PIECE;
        PT_TRY(pt_count_work(c, piece.n));
        if (PT_HAS_OWN_LOOPS && size == 4) {
            copy_words(&piece);
        } else {
            copy_elements(&piece, size);
        }
        if (left <= PT_PIECE) {
            return PT_ERROR_OK;
        }
        piece.to += PT_PIECE * piece.to_step;
        piece.from += PT_PIECE * piece.from_step;
    }
}

// Copies the rows of dims 0 and 1, the inner dims of a walk.
static int copy_plane(pt_context *c, const pt_walk *w, row r, uint32_t size, int32_t rows) {
    const int32_t to_step = w->rank > 1 ? w->strides[0][1] * (int32_t)size : 0;
    const int32_t from_step = w->rank > 1 ? w->strides[1][1] * (int32_t)size : 0;
    const bool blocks = copy_in_blocks(w);
    for (; rows > 0; rows--, r.to += to_step, r.from += from_step) {
        if (blocks) {
            PT_TRY(pt_count_work(c, r.n));
            memmove(r.to, r.from, (uint32_t)r.n * size);
        } else {
            PT_TRY(copy_row(c, &r, size));
        }
    }
    return PT_ERROR_OK;
}

static int copy_same_dtype(pt_context *c, pt_walk *w, uint8_t *to, const uint8_t *from,
                           uint32_t size) {
    enum { SHORT_ROW = 8 }; // up to this number of elements the overhead of a row dominates
    enum { OVERHEAD = 32 }; // steps of a copy, in addition to the steps of its elements
    int32_t rows = 1;
    if (w->rank > 1) {
        if (w->sizes[1] > w->sizes[0] && (!copy_in_blocks(w) || w->sizes[0] < SHORT_ROW)) {
            swap_inner_dims(w);
        }
        rows = w->sizes[1];
        w->sizes[1] = 1; // the walk steps from plane to plane
    }
    row r = {.n = w->sizes[0],
             .to_step = w->strides[0][0] * (int32_t)size,
             .from_step = w->strides[1][0] * (int32_t)size};
    PT_TRY(pt_count_work(c, OVERHEAD));
    do {
        r.to = to + (size_t)w->offset[0] * size;
        r.from = from + (size_t)w->offset[1] * size;
        PT_TRY(copy_plane(c, w, r, size, rows));
    } while (w->rank > 2 && pt_walk_next_row(w));
    return PT_ERROR_OK;
}

// Converts as pt_convert_element, faster between float and integers within int32.
static void convert_element(const pt_tensor *to, int32_t i, const pt_tensor *from, int32_t j) {
    if (from->dtype == PT_DTYPE_FLOAT && pt_dtype_in(to->dtype, PT_DTYPES_INTEGER)) {
        float v = ((const float *)from->data)[j];
        if (v > -0x1p31f && v < 0x1p31f) {
            pt_store_int(to->data, i, to->dtype, (int32_t)v);
            return;
        }
    } else if (to->dtype == PT_DTYPE_FLOAT && !pt_is_floating(from->dtype)) {
        int64_t v = pt_load_int(from->data, j, from->dtype);
        if (v == (int32_t)v) {
            ((float *)to->data)[i] = (float)(int32_t)v;
            return;
        }
    }
    pt_convert_element(to->data, i, to->dtype, from->data, j, from->dtype);
}

// Converts n elements of `from`, from element j on, to `to`, from element i on.
static void convert_row(const pt_tensor *to, int32_t i, int32_t i_step, const pt_tensor *from,
                        int32_t j, int32_t j_step, int32_t n) {
    for (; n > 0; n--, i += i_step, j += j_step) {
        convert_element(to, i, from, j);
    }
}

static int copy_rows(pt_context *c, pt_walk *w, const pt_tensor *to, const pt_tensor *from) {
    return copy_same_dtype(c, w, to->data, from->data, pt_element_size(to->dtype));
}

static int convert_rows(pt_context *c, pt_walk *w, const pt_tensor *to, const pt_tensor *from) {
    do {
        convert_row(to, w->offset[0], w->strides[0][0], from, w->offset[1], w->strides[1][0], w->n);
    } while (pt_walk_next(c, w));
    return w->error;
}

void pt_copy_start(pt_walk *w, const pt_tensor *to, const pt_tensor *from) {
    w->rank = to->rank;
    w->operands = 2;
    for (uint32_t d = 0; d < to->rank; d++) {
        w->sizes[d] = to->sizes[d];
    }
    pt_strides(to, w->strides[0]);
    pt_strides(from, w->strides[1]);
    w->offset[0] = w->offset[1] = 0;
}

int pt_copy_run(pt_context *c, pt_walk *w, const pt_tensor *to, const pt_tensor *from) {
    pt_walk_start(w);
    return copy_rows(c, w, to, from);
}

void pt_copy_flat(const pt_tensor *to, const pt_tensor *from) {
    uint32_t nbytes = pt_nbytes(to);
    if (to->data != from->data && nbytes > 0) {
        memmove(to->data, from->data, nbytes);
    }
}

static bool lies_alike(const pt_tensor *to, const pt_tensor *from) {
    return pt_same_sizes(to, from) && pt_same_dim_order(to, from);
}

int pt_copy_broadcast(pt_context *c, const pt_tensor *to, const pt_tensor *from) {
    if (pt_numel(to) == 0) {
        return PT_ERROR_OK;
    }
    if (lies_alike(to, from)) {
        pt_copy_flat(to, from);
        return PT_ERROR_OK;
    }
    const pt_tensor *tensors[] = {to, from};
    pt_walk w;
    pt_walk_tensors(&w, 2, tensors);
    return copy_rows(c, &w, to, from);
}

int pt_convert_broadcast(pt_context *c, const pt_tensor *to, const pt_tensor *from) {
    if (to->dtype == from->dtype || pt_numel(to) == 0) {
        return pt_copy_broadcast(c, to, from);
    }
    const pt_tensor *tensors[] = {to, from};
    pt_walk w;
    pt_walk_tensors(&w, 2, tensors);
    return convert_rows(c, &w, to, from);
}

// ---- sections

// Computes the strides of a tensor that lacks dim `dim` of `rank`, as if it had that dim.
static void strides_with_dim(const pt_tensor *t, uint32_t dim, int32_t *strides) {
    pt_strides(t, strides);
    for (uint32_t d = t->rank; d > dim; d--) {
        strides[d] = strides[d - 1];
    }
    strides[dim] = 0;
}

// Starts the walk over a section: operand `k` is the tensor with the section, the other is `part`.
static void start_section(pt_walk *w, uint32_t k, const pt_tensor *whole, const pt_section *s,
                          const pt_tensor *part) {
    w->rank = whole->rank;
    w->operands = 2;
    for (uint32_t d = 0; d < whole->rank; d++) {
        w->sizes[d] = whole->sizes[d];
    }
    pt_strides(whole, w->strides[k]);
    if (s->drop) {
        strides_with_dim(part, s->dim, w->strides[1 - k]);
    } else {
        pt_strides(part, w->strides[1 - k]);
    }
    w->offset[k] = w->offset[1 - k] = 0;
    if (whole->rank != 0) {
        w->offset[k] = s->start * w->strides[k][s->dim];
        w->sizes[s->dim] = s->count;
        w->strides[k][s->dim] *= s->step;
    }
}

int pt_copy_section(pt_context *c, const pt_tensor *part, const pt_tensor *whole,
                    const pt_section *section) {
    if (pt_numel(part) == 0) {
        return PT_ERROR_OK;
    }
    pt_walk w;
    start_section(&w, 1, whole, section, part);
    return pt_copy_run(c, &w, part, whole);
}

int pt_copy_to_section(pt_context *c, const pt_tensor *whole, const pt_section *section,
                       const pt_tensor *part) {
    if (pt_numel(part) == 0) {
        return PT_ERROR_OK;
    }
    pt_walk w;
    start_section(&w, 0, whole, section, part);
    return pt_copy_run(c, &w, whole, part);
}

int pt_convert_to_section(pt_context *c, const pt_tensor *whole, const pt_section *section,
                          const pt_tensor *part) {
    if (whole->dtype == part->dtype || pt_numel(part) == 0) {
        return pt_copy_to_section(c, whole, section, part);
    }
    pt_walk w;
    start_section(&w, 0, whole, section, part);
    pt_walk_start(&w);
    return convert_rows(c, &w, whole, part);
}

// ---- copy, add, fill

void pt_copy_element(const pt_tensor *to, int32_t i, const pt_tensor *from, int32_t j) {
    size_t size = pt_element_size(to->dtype);
    memmove((uint8_t *)to->data + (size_t)i * size, (const uint8_t *)from->data + (size_t)j * size,
            size);
}

void pt_add_element(const pt_tensor *to, int32_t i, const pt_tensor *from, int32_t j) {
    if (pt_is_floating(to->dtype)) {
        double sum =
            pt_load_double(to->data, i, to->dtype) + pt_load_double(from->data, j, from->dtype);
        pt_store_double(to->data, i, to->dtype, sum);
    } else {
        uint64_t sum = (uint64_t)pt_load_int(to->data, i, to->dtype) +
                       (uint64_t)pt_load_int(from->data, j, from->dtype);
        pt_store_int(to->data, i, to->dtype, (int64_t)sum);
    }
}

void pt_fill(void *data, int32_t n, uint8_t dtype, pt_scalar value) {
    if (n == 0) {
        return;
    }
    if (value.type == PT_TYPE_DOUBLE) {
        pt_store_double(data, 0, dtype, value.as.d);
    } else {
        pt_store_int(data, 0, dtype, value.as.i);
    }
    uint32_t size = pt_element_size(dtype);
    uint32_t bytes = (uint32_t)n * size;
    for (uint32_t done = size; done < bytes;) {
        uint32_t step = done < bytes - done ? done : bytes - done;
        memcpy((uint8_t *)data + done, data, step);
        done += step;
    }
}
