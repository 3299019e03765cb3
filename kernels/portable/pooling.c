// Average and max pooling over the last two dims of (C, H, W) and (N, C, H, W), in any dim order.
#include "../core/operator_arguments.h"
#include "arguments.h"
#include "extrema.h"

enum { HEIGHT, WIDTH };
enum { PARAMETER_LIMIT = 1 << 28 }; // sums of two and a size stay in int32

typedef struct pooling {
    int32_t kernel[2], stride[2], padding[2], dilation[2];
    bool ceil_mode;
} pooling;

// What every window of one call has in common: sizes, and strides along N, C, H, W.
typedef struct planes {
    const void *in;
    void *out;
    int64_t *indices; // max pooling
    uint8_t dtype;
    int32_t batch, channels;
    int32_t in_size[2], out_size[2];
    int32_t in_strides[4], out_strides[4], index_strides[4];
} planes;

// Taps of a window that lie inside the input, along one dim.
typedef struct span {
    int32_t first, taps;
} span;

// One window: taps[HEIGHT] rows of taps[WIDTH] elements, in each channel of each image.
typedef struct window {
    int32_t from, to, index_to; // offsets in the first channel of the first image
    int32_t first[2], taps[2], step[2];
    int32_t dilation[2];
    int32_t spread[2]; // dilation where there are two taps; 0 where not: then it may be of any size
    int64_t divisor;   // average pooling
} window;

// ---- parameters

// Reads one or two values between `lowest` and the limit; an empty list stands for `if_empty`.
static bool read_pair(const pt_context *c, pt_ref list, const int32_t *if_empty, int32_t lowest,
                      int32_t *pair) {
    uint32_t n = pt_list_length(c, list);
    if (n == 0 && if_empty) {
        pair[HEIGHT] = if_empty[HEIGHT];
        pair[WIDTH] = if_empty[WIDTH];
        return true;
    }
    if (n != 1 && n != 2) {
        return false;
    }
    for (uint32_t i = 0; i < 2; i++) {
        int64_t value = pt_list_int(c, list, n == 2 ? i : 0);
        if (value < lowest || value > PARAMETER_LIMIT) {
            return false;
        }
        pair[i] = (int32_t)value;
    }
    return true;
}

// Reads kernel_size, stride and padding, of avg_pool2d or max_pool2d.
static int read_pooling(pt_context *c, const pt_ref *args, pooling *p) {
    if (!read_pair(c, args[AVG_POOL2D_KERNEL_SIZE], NULL, 1, p->kernel)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "kernel_size must be one or two sizes");
    }
    if (!read_pair(c, args[AVG_POOL2D_STRIDE], p->kernel, 1, p->stride)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "stride must be one or two steps, or empty");
    }
    if (!read_pair(c, args[AVG_POOL2D_PADDING], NULL, 0, p->padding)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "padding must be one or two sizes");
    }
    p->dilation[HEIGHT] = p->dilation[WIDTH] = 1;
    return PT_ERROR_OK;
}

// Number of windows along a dim, 0 or less if none fits: at most one more than the size where
// padding is at most half of what the kernel reaches over, and 2^29 where it is not.
static int64_t count_windows(const pooling *p, uint32_t d, int32_t size) {
    int64_t reach = (int64_t)p->dilation[d] * (p->kernel[d] - 1);
    int64_t room = size + 2 * (int64_t)p->padding[d] - reach - 1;
    if (room < 0 && !p->ceil_mode) {
        return 0;
    }
    int64_t up = room + (p->ceil_mode ? p->stride[d] - 1 : 0);
    int64_t n = up < 0 ? 0 : up / p->stride[d] + 1;
    if (p->ceil_mode && (n - 1) * p->stride[d] >= (int64_t)size + p->padding[d]) {
        n--; // the last window would start in the padding behind the input
    }
    return n;
}

static span taps_inside(const pooling *p, uint32_t d, int32_t o, int32_t size) {
    int32_t dilation = p->dilation[d], taps = p->kernel[d];
    int32_t first = o * p->stride[d] - p->padding[d];
    if (first < 0) {
        int32_t outside = dilation == 1 ? -first : (-first + dilation - 1) / dilation;
        first += outside * dilation;
        taps -= outside;
    }
    int32_t room = size - first; // places from the first tap to the end
    room = room <= 0 ? 0 : dilation == 1 ? room : (room - 1) / dilation + 1;
    return (span){first, taps < room ? taps : room};
}

// ---- checks

static int check_image(pt_context *c, const pt_tensor *in, uint32_t dtypes) {
    if (in->rank != 3 && in->rank != 4) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input must have 3 or 4 dims");
    }
    if (in->sizes[in->rank - 2] == 0 || in->sizes[in->rank - 1] == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input must have height and width");
    }
    if (!pt_dtype_in(in->dtype, dtypes)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "no pooling of this dtype");
    }
    return PT_ERROR_OK;
}

static int expect_image(pt_context *c, const pt_tensor *in, const int32_t *size, pt_ref out) {
    int32_t sizes[4];
    for (uint32_t d = 0; d < in->rank; d++) {
        sizes[d] = d + 2 < in->rank ? in->sizes[d] : size[d + 2 - in->rank];
    }
    return pt_expect_sizes(c, out, in->rank, sizes);
}

static int check_windows(pt_context *c, const pooling *p, const pt_tensor *in, pt_ref out_arg) {
    int32_t size[2];
    for (uint32_t d = 0; d < 2; d++) {
        int32_t in_size = in->sizes[in->rank - 2 + d];
        int64_t reach = (int64_t)p->dilation[d] * (p->kernel[d] - 1) + 1;
        if (p->padding[d] > reach / 2) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "padding is above half the kernel");
        }
        int64_t n = count_windows(p, d, in_size);
        if (n < 1) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the kernel is larger than the input");
        }
        size[d] = (int32_t)n;
    }
    int error = expect_image(c, in, size, out_arg);
    if (error || pt_numel(in) == 0) {
        return error; // no window is computed, however many there are
    }
    for (uint32_t d = 0; d < 2; d++) {
        // Without dilation, half the kernel is the most that lies in the padding
        for (int32_t o = 0; p->dilation[d] > 1 && o < size[d]; o++) {
            if (taps_inside(p, d, o, in->sizes[in->rank - 2 + d]).taps < 1) {
                return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "a window lies in the padding alone");
            }
        }
    }
    return PT_ERROR_OK;
}

// ---- the walk over windows

static void image_strides(const pt_tensor *t, int32_t *strides) {
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
    image_strides(in, s->in_strides);
    image_strides(out, s->out_strides);
}

// Sets taps and offsets of the window at (y, x) of the output.
static void place_window(const planes *s, window *w, const int32_t *at, const span *spans) {
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

// float16 and bfloat16 as float32; double; and int64, whose quotient is cut
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

static int average(pt_context *c, const planes *s, const window *w) {
    return s->dtype == PT_DTYPE_FLOAT ? average_float(c, s, w) : average_any(c, s, w);
}

// avg_pool2d: (self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override,
// out)
static int avg_pool2d_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[AVG_POOL2D_SELF]);
    pt_tensor out = pt_get_tensor(c, args[AVG_POOL2D_OUT]);
    pooling p = {.ceil_mode = pt_get_bool(c, args[AVG_POOL2D_CEIL_MODE])};
    int error = check_image(c, &in, PT_DTYPES_FLOATING | 1 << PT_DTYPE_LONG);
    if (error) {
        return error;
    }
    error = read_pooling(c, args, &p);
    if (error) {
        return error;
    }
    if (!pt_is_none(args[AVG_POOL2D_DIVISOR_OVERRIDE]) &&
        pt_get_int(c, args[AVG_POOL2D_DIVISOR_OVERRIDE]) == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "divisor_override must not be 0");
    }
    error = pt_check_same_dtype(c, &out, &in);
    return error ? error : check_windows(c, &p, &in, args[AVG_POOL2D_OUT]);
}

// Taps of a window along a dim that lie in the input or in the padding around it.
static int32_t padded_taps(const pooling *p, uint32_t d, int32_t o, int32_t size) {
    int32_t room = size + 2 * p->padding[d] - o * p->stride[d];
    return p->kernel[d] < room ? p->kernel[d] : room;
}

static int avg_pool2d_run(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[AVG_POOL2D_SELF]);
    pt_tensor out = pt_get_tensor(c, args[AVG_POOL2D_OUT]);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    pooling p = {.ceil_mode = false};
    bool with_padding = pt_get_bool(c, args[AVG_POOL2D_COUNT_INCLUDE_PAD]);
    int64_t divisor = pt_is_none(args[AVG_POOL2D_DIVISOR_OVERRIDE])
                          ? 0
                          : pt_get_int(c, args[AVG_POOL2D_DIVISOR_OVERRIDE]);
    int error = read_pooling(c, args, &p);
    planes s;
    window w = {.dilation = {1, 1}};
    start_planes(&s, &in, &out);
    int32_t at[2];
    for (at[HEIGHT] = 0; at[HEIGHT] < s.out_size[HEIGHT]; at[HEIGHT]++) {
        for (at[WIDTH] = 0; at[WIDTH] < s.out_size[WIDTH]; at[WIDTH]++) {
            span spans[2];
            int64_t taps = 1;
            for (uint32_t d = 0; d < 2; d++) {
                spans[d] = taps_inside(&p, d, at[d], s.in_size[d]);
                taps *= with_padding ? padded_taps(&p, d, at[d], s.in_size[d]) : spans[d].taps;
            }
            place_window(&s, &w, at, spans);
            w.divisor = divisor ? divisor : taps;
            PT_TRY(average(c, &s, &w));
        }
    }
    return error;
}

const pt_kernel pt_aten_avg_pool2d_out = PT_KERNEL(avg_pool2d_check, avg_pool2d_run);

// _adaptive_avg_pool2d: (self, output_size, out)
static int adaptive_avg_pool2d_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[ADAPTIVE_AVG_POOL2D_SELF]);
    pt_tensor out = pt_get_tensor(c, args[ADAPTIVE_AVG_POOL2D_OUT]);
    int32_t size[2];
    int error = check_image(c, &in, PT_DTYPES_FLOATING);
    if (error) {
        return error;
    }
    if (pt_list_length(c, args[ADAPTIVE_AVG_POOL2D_OUTPUT_SIZE]) != 2 ||
        !read_pair(c, args[ADAPTIVE_AVG_POOL2D_OUTPUT_SIZE], NULL, 0, size)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "output_size must be two sizes");
    }
    error = pt_check_same_dtype(c, &out, &in);
    return error ? error : expect_image(c, &in, size, args[ADAPTIVE_AVG_POOL2D_OUT]);
}

// Window o of `count` that together cover `size`, as evenly as possible.
static span adaptive_span(int32_t o, int32_t count, int32_t size) {
    int64_t first = (int64_t)o * size / count;
    int64_t end = ((int64_t)(o + 1) * size + count - 1) / count;
    return (span){(int32_t)first, (int32_t)(end - first)};
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
        span spans[2] = {adaptive_span(at[HEIGHT], s.out_size[HEIGHT], s.in_size[HEIGHT])};
        for (at[WIDTH] = 0; at[WIDTH] < s.out_size[WIDTH]; at[WIDTH]++) {
            spans[WIDTH] = adaptive_span(at[WIDTH], s.out_size[WIDTH], s.in_size[WIDTH]);
            place_window(&s, &w, at, spans);
            w.divisor = (int64_t)spans[HEIGHT].taps * spans[WIDTH].taps;
            PT_TRY(average(c, &s, &w));
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten__adaptive_avg_pool2d_out =
    PT_KERNEL(adaptive_avg_pool2d_check, adaptive_avg_pool2d_run);

// ---- max

// Where the greatest element of a window is; a NaN counts as greater than all.
typedef struct greatest {
    int32_t offset; // from the first tap
    int32_t index;  // in the plane, from the first tap
} greatest;

static greatest greatest_float(const float *first, const window *w, int32_t index_row) {
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

static int greatest_any(pt_context *c, const planes *s, int32_t first, const window *w,
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

static int take_greatest(pt_context *c, const planes *s, const window *w) {
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
                best = greatest_float(first, w, index_row);
                ((float *)s->out)[to] = first[best.offset];
            } else {
                PT_TRY(greatest_any(c, s, plane, w, index_row, &best));
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
static int read_max_pooling(pt_context *c, const pt_ref *args, pooling *p) {
    p->ceil_mode = pt_get_bool(c, args[MAX_POOL2D_WITH_INDICES_CEIL_MODE]);
    int error = read_pooling(c, args, p);
    if (error == PT_ERROR_OK &&
        !read_pair(c, args[MAX_POOL2D_WITH_INDICES_DILATION], NULL, 1, p->dilation)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "dilation must be one or two steps");
    }
    return error;
}

static int max_pool2d_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[MAX_POOL2D_WITH_INDICES_SELF]);
    pt_tensor out = pt_get_tensor(c, args[MAX_POOL2D_WITH_INDICES_OUT]);
    pt_tensor indices = pt_get_tensor(c, args[MAX_POOL2D_WITH_INDICES_INDICES]);
    pooling p;
    int error = check_image(c, &in, PT_DTYPES_ALL);
    if (error) {
        return error;
    }
    error = read_max_pooling(c, args, &p);
    if (error) {
        return error;
    }
    error = pt_check_same_dtype(c, &out, &in);
    if (error) {
        return error;
    }
    if (indices.dtype != PT_DTYPE_LONG) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "indices must be int64");
    }
    error = check_windows(c, &p, &in, args[MAX_POOL2D_WITH_INDICES_OUT]);
    return error ? error : check_windows(c, &p, &in, args[MAX_POOL2D_WITH_INDICES_INDICES]);
}

static int max_pool2d_run(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[MAX_POOL2D_WITH_INDICES_SELF]);
    pt_tensor out = pt_get_tensor(c, args[MAX_POOL2D_WITH_INDICES_OUT]);
    pt_tensor indices = pt_get_tensor(c, args[MAX_POOL2D_WITH_INDICES_INDICES]);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    pooling p;
    int error = read_max_pooling(c, args, &p);
    planes s = {.indices = indices.data};
    start_planes(&s, &in, &out);
    image_strides(&indices, s.index_strides);
    window w = {.dilation = {p.dilation[HEIGHT], p.dilation[WIDTH]}};
    int32_t at[2];
    for (at[HEIGHT] = 0; at[HEIGHT] < s.out_size[HEIGHT]; at[HEIGHT]++) {
        span spans[2] = {taps_inside(&p, HEIGHT, at[HEIGHT], s.in_size[HEIGHT])};
        for (at[WIDTH] = 0; at[WIDTH] < s.out_size[WIDTH]; at[WIDTH]++) {
            spans[WIDTH] = taps_inside(&p, WIDTH, at[WIDTH], s.in_size[WIDTH]);
            place_window(&s, &w, at, spans);
            w.index_to = at[HEIGHT] * s.index_strides[2] + at[WIDTH] * s.index_strides[3];
            PT_TRY(take_greatest(c, &s, &w));
        }
    }
    return error;
}

const pt_kernel pt_aten_max_pool2d_with_indices_out = PT_KERNEL(max_pool2d_check, max_pool2d_run);
