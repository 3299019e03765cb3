// pad: int8 tensors of up to 4 dims, contiguous or channels_last, padded with a constant. Rows by
// portable/copy.h.
#include "core/generated/operator_arguments.h"
#include "cortex_m/quantized.h"
#include "portable/copy.h"
#include <string.h>

// Sizes in the order of memory, led by ones to 4 dims.
typedef struct padding {
    int32_t in[4], before[4], out[4];
    int32_t value;
} padding;

// The reference also treats a contiguous tensor as channels_last if both layouts are the same.
static bool counts_as_channels_last(const pt_tensor *t) {
    return t->rank == 4 &&
           (t->sizes[1] == 1 || (t->sizes[2] == 1 && t->sizes[3] == 1) || t->dim_order[1] == 2);
}

static const uint8_t *dims_of(const pt_tensor *in) {
    static const uint8_t channels_last[4] = {0, 2, 3, 1}, contiguous[4] = {0, 1, 2, 3};
    return counts_as_channels_last(in) ? channels_last : contiguous;
}

static int read_padding(pt_context *c, const pt_ref *args, const pt_tensor *in, padding *p) {
    const uint8_t *dims = dims_of(in);
    const int32_t missing = 4 - in->rank;
    int64_t pre[4], post[4];
    if (pt_list_ints(c, args[PAD_PRE_PAD], 4, pre) != 4 ||
        pt_list_ints(c, args[PAD_POST_PAD], 4, post) != 4) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "pre_pad and post_pad must have 4 values");
    }
    for (int32_t i = 0; i < 4; i++) {
        const int64_t before = pre[i], after = post[i];
        p->in[i] = i < missing ? 1 : in->sizes[dims[i - missing]];
        if (before < 0 || after < 0 || before > INT32_MAX - p->in[i] ||
            after > INT32_MAX - p->in[i] - before || (i < missing && before + after != 0)) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "pre_pad or post_pad is out of its range");
        }
        p->before[i] = (int32_t)before;
        p->out[i] = (int32_t)(p->in[i] + before + after);
    }
    return pt_read_int(c, args[PAD_PAD_VALUE], INT8_MIN, INT8_MAX, &p->value);
}

static int check_orders(pt_context *c, const pt_tensor *in, const pt_tensor *out,
                        const uint8_t *dims) {
    return pt_lies_in_order(in, dims) && pt_lies_in_order(out, dims)
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                         "the dim orders of in and out must both be contiguous or channels_last, "
                         "unlike in ExecuTorch 1.2; export the program again with 1.3 or later");
}

static int pad_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[PAD_INPUT]), out = pt_get_tensor(c, args[PAD_OUT]);
    int32_t sizes[4];
    padding p;
    if (in.dtype != PT_DTYPE_CHAR || out.dtype != PT_DTYPE_CHAR || in.rank > 4) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "tensors must be int8 of at most 4 dims");
    }
    PT_TRY(read_padding(c, args, &in, &p));
    const uint8_t *dims = dims_of(&in);
    for (int32_t i = 4 - in.rank, d = 0; i < 4; i++, d++) {
        sizes[dims[d]] = p.out[i];
    }
    // First, if the output's sizes are its own: its order explains why others are computed.
    if (out.rank == in.rank && !(out.flags & PT_VALUE_DYNAMIC)) {
        PT_TRY(check_orders(c, &in, &out, dims));
    }
    PT_TRY(pt_expect_sizes(c, args[PAD_OUT], in.rank, sizes));
    return check_orders(c, &in, &out, dims);
}

// Merges the last two dims while the last is not padded.
static void merge_dims(padding *p) {
    for (int32_t merged = 0; merged < 3 && p->in[3] == p->out[3]; merged++) {
        int32_t size = p->in[3];
        p->in[3] = size * p->in[2];
        p->before[3] = size * p->before[2];
        p->out[3] = size * p->out[2];
        for (int32_t i = 2; i > 0; i--) {
            p->in[i] = p->in[i - 1];
            p->before[i] = p->before[i - 1];
            p->out[i] = p->out[i - 1];
        }
        p->in[0] = p->out[0] = 1;
        p->before[0] = 0;
    }
}

static int pad_run(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[PAD_INPUT]), out = pt_get_tensor(c, args[PAD_OUT]);
    padding p;
    PT_TRY(read_padding(c, args, &in, &p));
    const uint8_t *from = in.data;
    uint8_t *to = out.data;
    int32_t n = pt_numel(&in), total = pt_numel(&out);
    if (n != total) {
        memset(to, p.value, (size_t)total);
    }
    if (n == 0) {
        return PT_ERROR_OK;
    }
    merge_dims(&p);
    const int32_t size = p.in[3], rows = p.in[2], plane = rows * size;
    for (int32_t i = 0; i < p.in[0]; i++) {
        for (int32_t j = 0; j < p.in[1]; j++, from += plane) {
            const int32_t row =
                ((p.before[0] + i) * p.out[1] + p.before[1] + j) * p.out[2] + p.before[2];
            PT_TRY(pt_copy_rows_in_pieces(c, to + row * p.out[3] + p.before[3], p.out[3], from,
                                          size, size, rows));
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_cortex_m_pad_out = PT_KERNEL(pad_check, pad_run);
