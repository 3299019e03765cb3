// One scale and zero point for the whole tensor, given as numbers or as tensors of one element:
// (input, scale, zero_point, quant_min, quant_max, dtype, out) and, to dequantize, out_dtype before
// out.
#include "affine.h"

static bool fits_int32(int64_t v) {
    return v >= INT32_MIN && v <= INT32_MAX;
}

static int check_number_parameters(pt_context *c, const pt_ref *args) {
    if (!fits_int32(pt_get_int(c, args[2]))) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "zero_point does not fit in int32");
    }
    return PT_ERROR_OK;
}

// ---- quantize

static int check_quantize(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    pt_tensor out = pt_get_tensor(c, args[6]);
    int error = pt_check_real(c, &in);
    error = error ? error : pt_check_quantized(c, &out, pt_get_int(c, args[5]));
    error = error ? error
                  : pt_check_range(c, out.dtype, pt_get_int(c, args[3]), pt_get_int(c, args[4]));
    return error ? error : pt_check_alike(c, &in, args[6]);
}

static int check_quantize_numbers(pt_context *c, const pt_ref *args) {
    int error = check_number_parameters(c, args);
    return error ? error : check_quantize(c, args);
}

static int check_quantize_tensors(pt_context *c, const pt_ref *args) {
    int error = pt_check_parameters(c, args[1], args[2], 1);
    return error ? error : check_quantize(c, args);
}

static int quantize(pt_context *c, const pt_ref *args, double scale, int64_t zero_point) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    pt_tensor out = pt_get_tensor(c, args[6]);
    pt_quantizer q =
        pt_make_quantizer(scale, zero_point, pt_get_int(c, args[3]), pt_get_int(c, args[4]));
    pt_quantize_part(&q, 0, pt_numel(&out), &in, &out);
    return PT_ERROR_OK;
}

static int run_quantize_numbers(pt_context *c, const pt_ref *args) {
    return quantize(c, args, pt_get_double(c, args[1]), pt_get_int(c, args[2]));
}

static int run_quantize_tensors(pt_context *c, const pt_ref *args) {
    pt_tensor scale = pt_get_tensor(c, args[1]);
    pt_tensor zero_point = pt_get_tensor(c, args[2]);
    return quantize(c, args, pt_load_double(scale.data, 0, scale.dtype),
                    pt_load_int(zero_point.data, 0, zero_point.dtype));
}

const pt_kernel pt_quantized_decomposed_quantize_per_tensor_out = {check_quantize_numbers,
                                                                   run_quantize_numbers};
const pt_kernel pt_quantized_decomposed_quantize_per_tensor_Tensor_out = {check_quantize_tensors,
                                                                          run_quantize_tensors};

// ---- dequantize

static int check_dequantize(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    pt_tensor out = pt_get_tensor(c, args[7]);
    int error = pt_check_quantized(c, &in, pt_get_int(c, args[5]));
    error = error ? error : pt_check_real_output(c, &out, args[6]);
    return error ? error : pt_check_alike(c, &in, args[7]);
}

static int check_dequantize_numbers(pt_context *c, const pt_ref *args) {
    int error = check_number_parameters(c, args);
    return error ? error : check_dequantize(c, args);
}

static int check_dequantize_tensors(pt_context *c, const pt_ref *args) {
    int error = pt_check_parameters(c, args[1], args[2], 1);
    return error ? error : check_dequantize(c, args);
}

static int dequantize(pt_context *c, const pt_ref *args, double scale, int64_t zero_point) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    pt_tensor out = pt_get_tensor(c, args[7]);
    pt_dequantizer q = pt_make_dequantizer(scale, zero_point);
    pt_dequantize_part(&q, 0, pt_numel(&out), &in, &out);
    return PT_ERROR_OK;
}

static int run_dequantize_numbers(pt_context *c, const pt_ref *args) {
    return dequantize(c, args, pt_get_double(c, args[1]), pt_get_int(c, args[2]));
}

static int run_dequantize_tensors(pt_context *c, const pt_ref *args) {
    pt_tensor scale = pt_get_tensor(c, args[1]);
    pt_tensor zero_point = pt_get_tensor(c, args[2]);
    return dequantize(c, args, pt_load_double(scale.data, 0, scale.dtype),
                      pt_load_int(zero_point.data, 0, zero_point.dtype));
}

const pt_kernel pt_quantized_decomposed_dequantize_per_tensor_out = {check_dequantize_numbers,
                                                                     run_dequantize_numbers};
const pt_kernel pt_quantized_decomposed_dequantize_per_tensor_Tensor_out = {
    check_dequantize_tensors, run_dequantize_tensors};
