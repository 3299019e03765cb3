// Quantization with a scale and zero point for each index of one dim (per channel), or for each row
// of the last dim (per token).
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "quantized/affine.h"

// The tensor in memory order, as lanes along the dim of the channels: channels.size is their
// number.
typedef pt_lanes channels;

static channels channels_of_tokens(const pt_tensor *t) {
    return (channels){1, (int32_t)pt_product(t->sizes, t->rank - 1u), t->sizes[t->rank - 1]};
}

static int read_channels(pt_context *c, const pt_tensor *t, pt_ref axis, channels *lanes) {
    uint32_t dim;
    if (t->rank == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input must have a dim");
    }
    PT_TRY(pt_read_dim(c, pt_get_int(c, axis), t->rank, &dim));
    *lanes = pt_lanes_of(t, dim);
    return PT_ERROR_OK;
}

static int read_tokens(pt_context *c, const pt_tensor *t, channels *lanes) {
    if (t->rank == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input must have a dim");
    }
    if (!(t->flags & PT_VALUE_CONTIGUOUS)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the tensors must be contiguous");
    }
    *lanes = channels_of_tokens(t);
    return PT_ERROR_OK;
}

static double per_channel_scale_of(const pt_tensor *scales, int32_t channel) {
    return pt_load_double(scales->data, channel, scales->dtype);
}

static int64_t zero_point_of(const pt_tensor *zero_points, int32_t channel) {
    return zero_points->data ? pt_load_int(zero_points->data, channel, zero_points->dtype) : 0;
}

// ---- quantize: (input, scales, zero_points, [axis,] quant_min, quant_max, dtype, out); the last
// four end at args[last]

// Offsets from the output.
enum {
    QUANT_MIN = QUANTIZE_PER_CHANNEL_OUT - QUANTIZE_PER_CHANNEL_QUANT_MIN,
    QUANT_MAX = QUANTIZE_PER_CHANNEL_OUT - QUANTIZE_PER_CHANNEL_QUANT_MAX,
    DTYPE = QUANTIZE_PER_CHANNEL_OUT - QUANTIZE_PER_CHANNEL_DTYPE,
};

static int per_channel_check_quantize(pt_context *c, const pt_ref *args, const channels *lanes,
                                      uint32_t last) {
    pt_tensor in = pt_get_tensor(c, args[QUANTIZE_PER_CHANNEL_INPUT]);
    pt_tensor out = pt_get_tensor(c, args[last]);
    PT_TRY(pt_check_real(c, &in));
    PT_TRY(pt_check_quantized(c, &out, pt_get_int(c, args[last - DTYPE])));
    PT_TRY(pt_check_range(c, out.dtype, pt_get_int(c, args[last - QUANT_MIN]),
                          pt_get_int(c, args[last - QUANT_MAX])));
    PT_TRY(pt_check_parameters(c, args[QUANTIZE_PER_CHANNEL_SCALES],
                               args[QUANTIZE_PER_CHANNEL_ZERO_POINTS], lanes->size));
    return pt_check_alike(c, &in, args[last]);
}

static int run_quantize(pt_context *c, const pt_ref *args, const channels *lanes, uint32_t last) {
    pt_tensor in = pt_get_tensor(c, args[QUANTIZE_PER_CHANNEL_INPUT]);
    pt_tensor scales = pt_get_tensor(c, args[QUANTIZE_PER_CHANNEL_SCALES]);
    pt_tensor zero_points = pt_get_tensor(c, args[QUANTIZE_PER_CHANNEL_ZERO_POINTS]);
    pt_tensor out = pt_get_tensor(c, args[last]);
    int64_t low = pt_get_int(c, args[last - QUANT_MIN]);
    int64_t high = pt_get_int(c, args[last - QUANT_MAX]);
    int32_t at = 0;
    if (pt_numel(&in) == 0) {
        return PT_ERROR_OK;
    }
    for (int32_t outer = 0; outer < lanes->outer; outer++) {
        for (int32_t i = 0; i < lanes->size; i++, at += lanes->inner) {
            pt_quantizer q = pt_make_quantizer(per_channel_scale_of(&scales, i),
                                               zero_point_of(&zero_points, i), low, high);
            PT_TRY(pt_quantize_part(c, &q, at, lanes->inner, &in, &out));
        }
    }
    return PT_ERROR_OK;
}

static int check_quantize_channels(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[QUANTIZE_PER_CHANNEL_INPUT]);
    channels lanes;
    PT_TRY(read_channels(c, &in, args[QUANTIZE_PER_CHANNEL_AXIS], &lanes));
    return per_channel_check_quantize(c, args, &lanes, QUANTIZE_PER_CHANNEL_OUT);
}

static int run_quantize_channels(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[QUANTIZE_PER_CHANNEL_INPUT]);
    channels lanes;
    PT_TRY(read_channels(c, &in, args[QUANTIZE_PER_CHANNEL_AXIS], &lanes));
    return run_quantize(c, args, &lanes, QUANTIZE_PER_CHANNEL_OUT);
}

static int check_quantize_tokens(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[QUANTIZE_PER_TOKEN_INPUT]);
    channels lanes;
    PT_TRY(read_tokens(c, &in, &lanes));
    return per_channel_check_quantize(c, args, &lanes, QUANTIZE_PER_TOKEN_OUT);
}

static int run_quantize_tokens(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[QUANTIZE_PER_TOKEN_INPUT]);
    channels lanes = channels_of_tokens(&in);
    return run_quantize(c, args, &lanes, QUANTIZE_PER_TOKEN_OUT);
}

const pt_kernel pt_quantized_decomposed_quantize_per_channel_out =
    PT_KERNEL(check_quantize_channels, run_quantize_channels);
const pt_kernel pt_quantized_decomposed_quantize_per_token_out =
    PT_KERNEL(check_quantize_tokens, run_quantize_tokens);

// ---- dequantize: (input, scales, zero_points, [axis,] quant_min, quant_max, dtype, out_dtype,
// out); the last three end at args[last]

// Offsets from the output.
enum {
    IN_DTYPE = DEQUANTIZE_PER_CHANNEL_OUT - DEQUANTIZE_PER_CHANNEL_DTYPE,
    OUT_DTYPE = DEQUANTIZE_PER_CHANNEL_OUT - DEQUANTIZE_PER_CHANNEL_OUT_DTYPE,
};

static int per_channel_check_dequantize(pt_context *c, const pt_ref *args, const channels *lanes,
                                        uint32_t last) {
    pt_tensor in = pt_get_tensor(c, args[DEQUANTIZE_PER_CHANNEL_INPUT]);
    pt_tensor out = pt_get_tensor(c, args[last]);
    PT_TRY(pt_check_quantized(c, &in, pt_get_int(c, args[last - IN_DTYPE])));
    PT_TRY(pt_check_real_output(c, &out, args[last - OUT_DTYPE]));
    PT_TRY(pt_check_parameters(c, args[DEQUANTIZE_PER_CHANNEL_SCALES],
                               args[DEQUANTIZE_PER_CHANNEL_ZERO_POINTS], lanes->size));
    return pt_check_alike(c, &in, args[last]);
}

static int run_dequantize(pt_context *c, const pt_ref *args, const channels *lanes, uint32_t last) {
    pt_tensor in = pt_get_tensor(c, args[DEQUANTIZE_PER_CHANNEL_INPUT]);
    pt_tensor scales = pt_get_tensor(c, args[DEQUANTIZE_PER_CHANNEL_SCALES]);
    pt_tensor zero_points = {0};
    if (!pt_is_none(args[DEQUANTIZE_PER_CHANNEL_ZERO_POINTS])) {
        zero_points = pt_get_tensor(c, args[DEQUANTIZE_PER_CHANNEL_ZERO_POINTS]);
    }
    pt_tensor out = pt_get_tensor(c, args[last]);
    int32_t at = 0;
    if (pt_numel(&in) == 0) {
        return PT_ERROR_OK;
    }
    for (int32_t outer = 0; outer < lanes->outer; outer++) {
        for (int32_t i = 0; i < lanes->size; i++, at += lanes->inner) {
            pt_dequantizer q = pt_make_dequantizer(per_channel_scale_of(&scales, i),
                                                   zero_point_of(&zero_points, i));
            PT_TRY(pt_dequantize_part(c, &q, at, lanes->inner, &in, &out));
        }
    }
    return PT_ERROR_OK;
}

static int check_dequantize_channels(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[DEQUANTIZE_PER_CHANNEL_INPUT]);
    channels lanes;
    PT_TRY(read_channels(c, &in, args[DEQUANTIZE_PER_CHANNEL_AXIS], &lanes));
    return per_channel_check_dequantize(c, args, &lanes, DEQUANTIZE_PER_CHANNEL_OUT);
}

static int run_dequantize_channels(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[DEQUANTIZE_PER_CHANNEL_INPUT]);
    channels lanes;
    PT_TRY(read_channels(c, &in, args[DEQUANTIZE_PER_CHANNEL_AXIS], &lanes));
    return run_dequantize(c, args, &lanes, DEQUANTIZE_PER_CHANNEL_OUT);
}

static int check_dequantize_tokens(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[DEQUANTIZE_PER_TOKEN_INPUT]);
    channels lanes;
    PT_TRY(read_tokens(c, &in, &lanes));
    return per_channel_check_dequantize(c, args, &lanes, DEQUANTIZE_PER_TOKEN_OUT);
}

static int run_dequantize_tokens(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[DEQUANTIZE_PER_TOKEN_INPUT]);
    channels lanes = channels_of_tokens(&in);
    return run_dequantize(c, args, &lanes, DEQUANTIZE_PER_TOKEN_OUT);
}

const pt_kernel pt_quantized_decomposed_dequantize_per_channel_out =
    PT_KERNEL(check_dequantize_channels, run_dequantize_channels);
const pt_kernel pt_quantized_decomposed_dequantize_per_token_out =
    PT_KERNEL(check_dequantize_tokens, run_dequantize_tokens);
