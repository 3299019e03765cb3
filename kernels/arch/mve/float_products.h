// float32 GEMM and convolution with MVE (float_products.h). A lane is an output. Tiles (rows x
// columns): 4x4 and 4x1, 1x16 and 1x4; pt_choose_vectors selects one by rows, columns and steps.
// Sums are in the order of float_products_plain.h, by multiplication and addition, which round as
// scalars do. No packing, no scratch.
#ifndef PT_ARCH_MVE_FLOAT_PRODUCTS_H
#define PT_ARCH_MVE_FLOAT_PRODUCTS_H

#include "arch/float_products.h"
#include "arch/float_vectors.h"
#include "arch/offsets.h"

#if PT_FLOAT_VECTORS

// ---- blocks of four rows, with one vector of four columns each

// The arguments of the loops over runs of contiguous taps in a, three taps at a time and the rest
// singly, in the order of their registers.
typedef struct pt_runs {
    const float *a;  // r0, the first row's weights
    int32_t tap;     // r7, bytes in b from tap to tap
    const float *b;  // r8
    int32_t triple;  // r9, bytes in b from the third of three taps to the next
    int32_t triples; // r10, of a run
    int32_t runs;    // r11, not 0
    int32_t a_row;   // bytes
    int32_t singles; // of a run, after the others
    int32_t a_jump;  // bytes, from behind the last tap of a run to the first of the next
    int32_t b_jump;
} pt_runs;

PT_OFFSET(pt_runs, a, 0);
PT_OFFSET(pt_runs, tap, 4);
PT_OFFSET(pt_runs, b, 8);
PT_OFFSET(pt_runs, triple, 12);
PT_OFFSET(pt_runs, triples, 16);
PT_OFFSET(pt_runs, runs, 20);
PT_OFFSET(pt_runs, a_row, 24);
PT_OFFSET(pt_runs, singles, 28);
PT_OFFSET(pt_runs, a_jump, 32);
PT_OFFSET(pt_runs, b_jump, 36);

typedef struct pt_sums_of_rows {
    float32x4_t s0, s1, s2, s3;
} pt_sums_of_rows;

// Adds a row's weights times x0, x1 and x2.
#define PT_ADD_PRODUCT(s, x, weight)            \
    "vmul.f32 %q[t], %q[" #x "], " #weight "\n" \
    "vadd.f32 %q[" #s "], %q[" #s "], %q[t]\n"

// clang-format off

#define PT_ROW_OF_THREE(a, s)    \
    "ldm     " #a "!, {r4-r6}\n" \
    PT_ADD_PRODUCT(s, x0, r4)    \
    PT_ADD_PRODUCT(s, x1, r5)    \
    PT_ADD_PRODUCT(s, x2, r6)

#define PT_ROWS_OF_THREE    \
    PT_ROW_OF_THREE(r0, s0) \
    PT_ROW_OF_THREE(r1, s1) \
    PT_ROW_OF_THREE(r2, s2) \
    PT_ROW_OF_THREE(r3, s3)

// Loads three vectors of b, whose columns are adjacent.
#define PT_LOAD_THREE          \
    "vldrw.u32 %q[x0], [r8]\n" \
    "add     r8, r7\n"         \
    "vldrw.u32 %q[x1], [r8]\n" \
    "add     r8, r7\n"         \
    "vldrw.u32 %q[x2], [r8]\n" \
    "add     r8, r9\n"

// The same if the taps are adjacent, too.
#define PT_LOAD_ADJACENT         \
    "vldrw.u32 %q[x0], [r8], #4\n" \
    "vldrw.u32 %q[x1], [r8], #4\n" \
    "vldrw.u32 %q[x2], [r8]\n"     \
    "add     r8, r9\n"

// Loads x0, x1 and x2 at the edge of a row. r7 has the predicate of x0 in its lower half and of x2
// in its upper half: inactive lanes are not read, and are 0.
#define PT_LOAD_EDGE                 \
    "vmsr    p0, r7\n"               \
    "vpst\n"                         \
    "vldrwt.u32 %q[x0], [r8]\n"      \
    "vldrw.u32 %q[x1], [r8, #4]!\n"  \
    "ror     r7, r7, #16\n"          \
    "vmsr    p0, r7\n"               \
    "vpst\n"                         \
    "vldrwt.u32 %q[x2], [r8, #4]!\n" \
    "ror     r7, r7, #16\n"          \
    "add     r8, r9\n"

// Three taps of columns with any step, `at` elements from the first; no register is left for x2.
#define PT_ROW_OF_TWO(a, s)          \
    "ldrd    r4, r5, [" #a "], #8\n" \
    PT_ADD_PRODUCT(s, x0, r4)        \
    PT_ADD_PRODUCT(s, x1, r5)

#define PT_ROW_OF_ONE(a, s)      \
    "ldr     r4, [" #a "], #4\n" \
    PT_ADD_PRODUCT(s, x0, r4)

#define PT_ROWS_OF_ONE    \
    PT_ROW_OF_ONE(r0, s0) \
    PT_ROW_OF_ONE(r1, s1) \
    PT_ROW_OF_ONE(r2, s2) \
    PT_ROW_OF_ONE(r3, s3)

#define PT_GATHERED_THREE                       \
    "vldrw.u32 %q[x0], [r8, %q[at], uxtw #2]\n" \
    "add     r8, r7\n"                          \
    "vldrw.u32 %q[x1], [r8, %q[at], uxtw #2]\n" \
    "add     r8, r7\n"                          \
    PT_ROW_OF_TWO(r0, s0)                       \
    PT_ROW_OF_TWO(r1, s1)                       \
    PT_ROW_OF_TWO(r2, s2)                       \
    PT_ROW_OF_TWO(r3, s3)                       \
    "vldrw.u32 %q[x0], [r8, %q[at], uxtw #2]\n" \
    "add     r8, r9\n"                          \
    PT_ROWS_OF_ONE

// The single taps, each loaded by `load`.
#define PT_SINGLES(load)                     \
    "ldr     r4, [r12, #28]\n" /* singles */ \
    "wls     lr, r4, 5f\n"                   \
    "4:\n"                                   \
    load                                     \
    "add     r8, r7\n"                       \
    PT_ROWS_OF_ONE                           \
    "le      lr, 4b\n"                       \
    "5:\n"

#define PT_DO_RUNS(three, singles, ...)                                             \
    register pt_runs *r12 __asm__("r12") = r;                                       \
    float32x4_t t, x0, x1;                                                          \
    __asm__ volatile(                                                               \
        "ldm     r12, {r0, r7-r11}\n"  /* a, tap, b, triple, triples, runs */       \
        "ldr     r4, [r12, #24]\n"     /* a_row */                                  \
        "add     r1, r0, r4\n"                                                      \
        "add     r2, r1, r4\n"                                                      \
        "add     r3, r2, r4\n"                                                      \
        "1:\n"                                                                      \
        "wls     lr, r10, 3f\n"                                                     \
        "2:\n"                                                                      \
        three                                                                       \
        "le      lr, 2b\n"                                                          \
        "3:\n"                                                                      \
        singles                                                                     \
        "ldrd    r4, r5, [r12, #32]\n" /* a_jump, b_jump */                         \
        "add     r8, r5\n"                                                          \
        "cbz     r4, 6f\n"                                                          \
        "add     r0, r4\n"                                                          \
        "add     r1, r4\n"                                                          \
        "add     r2, r4\n"                                                          \
        "add     r3, r4\n"                                                          \
        "6:\n"                                                                      \
        "subs    r11, #1\n"                                                         \
        "bne     1b\n"                                                              \
        : [s0] "+w"(s->s0), [s1] "+w"(s->s1), [s2] "+w"(s->s2), [s3] "+w"(s->s3),   \
          [t] "=&w"(t), [x0] "=&w"(x0), [x1] "=&w"(x1)__VA_ARGS__                   \
        : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", \
          "lr", "cc", "memory")

// clang-format on

#define PT_INLINE static inline __attribute__((always_inline))

PT_INLINE void pt_do_runs(pt_runs *r, pt_sums_of_rows *s) {
    float32x4_t x2;
    PT_DO_RUNS(PT_LOAD_THREE PT_ROWS_OF_THREE, PT_SINGLES("vldrw.u32 %q[x0], [r8]\n"),
               , [x2] "=&w"(x2)
               : "r"(r12));
}

PT_INLINE void pt_do_adjacent_runs(pt_runs *r, pt_sums_of_rows *s) {
    float32x4_t x2;
    PT_DO_RUNS(PT_LOAD_ADJACENT PT_ROWS_OF_THREE, "", , [x2] "=&w"(x2) : "r"(r12));
}

PT_INLINE void pt_do_runs_at_edge(pt_runs *r, pt_sums_of_rows *s) {
    float32x4_t x2;
    PT_DO_RUNS(PT_LOAD_EDGE PT_ROWS_OF_THREE, "", , [x2] "=&w"(x2) : "r"(r12));
}

PT_INLINE void pt_do_gathered_runs(pt_runs *r, pt_sums_of_rows *s, uint32x4_t at) {
    PT_DO_RUNS(PT_GATHERED_THREE, PT_SINGLES("vldrw.u32 %q[x0], [r8, %q[at], uxtw #2]\n"),
               : "r"(r12), [at] "w"(at));
}

// The walk of blocks of four rows over the taps.
typedef struct pt_quad_walk {
    pt_tap_walk taps; // of the other blocks
    pt_runs runs;     // each block sets a and b
    int32_t groups;   // of runs
} pt_quad_walk;

PT_INLINE pt_sums_of_rows pt_no_sums(void) {
    const float32x4_t zero = vdupq_n_f32(0);
    return (pt_sums_of_rows){zero, zero, zero, zero};
}

PT_INLINE void pt_store_rows(const pt_products *p, const pt_sums_of_rows *s, const float *bias,
                             float *out) {
    const int32_t row = p->out_row;
    vstrwq_f32(out, vaddq_n_f32(s->s0, bias[0]));
    vstrwq_f32(out + row, vaddq_n_f32(s->s1, bias[1]));
    vstrwq_f32(out + 2 * row, vaddq_n_f32(s->s2, bias[2]));
    vstrwq_f32(out + 3 * row, vaddq_n_f32(s->s3, bias[3]));
}

PT_INLINE uint32x4_t pt_lane_offsets(int32_t step) {
    return vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)step);
}

PT_INLINE void pt_scatter_rows(const pt_products *p, const pt_sums_of_rows *s, const float *bias,
                               float *out) {
    const uint32x4_t to = pt_lane_offsets(p->columns.out_step);
    const int32_t row = p->out_row;
    vstrwq_scatter_shifted_offset_f32(out, to, vaddq_n_f32(s->s0, bias[0]));
    vstrwq_scatter_shifted_offset_f32(out + row, to, vaddq_n_f32(s->s1, bias[1]));
    vstrwq_scatter_shifted_offset_f32(out + 2 * row, to, vaddq_n_f32(s->s2, bias[2]));
    vstrwq_scatter_shifted_offset_f32(out + 3 * row, to, vaddq_n_f32(s->s3, bias[3]));
}

#define PT_BLOCK(name)                                                                           \
    static __attribute__((noinline)) void name(const pt_products *p, void *walk, const float *a, \
                                               const float *b, const float *bias, float *out,    \
                                               uint32_t edges)

// `unit` if columns are neighbours in b and out.
PT_INLINE void pt_sum_quad(const pt_products *p, pt_quad_walk *w, const float *a, const float *b,
                           const float *bias, float *out, const bool unit) {
    const uint32x4_t at = pt_lane_offsets(p->columns.b_step);
    pt_sums_of_rows s = pt_no_sums();
    for (int32_t n = w->groups; n > 0; n--) {
        w->runs.a = a;
        w->runs.b = b;
        if (unit) {
            pt_do_runs(&w->runs, &s);
        } else {
            pt_do_gathered_runs(&w->runs, &s, at);
        }
        a += p->a_step[0];
        b += p->b_step[0];
    }
    if (unit) {
        pt_store_rows(p, &s, bias, out);
    } else {
        pt_scatter_rows(p, &s, bias, out);
    }
}

PT_BLOCK(pt_sum_quad_unit) {
    (void)edges;
    pt_sum_quad(p, walk, a, b, bias, out, true);
}

PT_BLOCK(pt_sum_quad_gathered) {
    (void)edges;
    pt_sum_quad(p, walk, a, b, bias, out, false);
}

// Computes a block with adjacent taps, in one group of runs of three times n.
PT_BLOCK(pt_sum_quad_adjacent) {
    (void)edges;
    pt_runs *r = &((pt_quad_walk *)walk)->runs;
    pt_sums_of_rows s = pt_no_sums();
    r->a = a;
    r->b = b;
    pt_do_adjacent_runs(r, &s);
    pt_store_rows(p, &s, bias, out);
}

// The same for padded lines, which start one element before b.
PT_BLOCK(pt_sum_quad_padded) {
    if (edges == 0) {
        pt_sum_quad_adjacent(p, walk, a, b - 1, bias, out, 0);
        return;
    }
    pt_runs *r = &((pt_quad_walk *)walk)->runs;
    pt_sums_of_rows s = pt_no_sums();
    r->a = a;
    r->b = b - 1;
    r->tap = (int32_t)((edges & PT_FIRST_COLUMN ? 0xFFF0u : 0xFFFFu) |
                       (edges & PT_LAST_COLUMN ? 0x0FFFu : 0xFFFFu) << 16);
    pt_do_runs_at_edge(r, &s);
    pt_store_rows(p, &s, bias, out);
}

// ---- other blocks

// Advances the addresses in *at by a float, and loads from them.
PT_INLINE float32x4_t pt_gather_next(uint32x4_t *at) {
    float32x4_t x;
    __asm__ volatile("vldrw.u32 %q0, [%q1, #4]!" : "=&w"(x), "+w"(*at) : : "memory");
    return x;
}

// Computes four rows of one column.
PT_BLOCK(pt_sum_column) {
    (void)edges;
    const pt_tap_walk *w = walk;
    uint32x4_t at = vaddq_n_u32(pt_lane_offsets(4 * p->a_row), (uint32_t)(a - 1));
    float32x4_t sum = vdupq_n_f32(0);
    int32_t middle = w->middle;
    for (int32_t n = w->count; n > 0; n--) {
        for (int32_t i = w->inner; i > 0; i--) {
            sum = vaddq_f32(sum, vmulq_n_f32(pt_gather_next(&at), *b));
            b += w->b_inner;
        }
        const bool wraps = --middle == 0;
        if (wraps) {
            middle = w->middle;
        }
        b += wraps ? w->b_jump + w->b_wrap : w->b_jump;
        at = vaddq_n_u32(at, 4 * (uint32_t)(wraps ? w->a_jump + w->a_wrap : w->a_jump));
    }
    vstrwq_scatter_shifted_offset_f32(out, pt_lane_offsets(p->out_row),
                                      vaddq_f32(sum, vldrwq_f32(bias)));
}

// Computes `vectors` times four columns of one row.
PT_INLINE void pt_sum_row(const pt_products *p, const pt_tap_walk *w, const float *a,
                          const float *b, const float *bias, float *out, const int vectors,
                          const bool unit) {
    const uint32x4_t at = pt_lane_offsets(p->columns.b_step);
    float32x4_t sum[4];
    for (int i = 0; i < vectors; i++) {
        sum[i] = vdupq_n_f32(0);
    }
    int32_t middle = w->middle;
    for (int32_t n = w->count; n > 0; n--) {
        for (int32_t i = w->inner; i > 0; i--) {
            const float weight = *a++;
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) {
                const float32x4_t x =
                    unit ? vldrwq_f32(b + 4 * v) : vldrwq_gather_shifted_offset_f32(b, at);
                sum[v] = vaddq_f32(sum[v], vmulq_n_f32(x, weight));
            }
            b += w->b_inner;
        }
        const bool wraps = --middle == 0;
        if (wraps) {
            middle = w->middle;
        }
        b += wraps ? w->b_jump + w->b_wrap : w->b_jump;
        a += wraps ? w->a_jump + w->a_wrap : w->a_jump;
    }
    const uint32x4_t to = pt_lane_offsets(p->columns.out_step);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
        sum[v] = vaddq_n_f32(sum[v], *bias);
        if (unit) {
            vstrwq_f32(out + 4 * v, sum[v]);
        } else {
            vstrwq_scatter_shifted_offset_f32(out, to, sum[v]);
        }
    }
}

PT_BLOCK(pt_sum_row_unit) {
    (void)edges;
    pt_sum_row(p, walk, a, b, bias, out, 4, true);
}

PT_BLOCK(pt_sum_row_gathered) {
    (void)edges;
    pt_sum_row(p, walk, a, b, bias, out, 1, false);
}

// ---- rows of their own, four of them a vector

// Adds a column's four rows times the weights, and steps to another column.
#define PT_LANES(s, step)                          \
    "vldrw.u32 %q[x], [%[b], %q[rows], uxtw #2]\n" \
    "vmul.f32 %q[x], %q[x], %q[weights]\n"         \
    "vadd.f32 %q[" #s "], %q[" #s "], %q[x]\n"     \
    "add     %[b], %[" #step "]\n"

// clang-format off

// Runs of single taps; the weights of each row follow the addresses in `at`.
#define PT_DO_LANES(columns, ...)                                                     \
    __asm__ volatile(                                                                 \
        "1:\n"                                                                        \
        "wls     lr, %[taps], 3f\n"                                                   \
        "2:\n"                                                                        \
        "vldrw.u32 %q[weights], [%q[at], #4]!\n"                                      \
        columns                                                                       \
        "le      lr, 2b\n"                                                            \
        "3:\n"                                                                        \
        "add     %[b], %[b_jump]\n"                                                   \
        "vadd.i32 %q[at], %q[at], %[a_jump]\n"                                        \
        "subs    %[runs], #1\n"                                                       \
        "bne     1b\n"                                                                \
        : __VA_ARGS__, [x] "=&w"(x), [weights] "=&w"(weights), [at] "+w"(at),         \
          [b] "+r"(b), [runs] "+r"(runs)                                              \
        : [rows] "w"(rows), [taps] "r"(w->inner), [next] "r"(next), [back] "r"(back), \
          [a_jump] "r"(4 * w->a_jump), [b_jump] "r"(4 * w->b_jump)                    \
        : "lr", "cc", "memory")

// clang-format on

// Computes four columns, or one.
PT_INLINE void pt_sum_lanes(const pt_products *p, const pt_tap_walk *w, const float *a,
                            const float *b, const float *bias, float *out, const bool four) {
    const uint32x4_t rows = pt_lane_offsets(p->b_row);
    const int32_t next = 4 * p->columns.b_step, back = 4 * w->b_inner - (four ? 3 * next : 0);
    uint32x4_t at = vaddq_n_u32(pt_lane_offsets(4 * p->a_row), (uint32_t)(a - 1));
    pt_sums_of_rows s = pt_no_sums();
    for (int32_t count = w->count; count > 0; count -= w->middle) {
        float32x4_t x, weights;
        int32_t runs = w->middle;
        if (four) {
            PT_DO_LANES(PT_LANES(s0, next) PT_LANES(s1, next) PT_LANES(s2, next) PT_LANES(s3, back),
                        [s0] "+w"(s.s0), [s1] "+w"(s.s1), [s2] "+w"(s.s2), [s3] "+w"(s.s3));
        } else {
            PT_DO_LANES(PT_LANES(s0, back), [s0] "+w"(s.s0));
        }
        b += w->b_wrap;
        at = vaddq_n_u32(at, 4 * (uint32_t)w->a_wrap);
    }
    const float32x4_t add = vldrwq_f32(bias);
    const uint32x4_t to = pt_lane_offsets(p->out_row);
    const int32_t column = p->columns.out_step;
    vstrwq_scatter_shifted_offset_f32(out, to, vaddq_f32(s.s0, add));
    if (four) {
        vstrwq_scatter_shifted_offset_f32(out + column, to, vaddq_f32(s.s1, add));
        vstrwq_scatter_shifted_offset_f32(out + 2 * column, to, vaddq_f32(s.s2, add));
        vstrwq_scatter_shifted_offset_f32(out + 3 * column, to, vaddq_f32(s.s3, add));
    }
}

PT_BLOCK(pt_sum_four_lanes) {
    (void)edges;
    pt_sum_lanes(p, walk, a, b, bias, out, true);
}

PT_BLOCK(pt_sum_lanes_of_column) {
    (void)edges;
    pt_sum_lanes(p, walk, a, b, bias, out, false);
}

// ---- the choice

// True if groups of three inner taps are contiguous in a, so that they form one run.
static bool pt_has_runs_of_three(const pt_products *p) {
    return p->taps[2] == 3 && p->taps[0] > 0 && p->taps[1] > 0 &&
           (p->taps[1] == 1 || p->a_step[1] == 3);
}

static void pt_make_quad_walk(const pt_products *p, pt_quad_walk *w) {
    const int32_t tap = p->padded ? 1 : p->b_step[2], inner = p->taps[2];
    w->runs.a_row = 4 * p->a_row;
    w->runs.tap = w->runs.triple = 4 * tap;
    if (pt_has_runs_of_three(p)) {
        w->runs.triple = 4 * (p->b_step[1] - 2 * tap);
        w->runs.triples = p->taps[1];
        w->runs.singles = 0;
        w->runs.runs = p->taps[0];
        w->runs.a_jump = 4 * (p->a_step[0] - 3 * p->taps[1]);
        w->runs.b_jump = 4 * (p->b_step[0] - p->taps[1] * p->b_step[1]);
        w->groups = 1;
        return;
    }
    w->runs.triples = inner / 3;
    w->runs.singles = inner % 3;
    w->runs.runs = p->taps[1];
    w->runs.a_jump = 4 * (p->a_step[1] - inner);
    w->runs.b_jump = 4 * (p->b_step[1] - inner * tap);
    w->groups = inner > 0 && p->taps[1] > 0 ? p->taps[0] : 0;
}

static pt_block pt_choose_quad(const pt_products *p, bool unit) {
    if (p->b_row != 0) {
        return (pt_block){pt_sum_four_lanes, 4, 4, false};
    }
    const bool adjacent = pt_has_runs_of_three(p) && (p->padded || p->b_step[2] == 1);
    if (p->padded) {
        return (pt_block){adjacent ? pt_sum_quad_padded : NULL, 4, 4, true};
    }
    if (unit) {
        return (pt_block){adjacent ? pt_sum_quad_adjacent : pt_sum_quad_unit, 4, 4, true};
    }
    return (pt_block){pt_sum_quad_gathered, 4, 4, true};
}

// Selects the block for single columns of at least four rows.
static pt_block pt_column_of_vectors(const pt_products *p) {
    return (pt_block){p->b_row != 0 ? pt_sum_lanes_of_column : pt_sum_column, 4, 1, false};
}

// Selects a block; its function is NULL if plain C is as fast. Its walk is a pt_quad_walk if it is
// `whole`.
static pt_block pt_choose_vectors(const pt_products *p) {
    const int32_t columns = p->columns.length;
    const bool unit = p->columns.b_step == 1 && p->columns.out_step == 1;
    if (p->rows >= 4 && columns >= 4) {
        return pt_choose_quad(p, unit);
    }
    if (p->rows >= 4) {
        return pt_column_of_vectors(p);
    }
    if (pt_has_few_taps(p)) {
        return (pt_block){.sum = NULL};
    }
    if (columns >= 16 && unit) {
        return (pt_block){pt_sum_row_unit, 1, 16, false};
    }
    return (pt_block){columns >= 4 ? pt_sum_row_gathered : NULL, 1, 4, false};
}

#endif
#endif
