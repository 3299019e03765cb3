// pad: int8 tensors of up to 4 dims, contiguous or channels_last, padded with a constant. Calls no
// inner loop of arch.
#include "core/generated/operator_arguments.h"
#include "cortex_m/quantized.h"
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

static int read_padding(pt_context *c, const pt_ref *args, padding *p) {
    static const uint8_t channels_last[4] = {0, 2, 3, 1}, contiguous[4] = {0, 1, 2, 3};
    pt_tensor in = pt_get_tensor(c, args[PAD_INPUT]), out = pt_get_tensor(c, args[PAD_OUT]);
    if (in.dtype != PT_DTYPE_CHAR || out.dtype != PT_DTYPE_CHAR || in.rank > 4) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "tensors must be int8 of at most 4 dims");
    }
    if (pt_list_length(c, args[PAD_PRE_PAD]) != 4 || pt_list_length(c, args[PAD_POST_PAD]) != 4) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "pre_pad and post_pad must have 4 values");
    }
    const uint8_t *dims = counts_as_channels_last(&in) ? channels_last : contiguous;
    int32_t sizes[4], missing = 4 - in.rank;
    for (int32_t i = 0; i < 4; i++) {
        int64_t before = pt_list_int(c, args[PAD_PRE_PAD], (uint32_t)i);
        int64_t after = pt_list_int(c, args[PAD_POST_PAD], (uint32_t)i);
        p->in[i] = i < missing ? 1 : in.sizes[dims[i - missing]];
        if (before < 0 || after < 0 || before > INT32_MAX - p->in[i] ||
            after > INT32_MAX - p->in[i] - before || (i < missing && before + after != 0)) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "pre_pad or post_pad is out of its range");
        }
        p->before[i] = (int32_t)before;
        p->out[i] = (int32_t)(p->in[i] + before + after);
        if (i >= missing) {
            sizes[dims[i - missing]] = p->out[i];
        }
    }
    PT_TRY(pt_expect_sizes(c, args[PAD_OUT], in.rank, sizes));
    PT_TRY(pt_read_int(c, args[PAD_PAD_VALUE], INT8_MIN, INT8_MAX, &p->value));
    if ((!pt_lies_in_order(&in, dims) || !pt_lies_in_order(&out, dims))) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                       "the dim orders of in and out must be contiguous or channels_last");
    }
    return PT_ERROR_OK;
}

static int pad_check(pt_context *c, const pt_ref *args) {
    padding p;
    return read_padding(c, args, &p);
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
    PT_TRY(read_padding(c, args, &p));
    const int8_t *from = in.data;
    int8_t *to = out.data;
    int32_t n = pt_numel(&in), total = pt_numel(&out);
    if (n != total) {
        memset(to, p.value, (size_t)total);
    }
    if (n == 0) {
        return PT_ERROR_OK;
    }
    merge_dims(&p);
    for (int32_t i = 0; i < p.in[0]; i++) {
        for (int32_t j = 0; j < p.in[1]; j++) {
            for (int32_t k = 0; k < p.in[2]; k++, from += p.in[3]) {
                int32_t row =
                    ((p.before[0] + i) * p.out[1] + p.before[1] + j) * p.out[2] + p.before[2] + k;
                PT_TRY(pt_count_work(c, p.in[3]));
                memmove(to + row * p.out[3] + p.before[3], from, (size_t)p.in[3]);
            }
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_cortex_m_pad_out = PT_KERNEL(pad_check, pad_run);
