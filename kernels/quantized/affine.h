// Affine quantization: q = round(x / scale) + zero_point, limited to quant_min and quant_max, and x
// = (q - zero_point) * scale. Common parts of the operators of quantized_decomposed: the quantized
// dtypes, the arguments, and rows with one scale and zero point.
//
// These functions follow ExecuTorch's kernels where PyTorch differs: they compute in float32, with
// the scale or its inverse rounded to float32. Infinities become quant_min and quant_max, NaN
// becomes 0.
#ifndef PT_QUANTIZED_AFFINE_H
#define PT_QUANTIZED_AFFINE_H

#include "portable/dtype_access.h"

// True for uint8, int8, int16, uint16 and int32.
bool pt_is_quantized(uint8_t dtype);

// Refuses a tensor of quantized values with another dtype, or not the dtype of the argument
// `dtype`.
PT_MUST_USE int pt_check_quantized(pt_context *c, const pt_tensor *t, int64_t dtype);
// Refuses limits that are no range within `dtype`.
PT_MUST_USE int pt_check_range(pt_context *c, uint8_t dtype, int64_t quant_min, int64_t quant_max);
// Refuses scales and zero points that are not tensors of `n` elements of their dtypes.
// `zero_points` may be None.
PT_MUST_USE int pt_check_parameters(pt_context *c, pt_ref scales, pt_ref zero_points, int32_t n);
// Refuses a tensor of another dtype than float32.
PT_MUST_USE int pt_check_float(pt_context *c, const pt_tensor *t);
// The same, but allows float16 and bfloat16.
PT_MUST_USE int pt_check_real(pt_context *c, const pt_tensor *t);
// The same for an output, which also refuses a requested dtype (None, or an int) that differs.
PT_MUST_USE int pt_check_real_output(pt_context *c, const pt_tensor *out, pt_ref dtype);
// Refuses a pair of tensors of different sizes or dim orders.
PT_MUST_USE int pt_check_alike(pt_context *c, const pt_tensor *in, pt_ref out);

typedef struct pt_quantizer {
    float inverse_scale;
    int32_t zero_point;
    int32_t low, high;
} pt_quantizer;

pt_quantizer pt_make_quantizer(double scale, int64_t zero_point, int64_t low, int64_t high);
// Quantizes n values to `dtype`.
void pt_quantize_row(const pt_quantizer *q, uint8_t dtype, int32_t n, const float *in, void *out);
// Quantizes elements `first` to `first` + n of `in`, of a dtype of pt_check_real, to `out`. Polls.
PT_MUST_USE int pt_quantize_part(pt_context *c, const pt_quantizer *q, int32_t first, int32_t n,
                                 const pt_tensor *in, const pt_tensor *out);

typedef struct pt_dequantizer {
    float scale;
    int32_t zero_point;
} pt_dequantizer;

pt_dequantizer pt_make_dequantizer(double scale, int64_t zero_point);
// Dequantizes n values of `dtype`.
void pt_dequantize_row(const pt_dequantizer *q, uint8_t dtype, int32_t n, const void *in,
                       float *out);
// Dequantizes elements `first` to `first` + n of `in` to `out`, of a dtype of pt_check_real. Polls.
PT_MUST_USE int pt_dequantize_part(pt_context *c, const pt_dequantizer *q, int32_t first, int32_t n,
                                   const pt_tensor *in, const pt_tensor *out);

#endif
