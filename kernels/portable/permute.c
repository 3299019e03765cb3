// Dims in another order: aten::permute_copy, transpose_copy and t_copy.
#include "core/generated/operator_arguments.h"
#include <picotorch/kernel.h>

// The functions are not inlined, so that each inner loop has all registers.
#define NOINLINE static __attribute__((noinline))

// ---- check

enum {
    MATRIX = 1,          // variant of a run: transposition of a matrix with 4-byte elements
    MAX_OF_PIECE = 4096, // elements between two polls
};

static bool permute_is_matrix(const pt_tensor *in, const pt_tensor *out, const uint8_t *dims) {
    const int32_t n = in->rank == 2 ? pt_numel(in) : 0;
    return (in->flags & out->flags & PT_VALUE_CONTIGUOUS) != 0 && n > 0 && n <= MAX_OF_PIECE &&
           dims[0] == 1 && pt_element_size(in->dtype) == 4;
}

// `dims[i]`, from 0 to rank - 1, is the dim of the input that becomes dim i of the output.
static int check_permuted(pt_context *c, const pt_ref *in_arg, pt_ref out_arg,
                          const uint8_t *dims) {
    const pt_tensor in = pt_get_tensor(c, *in_arg);
    const pt_tensor out = pt_get_tensor(c, out_arg);
    if (pt_element_size(in.dtype) == 0) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "no permutation of this dtype");
    }
    if (in.dtype != out.dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output needs the input's dtype");
    }
    int32_t sizes[PT_MAX_RANK];
    for (uint32_t i = 0; i < in.rank; i++) {
        sizes[i] = in.sizes[dims[i]];
    }
    PT_TRY(pt_expect_sizes(c, out_arg, in.rank, sizes));
    return pt_note_variant(c, permute_is_matrix(&in, &out, dims) ? MATRIX : 0);
}

// ---- run

// The dims of the output, outermost first, without dims of size 1, and joined if they are
// contiguous in the input: sizes, and elements between neighbours in output and input.
typedef struct permutation {
    uint32_t rank;
    int32_t sizes[PT_MAX_RANK];
    int32_t out_steps[PT_MAX_RANK];
    int32_t in_steps[PT_MAX_RANK];
} permutation;

static void permute_add_dim(permutation *p, int32_t size, int32_t in_step) {
    const uint32_t last = p->rank - 1;
    if (size == 1) {
        return;
    }
    if (p->rank > 0 && p->in_steps[last] == size * in_step) {
        p->sizes[last] *= size;
        p->in_steps[last] = in_step;
        return;
    }
    p->sizes[p->rank] = size;
    p->in_steps[p->rank] = in_step;
    p->rank++;
}

static void make_permutation(permutation *p, const pt_tensor *in, const pt_tensor *out,
                             const uint8_t *dims) {
    int32_t in_steps[PT_MAX_RANK];
    pt_strides(in, in_steps);
    p->rank = 0;
    for (uint32_t i = 0; i < out->rank; i++) {
        const uint32_t dim = out->dim_order[i];
        permute_add_dim(p, out->sizes[dim], in_steps[dims[dim]]);
    }
    int32_t step = 1;
    for (uint32_t i = p->rank; i-- > 0;) {
        p->out_steps[i] = step;
        step *= p->sizes[i];
    }
}

// Copies two dims: `rows` rows of `columns` adjacent elements of the output.
typedef struct plane {
    int32_t rows;
    int32_t columns;
    int32_t out_row;
    int32_t in_row;
    int32_t in_column;
} plane;

typedef struct element_16 {
    uint32_t parts[4];
} __attribute__((may_alias)) element_16;
typedef uint64_t __attribute__((may_alias, aligned(4))) element_8;
typedef uint32_t __attribute__((may_alias)) element_4;
typedef uint16_t __attribute__((may_alias)) element_2;
typedef uint8_t element_1;

#define COPY_ROWS(type)                                                                       \
    static void copy_rows_of_##type(const plane *p, type *out, const type *in, int32_t row) { \
        for (; row < p->rows; row++) {                                                        \
            const type *from = in + row * p->in_row;                                          \
            type *to = out + row * p->out_row;                                                \
            for (int32_t n = p->columns; n > 0; n--) {                                        \
                *to++ = *from;                                                                \
                from += p->in_column;                                                         \
            }                                                                                 \
        }                                                                                     \
    }

COPY_ROWS(element_16)
COPY_ROWS(element_8)
COPY_ROWS(element_4)
COPY_ROWS(element_2)
COPY_ROWS(element_1)

// Copies four rows of n elements, which are adjacent in the input.
NOINLINE void transpose_4_rows(element_4 *to_0, int32_t out_row, const element_4 *from,
                               int32_t in_column, int32_t n) {
    element_4 *to_1 = to_0 + out_row;
    element_4 *to_2 = to_1 + out_row;
    element_4 *to_3 = to_2 + out_row;
    for (; n > 0; n--) {
        const element_4 e_0 = from[0], e_1 = from[1], e_2 = from[2], e_3 = from[3];
        from += in_column;
        *to_0++ = e_0;
        *to_1++ = e_1;
        *to_2++ = e_2;
        *to_3++ = e_3;
    }
}

// Transposes rows; returns their number.
static int32_t transpose_rows(const plane *p, element_4 *out, const element_4 *in) {
    int32_t row = 0;
    for (; row + 4 <= p->rows; row += 4) {
        transpose_4_rows(out + row * p->out_row, p->out_row, in + row, p->in_column, p->columns);
    }
    return row;
}

NOINLINE void copy_plane(const plane *p, uint8_t *out, const uint8_t *in, uint32_t size) {
    if (p->in_column == 1) {
        for (int32_t row = 0; row < p->rows; row++) {
            __builtin_memmove(out, in, (uint32_t)p->columns * size);
            out += p->out_row * (int32_t)size;
            in += p->in_row * (int32_t)size;
        }
        return;
    }
    void *to = out;
    const void *from = in;
    switch (size) {
    case 16:
        copy_rows_of_element_16(p, to, from, 0);
        break;
    case 8:
        copy_rows_of_element_8(p, to, from, 0);
        break;
    case 4:
        copy_rows_of_element_4(p, to, from, p->in_row == 1 ? transpose_rows(p, to, from) : 0);
        break;
    case 2:
        copy_rows_of_element_2(p, to, from, 0);
        break;
    default:
        copy_rows_of_element_1(p, to, from, 0);
    }
}

// Removes the last dim, and the dim with adjacent elements in the input, from the dims.
static plane split_plane(permutation *p) {
    plane q = {.rows = 1, .columns = 1, .in_column = 1};
    if (p->rank == 0) {
        return q;
    }
    const uint32_t last = --p->rank;
    q.columns = p->sizes[last];
    q.in_column = p->in_steps[last];
    for (uint32_t i = 0; i < p->rank; i++) {
        if (p->in_steps[i] == 1) {
            q.rows = p->sizes[i];
            q.out_row = p->out_steps[i];
            q.in_row = 1;
            p->sizes[i] = 1;
            break;
        }
    }
    return q;
}

// Copies some rows at a time, at least a block of transpose_rows.
static int permute_copy_rows(pt_context *c, const plane *q, uint8_t *to, const uint8_t *from,
                             uint32_t size) {
    const int32_t max = q->columns < MAX_OF_PIECE / 4 ? (MAX_OF_PIECE / q->columns) & ~3 : 4;
    plane part = *q;
    for (int32_t left = q->rows;; left -= max) {
        part.rows = left < max ? left : max;
        PT_TRY(pt_count_work(c, part.rows * part.columns));
        copy_plane(&part, to, from, size);
        if (left <= max) {
            return PT_ERROR_OK;
        }
        to += max * q->out_row * (int32_t)size;
        from += max * q->in_row * (int32_t)size;
    }
}

static int permute(pt_context *c, const pt_tensor *in, const pt_tensor *out, const uint8_t *dims) {
    if (pt_numel(out) == 0) {
        return PT_ERROR_OK;
    }
    const uint32_t size = pt_element_size(in->dtype);
    uint8_t *to = out->data;
    const uint8_t *from = in->data;
    permutation p;
    make_permutation(&p, in, out, dims);
    const plane q = split_plane(&p);
    int32_t index[PT_MAX_RANK];
    for (uint32_t i = 0; i < p.rank; i++) {
        index[i] = 0;
    }
    for (;;) {
        PT_TRY(permute_copy_rows(c, &q, to, from, size));
        uint32_t i = p.rank;
        for (; i > 0; i--) {
            const bool wraps = ++index[i - 1] == p.sizes[i - 1];
            const int32_t steps = (wraps ? 1 - p.sizes[i - 1] : 1) * (int32_t)size;
            to += steps * p.out_steps[i - 1];
            from += steps * p.in_steps[i - 1];
            if (!wraps) {
                break;
            }
            index[i - 1] = 0;
        }
        if (i == 0) {
            return PT_ERROR_OK;
        }
    }
}

static int transpose_matrix(pt_context *c, pt_ref in, pt_ref out_arg) {
    const pt_tensor out = pt_get_tensor(c, out_arg);
    const plane p = {.rows = out.sizes[0],
                     .columns = out.sizes[1],
                     .out_row = out.sizes[1],
                     .in_row = 1,
                     .in_column = out.sizes[0]};
    PT_TRY(pt_count_work(c, p.rows * p.columns));
    copy_plane(&p, out.data, pt_get_data(c, in), 4);
    return PT_ERROR_OK;
}

// ---- permute_copy

// Returns a dim, counted from the end if negative; -1 for an invalid dim.
static int32_t wrap_dim(int64_t dim, uint32_t rank) {
    const int64_t limit = rank;
    if (dim < -limit || dim >= limit) {
        return -1;
    }
    return (int32_t)(dim < 0 ? dim + limit : dim);
}

static int check_permute_copy(pt_context *c, const pt_ref *args) {
    const uint32_t rank = pt_get_tensor(c, args[PERMUTE_COPY_SELF]).rank;
    uint8_t dims[PT_MAX_RANK];
    uint32_t seen = 0;
    if (pt_list_length(c, args[PERMUTE_COPY_DIMS]) != rank) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a permutation names each dim once");
    }
    for (uint32_t i = 0; i < rank; i++) {
        const int32_t dim = wrap_dim(pt_list_int(c, args[PERMUTE_COPY_DIMS], i), rank);
        if (dim < 0 || (seen >> dim & 1) != 0) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a permutation names each dim once");
        }
        seen |= 1u << dim;
        dims[i] = (uint8_t)dim;
    }
    return check_permuted(c, &args[PERMUTE_COPY_SELF], args[PERMUTE_COPY_OUT], dims);
}

static int run_permute_copy(pt_context *c, const pt_ref *args) {
    if (pt_variant(c)) {
        return transpose_matrix(c, args[PERMUTE_COPY_SELF], args[PERMUTE_COPY_OUT]);
    }
    const pt_tensor in = pt_get_tensor(c, args[PERMUTE_COPY_SELF]);
    const pt_tensor out = pt_get_tensor(c, args[PERMUTE_COPY_OUT]);
    uint8_t dims[PT_MAX_RANK];
    for (uint32_t i = 0; i < in.rank; i++) {
        dims[i] = (uint8_t)wrap_dim(pt_list_int(c, args[PERMUTE_COPY_DIMS], i), in.rank);
    }
    return permute(c, &in, &out, dims);
}

const pt_kernel pt_aten_permute_copy_out = PT_KERNEL(check_permute_copy, run_permute_copy);

// ---- transpose_copy and t_copy: two dims change places

static void permute_swap_dims(uint8_t *dims, uint32_t rank, int32_t a, int32_t b) {
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = (uint8_t)i;
    }
    dims[a] = (uint8_t)b;
    dims[b] = (uint8_t)a;
}

// Computes the dims of a transposition; a 0-d tensor can be transposed, too.
static int get_transposition(pt_context *c, const pt_ref *args, uint8_t *dims) {
    const uint32_t rank = pt_get_tensor(c, args[TRANSPOSE_COPY_INT_SELF]).rank;
    const int32_t a = wrap_dim(pt_get_int(c, args[TRANSPOSE_COPY_INT_DIM0]), rank ? rank : 1);
    const int32_t b = wrap_dim(pt_get_int(c, args[TRANSPOSE_COPY_INT_DIM1]), rank ? rank : 1);
    if (a < 0 || b < 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "there is no such dim");
    }
    permute_swap_dims(dims, rank, a, b);
    return PT_ERROR_OK;
}

static int check_transpose_copy(pt_context *c, const pt_ref *args) {
    uint8_t dims[PT_MAX_RANK];
    PT_TRY(get_transposition(c, args, dims));
    return check_permuted(c, &args[TRANSPOSE_COPY_INT_SELF], args[TRANSPOSE_COPY_INT_OUT], dims);
}

static int run_transpose_copy(pt_context *c, const pt_ref *args) {
    if (pt_variant(c)) {
        return transpose_matrix(c, args[TRANSPOSE_COPY_INT_SELF], args[TRANSPOSE_COPY_INT_OUT]);
    }
    const pt_tensor in = pt_get_tensor(c, args[TRANSPOSE_COPY_INT_SELF]);
    const pt_tensor out = pt_get_tensor(c, args[TRANSPOSE_COPY_INT_OUT]);
    uint8_t dims[PT_MAX_RANK];
    PT_TRY(get_transposition(c, args, dims));
    return permute(c, &in, &out, dims);
}

const pt_kernel pt_aten_transpose_copy_int_out =
    PT_KERNEL(check_transpose_copy, run_transpose_copy);

// t: the two dims of a matrix change places; a vector or number stays.
static void t_dims(const pt_tensor *in, uint8_t *dims) {
    const int32_t last = in->rank == 2;
    permute_swap_dims(dims, in->rank, 0, last);
}

static int check_t_copy(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[T_COPY_SELF]);
    uint8_t dims[PT_MAX_RANK];
    if (in.rank > 2) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "t takes at most 2 dims");
    }
    t_dims(&in, dims);
    return check_permuted(c, &args[T_COPY_SELF], args[T_COPY_OUT], dims);
}

static int run_t_copy(pt_context *c, const pt_ref *args) {
    if (pt_variant(c)) {
        return transpose_matrix(c, args[T_COPY_SELF], args[T_COPY_OUT]);
    }
    const pt_tensor in = pt_get_tensor(c, args[T_COPY_SELF]);
    const pt_tensor out = pt_get_tensor(c, args[T_COPY_OUT]);
    uint8_t dims[PT_MAX_RANK];
    t_dims(&in, dims);
    return permute(c, &in, &out, dims);
}

const pt_kernel pt_aten_t_copy_out = PT_KERNEL(check_t_copy, run_t_copy);
