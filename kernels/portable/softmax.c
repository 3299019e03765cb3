// Softmax and its logarithm, cumulated sums: operators along one dim.
#include "../core/operator_arguments.h"
#include "arguments.h"
#include "element.h"
#include "half.h"

// The place of `dim`, which counts from the end if it is negative.
static uint32_t place_of(const pt_tensor *t, int64_t dim) {
    return (uint32_t)(dim < 0 ? dim + t->rank : dim);
}

static int check_lanes(pt_context *c, const pt_tensor *in, pt_ref dim_arg, pt_ref out_arg) {
    uint32_t place;
    int error = pt_read_dim(c, pt_get_int(c, dim_arg), in->rank, &place);
    return error ? error : pt_expect_sizes(c, out_arg, in->rank, in->sizes);
}

// Prepares a walk over the first elements of the lanes along dim `place`; the next elements of a
// lane are steps[0] on in out, steps[1] in in.
static void walk_lanes(pt_walk *w, const pt_tensor *out, const pt_tensor *in, uint32_t place,
                       int32_t steps[2]) {
    w->rank = out->rank;
    w->operands = 2;
    pt_strides(out, w->strides[0]);
    pt_strides(in, w->strides[1]);
    for (uint32_t d = 0; d < out->rank; d++) {
        w->sizes[d] = d == place ? 1 : out->sizes[d];
    }
    for (uint32_t k = 0; k < 2; k++) {
        steps[k] = w->strides[k][place];
        w->offset[k] = 0;
    }
    pt_walk_start(w);
}

// ---- softmax

static int softmax_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[SOFTMAX_SELF]);
    pt_tensor out = pt_get_tensor(c, args[SOFTMAX_OUT]);
    if ((in.dtype != PT_DTYPE_FLOAT && !pt_is_half(in.dtype)) || out.dtype != in.dtype) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                       "softmax supports float32, float16 and bfloat16 only");
    }
    if (pt_get_bool(c, args[SOFTMAX_HALF_TO_FLOAT])) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "half_to_float is not False");
    }
    int error = check_lanes(c, &in, args[SOFTMAX_DIM], args[SOFTMAX_OUT]);
    if (!error && in.dtype != PT_DTYPE_FLOAT) {
        uint32_t place = place_of(&in, pt_get_int(c, args[SOFTMAX_DIM]));
        pt_ask_scratch(c, (in.rank ? (uint32_t)in.sizes[place] : 1) * (uint32_t)sizeof(float));
    }
    return error;
}

static float largest(int32_t n, int32_t step, const float *x) {
    float max = *x;
    for (n--, x += step; n > 0; n--, x += step) {
        max = *x > max ? *x : max;
    }
    return max;
}

typedef struct lane {
    pt_context *c;
    int32_t size;
    float *out;
    const float *in;
    int32_t out_step, in_step;
} lane;

// Counts a piece of a lane before the first of its elements, of which `left` are left.
#define COUNT_PIECE(c, left)                        \
    do {                                            \
        if (((left) & (PT_PIECE - 1)) == 0) {       \
            PT_TRY(pt_count_elements(c, PT_PIECE)); \
        }                                           \
    } while (0)

// A NaN in a lane makes all of it NaN through the sum.
static int softmax_lane(const lane *l) {
    const float *in = l->in;
    float *out = l->out;
    float max = largest(l->size, l->in_step, in);
    float sum = 0;
    for (int32_t i = l->size; i > 0; i--, in += l->in_step, out += l->out_step) {
        COUNT_PIECE(l->c, i);
        float e = pt_expf(*in - max);
        *out = e;
        sum += e;
    }
    float factor = 1.0f / sum;
    out = l->out;
    for (int32_t i = l->size; i > 0; i--, out += l->out_step) {
        COUNT_PIECE(l->c, i);
        *out *= factor;
    }
    return PT_ERROR_OK;
}

static int log_softmax_lane(const lane *l) {
    const float *in = l->in;
    float *out = l->out;
    float max = largest(l->size, l->in_step, in);
    float sum = 0;
    for (int32_t i = l->size; i > 0; i--, in += l->in_step) {
        COUNT_PIECE(l->c, i);
        sum += pt_expf(*in - max);
    }
    float log = pt_logf(sum);
    in = l->in;
    for (int32_t i = l->size; i > 0; i--, in += l->in_step, out += l->out_step) {
        COUNT_PIECE(l->c, i);
        *out = (*in - max) - log;
    }
    return PT_ERROR_OK;
}

typedef struct softmax {
    pt_tensor in, out;
    int (*run_lane)(const lane *);
    float *buffer; // for a lane of float16 or bfloat16
} softmax;

// The lane from element `from` of in and `to` of out on.
static int run_lane_at(pt_context *c, const softmax *s, int32_t to, int32_t from, int32_t size,
                       const int32_t steps[2]) {
    PT_TRY(pt_count_elements(c, size % PT_PIECE));
    if (s->in.dtype == PT_DTYPE_FLOAT) {
        return s->run_lane(&(lane){c, size, (float *)s->out.data + to,
                                   (const float *)s->in.data + from, steps[0], steps[1]});
    }
    pt_read_halves(s->buffer, s->in.data, from, steps[1], size, s->in.dtype);
    PT_TRY(s->run_lane(&(lane){c, size, s->buffer, s->buffer, 1, 1}));
    pt_write_halves(s->out.data, to, steps[0], s->buffer, size, s->out.dtype);
    return PT_ERROR_OK;
}

// Every lane of tensors whose dim orders differ.
static __attribute__((noinline)) int softmax_walk(pt_context *c, const softmax *s, uint32_t place) {
    pt_walk w;
    int32_t steps[2];
    walk_lanes(&w, &s->out, &s->in, place, steps);
    do {
        for (int32_t i = 0; i < w.n; i++) {
            PT_TRY(run_lane_at(c, s, w.offset[0] + i * w.strides[0][0],
                               w.offset[1] + i * w.strides[1][0], s->out.sizes[place], steps));
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

static int run_softmax(pt_context *c, const pt_ref *args, int (*run_lane)(const lane *)) {
    softmax s = {pt_get_tensor(c, args[SOFTMAX_SELF]), pt_get_tensor(c, args[SOFTMAX_OUT]),
                 run_lane, (float *)(void *)c->scratch};
    if (pt_numel(&s.in) == 0) {
        return PT_ERROR_OK;
    }
    uint32_t place = place_of(&s.in, pt_get_int(c, args[SOFTMAX_DIM]));
    pt_lanes all = pt_lanes_of(&s.in, place);
    if (!pt_same_dim_order(&s.in, &s.out)) {
        return softmax_walk(c, &s, place);
    }
    const int32_t steps[] = {all.inner, all.inner};
    for (int32_t i = 0; i < all.outer; i++) {
        int32_t first = i * all.size * all.inner;
        for (int32_t j = 0; j < all.inner; j++) {
            PT_TRY(run_lane_at(c, &s, first + j, first + j, all.size, steps));
        }
    }
    return PT_ERROR_OK;
}

static int softmax_run(pt_context *c, const pt_ref *args) {
    return run_softmax(c, args, softmax_lane);
}

static int log_softmax_run(pt_context *c, const pt_ref *args) {
    return run_softmax(c, args, log_softmax_lane);
}

const pt_kernel pt_aten__softmax_out = {softmax_check, softmax_run};
const pt_kernel pt_aten__log_softmax_out = {softmax_check, log_softmax_run};

// ---- cumsum

// Integers sum as int64, bool too, unless dtype says otherwise; the sum of floats is a float's.
static int cumsum_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[CUMSUM_SELF]);
    pt_tensor out = pt_get_tensor(c, args[CUMSUM_OUT]);
    if (!pt_dtype_in(in.dtype, PT_DTYPES_ALL) || !pt_dtype_in(out.dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the operator does not support this dtype");
    }
    uint8_t result = pt_is_floating(in.dtype) ? in.dtype : PT_DTYPE_LONG;
    int64_t dtype = pt_is_none(args[CUMSUM_DTYPE]) ? result : pt_get_int(c, args[CUMSUM_DTYPE]);
    if (dtype != out.dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output's dtype is not that of the sum");
    }
    return check_lanes(c, &in, args[CUMSUM_DIM], args[CUMSUM_OUT]);
}

// From element i of out and j of in, `size` elements.
static int cumsum_lane(pt_context *c, const pt_tensor *out, int32_t i, const pt_tensor *in,
                       int32_t j, int32_t size, const int32_t steps[2]) {
    uint64_t integers = 0;
    double floats = 0;
    for (; size > 0; size--, i += steps[0], j += steps[1]) {
        PT_TRY(pt_count_elements(c, 1));
        if (pt_is_floating(out->dtype)) {
            floats += pt_load_double(in->data, j, in->dtype);
            pt_store_double(out->data, i, out->dtype, floats);
        } else {
            integers += (uint64_t)pt_load_int(in->data, j, in->dtype);
            pt_store_int(out->data, i, out->dtype, (int64_t)integers);
        }
    }
    return PT_ERROR_OK;
}

static __attribute__((noinline)) int cumsum_walk(pt_context *c, const pt_tensor *out,
                                                 const pt_tensor *in, uint32_t place) {
    pt_walk w;
    int32_t steps[2];
    walk_lanes(&w, out, in, place, steps);
    do {
        for (int32_t i = 0; i < w.n; i++) {
            PT_TRY(cumsum_lane(c, out, w.offset[0] + i * w.strides[0][0], in,
                               w.offset[1] + i * w.strides[1][0], out->sizes[place], steps));
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

static int cumsum_run(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[CUMSUM_SELF]);
    pt_tensor out = pt_get_tensor(c, args[CUMSUM_OUT]);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    if (out.rank > 0) {
        return cumsum_walk(c, &out, &in, place_of(&in, pt_get_int(c, args[CUMSUM_DIM])));
    }
    pt_convert_element(out.data, 0, out.dtype, in.data, 0, in.dtype);
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_cumsum_out = {cumsum_check, cumsum_run};
