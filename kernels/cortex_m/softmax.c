// softmax: int8 values along one dim; input and output have the same layout. Computes in float32,
// like the reference, by pt_expf.
#include "core/generated/operator_arguments.h"
#include "cortex_m/quantized.h"
#include "portable/float_math.h"

enum { OUTPUT_ZERO_POINT = -128 };     // the outputs' scale is 1/256
enum { INPUT_FRACTION_BITS = 31 - 5 }; // the multiplier scales to a fixed point of 5 integer bits

enum { DIFFERENCES = 256, TABLE_MIN = 256 }; // elements from which a table is faster

// exp(-difference * scale), for the differences between the largest int8 value of a lane and the
// others. A table keeps the values that were computed.
typedef struct exponentials {
    float scale;
    float *table; // NULL for none; negative where it has no value yet
} exponentials;

static uint32_t softmax_table_bytes(const pt_tensor *in) {
    return pt_numel(in) < TABLE_MIN ? 0 : DIFFERENCES * (uint32_t)sizeof(float);
}

static __attribute__((noinline)) float softmax_compute(const exponentials *e, int32_t difference) {
    const float value = pt_expf((float)-difference * e->scale);
    if (e->table) {
        e->table[difference] = value;
    }
    return value;
}

static inline float softmax_exponential(const exponentials *e, int32_t difference) {
    const float value = e->table ? e->table[difference] : -1;
    return value >= 0 ? value : softmax_compute(e, difference);
}

// Rounds a value of 0..256 to an integer, halves to even, by an addition whose last bit is 1.
static inline int32_t softmax_round(float value) {
    union {
        float value;
        int32_t bits;
    } sum = {value + 0x1.8p23f};
    return sum.bits & 0x1FF;
}

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
    PT_TRY(pt_check_like(c, args[CORTEX_M_SOFTMAX_OUT], &in, PT_DTYPE_CHAR));
    pt_use_scratch(c, softmax_table_bytes(&in));
    return PT_ERROR_OK;
}

enum { PIECE = 1 << 12, STEPS = 8 }; // values between two polls; steps of a value

static int softmax_lane(pt_context *c, const int8_t *in, int8_t *out, const pt_lanes *l,
                        const exponentials *e) {
    const int32_t inner = l->inner, span = l->size * inner;
    int32_t max = INT8_MIN;
    float sum = 0;
    for (int32_t i = 0; i < span; i += inner) {
        max = in[i] > max ? in[i] : max;
    }
    for (int32_t i = 0, left = l->size; left > 0; left -= PIECE) {
        const int32_t end = left < PIECE ? span : i + PIECE * inner;
        PT_TRY(pt_count_work(c, (left < PIECE ? left : PIECE) * STEPS));
        for (; i < end; i += inner) {
            sum += softmax_exponential(e, max - in[i]);
        }
    }
    for (int32_t i = 0, left = l->size; left > 0; left -= PIECE) {
        const int32_t end = left < PIECE ? span : i + PIECE * inner;
        PT_TRY(pt_count_work(c, (left < PIECE ? left : PIECE) * STEPS));
        for (; i < end; i += inner) {
            const int32_t n = softmax_round(softmax_exponential(e, max - in[i]) / sum * 256);
            out[i] = (int8_t)((n < DIFFERENCES ? n : DIFFERENCES - 1) + OUTPUT_ZERO_POINT);
        }
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
    const uint32_t bytes = softmax_table_bytes(&in);
    exponentials e = {
        pt_real_multiplier((int32_t)pt_get_int(c, args[CORTEX_M_SOFTMAX_INPUT_MULTIPLIER]),
                           (int32_t)pt_get_int(c, args[CORTEX_M_SOFTMAX_INPUT_SHIFT]) -
                               INPUT_FRACTION_BITS),
        bytes && c->scratch_size >= bytes ? (float *)(void *)c->scratch : NULL};
    for (int32_t i = 0; e.table && i < DIFFERENCES; i++) {
        e.table[i] = -1;
    }
    for (int32_t i = 0; i < l.outer; i++) {
        for (int32_t j = 0; j < l.inner; j++) {
            int32_t first = i * l.size * l.inner + j;
            PT_TRY(softmax_lane(c, (int8_t *)in.data + first, (int8_t *)out.data + first, &l, &e));
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_cortex_m_softmax_out =
    PT_KERNEL(softmax_s8_softmax_check, softmax_s8_softmax_run);
