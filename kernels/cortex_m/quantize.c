// quantize_per_tensor and dequantize_per_tensor: float32 to integers and back, with one scale and
// zero point. int8 and uint8 by arch/elementwise.h, arch/quantize_bytes.h and
// arch/dequantize_bytes.h; other dtypes and ranges in plain C.
#include "arch/dequantize_bytes.h"
#include "arch/elementwise.h"
#include "arch/quantize_bytes.h"
#include "core/generated/operator_arguments.h"
#include "cortex_m/quantized.h"
#include "portable/float_math.h"
#include <string.h>

enum { RANGE_LIMIT = 1 << 21 }; // such integers and their halves are exact in float32

// q = clamp(round(x / scale) + zero_point), or x = (q - zero_point) * scale.
typedef struct quantization {
    double scale;
    int32_t zero_point, min, max;
} quantization;

// Returns the numbers of a call. They are in their ranges, since the check has succeeded.
static quantization get_quantization(const pt_context *c, const pt_ref *args) {
    return (quantization){
        .scale = pt_get_double(c, args[CORTEX_M_QUANTIZE_PER_TENSOR_SCALE]),
        .zero_point = (int32_t)pt_get_int(c, args[CORTEX_M_QUANTIZE_PER_TENSOR_ZERO_POINT]),
        .min = (int32_t)pt_get_int(c, args[CORTEX_M_QUANTIZE_PER_TENSOR_QUANT_MIN]),
        .max = (int32_t)pt_get_int(c, args[CORTEX_M_QUANTIZE_PER_TENSOR_QUANT_MAX]),
    };
}

// Checks the common arguments scale, zero_point, quant_min, quant_max and dtype, against the tensor
// `quantized` too.
static int check_quantization(pt_context *c, const pt_ref *args, const pt_tensor *quantized) {
    static const int32_t ranges[3][2] = {{0, 255}, {-128, 127}, {-32768, 32767}};
    uint32_t dtype = quantized->dtype;
    int32_t ignored, min;
    if (dtype != PT_DTYPE_BYTE && dtype != PT_DTYPE_CHAR && dtype != PT_DTYPE_SHORT) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "quantized tensors must be int8, uint8 or int16");
    }
    if (pt_get_int(c, args[CORTEX_M_QUANTIZE_PER_TENSOR_DTYPE]) != dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "dtype is not that of the quantized tensor");
    }
    const double scale = pt_get_double(c, args[CORTEX_M_QUANTIZE_PER_TENSOR_SCALE]);
    if (!(scale > 0 && scale < 1e38)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "scale must be above 0 and finite");
    }
    const int32_t *range = ranges[dtype];
    PT_TRY(pt_read_int(c, args[CORTEX_M_QUANTIZE_PER_TENSOR_ZERO_POINT], -RANGE_LIMIT / 2,
                       RANGE_LIMIT / 2, &ignored));
    PT_TRY(pt_read_int(c, args[CORTEX_M_QUANTIZE_PER_TENSOR_QUANT_MIN], range[0], range[1], &min));
    return pt_read_int(c, args[CORTEX_M_QUANTIZE_PER_TENSOR_QUANT_MAX], min, range[1], &ignored);
}

static void cortex_m_quantize_store(void *data, int32_t i, uint8_t dtype, int32_t value) {
    if (dtype == PT_DTYPE_SHORT) {
        ((int16_t *)data)[i] = (int16_t)value;
    } else {
        ((int8_t *)data)[i] = (int8_t)value;
    }
}

static int32_t cortex_m_quantize_load(const void *data, int32_t i, uint8_t dtype) {
    return dtype == PT_DTYPE_SHORT  ? ((const int16_t *)data)[i]
           : dtype == PT_DTYPE_CHAR ? ((const int8_t *)data)[i]
                                    : ((const uint8_t *)data)[i];
}

// ---- quantize

static int quantize_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[CORTEX_M_QUANTIZE_PER_TENSOR_INPUT]);
    pt_tensor out = pt_get_tensor(c, args[CORTEX_M_QUANTIZE_PER_TENSOR_OUT]);
    if (in.dtype != PT_DTYPE_FLOAT) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the input must be float32");
    }
    PT_TRY(check_quantization(c, args, &out));
    return pt_check_like(c, args[CORTEX_M_QUANTIZE_PER_TENSOR_OUT], &in, out.dtype);
}

// Adding 1.5 * 2^23 leaves the integer nearest to x in the low bits, halves to even, for x between
// `low` and `high`; a NaN gives 0.
static inline int32_t cortex_m_quantize(float x, float low, float high, const quantization *q) {
    if (x > low && x < high) {
        pt_bits rounded = {x + 12582912.0f};
        return rounded.i - 0x4B400000 + q->zero_point;
    }
    return x <= low ? q->min : x >= high ? q->max : 0;
}

// Returns the number of elements for the loops of four, of n from `data` on: 0 if it is not
// aligned.
static int32_t cortex_m_quantize_in_blocks(const void *data, int32_t n, uint32_t alignment) {
    return (uintptr_t)data % alignment ? 0 : n & ~3;
}

// Quantizes n values to `dtype`.
static void quantize_values(const quantization *q, float inverse, uint8_t dtype, int32_t n,
                            const float *x, void *to) {
    float low = (float)(q->min - q->zero_point), high = (float)(q->max - q->zero_point);
    int32_t i = 0;
    if (dtype == PT_DTYPE_CHAR && q->min == INT8_MIN && q->max == INT8_MAX &&
        pt_is_narrow(q->zero_point)) {
        i = pt_quantize_some(x, to, n, inverse, q->zero_point);
        if (i == 0) {
            i = cortex_m_quantize_in_blocks(to, n, PT_QUANTIZE_ALIGNMENT);
            pt_quantize_int8(i / 4, x, to, inverse, q->zero_point);
        }
    }
    for (; i < n; i++) {
        cortex_m_quantize_store(to, i, dtype, cortex_m_quantize(x[i] * inverse, low, high, q));
    }
}

// Returns 1 / scale, rounded to float32.
static float invert(double scale) {
#if !(defined(__ARM_FP) && (__ARM_FP & 8))
    // Divide float32 if the scale is one, as quantizers make it: the core has no division of
    // doubles. The quotient is the same, since a double has more than twice the bits (Figueroa,
    // "When is double rounding innocuous?", 1995).
    enum { MAX_EXPONENT = 100, OMITTED = 29 }; // bits of a double's mantissa beyond a float32's
    uint64_t bits;
    memcpy(&bits, &scale, sizeof bits);
    const int32_t exponent = (int32_t)(bits >> 52) - 1023;
    if ((bits & ((1u << OMITTED) - 1)) == 0 && exponent >= -MAX_EXPONENT &&
        exponent <= MAX_EXPONENT) {
        const uint32_t mantissa = (uint32_t)(bits >> OMITTED) & 0x007FFFFF;
        return 1.0f / ((pt_bits){.u = (uint32_t)(exponent + 127) << 23 | mantissa}).f;
    }
#endif
    return (float)(1.0 / scale);
}

enum { PIECE = 1 << 14 }; // values between two polls

static int quantize_run(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[CORTEX_M_QUANTIZE_PER_TENSOR_INPUT]);
    pt_tensor out = pt_get_tensor(c, args[CORTEX_M_QUANTIZE_PER_TENSOR_OUT]);
    const quantization q = get_quantization(c, args);
    const float inverse = invert(q.scale);
    int32_t n = pt_numel(&in), size = out.dtype == PT_DTYPE_SHORT ? 2 : 1;
    for (int32_t i = 0; i < n; i += PIECE) {
        int32_t some = n - i < PIECE ? n - i : PIECE;
        PT_TRY(pt_count_work(c, some));
        quantize_values(&q, inverse, out.dtype, some, (const float *)in.data + i,
                        (int8_t *)out.data + i * size);
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_cortex_m_quantize_per_tensor_out = PT_KERNEL(quantize_check, quantize_run);

// ---- dequantize

static int dequantize_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[CORTEX_M_DEQUANTIZE_PER_TENSOR_INPUT]);
    PT_TRY(check_quantization(c, args, &in));
    return pt_check_like(c, args[CORTEX_M_DEQUANTIZE_PER_TENSOR_OUT], &in, PT_DTYPE_FLOAT);
}

// Dequantizes n values of `dtype`.
static void dequantize_values(float scale, int32_t zero_point, uint8_t dtype, int32_t n,
                              const void *from, float *y) {
    int32_t i = 0;
    if (dtype == PT_DTYPE_CHAR) {
        i = pt_dequantize_some(from, y, n, scale, zero_point);
        if (i == 0) {
            i = cortex_m_quantize_in_blocks(from, n, PT_DEQUANTIZE_ALIGNMENT);
            pt_dequantize_int8(i / 4, from, y, scale, zero_point);
        }
    }
    for (; i < n; i++) {
        y[i] = (float)(cortex_m_quantize_load(from, i, dtype) - zero_point) * scale;
    }
}

static int dequantize_run(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[CORTEX_M_DEQUANTIZE_PER_TENSOR_INPUT]);
    pt_tensor out = pt_get_tensor(c, args[CORTEX_M_DEQUANTIZE_PER_TENSOR_OUT]);
    const float scale = (float)pt_get_double(c, args[CORTEX_M_DEQUANTIZE_PER_TENSOR_SCALE]);
    const int32_t zero_point =
        (int32_t)pt_get_int(c, args[CORTEX_M_DEQUANTIZE_PER_TENSOR_ZERO_POINT]);
    int32_t n = pt_numel(&in), size = in.dtype == PT_DTYPE_SHORT ? 2 : 1;
    for (int32_t i = 0; i < n; i += PIECE) {
        int32_t some = n - i < PIECE ? n - i : PIECE;
        PT_TRY(pt_count_work(c, some));
        dequantize_values(scale, zero_point, in.dtype, some, (const int8_t *)in.data + i * size,
                          (float *)out.data + i);
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_cortex_m_dequantize_per_tensor_out = PT_KERNEL(dequantize_check, dequantize_run);
