// Dims in another order: aten::permute_copy, transpose_copy and t_copy.
#include "core/generated/operator_arguments.h"
#include "portable/copy.h"

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

// Returns the dim whose elements are adjacent in the input, or, if the last has such elements, the
// largest before it.
static uint32_t dim_of_rows(const permutation *p, uint32_t last) {
    uint32_t dim = 0;
    for (uint32_t i = 1; i < last; i++) {
        const bool better =
            p->in_steps[last] == 1 ? p->sizes[i] > p->sizes[dim] : p->in_steps[i] == 1;
        dim = better ? i : dim;
    }
    return dim;
}

// Removes the last dim and the dim of rows from the dims.
static pt_plane split_plane(permutation *p) {
    pt_plane q = {.rows = 1, .columns = 1, .in_column = 1};
    if (p->rank == 0) {
        return q;
    }
    const uint32_t last = --p->rank;
    q.columns = p->sizes[last];
    q.in_column = p->in_steps[last];
    if (last > 0) {
        const uint32_t dim = dim_of_rows(p, last);
        q.rows = p->sizes[dim];
        q.out_row = p->out_steps[dim];
        q.in_row = p->in_steps[dim];
        p->rank--;
        for (uint32_t i = dim; i < p->rank; i++) {
            p->sizes[i] = p->sizes[i + 1];
            p->out_steps[i] = p->out_steps[i + 1];
            p->in_steps[i] = p->in_steps[i + 1];
        }
    }
    return q;
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
    const pt_plane q = split_plane(&p);
    int32_t index[PT_MAX_RANK];
    for (uint32_t i = 0; i < p.rank; i++) {
        index[i] = 0;
    }
    for (;;) {
        PT_TRY(pt_copy_plane_in_pieces(c, &q, to, from, size));
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
    const pt_plane p = {.rows = out.sizes[0],
                        .columns = out.sizes[1],
                        .out_row = out.sizes[1],
                        .in_row = 1,
                        .in_column = out.sizes[0]};
    PT_TRY(pt_count_work(c, p.rows * p.columns));
    pt_copy_plane(&p, out.data, pt_get_data(c, in), 4);
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

// Reads the dims of a permutation; returns false if they do not name each dim once. Not inlined: no
// other function needs its stack.
static __attribute__((noinline)) bool read_permutation(const pt_context *c, pt_ref list,
                                                       uint32_t rank, uint8_t *dims) {
    int64_t values[PT_MAX_RANK];
    uint32_t seen = 0;
    if (pt_list_ints(c, list, PT_MAX_RANK, values) != rank) {
        return false;
    }
    for (uint32_t i = 0; i < rank; i++) {
        const int32_t dim = wrap_dim(values[i], rank);
        if (dim < 0 || (seen >> dim & 1) != 0) {
            return false;
        }
        seen |= 1u << dim;
        dims[i] = (uint8_t)dim;
    }
    return true;
}

static int check_permute_copy(pt_context *c, const pt_ref *args) {
    const uint32_t rank = pt_get_tensor(c, args[PERMUTE_COPY_SELF]).rank;
    uint8_t dims[PT_MAX_RANK];
    if (!read_permutation(c, args[PERMUTE_COPY_DIMS], rank, dims)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a permutation names each dim once");
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
    if (!read_permutation(c, args[PERMUTE_COPY_DIMS], in.rank, dims)) {
        return PT_ERROR_INVALID_ARGUMENT;
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
