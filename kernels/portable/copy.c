#include "portable/copy.h"
#include "arch/copy_rows.h"
#include <string.h>

int pt_copy_rows_in_pieces(pt_context *c, uint8_t *to, int32_t to_step, const uint8_t *from,
                           int32_t from_step, int32_t n, int32_t rows) {
    const int32_t max = n < PT_POLL_WORK / 4 ? PT_POLL_WORK / 4 / n : 1;
    for (; rows > 0; rows -= max) {
        const int32_t some = rows < max ? rows : max;
        PT_TRY(pt_count_work(c, n * some));
        pt_copy_rows(to, to_step, from, from_step, n, some);
        to += some * to_step;
        from += some * from_step;
    }
    return PT_ERROR_OK;
}

// Copies some rows at a time, at least a block of transposed ones, of at most PT_PIECE columns.
static int copy_rows_of_plane(pt_context *c, const pt_plane *p, uint8_t *to, const uint8_t *from,
                              uint32_t size) {
    enum { BLOCK = 4 };
    const int32_t max =
        p->columns < PT_PIECE / BLOCK ? PT_PIECE / p->columns & ~(BLOCK - 1) : BLOCK;
    pt_plane part = *p;
    for (int32_t left = p->rows;; left -= max) {
        part.rows = left < max ? left : max;
        PT_TRY(pt_count_work(c, part.rows * part.columns));
        pt_copy_plane(&part, to, from, size);
        if (left <= max) {
            return PT_ERROR_OK;
        }
        to += max * p->out_row * (int32_t)size;
        from += max * p->in_row * (int32_t)size;
    }
}

int pt_copy_plane_in_pieces(pt_context *c, const pt_plane *p, uint8_t *to, const uint8_t *from,
                            uint32_t size) {
    pt_plane part = *p;
    for (int32_t left = p->columns;; left -= PT_PIECE) {
        part.columns = left < PT_PIECE ? left : PT_PIECE;
        PT_TRY(copy_rows_of_plane(c, &part, to, from, size));
        if (left <= PT_PIECE) {
            return PT_ERROR_OK;
        }
        to += PT_PIECE * (int32_t)size;
        from += PT_PIECE * p->in_column * (int32_t)size;
    }
}

// Makes dim 1 the one whose elements are adjacent in the input, or, if dim 0 has such elements, the
// largest behind it.
static void choose_rows(pt_walk *w) {
    for (uint32_t d = 2; d < w->rank; d++) {
        if (w->strides[1][0] == 1 ? w->sizes[d] > w->sizes[1] : w->strides[1][d] == 1) {
            pt_walk_swap_dims(w, 1, d);
        }
    }
}

// Copies the inner dims of a walk, 0 and 1.
static int copy_inner_dims(pt_context *c, const pt_plane *p, int32_t out_column, uint8_t *to,
                           const uint8_t *from, uint32_t size) {
    const int32_t bytes = (int32_t)size;
    if (out_column == 1) {
        return pt_copy_plane_in_pieces(c, p, to, from, size);
    }
    for (int32_t i = p->rows; i > 0; i--) {
        PT_TRY(pt_copy_rows_in_pieces(c, to, out_column * bytes, from, p->in_column * bytes, bytes,
                                      p->columns));
        to += p->out_row * bytes;
        from += p->in_row * bytes;
    }
    return PT_ERROR_OK;
}

static int copy_same_dtype(pt_context *c, pt_walk *w, uint8_t *to, const uint8_t *from,
                           uint32_t size) {
    enum { OVERHEAD = 32 }; // steps of a copy beside its elements
    pt_plane p = {.rows = 1, .columns = w->sizes[0], .in_column = w->strides[1][0]};
    if (w->rank > 1) {
        choose_rows(w);
        p.rows = w->sizes[1];
        p.out_row = w->strides[0][1];
        p.in_row = w->strides[1][1];
        w->sizes[1] = 1; // the walk goes from plane to plane
    }
    PT_TRY(pt_count_work(c, OVERHEAD));
    do {
        PT_TRY(copy_inner_dims(c, &p, w->strides[0][0], to + (size_t)w->offset[0] * size,
                               from + (size_t)w->offset[1] * size, size));
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

// True if the elements of the section lie in the same order in both tensors, as rows of bytes.
static bool section_lies_in_rows(const pt_tensor *whole, const pt_section *s,
                                 const pt_tensor *part) {
    const bool alike = s->drop ? (whole->flags & part->flags & PT_VALUE_CONTIGUOUS) != 0
                               : pt_same_dim_order(whole, part);
    return alike && (s->step == 1 || s->count == 1);
}

static int copy_section_rows(pt_context *c, const pt_tensor *whole, const pt_section *s,
                             const pt_tensor *part, bool to_whole) {
    const pt_lanes lanes = pt_lanes_of(whole, s->dim);
    const int32_t size = lanes.inner * (int32_t)pt_element_size(whole->dtype);
    const int32_t whole_step = lanes.size * size, part_step = s->count * size;
    uint8_t *in_whole = (uint8_t *)whole->data + s->start * size;
    uint8_t *data = part->data;
    return to_whole ? pt_copy_rows_in_pieces(c, in_whole, whole_step, data, part_step, part_step,
                                             lanes.outer)
                    : pt_copy_rows_in_pieces(c, data, part_step, in_whole, whole_step, part_step,
                                             lanes.outer);
}

// Copies the section to `part`, or `part` to the section.
static int copy_section(pt_context *c, const pt_tensor *whole, const pt_section *s,
                        const pt_tensor *part, bool to_whole) {
    if (pt_numel(part) == 0) {
        return PT_ERROR_OK;
    }
    if (section_lies_in_rows(whole, s, part)) {
        return copy_section_rows(c, whole, s, part, to_whole);
    }
    pt_walk w;
    start_section(&w, to_whole ? 0 : 1, whole, s, part);
    return to_whole ? pt_copy_run(c, &w, whole, part) : pt_copy_run(c, &w, part, whole);
}

int pt_copy_section(pt_context *c, const pt_tensor *part, const pt_tensor *whole,
                    const pt_section *section) {
    return copy_section(c, whole, section, part, false);
}

int pt_copy_to_section(pt_context *c, const pt_tensor *whole, const pt_section *section,
                       const pt_tensor *part) {
    return copy_section(c, whole, section, part, true);
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
