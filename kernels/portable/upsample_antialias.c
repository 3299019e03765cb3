// _upsample_bilinear2d_aa over the last two dims of (N, C, H, W), in any dim order. To enlarge, it
// is bilinear. To shrink, it computes an output pixel as the mean of the input pixels around it,
// weighted by a triangle that extends to the adjacent output pixels. Weights are float32; for uint8
// they are fixed-point fractions, see below.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/dtype_access.h"

enum { LARGEST_OF_BYTES = 1 << 14 }; // height and width: products of two of them are int32

// Input pixels for an output pixel, as a fraction of the sizes.
typedef struct ratio {
    int32_t in, out;
} ratio;

// Returns the input pixels for each output pixel along spatial dim d, by the scale factor if it is
// not None; *r becomes the fraction.
static float antialias_scale_of(const pt_context *c, const pt_ref *args, uint32_t d, int32_t in,
                                int32_t out, ratio *r) {
    const pt_ref factor = args[UPSAMPLE_BILINEAR2D_AA_SCALES_H + d];
    const double scale_factor = pt_is_none(factor) ? 0 : pt_get_double(c, factor);
    *r = (ratio){in, out};
    if (in != out) {
        if (pt_get_bool(c, args[UPSAMPLE_BILINEAR2D_AA_ALIGN_CORNERS])) {
            *r = out > 1 ? (ratio){in - 1, out - 1} : (ratio){0, 1};
        } else if (scale_factor > 0) {
            return (float)(1 / scale_factor);
        }
    }
    return (float)((double)r->in / r->out);
}

// Returns the bytes of the weights of both axes, and of a column of uint8.
static uint32_t antialias_scratch(const pt_tensor *in) {
    const uint32_t height = (uint32_t)in->sizes[2], width = (uint32_t)in->sizes[3];
    return (height + width) * (uint32_t)sizeof(float) + (in->dtype == PT_DTYPE_BYTE ? height : 0);
}

static int check_antialias(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[UPSAMPLE_BILINEAR2D_AA_SELF]);
    const pt_tensor out = pt_get_tensor(c, args[UPSAMPLE_BILINEAR2D_AA_OUT]);
    if (in.rank != 4) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input must have 4 dims");
    }
    if (!pt_is_floating(in.dtype) && in.dtype != PT_DTYPE_BYTE) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                       "only floats and uint8 are resized with antialiasing");
    }
    PT_TRY(pt_check_same_dtype(c, &out, &in));
    if (in.sizes[2] == 0 || in.sizes[3] == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input must have height and width");
    }
    pt_request_scratch(c, antialias_scratch(&in));
    int64_t size[2] = {0, 0};
    if (pt_list_ints(c, args[UPSAMPLE_BILINEAR2D_AA_OUTPUT_SIZE], 2, size) != 2) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "two sizes are needed");
    }
    for (uint32_t d = 0; d < 2; d++) {
        if (size[d] < 1 || size[d] > INT32_MAX) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "an output size is out of range");
        }
        const int32_t from = in.sizes[2 + d], to = (int32_t)size[d];
        ratio r;
        const float scale = antialias_scale_of(c, args, d, from, to, &r);
        if (!(scale < 0x1p31F)) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a scale is out of range");
        }
        if (in.dtype == PT_DTYPE_BYTE && (from > LARGEST_OF_BYTES || to > LARGEST_OF_BYTES ||
                                          scale != (float)r.in / (float)r.out)) {
            return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                           "a uint8 image is above 16384, or its scale not the ratio of the sizes: "
                           "give the size");
        }
    }
    const int32_t sizes[] = {in.sizes[0], in.sizes[1], (int32_t)size[0], (int32_t)size[1]};
    return pt_expect_sizes(c, args[UPSAMPLE_BILINEAR2D_AA_OUT], 4, sizes);
}

// The weights of the input pixels along a dim for an output pixel.
typedef struct axis {
    int32_t size;
    float scale;
    ratio ratio;
    uint32_t bits; // fraction bits of int32 weights, for uint8
    int32_t first, count;
    float *weights;
} axis;

static int32_t clamp_position(float position, int32_t max) {
    return !(position > 0) ? 0 : position < (float)max ? (int32_t)position : max;
}

static void compute_weights(axis *x, int32_t at) {
    const float scale = x->scale;
    // 0.5 covers the pixel itself only
    const float reach = scale > 1 ? scale : scale < 1 ? 1 : 0.5f;
    const float center = scale * ((float)at + 0.5f);
    const int32_t end = clamp_position(center + reach + 0.5f, x->size);
    x->first = clamp_position(center - reach + 0.5f, x->size - 1);
    x->count = end > x->first ? end - x->first : 1;
    float sum = 0;
    for (int32_t i = 0; i < x->count; i++) {
        const float distance = ((float)(x->first + i) - center + 0.5f) * (1 / reach);
        const float weight = 1 - (distance < 0 ? -distance : distance);
        x->weights[i] = weight > 0 ? weight : 0;
        sum += x->weights[i];
    }
    // All weights are 0 if the scale factor leads outside the image
    for (int32_t i = 0; i < x->count; i++) {
        x->weights[i] = sum > 0 ? x->weights[i] / sum : 1 / (float)x->count;
    }
}

// ---- uint8: as in PyTorch, the weights of an axis have as many fraction bits as its largest
// weight leaves in an int16. Each row is resized and rounded, then each column.

// Stores the numerators of the weights of output pixel `at` in x->weights, as int32, and their sum
// in *sum; returns the maximum. Uses pixels with positive numerators; there is always one.
static int32_t compute_byte_weights(axis *x, int32_t at, int32_t *sum) {
    const int32_t in = x->ratio.in, out = x->ratio.out, reach = 2 * (in > out ? in : out);
    const int32_t center = in * (2 * at + 1), before = center - reach - out;
    int32_t *numerators = (int32_t *)(void *)x->weights, max = 0;
    x->first = before < 0 ? 0 : before / (2 * out) + 1;
    x->count = *sum = 0;
    for (int32_t i = x->first; i < x->size; i++) {
        const int32_t distance = out * (2 * i + 1) - center;
        const int32_t numerator = reach - (distance < 0 ? -distance : distance);
        if (numerator <= 0) {
            break;
        }
        numerators[x->count++] = numerator;
        *sum += numerator;
        max = numerator > max ? numerator : max;
    }
    return max;
}

enum { MAX_BITS = 22 };

// Returns the fraction bits of the weights of an axis: the minimum over all output pixels.
static int find_bits(pt_context *c, axis *x, int32_t outputs) {
    int32_t sum;
    x->bits = MAX_BITS;
    for (int32_t i = 0; i < outputs; i++) {
        uint64_t max = (uint64_t)compute_byte_weights(x, i, &sum) << (MAX_BITS + 1);
        const uint64_t limit = (uint64_t)(uint32_t)sum * 0xFFFF;
        PT_TRY(pt_count_work(c, x->count));
        uint32_t bits = MAX_BITS;
        for (; max >= limit; max >>= 1) {
            bits--;
        }
        x->bits = bits < x->bits ? bits : x->bits;
    }
    return PT_ERROR_OK;
}

static void round_weights(axis *x, int32_t at) {
    int32_t sum;
    int32_t *weights = (int32_t *)(void *)x->weights;
    compute_byte_weights(x, at, &sum);
    for (int32_t i = 0; i < x->count; i++) {
        const uint64_t doubled = (uint64_t)(uint32_t)weights[i] * (2u << x->bits) + (uint32_t)sum;
        weights[i] = (int32_t)(doubled / (2 * (uint32_t)sum));
    }
}

static uint8_t mean_of_bytes(const axis *x, const uint8_t *bytes, int32_t step) {
    const int32_t *weights = (const int32_t *)(const void *)x->weights;
    int32_t sum = 1 << x->bits >> 1;
    for (int32_t i = 0; i < x->count; i++) {
        sum += weights[i] * bytes[i * step];
    }
    sum >>= x->bits;
    return (uint8_t)(sum < 255 ? sum : 255);
}

// ---- images

typedef struct resizing {
    const pt_tensor *in, *out;
    int32_t to[4], from[4]; // strides
    axis axes[2];
    uint8_t *column; // for uint8: one resized pixel for each input row in use
} resizing;

// Computes the pixel at `to` of one channel, whose first input pixel is at `row`.
static int mean_byte(pt_context *c, const resizing *r, int32_t to, int32_t row) {
    for (int32_t j = 0; j < r->axes[0].count; j++, row += r->from[2]) {
        PT_TRY(pt_count_work(c, r->axes[1].count));
        r->column[j] = mean_of_bytes(&r->axes[1], (const uint8_t *)r->in->data + row, r->from[3]);
    }
    ((uint8_t *)r->out->data)[to] = mean_of_bytes(&r->axes[0], r->column, 1);
    return PT_ERROR_OK;
}

#define MEAN_PIXEL(type, load, store)                                                          \
    static int mean_##type(pt_context *c, const resizing *r, int32_t to, int32_t row) {        \
        const axis *y = &r->axes[0], *x = &r->axes[1];                                         \
        type sum = 0;                                                                          \
        for (int32_t j = 0; j < y->count; j++, row += r->from[2]) {                            \
            type part = 0;                                                                     \
            PT_TRY(pt_count_work(c, x->count));                                                \
            for (int32_t k = 0; k < x->count; k++) {                                           \
                part += x->weights[k] * load(r->in->data, row + k * r->from[3], r->in->dtype); \
            }                                                                                  \
            sum += y->weights[j] * part;                                                       \
        }                                                                                      \
        store(r->out->data, to, r->out->dtype, sum);                                           \
        return PT_ERROR_OK;                                                                    \
    }

MEAN_PIXEL(float, pt_load_float, pt_store_float)
MEAN_PIXEL(double, pt_load_double, pt_store_double)

// Computes the pixel at `to` of all images and channels.
static int mean_pixel(pt_context *c, const resizing *r, int32_t to) {
    const uint8_t dtype = r->in->dtype;
    const int32_t start = r->axes[0].first * r->from[2] + r->axes[1].first * r->from[3];
    for (int32_t n = 0; n < r->in->sizes[0]; n++) {
        for (int32_t i = 0; i < r->in->sizes[1]; i++) {
            PT_TRY((dtype == PT_DTYPE_BYTE     ? mean_byte
                    : dtype == PT_DTYPE_DOUBLE ? mean_double
                                               : mean_float)(
                c, r, to + n * r->to[0] + i * r->to[1], start + n * r->from[0] + i * r->from[1]));
        }
    }
    return PT_ERROR_OK;
}

static int run_antialias(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[UPSAMPLE_BILINEAR2D_AA_SELF]);
    const pt_tensor out = pt_get_tensor(c, args[UPSAMPLE_BILINEAR2D_AA_OUT]);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    void *scratch;
    PT_TRY(pt_get_scratch(c, antialias_scratch(&in), &scratch));
    float *weights = scratch;
    void (*const weigh_axis)(axis *, int32_t) =
        in.dtype == PT_DTYPE_BYTE ? round_weights : compute_weights;
    resizing r = {.in = &in, .out = &out};
    for (uint32_t d = 0; d < 2; d++) {
        const int32_t size = in.sizes[2 + d], outputs = out.sizes[2 + d];
        r.axes[d] = (axis){.size = size, .weights = weights};
        r.axes[d].scale = antialias_scale_of(c, args, d, size, outputs, &r.axes[d].ratio);
        weights += size;
        if (in.dtype == PT_DTYPE_BYTE) {
            PT_TRY(find_bits(c, &r.axes[d], outputs));
        }
    }
    r.column = (uint8_t *)weights;
    pt_strides(&out, r.to);
    pt_strides(&in, r.from);
    for (int32_t i = 0; i < out.sizes[2]; i++) {
        weigh_axis(&r.axes[0], i);
        PT_TRY(pt_count_work(c, r.axes[0].count));
        for (int32_t j = 0; j < out.sizes[3]; j++) {
            weigh_axis(&r.axes[1], j);
            PT_TRY(pt_count_work(c, r.axes[1].count));
            PT_TRY(mean_pixel(c, &r, i * r.to[2] + j * r.to[3]));
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten__upsample_bilinear2d_aa_out = PT_KERNEL(check_antialias, run_antialias);
