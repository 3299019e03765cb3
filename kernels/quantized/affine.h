// Affine quantization: q = round(x / scale) + zero_point, limited to quant_min and quant_max, and
// x = (q - zero_point) * scale. What all operators of quantized_decomposed share: the quantized
// dtypes, the arguments, and rows with one scale and zero point.
//
// Where ExecuTorch's kernels differ from PyTorch's functions these follow ExecuTorch's: they
// compute in float32, with a scale or inverse of a scale rounded to it. Infinities become quant_min
// and quant_max, NaN becomes 0.
#ifndef PT_QUANTIZED_AFFINE_H
#define PT_QUANTIZED_AFFINE_H

#include "portable/dtype_access.h"

// True of uint8, int8, int16, uint16 and int32.
bool pt_is_quantized(uint8_t dtype);

// Refuses a tensor of quantized values whose dtype is not one, or not that of the argument `dtype`.
PT_MUST_USE int pt_check_quantized(pt_context *c, const pt_tensor *t, int64_t dtype);
// Refuses limits that are not those of a range within `dtype`.
PT_MUST_USE int pt_check_range(pt_context *c, uint8_t dtype, int64_t quant_min, int64_t quant_max);
// Refuses scales and zero points that are not `n` of their dtypes. `zero_points` may be None.
PT_MUST_USE int pt_check_parameters(pt_context *c, pt_ref scales, pt_ref zero_points, int32_t n);
// Refuses a tensor of another dtype than float32.
PT_MUST_USE int pt_check_float(pt_context *c, const pt_tensor *t);
// The same, but float16 and bfloat16 are fine, too.
PT_MUST_USE int pt_check_real(pt_context *c, const pt_tensor *t);
// The latter of an output, and a dtype asked for (None, or an int) that is another.
PT_MUST_USE int pt_check_real_output(pt_context *c, const pt_tensor *out, pt_ref dtype);
// Refuses a pair of tensors of different sizes or dim orders.
PT_MUST_USE int pt_check_alike(pt_context *c, const pt_tensor *in, pt_ref out);

typedef struct pt_quantizer {
    float inverse_scale;
    int32_t zero_point;
    int32_t low, high;
} pt_quantizer;

pt_quantizer pt_make_quantizer(double scale, int64_t zero_point, int64_t low, int64_t high);
// n values to `dtype`.
void pt_quantize_row(const pt_quantizer *q, uint8_t dtype, int32_t n, const float *in, void *out);
// Elements `first` to `first` + n of `in`, which pt_check_real takes, to those of `out`. Polls.
PT_MUST_USE int pt_quantize_part(pt_context *c, const pt_quantizer *q, int32_t first, int32_t n,
                                 const pt_tensor *in, const pt_tensor *out);

typedef struct pt_dequantizer {
    float scale;
    int32_t zero_point;
} pt_dequantizer;

pt_dequantizer pt_make_dequantizer(double scale, int64_t zero_point);
// n values of `dtype`.
void pt_dequantize_row(const pt_dequantizer *q, uint8_t dtype, int32_t n, const void *in,
                       float *out);
// Elements `first` to `first` + n of `in` to those of `out`, which pt_check_real takes. Polls.
PT_MUST_USE int pt_dequantize_part(pt_context *c, const pt_dequantizer *q, int32_t first, int32_t n,
                                   const pt_tensor *in, const pt_tensor *out);

#endif
