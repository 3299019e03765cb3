// quantized_avg_pool2d and quantized_max_pool2d: int8, NHWC. Loops: arch/pools.h and
// arch/byte_rows.h; where the ISA has none, words of four channels or plain C.
#include "arch/byte_rows.h"
#include "arch/pools.h"
#include "core/generated/operator_arguments.h"
#include "cortex_m/quantized.h"
#include "portable/float_math.h"
#include <string.h>

typedef struct pooling {
    pt_image in, out;
    pt_window window;
    // average pooling
    int32_t zero_point;
    float scale;
    // max pooling
    pt_range range;
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

// Calls `pool` for every output pixel.
static int pooling_s8_run_windows(pooling *p, const pt_tensor *to,
                                  void (*pool)(pooling *, const pt_taps *, int8_t *)) {
    int32_t line = p->in.width * p->in.channels, batch = pt_numel(to) > 0 ? p->in.batch : 0;
    const int8_t *image = p->in.data;
    int8_t *out = to->data;
    for (int32_t n = 0; n < batch; n++, image += p->in.height * line) {
        for (int32_t i = 0; i < p->out.height; i++) {
            pt_span rows = pt_clip_window(&p->window, PT_HEIGHT, i, p->in.height);
            for (int32_t j = 0; j < p->out.width; j++, out += p->out.channels) {
                pt_span columns = pt_clip_window(&p->window, PT_WIDTH, j, p->in.width);
                pt_taps t = {image + rows.start * line + columns.start * p->in.channels, rows.taps,
                             columns.taps, p->in.channels, line};
                PT_TRY(pt_count_product(p->c, p->in.channels, 1 + t.rows * t.columns));
                p->error = PT_ERROR_OK;
                pool(p, &t, out);
                PT_TRY(p->error);
            }
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

static int32_t average_as_reference(pooling *p, const pt_taps *t, const int8_t *in) {
    float sum = 0;
    for (int32_t i = 0; i < t->rows; i++, in += t->row_step) {
        for (int32_t j = 0; j < t->columns;) {
            const int32_t end = t->columns - j < PIECE ? t->columns : j + PIECE;
            if (!pooling_s8_goes_on(p, end - j)) {
                return 0;
            }
            for (; j < end; j++) {
                sum += (float)(in[j * t->step] - p->zero_point) * p->scale;
            }
        }
    }
    float average = sum / (float)(t->rows * t->columns);
    return (int32_t)pt_rintf(average / p->scale) + p->zero_point;
}

// Averages n taps of one channel, at most MAX_TAPS, from the sum of their values plus 128.
static int8_t average_of(pooling *p, const pt_taps *t, const int8_t *in, uint32_t sum, uint32_t n) {
    const uint32_t doubled = 2 * sum + n, result = doubled / (2 * n);
    const uint32_t above = doubled - result * 2 * n, bound = bound_of(n);
    if (above <= bound || 2 * n - above <= bound) {
        return (int8_t)pt_clamp(average_as_reference(p, t, in), INT8_MIN, INT8_MAX);
    }
    return (int8_t)((int32_t)result - 128);
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

typedef uint32_t __attribute__((may_alias)) four_values;

// Sums four channels, as pairs of 16 bits; `in` and all steps are multiples of 4.
static void sum_four(const pt_taps *t, const int8_t *in, uint32_t *even, uint32_t *odd) {
    const uint32_t lower = 0x00FF00FF;
    uint32_t e = 0, o = 0;
    for (int32_t i = t->rows; i > 0; i--, in += t->row_step) {
        const int8_t *tap = in;
        for (int32_t j = t->columns; j > 0; j--, tap += t->step) {
            uint32_t values = *(const four_values *)(const void *)tap ^ 0x80808080;
            e += values & lower;
            o += values >> 8 & lower;
        }
    }
    *even = e;
    *odd = o;
}

// Averages with the SIMD loop of this ISA.
static void average_some(pooling *p, const pt_taps *t, int8_t *out) {
    int32_t channels = p->in.channels, n = PT_AVERAGES;
    for (int32_t o = 0; o < channels; o += n) {
        n = channels - o < n ? channels - o : n;
        uint32_t halves = pt_average_taps(t, o, n, out + o);
        for (int32_t i = 0; halves != 0; i++, halves >>= 1) {
            if (halves & 1) {
                int32_t result = average_as_reference(p, t, t->in + o + i);
                out[o + i] = (int8_t)pt_clamp(result, INT8_MIN, INT8_MAX);
            }
        }
    }
}

static void average_each(pooling *p, const pt_taps *t, int8_t *out) {
    int32_t o = 0, channels = p->in.channels;
    uint32_t n = (uint32_t)(t->rows * t->columns);
    if ((((uintptr_t)t->in | (uint32_t)channels) & 3) == 0) {
        for (; o < channels; o += 4) {
            const int8_t *in = t->in + o;
            uint32_t even, odd;
            sum_four(t, in, &even, &odd);
            out[o] = average_of(p, t, in, even & 0xFFFF, n);
            out[o + 1] = average_of(p, t, in + 1, odd & 0xFFFF, n);
            out[o + 2] = average_of(p, t, in + 2, even >> 16, n);
            out[o + 3] = average_of(p, t, in + 3, odd >> 16, n);
        }
    }
    for (; o < channels; o++) {
        out[o] = average_of(p, t, t->in + o, sum_of_taps(t, t->in + o), n);
    }
}

// Adds the values plus 128 of at most SHORT_TAPS taps to the sums of neighbouring channels: of up
// to PT_AVERAGES channels, of four if all addresses are multiples of 4, or of one.
enum { SHORT_TAPS = 255 };

static void add_sums(const pt_taps *t, int32_t n, uint32_t *sums) {
    if (PT_AVERAGES > 0) {
        pt_add_sums(t, n, sums);
    } else if (n == 4) {
        uint32_t even, odd;
        sum_four(t, t->in, &even, &odd);
        sums[0] += even & 0xFFFF;
        sums[1] += odd & 0xFFFF;
        sums[2] += even >> 16;
        sums[3] += odd >> 16;
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
static void average_large(pooling *p, const pt_taps *t, int8_t *out) {
    enum { MAX = PT_AVERAGES > 4 ? PT_AVERAGES : 4 };
    const int32_t taps = t->rows * t->columns, channels = p->in.channels;
    const bool by_four = PT_AVERAGES == 0 && (((uintptr_t)t->in | (uint32_t)channels) & 3) == 0;
    const int32_t max = PT_AVERAGES > 0 ? PT_AVERAGES : by_four ? 4 : 1;
    pt_taps some = *t;
    for (int32_t o = 0, n; o < channels && pooling_s8_goes_on(p, taps); o += n, some.in += n) {
        uint32_t sums[MAX] = {0};
        n = channels - o < max ? channels - o : max;
        pooling_s8_sum_window(&some, n, sums);
        for (int32_t i = 0; i < n; i++) {
            out[o + i] = average_of(p, t, some.in + i, sums[i], (uint32_t)taps);
        }
    }
}

static void pooling_s8_average(pooling *p, const pt_taps *t, int8_t *out) {
    int32_t n = t->rows * t->columns, channels = p->in.channels;
    if (n == 0) {
        memset(out, p->zero_point, (size_t)channels);
    } else if (n > MAX_TAPS) {
        for (int32_t o = 0; o < channels && !p->error; o++) {
            int32_t result = average_as_reference(p, t, t->in + o);
            out[o] = (int8_t)pt_clamp(result, INT8_MIN, INT8_MAX);
        }
    } else if (n > EXACT_TAPS) {
        average_large(p, t, out);
    } else if (PT_AVERAGES > 0) {
        average_some(p, t, out);
    } else {
        average_each(p, t, out);
    }
}

static int read_average(pt_context *c, const pt_ref *args, bool explicit_layout, pooling *p) {
    int32_t multiplier, shift;
    PT_TRY(read_pooling(c, args, explicit_layout, p));
    PT_TRY(
        pt_read_int(c, args[QUANTIZED_AVG_POOL2D_ZERO_POINT], INT8_MIN, INT8_MAX, &p->zero_point));
    PT_TRY(pt_read_int(c, args[QUANTIZED_AVG_POOL2D_MULTIPLIER], 1, INT32_MAX, &multiplier));
    PT_TRY(pt_read_int(c, args[QUANTIZED_AVG_POOL2D_SHIFT], -62, 31, &shift));
    p->scale = pt_real_multiplier(multiplier, shift);
    pooling_s8_count_outputs(p, pt_get_bool(c, args[QUANTIZED_AVG_POOL2D_CEIL_MODE]));
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

static void maximum(pooling *p, const pt_taps *t, int8_t *out) {
    int32_t o = 0, channels = p->in.channels;
    for (int32_t n; PT_MAXIMA > 0 && channels - o >= PT_FEWEST_MAXIMA; o += n) {
        n = channels - o < PT_MAXIMA ? channels - o : PT_MAXIMA;
        pt_max_taps(t, o, n, out + o);
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
    if (pt_narrows(&p->range)) {
        pt_clamp_row((int8_t)p->range.min, (int8_t)p->range.max, out, out, channels);
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
