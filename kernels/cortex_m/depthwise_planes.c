// 3x3 int8 depthwise convolution of up to 3 outputs for each input channel: widens three rows of 4
// to 16 channels to planes and multiplies them by arch/depthwise.h. Rows run along the height or
// the width, whichever wastes fewer outputs. Scratch: PT_DEPTHWISE_CHANNEL_BYTES an output and four
// rows a plane, at most MAX_BYTES.
#include "arch/depthwise.h"
#include "cortex_m/depthwise.h"
#include <string.h>

enum {
    LANES = 4,           // channels of planes, and outputs of a row for which there is scratch
    MAX_LANES = 4,       // of channels in a group
    MAX_OUTPUTS = 3,     // of an input channel; more go as patches
    SLOTS = 4,           // rows of a plane: three of the image and one of padding
    USEFUL_BYTES = 3584, // of scratch, for more than the fewest channels
    MAX_BYTES = 8192,
};

// An axis of the image: rows may be its columns. Steps are in bytes.
typedef struct axis {
    int32_t in, out, stride, padding;
    int32_t in_step, out_step, weight_step;
} axis;

typedef struct planes {
    axis along, across;     // a row, and from row to row
    int32_t channels;       // of the input in a group: those of some lanes
    int32_t columns, plane; // values of a row of a plane, and of a plane
    int32_t first;          // the column with the first value of the image
    pt_pixels pixels;       // the pixels that fit into a row
    pt_plane *next;         // destination of the next row of the image
    pt_plane *padding;      // the row of padding
} planes;

// ---- geometry

// Unsigned, since a check may describe an output that fits into no memory.
static axis make_axis(const pt_convolution *x, uint32_t d) {
    const pt_window *w = &x->window;
    uint32_t inputs = (uint32_t)x->in.channels, outputs = (uint32_t)x->out.channels;
    bool is_row = d == PT_HEIGHT;
    return (axis){is_row ? x->in.height : x->in.width,
                  is_row ? x->out.height : x->out.width,
                  w->stride[d],
                  w->padding[d],
                  (int32_t)(inputs * (is_row ? (uint32_t)x->in.width : 1)),
                  (int32_t)(outputs * (is_row ? (uint32_t)x->out.width : 1)),
                  (int32_t)(outputs * (is_row ? 3 : 1))};
}

static int32_t blocks_of(const axis *a, int32_t outputs) {
    return (a->out + outputs - 1) / outputs;
}

static int32_t columns_of(const axis *a, int32_t outputs) {
    return outputs * a->stride * blocks_of(a, outputs) + 2;
}

// Returns the bytes of scratch for an input channel. Blocks of six outputs make a row longer, up to
// twice, but its values have 2 bytes.
static uint32_t channel_bytes(const pt_convolution *x, const axis *a) {
    return (uint32_t)x->outputs * PT_DEPTHWISE_CHANNEL_BYTES +
           SLOTS * (uint32_t)columns_of(a, LANES) * (uint32_t)PT_PLANE_BYTES;
}

// The loops make at least one output of a row.
static bool depthwise_planes_s8_fits(const pt_convolution *x, const axis *a) {
    return a->stride <= 2 && a->out > 0 && a->out < MAX_BYTES &&
           LANES * channel_bytes(x, a) <= MAX_BYTES;
}

// More channels in a group amortize the work for each row.
static int32_t channels_of_group(const pt_convolution *x, const axis *a) {
    int32_t lanes = (x->in.channels + LANES - 1) / LANES;
    int32_t max = (int32_t)(USEFUL_BYTES / (LANES * channel_bytes(x, a)));
    max = max > MAX_LANES ? MAX_LANES : max < 1 ? 1 : max;
    return LANES * (lanes < max ? lanes : max);
}

// Selects rows along the axis that wastes the fewest outputs. Returns false if planes fit along
// neither.
static bool choose_axes(const pt_convolution *x, planes *p) {
    axis height = make_axis(x, PT_HEIGHT), width = make_axis(x, PT_WIDTH);
    // beside a size of 0 other sizes may be huge
    bool along_width = (int64_t)blocks_of(&width, LANES) * height.out <=
                       (int64_t)blocks_of(&height, LANES) * width.out;
    if (!depthwise_planes_s8_fits(x, along_width ? &width : &height)) {
        along_width = !along_width;
    }
    p->along = along_width ? width : height;
    p->across = along_width ? height : width;
    if (!depthwise_planes_s8_fits(x, &p->along)) {
        return false;
    }
    p->columns = columns_of(&p->along, PT_ROW_OUTPUTS);
    p->channels = channels_of_group(x, &p->along);
    return true;
}

uint32_t pt_plane_scratch(const pt_convolution *x) {
    const pt_window *w = &x->window;
    planes p;
    bool is_3x3 = w->kernel[PT_HEIGHT] == 3 && w->kernel[PT_WIDTH] == 3 &&
                  w->dilation[PT_HEIGHT] == 1 && w->dilation[PT_WIDTH] == 1;
    return is_3x3 && x->outputs <= MAX_OUTPUTS && choose_axes(x, &p)
               ? (uint32_t)p.channels * channel_bytes(x, &p.along)
               : 0;
}

// ---- channels

// Packs one channel's weights and scale. Returns false if planes do not support its parameters.
static __attribute__((noinline)) bool pack_channel(const pt_convolution *x, const planes *p,
                                                   int32_t c, pt_depthwise_channel *to) {
    const pt_channels *o = &x->output;
    const int8_t *w = x->weights + c;
    int32_t column = p->along.weight_step, row = p->across.weight_step, sum = 0;
    int32_t bias = pt_bias_of(o, c), multiplier = o->multipliers[c], shift = o->shifts[c];
    if (!pt_scales_fast(multiplier, shift) || bias >= PT_BIAS_LIMIT || bias <= -PT_BIAS_LIMIT) {
        return false;
    }
    for (int32_t i = 0; i < 3; i++, w += row) {
        int32_t w0 = w[0], w1 = w[column], w2 = w[2 * column];
        pt_set_weights(to, i, w0, w1, w2);
        sum += w0 + w1 + w2;
    }
    pt_set_bias(to, bias + (PT_PLANE_OFFSET ? 0 : sum * x->offset));
    pt_set_scale(to, multiplier, -shift, pt_rounding(shift, o->range.offset));
    return true;
}

// ---- rows

static void depthwise_planes_s8_fill(const pt_convolution *x, pt_plane *to, int32_t n) {
    pt_plane padding = (pt_plane)(PT_PLANE_OFFSET ? 0 : -x->offset);
    for (; n > 0; n--) {
        *to++ = padding;
    }
}

// Widens values at any address.
static void depthwise_planes_s8_widen_channel(const pt_convolution *x, const pt_pixels *pixels,
                                              const int8_t *in, pt_plane *to) {
    int32_t offset = PT_PLANE_OFFSET ? x->offset : 0;
    for (int32_t n = pixels->n; n > 0; n--, in += pixels->step) {
        *to++ = (pt_plane)(*in + offset);
    }
}

// Widens row `i` of the padded image, from the channel at `in` on.
static const pt_plane *make_row(const pt_convolution *x, planes *p, const int8_t *in, int32_t i,
                                int32_t channels) {
    pt_plane *row = p->next, *to = row + p->first;
    i -= p->across.padding;
    if (i < 0 || i >= p->across.in) {
        return p->padding;
    }
    in += i * p->across.in_step;
    if ((((uintptr_t)in | (uint32_t)p->along.in_step) & 3) == 0) {
        for (; channels >= LANES; channels -= LANES, in += LANES, to += LANES * p->plane) {
            pt_widen(&p->pixels, in, to);
        }
    }
    for (; channels > 0; channels--, to += p->plane) {
        depthwise_planes_s8_widen_channel(x, &p->pixels, in++, to);
    }
    p->next += p->columns;
    if (p->next == p->padding) {
        p->next -= 3 * p->columns;
    }
    return row;
}

static void limit_row(const pt_range *r, const pt_depthwise_row *row, int32_t channels) {
    int8_t *out = row->out;
    for (int32_t i = 0; i < row->n; i++, out += row->step) {
        for (int32_t c = 0; c < channels; c++) {
            out[c] = (int8_t)pt_clamp(out[c], r->min, r->max);
        }
    }
}

// Multiplies a row with several outputs of each input channel, which share its plane.
static __attribute__((noinline)) void multiply_shared(pt_depthwise_plan *plan,
                                                      pt_depthwise_channel *group,
                                                      const pt_depthwise_row *row,
                                                      int32_t outputs) {
    pt_depthwise_row one = *row;
    one.plane = 0;
    one.channels = outputs;
    for (int32_t c = 0; c < row->channels; c++) {
        pt_plan_rows(plan, group, &one);
        pt_multiply_rows(plan, group, &one);
        for (uint32_t i = 0; i < 3; i++) {
            one.rows[i] += row->plane;
        }
        one.out += outputs;
        group += outputs;
    }
}

// Counts the rows of a group up to the next poll, from row *end on; *end becomes the row behind
// them.
static __attribute__((noinline)) int count_rows(const pt_convolution *x, const planes *p,
                                                int32_t channels, int32_t *end) {
    const int32_t steps = p->along.out * channels * x->outputs * 9, left = p->across.out - *end;
    const int32_t max = 1 + PT_PART_STEPS / steps;
    const int32_t rows = left < max ? left : max;
    *end += rows;
    return pt_count_product(x->c, rows, steps);
}

// Computes the group whose first input and output are at `in` and `out`.
static __attribute__((noinline)) int run_group(const pt_convolution *x, planes *p,
                                               pt_depthwise_channel *group, const int8_t *in,
                                               int8_t *out, int32_t channels) {
    const pt_range *range = &x->output.range;
    int32_t made = 0;
    pt_depthwise_row row = {.plane = p->plane,
                            .stride = p->along.stride,
                            .out = out,
                            .step = p->along.out_step,
                            .n = p->along.out,
                            .channels = channels};
    pt_depthwise_plan plan;
    pt_plan_rows(&plan, group, &row);
    for (int32_t i = 0, end = 0; i < p->across.out; i++, row.out += p->across.out_step) {
        int32_t first = i * p->across.stride;
        if (i == end) {
            PT_TRY(count_rows(x, p, channels, &end));
        }
        for (made = made < first ? first : made; made < first + 3; made++) {
            row.rows[0] = row.rows[1];
            row.rows[1] = row.rows[2];
            row.rows[2] = make_row(x, p, in, made, channels);
        }
        if (x->outputs == 1) {
            pt_multiply_rows(&plan, group, &row);
        } else {
            multiply_shared(&plan, group, &row, x->outputs);
        }
        if (range->min > INT8_MIN || range->max < INT8_MAX) {
            limit_row(range, &row, channels * x->outputs);
        }
    }
    return PT_ERROR_OK;
}

static void lay_out_planes(const pt_convolution *x, planes *p, void *scratch) {
    p->plane = SLOTS * p->columns;
    p->next = (pt_plane *)(void *)((char *)scratch +
                                   p->channels * x->outputs * PT_DEPTHWISE_CHANNEL_BYTES);
    p->padding = p->next + 3 * p->columns;
    p->first = p->along.padding < p->columns ? p->along.padding : p->columns;
    int32_t fitting = p->columns - p->first;
    p->pixels = (pt_pixels){fitting < p->along.in ? fitting : p->along.in, p->along.in_step,
                            p->plane, x->offset};
    depthwise_planes_s8_fill(x, p->next, p->channels * p->plane);
}

int pt_run_planes(const pt_convolution *x, void *scratch, bool *done) {
    pt_depthwise_channel *group = scratch;
    planes p;
    *done = false;
    if (!choose_axes(x, &p)) {
        return PT_ERROR_OK;
    }
    lay_out_planes(x, &p, scratch);
    int32_t in_size = x->in.height * x->in.width * x->in.channels, outputs = x->outputs;
    int32_t out_size = x->out.height * x->out.width * x->out.channels;
    for (int32_t k = 0, n; k < x->in.channels; k += n) {
        n = x->in.channels - k < p.channels ? x->in.channels - k : p.channels;
        for (int32_t i = 0; i < n * outputs; i++) {
            if (!pack_channel(x, &p, k * outputs + i, &group[i])) {
                return PT_ERROR_OK;
            }
        }
        for (int32_t i = 0; i < x->in.batch; i++) {
            PT_TRY(run_group(x, &p, group, x->in.data + i * in_size + k,
                             x->out.data + i * out_size + k * outputs, n));
        }
    }
    *done = true;
    return PT_ERROR_OK;
}
