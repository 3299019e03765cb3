// grid_sampler_2d: (input, grid, interpolation_mode, padding_mode, align_corners, out). Each output
// pixel samples the input (N, C, H, W) at a position of grid (N, H, W, 2): x and y from -1 to 1.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/grid_sampling.h"

static int check_sampler(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[GRID_SAMPLER_2D_INPUT]);
    pt_tensor grid = pt_get_tensor(c, args[GRID_SAMPLER_2D_GRID]);
    pt_tensor out = pt_get_tensor(c, args[GRID_SAMPLER_2D_OUT]);
    int64_t mode = pt_get_int(c, args[GRID_SAMPLER_2D_INTERPOLATION_MODE]);
    int64_t padding = pt_get_int(c, args[GRID_SAMPLER_2D_PADDING_MODE]);
    PT_TRY(pt_check_math(c, in.dtype, PT_REASON_DTYPE));
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
    PT_TRY(pt_check_same_dtype(c, &out, &in));
    return pt_expect_sizes(c, args[GRID_SAMPLER_2D_OUT], 4, sizes);
}

static int run_sampler(pt_context *c, const pt_ref *args) {
    pt_sampling s = {.in = pt_get_tensor(c, args[GRID_SAMPLER_2D_INPUT]),
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
                PT_TRY((s.in.dtype == PT_DTYPE_DOUBLE ? pt_float64->sample
                                                      : sample_pixel)(c, &s, n, row, column));
            }
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_grid_sampler_2d_out = PT_KERNEL(check_sampler, run_sampler);
