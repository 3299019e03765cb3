// Adds two quantized tensors in float32, and quantizes the sum: (a, a_scale, a_zero_point,
// a_quant_min, a_quant_max, the same of b, out_scale, out_zero_point, out_quant_min, out_quant_max,
// out). The limits of a and b are not used.
#include "core/generated/operator_arguments.h"
#include "quantized/affine.h"

enum {
    A = QUANTIZED_DECOMPOSED_ADD_A,
    B = QUANTIZED_DECOMPOSED_ADD_B,
    OUT_SCALE = QUANTIZED_DECOMPOSED_ADD_OUT_SCALE,
    OUT_ZERO_POINT = QUANTIZED_DECOMPOSED_ADD_OUT_ZERO_POINT,
    OUT_QUANT_MIN = QUANTIZED_DECOMPOSED_ADD_OUT_QUANT_MIN,
    OUT_QUANT_MAX = QUANTIZED_DECOMPOSED_ADD_OUT_QUANT_MAX,
    OUT = QUANTIZED_DECOMPOSED_ADD_OUT,
    SCALE = QUANTIZED_DECOMPOSED_ADD_A_SCALE - A, // offset from a or b to its scale
    ZERO_POINT = QUANTIZED_DECOMPOSED_ADD_A_ZERO_POINT - A,
};

enum { BLOCK = 16 };

static bool quantized_add_fits_int32(int64_t v) {
    return v >= INT32_MIN && v <= INT32_MAX;
}

static int quantized_add_check(pt_context *c, const pt_ref *args) {
    pt_tensor a = pt_get_tensor(c, args[A]);
    pt_tensor b = pt_get_tensor(c, args[B]);
    PT_TRY(pt_check_quantized(c, &a, b.dtype));
    PT_TRY(pt_check_quantized(c, &b, pt_get_tensor(c, args[OUT]).dtype));
    PT_TRY(pt_check_range(c, a.dtype, pt_get_int(c, args[OUT_QUANT_MIN]),
                          pt_get_int(c, args[OUT_QUANT_MAX])));
    if (!quantized_add_fits_int32(pt_get_int(c, args[A + ZERO_POINT])) ||
        !quantized_add_fits_int32(pt_get_int(c, args[B + ZERO_POINT])) ||
        !quantized_add_fits_int32(pt_get_int(c, args[OUT_ZERO_POINT]))) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "zero_point does not fit in int32");
    }
    if (!pt_same_sizes(&a, &b)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a and b must have the same sizes");
    }
    PT_TRY(pt_check_alike(c, &a, args[OUT]));
    return pt_check_alike(c, &b, args[OUT]);
}

static pt_dequantizer dequantizer_of(const pt_context *c, const pt_ref *args) {
    return pt_make_dequantizer(pt_get_double(c, args[SCALE]), pt_get_int(c, args[ZERO_POINT]));
}

static int quantized_add_run(pt_context *c, const pt_ref *args) {
    pt_tensor a = pt_get_tensor(c, args[A]);
    pt_tensor b = pt_get_tensor(c, args[B]);
    pt_tensor out = pt_get_tensor(c, args[OUT]);
    pt_dequantizer of_a = dequantizer_of(c, args + A), of_b = dequantizer_of(c, args + B);
    pt_quantizer to =
        pt_make_quantizer(pt_get_double(c, args[OUT_SCALE]), pt_get_int(c, args[OUT_ZERO_POINT]),
                          pt_get_int(c, args[OUT_QUANT_MIN]), pt_get_int(c, args[OUT_QUANT_MAX]));
    int32_t n = pt_numel(&out);
    size_t size = pt_element_size(out.dtype);
    for (int32_t i = 0; i < n; i += BLOCK) {
        float x[BLOCK], y[BLOCK];
        int32_t count = n - i < BLOCK ? n - i : BLOCK;
        size_t at = (size_t)i * size;
        PT_TRY(pt_count_elements(c, count));
        pt_dequantize_row(&of_a, a.dtype, count, (const uint8_t *)a.data + at, x);
        pt_dequantize_row(&of_b, b.dtype, count, (const uint8_t *)b.data + at, y);
        for (int32_t k = 0; k < count; k++) {
            x[k] += y[k];
        }
        pt_quantize_row(&to, out.dtype, count, x, (uint8_t *)out.data + at);
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_quantized_decomposed_add_out = PT_KERNEL(quantized_add_check, quantized_add_run);
