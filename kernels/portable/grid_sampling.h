// Sampling in one type: float32, also for float16 and bfloat16; float64 if PT_SAMPLES_DOUBLES is
// defined. grid_sampler.c and double_sampler.c include this file, once each.
#include "portable/grid_sampler.h"

#ifdef PT_SAMPLES_DOUBLES
typedef double real;
#define REAL(function) function
#define LOAD pt_load_double
#define STORE pt_store_double
#else
typedef float real;
#define REAL(function) function##f
#define LOAD pt_load_float
#define STORE pt_store_float
#endif

// Rounds to float16 or bfloat16 after each step, as PyTorch does.
static real round_step(const pt_sampling *s, real x) {
#ifndef PT_SAMPLES_DOUBLES
    uint16_t half;
    if (pt_is_half(s->in.dtype)) {
        pt_store_float(&half, 0, s->in.dtype, x);
        x = pt_load_float(&half, 0, s->in.dtype);
    }
#else
    (void)s;
#endif
    return x;
}

static real to_pixel(const pt_sampling *s, real x, int32_t size) {
    x = round_step(s, x + 1);
    if (s->align) {
        return round_step(s, round_step(s, x / 2) * (real)(size - 1));
    }
    return round_step(s, round_step(s, round_step(s, x * (real)size) - 1) / 2);
}

// Reflects until x lies between half of `twice_low` and half of `twice_high`.
static real reflect(real x, int32_t twice_low, int32_t twice_high) {
    if (twice_low == twice_high) {
        return 0;
    }
    real low = (real)twice_low / 2, span = (real)(twice_high - twice_low) / 2;
    real far = REAL(__builtin_fabs)(x - low), extra = REAL(pt_fmod)(far, span);
    bool flips = REAL(pt_fmod)(REAL(pt_floor)(far / span), 2) != 0;
    return (flips ? span - extra : extra) + low;
}

// Moves a position into the input as padding_mode requires; zeros padding does not move it.
static real bring_inside(const pt_sampling *s, real x, int32_t size) {
    if (s->padding == REFLECTION) {
        x = s->align ? reflect(x, 0, 2 * (size - 1)) : reflect(x, -1, 2 * size - 1);
    }
    if (s->padding != ZEROS) {
        x = x > 0 ? x : 0; // also if x is NaN
        x = x < (real)(size - 1) ? x : (real)(size - 1);
    }
    return x;
}

// Returns the element of plane `plane` at whole numbers y and x; 0 outside.
static real pixel(const pt_sampling *s, int32_t plane, real y, real x) {
    if (!(y >= 0 && y < (real)s->in.sizes[2] && x >= 0 && x < (real)s->in.sizes[3])) {
        return 0;
    }
    return LOAD(s->in.data, plane + (int32_t)y * s->from[2] + (int32_t)x * s->from[3], s->in.dtype);
}

static real bilinear(const pt_sampling *s, int32_t plane, real y, real x) {
    real top = REAL(pt_floor)(y), left = REAL(pt_floor)(x), below = y - top, right = x - left;
    real above = 1 - below, before = 1 - right;
    return pixel(s, plane, top, left) * (before * above) +
           pixel(s, plane, top, left + 1) * (right * above) +
           pixel(s, plane, top + 1, left) * (before * below) +
           pixel(s, plane, top + 1, left + 1) * (right * below);
}

// Computes the weights of four neighbours for a position t after the second: cubic convolution with
// a = -3/4.
static void cubic_weights(real t, real weights[4]) {
    const real a = -0.75;
    for (int32_t i = 0; i < 4; i++) {
        real d = REAL(__builtin_fabs)(t + 1 - (real)i);
        weights[i] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1
                            : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    }
}

static real bicubic(const pt_sampling *s, int32_t plane, real y, real x) {
    real top = REAL(pt_floor)(y), left = REAL(pt_floor)(x), rows[4], columns[4], sum = 0;
    cubic_weights(y - top, rows);
    cubic_weights(x - left, columns);
    for (int32_t i = 0; i < 4; i++) {
        real row = 0, at_y = bring_inside(s, top - 1 + (real)i, s->in.sizes[2]);
        for (int32_t j = 0; j < 4; j++) {
            real at_x = bring_inside(s, left - 1 + (real)j, s->in.sizes[3]);
            row += pixel(s, plane, at_y, at_x) * columns[j];
        }
        sum += row * rows[i];
    }
    return sum;
}

static real sample(const pt_sampling *s, int32_t plane, real y, real x) {
    switch (s->mode) {
    case BILINEAR:
        return bilinear(s, plane, y, x);
    case NEAREST:
        return pixel(s, plane, REAL(pt_rint)(y), REAL(pt_rint)(x));
    default:
        return bicubic(s, plane, y, x);
    }
}

// Samples all channels of an output pixel.
static int sample_pixel(pt_context *c, const pt_sampling *s, int32_t n, int32_t row,
                        int32_t column) {
    const int32_t neighbours = s->mode == BICUBIC ? 16 : 4;
    int32_t at = n * s->of_grid[0] + row * s->of_grid[1] + column * s->of_grid[2];
    real x = LOAD(s->grid.data, at, s->grid.dtype);
    real y = LOAD(s->grid.data, at + s->of_grid[3], s->grid.dtype);
    x = to_pixel(s, x, s->in.sizes[3]);
    y = to_pixel(s, y, s->in.sizes[2]);
    if (s->mode != BICUBIC) {
        x = bring_inside(s, x, s->in.sizes[3]);
        y = bring_inside(s, y, s->in.sizes[2]);
    }
    int32_t to = n * s->to[0] + row * s->to[2] + column * s->to[3];
    for (int32_t i = 0; i < s->in.sizes[1]; i++) {
        PT_TRY(pt_count_elements(c, neighbours));
        real value = sample(s, n * s->from[0] + i * s->from[1], y, x);
        STORE(s->out.data, to + i * s->to[1], s->out.dtype, value);
    }
    return PT_ERROR_OK;
}
