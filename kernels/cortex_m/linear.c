// quantized_linear and quantized_batch_matmul: int8 rows by rows of weights (outputs, inputs).
// Loops: pt_multiply_row of arch/fully_connected_s8.h, or pt_dot_1x4 of arch/dot.h where that
// returns false or scratch is short.
#include "arch/dot.h"
#include "arch/fully_connected_s8.h"
#include "arch/pack/pack.h"
#include "arch/threads.h"
#include "core/generated/operator_arguments.h"
#include "cortex_m/quantized.h"

#define COLD __attribute__((cold)) // for size

// If the ISA has a loop for most rows, the plain one is optimized for size.
#if defined(__ARM_FEATURE_MVE) || defined(PT_LOOPS_V7M) || defined(PT_LOOPS_V6M)
#define RARE COLD __attribute__((noinline))
enum { IS_RARE = 1 };
#else
#define RARE
enum { IS_RARE = 0 };
#endif

static int64_t sum_of_row(const pt_linear *p, const int8_t *x) {
    enum { PIECE = 1 << 20 }; // values whose sum is an int32
    int64_t sum = (int64_t)p->depth * p->x_offset;
    for (int32_t left = p->depth; left > 0; left -= PIECE, x += PIECE) {
        sum += pt_sum_bytes(x, left < PIECE ? left : PIECE);
    }
    return sum;
}

static inline int8_t linear_s8_finish(const pt_linear *p, int32_t sum, int64_t row_sum, int32_t j) {
    int64_t total = sum + row_sum + (p->addends ? p->addends[j] : 0);
    total = p->exact_addends ? total : (int32_t)(uint32_t)total;
    if (IS_RARE || total != (int32_t)total) {
        return pt_to_int8(pt_requantize_int64(total, p->multiplier, p->shift), &p->range);
    }
    return pt_to_int8(pt_requantize((int32_t)total, p->multiplier, p->shift), &p->range);
}

// Computes four outputs at a time; the last four may overlap the ones before. Of less than four
// each is computed as four equal ones.
static RARE void linear_s8_multiply_plainly(const pt_linear *p, const int8_t *x, int64_t row_sum,
                                            const int8_t *w, int8_t *y) {
    const int32_t n = p->outputs < 4 ? 1 : 4, stride = p->outputs < 4 ? 0 : p->depth;
    for (int32_t j = 0; j < p->outputs; j += n) {
        const int32_t from = j < p->outputs - n ? j : p->outputs - n;
        pt_sums sums = {0, 0, 0, 0};
        pt_dot_1x4(x, p->x_offset, w + from * p->depth, stride, p->depth, &sums);
        int32_t all[4] = {sums.s0, sums.s1, sums.s2, sums.s3};
        for (int32_t i = 0; i < n; i++) {
            y[from + i] = linear_s8_finish(p, all[i], row_sum, from + i);
        }
    }
}

static void linear_s8_multiply_row(const pt_linear *p, const int8_t *x, const int8_t *w, int8_t *y,
                                   void *scratch, bool suffices) {
    int64_t row_sum = p->w_offset ? sum_of_row(p, x) * p->w_offset : 0;
    if (!suffices || !pt_multiply_row(p, x, row_sum, w, y, scratch)) {
        linear_s8_multiply_plainly(p, x, row_sum, w, y);
    }
}

static __attribute__((noinline)) uint32_t scratch_of(const pt_linear *p) {
    return pt_row_scratch(p->depth, p->outputs);
}

static int linear_s8_multiply_rows(pt_context *c, const pt_linear *p, const int8_t *x,
                                   const int8_t *w, int8_t *y) {
    int32_t rows = p->outputs > 0 ? p->rows : 0;
    // Scratch that is enough for all calls is enough for this one, without computing its own need.
    const bool suffices = !PT_ROWS_NEED_SCRATCH || c->scratch_size >= c->scratch_needed ||
                          c->scratch_size >= scratch_of(p);
    for (int32_t i = 0; i < rows; i++) {
        if (pt_skips_round()) {
            continue;
        }
        PT_TRY(pt_count_work(c, p->depth * p->outputs));
        linear_s8_multiply_row(p, x + i * p->depth, w, y + i * p->out_step, c->scratch, suffices);
    }
    return PT_ERROR_OK;
}

typedef struct shared_rows {
    const pt_linear *p;
    const int8_t *x, *w;
    int8_t *y;
} shared_rows;

static int multiply_shared_rows(pt_context *c, const void *task) {
    const shared_rows *t = task;
    return linear_s8_multiply_rows(c, t->p, t->x, t->w, t->y);
}

// Multiplies rows with the offset of x folded into the addends, for some outputs at a time. Not
// inlined: no other path needs its stack.
static __attribute__((noinline)) int multiply_folded(pt_context *c, const pt_linear *p,
                                                     const int8_t *x, const int8_t *w, int8_t *y) {
    enum { OUTPUTS = 64 };
    int32_t addends[OUTPUTS];
    pt_linear some = *p;
    some.x_offset = 0;
    some.addends = addends;
    some.small_addends = false;
    for (int32_t left = p->outputs; left > 0; left -= OUTPUTS, y += OUTPUTS) {
        some.outputs = left < OUTPUTS ? left : OUTPUTS;
        for (int32_t j = 0; j < some.outputs; j++, w += p->depth) {
            const uint32_t sum =
                (uint32_t)pt_sum_bytes(w, p->depth) + (uint32_t)p->depth * (uint32_t)p->w_offset;
            const int32_t addend = p->addends ? p->addends[p->outputs - left + j] : 0;
            addends[j] = (int32_t)(sum * (uint32_t)p->x_offset + (uint32_t)addend);
        }
        PT_TRY(linear_s8_multiply_rows(c, &some, x, w - some.outputs * p->depth, y));
    }
    return PT_ERROR_OK;
}

static int linear_s8_multiply(pt_context *c, const pt_linear *p, const int8_t *x, const int8_t *w,
                              int8_t *y) {
    if (PT_FOLDS_OFFSET && p->rows > 1 && p->x_offset != 0 && !p->exact_addends) {
        return multiply_folded(c, p, x, w, y);
    }
    const int64_t row = (int64_t)p->depth * p->outputs;
    if (PT_HAS_THREADS && pt_shares(row * p->rows, row)) {
        const shared_rows t = {p, x, w, y};
        return pt_share_loop(c, multiply_shared_rows, &t, row);
    }
    return linear_s8_multiply_rows(c, p, x, w, y);
}

static const uint8_t rows_first[PT_MAX_RANK] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                8, 9, 10, 11, 12, 13, 14, 15};

static COLD int check_matrix(pt_context *c, const pt_tensor *t) {
    if (t->dtype != PT_DTYPE_CHAR) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the factors must be int8");
    }
    if (!(t->flags & PT_VALUE_CONTIGUOUS) && !pt_lies_in_order(t, rows_first)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the dim order of the factors is not contiguous");
    }
    return PT_ERROR_OK;
}

// Checks the output against the input's sizes, with p->outputs as the last.
static COLD int linear_s8_check_product(pt_context *c, pt_ref out_arg, const pt_tensor *in,
                                        const pt_linear *p) {
    pt_tensor out = pt_get_tensor(c, out_arg);
    int32_t sizes[PT_MAX_RANK];
    for (uint32_t d = 0; d < in->rank; d++) {
        sizes[d] = d + 1u < in->rank ? in->sizes[d] : p->outputs;
    }
    PT_TRY(pt_expect_sizes(c, out_arg, in->rank, sizes));
    pt_use_scratch(c, scratch_of(p));
    return check_matrix(c, &out);
}

// ---- linear

// Bits of the variant: properties of arguments that never change, which a run does not read again.
enum { SMALL_ADDENDS = 1, NO_W_OFFSET = 2, WHOLE_RANGE = 4, ONE_ROW = 8 };

static int32_t first_int(const pt_context *c, pt_ref list) {
    int64_t value;
    pt_list_ints(c, list, 1, &value);
    return (int32_t)value;
}

static int32_t int32_of(const pt_context *c, pt_ref arg) {
    return (int32_t)pt_get_int(c, arg);
}

// Returns kernel_sum, which includes the products with the input's offset, or the bias.
static pt_ref addends_of(const pt_ref *args) {
    pt_ref sum = args[QUANTIZED_LINEAR_KERNEL_SUM];
    return pt_is_none(sum) ? args[QUANTIZED_LINEAR_BIAS] : sum;
}

static COLD int linear_s8_check_linear(pt_context *c, const pt_ref *args, const pt_tensor *x,
                                       const pt_tensor *w) {
    int64_t multiplier, shift;
    int32_t offset;
    const int32_t *data;
    pt_range range;
    PT_TRY(check_matrix(c, x));
    PT_TRY(check_matrix(c, w));
    if (x->rank < 1 || w->rank != 2 || w->sizes[1] != x->sizes[x->rank - 1]) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "weights must be (outputs, inputs), the input (..., inputs)");
    }
    if (pt_list_ints(c, args[QUANTIZED_LINEAR_REQUANTIZE_MULTIPLIERS], 1, &multiplier) < 1 ||
        pt_list_ints(c, args[QUANTIZED_LINEAR_REQUANTIZE_SHIFTS], 1, &shift) < 1) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a multiplier and a shift are needed");
    }
    PT_TRY(pt_check_scale(c, multiplier, shift));
    for (uint32_t i = QUANTIZED_LINEAR_INPUT_OFFSET; i <= QUANTIZED_LINEAR_OUTPUT_OFFSET; i++) {
        PT_TRY(pt_read_offset(c, args[i], &offset));
    }
    pt_ref addends = addends_of(args);
    if (!pt_is_none(addends)) {
        PT_TRY(pt_read_channels(c, addends, w->sizes[0], &data));
    }
    return pt_read_activation(c, args[QUANTIZED_LINEAR_ACTIVATION_MIN],
                              args[QUANTIZED_LINEAR_ACTIVATION_MAX], &range);
}

// Reads arguments that check_linear has accepted.
static void read_linear(const pt_context *c, const pt_ref *args, uint32_t variant,
                        const pt_tensor *w, pt_linear *p) {
    const pt_ref addends = addends_of(args);
    p->rows = 1;
    p->depth = w->sizes[1];
    p->outputs = p->out_step = w->sizes[0];
    p->addends = pt_is_none(addends) ? NULL : pt_get_data(c, addends);
    p->exact_addends = !pt_is_none(args[QUANTIZED_LINEAR_KERNEL_SUM]);
    p->small_addends = variant & SMALL_ADDENDS;
    p->x_offset = p->exact_addends ? 0 : int32_of(c, args[QUANTIZED_LINEAR_INPUT_OFFSET]);
    p->w_offset = variant & NO_W_OFFSET ? 0 : int32_of(c, args[QUANTIZED_LINEAR_FILTER_OFFSET]);
    p->multiplier = first_int(c, args[QUANTIZED_LINEAR_REQUANTIZE_MULTIPLIERS]);
    p->shift = first_int(c, args[QUANTIZED_LINEAR_REQUANTIZE_SHIFTS]);
    p->range = (pt_range){int32_of(c, args[QUANTIZED_LINEAR_OUTPUT_OFFSET]), INT8_MIN, INT8_MAX};
    p->packed = NULL;
    if (!(variant & WHOLE_RANGE)) {
        p->range.min = int32_of(c, args[QUANTIZED_LINEAR_ACTIVATION_MIN]);
        p->range.max = int32_of(c, args[QUANTIZED_LINEAR_ACTIVATION_MAX]);
    }
    if (!(variant & ONE_ROW)) {
        pt_tensor x = pt_get_tensor(c, args[QUANTIZED_LINEAR_INPUT]);
        p->rows = (int32_t)pt_product(x.sizes, x.rank - 1u);
    }
}

static bool addends_are_constant(const pt_context *c, const pt_ref *args) {
    pt_ref addends = addends_of(args);
    return pt_is_none(addends) || pt_get_tensor(c, addends).flags & PT_VALUE_CONSTANT;
}

static uint32_t linear_s8_variant_of(const pt_linear *p, bool constant) {
    return (constant && pt_addends_are_small(p) ? SMALL_ADDENDS : 0u) |
           (p->w_offset == 0 ? NO_W_OFFSET : 0u) | (pt_narrows(&p->range) ? 0u : WHOLE_RANGE) |
           (p->rows == 1 ? ONE_ROW : 0u);
}

static COLD int linear_check(pt_context *c, const pt_ref *args) {
    pt_tensor x = pt_get_tensor(c, args[QUANTIZED_LINEAR_INPUT]);
    pt_tensor w = pt_get_tensor(c, args[QUANTIZED_LINEAR_WEIGHTS]);
    pt_linear p;
    PT_TRY(linear_s8_check_linear(c, args, &x, &w));
    read_linear(c, args, 0, &w, &p);
    PT_TRY(linear_s8_check_product(c, args[QUANTIZED_LINEAR_OUT], &x, &p));
    uint32_t bytes = pt_packed_rows(p.depth, p.outputs);
    void *to = bytes && (w.flags & PT_VALUE_CONSTANT) ? pt_request_packed(c, bytes) : NULL;
    if (PT_HAS_PACKING && to) {
        pt_pack_rows(c->core, &p, w.data, to);
    }
    const bool constant = addends_are_constant(c, args);
    if (PT_HAS_ANY_CORE && bytes) {
        pt_note_use(c, QUANTIZED_LINEAR_WEIGHTS, pt_rows_use(c->core, &p, constant));
    }
    return pt_note_variant(c, linear_s8_variant_of(&p, constant));
}

static int linear_run(pt_context *c, const pt_ref *args) {
    pt_tensor w = pt_get_tensor(c, args[QUANTIZED_LINEAR_WEIGHTS]);
    pt_linear p;
    read_linear(c, args, pt_variant(c), &w, &p);
    p.packed = pt_packs_for(c->core) == PT_CORE_DSP ? pt_packed(c) : NULL;
    return linear_s8_multiply(c, &p, pt_get_data(c, args[QUANTIZED_LINEAR_INPUT]), w.data,
                              pt_get_data(c, args[QUANTIZED_LINEAR_OUT]));
}

const pt_kernel pt_cortex_m_quantized_linear_out = PT_KERNEL(linear_check, linear_run);

// ---- batch_matmul

// The zero points are negated, since they are added. The reference sums in float32, which is exact,
// and equal to these sums, below 2^24.
static int read_matmul(pt_context *c, const pt_ref *args, pt_linear *p) {
    pt_tensor x = pt_get_tensor(c, args[QUANTIZED_BATCH_MATMUL_LHS]);
    pt_tensor w = pt_get_tensor(c, args[QUANTIZED_BATCH_MATMUL_RHS_TRANSPOSED]);
    PT_TRY(check_matrix(c, &x));
    PT_TRY(check_matrix(c, &w));
    if (x.rank != 3 || w.rank != 3 || x.sizes[0] != w.sizes[0] || x.sizes[2] != w.sizes[2]) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "the factors must be (batch, rows, depth) and (batch, columns, depth)");
    }
    *p = (pt_linear){
        .rows = x.sizes[1], .depth = x.sizes[2], .outputs = w.sizes[1], .out_step = w.sizes[1]};
    p->range = (pt_range){0, INT8_MIN, INT8_MAX};
    PT_TRY(pt_read_offset(c, args[QUANTIZED_BATCH_MATMUL_LHS_ZERO_POINT], &p->x_offset));
    PT_TRY(pt_read_offset(c, args[QUANTIZED_BATCH_MATMUL_RHS_ZERO_POINT], &p->w_offset));
    PT_TRY(pt_read_offset(c, args[QUANTIZED_BATCH_MATMUL_OUTPUT_ZERO_POINT], &p->range.offset));
    return pt_read_multiplier(c, args + QUANTIZED_BATCH_MATMUL_OUTPUT_MULTIPLIER, &p->multiplier,
                              &p->shift);
}

static int matmul_check(pt_context *c, const pt_ref *args) {
    pt_tensor x = pt_get_tensor(c, args[QUANTIZED_BATCH_MATMUL_LHS]);
    pt_linear p;
    PT_TRY(read_matmul(c, args, &p));
    return linear_s8_check_product(c, args[QUANTIZED_BATCH_MATMUL_OUT], &x, &p);
}

static int matmul_run(pt_context *c, const pt_ref *args) {
    pt_tensor x = pt_get_tensor(c, args[QUANTIZED_BATCH_MATMUL_LHS]);
    pt_tensor w = pt_get_tensor(c, args[QUANTIZED_BATCH_MATMUL_RHS_TRANSPOSED]);
    pt_tensor out = pt_get_tensor(c, args[QUANTIZED_BATCH_MATMUL_OUT]);
    pt_linear p;
    PT_TRY(read_matmul(c, args, &p));
    int32_t batch = pt_numel(&out) > 0 ? x.sizes[0] : 0;
    for (int32_t i = 0; i < batch; i++) {
        PT_TRY(linear_s8_multiply(c, &p, (int8_t *)x.data + i * p.rows * p.depth,
                                  (int8_t *)w.data + i * p.outputs * p.depth,
                                  (int8_t *)out.data + i * p.rows * p.outputs));
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_cortex_m_quantized_batch_matmul_out = PT_KERNEL(matmul_check, matmul_run);
