// Quantization with one scale and zero point for the whole tensor, which are numbers or tensors of
// one element: (input, scale, zero_point, quant_min, quant_max, dtype, out); dequantization has
// out_dtype before out.
#include "core/generated/operator_arguments.h"
#include "quantized/affine.h"

// Positions of the arguments, the same in all four operators.
enum {
    INPUT = QUANTIZED_DECOMPOSED_QUANTIZE_PER_TENSOR_INPUT,
    SCALE = QUANTIZED_DECOMPOSED_QUANTIZE_PER_TENSOR_SCALE,
    ZERO_POINT = QUANTIZED_DECOMPOSED_QUANTIZE_PER_TENSOR_ZERO_POINT,
    QUANT_MIN = QUANTIZED_DECOMPOSED_QUANTIZE_PER_TENSOR_QUANT_MIN,
    QUANT_MAX = QUANTIZED_DECOMPOSED_QUANTIZE_PER_TENSOR_QUANT_MAX,
    DTYPE = QUANTIZED_DECOMPOSED_QUANTIZE_PER_TENSOR_DTYPE,
    QUANTIZE_OUT = QUANTIZED_DECOMPOSED_QUANTIZE_PER_TENSOR_OUT,
    OUT_DTYPE = QUANTIZED_DECOMPOSED_DEQUANTIZE_PER_TENSOR_OUT_DTYPE,
    DEQUANTIZE_OUT = QUANTIZED_DECOMPOSED_DEQUANTIZE_PER_TENSOR_OUT,
};

static bool per_tensor_fits_int32(int64_t v) {
    return v >= INT32_MIN && v <= INT32_MAX;
}

static int check_number_parameters(pt_context *c, const pt_ref *args) {
    if (!per_tensor_fits_int32(pt_get_int(c, args[ZERO_POINT]))) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "zero_point does not fit in int32");
    }
    return PT_ERROR_OK;
}

// ---- quantize

static int per_tensor_check_quantize(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[INPUT]);
    pt_tensor out = pt_get_tensor(c, args[QUANTIZE_OUT]);
    PT_TRY(pt_check_real(c, &in));
    PT_TRY(pt_check_quantized(c, &out, pt_get_int(c, args[DTYPE])));
    PT_TRY(pt_check_range(c, out.dtype, pt_get_int(c, args[QUANT_MIN]),
                          pt_get_int(c, args[QUANT_MAX])));
    return pt_check_alike(c, &in, args[QUANTIZE_OUT]);
}

static int check_quantize_numbers(pt_context *c, const pt_ref *args) {
    PT_TRY(check_number_parameters(c, args));
    return per_tensor_check_quantize(c, args);
}

static int check_quantize_tensors(pt_context *c, const pt_ref *args) {
    PT_TRY(pt_check_parameters(c, args[SCALE], args[ZERO_POINT], 1));
    return per_tensor_check_quantize(c, args);
}

static int per_tensor_quantize(pt_context *c, const pt_ref *args, double scale,
                               int64_t zero_point) {
    pt_tensor in = pt_get_tensor(c, args[INPUT]);
    pt_tensor out = pt_get_tensor(c, args[QUANTIZE_OUT]);
    pt_quantizer q = pt_make_quantizer(scale, zero_point, pt_get_int(c, args[QUANT_MIN]),
                                       pt_get_int(c, args[QUANT_MAX]));
    return pt_quantize_part(c, &q, 0, pt_numel(&out), &in, &out);
}

static int run_quantize_numbers(pt_context *c, const pt_ref *args) {
    return per_tensor_quantize(c, args, pt_get_double(c, args[SCALE]),
                               pt_get_int(c, args[ZERO_POINT]));
}

static int run_quantize_tensors(pt_context *c, const pt_ref *args) {
    pt_tensor scale = pt_get_tensor(c, args[SCALE]);
    pt_tensor zero_point = pt_get_tensor(c, args[ZERO_POINT]);
    return per_tensor_quantize(c, args, pt_load_double(scale.data, 0, scale.dtype),
                               pt_load_int(zero_point.data, 0, zero_point.dtype));
}

const pt_kernel pt_quantized_decomposed_quantize_per_tensor_out =
    PT_KERNEL(check_quantize_numbers, run_quantize_numbers);
const pt_kernel pt_quantized_decomposed_quantize_per_tensor_Tensor_out =
    PT_KERNEL(check_quantize_tensors, run_quantize_tensors);

// ---- dequantize

static int per_tensor_check_dequantize(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[INPUT]);
    pt_tensor out = pt_get_tensor(c, args[DEQUANTIZE_OUT]);
    PT_TRY(pt_check_quantized(c, &in, pt_get_int(c, args[DTYPE])));
    PT_TRY(pt_check_real_output(c, &out, args[OUT_DTYPE]));
    return pt_check_alike(c, &in, args[DEQUANTIZE_OUT]);
}

static int check_dequantize_numbers(pt_context *c, const pt_ref *args) {
    PT_TRY(check_number_parameters(c, args));
    return per_tensor_check_dequantize(c, args);
}

static int check_dequantize_tensors(pt_context *c, const pt_ref *args) {
    PT_TRY(pt_check_parameters(c, args[SCALE], args[ZERO_POINT], 1));
    return per_tensor_check_dequantize(c, args);
}

static int dequantize(pt_context *c, const pt_ref *args, double scale, int64_t zero_point) {
    pt_tensor in = pt_get_tensor(c, args[INPUT]);
    pt_tensor out = pt_get_tensor(c, args[DEQUANTIZE_OUT]);
    pt_dequantizer q = pt_make_dequantizer(scale, zero_point);
    return pt_dequantize_part(c, &q, 0, pt_numel(&out), &in, &out);
}

static int run_dequantize_numbers(pt_context *c, const pt_ref *args) {
    return dequantize(c, args, pt_get_double(c, args[SCALE]), pt_get_int(c, args[ZERO_POINT]));
}

static int run_dequantize_tensors(pt_context *c, const pt_ref *args) {
    pt_tensor scale = pt_get_tensor(c, args[SCALE]);
    pt_tensor zero_point = pt_get_tensor(c, args[ZERO_POINT]);
    return dequantize(c, args, pt_load_double(scale.data, 0, scale.dtype),
                      pt_load_int(zero_point.data, 0, zero_point.dtype));
}

const pt_kernel pt_quantized_decomposed_dequantize_per_tensor_out =
    PT_KERNEL(check_dequantize_numbers, run_dequantize_numbers);
const pt_kernel pt_quantized_decomposed_dequantize_per_tensor_Tensor_out =
    PT_KERNEL(check_dequantize_tensors, run_dequantize_tensors);
