// picotorch::quantized_layer_norm and picotorch::quantized_group_norm: int8 values, computed with
// integers only. Loops: arch/norm_rows.h.
//
// Of n values x of a group with mean m, V is n * sum(x^2) - sum(x)^2, n^2 times the variance. Then
//
//   (x - m) / sqrt(variance + eps) = (n * x - sum(x)) / sqrt(V + n^2 * eps)
//
// has no division but the one by the root. The argument epsilon is n^2 * eps * 2^NORM_BITS / the
// square of the input's scale. Normalized values have norm_bits(n) bits behind the point, as many
// as keep the largest, the root of n, within 32 bits. The weights are int16, the biases int32:
//
//   output = (normalized * weight / 2^16 + bias) / 2^shift, both divisions rounded down
//
// so weight contains 1 / the output's scale, and bias its zero point and a half.
#include "arch/norm_rows.h"
#include "core/generated/operator_arguments.h"
#include "cortex_m/quantized.h"

enum {
    NORM_BITS = 8,         // of V behind the point
    NORM_MAX = 1 << 19,    // values of a group: V has 62 bits
    NORM_LARGEST = 28,     // bits of the largest normalized value
    NORM_PIECE = 1 << 14,  // values between two polls
    NORM_MAX_EPSILON = 62, // bits
    NORM_ROW = 16,         // channels of a pixel that are worth a call
};

// ---- check

static int norm_check_parameters(pt_context *c, pt_ref weight_arg, pt_ref bias_arg, int32_t n) {
    const pt_tensor weight = pt_get_tensor(c, weight_arg), bias = pt_get_tensor(c, bias_arg);
    if (weight.dtype != PT_DTYPE_SHORT || bias.dtype != PT_DTYPE_INT) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "weight must be int16, and bias int32");
    }
    if (pt_numel(&weight) != n || pt_numel(&bias) != n) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "weight and bias must have a value for each of a row, or each channel");
    }
    return PT_ERROR_OK;
}

// Checks the arguments that both operators have: epsilon and shift are adjacent.
static int norm_check(pt_context *c, const pt_tensor *in, const pt_ref *epsilon, pt_ref out) {
    int32_t shift;
    const int64_t value = pt_get_int(c, epsilon[0]);
    if (in->dtype != PT_DTYPE_CHAR) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input must be int8");
    }
    if (value < 0 || value >> NORM_MAX_EPSILON != 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "epsilon must be in 0..2^62-1");
    }
    PT_TRY(pt_read_int(c, epsilon[1], 0, 31, &shift));
    return pt_check_like(c, out, in, PT_DTYPE_CHAR);
}

static int norm_check_size(pt_context *c, int64_t n) {
    return n <= NORM_MAX ? PT_ERROR_OK
                         : pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                                   "a group has more than 2^19 values to normalize");
}

// ---- arithmetic

// Returns the bits behind the point of values whose largest is the root of n.
static int32_t norm_bits(int32_t n) {
    int32_t bits = NORM_LARGEST;
    for (int32_t largest = 1; largest < n; largest *= 4) {
        bits--;
    }
    return bits;
}

static uint32_t high_half(uint32_t a, uint32_t b) {
    return (uint32_t)((uint64_t)a * b >> 32);
}

// Returns 2^30 / sqrt(x / 2^32), for x of at least 2^30, by Newton's iteration, whose third step
// leaves a relative error of 2^-23.
static uint32_t inverse_root(uint32_t x) {
    // The line through (1/4, 2) and (1, 1), lowered until it is as far above as below the curve.
    const uint32_t line = 2369032378u;             // (7 / 3 - 0.127) * 2^30
    uint32_t y = line - high_half(x, 1431655765u); // 4 / 3 * 2^30
    for (int i = 0; i < 3; i++) {
        const uint32_t product = high_half(x, high_half(y, y)); // x * y^2, of 28 bits
        y = (uint32_t)((uint64_t)y * ((3u << 28) - product) >> 29);
    }
    return y;
}

// x * scale + shift is the normalized x.
typedef struct norm_line {
    int64_t scale, shift;
} norm_line;

// Returns the line for n values, of which V is `variance`, and n times the mean `sum`.
static __attribute__((noinline)) norm_line
norm_make_line(int32_t n, int32_t bits, uint64_t variance, int64_t sum, uint64_t epsilon) {
    if (variance == 0) {
        return (norm_line){0, 0};
    }
    uint64_t value = (variance << NORM_BITS) + epsilon;
    int32_t zeros = value >> 32 ? 0 : 32; // before the highest bit, an even number
    zeros += __builtin_clz((uint32_t)(value << zeros >> 32)) & ~1;
    const int32_t right = 62 - NORM_BITS / 2 - bits - zeros / 2; // at least 3
    const uint32_t root = inverse_root((uint32_t)(value << zeros >> 32));
    const int64_t half = (int64_t)1 << (right - 1);
    return (norm_line){(n * (int64_t)root + half) >> right, (half - sum * root) >> right};
}

typedef struct norm_sums {
    int64_t sum, squares;
} norm_sums;

// Adds n values, `step` apart.
static __attribute__((noinline)) int norm_add(pt_context *c, const int8_t *x, int32_t n,
                                              int32_t step, norm_sums *sums) {
    for (int32_t piece; n > 0; n -= piece, x += piece * step) {
        pt_byte_sums some = {0, 0};
        piece = n < NORM_PIECE ? n : NORM_PIECE;
        PT_TRY(pt_count_work(c, piece));
        if (step == 1) {
            pt_sum_row(x, piece, &some);
        } else {
            pt_sum_steps(x, piece, step, &some);
        }
        sums->sum += some.sum;
        sums->squares += some.squares;
    }
    return PT_ERROR_OK;
}

// Returns V of the values that the sums are of.
static uint64_t norm_variance(int32_t n, const norm_sums *s) {
    return (uint64_t)(n * s->squares - s->sum * s->sum);
}

// ---- layer norm: rows of as many values as weight has, as they lie in memory

static int layer_norm_check(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[QUANTIZED_LAYER_NORM_INPUT]);
    const pt_tensor weight = pt_get_tensor(c, args[QUANTIZED_LAYER_NORM_WEIGHT]);
    const int32_t n = pt_numel(&weight), total = pt_numel(&in);
    int32_t zero_point;
    PT_TRY(norm_check_parameters(c, args[QUANTIZED_LAYER_NORM_WEIGHT],
                                 args[QUANTIZED_LAYER_NORM_BIAS], n));
    if (n > 0 ? total % n != 0 : total > 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the weights do not divide the input");
    }
    PT_TRY(norm_check_size(c, n));
    PT_TRY(pt_read_int(c, args[QUANTIZED_LAYER_NORM_INPUT_ZERO_POINT], INT8_MIN, INT8_MAX,
                       &zero_point));
    return norm_check(c, &in, args + QUANTIZED_LAYER_NORM_EPSILON, args[QUANTIZED_LAYER_NORM_OUT]);
}

static int layer_norm_run(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[QUANTIZED_LAYER_NORM_INPUT]);
    const pt_tensor weight = pt_get_tensor(c, args[QUANTIZED_LAYER_NORM_WEIGHT]);
    const bool subtracts = pt_get_bool(c, args[QUANTIZED_LAYER_NORM_SUBTRACT_MEAN]);
    const int32_t zero_point = (int32_t)pt_get_int(c, args[QUANTIZED_LAYER_NORM_INPUT_ZERO_POINT]);
    const uint64_t epsilon = (uint64_t)pt_get_int(c, args[QUANTIZED_LAYER_NORM_EPSILON]);
    const int32_t n = pt_numel(&weight), bits = norm_bits(n);
    const int8_t *x = in.data, *end = x + pt_numel(&in);
    int8_t *out = pt_get_data(c, args[QUANTIZED_LAYER_NORM_OUT]);
    pt_norm_row row = {0, 0, weight.data, pt_get_data(c, args[QUANTIZED_LAYER_NORM_BIAS]),
                       (int32_t)pt_get_int(c, args[QUANTIZED_LAYER_NORM_SHIFT])};
    while (x != end) {
        norm_sums sums = {0, 0};
        PT_TRY(norm_add(c, x, n, 1, &sums));
        if (!subtracts) { // the deviations from the zero point
            sums.squares -= zero_point * (2 * sums.sum - (int64_t)n * zero_point);
            sums.sum = 0;
        }
        norm_line line = norm_make_line(n, bits, norm_variance(n, &sums),
                                        subtracts ? sums.sum : (int64_t)n * zero_point, epsilon);
        row.scale = (uint32_t)line.scale;
        row.shift = (uint32_t)line.shift;
        for (int32_t i = 0; i < n; i += NORM_PIECE) {
            const int32_t piece = n - i < NORM_PIECE ? n - i : NORM_PIECE;
            PT_TRY(pt_count_work(c, piece));
            pt_normalize_bytes(&row, x, out, i, piece);
            x += piece;
            out += piece;
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_picotorch_quantized_layer_norm_out = PT_KERNEL(layer_norm_check, layer_norm_run);

// ---- group norm: (batch, channels, ...), contiguous or channels last

// The values of a channel: `area` of them, `step` apart. Neighbouring channels are `channel_step`
// apart.
typedef struct norm_channels {
    int32_t count, area, step, channel_step;
} norm_channels;

// Returns the channels of a tensor with elements.
static norm_channels norm_channels_of(const pt_tensor *in) {
    const int32_t count = in->sizes[1], area = pt_numel(in) / in->sizes[0] / count;
    return in->flags & PT_VALUE_CONTIGUOUS ? (norm_channels){count, area, 1, area}
                                           : (norm_channels){count, area, count, 1};
}

static int group_norm_check(pt_context *c, const pt_ref *args) {
    static const uint8_t channels_last[4] = {0, 2, 3, 1};
    const pt_tensor in = pt_get_tensor(c, args[QUANTIZED_GROUP_NORM_INPUT]);
    const int64_t groups = pt_get_int(c, args[QUANTIZED_GROUP_NORM_GROUPS]);
    if (in.rank < 2) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input has no channels");
    }
    const int32_t channels = in.sizes[1], total = pt_numel(&in);
    if (!(in.flags & PT_VALUE_CONTIGUOUS) &&
        !(in.rank == 4 && pt_lies_in_order(&in, channels_last))) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                       "the input must be contiguous, or an image in channels_last");
    }
    if (groups < 1 || groups > (channels > 0 ? channels : 1) || channels % (int32_t)groups != 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the groups do not divide the channels");
    }
    PT_TRY(norm_check_parameters(c, args[QUANTIZED_GROUP_NORM_WEIGHT],
                                 args[QUANTIZED_GROUP_NORM_BIAS], channels));
    if (total > 0) {
        PT_TRY(norm_check_size(c, total / in.sizes[0] / (int32_t)groups));
    }
    return norm_check(c, &in, args + QUANTIZED_GROUP_NORM_EPSILON, args[QUANTIZED_GROUP_NORM_OUT]);
}

// Sums the values of neighbouring channels.
static int norm_add_group(pt_context *c, const norm_channels *v, const int8_t *x, int32_t channels,
                          norm_sums *sums) {
    if (v->step == 1) {
        return norm_add(c, x, channels * v->area, 1, sums);
    }
    if (channels >= NORM_ROW) {
        for (int32_t i = 0; i < v->area; i++, x += v->step) {
            PT_TRY(norm_add(c, x, channels, 1, sums));
        }
        return PT_ERROR_OK;
    }
    for (int32_t i = 0; i < channels; i++) {
        PT_TRY(norm_add(c, x + i, v->area, v->step, sums));
    }
    return PT_ERROR_OK;
}

// Normalizes a channel by its weight and bias.
static int norm_scale_channel(pt_context *c, const norm_channels *v, const int8_t *x, int8_t *out,
                              norm_line line, int32_t weight, int32_t bias, int32_t right) {
    const uint32_t scale = (uint32_t)(line.scale * weight >> 16);
    const uint32_t shift = (uint32_t)(line.shift * weight >> 16) + (uint32_t)bias;
    for (int32_t left = v->area; left > 0; left -= NORM_PIECE) {
        const int32_t piece = left < NORM_PIECE ? left : NORM_PIECE;
        PT_TRY(pt_count_work(c, piece));
        if (v->step == 1) {
            pt_scale_row(x, out, piece, scale, shift, right);
        } else {
            pt_scale_steps(x, out, piece, v->step, scale, shift, right);
        }
        x += piece * v->step;
        out += piece * v->step;
    }
    return PT_ERROR_OK;
}

static int group_norm_run(pt_context *c, const pt_ref *args) {
    const pt_tensor in = pt_get_tensor(c, args[QUANTIZED_GROUP_NORM_INPUT]);
    const int32_t groups = (int32_t)pt_get_int(c, args[QUANTIZED_GROUP_NORM_GROUPS]);
    const uint64_t epsilon = (uint64_t)pt_get_int(c, args[QUANTIZED_GROUP_NORM_EPSILON]);
    const int32_t right = (int32_t)pt_get_int(c, args[QUANTIZED_GROUP_NORM_SHIFT]);
    const int16_t *weight = pt_get_data(c, args[QUANTIZED_GROUP_NORM_WEIGHT]);
    const int32_t *bias = pt_get_data(c, args[QUANTIZED_GROUP_NORM_BIAS]);
    if (pt_numel(&in) == 0) {
        return PT_ERROR_OK;
    }
    const norm_channels v = norm_channels_of(&in);
    const int32_t channels = v.count / groups, n = channels * v.area, bits = norm_bits(n);
    for (int32_t i = 0; i < in.sizes[0] * groups; i++) {
        const int32_t first = i % groups * channels; // channel of the group
        const int32_t start = i / groups * v.count * v.area + first * v.channel_step;
        const int8_t *x = (const int8_t *)in.data + start;
        int8_t *out = (int8_t *)pt_get_data(c, args[QUANTIZED_GROUP_NORM_OUT]) + start;
        norm_sums sums = {0, 0};
        PT_TRY(norm_add_group(c, &v, x, channels, &sums));
        const norm_line line = norm_make_line(n, bits, norm_variance(n, &sums), sums.sum, epsilon);
        for (int32_t j = 0; j < channels; j++) {
            PT_TRY(norm_scale_channel(c, &v, x + j * v.channel_step, out + j * v.channel_step, line,
                                      weight[first + j], bias[first + j], right));
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_picotorch_quantized_group_norm_out = PT_KERNEL(group_norm_check, group_norm_run);
