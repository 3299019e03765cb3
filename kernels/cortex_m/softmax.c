// Softmax of int8 values along one dim. Like the reference it computes in float32.
#include "../portable/float_math.h"
#include "quantized.h"

enum { OUTPUT_ZERO_POINT = -128 };     // the outputs' scale is 1/256
enum { INPUT_FRACTION_BITS = 31 - 5 }; // the multiplier scales to a fixed point of 5 integer bits

// A dim as it lies in memory: `outer` times `size` times `inner` elements, not none.
typedef struct lanes {
    int32_t outer, size, inner;
} lanes;

static lanes lanes_of(const pt_tensor *t, int64_t dim) {
    lanes l = {1, 1, 1};
    uint32_t place = (uint32_t)(dim < 0 ? dim + t->rank : dim), i = 0;
    for (; i < t->rank && t->dim_order[i] != place; i++) {
        l.outer *= t->sizes[t->dim_order[i]];
    }
    l.size = t->rank ? t->sizes[place] : 1;
    for (i++; i < t->rank; i++) {
        l.inner *= t->sizes[t->dim_order[i]];
    }
    return l;
}

static int softmax_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    int64_t dim = pt_get_int(c, args[1]), rank = in.rank ? in.rank : 1;
    int32_t value;
    if (in.dtype != PT_DTYPE_CHAR) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input must be int8");
    }
    if (dim < -rank || dim >= rank) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "dim is outside the tensor's dims");
    }
    if (pt_get_int(c, args[3]) != OUTPUT_ZERO_POINT) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "output_zero_point must be -128");
    }
    int error = pt_read_offset(c, args[2], &value);
    error = error ? error : pt_read_int(c, args[4], 1, INT32_MAX, &value);
    error = error ? error : pt_read_int(c, args[5], -31, 31, &value);
    return error ? error : pt_check_like(c, args[7], &in, PT_DTYPE_CHAR);
}

static float real(int32_t value, int32_t zero_point, float scale) {
    return (float)(value - zero_point) * scale;
}

static void softmax_lane(const int8_t *in, int8_t *out, const lanes *l, int32_t zero_point,
                         float scale) {
    int32_t span = l->size * l->inner, max = INT8_MIN;
    float sum = 0;
    for (int32_t i = 0; i < span; i += l->inner) {
        max = in[i] > max ? in[i] : max;
    }
    float largest = real(max, zero_point, scale);
    for (int32_t i = 0; i < span; i += l->inner) {
        sum += pt_expf(real(in[i], zero_point, scale) - largest);
    }
    for (int32_t i = 0; i < span; i += l->inner) {
        float probability = pt_expf(real(in[i], zero_point, scale) - largest) / sum;
        int32_t quantized = (int32_t)pt_rintf(probability * 256) + OUTPUT_ZERO_POINT;
        out[i] = (int8_t)pt_clamp(quantized, INT8_MIN, INT8_MAX);
    }
}

static int softmax_run(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]), out = pt_get_tensor(c, args[7]);
    if (pt_numel(&in) == 0) {
        return PT_ERROR_OK;
    }
    lanes l = lanes_of(&in, pt_get_int(c, args[1]));
    int32_t zero_point = (int32_t)pt_get_int(c, args[2]);
    float scale = pt_real_multiplier((int32_t)pt_get_int(c, args[4]),
                                     (int32_t)pt_get_int(c, args[5]) - INPUT_FRACTION_BITS);
    for (int32_t i = 0; i < l.outer; i++) {
        for (int32_t j = 0; j < l.inner; j++) {
            int32_t first = i * l.size * l.inner + j;
            softmax_lane((int8_t *)in.data + first, (int8_t *)out.data + first, &l, zero_point,
                         scale);
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_cortex_m_softmax_out = {softmax_check, softmax_run};
