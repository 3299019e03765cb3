// Average and max pooling over the last three dims of (C, D, H, W) and (N, C, D, H, W), and
// adaptive max pooling over the last two or three dims, in any dim order.
//
// pooling.c has separate loops: as volumes of depth 1, pools over two dims take 23 to 85 % more
// instructions on a Cortex-M4F (windows of 7 x 7 to 2 x 2).
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/extrema.h"
#include "portable/pooling.h"

enum { DIMS = 3 };

// A call. Over two dims, the depth is 1 and its strides are 0.
typedef struct pools {
    const void *in;
    void *out;
    int64_t *indices; // only for max pooling
    uint8_t dtype;
    int32_t batch, channels;
    int32_t in_size[DIMS], out_size[DIMS];
    int32_t in_strides[2 + DIMS], out_strides[2 + DIMS], index_strides[2 + DIMS];
    const pt_pooling *windows; // NULL for adaptive pooling
    bool with_padding;         // average pooling: count the padding
    int64_t divisor;           // average pooling: 0 divides by the number of counted elements
} pools;

// The taps of one window. Steps lead to the next tap along a dim; they count elements of the input,
// or of a channel for indices.
typedef struct window {
    int32_t from, to, index_to; // offsets in the first channel of the first volume
    int32_t first;              // the index of its first tap
    int32_t taps[DIMS], step[DIMS], index_step[DIMS];
    int64_t divisor;
} window;

// ---- average

typedef union number {
    uint64_t u; // wraps as int64 in PyTorch
    double d;
    float f; // for float16 and bfloat16
} number;

static float sum_floats(const float *first, const window *w) {
    float sum = 0;
    for (int32_t z = w->taps[0]; z > 0; z--, first += w->step[0]) {
        const float *row = first;
        for (int32_t y = w->taps[1]; y > 0; y--, row += w->step[1]) {
            const float *value = row;
            for (int32_t x = w->taps[2]; x > 0; x--, value += w->step[2]) {
                sum += *value;
            }
        }
    }
    return sum;
}

static void pooling_3d_add_element(number *sum, const pools *p, int32_t at) {
    if (p->dtype == PT_DTYPE_DOUBLE) {
        sum->d += ((const double *)p->in)[at];
    } else if (p->dtype == PT_DTYPE_LONG) {
        sum->u += (uint64_t)((const int64_t *)p->in)[at];
    } else {
        sum->f += pt_load_float(p->in, at, p->dtype);
    }
}

static void store_average(const number *sum, const pools *p, const window *w, int32_t at) {
    if (p->dtype == PT_DTYPE_DOUBLE) {
        ((double *)p->out)[at] = sum->d / pt_int_as_double(w->divisor);
    } else if (p->dtype == PT_DTYPE_LONG) {
        ((int64_t *)p->out)[at] = pt_divide_int((int64_t)sum->u, w->divisor);
    } else {
        pt_store_float(p->out, at, p->dtype, sum->f / (float)w->divisor);
    }
}

static int pooling_3d_average(pt_context *c, const pools *p, const window *w, int32_t in,
                              int32_t out) {
    number sum = {.u = 0}; // the bits of 0 in each type
    PT_TRY(pt_count_work(c, 1 + w->taps[0] * w->taps[1] * w->taps[2]));
    if (p->dtype == PT_DTYPE_FLOAT) {
        ((float *)p->out)[out] = sum_floats((const float *)p->in + in, w) / (float)w->divisor;
        return PT_ERROR_OK;
    }
    for (int32_t z = 0; z < w->taps[0]; z++) {
        for (int32_t y = 0; y < w->taps[1]; y++) {
            for (int32_t x = 0; x < w->taps[2]; x++) {
                PT_TRY(pt_count_work(c, 1));
                pooling_3d_add_element(&sum, p,
                                       in + z * w->step[0] + y * w->step[1] + x * w->step[2]);
            }
        }
    }
    store_average(&sum, p, w, out);
    return PT_ERROR_OK;
}

// ---- max

// The maximum so far, and its index; NaN is greater than all numbers.
typedef struct greatest {
    int32_t at, index;
} greatest;

static greatest pooling_3d_greatest_float(const float *in, const window *w, int32_t plane) {
    greatest best = {plane, w->first};
    float value = in[plane];
    int32_t plane_index = w->first;
    for (int32_t z = w->taps[0]; z > 0; z--) {
        int32_t row = plane, row_index = plane_index;
        for (int32_t y = w->taps[1]; y > 0; y--) {
            int32_t at = row, index = row_index;
            for (int32_t x = w->taps[2]; x > 0; x--, at += w->step[2], index += w->index_step[2]) {
                const float v = in[at];
                if (!(v <= value) && (v > value || v != v)) {
                    value = v;
                    best = (greatest){at, index};
                }
            }
            row += w->step[1];
            row_index += w->index_step[1];
        }
        plane += w->step[0];
        plane_index += w->index_step[0];
    }
    return best;
}

static int pooling_3d_greatest_any(pt_context *c, const pools *p, const window *w, int32_t in,
                                   greatest *best) {
    *best = (greatest){in, w->first};
    for (int32_t z = 0; z < w->taps[0]; z++) {
        for (int32_t y = 0; y < w->taps[1]; y++) {
            for (int32_t x = 0; x < w->taps[2]; x++) {
                const int32_t at = in + z * w->step[0] + y * w->step[1] + x * w->step[2];
                PT_TRY(pt_count_work(c, 1));
                if (pt_beats(p->in, at, best->at, p->dtype, false)) {
                    *best = (greatest){at, w->first + z * w->index_step[0] + y * w->index_step[1] +
                                               x * w->index_step[2]};
                }
            }
        }
    }
    return PT_ERROR_OK;
}

static int pooling_3d_take_greatest(pt_context *c, const pools *p, const window *w, int32_t in,
                                    int32_t out, int32_t index_at) {
    greatest best;
    PT_TRY(pt_count_work(c, 1 + w->taps[0] * w->taps[1] * w->taps[2]));
    if (p->dtype == PT_DTYPE_FLOAT) {
        best = pooling_3d_greatest_float(p->in, w, in);
        ((float *)p->out)[out] = ((const float *)p->in)[best.at];
    } else {
        PT_TRY(pooling_3d_greatest_any(c, p, w, in, &best));
        pt_convert_element(p->out, out, p->dtype, p->in, best.at, p->dtype);
    }
    p->indices[index_at] = best.index;
    return PT_ERROR_OK;
}

// ---- the walk over windows

// Sets the strides of (N, C, D, H, W), 0 for a dim that does not exist.
static void volume_strides(const pt_tensor *t, uint32_t dims, int32_t *strides) {
    int32_t own[2 + DIMS];
    pt_strides(t, own);
    for (uint32_t d = 0; d < 2 + DIMS; d++) {
        strides[d] = 0;
    }
    for (uint32_t d = 0; d < t->rank; d++) {
        const uint32_t behind = t->rank - d; // number of dims from d to the end
        strides[(behind > dims ? 2 + dims : 2 + DIMS) - behind] = own[d];
    }
}

// Reads the tensors of a call; returns false if the output is empty.
static bool pooling_3d_start(const pt_context *c, pools *p, uint32_t dims, pt_ref in_arg,
                             pt_ref out_arg, pt_ref indices_arg) {
    const pt_tensor in = pt_get_tensor(c, in_arg), out = pt_get_tensor(c, out_arg);
    const int32_t *in_size = in.sizes + in.rank - dims, *out_size = out.sizes + in.rank - dims;
    p->in = in.data;
    p->out = out.data;
    p->dtype = in.dtype;
    p->indices = NULL;
    p->batch = in.rank == dims + 2 ? in.sizes[0] : 1;
    p->channels = in_size[-1];
    for (uint32_t d = 0; d < DIMS; d++) {
        const bool is_there = d + dims >= DIMS;
        p->in_size[d] = is_there ? in_size[d + dims - DIMS] : 1;
        p->out_size[d] = is_there ? out_size[d + dims - DIMS] : 1;
    }
    volume_strides(&in, dims, p->in_strides);
    volume_strides(&out, dims, p->out_strides);
    if (!pt_is_none(indices_arg)) {
        const pt_tensor indices = pt_get_tensor(c, indices_arg);
        p->indices = indices.data;
        volume_strides(&indices, dims, p->index_strides);
    }
    return pt_numel(&out) > 0;
}

// Sets the window at depth, height and width `at` of the output.
static void pooling_3d_place_window(const pools *p, const int32_t *at, window *w) {
    const int32_t index_strides[DIMS] = {p->in_size[1] * p->in_size[2], p->in_size[2], 1};
    int64_t counted = 1;
    *w = (window){.divisor = p->divisor};
    for (uint32_t d = 0; d < DIMS; d++) {
        const pt_pool_span span = p->windows
                                      ? pt_taps_inside(p->windows, d, at[d], p->in_size[d])
                                      : pt_adaptive_span(at[d], p->out_size[d], p->in_size[d]);
        // The dilation of a single tap is not limited.
        const int32_t dilation = span.taps < 2 ? 0 : p->windows ? p->windows->dilation[d] : 1;
        w->taps[d] = span.taps;
        w->step[d] = dilation * p->in_strides[2 + d];
        w->index_step[d] = dilation * index_strides[d];
        w->first += span.first * index_strides[d];
        w->from += span.first * p->in_strides[2 + d];
        w->to += at[d] * p->out_strides[2 + d];
        w->index_to += p->indices ? at[d] * p->index_strides[2 + d] : 0;
        counted *=
            p->with_padding ? pt_padded_taps(p->windows, d, at[d], p->in_size[d]) : span.taps;
    }
    if (w->divisor == 0) {
        w->divisor = counted;
    }
}

static int pool_window(pt_context *c, const pools *p, const window *w) {
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t k = 0; k < p->channels; k++) {
            const int32_t in = w->from + n * p->in_strides[0] + k * p->in_strides[1];
            const int32_t out = w->to + n * p->out_strides[0] + k * p->out_strides[1];
            PT_TRY(p->indices ? pooling_3d_take_greatest(c, p, w, in, out,
                                                         w->index_to + n * p->index_strides[0] +
                                                             k * p->index_strides[1])
                              : pooling_3d_average(c, p, w, in, out));
        }
    }
    return PT_ERROR_OK;
}

static int pool(pt_context *c, const pools *p) {
    int32_t at[DIMS];
    window w;
    for (at[0] = 0; at[0] < p->out_size[0]; at[0]++) {
        for (at[1] = 0; at[1] < p->out_size[1]; at[1]++) {
            for (at[2] = 0; at[2] < p->out_size[2]; at[2]++) {
                pooling_3d_place_window(p, at, &w);
                PT_TRY(pool_window(c, p, &w));
            }
        }
    }
    return PT_ERROR_OK;
}

// ---- the operators

static int avg_pool3d_check(pt_context *c, const pt_ref *args) {
    return pt_check_average(c, args, 3);
}

static int avg_pool3d_run(pt_context *c, const pt_ref *args) {
    const pt_ref divisor = args[AVG_POOL3D_DIVISOR_OVERRIDE];
    pt_pooling windows = {.ceil_mode = false}; // only ceil_mode affects the number of windows
    pools p = {.windows = &windows,
               .with_padding = pt_get_bool(c, args[AVG_POOL3D_COUNT_INCLUDE_PAD]),
               .divisor = pt_is_none(divisor) ? 0 : pt_get_int(c, divisor)};
    PT_TRY(pt_read_pooling(c, args, 3, &windows));
    return pooling_3d_start(c, &p, 3, args[AVG_POOL3D_SELF], args[AVG_POOL3D_OUT], 0) ? pool(c, &p)
                                                                                      : PT_ERROR_OK;
}

const pt_kernel pt_aten_avg_pool3d_out = PT_KERNEL(avg_pool3d_check, avg_pool3d_run);

static int max_pool3d_check(pt_context *c, const pt_ref *args) {
    return pt_check_max(c, args, 3);
}

static int max_pool3d_run(pt_context *c, const pt_ref *args) {
    pt_pooling windows;
    pools p = {.windows = &windows};
    PT_TRY(pt_read_max_pooling(c, args, 3, &windows));
    return pooling_3d_start(c, &p, 3, args[MAX_POOL3D_WITH_INDICES_SELF],
                            args[MAX_POOL3D_WITH_INDICES_OUT],
                            args[MAX_POOL3D_WITH_INDICES_INDICES])
               ? pool(c, &p)
               : PT_ERROR_OK;
}

const pt_kernel pt_aten_max_pool3d_with_indices_out = PT_KERNEL(max_pool3d_check, max_pool3d_run);

static int run_adaptive(pt_context *c, const pt_ref *args, uint32_t dims, pt_ref indices) {
    pools p = {.windows = NULL};
    return pooling_3d_start(c, &p, dims, args[ADAPTIVE_MAX_POOL3D_SELF],
                            args[ADAPTIVE_MAX_POOL3D_OUT], indices)
               ? pool(c, &p)
               : PT_ERROR_OK;
}

static int adaptive_avg_pool3d_check(pt_context *c, const pt_ref *args) {
    return pt_check_adaptive(c, args, 3);
}

static int adaptive_avg_pool3d_run(pt_context *c, const pt_ref *args) {
    return run_adaptive(c, args, 3, 0);
}

const pt_kernel pt_aten__adaptive_avg_pool3d_out =
    PT_KERNEL(adaptive_avg_pool3d_check, adaptive_avg_pool3d_run);

static int check_adaptive_max(pt_context *c, const pt_ref *args, uint32_t dims) {
    const pt_tensor in = pt_get_tensor(c, args[ADAPTIVE_MAX_POOL3D_SELF]);
    const pt_ref indices = args[ADAPTIVE_MAX_POOL3D_INDICES];
    int32_t sizes[DIMS] = {0};
    PT_TRY(pt_check_adaptive(c, args, dims));
    PT_TRY(pt_check_index_output(c, indices));
    return pt_read_spatial(c, args[ADAPTIVE_MAX_POOL3D_OUTPUT_SIZE], dims, NULL, 0, sizes)
               ? pt_expect_pooled(c, &in, dims, sizes, indices)
               : PT_ERROR_INVALID_ARGUMENT; // the error of pt_check_adaptive
}

static int adaptive_max_pool3d_check(pt_context *c, const pt_ref *args) {
    return check_adaptive_max(c, args, 3);
}

static int adaptive_max_pool3d_run(pt_context *c, const pt_ref *args) {
    return run_adaptive(c, args, 3, args[ADAPTIVE_MAX_POOL3D_INDICES]);
}

const pt_kernel pt_aten_adaptive_max_pool3d_out =
    PT_KERNEL(adaptive_max_pool3d_check, adaptive_max_pool3d_run);

static int adaptive_max_pool2d_check(pt_context *c, const pt_ref *args) {
    return check_adaptive_max(c, args, 2);
}

static int adaptive_max_pool2d_run(pt_context *c, const pt_ref *args) {
    return run_adaptive(c, args, 2, args[ADAPTIVE_MAX_POOL3D_INDICES]);
}

const pt_kernel pt_aten_adaptive_max_pool2d_out =
    PT_KERNEL(adaptive_max_pool2d_check, adaptive_max_pool2d_run);
