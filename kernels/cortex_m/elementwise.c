// quantized_add, quantized_mul, quantized_div and quantized_activation: int8 pairs of equal sizes
// or with one value for each channel, and activations by a table of 256 bytes. Loops:
// arch/elementwise.h (MVE), arch/scale.h, arch/byte_rows.h.
#include "arch/elementwise.h"
#include "arch/byte_rows.h"
#include "arch/scale.h"
#include "core/generated/operator_arguments.h"
#include "cortex_m/quantized.h"
#include "portable/float_math.h"
#include <string.h>

enum {
    HEADROOM = 20,      // bits by which addition shifts its operands up
    MIN_RIGHT_SHIFT = 8 // of a sum: it removes HEADROOM. Programs of ExecuTorch 1.0 shift by 1.
};

// ---- pairs of equal sizes, or with one value for each channel

// `rows` times `size` elements as they lie in memory; an operand that has a single row takes steps
// of 0 from one to the next. The last row may have fewer: there are `total`.
typedef struct pairs {
    const int8_t *a, *b;
    int8_t *out;
    int32_t rows, size, a_step, b_step, total;
} pairs;

enum { MAX_ROW = 1 << 14 }; // elements of a row of operands of equal sizes, between two polls

// Returns the elements of row i, and counts them.
static int elementwise_s8_begin_row(pt_context *c, const pairs *p, int32_t i, int32_t *n) {
    const int32_t left = p->total - i * p->size;
    *n = left < p->size ? left : p->size;
    return pt_count_work(c, *n);
}

// Describes a and b, of equal sizes and layout or one of (N, C, H, W) in channels_last, the other
// (1, C, 1, 1). *like becomes the operand with the output's shape.
static int read_pairs(pt_context *c, const pt_tensor *a, const pt_tensor *b, pairs *p,
                      pt_tensor *like) {
    static const uint8_t channels_last[4] = {0, 2, 3, 1};
    const int32_t total = pt_numel(a), size = total < MAX_ROW ? total : MAX_ROW;
    *p = (pairs){a->data, b->data, NULL, size ? (total - 1) / MAX_ROW + 1 : 0,
                 size,    size,    size, total};
    *like = *a;
    if (a->dtype != PT_DTYPE_CHAR || b->dtype != PT_DTYPE_CHAR) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "both operands must be int8");
    }
    if (pt_same_sizes(a, b)) {
        return pt_same_layout(a, b) ? PT_ERROR_OK
                                    : pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                                              "the operands must have the same dim order");
    }
    bool b_is_larger = pt_numel(b) > pt_numel(a);
    const pt_tensor *large = b_is_larger ? b : a, *small = b_is_larger ? a : b;
    if (large->rank != 4 || small->rank != 4 || small->sizes[1] != large->sizes[1] ||
        pt_numel(small) != small->sizes[1] || !pt_lies_in_order(large, channels_last)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                       "operands must be of equal sizes, or one (1, C, 1, 1) and the other "
                       "(N, C, H, W) in channels_last");
    }
    p->size = small->sizes[1];
    p->total = pt_numel(large);
    p->rows = p->size ? p->total / p->size : 0;
    p->a_step = b_is_larger ? 0 : p->size;
    p->b_step = b_is_larger ? p->size : 0;
    *like = *large;
    return PT_ERROR_OK;
}

enum { REPEATED = 128 };

// Makes longer rows of short ones: the operand with a value for each channel is repeated in `row`,
// of REPEATED bytes.
static void repeat_short_row(pairs *p, int8_t *row) {
    const int32_t size = p->size, max = size > 0 ? REPEATED / size : 0;
    const int32_t times = max < p->rows ? max : p->rows;
    if (p->rows < 2 || times < 2 || (p->a_step != 0 && p->b_step != 0)) {
        return;
    }
    const int32_t bytes = times * size;
    memcpy(row, p->a_step == 0 ? p->a : p->b, (uint32_t)size);
    for (int32_t done = size; done < bytes; done *= 2) {
        memcpy(row + done, row, (uint32_t)(bytes - done < done ? bytes - done : done));
    }
    p->size = bytes;
    p->rows = (p->total - 1) / p->size + 1;
    if (p->a_step == 0) {
        p->a = row;
        p->b_step = p->size;
    } else {
        p->b = row;
        p->a_step = p->size;
    }
}

static int read_out(pt_context *c, pt_ref arg, const pt_tensor *like, pairs *p) {
    pt_tensor out = pt_get_tensor(c, arg);
    p->out = out.data;
    return pt_check_like(c, arg, like, PT_DTYPE_CHAR);
}

// ---- add

typedef struct addition {
    pairs pairs;
    pt_scaled a, b, sum;
    pt_range range;
    bool is_fast; // each operand and the sum are scaled in one step
} addition;

enum { MULTIPLIER = QUANTIZED_ADD_SELF_MULTIPLIER - QUANTIZED_ADD_SELF_ZERO_POINT };

// A zero point, then a multiplier and its shift.
static int read_scaled(pt_context *c, const pt_ref *args, pt_scaled *s) {
    PT_TRY(pt_read_offset(c, *args, &s->zero_point));
    return pt_read_multiplier(c, args + MULTIPLIER, &s->multiplier, &s->shift);
}

static int read_addition(pt_context *c, const pt_ref *args, addition *x) {
    pt_tensor a = pt_get_tensor(c, args[QUANTIZED_ADD_SELF]);
    pt_tensor b = pt_get_tensor(c, args[QUANTIZED_ADD_OTHER]);
    pt_tensor like;
    PT_TRY(read_pairs(c, &a, &b, &x->pairs, &like));
    PT_TRY(read_scaled(c, args + QUANTIZED_ADD_SELF_ZERO_POINT, &x->a));
    PT_TRY(read_scaled(c, args + QUANTIZED_ADD_OTHER_ZERO_POINT, &x->b));
    PT_TRY(read_scaled(c, args + QUANTIZED_ADD_OUTPUT_ZERO_POINT, &x->sum));
    PT_TRY(pt_read_activation(c, args[QUANTIZED_ADD_ACTIVATION_MIN],
                              args[QUANTIZED_ADD_ACTIVATION_MAX], &x->range));
    x->range.offset = x->sum.zero_point;
    x->is_fast = pt_is_fast_operand(x->a.shift) && pt_is_fast_operand(x->b.shift) &&
                 pt_scales_fast(x->sum.multiplier, x->sum.shift);
    if (x->sum.shift > -MIN_RIGHT_SHIFT && pt_is_none(args[QUANTIZED_ADD_ACTIVATION_MAX])) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                       "scaled as in ExecuTorch 1.0, where sums saturate; export the program again "
                       "with ExecuTorch 1.1 or later");
    }
    return read_out(c, args[QUANTIZED_ADD_OUT], &like, &x->pairs);
}

static inline int32_t scale_up(int32_t value, const pt_scaled *s) {
    int32_t shifted = (int32_t)((uint32_t)(value - s->zero_point) << HEADROOM);
    return pt_requantize(shifted, s->multiplier, s->shift);
}

static void add_row_exactly(const addition *x, const int8_t *a, const int8_t *b, int8_t *out,
                            int32_t done, int32_t n) {
    for (int32_t i = done; i < n; i++) {
        int32_t sum = pt_add_int32(scale_up(a[i], &x->a), scale_up(b[i], &x->b));
        out[i] = pt_to_int8(pt_requantize(sum, x->sum.multiplier, x->sum.shift), &x->range);
    }
}

static void add_row_fast(const addition *x, const int8_t *a, const int8_t *b, int8_t *out,
                         int32_t done, int32_t n) {
    const pt_operand of_a = pt_make_operand(x->a.zero_point, x->a.multiplier, x->a.shift);
    const pt_operand of_b = pt_make_operand(x->b.zero_point, x->b.multiplier, x->b.shift);
    const int32_t multiplier = x->sum.multiplier, right = -x->sum.shift;
    const int32_t rounding = pt_rounding(x->sum.shift, x->range.offset);
    for (int32_t i = done; i < n; i++) {
        const int32_t sum = pt_scale_operand(&of_a, a[i]) + pt_scale_operand(&of_b, b[i]);
        out[i] = (int8_t)pt_clamp(pt_scale(2 * sum, multiplier, right, rounding), x->range.min,
                                  x->range.max);
    }
}

// Adds the elements of a row from `done` on.
static inline void elementwise_s8_add_row(const addition *x, const int8_t *a, const int8_t *b,
                                          int8_t *out, int32_t done, int32_t n) {
    (x->is_fast ? add_row_fast : add_row_exactly)(x, a, b, out, done, n);
}

// Tables of both operands for all values, doubled; used if there are enough elements.
enum { TABLE = 256, TABLES_PAY = 256 };

static uint32_t table_bytes(const addition *x) {
    const pairs *p = &x->pairs;
    return p->total < TABLES_PAY ? 0 : 2 * TABLE * (uint32_t)sizeof(int32_t);
}

static void fill_table(const pt_scaled *s, int32_t *table) {
    pt_operand operand = pt_make_operand(s->zero_point, s->multiplier, s->shift);
    for (int32_t i = 0; i < TABLE; i++) {
        table[i] = 2 * pt_scale_operand(&operand, (int8_t)i);
    }
}

static __attribute__((noinline)) void add_row_by_tables(const addition *x, const int32_t *tables,
                                                        const int8_t *a, const int8_t *b,
                                                        int8_t *out, int32_t n) {
    const int32_t *of_a = tables, *of_b = tables + TABLE;
    int32_t multiplier = x->sum.multiplier, right = -x->sum.shift;
    int32_t rounding = pt_rounding(x->sum.shift, x->range.offset);
    for (const int8_t *end = a + n; a != end;) {
        int32_t doubled = of_a[(uint8_t)*a++] + of_b[(uint8_t)*b++];
        *out++ = (int8_t)pt_saturate_int8(pt_scale(doubled, multiplier, right, rounding));
    }
}

// Clamps outputs that are saturated to int8.
static void elementwise_s8_limit(const pt_range *r, int32_t n, int8_t *values) {
    for (; n > 0 && (r->min > INT8_MIN || r->max < INT8_MAX); n--, values++) {
        *values = (int8_t)pt_clamp(*values, r->min, r->max);
    }
}

static int add_by_tables(pt_context *c, const addition *x, int32_t *tables) {
    const pairs *p = &x->pairs;
    int32_t n;
    fill_table(&x->a, tables);
    fill_table(&x->b, tables + TABLE);
    for (int32_t i = 0; i < p->rows; i++) {
        int8_t *out = p->out + i * p->size;
        PT_TRY(elementwise_s8_begin_row(c, p, i, &n));
        add_row_by_tables(x, tables, p->a + i * p->a_step, p->b + i * p->b_step, out, n);
        elementwise_s8_limit(&x->range, n, out);
    }
    return PT_ERROR_OK;
}

// Sets *done to false, with nothing done, if the ISA has no loop.
static int add_by_vectors(pt_context *c, const addition *x, int32_t *tables, bool *done) {
    const pairs *p = &x->pairs;
    int32_t n;
    *done = PT_HAS_VECTORS;
    for (int32_t i = 0; i < p->rows; i++) {
        const int8_t *a = p->a + i * p->a_step, *b = p->b + i * p->b_step;
        int8_t *out = p->out + i * p->size;
        PT_TRY(elementwise_s8_begin_row(c, p, i, &n));
        int32_t some = pt_add_some(&x->a, &x->b, &x->sum, &x->range, a, b, out, n, tables);
        if (some == 0 && i == 0) {
            *done = false;
            return PT_ERROR_OK;
        }
        elementwise_s8_add_row(x, a, b, out, some, n);
    }
    return PT_ERROR_OK;
}

static int add_check(pt_context *c, const pt_ref *args) {
    addition x;
    PT_TRY(read_addition(c, args, &x));
    pt_use_scratch(c, table_bytes(&x));
    return PT_ERROR_OK;
}

static int add_run(pt_context *c, const pt_ref *args) {
    addition x;
    int8_t row[REPEATED];
    PT_TRY(read_addition(c, args, &x));
    repeat_short_row(&x.pairs, row);
    const pairs *p = &x.pairs;
    bool done = false;
    int32_t n;
    const bool has_room = table_bytes(&x) <= c->scratch_size;
    if (PT_HAS_VECTORS && has_room) {
        PT_TRY(add_by_vectors(c, &x, (void *)c->scratch, &done));
    }
    if (done) {
        return PT_ERROR_OK;
    }
    if (!PT_HAS_VECTORS && has_room && table_bytes(&x) && x.is_fast) {
        return add_by_tables(c, &x, (void *)c->scratch);
    }
    for (int32_t i = 0; i < p->rows; i++) {
        PT_TRY(elementwise_s8_begin_row(c, p, i, &n));
        elementwise_s8_add_row(&x, p->a + i * p->a_step, p->b + i * p->b_step, p->out + i * p->size,
                               0, n);
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_cortex_m_quantized_add_out = PT_KERNEL(add_check, add_run);

// ---- mul

// Differences to a zero point of at most this size are int16, their products below PT_SUM_LIMIT.
enum { SHORT_ZERO_POINT = INT16_MAX - 128 };

typedef struct multiplication {
    pairs pairs;
    int32_t a_zero_point, b_zero_point, multiplier, shift;
    pt_range range;
} multiplication;

static int read_multiplication(pt_context *c, const pt_ref *args, multiplication *x) {
    pt_tensor a = pt_get_tensor(c, args[QUANTIZED_MUL_SELF]);
    pt_tensor b = pt_get_tensor(c, args[QUANTIZED_MUL_OTHER]);
    pt_tensor like;
    x->range = (pt_range){0, INT8_MIN, INT8_MAX};
    PT_TRY(read_pairs(c, &a, &b, &x->pairs, &like));
    PT_TRY(pt_read_int(c, args[QUANTIZED_MUL_SELF_ZERO_POINT], INT32_MIN, INT32_MAX,
                       &x->a_zero_point));
    PT_TRY(pt_read_int(c, args[QUANTIZED_MUL_OTHER_ZERO_POINT], INT32_MIN, INT32_MAX,
                       &x->b_zero_point));
    PT_TRY(pt_read_offset(c, args[QUANTIZED_MUL_OUTPUT_ZERO_POINT], &x->range.offset));
    PT_TRY(
        pt_read_multiplier(c, args + QUANTIZED_MUL_OUTPUT_MULTIPLIER, &x->multiplier, &x->shift));
    return read_out(c, args[QUANTIZED_MUL_OUT], &like, &x->pairs);
}

static int mul_check(pt_context *c, const pt_ref *args) {
    multiplication x;
    return read_multiplication(c, args, &x);
}

static int32_t mul_some(const multiplication *x, const int8_t *a, const int8_t *b, int8_t *out,
                        int32_t n) {
    pt_scaled product = {0, x->multiplier, x->shift};
    return pt_multiply_some(x->a_zero_point, x->b_zero_point, &product, &x->range, a, b, out, n);
}

// Differences and products wrap around, as the reference's int32 tensors do.
static void mul_row(const multiplication *x, const int8_t *a, const int8_t *b, int8_t *out,
                    int32_t done, int32_t n) {
    uint32_t p = (uint32_t)x->a_zero_point, q = (uint32_t)x->b_zero_point;
    for (int32_t i = done; i < n; i++) {
        int32_t product = (int32_t)(((uint32_t)a[i] - p) * ((uint32_t)b[i] - q));
        out[i] = pt_to_int8(pt_requantize(product, x->multiplier, x->shift), &x->range);
    }
}

static void mul_row_fast(const multiplication *x, const int8_t *a, const int8_t *b, int8_t *out,
                         int32_t done, int32_t n) {
    int32_t p = x->a_zero_point, q = x->b_zero_point;
    int32_t multiplier = x->multiplier, right = -x->shift;
    int32_t rounding = pt_rounding(x->shift, x->range.offset);
    for (int32_t i = done; i < n; i++) {
        int32_t product = (a[i] - p) * (b[i] - q);
        out[i] = (int8_t)pt_saturate_int8(pt_scale(2 * product, multiplier, right, rounding));
    }
}

static bool is_short(int32_t zero_point) {
    return zero_point >= -SHORT_ZERO_POINT && zero_point <= SHORT_ZERO_POINT;
}

static int mul_run(pt_context *c, const pt_ref *args) {
    multiplication x;
    int8_t row[REPEATED];
    PT_TRY(read_multiplication(c, args, &x));
    repeat_short_row(&x.pairs, row);
    const pairs *p = &x.pairs;
    bool fast = !PT_HAS_VECTORS && is_short(x.a_zero_point) && is_short(x.b_zero_point) &&
                pt_scales_fast(x.multiplier, x.shift);
    int32_t n;
    for (int32_t i = 0; i < p->rows; i++) {
        const int8_t *a = p->a + i * p->a_step, *b = p->b + i * p->b_step;
        int8_t *out = p->out + i * p->size;
        PT_TRY(elementwise_s8_begin_row(c, p, i, &n));
        (fast ? mul_row_fast : mul_row)(&x, a, b, out, mul_some(&x, a, b, out, n), n);
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_cortex_m_quantized_mul_out = PT_KERNEL(mul_check, mul_run);

// ---- div

static int div_check(pt_context *c, const pt_ref *args) {
    pt_tensor a = pt_get_tensor(c, args[QUANTIZED_DIV_SELF]);
    pt_tensor b = pt_get_tensor(c, args[QUANTIZED_DIV_OTHER]);
    int32_t offset;
    double scale = pt_get_double(c, args[QUANTIZED_DIV_OUTPUT_SCALE]);
    if ((a.dtype != PT_DTYPE_CHAR && a.dtype != PT_DTYPE_SHORT) || b.dtype != a.dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "both operands must be int8, or both int16");
    }
    if (!pt_same_sizes(&a, &b)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the operands must be of equal sizes");
    }
    if (!pt_same_layout(&a, &b)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the operands must have the same dim order");
    }
    if (!(scale > 0 && scale < 1e38)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "output_scale must be above 0 and finite");
    }
    PT_TRY(pt_read_int(c, args[QUANTIZED_DIV_SELF_ZERO_POINT], INT16_MIN, INT16_MAX, &offset));
    PT_TRY(pt_read_int(c, args[QUANTIZED_DIV_OTHER_ZERO_POINT], INT16_MIN, INT16_MAX, &offset));
    PT_TRY(pt_read_int(c, args[QUANTIZED_DIV_OUTPUT_ZERO_POINT], INT16_MIN, INT16_MAX, &offset));
    return pt_check_like(c, args[QUANTIZED_DIV_OUT], &a, a.dtype);
}

static int div_run(pt_context *c, const pt_ref *args) {
    pt_tensor a = pt_get_tensor(c, args[QUANTIZED_DIV_SELF]);
    pt_tensor b = pt_get_tensor(c, args[QUANTIZED_DIV_OTHER]);
    pt_tensor out = pt_get_tensor(c, args[QUANTIZED_DIV_OUT]);
    int32_t a_zero_point = (int32_t)pt_get_int(c, args[QUANTIZED_DIV_SELF_ZERO_POINT]);
    int32_t b_zero_point = (int32_t)pt_get_int(c, args[QUANTIZED_DIV_OTHER_ZERO_POINT]);
    float zero_point = (float)pt_get_int(c, args[QUANTIZED_DIV_OUTPUT_ZERO_POINT]);
    float scale = (float)pt_get_double(c, args[QUANTIZED_DIV_OUTPUT_SCALE]);
    bool is_int16 = a.dtype == PT_DTYPE_SHORT;
    float max = is_int16 ? INT16_MAX : INT8_MAX, min = -max - 1;
    for (int32_t i = 0, n = pt_numel(&a); i < n; i++) {
        PT_TRY(pt_count_work(c, 1));
        int32_t x = is_int16 ? ((int16_t *)a.data)[i] : ((int8_t *)a.data)[i];
        int32_t y = is_int16 ? ((int16_t *)b.data)[i] : ((int8_t *)b.data)[i];
        x -= a_zero_point;
        y -= b_zero_point;
        float quotient = y ? (float)x / (float)y : 0;
        float result = pt_rintf(quotient * scale) + zero_point;
        result = result < min ? min : result > max ? max : result;
        if (is_int16) {
            ((int16_t *)out.data)[i] = (int16_t)result;
        } else {
            ((int8_t *)out.data)[i] = (int8_t)result;
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_cortex_m_quantized_div_out = PT_KERNEL(div_check, div_run);

// ---- activation by a table of 256 results

static int activation_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[QUANTIZED_ACTIVATION_INPUT]);
    pt_tensor table = pt_get_tensor(c, args[QUANTIZED_ACTIVATION_LUT]);
    if (in.dtype != PT_DTYPE_CHAR || table.dtype != PT_DTYPE_CHAR || pt_numel(&table) != 256) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "the input must be int8, and lut 256 values of int8");
    }
    return pt_check_like(c, args[QUANTIZED_ACTIVATION_OUT], &in, PT_DTYPE_CHAR);
}

static int activation_run(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[QUANTIZED_ACTIVATION_INPUT]);
    pt_tensor table = pt_get_tensor(c, args[QUANTIZED_ACTIVATION_LUT]);
    pt_tensor out = pt_get_tensor(c, args[QUANTIZED_ACTIVATION_OUT]);
    const int8_t *x = in.data;
    int8_t *y = out.data;
    for (int32_t left = pt_numel(&in); left > 0; left -= MAX_ROW, x += MAX_ROW, y += MAX_ROW) {
        const int32_t n = left < MAX_ROW ? left : MAX_ROW;
        PT_TRY(pt_count_work(c, n));
        pt_look_up_row(table.data, y, x, n);
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_cortex_m_quantized_activation_out = PT_KERNEL(activation_check, activation_run);
