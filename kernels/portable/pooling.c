// Average and max pooling over the last two dims of (C, H, W) and (N, C, H, W), in any dim order.
#include "portable/pooling.h"
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/extrema.h"

enum { HEIGHT, WIDTH };
enum { PARAMETER_LIMIT = 1 << 28 }; // sums of two and a size stay in int32

// Common properties of all windows of one call: sizes, and strides along N, C, H, W.
typedef struct planes {
    const void *in;
    void *out;
    int64_t *indices; // max pooling
    uint8_t dtype;
    int32_t batch, channels;
    int32_t in_size[2], out_size[2];
    int32_t in_strides[4], out_strides[4], index_strides[4];
} planes;

// A window: taps[HEIGHT] rows of taps[WIDTH] elements, in each channel of each image.
typedef struct window {
    int32_t from, to, index_to; // offsets in the first channel of the first image
    int32_t first[2], taps[2], step[2];
    int32_t dilation[2];
    int32_t spread[2]; // dilation if there are two taps or more, else 0
    int64_t divisor;   // average pooling
} window;

// ---- parameters

bool pt_read_spatial(const pt_context *c, pt_ref list, uint32_t dims, const int32_t *if_empty,
                     int32_t lowest, int32_t *sizes) {
    const uint32_t n = pt_list_length(c, list);
    if (n != 1 && n != dims && !(n == 0 && if_empty)) {
        return false;
    }
    for (uint32_t i = 0; i < dims; i++) {
        const int64_t value = n == 0 ? if_empty[i] : pt_list_int(c, list, n == 1 ? 0 : i);
        if (value < lowest || value > PARAMETER_LIMIT) {
            return false;
        }
        sizes[i] = (int32_t)value;
    }
    return true;
}

int pt_read_pooling(pt_context *c, const pt_ref *args, uint32_t dims, pt_pooling *p) {
    if (!pt_read_spatial(c, args[AVG_POOL2D_KERNEL_SIZE], dims, NULL, 1, p->kernel)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "kernel_size must be one size or one a dim");
    }
    if (!pt_read_spatial(c, args[AVG_POOL2D_STRIDE], dims, p->kernel, 1, p->stride)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "stride must be one step, one a dim or none");
    }
    if (!pt_read_spatial(c, args[AVG_POOL2D_PADDING], dims, NULL, 0, p->padding)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "padding must be one size or one a dim");
    }
    for (uint32_t d = 0; d < dims; d++) {
        p->dilation[d] = 1;
    }
    return PT_ERROR_OK;
}

// Returns the number of windows along a dim, 0 or less if none fits: at most size + 1 if padding is
// at most half of the kernel's extent, else at most 2^29.
static int64_t pooling_count_windows(const pt_pooling *p, uint32_t d, int32_t size) {
    int64_t reach = (int64_t)p->dilation[d] * (p->kernel[d] - 1);
    int64_t slack = size + 2 * (int64_t)p->padding[d] - reach - 1;
    if (slack < 0 && !p->ceil_mode) {
        return 0;
    }
    int64_t up = slack + (p->ceil_mode ? p->stride[d] - 1 : 0);
    int64_t n = up < 0 ? 0 : up / p->stride[d] + 1;
    if (p->ceil_mode && (n - 1) * p->stride[d] >= (int64_t)size + p->padding[d]) {
        n--; // the last window would start in the padding behind the input
    }
    return n;
}

pt_pool_span pt_taps_inside(const pt_pooling *p, uint32_t d, int32_t o, int32_t size) {
    int32_t dilation = p->dilation[d], taps = p->kernel[d];
    int32_t first = o * p->stride[d] - p->padding[d];
    if (first < 0) {
        int32_t outside = dilation == 1 ? -first : (-first + dilation - 1) / dilation;
        first += outside * dilation;
        taps -= outside;
    }
    int32_t slack = size - first; // positions from the first tap to the end
    slack = slack <= 0 ? 0 : dilation == 1 ? slack : (slack - 1) / dilation + 1;
    return (pt_pool_span){first, taps < slack ? taps : slack};
}

int32_t pt_padded_taps(const pt_pooling *p, uint32_t d, int32_t o, int32_t size) {
    int32_t slack = size + 2 * p->padding[d] - o * p->stride[d];
    return p->kernel[d] < slack ? p->kernel[d] : slack;
}

pt_pool_span pt_adaptive_span(int32_t o, int32_t count, int32_t size) {
    int64_t first = (int64_t)o * size / count;
    int64_t end = ((int64_t)(o + 1) * size + count - 1) / count;
    return (pt_pool_span){(int32_t)first, (int32_t)(end - first)};
}

// ---- checks

int pt_check_pooled(pt_context *c, const pt_tensor *in, uint32_t dims, uint32_t dtypes) {
    if (in->rank != dims + 1 && in->rank != dims + 2) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       dims == 2 ? "the input must have 3 or 4 dims"
                                 : "the input must have 4 or 5 dims");
    }
    if (pt_product(in->sizes + in->rank - dims, dims) == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a spatial dim of the input is 0");
    }
    if (!pt_dtype_in(in->dtype, dtypes)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "no pooling of this dtype");
    }
    return PT_ERROR_OK;
}

int pt_expect_pooled(pt_context *c, const pt_tensor *in, uint32_t dims, const int32_t *size,
                     pt_ref out) {
    int32_t sizes[5];
    for (uint32_t d = 0; d < in->rank; d++) {
        sizes[d] = d + dims < in->rank ? in->sizes[d] : size[d + dims - in->rank];
    }
    return pt_expect_sizes(c, out, in->rank, sizes);
}

int pt_check_windows(pt_context *c, const pt_pooling *p, uint32_t dims, const pt_tensor *in,
                     pt_ref out) {
    const int32_t *in_size = in->sizes + in->rank - dims;
    int32_t size[3];
    for (uint32_t d = 0; d < dims; d++) {
        int64_t reach = (int64_t)p->dilation[d] * (p->kernel[d] - 1) + 1;
        if (p->padding[d] > reach / 2) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "padding is above half the kernel");
        }
        int64_t n = pooling_count_windows(p, d, in_size[d]);
        if (n < 1) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the kernel is larger than the input");
        }
        size[d] = (int32_t)n;
    }
    PT_TRY(pt_expect_pooled(c, in, dims, size, out));
    if (pt_numel(in) == 0) {
        return PT_ERROR_OK; // the run computes no window
    }
    for (uint32_t d = 0; d < dims; d++) {
        // Without dilation at most half of the kernel lies in the padding
        for (int32_t o = 0; p->dilation[d] > 1 && o < size[d]; o++) {
            if (pt_taps_inside(p, d, o, in_size[d]).taps < 1) {
                return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "a window lies in the padding alone");
            }
        }
    }
    return PT_ERROR_OK;
}

int pt_check_index_output(pt_context *c, pt_ref indices) {
    return pt_get_tensor(c, indices).dtype == PT_DTYPE_LONG
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "indices must be int64");
}

// ---- the walk over windows

static void pooling_image_strides(const pt_tensor *t, int32_t *strides) {
    strides[0] = 0;
    pt_strides(t, strides + 4 - t->rank);
}

static void start_planes(planes *s, const pt_tensor *in, const pt_tensor *out) {
    const int32_t *last = in->sizes + in->rank;
    s->in = in->data;
    s->out = out->data;
    s->dtype = in->dtype;
    s->batch = in->rank == 4 ? in->sizes[0] : 1;
    s->channels = last[-3];
    for (uint32_t d = 0; d < 2; d++) {
        s->in_size[d] = last[(int32_t)d - 2];
        s->out_size[d] = out->sizes[out->rank - 2 + d];
    }
    pooling_image_strides(in, s->in_strides);
    pooling_image_strides(out, s->out_strides);
}

// Sets taps and offsets of the window at (y, x) of the output.
static void pooling_place_window(const planes *s, window *w, const int32_t *at,
                                 const pt_pool_span *spans) {
    w->from = w->to = 0;
    for (uint32_t d = 0; d < 2; d++) {
        w->first[d] = spans[d].first;
        w->taps[d] = spans[d].taps;
        w->from += spans[d].first * s->in_strides[2 + d];
        w->to += at[d] * s->out_strides[2 + d];
        w->spread[d] = w->taps[d] > 1 ? w->dilation[d] : 0;
        w->step[d] = w->spread[d] * s->in_strides[2 + d];
    }
}

// ---- average

static int average_float(pt_context *c, const planes *s, const window *w) {
    const float divisor = (float)w->divisor;
    int32_t rows = w->taps[HEIGHT], columns = w->taps[WIDTH];
    if (w->step[HEIGHT] == columns * w->step[WIDTH]) {
        columns *= rows;
        rows = 1;
    }
    for (int32_t n = 0; n < s->batch; n++) {
        const float *plane = (const float *)s->in + w->from + n * s->in_strides[0];
        float *out = (float *)s->out + w->to + n * s->out_strides[0];
        for (int32_t channel = 0; channel < s->channels; channel++) {
            const float *row = plane;
            float sum = 0;
            PT_TRY(pt_count_work(c, 1 + rows * columns));
            for (int32_t y = 0; y < rows; y++, row += w->step[HEIGHT]) {
                const float *value = row;
                for (int32_t x = columns; x > 0; x--, value += w->step[WIDTH]) {
                    sum += *value;
                }
            }
            *out = sum / divisor;
            plane += s->in_strides[1];
            out += s->out_strides[1];
        }
    }
    return PT_ERROR_OK;
}

// float16 and bfloat16 in float32; double; and int64, with a truncated quotient
static int average_any(pt_context *c, const planes *s, const window *w) {
    const bool half = pt_is_half(s->dtype);
    for (int32_t n = 0; n < s->batch; n++) {
        for (int32_t channel = 0; channel < s->channels; channel++) {
            int32_t plane = w->from + n * s->in_strides[0] + channel * s->in_strides[1];
            int32_t to = w->to + n * s->out_strides[0] + channel * s->out_strides[1];
            double sum = 0;
            float float_sum = 0;
            uint64_t int_sum = 0;
            for (int32_t y = 0; y < w->taps[HEIGHT]; y++) {
                for (int32_t x = 0; x < w->taps[WIDTH]; x++) {
                    PT_TRY(pt_count_work(c, 1));
                    int32_t at = plane + y * w->step[HEIGHT] + x * w->step[WIDTH];
                    if (half) {
                        float_sum += pt_load_float(s->in, at, s->dtype);
                    } else if (s->dtype == PT_DTYPE_DOUBLE) {
                        sum += pt_load_double(s->in, at, s->dtype);
                    } else {
                        int_sum += (uint64_t)pt_load_int(s->in, at, s->dtype);
                    }
                }
            }
            if (half) {
                pt_store_float(s->out, to, s->dtype, float_sum / (float)w->divisor);
            } else if (s->dtype == PT_DTYPE_DOUBLE) {
                pt_store_double(s->out, to, s->dtype, sum / (double)w->divisor);
            } else {
                pt_store_int(s->out, to, s->dtype, pt_divide_int((int64_t)int_sum, w->divisor));
            }
            PT_TRY(pt_count_work(c, 1));
        }
    }
    return PT_ERROR_OK;
}

static int pooling_average(pt_context *c, const planes *s, const window *w) {
    return s->dtype == PT_DTYPE_FLOAT ? average_float(c, s, w) : average_any(c, s, w);
}

// avg_pool2d: (self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override,
// out)
int pt_check_average(pt_context *c, const pt_ref *args, uint32_t dims) {
    pt_tensor in = pt_get_tensor(c, args[AVG_POOL2D_SELF]);
    pt_tensor out = pt_get_tensor(c, args[AVG_POOL2D_OUT]);
    pt_pooling p = {.ceil_mode = pt_get_bool(c, args[AVG_POOL2D_CEIL_MODE])};
    PT_TRY(pt_check_pooled(c, &in, dims, PT_DTYPES_FLOATING | 1 << PT_DTYPE_LONG));
    PT_TRY(pt_read_pooling(c, args, dims, &p));
    if (!pt_is_none(args[AVG_POOL2D_DIVISOR_OVERRIDE]) &&
        pt_get_int(c, args[AVG_POOL2D_DIVISOR_OVERRIDE]) == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "divisor_override must not be 0");
    }
    if (dims == 3 && (int64_t)p.kernel[0] * p.kernel[1] > INT64_MAX / p.kernel[2]) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the kernel is too large");
    }
    PT_TRY(pt_check_same_dtype(c, &out, &in));
    return pt_check_windows(c, &p, dims, &in, args[AVG_POOL2D_OUT]);
}

static int avg_pool2d_check(pt_context *c, const pt_ref *args) {
    return pt_check_average(c, args, 2);
}

static int avg_pool2d_run(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[AVG_POOL2D_SELF]);
    pt_tensor out = pt_get_tensor(c, args[AVG_POOL2D_OUT]);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    pt_pooling p = {.ceil_mode = false};
    bool with_padding = pt_get_bool(c, args[AVG_POOL2D_COUNT_INCLUDE_PAD]);
    int64_t divisor = pt_is_none(args[AVG_POOL2D_DIVISOR_OVERRIDE])
                          ? 0
                          : pt_get_int(c, args[AVG_POOL2D_DIVISOR_OVERRIDE]);
    PT_TRY(pt_read_pooling(c, args, 2, &p));
    planes s;
    window w = {.dilation = {1, 1}};
    start_planes(&s, &in, &out);
    int32_t at[2];
    for (at[HEIGHT] = 0; at[HEIGHT] < s.out_size[HEIGHT]; at[HEIGHT]++) {
        for (at[WIDTH] = 0; at[WIDTH] < s.out_size[WIDTH]; at[WIDTH]++) {
            pt_pool_span spans[2];
            int64_t taps = 1;
            for (uint32_t d = 0; d < 2; d++) {
                spans[d] = pt_taps_inside(&p, d, at[d], s.in_size[d]);
                taps *= with_padding ? pt_padded_taps(&p, d, at[d], s.in_size[d]) : spans[d].taps;
            }
            pooling_place_window(&s, &w, at, spans);
            w.divisor = divisor ? divisor : taps;
            PT_TRY(pooling_average(c, &s, &w));
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_avg_pool2d_out = PT_KERNEL(avg_pool2d_check, avg_pool2d_run);

// _adaptive_avg_pool2d: (self, output_size, out)
int pt_check_adaptive(pt_context *c, const pt_ref *args, uint32_t dims) {
    pt_tensor in = pt_get_tensor(c, args[ADAPTIVE_AVG_POOL2D_SELF]);
    pt_tensor out = pt_get_tensor(c, args[ADAPTIVE_AVG_POOL2D_OUT]);
    const pt_ref list = args[ADAPTIVE_AVG_POOL2D_OUTPUT_SIZE];
    int32_t size[3];
    PT_TRY(pt_check_pooled(c, &in, dims, PT_DTYPES_FLOATING));
    if (pt_list_length(c, list) != dims || !pt_read_spatial(c, list, dims, NULL, 0, size)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "output_size must be one size a dim");
    }
    PT_TRY(pt_check_same_dtype(c, &out, &in));
    return pt_expect_pooled(c, &in, dims, size, args[ADAPTIVE_AVG_POOL2D_OUT]);
}

static int adaptive_avg_pool2d_check(pt_context *c, const pt_ref *args) {
    return pt_check_adaptive(c, args, 2);
}

static int adaptive_avg_pool2d_run(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[ADAPTIVE_AVG_POOL2D_SELF]);
    pt_tensor out = pt_get_tensor(c, args[ADAPTIVE_AVG_POOL2D_OUT]);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    planes s;
    window w = {.dilation = {1, 1}};
    start_planes(&s, &in, &out);
    int32_t at[2];
    for (at[HEIGHT] = 0; at[HEIGHT] < s.out_size[HEIGHT]; at[HEIGHT]++) {
        pt_pool_span spans[2] = {
            pt_adaptive_span(at[HEIGHT], s.out_size[HEIGHT], s.in_size[HEIGHT])};
        for (at[WIDTH] = 0; at[WIDTH] < s.out_size[WIDTH]; at[WIDTH]++) {
            spans[WIDTH] = pt_adaptive_span(at[WIDTH], s.out_size[WIDTH], s.in_size[WIDTH]);
            pooling_place_window(&s, &w, at, spans);
            w.divisor = (int64_t)spans[HEIGHT].taps * spans[WIDTH].taps;
            PT_TRY(pooling_average(c, &s, &w));
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten__adaptive_avg_pool2d_out =
    PT_KERNEL(adaptive_avg_pool2d_check, adaptive_avg_pool2d_run);

// ---- max

// Position of the maximum of a window; NaN is greater than all numbers.
typedef struct greatest {
    int32_t offset; // from the first tap
    int32_t index;  // in the plane, from the first tap
} greatest;

static greatest pooling_greatest_float(const float *first, const window *w, int32_t index_row) {
    const int32_t step = w->step[WIDTH], index_step = w->spread[WIDTH];
    const float *best = first, *row = first;
    float value = *first;
    int32_t best_index = 0, row_index = 0;
    for (int32_t y = w->taps[HEIGHT]; y > 0; y--) {
        const float *tap = row;
        int32_t index = row_index;
        for (int32_t x = w->taps[WIDTH]; x > 0; x--) {
            float v = *tap;
            if (!(v <= value) && (v > value || v != v)) {
                value = v;
                best = tap;
                best_index = index;
            }
            tap += step;
            index += index_step;
        }
        row += w->step[HEIGHT];
        row_index += index_row;
    }
    return (greatest){(int32_t)(best - first), best_index};
}

static int pooling_greatest_any(pt_context *c, const planes *s, int32_t first, const window *w,
                                int32_t index_row, greatest *best) {
    *best = (greatest){0, 0};
    for (int32_t y = 0; y < w->taps[HEIGHT]; y++) {
        for (int32_t x = 0; x < w->taps[WIDTH]; x++) {
            int32_t offset = y * w->step[HEIGHT] + x * w->step[WIDTH];
            PT_TRY(pt_count_work(c, 1));
            if (pt_beats(s->in, first + offset, first + best->offset, s->dtype, false)) {
                *best = (greatest){offset, y * index_row + x * w->spread[WIDTH]};
            }
        }
    }
    return PT_ERROR_OK;
}

static int pooling_take_greatest(pt_context *c, const planes *s, const window *w) {
    const int32_t index_row = w->spread[HEIGHT] * s->in_size[WIDTH];
    const int32_t first_index = w->first[HEIGHT] * s->in_size[WIDTH] + w->first[WIDTH];
    for (int32_t n = 0; n < s->batch; n++) {
        int32_t plane = w->from + n * s->in_strides[0];
        int32_t to = w->to + n * s->out_strides[0];
        int32_t index_to = w->index_to + n * s->index_strides[0];
        for (int32_t channel = 0; channel < s->channels; channel++) {
            greatest best;
            PT_TRY(pt_count_work(c, 1 + w->taps[HEIGHT] * w->taps[WIDTH]));
            if (s->dtype == PT_DTYPE_FLOAT) {
                const float *first = (const float *)s->in + plane;
                best = pooling_greatest_float(first, w, index_row);
                ((float *)s->out)[to] = first[best.offset];
            } else {
                PT_TRY(pooling_greatest_any(c, s, plane, w, index_row, &best));
                pt_convert_element(s->out, to, s->dtype, s->in, plane + best.offset, s->dtype);
            }
            s->indices[index_to] = first_index + best.index;
            plane += s->in_strides[1];
            to += s->out_strides[1];
            index_to += s->index_strides[1];
        }
    }
    return PT_ERROR_OK;
}

// max_pool2d_with_indices: (self, kernel_size, stride, padding, dilation, ceil_mode, out, indices).
// An index counts the elements of a plane, row by row.
int pt_read_max_pooling(pt_context *c, const pt_ref *args, uint32_t dims, pt_pooling *p) {
    p->ceil_mode = pt_get_bool(c, args[MAX_POOL2D_WITH_INDICES_CEIL_MODE]);
    PT_TRY(pt_read_pooling(c, args, dims, p));
    if (!pt_read_spatial(c, args[MAX_POOL2D_WITH_INDICES_DILATION], dims, NULL, 1, p->dilation)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "dilation must be one step or one a dim");
    }
    return PT_ERROR_OK;
}

int pt_check_max(pt_context *c, const pt_ref *args, uint32_t dims) {
    pt_tensor in = pt_get_tensor(c, args[MAX_POOL2D_WITH_INDICES_SELF]);
    pt_tensor out = pt_get_tensor(c, args[MAX_POOL2D_WITH_INDICES_OUT]);
    pt_pooling p;
    PT_TRY(pt_check_pooled(c, &in, dims, PT_DTYPES_ALL));
    PT_TRY(pt_read_max_pooling(c, args, dims, &p));
    PT_TRY(pt_check_same_dtype(c, &out, &in));
    PT_TRY(pt_check_index_output(c, args[MAX_POOL2D_WITH_INDICES_INDICES]));
    PT_TRY(pt_check_windows(c, &p, dims, &in, args[MAX_POOL2D_WITH_INDICES_OUT]));
    return pt_check_windows(c, &p, dims, &in, args[MAX_POOL2D_WITH_INDICES_INDICES]);
}

static int max_pool2d_check(pt_context *c, const pt_ref *args) {
    return pt_check_max(c, args, 2);
}

static int max_pool2d_run(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[MAX_POOL2D_WITH_INDICES_SELF]);
    pt_tensor out = pt_get_tensor(c, args[MAX_POOL2D_WITH_INDICES_OUT]);
    pt_tensor indices = pt_get_tensor(c, args[MAX_POOL2D_WITH_INDICES_INDICES]);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    pt_pooling p;
    PT_TRY(pt_read_max_pooling(c, args, 2, &p));
    planes s = {.indices = indices.data};
    start_planes(&s, &in, &out);
    pooling_image_strides(&indices, s.index_strides);
    window w = {.dilation = {p.dilation[HEIGHT], p.dilation[WIDTH]}};
    int32_t at[2];
    for (at[HEIGHT] = 0; at[HEIGHT] < s.out_size[HEIGHT]; at[HEIGHT]++) {
        pt_pool_span spans[2] = {pt_taps_inside(&p, HEIGHT, at[HEIGHT], s.in_size[HEIGHT])};
        for (at[WIDTH] = 0; at[WIDTH] < s.out_size[WIDTH]; at[WIDTH]++) {
            spans[WIDTH] = pt_taps_inside(&p, WIDTH, at[WIDTH], s.in_size[WIDTH]);
            pooling_place_window(&s, &w, at, spans);
            w.index_to = at[HEIGHT] * s.index_strides[2] + at[WIDTH] * s.index_strides[3];
            PT_TRY(pooling_take_greatest(c, &s, &w));
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_max_pool2d_with_indices_out = PT_KERNEL(max_pool2d_check, max_pool2d_run);
