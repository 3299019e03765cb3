// The gradients of aten::convolution, 1-d and 2-d, transposed or not, in any dim order.
#include "core/generated/operator_arguments.h"
#include "portable/convolution.h"
#include "portable/products.h"
#include <string.h>

// The functions are not inlined, so that their stack frames are not live together.
#define NOINLINE static __attribute__((noinline))

enum { TO_INPUT, TO_WEIGHT, TO_BIAS };

// Returns the output for gradient i, or None if it is not requested.
static pt_ref gradient(const pt_context *c, const pt_ref *args, uint32_t i) {
    return pt_list_bool(c, args[CONVOLUTION_BACKWARD_OUTPUT_MASK], i)
               ? args[CONVOLUTION_BACKWARD_OUT0 + i]
               : 0;
}

// Sets the arguments of a convolution with the input `from` and the output `to`.
static void set_arguments(const pt_ref *args, pt_ref from, pt_ref to, pt_ref *convolution) {
    const pt_ref *others = args + CONVOLUTION_BACKWARD_STRIDE - CONVOLUTION_STRIDE;
    for (uint32_t i = CONVOLUTION_STRIDE; i <= CONVOLUTION_GROUPS; i++) {
        convolution[i] = others[i];
    }
    convolution[CONVOLUTION_INPUT] = from;
    convolution[CONVOLUTION_WEIGHT] = args[CONVOLUTION_BACKWARD_WEIGHT];
    convolution[CONVOLUTION_BIAS] = 0;
    convolution[CONVOLUTION_OUT] = to;
}

// ---- check

static int check_gradient(pt_context *c, const pt_ref *args, uint32_t i, uint32_t rank,
                          const int32_t *sizes) {
    if (!pt_list_bool(c, args[CONVOLUTION_BACKWARD_OUTPUT_MASK], i)) {
        return PT_ERROR_OK;
    }
    const pt_ref out = args[CONVOLUTION_BACKWARD_OUT0 + i];
    if (pt_is_none(out) ||
        pt_get_tensor(c, out).dtype != pt_get_tensor(c, args[CONVOLUTION_BACKWARD_INPUT]).dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "a gradient that is asked for needs an output of the input's dtype");
    }
    return pt_expect_sizes(c, out, rank, sizes);
}

static int conv_backward_check(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[CONVOLUTION_BACKWARD_INPUT]);
    if (!pt_is_floating(in.dtype)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "no gradients of this dtype");
    }
    if (pt_list_length(c, args[CONVOLUTION_BACKWARD_OUTPUT_MASK]) != 3) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output mask must have three items");
    }
    pt_ref convolution[CONVOLUTION_OUT + 1];
    set_arguments(args, args[CONVOLUTION_BACKWARD_INPUT], args[CONVOLUTION_BACKWARD_GRAD_OUTPUT],
                  convolution);
    PT_TRY(pt_aten_convolution_out.check(c, convolution));
    PT_TRY(check_gradient(c, args, TO_INPUT, in.rank, in.sizes));
    const pt_tensor weight = pt_get_tensor(c, args[CONVOLUTION_BACKWARD_WEIGHT]);
    PT_TRY(check_gradient(c, args, TO_WEIGHT, weight.rank, weight.sizes));
    const pt_tensor grad = pt_get_tensor(c, args[CONVOLUTION_BACKWARD_GRAD_OUTPUT]);
    return check_gradient(c, args, TO_BIAS, 1, &grad.sizes[1]);
}

// ---- run: the weight

// A tensor (batch, channels, height, width). Steps count elements.
typedef struct images {
    const char *data;
    int32_t sizes[4];
    int32_t steps[4];
} images;

// Reads a tensor of 3 or 4 dims; a missing height is 1.
static void read_images(const pt_tensor *t, images *m) {
    int32_t steps[4];
    pt_strides(t, steps);
    m->data = t->data;
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t dim = i < 2 ? i : i + t->rank - 4u;
        const bool is_there = i != 2 || t->rank == 4;
        m->sizes[i] = is_there ? t->sizes[dim] : 1;
        m->steps[i] = is_there ? steps[dim] : 0;
    }
}

// The positions of two tensors that tap k multiplies, along a spatial dim: position i of the narrow
// tensor, from `first` on, and position i * stride + shift of the broad tensor.
typedef struct overlap {
    int32_t first, length;
    int32_t stride, shift;
} overlap;

static int32_t conv_backward_parameter(const pt_context *c, pt_ref list, uint32_t i,
                                       int32_t missing) {
    const uint32_t length = pt_list_length(c, list);
    return length == 0 ? missing : (int32_t)pt_list_int(c, list, length == 1 ? 0 : i);
}

static overlap overlap_at_tap(const pt_context *c, const pt_ref *args, uint32_t i, int32_t k,
                              int32_t narrow, int32_t broad) {
    overlap m = {.stride = conv_backward_parameter(c, args[CONVOLUTION_BACKWARD_STRIDE], i, 1)};
    m.shift = k * conv_backward_parameter(c, args[CONVOLUTION_BACKWARD_DILATION], i, 1) -
              conv_backward_parameter(c, args[CONVOLUTION_BACKWARD_PADDING], i, 0);
    m.first = m.shift < 0 ? (m.stride - 1 - m.shift) / m.stride : 0;
    const int32_t slack = broad - 1 - m.shift;
    const int32_t end = slack < 0 ? 0 : slack / m.stride + 1;
    m.length = (end < narrow ? end : narrow) - m.first;
    if (m.length <= 0) {
        return (overlap){.stride = 1};
    }
    return m;
}

// Computes one tap of the weight's gradient for all pairs of channels: sums over batch and
// positions. The broad tensor is the convolution's input, or its output if it is transposed; the
// weight's first dim counts the channels of the narrow tensor.
NOINLINE int sum_tap(pt_context *c, const pt_ref *args, const pt_tensor *out, const int32_t *tap) {
    const bool transposed = pt_get_bool(c, args[CONVOLUTION_BACKWARD_TRANSPOSED]);
    const int32_t groups = (int32_t)pt_get_int(c, args[CONVOLUTION_BACKWARD_GROUPS]);
    const pt_tensor in = pt_get_tensor(c, args[CONVOLUTION_BACKWARD_INPUT]);
    const pt_tensor grad = pt_get_tensor(c, args[CONVOLUTION_BACKWARD_GRAD_OUTPUT]);
    images narrow, broad, weight;
    read_images(transposed ? &in : &grad, &narrow);
    read_images(transposed ? &grad : &in, &broad);
    read_images(out, &weight);
    const int32_t size = (int32_t)pt_element_size(in.dtype);
    pt_products p = {.rows = weight.sizes[0] / groups,
                     .a_row = narrow.steps[1],
                     .out_row = weight.steps[0],
                     .lines = {.length = 1},
                     .columns = {weight.sizes[1], broad.steps[1], weight.steps[1]},
                     .taps = {narrow.sizes[0]},
                     .a_step = {narrow.steps[0]},
                     .b_step = {broad.steps[0]}};
    int32_t a = 0, b = 0, to = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t dim = i + in.rank - 4u; // index of the dim in the lists
        const overlap m =
            in.rank == 3 && i == 0
                ? (overlap){.length = 1, .stride = 1}
                : overlap_at_tap(c, args, dim, tap[i], narrow.sizes[2 + i], broad.sizes[2 + i]);
        a += m.first * narrow.steps[2 + i];
        b += (m.first * m.stride + m.shift) * broad.steps[2 + i];
        to += tap[i] * weight.steps[2 + i];
        p.taps[1 + i] = m.length;
        p.a_step[1 + i] = narrow.steps[2 + i];
        p.b_step[1 + i] = m.stride * broad.steps[2 + i];
    }
    if (p.taps[2] <= 1) {
        p.a_step[2] = 1;
    }
    for (int32_t g = 0; g < groups; g++) {
        p.a = narrow.data + (a + g * p.rows * narrow.steps[1]) * size;
        p.b = broad.data + (b + g * p.columns.length * broad.steps[1]) * size;
        p.out = (char *)out->data + (to + g * p.rows * weight.steps[0]) * size;
        PT_TRY(pt_sum_products(c, &p, in.dtype));
    }
    return PT_ERROR_OK;
}

NOINLINE int run_weight(pt_context *c, const pt_ref *args, const pt_tensor *out) {
    const pt_tensor in = pt_get_tensor(c, args[CONVOLUTION_BACKWARD_INPUT]);
    const pt_tensor grad = pt_get_tensor(c, args[CONVOLUTION_BACKWARD_GRAD_OUTPUT]);
    if (pt_numel(&in) == 0 || pt_numel(&grad) == 0) {
        memset(out->data, 0, pt_nbytes(out));
    } else if (pt_numel(out) > 0) {
        const int32_t height = out->rank == 4 ? out->sizes[2] : 1;
        const int32_t width = out->sizes[out->rank - 1];
        int32_t tap[2];
        for (tap[0] = 0; tap[0] < height; tap[0]++) {
            for (tap[1] = 0; tap[1] < width; tap[1]++) {
                PT_TRY(sum_tap(c, args, out, tap));
            }
        }
    }
    return PT_ERROR_OK;
}

// ---- run: the bias, and all gradients

// Sums each channel, as a product with a 1.
NOINLINE int run_bias(pt_context *c, const pt_ref *args, const pt_tensor *out) {
    const pt_tensor grad = pt_get_tensor(c, args[CONVOLUTION_BACKWARD_GRAD_OUTPUT]);
    images m;
    read_images(&grad, &m);
    double one;
    pt_store_double(&one, 0, grad.dtype, 1);
    const pt_products p = {.a = grad.data,
                           .b = &one,
                           .out = out->data,
                           .rows = m.sizes[1],
                           .a_row = m.steps[1],
                           .out_row = 1,
                           .lines = {.length = 1},
                           .columns = {.length = 1},
                           .taps = {m.sizes[0], m.sizes[2], m.sizes[3]},
                           .a_step = {m.steps[0], m.steps[2], m.steps[3]}};
    return pt_numel(out) == 0 ? PT_ERROR_OK : pt_sum_products(c, &p, grad.dtype);
}

static int conv_backward_run(pt_context *c, const pt_ref *args) {
    const pt_ref to_input = gradient(c, args, TO_INPUT), to_weight = gradient(c, args, TO_WEIGHT),
                 to_bias = gradient(c, args, TO_BIAS);
    if (!pt_is_none(to_input)) {
        pt_ref convolution[CONVOLUTION_OUT + 1];
        set_arguments(args, args[CONVOLUTION_BACKWARD_GRAD_OUTPUT], to_input, convolution);
        PT_TRY(pt_run_convolution(c, convolution,
                                  !pt_get_bool(c, args[CONVOLUTION_BACKWARD_TRANSPOSED])));
    }
    if (!pt_is_none(to_weight)) {
        const pt_tensor out = pt_get_tensor(c, to_weight);
        PT_TRY(run_weight(c, args, &out));
    }
    if (!pt_is_none(to_bias)) {
        const pt_tensor out = pt_get_tensor(c, to_bias);
        PT_TRY(run_bias(c, args, &out));
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_convolution_backward_out =
    PT_KERNEL(conv_backward_check, conv_backward_run);
