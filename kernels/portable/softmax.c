// softmax, log_softmax, cumsum, cumprod and logcumsumexp along one dim.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/double_math.h"
#include "portable/dtype_access.h"
#include "portable/half.h"

// Returns the axis of `dim`, which counts from the end if it is negative.
static uint32_t axis_of(const pt_tensor *t, int64_t dim) {
    return (uint32_t)(dim < 0 ? dim + t->rank : dim);
}

static int softmax_check_lanes(pt_context *c, const pt_tensor *in, pt_ref dim_arg, pt_ref out_arg) {
    uint32_t axis;
    PT_TRY(pt_read_dim(c, pt_get_int(c, dim_arg), in->rank, &axis));
    return pt_expect_sizes(c, out_arg, in->rank, in->sizes);
}

// Starts a walk over the first elements of the lanes along dim `axis`; steps[0] and steps[1] are
// the elements between neighbours of a lane in out and in.
static void walk_lanes(pt_walk *w, const pt_tensor *out, const pt_tensor *in, uint32_t axis,
                       int32_t steps[2]) {
    w->rank = out->rank;
    w->operands = 2;
    pt_strides(out, w->strides[0]);
    pt_strides(in, w->strides[1]);
    for (uint32_t d = 0; d < out->rank; d++) {
        w->sizes[d] = d == axis ? 1 : out->sizes[d];
    }
    for (uint32_t k = 0; k < 2; k++) {
        steps[k] = w->strides[k][axis];
        w->offset[k] = 0;
    }
    pt_walk_start(w);
}

// ---- softmax

// The variant of a run on few float32 elements with equal dim orders. It is 1 + the position of the
// dim in that order.
enum { MAX_POSITIONS = 14 };

// Returns the bytes of a float32 lane for float16 and bfloat16.
static uint32_t softmax_scratch(const pt_tensor *in, uint32_t axis) {
    const uint32_t n = in->rank ? (uint32_t)in->sizes[axis] : 1;
    return pt_is_half(in->dtype) ? n * (uint32_t)sizeof(float) : 0;
}

static int softmax_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[SOFTMAX_SELF]);
    pt_tensor out = pt_get_tensor(c, args[SOFTMAX_OUT]);
    if (!pt_is_floating(in.dtype) || out.dtype != in.dtype) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "softmax supports floating dtypes only");
    }
    PT_TRY(pt_check_math(c, in.dtype, PT_REASON_DTYPE));
    if (pt_get_bool(c, args[SOFTMAX_HALF_TO_FLOAT])) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "half_to_float is not False");
    }
    PT_TRY(softmax_check_lanes(c, &in, args[SOFTMAX_DIM], args[SOFTMAX_OUT]));
    uint32_t axis = axis_of(&in, pt_get_int(c, args[SOFTMAX_DIM]));
    pt_request_scratch(c, softmax_scratch(&in, axis));
    uint32_t position = 0;
    while (position < in.rank && in.dim_order[position] != axis) {
        position++;
    }
    int32_t n = pt_numel(&in);
    bool few = in.dtype == PT_DTYPE_FLOAT && n > 0 && n < PT_PIECE && position < in.rank &&
               position < MAX_POSITIONS && pt_same_dim_order(&in, &out);
    return pt_note_variant(c, few ? 1 + position : 0);
}

static float softmax_largest(int32_t n, int32_t step, const float *x) {
    float max = *x;
    for (n--, x += step; n > 0; n--, x += step) {
        max = *x > max ? *x : max;
    }
    return max;
}

// Lanes of `size` elements, whose first elements are adjacent.
typedef struct lanes {
    pt_context *c;
    int32_t count, size; // both are above 0
    float *out;
    const float *in;
    int32_t out_step, in_step;
} lanes;

// Returns the elements of a lane beyond whole pieces, at least 1, which the caller counts.
static inline int32_t first_piece(int32_t size) {
    return ((size - 1) & (PT_PIECE - 1)) + 1;
}

// Runs the statement for each element of a lane, in pieces that are counted.
#define FOR_EACH(c, size, statement)              \
    for (int32_t left = (size);;) {               \
        do {                                      \
            statement;                            \
        } while ((--left & (PT_PIECE - 1)) != 0); \
        if (left == 0) {                          \
            break;                                \
        }                                         \
        PT_TRY(pt_count_elements((c), PT_PIECE)); \
    }

// A NaN in a lane makes the whole lane NaN, through the sum.
static int softmax_lanes(const lanes *l) {
    const int32_t in_step = l->in_step, out_step = l->out_step;
    const float *from = l->in;
    float *to = l->out;
    int32_t n = l->count;
    do {
        const float *in = from++;
        float *out = to;
        float max = softmax_largest(l->size, in_step, in), sum = 0;
        FOR_EACH(l->c, l->size, {
            float e = pt_expf(*in - max);
            *out = e;
            sum += e;
            in += in_step;
            out += out_step;
        })
        float factor = 1.0f / sum;
        do {
            out -= out_step;
            *out *= factor;
        } while (out != to);
        to++;
    } while (--n != 0);
    return PT_ERROR_OK;
}

static int log_softmax_lanes(const lanes *l) {
    for (int32_t lane = 0; lane < l->count; lane++) {
        const float *in = l->in + lane;
        float *out = l->out + lane;
        float max = softmax_largest(l->size, l->in_step, in), sum = 0;
        FOR_EACH(l->c, l->size, {
            sum += pt_expf(*in - max);
            in += l->in_step;
        })
        float log = pt_logf(sum);
        in = l->in + lane;
        for (int32_t i = l->size; i > 0; i--, in += l->in_step, out += l->out_step) {
            *out = (*in - max) - log;
        }
    }
    return PT_ERROR_OK;
}

// Computes a lane in float64.
static int softmax_double(pt_context *c, bool logarithm, double *out, int32_t out_step,
                          const double *in, int32_t in_step, int32_t size) {
    double max = *in, sum = 0;
    for (int32_t i = 1; i < size; i++) {
        max = in[i * in_step] > max ? in[i * in_step] : max;
    }
    int32_t at = 0;
    FOR_EACH(c, size, {
        PT_TRY(pt_count_work(c, PT_FLOAT64_STEPS));
        const double e = pt_float64->exp(in[at * in_step] - max);
        out[at * out_step] = logarithm ? in[at * in_step] - max : e;
        sum += e;
        at++;
    })
    const double log = logarithm ? pt_float64->log(sum) : 0;
    at = 0;
    FOR_EACH(c, size, {
        out[at * out_step] = logarithm ? out[at * out_step] - log : out[at * out_step] / sum;
        at++;
    })
    return PT_ERROR_OK;
}

typedef struct softmax {
    pt_tensor in, out;
    int (*run)(const lanes *);
    float *buffer; // for a lane of float16 or bfloat16
} softmax;

// Computes the lane from element `from` of in and `to` of out on.
static int run_lane(pt_context *c, const softmax *s, int32_t to, int32_t from, int32_t size,
                    const int32_t steps[2]) {
    PT_TRY(pt_count_elements(c, first_piece(size)));
    if (s->in.dtype == PT_DTYPE_FLOAT) {
        return s->run(&(lanes){c, 1, size, (float *)s->out.data + to,
                               (const float *)s->in.data + from, steps[0], steps[1]});
    }
    if (s->in.dtype == PT_DTYPE_DOUBLE) {
        return softmax_double(c, s->run == log_softmax_lanes, (double *)s->out.data + to, steps[0],
                              (const double *)s->in.data + from, steps[1], size);
    }
    pt_read_halves(s->buffer, s->in.data, from, steps[1], size, s->in.dtype);
    PT_TRY(s->run(&(lanes){c, 1, size, s->buffer, s->buffer, 1, 1}));
    pt_write_halves(s->out.data, to, steps[0], s->buffer, size, s->out.dtype);
    return PT_ERROR_OK;
}

// Computes every lane of tensors with different dim orders.
static __attribute__((noinline)) int softmax_walk(pt_context *c, const softmax *s, uint32_t axis) {
    pt_walk w;
    int32_t steps[2];
    walk_lanes(&w, &s->out, &s->in, axis, steps);
    do {
        for (int32_t i = 0; i < w.n; i++) {
            PT_TRY(run_lane(c, s, w.offset[0] + i * w.strides[0][0],
                            w.offset[1] + i * w.strides[1][0], s->out.sizes[axis], steps));
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

// Computes few elements in one dim order, in which the dim has this position.
static int run_small(pt_context *c, const pt_ref *args, int (*run)(const lanes *),
                     uint32_t position) {
    const pt_tensor out = pt_get_tensor(c, args[SOFTMAX_OUT]);
    const int32_t size = out.sizes[out.dim_order[position]];
    int32_t inner = 1, outer = 1;
    for (uint32_t d = position; d-- > 0;) {
        outer *= out.sizes[out.dim_order[d]];
    }
    while (++position < out.rank) {
        inner *= out.sizes[out.dim_order[position]];
    }
    const int32_t step = size * inner;
    PT_TRY(pt_count_elements(c, outer * step));
    lanes l = {c, inner, size, out.data, pt_get_data(c, args[SOFTMAX_SELF]), inner, inner};
    do {
        PT_TRY(run(&l));
        l.out += step;
        l.in += step;
    } while (--outer > 0);
    return PT_ERROR_OK;
}

static __attribute__((noinline)) int run_lanes(pt_context *c, const pt_ref *args,
                                               int (*run)(const lanes *)) {
    softmax s = {pt_get_tensor(c, args[SOFTMAX_SELF]), pt_get_tensor(c, args[SOFTMAX_OUT]), run,
                 NULL};
    void *scratch;
    if (pt_numel(&s.in) == 0) {
        return PT_ERROR_OK;
    }
    uint32_t axis = axis_of(&s.in, pt_get_int(c, args[SOFTMAX_DIM]));
    PT_TRY(pt_get_scratch(c, softmax_scratch(&s.in, axis), &scratch));
    s.buffer = scratch;
    pt_lanes all = pt_lanes_of(&s.in, axis);
    if (!pt_same_dim_order(&s.in, &s.out)) {
        return softmax_walk(c, &s, axis);
    }
    const int32_t steps[] = {all.inner, all.inner};
    for (int32_t i = 0; i < all.outer; i++) {
        int32_t first = i * all.size * all.inner;
        for (int32_t j = 0; j < all.inner; j++) {
            PT_TRY(run_lane(c, &s, first + j, first + j, all.size, steps));
        }
    }
    return PT_ERROR_OK;
}

static int run_softmax(pt_context *c, const pt_ref *args, int (*run)(const lanes *)) {
    const uint32_t variant = pt_variant(c);
    return variant ? run_small(c, args, run, variant - 1) : run_lanes(c, args, run);
}

static int softmax_run(pt_context *c, const pt_ref *args) {
    return run_softmax(c, args, softmax_lanes);
}

static int log_softmax_run(pt_context *c, const pt_ref *args) {
    return run_softmax(c, args, log_softmax_lanes);
}

const pt_kernel pt_aten__softmax_out = PT_KERNEL(softmax_check, softmax_run);
const pt_kernel pt_aten__log_softmax_out = PT_KERNEL(softmax_check, log_softmax_run);

// ---- cumsum, cumprod, logcumsumexp

typedef int cumulate_function(pt_context *c, const pt_tensor *out, int32_t i, const pt_tensor *in,
                              int32_t j, int32_t size, const int32_t steps[2]);

// Integers and bools result in int64 unless dtype is set; floats result in a float.
static int softmax_check_cumulated(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[CUMSUM_SELF]);
    pt_tensor out = pt_get_tensor(c, args[CUMSUM_OUT]);
    if (!pt_dtype_in(in.dtype, PT_DTYPES_ALL) || !pt_dtype_in(out.dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the operator does not support this dtype");
    }
    uint8_t result = pt_is_floating(in.dtype) ? in.dtype : PT_DTYPE_LONG;
    int64_t dtype = pt_is_none(args[CUMSUM_DTYPE]) ? result : pt_get_int(c, args[CUMSUM_DTYPE]);
    if (dtype != out.dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "the output's dtype is not that of the result");
    }
    return softmax_check_lanes(c, &in, args[CUMSUM_DIM], args[CUMSUM_OUT]);
}

// Computes cumulative sums or products of `size` elements, from element i of out and j of in on.
static int softmax_cumulate_lane(pt_context *c, const pt_tensor *out, int32_t i,
                                 const pt_tensor *in, int32_t j, int32_t size,
                                 const int32_t steps[2], bool multiplies) {
    uint64_t integers = multiplies;
    double floats = multiplies;
    for (; size > 0; size--, i += steps[0], j += steps[1]) {
        PT_TRY(pt_count_elements(c, 1));
        const void *from = in->data;
        int32_t at = j;
        uint64_t converted;
        if (in->dtype != out->dtype) {
            pt_convert_element(&converted, 0, out->dtype, in->data, j, in->dtype);
            from = &converted;
            at = 0;
        }
        if (pt_is_floating(out->dtype)) {
            const double v = pt_load_double(from, at, out->dtype);
            floats = multiplies ? floats * v : floats + v;
            pt_store_double(out->data, i, out->dtype, floats);
        } else {
            const uint64_t v = (uint64_t)pt_load_int(from, at, out->dtype);
            integers = multiplies ? integers * v : integers + v;
            pt_store_int(out->data, i, out->dtype, (int64_t)integers);
        }
    }
    return PT_ERROR_OK;
}

static int sum_lane(pt_context *c, const pt_tensor *out, int32_t i, const pt_tensor *in, int32_t j,
                    int32_t size, const int32_t steps[2]) {
    return softmax_cumulate_lane(c, out, i, in, j, size, steps, false);
}

static int multiply_lane(pt_context *c, const pt_tensor *out, int32_t i, const pt_tensor *in,
                         int32_t j, int32_t size, const int32_t steps[2]) {
    return softmax_cumulate_lane(c, out, i, in, j, size, steps, true);
}

static __attribute__((noinline)) int cumulate_walk(pt_context *c, const pt_tensor *out,
                                                   const pt_tensor *in, uint32_t axis,
                                                   cumulate_function *lane) {
    pt_walk w;
    int32_t steps[2];
    walk_lanes(&w, out, in, axis, steps);
    do {
        for (int32_t i = 0; i < w.n; i++) {
            PT_TRY(lane(c, out, w.offset[0] + i * w.strides[0][0], in,
                        w.offset[1] + i * w.strides[1][0], out->sizes[axis], steps));
        }
    } while (pt_walk_next(c, &w));
    return w.error;
}

static int cumulate(pt_context *c, const pt_ref *args, pt_ref to, cumulate_function *lane) {
    pt_tensor in = pt_get_tensor(c, args[CUMSUM_SELF]);
    pt_tensor out = pt_get_tensor(c, to);
    if (pt_numel(&out) == 0) {
        return PT_ERROR_OK;
    }
    if (out.rank > 0) {
        return cumulate_walk(c, &out, &in, axis_of(&in, pt_get_int(c, args[CUMSUM_DIM])), lane);
    }
    pt_convert_element(out.data, 0, out.dtype, in.data, 0, in.dtype);
    return PT_ERROR_OK;
}

static int cumsum_run(pt_context *c, const pt_ref *args) {
    return cumulate(c, args, args[CUMSUM_OUT], sum_lane);
}

static int cumprod_run(pt_context *c, const pt_ref *args) {
    return cumulate(c, args, args[CUMSUM_OUT], multiply_lane);
}

const pt_kernel pt_aten_cumsum_out = PT_KERNEL(softmax_check_cumulated, cumsum_run);
const pt_kernel pt_aten_cumprod_out = PT_KERNEL(softmax_check_cumulated, cumprod_run);

static int check_logcumsumexp(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[LOGCUMSUMEXP_SELF]);
    const pt_tensor out = pt_get_tensor(c, args[LOGCUMSUMEXP_OUT]);
    if (!pt_is_floating(in.dtype) || out.dtype != in.dtype) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "logcumsumexp supports floating dtypes only");
    }
    PT_TRY(pt_check_math(c, in.dtype, PT_REASON_DTYPE));
    return softmax_check_lanes(c, &in, args[LOGCUMSUMEXP_DIM], args[LOGCUMSUMEXP_OUT]);
}

// Return exp(x) for x <= 0, and log(x), with the precision of the dtype.
static double exponential(double x, uint8_t dtype) {
    return dtype == PT_DTYPE_DOUBLE ? pt_float64->exp(x) : (double)pt_expf((float)x);
}

static double logarithm_of(double x, uint8_t dtype) {
    return dtype == PT_DTYPE_DOUBLE ? pt_float64->log(x) : (double)pt_logf((float)x);
}

// Keeps two values: the maximum so far, and the sum divided by the exponential of this maximum.
static int logcumsumexp_lane(pt_context *c, const pt_tensor *out, int32_t i, const pt_tensor *in,
                             int32_t j, int32_t size, const int32_t steps[2]) {
    double sum = 0, greatest = -__builtin_inf();
    for (; size > 0; size--, i += steps[0], j += steps[1]) {
        PT_TRY(pt_count_elements(c, 1));
        const double x = pt_load_double(in->data, j, in->dtype);
        if (x == greatest) { // also if both are infinite
            sum += 1;
        } else if (x > greatest) {
            sum = sum * exponential(greatest - x, in->dtype) + 1;
            greatest = x;
        } else {
            sum += exponential(x - greatest, in->dtype);
        }
        pt_store_double(out->data, i, out->dtype, greatest + logarithm_of(sum, in->dtype));
    }
    return PT_ERROR_OK;
}

static int logcumsumexp_run(pt_context *c, const pt_ref *args) {
    return cumulate(c, args, args[LOGCUMSUMEXP_OUT], logcumsumexp_lane);
}

const pt_kernel pt_aten_logcumsumexp_out = PT_KERNEL(check_logcumsumexp, logcumsumexp_run);
