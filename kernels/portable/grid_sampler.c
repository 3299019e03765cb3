// grid_sampler_2d: (input, grid, interpolation_mode, padding_mode, align_corners, out). Each output
// pixel is taken from the place of the input, (N, C, H, W), that grid, (N, H, W, 2), names as x and
// y from -1 to 1.
#include "../core/operator_arguments.h"
#include "arguments.h"
#include "element.h"
#include "float_math.h"

enum { BILINEAR, NEAREST, BICUBIC }; // interpolation_mode
enum { ZEROS, BORDER, REFLECTION };  // padding_mode

typedef struct sampling {
    pt_tensor in, grid, out;
    int32_t from[4], of_grid[4], to[4]; // strides
    int32_t mode, padding;
    bool align;
} sampling;

static int check_sampler(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[GRID_SAMPLER_2D_INPUT]);
    pt_tensor grid = pt_get_tensor(c, args[GRID_SAMPLER_2D_GRID]);
    pt_tensor out = pt_get_tensor(c, args[GRID_SAMPLER_2D_OUT]);
    int64_t mode = pt_get_int(c, args[GRID_SAMPLER_2D_INTERPOLATION_MODE]);
    int64_t padding = pt_get_int(c, args[GRID_SAMPLER_2D_PADDING_MODE]);
    if (!pt_is_floating(in.dtype) || in.dtype == PT_DTYPE_DOUBLE) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the operator does not support this dtype");
    }
    if (grid.dtype != in.dtype || in.rank != 4 || grid.rank != 4 || grid.sizes[3] != 2 ||
        grid.sizes[0] != in.sizes[0] || in.sizes[2] < 1 || in.sizes[3] < 1) {
        return pt_fail(
            c, PT_ERROR_INVALID_ARGUMENT,
            "grid must be (N, height, width, 2) of the input's dtype, the input (N, C, H, "
            "W) with height and width");
    }
    if (mode < BILINEAR || mode > BICUBIC || padding < ZEROS || padding > REFLECTION) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "there is no such interpolation or padding");
    }
    const int32_t sizes[] = {in.sizes[0], in.sizes[1], grid.sizes[1], grid.sizes[2]};
    int error = pt_check_same_dtype(c, &out, &in);
    return error ? error : pt_expect_sizes(c, args[GRID_SAMPLER_2D_OUT], 4, sizes);
}

static float to_pixel(float x, int32_t size, bool align) {
    return align ? (x + 1) / 2 * (float)(size - 1) : ((x + 1) * (float)size - 1) / 2;
}

// Reflects until x lies between half of `twice_low` and half of `twice_high`.
static float reflect(float x, int32_t twice_low, int32_t twice_high) {
    if (twice_low == twice_high) {
        return 0;
    }
    float low = (float)twice_low / 2, span = (float)(twice_high - twice_low) / 2;
    float far = __builtin_fabsf(x - low), extra = pt_fmodf(far, span);
    bool flips = pt_fmodf(pt_floorf(far / span), 2) != 0;
    return (flips ? span - extra : extra) + low;
}

// By the padding; without one, as it is.
static float bring_inside(const sampling *s, float x, int32_t size) {
    if (s->padding == REFLECTION) {
        x = s->align ? reflect(x, 0, 2 * (size - 1)) : reflect(x, -1, 2 * size - 1);
    }
    if (s->padding != ZEROS) {
        x = x > 0 ? x : 0; // of a NaN, too
        x = x < (float)(size - 1) ? x : (float)(size - 1);
    }
    return x;
}

// The element of plane `plane` at whole numbers y and x; 0 outside.
static float pixel(const sampling *s, int32_t plane, float y, float x) {
    if (!(y >= 0 && y < (float)s->in.sizes[2] && x >= 0 && x < (float)s->in.sizes[3])) {
        return 0;
    }
    return pt_load_float(s->in.data, plane + (int32_t)y * s->from[2] + (int32_t)x * s->from[3],
                         s->in.dtype);
}

static float bilinear(const sampling *s, int32_t plane, float y, float x) {
    float top = pt_floorf(y), left = pt_floorf(x), below = y - top, right = x - left;
    float above = 1 - below, before = 1 - right;
    return pixel(s, plane, top, left) * (before * above) +
           pixel(s, plane, top, left + 1) * (right * above) +
           pixel(s, plane, top + 1, left) * (before * below) +
           pixel(s, plane, top + 1, left + 1) * (right * below);
}

// Weights of four neighbours, t behind the second: cubic convolution with a = -3/4.
static void cubic_weights(float t, float weights[4]) {
    const float a = -0.75f;
    for (int32_t i = 0; i < 4; i++) {
        float d = __builtin_fabsf(t + 1 - (float)i);
        weights[i] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1
                            : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    }
}

static float bicubic(const sampling *s, int32_t plane, float y, float x) {
    float top = pt_floorf(y), left = pt_floorf(x), rows[4], columns[4], sum = 0;
    cubic_weights(y - top, rows);
    cubic_weights(x - left, columns);
    for (int32_t i = 0; i < 4; i++) {
        float row = 0, at_y = bring_inside(s, top - 1 + (float)i, s->in.sizes[2]);
        for (int32_t j = 0; j < 4; j++) {
            float at_x = bring_inside(s, left - 1 + (float)j, s->in.sizes[3]);
            row += pixel(s, plane, at_y, at_x) * columns[j];
        }
        sum += row * rows[i];
    }
    return sum;
}

static float sample(const sampling *s, int32_t plane, float y, float x) {
    switch (s->mode) {
    case BILINEAR:
        return bilinear(s, plane, y, x);
    case NEAREST:
        return pixel(s, plane, pt_rintf(y), pt_rintf(x));
    default:
        return bicubic(s, plane, y, x);
    }
}

// All channels of a pixel.
static int sample_pixel(pt_context *c, const sampling *s, int32_t n, int32_t row, int32_t column) {
    const int32_t neighbours = s->mode == BICUBIC ? 16 : 4;
    int32_t at = n * s->of_grid[0] + row * s->of_grid[1] + column * s->of_grid[2];
    float x = pt_load_float(s->grid.data, at, s->grid.dtype);
    float y = pt_load_float(s->grid.data, at + s->of_grid[3], s->grid.dtype);
    x = to_pixel(x, s->in.sizes[3], s->align);
    y = to_pixel(y, s->in.sizes[2], s->align);
    if (s->mode != BICUBIC) {
        x = bring_inside(s, x, s->in.sizes[3]);
        y = bring_inside(s, y, s->in.sizes[2]);
    }
    int32_t to = n * s->to[0] + row * s->to[2] + column * s->to[3];
    for (int32_t i = 0; i < s->in.sizes[1]; i++) {
        PT_TRY(pt_count_elements(c, neighbours));
        float value = sample(s, n * s->from[0] + i * s->from[1], y, x);
        pt_store_float(s->out.data, to + i * s->to[1], s->out.dtype, value);
    }
    return PT_ERROR_OK;
}

static int run_sampler(pt_context *c, const pt_ref *args) {
    sampling s = {.in = pt_get_tensor(c, args[GRID_SAMPLER_2D_INPUT]),
                  .grid = pt_get_tensor(c, args[GRID_SAMPLER_2D_GRID]),
                  .out = pt_get_tensor(c, args[GRID_SAMPLER_2D_OUT]),
                  .mode = (int32_t)pt_get_int(c, args[GRID_SAMPLER_2D_INTERPOLATION_MODE]),
                  .padding = (int32_t)pt_get_int(c, args[GRID_SAMPLER_2D_PADDING_MODE]),
                  .align = pt_get_bool(c, args[GRID_SAMPLER_2D_ALIGN_CORNERS])};
    if (pt_numel(&s.out) == 0) {
        return PT_ERROR_OK;
    }
    pt_strides(&s.in, s.from);
    pt_strides(&s.grid, s.of_grid);
    pt_strides(&s.out, s.to);
    for (int32_t n = 0; n < s.out.sizes[0]; n++) {
        for (int32_t row = 0; row < s.out.sizes[2]; row++) {
            for (int32_t column = 0; column < s.out.sizes[3]; column++) {
                PT_TRY(sample_pixel(c, &s, n, row, column));
            }
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_grid_sampler_2d_out = PT_KERNEL(check_sampler, run_sampler);
