// upsample_nearest2d and upsample_bilinear2d over the last two dims of (N, C, H, W), in any dim
// order. Positions are computed in float32, as PyTorch does.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/copy.h"
#include "portable/float_math.h"
#include <string.h>

enum { HEIGHT, WIDTH };

// Output sizes, and scale factors; 0 if the factors are None.
typedef struct resizing {
    int32_t out[2];
    double factors[2];
} resizing;

static int read_resizing(pt_context *c, pt_ref sizes, pt_ref factors, const pt_tensor *in,
                         resizing *r) {
    if (pt_is_none(sizes) == pt_is_none(factors)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "either output_size or scale_factors is needed");
    }
    if (pt_list_length(c, pt_is_none(sizes) ? factors : sizes) != 2) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "two sizes or factors are needed");
    }
    for (uint32_t d = 0; d < 2; d++) {
        r->factors[d] = pt_is_none(factors) ? 0 : pt_list_double(c, factors, d);
        double size =
            pt_is_none(sizes) ? in->sizes[2 + d] * r->factors[d] : (double)pt_list_int(c, sizes, d);
        if (!(size >= 1 && size <= INT32_MAX)) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "an output size is out of range");
        }
        r->out[d] = (int32_t)size;
    }
    return PT_ERROR_OK;
}

static int check_upsample(pt_context *c, const pt_tensor *in, pt_ref sizes, pt_ref factors,
                          pt_ref out_arg) {
    pt_tensor out = pt_get_tensor(c, out_arg);
    resizing r;
    if (in->rank != 4) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input must have 4 dims");
    }
    if (in->sizes[2] == 0 || in->sizes[3] == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input must have height and width");
    }
    PT_TRY(pt_check_same_dtype(c, &out, in));
    PT_TRY(read_resizing(c, sizes, factors, in, &r));
    const int32_t expected[] = {in->sizes[0], in->sizes[1], r.out[HEIGHT], r.out[WIDTH]};
    return pt_expect_sizes(c, out_arg, 4, expected);
}

// Returns the number of input pixels for each output pixel. As in ExecuTorch, a scale factor
// applies even if the sizes are equal.
static float upsample_scale_of(const resizing *r, uint32_t d, int32_t in) {
    double factor = r->factors[d] > 0 ? r->factors[d] : (double)r->out[d] / in;
    return (float)(1.0 / factor);
}

// ---- nearest: (input, output_size, scale_factors, out)

static int check_nearest(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[UPSAMPLE_NEAREST2D_VEC_INPUT]);
    return check_upsample(c, &in, args[UPSAMPLE_NEAREST2D_VEC_OUTPUT_SIZE],
                          args[UPSAMPLE_NEAREST2D_VEC_SCALE_FACTORS],
                          args[UPSAMPLE_NEAREST2D_VEC_OUT]);
}

static int32_t nearest(float scale, int32_t position, int32_t size) {
    int32_t at = (int32_t)pt_floorf((float)position * scale);
    return at < size ? at : size - 1;
}

// Copies one pixel of all images and channels.
static int copy_pixel(pt_context *c, const pt_tensor *out, int32_t to, const int32_t *to_strides,
                      const pt_tensor *in, int32_t from, const int32_t *from_strides) {
    const size_t size = pt_element_size(in->dtype);
    const bool blocks = to_strides[1] == 1 && from_strides[1] == 1;
    const int32_t channels = blocks ? 1 : in->sizes[1];
    const size_t block = blocks ? size * (size_t)in->sizes[1] : size;
    for (int32_t n = 0; n < in->sizes[0]; n++) {
        uint8_t *a = (uint8_t *)out->data + (size_t)(to + n * to_strides[0]) * size;
        const uint8_t *b = (const uint8_t *)in->data + (size_t)(from + n * from_strides[0]) * size;
        for (int32_t i = 0; i < channels; i++) {
            PT_TRY(pt_count_work(c, blocks ? in->sizes[1] : 1));
            memmove(a, b, block);
            a += (size_t)to_strides[1] * size;
            b += (size_t)from_strides[1] * size;
        }
    }
    return PT_ERROR_OK;
}

static int run_nearest(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[UPSAMPLE_NEAREST2D_VEC_INPUT]);
    pt_tensor out = pt_get_tensor(c, args[UPSAMPLE_NEAREST2D_VEC_OUT]);
    resizing r;
    PT_TRY(read_resizing(c, args[UPSAMPLE_NEAREST2D_VEC_OUTPUT_SIZE],
                         args[UPSAMPLE_NEAREST2D_VEC_SCALE_FACTORS], &in, &r));
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    int32_t to[4], from[4];
    pt_strides(&out, to);
    pt_strides(&in, from);
    for (int32_t y = 0; y < r.out[HEIGHT]; y++) {
        int32_t row = nearest(upsample_scale_of(&r, HEIGHT, in.sizes[2]), y, in.sizes[2]) * from[2];
        for (int32_t x = 0; x < r.out[WIDTH]; x++) {
            int32_t column =
                nearest(upsample_scale_of(&r, WIDTH, in.sizes[3]), x, in.sizes[3]) * from[3];
            PT_TRY(copy_pixel(c, &out, y * to[2] + x * to[3], to, &in, row + column, from));
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_upsample_nearest2d_vec_out = PT_KERNEL(check_nearest, run_nearest);

// ---- bilinear: (input, output_size, align_corners, scale_factors, out)

static int check_bilinear(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[UPSAMPLE_BILINEAR2D_VEC_INPUT]);
    if (!pt_dtype_in(in.dtype, PT_DTYPES_ALL & ~PT_DTYPES_BOOL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the operator does not support this dtype");
    }
    return check_upsample(c, &in, args[UPSAMPLE_BILINEAR2D_VEC_OUTPUT_SIZE],
                          args[UPSAMPLE_BILINEAR2D_VEC_SCALE_FACTORS],
                          args[UPSAMPLE_BILINEAR2D_VEC_OUT]);
}

// The two input pixels nearest to an output pixel, and the weight of the second.
typedef struct between {
    int32_t first, second;
    float weight;
} between;

static between pixels_around(const resizing *r, uint32_t d, int32_t in, int32_t position,
                             bool align) {
    float at;
    if (r->out[d] == in) {
        at = (float)position;
    } else if (align) {
        at = r->out[d] > 1 ? (float)((double)(in - 1) / (r->out[d] - 1)) * (float)position : 0;
    } else {
        at = upsample_scale_of(r, d, in) * ((float)position + 0.5f) - 0.5f;
        at = at < 0 ? 0 : at;
    }
    int32_t first = (int32_t)at < in ? (int32_t)at : in - 1;
    float weight = at - (float)first;
    return (between){first, first + (first < in - 1), weight < 1 ? weight : 1};
}

typedef struct mixing {
    const pt_tensor *in, *out;
    int32_t to[4], from[4]; // strides
} mixing;

// Computes the pixel at `to` of all images and channels. Integers are truncated, as in ExecuTorch;
// PyTorch rounds them.
#define MIX_PIXEL(type, load, store)                                                            \
    static type mix_##type(const pt_tensor *in, int32_t from, const between *x, int32_t step) { \
        return (1 - x->weight) * load(in->data, from + x->first * step, in->dtype) +            \
               x->weight * load(in->data, from + x->second * step, in->dtype);                  \
    }                                                                                           \
    static int mix_pixel_##type(pt_context *c, const mixing *m, int32_t to, const between *y,   \
                                const between *x) {                                             \
        for (int32_t n = 0; n < m->in->sizes[0]; n++) {                                         \
            for (int32_t i = 0; i < m->in->sizes[1]; i++) {                                     \
                int32_t from = n * m->from[0] + i * m->from[1];                                 \
                PT_TRY(pt_count_elements(c, 1));                                                \
                type above = mix_##type(m->in, from + y->first * m->from[2], x, m->from[3]);    \
                type below = mix_##type(m->in, from + y->second * m->from[2], x, m->from[3]);   \
                store(m->out->data, to + n * m->to[0] + i * m->to[1], m->out->dtype,            \
                      (1 - y->weight) * above + y->weight * below);                             \
            }                                                                                   \
        }                                                                                       \
        return PT_ERROR_OK;                                                                     \
    }

MIX_PIXEL(float, pt_load_float, pt_store_float)
MIX_PIXEL(double, pt_load_double, pt_store_double)

static int run_bilinear(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[UPSAMPLE_BILINEAR2D_VEC_INPUT]);
    pt_tensor out = pt_get_tensor(c, args[UPSAMPLE_BILINEAR2D_VEC_OUT]);
    resizing r;
    PT_TRY(read_resizing(c, args[UPSAMPLE_BILINEAR2D_VEC_OUTPUT_SIZE],
                         args[UPSAMPLE_BILINEAR2D_VEC_SCALE_FACTORS], &in, &r));
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    bool align = pt_get_bool(c, args[UPSAMPLE_BILINEAR2D_VEC_ALIGN_CORNERS]);
    mixing m = {.in = &in, .out = &out};
    pt_strides(&out, m.to);
    pt_strides(&in, m.from);
    for (int32_t i = 0; i < r.out[HEIGHT]; i++) {
        between y = pixels_around(&r, HEIGHT, in.sizes[2], i, align);
        for (int32_t j = 0; j < r.out[WIDTH]; j++) {
            between x = pixels_around(&r, WIDTH, in.sizes[3], j, align);
            PT_TRY((in.dtype == PT_DTYPE_DOUBLE ? mix_pixel_double : mix_pixel_float)(
                c, &m, i * m.to[2] + j * m.to[3], &y, &x));
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_upsample_bilinear2d_vec_out = PT_KERNEL(check_bilinear, run_bilinear);
