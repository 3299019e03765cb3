// aten::convolution: 1-d and 2-d, in any dim order, and slices of 3-d convolutions.
#include "portable/convolution.h"
#include "core/generated/operator_arguments.h"
#include "portable/products.h"

// The functions are not inlined, so that their stack frames are not live together.
#define NOINLINE __attribute__((noinline))

// Strides, paddings and dilations stay below this limit, so that positions fit in 32 bits.
#define PARAMETER_LIMIT (1 << 24)

// Returns item `i` of a list with one item for all spatial dims or one for each; an empty list
// means `missing`.
static int64_t conv_parameter(const pt_context *c, pt_ref list, uint32_t i, int32_t missing) {
    const uint32_t length = pt_list_length(c, list);
    return length == 0 ? missing : pt_list_int(c, list, length == 1 ? 0 : i);
}

static void conv_read_axis(const pt_context *c, const pt_ref *args, uint32_t i, pt_axis *x) {
    x->stride = (int32_t)conv_parameter(c, args[CONVOLUTION_STRIDE], i, 1);
    x->padding = (int32_t)conv_parameter(c, args[CONVOLUTION_PADDING], i, 0);
    x->dilation = (int32_t)conv_parameter(c, args[CONVOLUTION_DILATION], i, 1);
}

// The weights of a group: (out, in / groups, ...), or (in, out / groups, ...) if transposed.
NOINLINE bool pt_read_convolution(const pt_context *c, const pt_ref *args, bool transposed,
                                  pt_aten_convolution *v) {
    const pt_tensor in = pt_get_tensor(c, args[CONVOLUTION_INPUT]);
    const pt_tensor weight = pt_get_tensor(c, args[CONVOLUTION_WEIGHT]);
    const pt_tensor out = pt_get_tensor(c, args[CONVOLUTION_OUT]);
    if (pt_numel(&out) == 0) {
        return false;
    }
    v->in = in.data;
    v->weight = weight.data;
    v->bias =
        pt_is_none(args[CONVOLUTION_BIAS]) ? NULL : pt_get_tensor(c, args[CONVOLUTION_BIAS]).data;
    v->out = out.data;
    v->dtype = in.dtype;
    v->transposed = transposed;
    v->to_float = false;
    v->groups = (int32_t)pt_get_int(c, args[CONVOLUTION_GROUPS]);
    v->batch = in.sizes[0];
    v->in_channels = in.sizes[1] / v->groups;
    v->out_channels = out.sizes[1] / v->groups;

    int32_t in_steps[5], weight_steps[5], out_steps[5];
    pt_strides(&in, in_steps);
    pt_strides(&weight, weight_steps);
    pt_strides(&out, out_steps);
    v->in_batch_step = in_steps[0];
    v->in_channel_step = in_steps[1];
    v->out_batch_step = out_steps[0];
    v->out_channel_step = out_steps[1];
    v->weight_out_step = weight_steps[v->transposed];
    v->weight_in_step = weight_steps[!v->transposed];
    v->weight_group_step =
        v->transposed ? v->in_channels * v->weight_in_step : v->out_channels * v->weight_out_step;

    const uint32_t dims = in.rank - 2u;
    v->axes[PT_AXIS_HEIGHT] = (pt_axis){.in = 1, .kernel = 1, .out = 1, .stride = 1, .dilation = 1};
    for (uint32_t i = 0; i < dims; i++) {
        pt_axis *x = &v->axes[i + 3 - dims];
        conv_read_axis(c, args, i, x);
        x->in = in.sizes[i + 2];
        x->kernel = weight.sizes[i + 2];
        x->out = out.sizes[i + 2];
        x->in_step = in_steps[i + 2];
        x->kernel_step = weight_steps[i + 2];
        x->out_step = out_steps[i + 2];
    }
    return true;
}

// ---- check

static int conv_check_tensors(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[CONVOLUTION_INPUT]);
    const pt_tensor weight = pt_get_tensor(c, args[CONVOLUTION_WEIGHT]);
    const pt_tensor out = pt_get_tensor(c, args[CONVOLUTION_OUT]);
    if (weight.rank != in.rank || out.rank != in.rank) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "weight and output need the input's rank");
    }
    if (!pt_can_sum_products(in.dtype)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "no convolution of this dtype");
    }
    if (weight.dtype != in.dtype || out.dtype != in.dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "weight and output need the input's dtype");
    }
    return PT_ERROR_OK;
}

// Checks that all items of a list of parameters lie in `min`..PARAMETER_LIMIT.
static int check_parameters(pt_context *c, pt_ref list, uint32_t dims, int32_t min) {
    const uint32_t length = pt_list_length(c, list);
    if (length > 1 && length != dims) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "a list of a convolution has one item, or one for each spatial dim");
    }
    for (uint32_t i = 0; i < length; i++) {
        const int64_t item = pt_list_int(c, list, i);
        if (item < min || item >= PARAMETER_LIMIT) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                           "stride, padding, dilation or output padding is out of range");
        }
    }
    return PT_ERROR_OK;
}

static int check_lists(pt_context *c, const pt_ref *args, uint32_t dims) {
    static const uint8_t lists[] = {CONVOLUTION_STRIDE, CONVOLUTION_PADDING, CONVOLUTION_DILATION,
                                    CONVOLUTION_OUTPUT_PADDING};
    static const uint8_t min[] = {1, 0, 1, 0};
    for (uint32_t i = 0; i < sizeof lists; i++) {
        PT_TRY(check_parameters(c, args[lists[i]], dims, min[i]));
    }
    return PT_ERROR_OK;
}

// Checks that the channels of input, weight and bias match; sets *out_channels.
static int conv_check_channels(pt_context *c, const pt_ref *args, int32_t *out_channels) {
    const pt_tensor in = pt_get_tensor(c, args[CONVOLUTION_INPUT]);
    const pt_tensor weight = pt_get_tensor(c, args[CONVOLUTION_WEIGHT]);
    const bool transposed = pt_get_bool(c, args[CONVOLUTION_TRANSPOSED]);
    const int64_t groups = pt_get_int(c, args[CONVOLUTION_GROUPS]);
    const int32_t weight_in = weight.sizes[!transposed];
    const int32_t weight_out = weight.sizes[transposed];
    if (groups < 1 || groups > INT32_MAX ||
        (transposed ? weight_in : weight_out) % (int32_t)groups != 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the groups do not divide the channels");
    }
    const int64_t in_channels = transposed ? weight_in : weight_in * groups;
    const int64_t channels = transposed ? weight_out * groups : weight_out;
    if (in.sizes[1] != in_channels || channels > INT32_MAX) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the weight does not fit the input channels");
    }
    *out_channels = (int32_t)channels;
    if (pt_is_none(args[CONVOLUTION_BIAS])) {
        return PT_ERROR_OK;
    }
    const pt_tensor bias = pt_get_tensor(c, args[CONVOLUTION_BIAS]);
    if (bias.rank != 1 || bias.sizes[0] != *out_channels || bias.dtype != in.dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "the bias has one number for each output channel, of the input's dtype");
    }
    return PT_ERROR_OK;
}

// Returns the output size along spatial dim i; below 0 if the kernel is larger than the input.
static int64_t out_size(const pt_context *c, const pt_ref *args, uint32_t i, bool transposed) {
    const int64_t in = pt_get_tensor(c, args[CONVOLUTION_INPUT]).sizes[i + 2];
    const int64_t kernel = pt_get_tensor(c, args[CONVOLUTION_WEIGHT]).sizes[i + 2];
    const int64_t stride = conv_parameter(c, args[CONVOLUTION_STRIDE], i, 1);
    const int64_t padding = conv_parameter(c, args[CONVOLUTION_PADDING], i, 0);
    const int64_t reach = conv_parameter(c, args[CONVOLUTION_DILATION], i, 1) * (kernel - 1);
    if (transposed) {
        return (in - 1) * stride - 2 * padding + reach +
               conv_parameter(c, args[CONVOLUTION_OUTPUT_PADDING], i, 0) + 1;
    }
    const int64_t slack = in + 2 * padding - reach - 1;
    return slack < 0 ? -1 : slack / stride + 1;
}

static int check_output_padding(pt_context *c, const pt_ref *args, uint32_t i) {
    const int64_t padding = conv_parameter(c, args[CONVOLUTION_OUTPUT_PADDING], i, 0);
    if (padding >= conv_parameter(c, args[CONVOLUTION_STRIDE], i, 1) &&
        padding >= conv_parameter(c, args[CONVOLUTION_DILATION], i, 1)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "output padding must be smaller than stride or dilation");
    }
    return PT_ERROR_OK;
}

static int check_out(pt_context *c, const pt_ref *args, int32_t out_channels, int32_t *sizes) {
    const pt_tensor in = pt_get_tensor(c, args[CONVOLUTION_INPUT]);
    const pt_tensor weight = pt_get_tensor(c, args[CONVOLUTION_WEIGHT]);
    const bool transposed = pt_get_bool(c, args[CONVOLUTION_TRANSPOSED]);
    sizes[0] = in.sizes[0];
    sizes[1] = out_channels;
    for (uint32_t i = 0; i < in.rank - 2u; i++) {
        PT_TRY(transposed ? check_output_padding(c, args, i) : PT_ERROR_OK);
        const int64_t size = out_size(c, args, i, transposed);
        if (weight.sizes[i + 2] < 1 || size < 0 || size > INT32_MAX) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                           "the kernel is empty or larger than the padded input");
        }
        sizes[i + 2] = (int32_t)size;
    }
    return pt_expect_sizes(c, args[CONVOLUTION_OUT], in.rank, sizes);
}

int pt_check_convolution(pt_context *c, const pt_ref *args, int32_t *sizes) {
    int32_t out_channels = 0;
    PT_TRY(conv_check_tensors(c, args));
    PT_TRY(check_lists(c, args, pt_get_tensor(c, args[CONVOLUTION_INPUT]).rank - 2u));
    PT_TRY(conv_check_channels(c, args, &out_channels));
    return check_out(c, args, out_channels, sizes);
}

static int conv_check_convolution(pt_context *c, const pt_ref *args) {
    const uint8_t rank = pt_get_tensor(c, args[CONVOLUTION_INPUT]).rank;
    if (rank != 3 && rank != 4) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                       rank == 5 ? "this build has no 3-d convolutions; use a build for this model"
                                 : "the input of a convolution has 3 to 5 dims");
    }
    int32_t sizes[4];
    return pt_check_convolution(c, args, sizes);
}

// ---- run

static int32_t ceil_divide(int32_t a, int32_t b) {
    return (a + b - 1) / b;
}

// Returns the segment that starts at output `o`.
static pt_segment forward_segment(const pt_axis *x, int32_t o) {
    const int32_t start = o * x->stride - x->padding;
    const int32_t left = start < 0 ? ceil_divide(-start, x->dilation) : 0;
    const int32_t slack = start < x->in ? ceil_divide(x->in - start, x->dilation) : 0;
    const int32_t end = slack < x->kernel ? slack : x->kernel;
    pt_segment s = {.start = o, .length = 1};
    if (left < end) {
        s.taps = end - left;
        s.kernel = left;
        s.in = start + left * x->dilation;
    }
    if (s.taps > 1) {
        s.kernel_step = 1;
        s.in_step = x->dilation;
    }
    if (s.taps == x->kernel) {
        const int32_t last_start = x->in - 1 - (x->kernel - 1) * x->dilation;
        s.length += (last_start - start) / x->stride;
        if (s.length > x->out - o) {
            s.length = x->out - o;
        }
    }
    return s;
}

// Returns the segment of the single output `o` of a transposed convolution: kernel position k sees
// input i where o + padding = i * stride + k * dilation.
static pt_segment transposed_segment(const pt_axis *x, int32_t o) {
    pt_segment s = {.start = o, .length = 1};
    for (int32_t k = 0; k < x->kernel; k++) {
        const int32_t position = o + x->padding - k * x->dilation;
        if (position < 0 || position % x->stride != 0 || position / x->stride >= x->in) {
            continue;
        }
        if (s.taps == 0) {
            s.kernel = k;
            s.in = position / x->stride;
        } else if (s.taps == 1) {
            s.kernel_step = k - s.kernel;
            s.in_step = position / x->stride - s.in;
        }
        s.taps++;
    }
    return s;
}

NOINLINE void pt_find_taps(const pt_aten_convolution *v, uint32_t i, int32_t o, pt_segment *s) {
    if (v->in_channels == 0) { // a kernel without elements may have any size
        *s = (pt_segment){.start = o, .length = v->axes[i].out - o};
        return;
    }
    *s = v->transposed ? transposed_segment(&v->axes[i], o) : forward_segment(&v->axes[i], o);
}

static void set_tap(pt_products *p, uint32_t level, int32_t taps, int32_t a_step, int32_t b_step) {
    p->taps[level] = taps;
    p->a_step[level] = a_step;
    p->b_step[level] = b_step;
}

// Orders the taps as the weights in memory, so that the innermost taps are adjacent.
static void set_taps(const pt_aten_convolution *v, const pt_segment *s, pt_products *p) {
    const pt_axis *y = &v->axes[PT_AXIS_HEIGHT];
    const pt_axis *x = &v->axes[PT_AXIS_WIDTH];
    const bool pointwise = y->kernel == 1 && x->kernel == 1;
    const bool channels_inside = pointwise || v->weight_in_step < x->kernel_step;
    const uint32_t level = channels_inside ? 0 : 1;
    const uint32_t swap = x->kernel == 1; // a single tap makes a slow innermost loop
    set_tap(p, channels_inside ? 2 : 0, v->in_channels, v->weight_in_step, v->in_channel_step);
    set_tap(p, level + swap, s[0].taps, s[0].kernel_step * y->kernel_step,
            s[0].in_step * y->in_step);
    set_tap(p, level + 1 - swap, s[1].taps, s[1].kernel_step * x->kernel_step,
            s[1].in_step * x->in_step);
    if (p->taps[2] <= 1) {
        p->a_step[2] = 1;
    }
}

static pt_line make_line(const pt_axis *x, const pt_segment *s) {
    pt_line l = {s->length, 0, x->out_step};
    if (l.length > 1) {
        l.b_step = x->stride * x->in_step;
    }
    return l;
}

// Arranges the lines so that they are few and long.
static void arrange_lines(pt_products *p) {
    pt_line *lines = &p->lines;
    pt_line *columns = &p->columns;
    if (columns->length < 4 && columns->length < lines->length) {
        const pt_line swap = *lines;
        *lines = *columns;
        *columns = swap;
    }
    if (columns->length * columns->b_step == lines->b_step &&
        columns->length * columns->out_step == lines->out_step) {
        columns->length *= lines->length;
        lines->length = 1;
    }
}

// Computes the outputs that share a part of the kernel: those of segments s[0] and s[1] along the
// two axes.
NOINLINE static int run_segments(pt_context *c, const pt_aten_convolution *v, const pt_segment *s,
                                 bool padded) {
    const pt_axis *y = &v->axes[PT_AXIS_HEIGHT];
    const pt_axis *x = &v->axes[PT_AXIS_WIDTH];
    const int32_t size = (int32_t)pt_element_size(v->dtype);
    const int32_t out_size = v->to_float ? (int32_t)sizeof(float) : size;
    const char *weight =
        v->weight + (s[0].kernel * y->kernel_step + s[1].kernel * x->kernel_step) * size;
    const char *in = v->in + (s[0].in * y->in_step + s[1].in * x->in_step) * size;
    char *out = v->out + (s[0].start * y->out_step + s[1].start * x->out_step) * out_size;
    pt_products p;
    const bool depthwise = v->out_channels == 1;
    p.rows = depthwise ? v->groups : v->out_channels;
    p.a_row = depthwise ? v->weight_group_step : v->weight_out_step;
    p.b_row = depthwise ? v->in_channels * v->in_channel_step : 0;
    p.out_row = v->out_channel_step;
    p.lines = make_line(y, &s[0]);
    p.columns = make_line(x, &s[1]);
    p.padded = padded;
    p.to_float = v->to_float;
    set_taps(v, s, &p);
    if (!padded) {
        arrange_lines(&p);
    }
    for (int32_t n = 0; n < v->batch; n++) {
        for (int32_t g = 0; g < (depthwise ? 1 : v->groups); g++) {
            p.a = weight + g * v->weight_group_step * size;
            p.b = in + (n * v->in_batch_step + g * v->in_channels * v->in_channel_step) * size;
            p.bias = v->bias ? v->bias + g * v->out_channels * size : NULL;
            p.out = out +
                    (n * v->out_batch_step + g * v->out_channels * v->out_channel_step) * out_size;
            PT_TRY(pt_sum_products(c, &p, v->dtype));
        }
    }
    return PT_ERROR_OK;
}

// True if a padded line can be computed at once, see pt_products.
static bool has_padded_lines(const pt_aten_convolution *v) {
    enum { MAX_PRODUCTS = 1 << 20 }; // products of a block's rows in a line, without a poll
    const pt_axis *x = &v->axes[PT_AXIS_WIDTH];
    return (int64_t)v->in_channels * v->axes[PT_AXIS_HEIGHT].kernel * x->in * 12 <= MAX_PRODUCTS &&
           v->dtype == PT_DTYPE_FLOAT && !v->transposed && v->out_channels >= 4 && x->kernel == 3 &&
           x->stride == 1 && x->dilation == 1 && x->padding == 1 && x->in >= 4 && x->in_step == 1 &&
           x->kernel_step == 1 && x->out_step == 1;
}

NOINLINE int pt_convolve_plane(pt_context *c, const pt_aten_convolution *v) {
    const bool padded = has_padded_lines(v);
    pt_segment s[2];
    for (int32_t y = 0; y < v->axes[PT_AXIS_HEIGHT].out; y += s[0].length) {
        PT_TRY(pt_count_work(c, v->axes[PT_AXIS_HEIGHT].kernel));
        pt_find_taps(v, PT_AXIS_HEIGHT, y, &s[0]);
        for (int32_t x = 0; x < v->axes[PT_AXIS_WIDTH].out; x += s[1].length) {
            if (padded) {
                s[1] =
                    (pt_segment){.length = v->axes[PT_AXIS_WIDTH].out, .taps = 3, .kernel_step = 1};
            } else {
                PT_TRY(pt_count_work(c, v->axes[PT_AXIS_WIDTH].kernel));
                pt_find_taps(v, PT_AXIS_WIDTH, x, &s[1]);
            }
            PT_TRY(run_segments(c, v, s, padded));
        }
    }
    return PT_ERROR_OK;
}

int pt_run_convolution(pt_context *c, const pt_ref *args, bool transposed) {
    pt_aten_convolution v;
    return pt_read_convolution(c, args, transposed, &v) ? pt_convolve_plane(c, &v) : PT_ERROR_OK;
}

static int conv_run_convolution(pt_context *c, const pt_ref *args) {
    return pt_run_convolution(c, args, pt_get_bool(c, args[CONVOLUTION_TRANSPOSED]));
}

const pt_kernel pt_aten_convolution_out = PT_KERNEL(conv_check_convolution, conv_run_convolution);
