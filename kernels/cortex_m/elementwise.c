// Operators on pairs of equal places of int8 tensors, and on single values by a table.
#include "../arch/elementwise.h"
#include "../arch/scale.h"
#include "../portable/float_math.h"
#include "quantized.h"

enum { HEADROOM = 20 }; // bits that addition shifts its operands up by

// ---- pairs of equal sizes, or with one value for each channel

// `rows` times `size` elements as they lie in memory; an operand that has a single row takes steps
// of 0 from one to the next.
typedef struct pairs {
    const int8_t *a, *b;
    int8_t *out;
    int32_t rows, size, a_step, b_step;
} pairs;

// Describes a and b, of equal sizes and layout or one of (N, C, H, W) in channels_last, the other
// (1, C, 1, 1). `like` becomes the one that the output is like.
static int read_pairs(pt_context *c, const pt_tensor *a, const pt_tensor *b, pairs *p,
                      pt_tensor *like) {
    static const uint8_t channels_last[4] = {0, 2, 3, 1};
    *p = (pairs){a->data, b->data, NULL, 1, pt_numel(a), 0, 0};
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
    p->rows = p->size ? pt_numel(large) / p->size : 0;
    p->a_step = b_is_larger ? 0 : p->size;
    p->b_step = b_is_larger ? p->size : 0;
    *like = *large;
    return PT_ERROR_OK;
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
} addition;

static int read_scaled(pt_context *c, const pt_ref *args, pt_scaled *s) {
    int error = pt_read_offset(c, args[0], &s->zero_point);
    return error ? error : pt_read_multiplier(c, args + 1, &s->multiplier, &s->shift);
}

static int read_addition(pt_context *c, const pt_ref *args, addition *x) {
    pt_tensor a = pt_get_tensor(c, args[0]), b = pt_get_tensor(c, args[4]), like;
    int error = read_pairs(c, &a, &b, &x->pairs, &like);
    error = error ? error : read_scaled(c, args + 1, &x->a);
    error = error ? error : read_scaled(c, args + 5, &x->b);
    error = error ? error : read_scaled(c, args + 8, &x->sum);
    error = error ? error : pt_read_activation(c, args[11], args[12], &x->range);
    x->range.offset = x->sum.zero_point;
    return error ? error : read_out(c, args[13], &like, &x->pairs);
}

static inline int32_t scale_up(int32_t value, const pt_scaled *s) {
    int32_t shifted = (int32_t)((uint32_t)(value - s->zero_point) << HEADROOM);
    return pt_requantize(shifted, s->multiplier, s->shift);
}

static void add_row(const addition *x, const int8_t *a, const int8_t *b, int8_t *out,
                    int32_t done) {
    for (int32_t i = done; i < x->pairs.size; i++) {
        int32_t sum = pt_add_int32(scale_up(a[i], &x->a), scale_up(b[i], &x->b));
        out[i] = pt_to_int8(pt_requantize(sum, x->sum.multiplier, x->sum.shift), &x->range);
    }
}

// Both operands of all values, doubled, are looked up where there are enough elements.
enum { TABLE = 256, TABLES_PAY = 256 };

static uint32_t table_bytes(const addition *x) {
    const pairs *p = &x->pairs;
    return p->rows * p->size < TABLES_PAY ? 0 : 2 * TABLE * (uint32_t)sizeof(int32_t);
}

static void fill_table(const pt_scaled *s, int32_t *table) {
    pt_operand operand = pt_make_operand(s->zero_point, s->multiplier, s->shift);
    for (int32_t i = 0; i < TABLE; i++) {
        table[i] = 2 * pt_scale_operand(&operand, (int8_t)i);
    }
}

static void add_row_by_tables(const addition *x, const int32_t *tables, const int8_t *a,
                              const int8_t *b, int8_t *out) {
    const int32_t *of_a = tables, *of_b = tables + TABLE;
    int32_t multiplier = x->sum.multiplier, right = -x->sum.shift;
    int32_t rounding = pt_rounding(x->sum.shift, x->range.offset);
    for (const int8_t *end = a + x->pairs.size; a != end;) {
        int32_t doubled = of_a[(uint8_t)*a++] + of_b[(uint8_t)*b++];
        *out++ = (int8_t)pt_saturate_int8(pt_scale(doubled, multiplier, right, rounding));
    }
}

// Limits what saturates to int8 already.
static void limit(const pt_range *r, int32_t n, int8_t *values) {
    for (; n > 0 && (r->min > INT8_MIN || r->max < INT8_MAX); n--, values++) {
        *values = (int8_t)pt_clamp(*values, r->min, r->max);
    }
}

static void add_by_tables(const addition *x, int32_t *tables) {
    const pairs *p = &x->pairs;
    fill_table(&x->a, tables);
    fill_table(&x->b, tables + TABLE);
    for (int32_t i = 0; i < p->rows; i++) {
        add_row_by_tables(x, tables, p->a + i * p->a_step, p->b + i * p->b_step,
                          p->out + i * p->size);
    }
    limit(&x->range, p->rows * p->size, p->out);
}

// False, with nothing done, where the instruction set has no way of its own.
static bool add_by_vectors(const addition *x, int32_t *tables) {
    const pairs *p = &x->pairs;
    for (int32_t i = 0; i < p->rows; i++) {
        const int8_t *a = p->a + i * p->a_step, *b = p->b + i * p->b_step;
        int8_t *out = p->out + i * p->size;
        int32_t done = pt_add_some(&x->a, &x->b, &x->sum, &x->range, a, b, out, p->size, tables);
        if (done == 0) {
            return false;
        }
        add_row(x, a, b, out, done);
    }
    return true;
}

static int add_check(pt_context *c, const pt_ref *args) {
    addition x;
    int error = read_addition(c, args, &x);
    if (!error) {
        pt_ask_scratch(c, table_bytes(&x));
    }
    return error;
}

static int add_run(pt_context *c, const pt_ref *args) {
    addition x;
    int error = read_addition(c, args, &x);
    const pairs *p = &x.pairs;
    if (add_by_vectors(&x, (void *)c->scratch)) {
        return error;
    }
    if (!PT_HAS_VECTORS && table_bytes(&x) && pt_is_fast_operand(x.a.multiplier, x.a.shift) &&
        pt_is_fast_operand(x.b.multiplier, x.b.shift) &&
        pt_scales_fast(x.sum.multiplier, x.sum.shift)) {
        add_by_tables(&x, (void *)c->scratch);
        return error;
    }
    for (int32_t i = 0; i < p->rows; i++) {
        add_row(&x, p->a + i * p->a_step, p->b + i * p->b_step, p->out + i * p->size, 0);
    }
    return error;
}

const pt_kernel pt_cortex_m_quantized_add_out = {add_check, add_run};

// ---- mul

typedef struct multiplication {
    pairs pairs;
    int32_t a_zero_point, b_zero_point, multiplier, shift;
    pt_range range;
} multiplication;

static int read_multiplication(pt_context *c, const pt_ref *args, multiplication *x) {
    pt_tensor a = pt_get_tensor(c, args[0]), b = pt_get_tensor(c, args[2]), like;
    x->range = (pt_range){0, INT8_MIN, INT8_MAX};
    int error = read_pairs(c, &a, &b, &x->pairs, &like);
    error = error ? error : pt_read_offset(c, args[1], &x->a_zero_point);
    error = error ? error : pt_read_offset(c, args[3], &x->b_zero_point);
    error = error ? error : pt_read_offset(c, args[4], &x->range.offset);
    error = error ? error : pt_read_multiplier(c, args + 5, &x->multiplier, &x->shift);
    return error ? error : read_out(c, args[7], &like, &x->pairs);
}

static int mul_check(pt_context *c, const pt_ref *args) {
    multiplication x;
    return read_multiplication(c, args, &x);
}

static int32_t mul_some(const multiplication *x, const int8_t *a, const int8_t *b, int8_t *out) {
    pt_scaled product = {0, x->multiplier, x->shift};
    return pt_multiply_some(x->a_zero_point, x->b_zero_point, &product, &x->range, a, b, out,
                            x->pairs.size);
}

static void mul_row(const multiplication *x, const int8_t *a, const int8_t *b, int8_t *out,
                    int32_t done) {
    for (int32_t i = done; i < x->pairs.size; i++) {
        int32_t product = (a[i] - x->a_zero_point) * (b[i] - x->b_zero_point);
        out[i] = pt_to_int8(pt_requantize(product, x->multiplier, x->shift), &x->range);
    }
}

static void mul_row_fast(const multiplication *x, const int8_t *a, const int8_t *b, int8_t *out,
                         int32_t done) {
    int32_t p = x->a_zero_point, q = x->b_zero_point;
    int32_t multiplier = x->multiplier, right = -x->shift;
    int32_t rounding = pt_rounding(x->shift, x->range.offset);
    for (int32_t i = done; i < x->pairs.size; i++) {
        int32_t product = (a[i] - p) * (b[i] - q);
        out[i] = (int8_t)pt_saturate_int8(pt_scale(2 * product, multiplier, right, rounding));
    }
}

static int mul_run(pt_context *c, const pt_ref *args) {
    multiplication x;
    int error = read_multiplication(c, args, &x);
    const pairs *p = &x.pairs;
    bool fast = !PT_HAS_VECTORS && pt_scales_fast(x.multiplier, x.shift);
    for (int32_t i = 0; i < p->rows; i++) {
        const int8_t *a = p->a + i * p->a_step, *b = p->b + i * p->b_step;
        int8_t *out = p->out + i * p->size;
        (fast ? mul_row_fast : mul_row)(&x, a, b, out, mul_some(&x, a, b, out));
    }
    return error;
}

const pt_kernel pt_cortex_m_quantized_mul_out = {mul_check, mul_run};

// ---- div

static int div_check(pt_context *c, const pt_ref *args) {
    pt_tensor a = pt_get_tensor(c, args[0]), b = pt_get_tensor(c, args[2]);
    int32_t offset;
    double scale = pt_get_double(c, args[5]);
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
    int error = pt_read_int(c, args[1], INT16_MIN, INT16_MAX, &offset);
    error = error ? error : pt_read_int(c, args[3], INT16_MIN, INT16_MAX, &offset);
    error = error ? error : pt_read_int(c, args[4], INT16_MIN, INT16_MAX, &offset);
    return error ? error : pt_check_like(c, args[6], &a, a.dtype);
}

static int div_run(pt_context *c, const pt_ref *args) {
    pt_tensor a = pt_get_tensor(c, args[0]), b = pt_get_tensor(c, args[2]);
    pt_tensor out = pt_get_tensor(c, args[6]);
    int32_t a_zero_point = (int32_t)pt_get_int(c, args[1]);
    int32_t b_zero_point = (int32_t)pt_get_int(c, args[3]);
    float zero_point = (float)pt_get_int(c, args[4]);
    float scale = (float)pt_get_double(c, args[5]);
    bool wide = a.dtype == PT_DTYPE_SHORT;
    float max = wide ? INT16_MAX : INT8_MAX, min = -max - 1;
    for (int32_t i = 0, n = pt_numel(&a); i < n; i++) {
        int32_t x = wide ? ((int16_t *)a.data)[i] : ((int8_t *)a.data)[i];
        int32_t y = wide ? ((int16_t *)b.data)[i] : ((int8_t *)b.data)[i];
        x -= a_zero_point;
        y -= b_zero_point;
        float quotient = y ? (float)x / (float)y : 0;
        float result = pt_rintf(quotient * scale) + zero_point;
        result = result < min ? min : result > max ? max : result;
        if (wide) {
            ((int16_t *)out.data)[i] = (int16_t)result;
        } else {
            ((int8_t *)out.data)[i] = (int8_t)result;
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_cortex_m_quantized_div_out = {div_check, div_run};

// ---- activation by a table of 256 results

static int activation_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]), table = pt_get_tensor(c, args[1]);
    if (in.dtype != PT_DTYPE_CHAR || table.dtype != PT_DTYPE_CHAR || pt_numel(&table) != 256) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "the input must be int8, and lut 256 values of int8");
    }
    return pt_check_like(c, args[2], &in, PT_DTYPE_CHAR);
}

static int activation_run(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]), table = pt_get_tensor(c, args[1]);
    pt_tensor out = pt_get_tensor(c, args[2]);
    const int8_t *x = in.data, *zero = (const int8_t *)table.data + 128;
    int8_t *y = out.data;
    for (const int8_t *end = x + pt_numel(&in); x != end;) {
        *y++ = zero[*x++];
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_cortex_m_quantized_activation_out = {activation_check, activation_run};
