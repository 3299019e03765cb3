// Affine quantization: q = round(x / scale) + zero_point, limited to quant_min and quant_max, and x
// = (q - zero_point) * scale. Shared by the operators of quantized_decomposed: the quantized
// dtypes, the checks of arguments, and rows with one scale and zero point.
//
// Where PyTorch and ExecuTorch differ, these functions follow ExecuTorch's kernels: they compute in
// float32, with the scale or its inverse rounded to float32. Infinities become quant_min and
// quant_max, NaN becomes 0.
#ifndef PT_QUANTIZED_AFFINE_H
#define PT_QUANTIZED_AFFINE_H

#include "portable/dtype_access.h"

// True for uint8, int8, int16, uint16 and int32.
bool pt_is_quantized(uint8_t dtype);

// Rejects a tensor that is not of a quantized dtype, or not of the argument `dtype`.
PT_MUST_USE int pt_check_quantized(pt_context *c, const pt_tensor *t, int64_t dtype);
// Rejects limits outside of the range of `dtype`, and quant_min above quant_max.
PT_MUST_USE int pt_check_range(pt_context *c, uint8_t dtype, int64_t quant_min, int64_t quant_max);
// Rejects scales that are not `n` floating numbers, and zero points that are not `n` integers.
// `zero_points` may be None.
PT_MUST_USE int pt_check_parameters(pt_context *c, pt_ref scales, pt_ref zero_points, int32_t n);
// Rejects tensors other than float32.
PT_MUST_USE int pt_check_float(pt_context *c, const pt_tensor *t);
// Rejects tensors other than float32, float16 and bfloat16.
PT_MUST_USE int pt_check_real(pt_context *c, const pt_tensor *t);
// Rejects the same dtypes of an output, and an output that differs from `dtype` (None or an int).
PT_MUST_USE int pt_check_real_output(pt_context *c, const pt_tensor *out, pt_ref dtype);
// Rejects a pair of tensors of different sizes or dim orders.
PT_MUST_USE int pt_check_alike(pt_context *c, const pt_tensor *in, pt_ref out);

typedef struct pt_quantizer {
    float inverse_scale;
    int32_t zero_point;
    int32_t low, high;
} pt_quantizer;

pt_quantizer pt_make_quantizer(double scale, int64_t zero_point, int64_t low, int64_t high);
// Quantizes n values to `dtype`.
void pt_quantize_row(const pt_quantizer *q, uint8_t dtype, int32_t n, const float *in, void *out);
// Quantizes elements `first` to `first` + n of `in` to `out`; `in` has a dtype that pt_check_real
// accepts. Polls.
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
// Dequantizes elements `first` to `first` + n of `in` to `out`; `out` has a dtype that
// pt_check_real accepts. Polls.
PT_MUST_USE int pt_dequantize_part(pt_context *c, const pt_dequantizer *q, int32_t first, int32_t n,
                                   const pt_tensor *in, const pt_tensor *out);

#endif
