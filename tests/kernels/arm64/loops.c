// Compare the loops of kernels/arch/host with the plain loops, for random shapes and extreme
// numbers:
//
//     loops KIND        prints a checksum of all outputs of a kind of vectors (PT_VECTORS_...)
//
// A byte that differs from the plain loop's ends the program with status 1. The checksum is the
// same on every processor.
#include "arch/depthwise_pixel.h"
#include "arch/dot.h"
#include "arch/elementwise.h"
#include "arch/gemm_s8.h"
#include "arch/quantize_value.h"
#include "arch/threads.h"
#include "portable/products.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { CASES = 400, MOST = 1 << 20, PAGE = 1 << 16 };

static int vectors;

int pt_vectors(void) {
    return vectors;
}

// Run without sharing between threads.

bool pt_shares(int64_t steps, int64_t round) {
    (void)steps, (void)round;
    return false;
}

int pt_share_loop(pt_context *c, pt_shared_loop *loop, const void *task, int64_t round) {
    (void)round;
    return loop(c, task);
}

bool pt_skips_round(void) {
    return false;
}

// ---- random numbers

static uint32_t state = 1;
static bool extreme; // numbers of the largest size

static uint32_t next(void) {
    state = pt_scatter_bits(state + 0x9E3779B9);
    return state;
}

static int32_t from_to(int32_t low, int32_t high) {
    return low + (int32_t)(next() % (uint32_t)(high - low + 1));
}

static int8_t any_int8(void) {
    static const int8_t extremes[] = {-128, -127, 127};
    return extreme ? extremes[next() % 3] : (int8_t)next();
}

static float any_float(void) {
    static const float extremes[] = {0, -0.0f, 1, 0x1p-149f, -0x1p-126f, 0x1p-80f, 0x1p+60f};
    return extreme ? extremes[next() % 7] : (float)(int32_t)next() * 0x1p-29f;
}

// ---- memory that ends at a page that cannot be read

static uint8_t *ends[4]; // ends of four memories

static void make_memories(void) {
    for (int i = 0; i < 4; i++) {
        uint8_t *memory =
            mmap(NULL, MOST + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED || mprotect(memory + MOST, PAGE, PROT_NONE) != 0) {
            exit(2);
        }
        ends[i] = memory + MOST;
    }
}

static int8_t *bytes(int i, int32_t n) {
    int8_t *all = (int8_t *)ends[i] - n;
    for (int32_t k = 0; k < n; k++) {
        all[k] = any_int8();
    }
    return all;
}

static float *floats(int i, int32_t n) {
    float *all = (float *)(void *)ends[i] - n;
    for (int32_t k = 0; k < n; k++) {
        all[k] = any_float();
    }
    return all;
}

// ---- comparison

static uint32_t checksum = 2166136261;

typedef void run_function(const void *what, void *out);

// Run the plain loop and the kind's.
static void compare(const char *name, int kind, run_function *run, const void *what,
                    uint32_t size) {
    static uint8_t plain[MOST], out[MOST];
    memset(plain, 0, size);
    memset(out, 0, size);
    vectors = PT_VECTORS_NONE;
    run(what, plain);
    vectors = kind;
    run(what, out);
    for (uint32_t i = 0; i < size; i++) {
        if (out[i] != plain[i]) {
            printf("%s: byte %u of %u is %u, not %u\n", name, i, size, out[i], plain[i]);
            exit(1);
        }
        checksum = (checksum ^ out[i]) * 16777619;
    }
}

// ---- the loops

static pt_channels any_channels(int32_t n, int32_t depth) {
    static int32_t bias[64], multipliers[64], shifts[64];
    static const int32_t limits[][2] = {{-128, 127}, {-90, 80}, {5, 5}};
    int32_t right = 5;
    for (; depth > 1; depth /= 4) {
        right++;
    }
    for (int32_t o = 0; o < n; o++) {
        bias[o] = extreme ? (int32_t)next() : from_to(-9999, 9999);
        multipliers[o] = extreme && next() % 2 ? INT32_MAX : from_to(1 << 30, INT32_MAX);
        shifts[o] = extreme ? from_to(-31, -1) : -from_to(right - 2, right + 1);
    }
    if (extreme && next() % 4 == 0) {
        shifts[0] = from_to(-40, 3); // outside the range of vectors
    }
    const int32_t *limit = limits[next() % 3];
    return (pt_channels){
        next() % 3 ? bias : NULL, multipliers, shifts, {from_to(-128, 127), limit[0], limit[1]}};
}

typedef struct rows_case {
    pt_gemm_s8 layer;
    const int8_t *patches;
    int32_t stride, n;
} rows_case;

static void multiply_rows(const void *what, void *out) {
    rows_case x = *(const rows_case *)what;
    pt_multiply_rows(&x.layer, x.patches, x.stride, x.n, out);
}

static void check_rows(int kind, int32_t depth) {
    rows_case x = {.n = from_to(1, 9), .stride = depth + from_to(0, 3)};
    x.layer.depth = depth;
    x.layer.channels = from_to(1, 22);
    x.layer.out_stride = x.layer.channels + from_to(0, 2);
    x.layer.offset = from_to(-127, 128);
    x.layer.output = any_channels(x.layer.channels, depth);
    x.layer.weights = bytes(0, depth * x.layer.channels);
    x.patches = bytes(1, (x.n - 1) * x.stride + depth);
    compare("patches", kind, multiply_rows, &x, (uint32_t)(x.n * x.layer.out_stride));
}

typedef struct dot_case {
    const int8_t *x, *w;
    int32_t offset, n;
} dot_case;

static void multiply_dot(const void *what, void *out) {
    const dot_case *p = what;
    pt_sums sums = {1, 2, 3, 4};
    pt_dot_1x4(p->x, p->offset, p->w, p->n, p->n, &sums);
    memcpy(out, &sums, sizeof sums);
}

static void check_dot(int kind) {
    dot_case p = {.offset = from_to(-255, 255), .n = from_to(1, 200)};
    p.x = bytes(0, p.n);
    p.w = bytes(1, 4 * p.n);
    compare("dot", kind, multiply_dot, &p, sizeof(pt_sums));
}

typedef struct taps_case {
    pt_pixel_taps taps;
    pt_channels output;
    int32_t offset, channels;
} taps_case;

// The plain loop is in the caller, depthwise.c.
static void multiply_taps(const void *what, void *out) {
    const taps_case *x = what;
    int8_t *to = out;
    int32_t o = 0;
    if (pt_supports_taps(&x->output, x->channels)) {
        o = pt_multiply_taps(&x->taps, x->offset, &x->output, x->channels, to);
    }
    for (; o < x->channels; o++) {
        const int8_t *in = x->taps.in + o, *w = x->taps.weights + o;
        int32_t sum = pt_bias_of(&x->output, o);
        for (int32_t i = 0; i < x->taps.rows; i++, in += x->taps.in_row, w += x->taps.weight_row) {
            for (int32_t j = 0; j < x->taps.columns; j++) {
                sum = pt_add_int32(sum, (*in + x->offset) * *w);
                in += x->taps.in_step, w += x->taps.weight_step;
            }
        }
        to[o] = pt_finish(&x->output, o, sum);
    }
}

static void check_taps(int kind) {
    const int32_t n = from_to(1, 40), rows = from_to(1, 5), columns = from_to(1, 5);
    const int32_t skipped = n * from_to(0, 2);
    taps_case x = {.offset = from_to(-255, 255), .channels = n};
    x.output = any_channels(n, rows * columns);
    x.taps = (pt_pixel_taps){
        .rows = rows, .columns = columns, .in_step = n, .in_row = skipped, .weight_step = n};
    x.taps.in = bytes(0, rows * (columns * n + skipped) - skipped);
    x.taps.weights = bytes(1, rows * columns * n);
    compare("taps", kind, multiply_taps, &x, (uint32_t)n);
}

static void sum_products(const void *what, void *out) {
    pt_products p = *(const pt_products *)what;
    pt_context c = {.poll_budget = INT32_MAX};
    p.out = out;
    (void)pt_sum_products(&c, &p, PT_DTYPE_FLOAT);
}

static void check_products(int kind) {
    const bool padded = next() % 3 == 0, alone = !padded && next() % 3 == 0;
    const int32_t rows = from_to(padded ? 4 : 1, 18), lines = from_to(1, 3);
    const int32_t columns = from_to(padded ? 4 : 1, 70), step = padded ? 1 : from_to(1, 2);
    const int32_t inner = padded ? 3 : from_to(1, 4), middle = from_to(1, 3), outer = from_to(1, 3);
    const int32_t taps = outer * middle * inner, width = columns * step + inner;
    const int32_t height = lines + middle, plane = height * width;
    pt_products p = {.rows = rows,
                     .a_row = taps,
                     .b_row = alone ? outer * plane : 0,
                     .out_row = lines * columns,
                     .lines = {lines, width, columns},
                     .columns = {columns, step, 1},
                     .taps = {outer, middle, inner},
                     .a_step = {middle * inner, inner, 1},
                     .b_step = {plane, width, 1},
                     .padded = padded};
    p.a = floats(0, rows * taps);
    p.b = floats(1, (alone ? rows : 1) * outer * plane);
    p.bias = next() % 2 ? floats(2, rows) : NULL;
    compare("products", kind, sum_products, &p, (uint32_t)(rows * lines * columns) * 4);
}

typedef struct values_case {
    const float *x;
    const int8_t *q;
    float scale;
    int32_t n, zero_point;
} values_case;

static void quantize(const void *what, void *out) {
    const values_case *v = what;
    int8_t *q = out;
    int32_t i = pt_quantize_some(v->x, q, v->n, v->scale, v->zero_point);
    for (; i < v->n; i++) {
        q[i] = pt_saturate_int8(pt_quantize_value(v->x[i], v->scale, v->zero_point));
    }
}

static void dequantize(const void *what, void *out) {
    const values_case *v = what;
    float *x = out;
    int32_t i = pt_dequantize_some(v->q, x, v->n, v->scale, v->zero_point);
    for (; i < v->n; i++) {
        x[i] = (float)(v->q[i] - v->zero_point) * v->scale;
    }
}

static void check_values(int kind) {
    static const float scales[] = {1, 0.5f, 3, 40, 0x1p+22f, 0x1p-100f, 0x1p+100f};
    values_case v = {
        .scale = scales[next() % 7], .n = from_to(0, 40), .zero_point = from_to(-128, 127)};
    v.x = floats(0, v.n);
    v.q = bytes(1, v.n);
    float *x = (float *)(void *)(ends[0] - 4 * v.n);
    for (int32_t i = 0; i < v.n; i++) {
        x[i] = next() % 16 == 0 ? __builtin_nanf("") : next() % 16 == 0 ? __builtin_inff() : x[i];
    }
    compare("quantize", kind, quantize, &v, (uint32_t)v.n);
    compare("dequantize", kind, dequantize, &v, 4 * (uint32_t)v.n);
}

int main(int count, char **arguments) {
    static const int32_t deep[] = {2047, 2048, 2049, 8175, 8176, 8177, 8192, 20001};
    const int kind = count > 1 ? atoi(arguments[1]) : PT_VECTORS_NONE;
    make_memories();
    for (int i = 0; i < CASES; i++) {
        extreme = i % 3 == 0;
        check_rows(kind, i < 8 ? deep[i] : from_to(1, 150));
        check_dot(kind);
        check_taps(kind);
        check_products(kind);
        check_values(kind);
    }
    printf("%08x\n", checksum);
    return 0;
}
