// softmax: int8 values along one dim; input and output have the same layout. Computes in float32,
// like the reference, by pt_expf.
#include "core/generated/operator_arguments.h"
#include "cortex_m/quantized.h"
#include "portable/float_math.h"

enum { OUTPUT_ZERO_POINT = -128 };     // the outputs' scale is 1/256
enum { INPUT_FRACTION_BITS = 31 - 5 }; // the multiplier scales to a fixed point of 5 integer bits

static int softmax_s8_softmax_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[CORTEX_M_SOFTMAX_INPUT]);
    int64_t dim = pt_get_int(c, args[CORTEX_M_SOFTMAX_DIM]), rank = in.rank ? in.rank : 1;
    int32_t value;
    if (in.dtype != PT_DTYPE_CHAR) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input must be int8");
    }
    if (dim < -rank || dim >= rank) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "dim is outside the tensor's dims");
    }
    if (pt_get_int(c, args[CORTEX_M_SOFTMAX_OUTPUT_ZERO_POINT]) != OUTPUT_ZERO_POINT) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "output_zero_point must be -128");
    }
    PT_TRY(pt_read_offset(c, args[CORTEX_M_SOFTMAX_INPUT_ZERO_POINT], &value));
    PT_TRY(pt_read_int(c, args[CORTEX_M_SOFTMAX_INPUT_MULTIPLIER], 1, INT32_MAX, &value));
    PT_TRY(pt_read_int(c, args[CORTEX_M_SOFTMAX_INPUT_SHIFT], -31, 31, &value));
    return pt_check_like(c, args[CORTEX_M_SOFTMAX_OUT], &in, PT_DTYPE_CHAR);
}

static float real(int32_t value, int32_t zero_point, float scale) {
    return (float)(value - zero_point) * scale;
}

enum { PIECE = 1 << 12, STEPS = 8 }; // values between two polls; steps of a value

// Polls once a piece of a lane; `left` values are left.
#define COUNT_PIECE(c, left)                        \
    do {                                            \
        if (((left) & (PIECE - 1)) == 0) {          \
            PT_TRY(pt_count_work(c, PIECE *STEPS)); \
        }                                           \
    } while (0)

static int softmax_lane(pt_context *c, const int8_t *in, int8_t *out, const pt_lanes *l,
                        int32_t zero_point, float scale) {
    int32_t span = l->size * l->inner, max = INT8_MIN, left = l->size;
    float sum = 0;
    PT_TRY(pt_count_work(c, l->size % PIECE * STEPS));
    for (int32_t i = 0; i < span; i += l->inner) {
        max = in[i] > max ? in[i] : max;
    }
    float largest = real(max, zero_point, scale);
    for (int32_t i = 0; i < span; i += l->inner, left--) {
        COUNT_PIECE(c, left);
        sum += pt_expf(real(in[i], zero_point, scale) - largest);
    }
    left = l->size;
    for (int32_t i = 0; i < span; i += l->inner, left--) {
        COUNT_PIECE(c, left);
        float probability = pt_expf(real(in[i], zero_point, scale) - largest) / sum;
        int32_t quantized = (int32_t)pt_rintf(probability * 256) + OUTPUT_ZERO_POINT;
        out[i] = (int8_t)pt_clamp(quantized, INT8_MIN, INT8_MAX);
    }
    return PT_ERROR_OK;
}

static int softmax_s8_softmax_run(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[CORTEX_M_SOFTMAX_INPUT]);
    pt_tensor out = pt_get_tensor(c, args[CORTEX_M_SOFTMAX_OUT]);
    if (pt_numel(&in) == 0) {
        return PT_ERROR_OK;
    }
    int64_t dim = pt_get_int(c, args[CORTEX_M_SOFTMAX_DIM]);
    pt_lanes l = pt_lanes_of(&in, (uint32_t)(dim < 0 ? dim + in.rank : dim));
    int32_t zero_point = (int32_t)pt_get_int(c, args[CORTEX_M_SOFTMAX_INPUT_ZERO_POINT]);
    float scale = pt_real_multiplier(
        (int32_t)pt_get_int(c, args[CORTEX_M_SOFTMAX_INPUT_MULTIPLIER]),
        (int32_t)pt_get_int(c, args[CORTEX_M_SOFTMAX_INPUT_SHIFT]) - INPUT_FRACTION_BITS);
    for (int32_t i = 0; i < l.outer; i++) {
        for (int32_t j = 0; j < l.inner; j++) {
            int32_t first = i * l.size * l.inner + j;
            PT_TRY(softmax_lane(c, (int8_t *)in.data + first, (int8_t *)out.data + first, &l,
                                zero_point, scale));
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_cortex_m_softmax_out =
    PT_KERNEL(softmax_s8_softmax_check, softmax_s8_softmax_run);
