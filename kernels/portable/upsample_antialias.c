// _upsample_bilinear2d_aa over the last two dims of (N, C, H, W), in any dim order: bilinear, but
// where it shrinks, an output pixel is a mean of all input pixels around it, weighted by a triangle
// that reaches as far as the next output pixels. Weights are computed in float32.
#include "../core/operator_arguments.h"
#include "arguments.h"
#include "element.h"

// Input pixels for an output pixel along spatial dim d.
static float scale_of(const pt_context *c, const pt_ref *args, uint32_t d, int32_t in,
                      int32_t out) {
    const pt_ref factor = args[UPSAMPLE_BILINEAR2D_AA_SCALES_H + d];
    const double given = pt_is_none(factor) ? 0 : pt_get_double(c, factor);
    if (in == out) {
        return 1;
    }
    if (pt_get_bool(c, args[UPSAMPLE_BILINEAR2D_AA_ALIGN_CORNERS])) {
        return out > 1 ? (float)((double)(in - 1) / (out - 1)) : 0;
    }
    return (float)(given > 0 ? 1 / given : (double)in / out);
}

static int check_antialias(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[UPSAMPLE_BILINEAR2D_AA_SELF]);
    const pt_tensor out = pt_get_tensor(c, args[UPSAMPLE_BILINEAR2D_AA_OUT]);
    if (in.rank != 4) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input must have 4 dims");
    }
    if (!pt_is_floating(in.dtype)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "only floats are resized with antialiasing");
    }
    PT_TRY(pt_check_same_dtype(c, &out, &in));
    if (in.sizes[2] == 0 || in.sizes[3] == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input must have height and width");
    }
    pt_ask_scratch(c, ((uint32_t)in.sizes[2] + (uint32_t)in.sizes[3]) * (uint32_t)sizeof(float));
    int64_t size[2] = {0, 0};
    if (pt_list_ints(c, args[UPSAMPLE_BILINEAR2D_AA_OUTPUT_SIZE], 2, size) != 2) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "two sizes are needed");
    }
    for (uint32_t d = 0; d < 2; d++) {
        if (size[d] < 1 || size[d] > INT32_MAX) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "an output size is out of range");
        }
        if (!(scale_of(c, args, d, in.sizes[2 + d], (int32_t)size[d]) <= INT32_MAX)) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a scale is out of range");
        }
    }
    const int32_t sizes[] = {in.sizes[0], in.sizes[1], (int32_t)size[0], (int32_t)size[1]};
    return pt_expect_sizes(c, args[UPSAMPLE_BILINEAR2D_AA_OUT], 4, sizes);
}

// The input pixels along a dim that count for an output pixel.
typedef struct mean {
    int32_t first, count;
    float *weights;
} mean;

static int32_t cut(float place, int32_t most) {
    return !(place > 0) ? 0 : place < (float)most ? (int32_t)place : most;
}

static void weigh(mean *m, float scale, int32_t at, int32_t size) {
    const float reach = scale > 1 ? scale : scale < 1 ? 1 : 0.5f; // 0.5: to the pixel alone
    const float center = scale * ((float)at + 0.5f);
    const int32_t end = cut(center + reach + 0.5f, size);
    m->first = cut(center - reach + 0.5f, size - 1);
    m->count = end > m->first ? end - m->first : 1;
    float sum = 0;
    for (int32_t i = 0; i < m->count; i++) {
        const float distance = ((float)(m->first + i) - center + 0.5f) * (1 / reach);
        const float weight = 1 - (distance < 0 ? -distance : distance);
        m->weights[i] = weight > 0 ? weight : 0;
        sum += m->weights[i];
    }
    for (int32_t i = 0; i < m->count; i++) { // all 0 where a given scale leads out of the image
        m->weights[i] = sum > 0 ? m->weights[i] / sum : 1 / (float)m->count;
    }
}

typedef struct resizing {
    const pt_tensor *in, *out;
    int32_t to[4], from[4]; // strides
    mean y, x;
} resizing;

// All images and channels of the pixel at `to`.
#define MEAN_PIXEL(type, load, store)                                                      \
    static int mean_pixel_##type(pt_context *c, const resizing *r, int32_t to) {           \
        const int32_t start = r->y.first * r->from[2] + r->x.first * r->from[3];           \
        for (int32_t n = 0; n < r->in->sizes[0]; n++) {                                    \
            for (int32_t i = 0; i < r->in->sizes[1]; i++) {                                \
                int32_t row = start + n * r->from[0] + i * r->from[1];                     \
                type sum = 0;                                                              \
                for (int32_t j = 0; j < r->y.count; j++, row += r->from[2]) {              \
                    type part = 0;                                                         \
                    PT_TRY(pt_count_work(c, r->x.count));                                  \
                    for (int32_t k = 0; k < r->x.count; k++) {                             \
                        part += r->x.weights[k] *                                          \
                                load(r->in->data, row + k * r->from[3], r->in->dtype);     \
                    }                                                                      \
                    sum += r->y.weights[j] * part;                                         \
                }                                                                          \
                store(r->out->data, to + n * r->to[0] + i * r->to[1], r->out->dtype, sum); \
            }                                                                              \
        }                                                                                  \
        return PT_ERROR_OK;                                                                \
    }

MEAN_PIXEL(float, pt_load_float, pt_store_float)
MEAN_PIXEL(double, pt_load_double, pt_store_double)

static int run_antialias(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[UPSAMPLE_BILINEAR2D_AA_SELF]);
    const pt_tensor out = pt_get_tensor(c, args[UPSAMPLE_BILINEAR2D_AA_OUT]);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    const int32_t height = in.sizes[2], width = in.sizes[3];
    const float y_scale = scale_of(c, args, 0, height, out.sizes[2]);
    const float x_scale = scale_of(c, args, 1, width, out.sizes[3]);
    float *weights = (float *)(void *)c->scratch;
    resizing r = {.in = &in, .out = &out, .y.weights = weights, .x.weights = weights + height};
    pt_strides(&out, r.to);
    pt_strides(&in, r.from);
    for (int32_t i = 0; i < out.sizes[2]; i++) {
        weigh(&r.y, y_scale, i, height);
        PT_TRY(pt_count_work(c, r.y.count));
        for (int32_t j = 0; j < out.sizes[3]; j++) {
            weigh(&r.x, x_scale, j, width);
            PT_TRY(pt_count_work(c, r.x.count));
            PT_TRY((in.dtype == PT_DTYPE_DOUBLE ? mean_pixel_double : mean_pixel_float)(
                c, &r, i * r.to[2] + j * r.to[3]));
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten__upsample_bilinear2d_aa_out = PT_KERNEL(check_antialias, run_antialias);
