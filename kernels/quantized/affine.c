#include "quantized/affine.h"
#include "arch/dequantize_bytes.h"
#include "arch/quantize_bytes.h"
#include "portable/half.h"

// ---- arguments

enum {
    QUANTIZED = 1u << PT_DTYPE_BYTE | 1u << PT_DTYPE_CHAR | 1u << PT_DTYPE_SHORT |
                1u << PT_DTYPE_INT | 1u << PT_DTYPE_UINT16,
};

bool pt_is_quantized(uint8_t dtype) {
    return pt_dtype_in(dtype, QUANTIZED);
}

int pt_check_quantized(pt_context *c, const pt_tensor *t, int64_t dtype) {
    if (!pt_is_quantized(t->dtype)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                       "quantized values must be uint8, int8, uint16, int16 or int32");
    }
    if (t->dtype != dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "the argument dtype must be that of the quantized tensor");
    }
    return PT_ERROR_OK;
}

static int32_t dtype_min(uint8_t dtype) {
    return dtype == PT_DTYPE_CHAR    ? INT8_MIN
           : dtype == PT_DTYPE_SHORT ? INT16_MIN
           : dtype == PT_DTYPE_INT   ? INT32_MIN
                                     : 0;
}

static int32_t dtype_max(uint8_t dtype) {
    return dtype == PT_DTYPE_CHAR     ? INT8_MAX
           : dtype == PT_DTYPE_BYTE   ? UINT8_MAX
           : dtype == PT_DTYPE_SHORT  ? INT16_MAX
           : dtype == PT_DTYPE_UINT16 ? UINT16_MAX
                                      : INT32_MAX;
}

int pt_check_range(pt_context *c, uint8_t dtype, int64_t quant_min, int64_t quant_max) {
    if (quant_min < dtype_min(dtype) || quant_max > dtype_max(dtype) || quant_min > quant_max) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "quant_min and quant_max must be a range within the quantized dtype");
    }
    return PT_ERROR_OK;
}

int pt_check_parameters(pt_context *c, pt_ref scales, pt_ref zero_points, int32_t n) {
    pt_tensor scale = pt_get_tensor(c, scales);
    if (!pt_is_floating(scale.dtype)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "scales must be float32 or double");
    }
    if (pt_numel(&scale) != n) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "wrong number of scales");
    }
    if (pt_is_none(zero_points)) {
        return PT_ERROR_OK;
    }
    pt_tensor zero_point = pt_get_tensor(c, zero_points);
    if (!pt_dtype_in(zero_point.dtype, PT_DTYPES_INTEGER)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "zero points must be integers");
    }
    if (pt_numel(&zero_point) != n) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "wrong number of zero points");
    }
    return PT_ERROR_OK;
}

int pt_check_float(pt_context *c, const pt_tensor *t) {
    if (t->dtype != PT_DTYPE_FLOAT) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "real values must be float32");
    }
    return PT_ERROR_OK;
}

int pt_check_real(pt_context *c, const pt_tensor *t) {
    if (t->dtype != PT_DTYPE_FLOAT && !pt_is_half(t->dtype)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                       "real values must be float32, float16 or bfloat16");
    }
    return PT_ERROR_OK;
}

int pt_check_real_output(pt_context *c, const pt_tensor *out, pt_ref dtype) {
    if (!pt_is_none(dtype) && pt_get_int(c, dtype) != out->dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output must have the dtype asked for");
    }
    return pt_check_real(c, out);
}

int pt_check_alike(pt_context *c, const pt_tensor *in, pt_ref out) {
    PT_TRY(pt_expect_sizes(c, out, in->rank, in->sizes));
    pt_tensor t = pt_get_tensor(c, out);
    if (!pt_same_dim_order(in, &t)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the tensors must have the same dim order");
    }
    return PT_ERROR_OK;
}

// ---- to quantized values

pt_quantizer pt_make_quantizer(double scale, int64_t zero_point, int64_t low, int64_t high) {
    return (pt_quantizer){1.0f / (float)scale, (int32_t)zero_point, (int32_t)low, (int32_t)high};
}

static inline int32_t affine_limit(int32_t v, int32_t low, int32_t high) {
    v = v < low ? low : v;
    return v > high ? high : v;
}

// Defines the loop for one dtype. pt_is_narrow accepts the zero point.
#define QUANTIZE_ROW(name, type)                                                                  \
    static __attribute__((noinline)) void name(const pt_quantizer *q, int32_t n, const float *in, \
                                               type *out) {                                       \
        for (; n > 0; n--) {                                                                      \
            int32_t v = pt_quantize_value(*in++, q->inverse_scale, q->zero_point);                \
            *out++ = (type)affine_limit(v, q->low, q->high);                                      \
        }                                                                                         \
    }

QUANTIZE_ROW(quantize_int8, int8_t)
QUANTIZE_ROW(quantize_uint8, uint8_t)
QUANTIZE_ROW(quantize_int16, int16_t)
QUANTIZE_ROW(quantize_uint16, uint16_t)

// Returns the number of elements, at most n, before the first whose address is a multiple of
// `alignment`.
static inline int32_t before_alignment(const void *row, int32_t n, uint32_t alignment) {
    int32_t head = (int32_t)(-(uintptr_t)row % alignment);
    return head < n ? head : n;
}

// Defines a row function that quantizes blocks of four if the limits are the limits of the type.
#define QUANTIZE_BYTES(name, type, LOW, HIGH)                                              \
    static void name##_row(const pt_quantizer *q, int32_t n, const float *in, type *out) { \
        int32_t head = n, blocks = 0;                                                      \
        if (q->low == LOW && q->high == HIGH) {                                            \
            head = before_alignment(out, n, PT_QUANTIZE_ALIGNMENT);                        \
            blocks = (n - head) / 4;                                                       \
        }                                                                                  \
        name(q, head, in, out);                                                            \
        in += head;                                                                        \
        out += head;                                                                       \
        pt_##name(blocks, in, out, q->inverse_scale, q->zero_point);                       \
        name(q, n - head - 4 * blocks, in + 4 * blocks, out + 4 * blocks);                 \
    }

QUANTIZE_BYTES(quantize_int8, int8_t, INT8_MIN, INT8_MAX)
QUANTIZE_BYTES(quantize_uint8, uint8_t, 0, UINT8_MAX)

// Returns the integer part of x, limited to int32; NaN gives 0.
static int32_t to_int32(float x) {
    if (x >= -0x1p31f && x < 0x1p31f) {
        return (int32_t)x;
    }
    return x > 0 ? INT32_MAX : x < 0 ? INT32_MIN : 0;
}

static void affine_store(void *data, int32_t i, uint8_t dtype, int32_t v) {
    if (dtype == PT_DTYPE_UINT16) {
        ((uint16_t *)data)[i] = (uint16_t)v;
    } else {
        pt_store_int(data, i, dtype, v);
    }
}

// Supports any dtype and zero point.
static void quantize_any(const pt_quantizer *q, uint8_t dtype, int32_t n, const float *in,
                         void *out) {
    float zero_point = (float)q->zero_point;
    for (int32_t i = 0; i < n; i++) {
        int32_t v = to_int32(pt_rintf(in[i] * q->inverse_scale) + zero_point);
        affine_store(out, i, dtype, affine_limit(v, q->low, q->high));
    }
}

void pt_quantize_row(const pt_quantizer *q, uint8_t dtype, int32_t n, const float *in, void *out) {
    if (!pt_is_narrow(q->zero_point)) {
        quantize_any(q, dtype, n, in, out);
        return;
    }
    switch (dtype) {
    case PT_DTYPE_CHAR:
        quantize_int8_row(q, n, in, out);
        break;
    case PT_DTYPE_BYTE:
        quantize_uint8_row(q, n, in, out);
        break;
    case PT_DTYPE_SHORT:
        quantize_int16(q, n, in, out);
        break;
    case PT_DTYPE_UINT16:
        quantize_uint16(q, n, in, out);
        break;
    default:
        quantize_any(q, dtype, n, in, out);
    }
}

static uint8_t *affine_element_at(const pt_tensor *t, int32_t i) {
    return (uint8_t *)t->data + (size_t)i * pt_element_size(t->dtype);
}

static void quantize_piece(const pt_quantizer *q, int32_t first, int32_t n, const pt_tensor *in,
                           const pt_tensor *out) {
    if (in->dtype == PT_DTYPE_FLOAT) {
        pt_quantize_row(q, out->dtype, n, (const float *)in->data + first,
                        affine_element_at(out, first));
        return;
    }
    for (; n > 0; n -= PT_HALF_BLOCK, first += PT_HALF_BLOCK) {
        const int32_t some = n < PT_HALF_BLOCK ? n : PT_HALF_BLOCK;
        float x[PT_HALF_BLOCK];
        pt_read_halves(x, in->data, first, 1, some, in->dtype);
        pt_quantize_row(q, out->dtype, some, x, affine_element_at(out, first));
    }
}

int pt_quantize_part(pt_context *c, const pt_quantizer *q, int32_t first, int32_t n,
                     const pt_tensor *in, const pt_tensor *out) {
    for (; n > 0; n -= PT_PIECE, first += PT_PIECE) {
        const int32_t some = n < PT_PIECE ? n : PT_PIECE;
        PT_TRY(pt_count_elements(c, some));
        quantize_piece(q, first, some, in, out);
    }
    return PT_ERROR_OK;
}

// ---- from quantized values

pt_dequantizer pt_make_dequantizer(double scale, int64_t zero_point) {
    return (pt_dequantizer){(float)scale, (int32_t)zero_point};
}

#define DEQUANTIZE_ROW(name, type)                                                                 \
    static __attribute__((noinline)) void name(const pt_dequantizer *q, int32_t n, const type *in, \
                                               float *out) {                                       \
        for (; n > 0; n--) {                                                                       \
            *out++ = (float)(*in++ - q->zero_point) * q->scale;                                    \
        }                                                                                          \
    }

DEQUANTIZE_ROW(dequantize_int8, int8_t)
DEQUANTIZE_ROW(dequantize_uint8, uint8_t)
DEQUANTIZE_ROW(dequantize_int16, int16_t)
DEQUANTIZE_ROW(dequantize_uint16, uint16_t)

#define DEQUANTIZE_BYTES(name, type)                                                         \
    static void name##_row(const pt_dequantizer *q, int32_t n, const type *in, float *out) { \
        int32_t head = before_alignment(in, n, PT_DEQUANTIZE_ALIGNMENT);                     \
        int32_t blocks = (n - head) / 4;                                                     \
        name(q, head, in, out);                                                              \
        in += head;                                                                          \
        out += head;                                                                         \
        pt_##name(blocks, in, out, q->scale, q->zero_point);                                 \
        name(q, n - head - 4 * blocks, in + 4 * blocks, out + 4 * blocks);                   \
    }

DEQUANTIZE_BYTES(dequantize_int8, int8_t)
DEQUANTIZE_BYTES(dequantize_uint8, uint8_t)

static int64_t affine_load(const void *data, int32_t i, uint8_t dtype) {
    return dtype == PT_DTYPE_UINT16 ? ((const uint16_t *)data)[i] : pt_load_int(data, i, dtype);
}

// Supports any dtype and zero point.
static void dequantize_any(const pt_dequantizer *q, uint8_t dtype, int32_t n, const void *in,
                           float *out) {
    for (int32_t i = 0; i < n; i++) {
        out[i] = (float)(affine_load(in, i, dtype) - q->zero_point) * q->scale;
    }
}

void pt_dequantize_row(const pt_dequantizer *q, uint8_t dtype, int32_t n, const void *in,
                       float *out) {
    if (!pt_is_narrow(q->zero_point)) {
        dequantize_any(q, dtype, n, in, out);
        return;
    }
    switch (dtype) {
    case PT_DTYPE_CHAR:
        dequantize_int8_row(q, n, in, out);
        break;
    case PT_DTYPE_BYTE:
        dequantize_uint8_row(q, n, in, out);
        break;
    case PT_DTYPE_SHORT:
        dequantize_int16(q, n, in, out);
        break;
    case PT_DTYPE_UINT16:
        dequantize_uint16(q, n, in, out);
        break;
    default:
        dequantize_any(q, dtype, n, in, out);
    }
}

static void dequantize_piece(const pt_dequantizer *q, int32_t first, int32_t n, const pt_tensor *in,
                             const pt_tensor *out) {
    if (out->dtype == PT_DTYPE_FLOAT) {
        pt_dequantize_row(q, in->dtype, n, affine_element_at(in, first),
                          (float *)out->data + first);
        return;
    }
    for (; n > 0; n -= PT_HALF_BLOCK, first += PT_HALF_BLOCK) {
        const int32_t some = n < PT_HALF_BLOCK ? n : PT_HALF_BLOCK;
        float x[PT_HALF_BLOCK];
        pt_dequantize_row(q, in->dtype, some, affine_element_at(in, first), x);
        pt_write_halves(out->data, first, 1, x, some, out->dtype);
    }
}

int pt_dequantize_part(pt_context *c, const pt_dequantizer *q, int32_t first, int32_t n,
                       const pt_tensor *in, const pt_tensor *out) {
    for (; n > 0; n -= PT_PIECE, first += PT_PIECE) {
        const int32_t some = n < PT_PIECE ? n : PT_PIECE;
        PT_TRY(pt_count_elements(c, some));
        dequantize_piece(q, first, some, in, out);
    }
    return PT_ERROR_OK;
}
