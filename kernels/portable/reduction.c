#include "portable/reduction.h"
#include "portable/arguments.h"

int32_t pt_line_start(const pt_reduction *r, int32_t line) {
    int32_t offset = 0;
    for (uint32_t d = r->rank; d-- > 0;) {
        offset += line % r->sizes[d] * r->strides[d];
        line /= r->sizes[d];
    }
    return offset;
}

// ---- dims to reduce

int pt_read_dims_or_all(pt_context *c, pt_ref arg, uint32_t rank, uint32_t *dims) {
    if (pt_is_none(arg) || pt_list_length(c, arg) == 0) {
        *dims = (1u << rank) - 1;
        return PT_ERROR_OK;
    }
    return pt_read_dims(c, arg, rank, dims);
}

int pt_read_dim_or_all(pt_context *c, pt_ref arg, uint32_t rank, uint32_t *dims) {
    if (pt_is_none(arg)) {
        *dims = (1u << rank) - 1;
        return PT_ERROR_OK;
    }
    uint32_t dim = 0;
    PT_TRY(pt_read_dim(c, pt_get_int(c, arg), rank, &dim));
    *dims = 1u << dim;
    return PT_ERROR_OK;
}

int pt_expect_reduced(pt_context *c, const pt_tensor *in, uint32_t dims, bool keep,
                      pt_ref out_arg) {
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < in->rank; d++) {
        if ((dims >> d & 1) == 0) {
            sizes[rank++] = in->sizes[d];
        } else if (keep) {
            sizes[rank++] = 1;
        }
    }
    return pt_expect_sizes(c, out_arg, rank, sizes);
}

// ---- the walk over the outputs

// Adds a reduced dim, outermost first.
static void add_reduced(pt_reduction *r, int32_t size, int32_t stride) {
    if (size == 1) {
        return;
    }
    if (r->rank && r->strides[r->rank - 1] == size * stride) {
        r->sizes[r->rank - 1] *= size;
        r->strides[r->rank - 1] = stride;
        return;
    }
    r->sizes[r->rank] = size;
    r->strides[r->rank++] = stride;
}

// Makes the innermost reduced dim the dim of the rows.
static void split_lines(pt_reduction *r) {
    r->n = r->step = 1;
    if (r->rank) {
        r->rank--;
        r->n = r->sizes[r->rank];
        r->step = r->strides[r->rank];
    }
    r->lines = (int32_t)pt_product(r->sizes, r->rank);
}

// Sets up `r`, and a walk `w` over the kept dims: operand 0 in the output, 1 in the input, 2 in the
// indices.
static void start_reduction(pt_reduction *r, pt_walk *w, uint32_t dims, bool keep) {
    bool indices = r->indices.data != NULL;
    bool empty = pt_numel(&r->in) == 0; // then other sizes may be huge
    uint32_t out_dim = 0;
    w->rank = 0;
    w->operands = indices ? 3 : 2;
    w->offset[0] = w->offset[1] = w->offset[2] = 0;
    r->rank = 0;
    pt_strides(&r->out, w->strides[0]);
    pt_strides(&r->in, w->strides[1]);
    if (indices) {
        pt_strides(&r->indices, w->strides[2]);
    }
    for (uint32_t d = 0; d < r->in.rank; d++) {
        if (dims >> d & 1) {
            if (!empty) {
                add_reduced(r, r->in.sizes[d], w->strides[1][d]);
            }
            out_dim += keep;
            continue;
        }
        w->sizes[w->rank] = r->in.sizes[d];
        w->strides[0][w->rank] = w->strides[0][out_dim];
        w->strides[1][w->rank] = empty ? 0 : w->strides[1][d];
        if (indices) {
            w->strides[2][w->rank] = w->strides[2][out_dim];
        }
        w->rank++;
        out_dim++;
    }
    split_lines(r);
    r->n = empty ? 0 : r->n;
    pt_walk_start(w);
}

bool pt_next_piece(pt_reduction *r, int32_t from, pt_piece *p) {
    int32_t left = r->n - p->first - p->n;
    if (p->n > 0 && left > 0) {
        p->at += p->n * r->step;
        p->first += p->n;
    } else {
        p->line += p->n > 0;
        if (p->line == r->lines || r->n == 0) {
            return false;
        }
        p->at = from + pt_line_start(r, p->line);
        p->first = 0;
        left = r->n;
    }
    p->n = left < PT_PIECE ? left : PT_PIECE;
    return pt_reduces_on(r, p->n);
}

int pt_reduce(pt_context *c, pt_reduction *r, uint32_t dims, bool keep, pt_reduce_one *one) {
    r->c = c;
    r->error = PT_ERROR_OK;
    if (pt_numel(&r->out) == 0) {
        return PT_ERROR_OK;
    }
    pt_walk w;
    start_reduction(r, &w, dims, keep);
    const int32_t index_step = r->indices.data ? w.strides[2][0] : 0;
    do {
        int32_t to = w.offset[0], from = w.offset[1], index_to = w.offset[2];
        for (int32_t i = 0; i < w.n; i++) {
            one(r, from, to, index_to);
            PT_TRY(r->error);
            to += w.strides[0][0];
            from += w.strides[1][0];
            index_to += index_step;
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}
