#include "products.h"
#include "element.h"

// Each inner loop gets the registers for itself.
#define NOINLINE static __attribute__((noinline))

// How a block walks over the taps: all middle ones of all outer ones, one after the other. The
// jumps lead from behind the last of the inner (or middle) taps to the first of the next.
typedef struct walk {
    int32_t count; // middle taps of all outer ones; 0 if there are no taps
    int32_t middle;
    int32_t inner;
    int32_t b_inner;
    int32_t a_jump;
    int32_t b_jump;
    int32_t a_wrap; // besides, at the end of the middle taps
    int32_t b_wrap;
} walk;

static walk make_walk(const pt_products *p, int32_t inner) {
    return (walk){
        .count = p->taps[2] > 0 ? p->taps[0] * p->taps[1] : 0,
        .middle = p->taps[1],
        .inner = inner,
        .b_inner = p->b_step[2],
        .a_jump = p->a_step[1] - inner,
        .b_jump = p->b_step[1] - inner * p->b_step[2],
        .a_wrap = p->a_step[0] - p->taps[1] * p->a_step[1],
        .b_wrap = p->b_step[0] - p->taps[1] * p->b_step[1],
    };
}

// Stores the sums of a block, with the bias of each row.
static inline __attribute__((always_inline)) void
store_block(const pt_products *p, const float sum[][8], const float *bias, float *out,
            const int rows, const int columns, const int32_t out_column) {
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
#pragma GCC unroll 8
        for (int j = 0; j < columns; j++) {
            out[j * out_column] = sum[i][j] + bias[i];
        }
        out += p->out_row;
    }
}

// A float32 block of ROWS x COLUMNS outputs keeps its sums in registers: with 4 x 4 a tap costs
// 8 loads for 16 products, which fits the 32 registers of a single-precision FPU. ROWS, COLUMNS and
// the flags are constants wherever this is inlined: `unit` if columns are neighbours in b and out,
// `three` if there are three inner taps, neighbours in b, that are all done at once.
static inline __attribute__((always_inline)) void
sum_block(const pt_products *p, const walk *w, const float *a_0, const float *b, const float *bias,
          float *out, const int rows, const int columns, const bool unit, const bool three) {
    const int unroll = three ? 3 : 1;
    const int32_t b_column = unit ? 1 : p->columns.b_step;
    const float *a[4] = {a_0, a_0 + p->a_row, a_0 + 2 * p->a_row, a_0 + 3 * p->a_row};
    float sum[4][8] = {{0}};
    const int32_t a_jump = w->a_jump, a_last = w->a_jump + w->a_wrap;
    const int32_t b_jump = w->b_jump, b_last = w->b_jump + w->b_wrap;
    int32_t middle = w->middle;

    for (int32_t n = w->count; n > 0; n--) {
        int32_t inner = three ? 1 : w->inner;
        do {
#pragma GCC unroll 3
            for (int tap = 0; tap < unroll; tap++) {
#pragma GCC unroll 4
                for (int i = 0; i < rows; i++) {
#pragma GCC unroll 8
                    for (int j = 0; j < columns; j++) {
                        sum[i][j] += a[i][tap] * b[j * b_column + tap];
                    }
                }
            }
#pragma GCC unroll 4
            for (int i = 0; i < rows; i++) {
                a[i] += three ? 0 : 1;
            }
            b += three ? 0 : w->b_inner;
        } while (--inner != 0);
        const bool wraps = --middle == 0;
        if (wraps) {
            middle = w->middle;
        }
        b += wraps ? b_last : b_jump;
        const int32_t a_step = wraps ? a_last : a_jump;
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++) {
            a[i] += a_step;
        }
    }
    store_block(p, sum, bias, out, rows, columns, unit ? 1 : p->columns.out_step);
}

// Whether a block begins or ends its line: for padded lines.
enum { FIRST_COLUMN = 1, LAST_COLUMN = 2 };

// The block of 4 x 4 for padded lines. Its 4 columns share 6 elements of b.
NOINLINE void sum_4x4_padded(const pt_products *p, const walk *w, const float *a_0, const float *b,
                             const float *bias, float *out, uint32_t edges) {
    const bool first = (edges & FIRST_COLUMN) != 0;
    const bool last = (edges & LAST_COLUMN) != 0;
    const float *a[4] = {a_0, a_0 + p->a_row, a_0 + 2 * p->a_row, a_0 + 3 * p->a_row};
    float sum[4][8] = {{0}};
    const int32_t a_jump = w->a_jump, a_last = w->a_jump + w->a_wrap;
    const int32_t b_jump = w->b_jump, b_last = w->b_jump + w->b_wrap;
    int32_t middle = w->middle;

    for (int32_t n = w->count; n > 0; n--) {
        const float x[6] = {first ? 0 : b[-1], b[0], b[1], b[2], b[3], last ? 0 : b[4]};
#pragma GCC unroll 3
        for (int tap = 0; tap < 3; tap++) {
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++) {
#pragma GCC unroll 4
                for (int j = 0; j < 4; j++) {
                    sum[i][j] += a[i][tap] * x[j + tap];
                }
            }
        }
        const bool wraps = --middle == 0;
        if (wraps) {
            middle = w->middle;
        }
        b += wraps ? b_last : b_jump;
        const int32_t a_step = wraps ? a_last : a_jump;
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            a[i] += a_step;
        }
    }
    store_block(p, sum, bias, out, 4, 4, 1);
}

typedef void block_function(const pt_products *p, const walk *w, const float *a, const float *b,
                            const float *bias, float *out, uint32_t edges);

#define BLOCK(name, rows, columns, unit, three)                                             \
    NOINLINE void name(const pt_products *p, const walk *w, const float *a, const float *b, \
                       const float *bias, float *out, uint32_t edges) {                     \
        (void)edges;                                                                        \
        sum_block(p, w, a, b, bias, out, rows, columns, unit, three);                       \
    }

BLOCK(sum_4x4_unit, 4, 4, true, false)
BLOCK(sum_4x4, 4, 4, false, false)
BLOCK(sum_4x4_three, 4, 4, false, true)
BLOCK(sum_4x1, 4, 1, true, false)
BLOCK(sum_1x8_unit, 1, 8, true, false)
BLOCK(sum_1x4, 1, 4, false, false)
BLOCK(sum_1x1, 1, 1, true, false)

// ---- covering all outputs with blocks of one kind

typedef struct block {
    block_function *sum;
    uint8_t rows;
    uint8_t columns;
    uint8_t taps; // inner ones that it does at once
} block;

static block choose_block(const pt_products *p) {
    const int32_t columns = p->columns.length;
    const bool unit = p->columns.b_step == 1 && p->columns.out_step == 1;
    if (p->padded) {
        return (block){sum_4x4_padded, 4, 4, 3};
    }
    if (p->rows >= 4 && columns >= 4) {
        if (p->taps[2] == 3 && p->b_step[2] == 1) {
            return (block){sum_4x4_three, 4, 4, 3};
        }
        return (block){unit ? sum_4x4_unit : sum_4x4, 4, 4, 1};
    }
    if (p->rows >= 4) {
        return (block){sum_4x1, 4, 1, 1};
    }
    if (columns >= 8 && unit) {
        return (block){sum_1x8_unit, 1, 8, 1};
    }
    return columns >= 4 ? (block){sum_1x4, 1, 4, 1} : (block){sum_1x1, 1, 1, 1};
}

// Where the block that begins at `i` of `n` begins: the last ones overlap those before.
static inline int32_t block_start(int32_t i, int32_t size, int32_t n) {
    return i + size <= n ? i : n - size;
}

// Covers columns `begin` to `end` of all lines and rows.
static void cover(const pt_products *p, const block *k, int32_t begin, int32_t end) {
    static const float no_bias[4] = {0};
    const walk w = make_walk(p, k->taps == 1 ? p->taps[2] : 0);
    for (int32_t line = 0; line < p->lines.length; line++) {
        const float *b = (const float *)p->b + line * p->lines.b_step;
        float *out = (float *)p->out + line * p->lines.out_step;
        for (int32_t i = 0; i < p->rows; i += k->rows) {
            const int32_t row = block_start(i, k->rows, p->rows);
            const float *a = (const float *)p->a + row * p->a_row;
            const float *bias = p->bias ? (const float *)p->bias + row : no_bias;
            for (int32_t j = begin; j < end; j += k->columns) {
                const int32_t column = block_start(j, k->columns, end);
                const uint32_t edges = (column == 0 ? FIRST_COLUMN : 0) |
                                       (column + k->columns == end ? LAST_COLUMN : 0);
                k->sum(p, &w, a, b + column * p->columns.b_step, bias,
                       out + row * p->out_row + column * p->columns.out_step, edges);
            }
        }
    }
}

static void sum_blocks(const pt_products *p) {
    static const block one_column = {sum_4x1, 4, 1, 1};
    const block k = choose_block(p);
    const int32_t columns = p->columns.length;
    // Cheaper than overlapping: one or two columns by themselves
    const int32_t rest = k.rows == 4 && !p->padded ? columns % k.columns : 0;
    const int32_t single = rest <= 2 ? rest : 0;
    cover(p, &k, 0, columns - single);
    if (single > 0) {
        cover(p, &one_column, columns - single, columns);
    }
}

// ---- one row with few taps: the weights stay in registers

static inline __attribute__((always_inline)) void
sum_single_row(const pt_products *p, const int middle, const int inner) {
    const float add = p->bias ? *(const float *)p->bias : 0;
    const pt_line columns = p->columns;
    float a[3][3];
#pragma GCC unroll 3
    for (int i = 0; i < middle; i++) {
#pragma GCC unroll 3
        for (int j = 0; j < inner; j++) {
            a[i][j] = ((const float *)p->a)[i * p->a_step[1] + j];
        }
    }
    for (int32_t line = 0; line < p->lines.length; line++) {
        const float *b_0 = (const float *)p->b + line * p->lines.b_step;
        const float *b_1 = b_0 + p->b_step[1];
        const float *b_2 = b_1 + p->b_step[1];
        float *out = (float *)p->out + line * p->lines.out_step;
        for (int32_t n = columns.length; n > 0; n--) {
            float sum = 0;
#pragma GCC unroll 3
            for (int j = 0; j < inner; j++) {
                sum += a[0][j] * b_0[j];
            }
#pragma GCC unroll 3
            for (int j = 0; j < inner; j++) {
                sum += a[1][j] * b_1[j];
            }
            if (middle == 3) {
#pragma GCC unroll 3
                for (int j = 0; j < inner; j++) {
                    sum += a[2][j] * b_2[j];
                }
                b_2 += columns.b_step;
            }
            *out = sum + add;
            b_0 += columns.b_step;
            b_1 += columns.b_step;
            out += columns.out_step;
        }
    }
}

static bool has_few_taps(const pt_products *p) {
    return p->rows == 1 && p->taps[0] == 1 && p->b_step[2] == 1 &&
           (p->taps[1] == 2 || p->taps[1] == 3) && (p->taps[2] == 2 || p->taps[2] == 3);
}

NOINLINE void sum_few_taps(const pt_products *p) {
    if (p->taps[1] == 3) {
        if (p->taps[2] == 3) {
            sum_single_row(p, 3, 3);
        } else {
            sum_single_row(p, 3, 2);
        }
    } else if (p->taps[2] == 3) {
        sum_single_row(p, 2, 3);
    } else {
        sum_single_row(p, 2, 2);
    }
}

// ---- any dtype, any steps

typedef union number {
    uint64_t u; // integers, modulo 2^64
    double d;
    float f;
} number;

static void add_product(number *sum, const void *a, int32_t i, const void *b, int32_t j,
                        uint8_t dtype) {
    if (dtype == PT_DTYPE_FLOAT) {
        sum->f += ((const float *)a)[i] * ((const float *)b)[j];
    } else if (dtype == PT_DTYPE_DOUBLE) {
        sum->d += ((const double *)a)[i] * ((const double *)b)[j];
    } else {
        sum->u += (uint64_t)pt_load_int(a, i, dtype) * (uint64_t)pt_load_int(b, j, dtype);
    }
}

static void store_sum(const number *sum, const void *bias, int32_t row, void *out, int32_t i,
                      uint8_t dtype) {
    if (dtype == PT_DTYPE_FLOAT) {
        ((float *)out)[i] = sum->f + (bias ? ((const float *)bias)[row] : 0);
    } else if (dtype == PT_DTYPE_DOUBLE) {
        ((double *)out)[i] = sum->d + (bias ? ((const double *)bias)[row] : 0);
    } else {
        const uint64_t add = bias ? (uint64_t)pt_load_int(bias, row, dtype) : 0;
        pt_store_int(out, i, dtype, (int64_t)(sum->u + add));
    }
}

// The output of a row at a place, given by its offsets in b and out.
NOINLINE void sum_any(const pt_products *p, uint8_t dtype, int32_t row, int32_t b_place,
                      int32_t out_place) {
    number sum = {.u = 0}; // which is 0 for all
    for (int32_t outer = 0; outer < p->taps[0]; outer++) {
        for (int32_t middle = 0; middle < p->taps[1]; middle++) {
            int32_t a = row * p->a_row + outer * p->a_step[0] + middle * p->a_step[1];
            int32_t b = b_place + outer * p->b_step[0] + middle * p->b_step[1];
            for (int32_t inner = 0; inner < p->taps[2]; inner++) {
                add_product(&sum, p->a, a, p->b, b, dtype);
                a += p->a_step[2];
                b += p->b_step[2];
            }
        }
    }
    store_sum(&sum, p->bias, row, p->out, out_place + row * p->out_row, dtype);
}

void pt_sum_products(const pt_products *p, uint8_t dtype) {
    if (dtype == PT_DTYPE_FLOAT && p->a_step[2] == 1) {
        if (has_few_taps(p)) {
            sum_few_taps(p);
        } else {
            sum_blocks(p);
        }
        return;
    }
    for (int32_t line = 0; line < p->lines.length; line++) {
        for (int32_t j = 0; j < p->columns.length; j++) {
            const int32_t b = line * p->lines.b_step + j * p->columns.b_step;
            const int32_t out = line * p->lines.out_step + j * p->columns.out_step;
            for (int32_t row = 0; row < p->rows; row++) {
                sum_any(p, dtype, row, b, out);
            }
        }
    }
}
