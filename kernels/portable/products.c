#include "portable/products.h"
#include "arch/float_products_plain.h"
#include "arch/host/float_products.h"
#include "arch/mve/float_products.h"
#include "arch/threads.h"
#include "portable/half.h"

// The functions are not inlined, so that their stack frames are not live together.
#define NOINLINE static __attribute__((noinline))

// ---- covering all outputs with blocks of one kind

// Computes the outputs of some rows in a line: `length` columns, at least a block. The last block
// may overlap the block before.
static void cover_line(const pt_products *p, const pt_block *k, void *walk, const float *a,
                       const float *b, const float *bias, float *out, int32_t length) {
    uint32_t edges = PT_FIRST_COLUMN;
    int32_t left = length - k->columns;
    while (true) {
        edges |= left == 0 ? PT_LAST_COLUMN : 0;
        k->sum(p, walk, a, b, bias, out, edges);
        if (left == 0) {
            return;
        }
        const int32_t step = left < k->columns ? left : k->columns;
        left -= step;
        b += step * p->columns.b_step;
        out += step * p->columns.out_step;
        edges = 0;
    }
}

// Covers columns `begin` to `end` of all lines and rows.
static void cover(const pt_products *p, const pt_block *k, void *walk, int32_t begin, int32_t end) {
    static const float no_bias[PT_MAX_ROWS] = {0};
    for (int32_t line = 0; line < p->lines.length; line++) {
        const float *b = (const float *)p->b + line * p->lines.b_step + begin * p->columns.b_step;
        float *out = (float *)p->out + line * p->lines.out_step + begin * p->columns.out_step;
        for (int32_t i = 0; i < p->rows; i += k->rows) {
            const int32_t row = i + k->rows <= p->rows ? i : p->rows - k->rows;
            const float *bias = p->bias ? (const float *)p->bias + row : no_bias;
            cover_line(p, k, walk, (const float *)p->a + row * p->a_row, b + row * p->b_row, bias,
                       out + row * p->out_row, end - begin);
        }
    }
}

// Returns the columns to compute one by one: if blocks of four rows leave one or two, single
// columns are cheaper than an overlapping block.
static int32_t single_columns(const pt_products *p, const pt_block *k) {
    const int32_t rest = k->rows == 4 && !p->padded ? p->columns.length % k->columns : 0;
    return rest <= 2 ? rest : 0;
}

NOINLINE void sum_blocks(const pt_products *p) {
    if (pt_has_few_taps(p)) {
        pt_sum_few_taps(p);
        return;
    }
    const pt_block k = pt_choose_block(p);
    const int32_t single = single_columns(p, &k), columns = p->columns.length;
    pt_tap_walk w = pt_make_tap_walk(p, k.whole);
    cover(p, &k, &w, 0, columns - single);
    if (single > 0) {
        w = pt_make_tap_walk(p, false);
        cover(p, &pt_column_block, &w, columns - single, columns);
    }
}

#if PT_FLOAT_VECTORS
// Returns false if vectors would not help, or would not be exact.
NOINLINE bool sum_vectors(const pt_products *p) {
    const pt_block k = pt_choose_vectors(p);
    if (!k.sum) {
        return false;
    }
    const uint32_t before = pt_watch_subnormal();
    const int32_t single = single_columns(p, &k), columns = p->columns.length;
    pt_quad_walk w;
    if (k.whole) {
        pt_make_quad_walk(p, &w);
    } else {
        w.taps = pt_make_tap_walk(p, false);
    }
    cover(p, &k, &w, 0, columns - single);
    if (single > 0) {
        w.taps = pt_make_tap_walk(p, false);
        const pt_block one_column = pt_column_of_vectors(p);
        cover(p, &one_column, &w.taps, columns - single, columns);
    }
    return pt_was_exact(before);
}
#elif defined(PT_HAS_HOST_VECTORS)
static bool sum_vectors(const pt_products *p) {
    const pt_block k = pt_choose_vectors(p);
    if (!k.sum) {
        return false;
    }
    pt_tap_walk w = pt_make_tap_walk(p, k.whole);
    cover(p, &k, &w, 0, p->columns.length);
    return true;
}
#else
static bool sum_vectors(const pt_products *p) {
    (void)p;
    return false;
}
#endif

// ---- parts

enum { MAX_PRODUCTS = 1 << 18 }; // most products between two polls, unless a block has more

static void sum_part(const pt_products *p) {
    if (!sum_vectors(p)) {
        sum_blocks(p);
    }
}

// Computes some lines at a time. If the lines are long, computes rows of one line or columns of
// some rows.
NOINLINE int sum_parts(pt_context *c, const pt_products *p, int32_t taps) {
    const int32_t max = MAX_PRODUCTS / taps, all = p->columns.length;
    const bool narrow = p->padded || all < max / 4;
    const int32_t columns = narrow ? all : max < 64 ? 8 : (max / 4) & ~7;
    const int32_t rows = narrow && all < max / 4 ? (max / all) & ~3 : 4;
    const int32_t lines = rows < p->rows ? 1 : rows / p->rows;
    pt_products part = *p;
    for (int32_t i = 0; i < p->rows; i += rows) {
        part.rows = p->rows - i < rows ? p->rows - i : rows;
        for (int32_t j = 0; j < p->lines.length; j += lines) {
            part.lines.length = p->lines.length - j < lines ? p->lines.length - j : lines;
            for (int32_t k = 0; k < all; k += columns) {
                if (pt_skips_round()) {
                    continue;
                }
                part.columns.length = all - k < columns ? all - k : columns;
                part.a = (const float *)p->a + i * p->a_row;
                part.b = (const float *)p->b + i * p->b_row + j * p->lines.b_step +
                         k * p->columns.b_step;
                part.bias = p->bias ? (const float *)p->bias + i : NULL;
                part.out = (float *)p->out + i * p->out_row + j * p->lines.out_step +
                           k * p->columns.out_step;
                PT_TRY(pt_count_work(c, MAX_PRODUCTS));
                sum_part(&part);
            }
        }
    }
    return PT_ERROR_OK;
}

static int sum_shared_parts(pt_context *c, const void *products) {
    const pt_products *p = products;
    return sum_parts(c, p, p->taps[0] * p->taps[1] * p->taps[2]);
}

// ---- any dtype, any steps

typedef union number {
    uint64_t u; // integers, modulo 2^64
    double d;
    float f;
} number;

static void add_product(number *sum, const void *a, int32_t i, const void *b, int32_t j,
                        uint8_t dtype) {
    if (dtype == PT_DTYPE_DOUBLE) {
        sum->d += ((const double *)a)[i] * ((const double *)b)[j];
    } else {
        sum->u += (uint64_t)pt_load_int(a, i, dtype) * (uint64_t)pt_load_int(b, j, dtype);
    }
}

static void store_sum(const pt_products *p, const number *sum, int32_t row, int32_t i,
                      uint8_t dtype) {
    const void *bias = p->bias;
    if (dtype == PT_DTYPE_FLOAT || pt_is_half(dtype)) {
        const float v = sum->f + (bias ? pt_load_float(bias, row, dtype) : 0);
        pt_store_float(p->out, i, p->to_float ? PT_DTYPE_FLOAT : dtype, v);
    } else if (dtype == PT_DTYPE_DOUBLE) {
        ((double *)p->out)[i] = sum->d + (bias ? ((const double *)bias)[row] : 0);
    } else {
        const uint64_t add = bias ? (uint64_t)pt_load_int(bias, row, dtype) : 0;
        pt_store_int(p->out, i, dtype, (int64_t)(sum->u + add));
    }
}

// Adds the products of some inner taps, from a[i] and b[j] on, to `sum`.
#define SUM_TAPS(name, type, to_float)                                              \
    static inline float name(float sum, const pt_products *p, int32_t i, int32_t j, \
                             int32_t taps) {                                        \
        const type *a = (const type *)p->a + i, *b = (const type *)p->b + j;        \
        const int32_t a_step = p->a_step[2], b_step = p->b_step[2];                 \
        for (; taps > 0; taps--, a += a_step, b += b_step) {                        \
            sum += to_float(*a) * to_float(*b);                                     \
        }                                                                           \
        return sum;                                                                 \
    }

SUM_TAPS(sum_float_taps, float, )
SUM_TAPS(sum_half_taps, uint16_t, pt_half_to_float)
SUM_TAPS(sum_bfloat16_taps, uint16_t, pt_bfloat16_to_float)

static inline void add_taps(number *sum, const pt_products *p, int32_t i, int32_t j, int32_t taps,
                            uint8_t dtype) {
    switch (dtype) {
    case PT_DTYPE_FLOAT:
        sum->f = sum_float_taps(sum->f, p, i, j, taps);
        break;
    case PT_DTYPE_HALF:
        sum->f = sum_half_taps(sum->f, p, i, j, taps);
        break;
    case PT_DTYPE_BFLOAT16:
        sum->f = sum_bfloat16_taps(sum->f, p, i, j, taps);
        break;
    default:
        for (; taps > 0; taps--) {
            add_product(sum, p->a, i, p->b, j, dtype);
            i += p->a_step[2];
            j += p->b_step[2];
        }
    }
}

// Computes the output of a row at the position with these offsets in b and out.
NOINLINE int sum_any(pt_context *c, const pt_products *p, uint8_t dtype, int32_t row, int32_t b_at,
                     int32_t out_at) {
    number sum = {.u = 0}; // 0 in every type
    for (int32_t outer = 0; outer < p->taps[0]; outer++) {
        for (int32_t middle = 0; middle < p->taps[1]; middle++) {
            int32_t a = row * p->a_row + outer * p->a_step[0] + middle * p->a_step[1];
            int32_t b = b_at + row * p->b_row + outer * p->b_step[0] + middle * p->b_step[1];
            for (int32_t tap = 0; tap < p->taps[2]; tap += PT_PIECE) {
                const int32_t left = p->taps[2] - tap, taps = left < PT_PIECE ? left : PT_PIECE;
                PT_TRY(pt_count_work(c, taps));
                add_taps(&sum, p, a + tap * p->a_step[2], b + tap * p->b_step[2], taps, dtype);
            }
        }
    }
    store_sum(p, &sum, row, out_at + row * p->out_row, dtype);
    return pt_count_work(c, 1);
}

int pt_sum_products(pt_context *c, const pt_products *p, uint8_t dtype) {
    enum { MAX_TAPS = MAX_PRODUCTS / 2 }; // most taps of blocks, which do not poll
    const int32_t taps = p->taps[0] * p->taps[1] * p->taps[2];
    if (dtype == PT_DTYPE_FLOAT && p->a_step[2] == 1 && taps <= MAX_TAPS) {
        const int64_t all = (int64_t)taps * (p->rows * p->lines.length * p->columns.length);
        if (all > MAX_PRODUCTS) {
            const int64_t steps = p->b_row != 0 ? 4 * all : all; // rows with separate b take longer
            return pt_shares(steps, MAX_PRODUCTS)
                       ? pt_share_loop(c, sum_shared_parts, p, MAX_PRODUCTS)
                       : sum_parts(c, p, taps);
        }
        PT_TRY(pt_count_work(c, 1 + (int32_t)all));
        sum_part(p);
        return PT_ERROR_OK;
    }
    for (int32_t line = 0; line < p->lines.length; line++) {
        for (int32_t j = 0; j < p->columns.length; j++) {
            const int32_t b = line * p->lines.b_step + j * p->columns.b_step;
            const int32_t out = line * p->lines.out_step + j * p->columns.out_step;
            for (int32_t row = 0; row < p->rows; row++) {
                PT_TRY(sum_any(c, p, dtype, row, b, out));
            }
        }
    }
    return PT_ERROR_OK;
}
