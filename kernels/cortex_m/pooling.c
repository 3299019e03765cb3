// quantized_avg_pool2d and quantized_max_pool2d: int8, NHWC. Loops: arch/pools.h and
// arch/byte_rows.h.
#include "arch/byte_rows.h"
#include "arch/pools.h"
#include "arch/scale.h"
#include "core/generated/operator_arguments.h"
#include "cortex_m/quantized.h"
#include "portable/float_bits.h"
#include <string.h>

typedef struct pooling {
    pt_image in, out;
    pt_window window;
    // average pooling
    int32_t zero_point;
    float scale;
    pt_average average; // of the last window
    // max pooling
    pt_range range;
    int32_t pixel_step; // bytes from window to window
    pt_context *c;
    int error; // error of a poll; outputs computed since are void
} pooling;

static bool pooling_s8_goes_on(pooling *p, int32_t steps) {
    p->error = pt_count_work(p->c, steps);
    return p->error == PT_ERROR_OK;
}

// Reads image, kernel_size, stride and padding, the first arguments.
static int read_pooling(pt_context *c, const pt_ref *args, bool explicit_layout, pooling *p) {
    pt_window *w = &p->window;
    p->c = c;
    PT_TRY(pt_read_image(c, args[QUANTIZED_AVG_POOL2D_INPUT], explicit_layout, &p->in));
    PT_TRY(pt_read_pair(c, args[QUANTIZED_AVG_POOL2D_KERNEL_SIZE], 1, w->kernel));
    PT_TRY(pt_read_pair(c, args[QUANTIZED_AVG_POOL2D_STRIDE], 1, w->stride));
    PT_TRY(pt_read_pair(c, args[QUANTIZED_AVG_POOL2D_PADDING], 0, w->padding));
    w->dilation[PT_HEIGHT] = w->dilation[PT_WIDTH] = 1;
    if ((w->padding[PT_HEIGHT] > w->kernel[PT_HEIGHT] / 2 ||
         w->padding[PT_WIDTH] > w->kernel[PT_WIDTH] / 2)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "padding must be at most half the kernel");
    }
    return PT_ERROR_OK;
}

// In ceil mode a last window may reach beyond the padding, if it starts before it.
static int32_t pooling_s8_count_windows(const pooling *p, uint32_t d, int32_t size,
                                        bool ceil_mode) {
    const pt_window *w = &p->window;
    int64_t slack = size + 2 * (int64_t)w->padding[d] - w->kernel[d];
    if (!ceil_mode) {
        return pt_count_windows(w, d, size);
    }
    slack += w->stride[d] - 1;
    int64_t n = pt_count_steps(slack, w->stride[d]);
    return (int32_t)((n - 1) * w->stride[d] >= size + w->padding[d] ? n - 1 : n);
}

static void pooling_s8_count_outputs(pooling *p, bool ceil_mode) {
    p->out = (pt_image){
        NULL, p->in.batch, pooling_s8_count_windows(p, PT_HEIGHT, p->in.height, ceil_mode),
        pooling_s8_count_windows(p, PT_WIDTH, p->in.width, ceil_mode), p->in.channels};
}

// Pools `pixels` neighbouring outputs, whose windows have equally many taps; t: of the first.
typedef void pool_pixels(pooling *p, pt_taps *t, int32_t pixels, int8_t *out);

// Returns the number of outputs from j on whose windows lie in the input, along the width; 0 if the
// first does not.
static int32_t count_inside(const pooling *p, int32_t j) {
    const int32_t stride = p->window.stride[PT_WIDTH];
    const int32_t start = j * stride - p->window.padding[PT_WIDTH];
    const int32_t slack = p->in.width - p->window.kernel[PT_WIDTH] - start;
    const int32_t left = p->out.width - j;
    if (start < 0 || slack < 0) {
        return 0;
    }
    return slack / stride + 1 < left ? slack / stride + 1 : left;
}

// Pools a row of outputs, from the rows of an image that begin at `line`.
static int pool_row(pooling *p, pt_taps *t, const int8_t *line, int32_t steps, pool_pixels *pool,
                    int8_t *out) {
    const int32_t max = steps < PT_POLL_WORK ? PT_POLL_WORK / steps : 1;
    for (int32_t j = 0, n; j < p->out.width; j += n, out += n * p->out.channels) {
        const pt_span columns = pt_clip_window(&p->window, PT_WIDTH, j, p->in.width);
        n = count_inside(p, j);
        n = n < 1 ? 1 : n < max ? n : max;
        t->in = line + columns.start * p->in.channels;
        t->columns = columns.taps;
        PT_TRY(pt_count_product(p->c, n, steps));
        p->error = PT_ERROR_OK;
        pool(p, t, n, out);
        PT_TRY(p->error);
    }
    return PT_ERROR_OK;
}

static int pooling_s8_run_windows(pooling *p, const pt_tensor *to, pool_pixels *pool) {
    const int32_t *kernel = p->window.kernel;
    const int32_t height = kernel[PT_HEIGHT] < p->in.height ? kernel[PT_HEIGHT] : p->in.height;
    const int32_t width = kernel[PT_WIDTH] < p->in.width ? kernel[PT_WIDTH] : p->in.width;
    const int32_t steps = (1 + height * width) * p->in.channels; // of an output, at most
    const int32_t line = p->in.width * p->in.channels, batch = pt_numel(to) > 0 ? p->in.batch : 0;
    const int8_t *image = p->in.data;
    int8_t *out = to->data;
    p->pixel_step = p->out.width > 1 ? p->window.stride[PT_WIDTH] * p->in.channels : 0;
    for (int32_t n = 0; n < batch; n++, image += p->in.height * line) {
        for (int32_t i = 0; i < p->out.height; i++, out += p->out.width * p->out.channels) {
            const pt_span rows = pt_clip_window(&p->window, PT_HEIGHT, i, p->in.height);
            pt_taps t = {NULL, rows.taps, 0, p->in.channels, line};
            PT_TRY(pool_row(p, &t, image + rows.start * line, steps, pool, out));
        }
    }
    return PT_ERROR_OK;
}

// ---- average

// The reference computes in float32: it dequantizes, averages and quantizes. That is the integer
// nearest to the exact average, unless the average lies so near to half-way between two integers
// that rounding errors decide. Each of the n taps is at most 255 from the zero point; a product and
// each sum round once, two quotients do at the end: by n + 2 roundings the result is off by at most
// 255 * (n + 2) / (1 - (n + 2) / 2^24) / 2^24. In windows of at most EXACT_TAPS this is less than
// from half-way to the next average, and above MAX_TAPS errors could decide everywhere.
enum { EXACT_TAPS = 128, MAX_TAPS = 1 << 15 };

// Twice n times the largest rounding error of the reference, rounded down.
static uint32_t bound_of(uint32_t n) {
    return (uint32_t)((uint64_t)(n + 2 + n / 256) * n * 510 >> 24);
}

enum { PIECE = 1 << 12 }; // taps between two polls

// Adds (x - zero_point) * scale of the taps of one channel to a sum in float32, tap by tap.
static inline float add_tap_by_tap(const pt_taps *t, const int8_t *row, int32_t zero_point,
                                   float scale, float sum) {
    for (int32_t i = t->rows; i > 0; i--, row += t->row_step) {
        const int8_t *tap = row;
        for (int32_t j = t->columns; j > 0; j--, tap += t->step) {
            sum += (float)(*tap - zero_point) * scale;
        }
    }
    return sum;
}

// The same, with polls.
static __attribute__((noinline)) float sum_in_pieces(pooling *p, const pt_taps *t,
                                                     const int8_t *in) {
    float sum = 0;
    pt_taps part = {NULL, 1, 0, t->step, 0};
    for (int32_t i = 0; i < t->rows; i++, in += t->row_step) {
        for (int32_t j = 0; j < t->columns; j += part.columns) {
            part.columns = t->columns - j < PIECE ? t->columns - j : PIECE;
            if (!pooling_s8_goes_on(p, part.columns)) {
                return 0;
            }
            sum = add_tap_by_tap(&part, in + j * t->step, p->zero_point, p->scale, sum);
        }
    }
    return sum;
}

// Averages the channels from `o` on that have a bit, each PT_HALF_BITS, in floats. An average is of
// int8 values, so adding 1.5 * 2^23 rounds it to an integer. Not inlined, so that the floats are in
// flash once.
static __attribute__((noinline)) void average_by_floats(pooling *p, const pt_taps *t, uint32_t bits,
                                                        int32_t o, int8_t *out) {
    const float zero = 0x1.8p+23f;
    const int32_t taps = t->rows * t->columns, zero_point = p->zero_point;
    const float scale = p->scale, divisor = (float)taps;
    while (bits != 0) {
        const uint32_t i = pt_highest_bit(bits) / PT_HALF_BITS;
        const int8_t *in = t->in + o + (int32_t)i;
        const float sum =
            taps > PIECE ? sum_in_pieces(p, t, in) : add_tap_by_tap(t, in, zero_point, scale, 0);
        const uint32_t average = to_bits(sum / divisor / scale + zero) - to_bits(zero);
        out[i] = (int8_t)pt_saturate_int8((int32_t)average + zero_point);
        bits &= (1u << i * PT_HALF_BITS) - 1;
    }
}

// Averages n taps of channel `o`, at most MAX_TAPS, from the sum of their values plus 128.
static void average_channel(pooling *p, const pt_taps *t, int32_t o, uint32_t sum, uint32_t n,
                            int8_t *out) {
    const uint32_t doubled = 2 * sum + n, result = doubled / (2 * n);
    const uint32_t above = doubled - result * 2 * n, bound = bound_of(n);
    *out = (int8_t)((int32_t)result - 128);
    if ((above <= bound || 2 * n - above <= bound) && pooling_s8_goes_on(p, (int32_t)n)) {
        average_by_floats(p, t, 1, o, out);
    }
}

static uint32_t sum_of_taps(const pt_taps *t, const int8_t *in) {
    uint32_t sum = 0;
    for (int32_t i = t->rows; i > 0; i--, in += t->row_step) {
        const int8_t *tap = in;
        for (int32_t j = t->columns; j > 0; j--, tap += t->step) {
            sum += (uint32_t)(*tap + 128);
        }
    }
    return sum;
}

// Computes again the averages from channel `o` on that lie half-way. Not inlined, so that the loop
// of averages has all registers.
static __attribute__((noinline)) void settle_halves(pooling *p, const pt_taps *t, uint32_t halves,
                                                    int32_t o, int8_t *out) {
    if (PT_SETTLES_HALVES) {
        pt_settle_halves(t, halves, o, p->zero_point, p->scale, out);
    } else {
        average_by_floats(p, t, halves, o, out);
    }
}

// Averages windows of at most EXACT_TAPS.
static __attribute__((noinline)) void average_small(pooling *p, pt_taps *t, int32_t pixels,
                                                    int8_t *out) {
    const int32_t channels = p->in.channels;
    const pt_average a = p->average;
    for (; pixels > 0; pixels--, t->in += p->pixel_step) {
        for (int32_t o = 0, n; o < channels; o += n, out += n) {
            uint32_t halves;
            n = channels - o < PT_AVERAGES ? channels - o : PT_AVERAGES;
            if (n >= PT_FEWEST_CHANNELS) {
                halves = pt_average_taps(t, &a, o, &n, out);
            } else {
                uint32_t rest;
                n = 1;
                *out = (int8_t)(pt_round_average(a, sum_of_taps(t, t->in + o), &rest) - 128);
                halves = rest == 0;
            }
            if (halves != 0) {
                settle_halves(p, t, halves, o, out);
            }
        }
    }
}

enum { SHORT_TAPS = 255 };

// Adds the values plus 128 of at most SHORT_TAPS taps to the sums of n channels, at most PT_SUMS.
static void add_sums(const pt_taps *t, int32_t n, uint32_t *sums) {
    if (n >= PT_FEWEST_CHANNELS) {
        pt_add_sums(t, n, sums);
    } else {
        sums[0] += sum_of_taps(t, t->in);
    }
}

// The same for a window of any size, by some of its rows at a time, or parts of a row.
static void pooling_s8_sum_window(const pt_taps *t, int32_t n, uint32_t *sums) {
    const int32_t columns = t->columns < SHORT_TAPS ? t->columns : SHORT_TAPS;
    const int32_t rows = SHORT_TAPS / columns;
    pt_taps part = *t;
    for (int32_t i = 0; i < t->rows; i += rows) {
        part.rows = t->rows - i < rows ? t->rows - i : rows;
        for (int32_t j = 0; j < t->columns; j += columns) {
            part.columns = t->columns - j < columns ? t->columns - j : columns;
            part.in = t->in + i * t->row_step + j * t->step;
            add_sums(&part, n, sums);
        }
    }
}

// Averages windows of EXACT_TAPS to MAX_TAPS.
static __attribute__((noinline)) void average_large(pooling *p, const pt_taps *t, int8_t *out) {
    const int32_t taps = t->rows * t->columns, channels = p->in.channels;
    pt_taps some = *t;
    for (int32_t o = 0, n; o < channels && pooling_s8_goes_on(p, taps); o += n, some.in += n) {
        uint32_t sums[PT_SUMS] = {0};
        n = channels - o < PT_SUMS ? channels - o : PT_SUMS;
        n = n < PT_FEWEST_CHANNELS ? 1 : n;
        pooling_s8_sum_window(&some, n, sums);
        for (int32_t i = 0; i < n; i++) {
            average_channel(p, t, o + i, sums[i], (uint32_t)taps, out + o + i);
        }
    }
}

static void pooling_s8_average(pooling *p, pt_taps *t, int32_t pixels, int8_t *out) {
    const int32_t n = t->rows * t->columns, channels = p->in.channels;
    if (n > EXACT_TAPS) {
        for (; pixels > 0 && !p->error; pixels--, t->in += p->pixel_step, out += channels) {
            if (n <= MAX_TAPS) {
                average_large(p, t, out);
                continue;
            }
            for (int32_t o = 0; o < channels && !p->error; o++) {
                average_by_floats(p, t, 1, o, out + o);
            }
        }
        return;
    }
    if (n == 0) {
        memset(out, p->zero_point, (size_t)(pixels * channels));
        return;
    }
    if (p->average.twice != 2 * (uint32_t)n) {
        p->average = pt_average_over((uint32_t)n);
    }
    average_small(p, t, pixels, out);
}

static int read_average(pt_context *c, const pt_ref *args, bool explicit_layout, pooling *p) {
    int32_t multiplier, shift;
    PT_TRY(read_pooling(c, args, explicit_layout, p));
    PT_TRY(
        pt_read_int(c, args[QUANTIZED_AVG_POOL2D_ZERO_POINT], INT8_MIN, INT8_MAX, &p->zero_point));
    PT_TRY(pt_read_int(c, args[QUANTIZED_AVG_POOL2D_MULTIPLIER], 1, INT32_MAX, &multiplier));
    PT_TRY(pt_read_int(c, args[QUANTIZED_AVG_POOL2D_SHIFT], -62, 31, &shift));
    p->scale = pt_real_multiplier(multiplier, shift);
    p->average.twice = 0;
    const pt_ref ceil_mode = args[QUANTIZED_AVG_POOL2D_CEIL_MODE];
    pooling_s8_count_outputs(p, !pt_is_none(ceil_mode) && pt_get_bool(c, ceil_mode));
    return PT_ERROR_OK;
}

static int check_average(pt_context *c, const pt_ref *args, bool explicit_layout) {
    pooling p;
    PT_TRY(read_average(c, args, explicit_layout, &p));
    return pt_expect_image(c, args[QUANTIZED_AVG_POOL2D_OUT], explicit_layout, &p.out);
}

static int run_average(pt_context *c, const pt_ref *args, bool explicit_layout) {
    pooling p;
    PT_TRY(read_average(c, args, explicit_layout, &p));
    pt_tensor out = pt_get_tensor(c, args[QUANTIZED_AVG_POOL2D_OUT]);
    return pooling_s8_run_windows(&p, &out, pooling_s8_average);
}

static int avg_check(pt_context *c, const pt_ref *args) {
    return check_average(c, args, false);
}

static int avg_run(pt_context *c, const pt_ref *args) {
    return run_average(c, args, false);
}

static int avg_nhwc_check(pt_context *c, const pt_ref *args) {
    return check_average(c, args, true);
}

static int avg_nhwc_run(pt_context *c, const pt_ref *args) {
    return run_average(c, args, true);
}

const pt_kernel pt_cortex_m_quantized_avg_pool2d_out = PT_KERNEL(avg_check, avg_run);
const pt_kernel pt_cortex_m_quantized_avg_pool2d_nhwc_out = PT_KERNEL(avg_nhwc_check, avg_nhwc_run);

// ---- max

// Computes the maxima of one window.
static inline void max_window(const pt_taps *t, int32_t channels, int8_t *out) {
    int32_t o = 0;
    for (int32_t n; PT_MAXIMA > 0 && channels - o >= PT_FEWEST_CHANNELS; o += n) {
        n = channels - o < PT_MAXIMA ? channels - o : PT_MAXIMA;
        n = pt_max_taps(t, o, n, out + o);
    }
    for (; o < channels; o++) {
        int32_t max = INT8_MIN;
        const int8_t *in = t->in + o;
        for (int32_t i = t->rows; i > 0; i--, in += t->row_step) {
            const int8_t *tap = in;
            for (int32_t j = t->columns; j > 0; j--, tap += t->step) {
                max = *tap > max ? *tap : max;
            }
        }
        out[o] = (int8_t)max;
    }
}

static void maximum(pooling *p, pt_taps *t, int32_t pixels, int8_t *out) {
    const int32_t channels = p->in.channels;
    int8_t *to = out;
    for (int32_t i = pixels; i > 0; i--, t->in += p->pixel_step, to += channels) {
        max_window(t, channels, to);
    }
    if (pt_narrows(&p->range)) {
        pt_clamp_row((int8_t)p->range.min, (int8_t)p->range.max, out, out, pixels * channels);
    }
}

static int read_max(pt_context *c, const pt_ref *args, bool explicit_layout, pooling *p) {
    int32_t dilation[2];
    PT_TRY(read_pooling(c, args, explicit_layout, p));
    PT_TRY(pt_read_pair(c, args[QUANTIZED_MAX_POOL2D_DILATION], 1, dilation));
    PT_TRY(pt_read_activation(c, args[QUANTIZED_MAX_POOL2D_ACTIVATION_MIN],
                              args[QUANTIZED_MAX_POOL2D_ACTIVATION_MAX], &p->range));
    if (dilation[PT_HEIGHT] != 1 || dilation[PT_WIDTH] != 1 ||
        pt_get_bool(c, args[QUANTIZED_MAX_POOL2D_CEIL_MODE])) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "max pooling has no dilation and no ceil_mode");
    }
    if (pt_get_int(c, args[QUANTIZED_MAX_POOL2D_INPUT_ZERO_POINT]) !=
        pt_get_int(c, args[QUANTIZED_MAX_POOL2D_OUTPUT_ZERO_POINT])) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the zero points of in and out must be equal");
    }
    pooling_s8_count_outputs(p, false);
    return PT_ERROR_OK;
}

static int check_max(pt_context *c, const pt_ref *args, bool explicit_layout) {
    pooling p;
    PT_TRY(read_max(c, args, explicit_layout, &p));
    return pt_expect_image(c, args[QUANTIZED_MAX_POOL2D_OUT], explicit_layout, &p.out);
}

static int run_max(pt_context *c, const pt_ref *args, bool explicit_layout) {
    pooling p;
    PT_TRY(read_max(c, args, explicit_layout, &p));
    pt_tensor out = pt_get_tensor(c, args[QUANTIZED_MAX_POOL2D_OUT]);
    return pooling_s8_run_windows(&p, &out, maximum);
}

static int max_check(pt_context *c, const pt_ref *args) {
    return check_max(c, args, false);
}

static int max_run(pt_context *c, const pt_ref *args) {
    return run_max(c, args, false);
}

static int max_nhwc_check(pt_context *c, const pt_ref *args) {
    return check_max(c, args, true);
}

static int max_nhwc_run(pt_context *c, const pt_ref *args) {
    return run_max(c, args, true);
}

const pt_kernel pt_cortex_m_quantized_max_pool2d_out = PT_KERNEL(max_check, max_run);
const pt_kernel pt_cortex_m_quantized_max_pool2d_nhwc_out = PT_KERNEL(max_nhwc_check, max_nhwc_run);
