// A scale and zero point for each place of one dim (per channel), or for each row of the last dim
// (per token).
#include "../portable/arguments.h"
#include "affine.h"

// A tensor as it lies in memory: `outer` times `channels` times `inner` elements.
typedef struct channels {
    int32_t outer, channels, inner;
} channels;

// Of a tensor without elements, outer and inner mean nothing.
static channels channels_of_dim(const pt_tensor *t, uint32_t dim) {
    uint32_t outer = 1, inner = 1;
    bool before = true;
    for (uint32_t i = 0; i < t->rank; i++) {
        uint32_t size = (uint32_t)t->sizes[t->dim_order[i]];
        if (t->dim_order[i] == dim) {
            before = false;
        } else if (before) {
            outer *= size;
        } else {
            inner *= size;
        }
    }
    return (channels){(int32_t)outer, t->sizes[dim], (int32_t)inner};
}

static channels channels_of_tokens(const pt_tensor *t) {
    return (channels){1, (int32_t)pt_product(t->sizes, t->rank - 1u), t->sizes[t->rank - 1]};
}

static int read_channels(pt_context *c, const pt_tensor *t, pt_ref axis, channels *lie) {
    uint32_t dim;
    if (t->rank == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input must have a dim");
    }
    int error = pt_read_dim(c, pt_get_int(c, axis), t->rank, &dim);
    if (error) {
        return error;
    }
    *lie = channels_of_dim(t, dim);
    return PT_ERROR_OK;
}

static int read_tokens(pt_context *c, const pt_tensor *t, channels *lie) {
    if (t->rank == 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the input must have a dim");
    }
    if (!(t->flags & PT_VALUE_CONTIGUOUS)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the tensors must be contiguous");
    }
    *lie = channels_of_tokens(t);
    return PT_ERROR_OK;
}

static double scale_of(const pt_tensor *scales, int32_t channel) {
    return pt_load_double(scales->data, channel, scales->dtype);
}

static int64_t zero_point_of(const pt_tensor *zero_points, int32_t channel) {
    return zero_points->data ? pt_load_int(zero_points->data, channel, zero_points->dtype) : 0;
}

// ---- quantize: (input, scales, zero_points, [axis,] quant_min, quant_max, dtype, out), the last
// four from args[last - 3]

static int check_quantize(pt_context *c, const pt_ref *args, const channels *lie, uint32_t last) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    pt_tensor out = pt_get_tensor(c, args[last]);
    int error = pt_check_real(c, &in);
    error = error ? error : pt_check_quantized(c, &out, pt_get_int(c, args[last - 1]));
    error = error ? error
                  : pt_check_range(c, out.dtype, pt_get_int(c, args[last - 3]),
                                   pt_get_int(c, args[last - 2]));
    error = error ? error : pt_check_parameters(c, args[1], args[2], lie->channels);
    return error ? error : pt_check_alike(c, &in, args[last]);
}

static int run_quantize(pt_context *c, const pt_ref *args, const channels *lie, uint32_t last) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    pt_tensor scales = pt_get_tensor(c, args[1]);
    pt_tensor zero_points = pt_get_tensor(c, args[2]);
    pt_tensor out = pt_get_tensor(c, args[last]);
    int64_t low = pt_get_int(c, args[last - 3]), high = pt_get_int(c, args[last - 2]);
    int32_t at = 0;
    if (pt_numel(&in) == 0) {
        return PT_ERROR_OK;
    }
    for (int32_t outer = 0; outer < lie->outer; outer++) {
        for (int32_t i = 0; i < lie->channels; i++, at += lie->inner) {
            pt_quantizer q =
                pt_make_quantizer(scale_of(&scales, i), zero_point_of(&zero_points, i), low, high);
            pt_quantize_part(&q, at, lie->inner, &in, &out);
        }
    }
    return PT_ERROR_OK;
}

static int check_quantize_channels(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    channels lie;
    int error = read_channels(c, &in, args[3], &lie);
    return error ? error : check_quantize(c, args, &lie, 7);
}

static int run_quantize_channels(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    channels lie;
    int error = read_channels(c, &in, args[3], &lie);
    return error ? error : run_quantize(c, args, &lie, 7);
}

static int check_quantize_tokens(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    channels lie;
    int error = read_tokens(c, &in, &lie);
    return error ? error : check_quantize(c, args, &lie, 6);
}

static int run_quantize_tokens(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    channels lie = channels_of_tokens(&in);
    return run_quantize(c, args, &lie, 6);
}

const pt_kernel pt_quantized_decomposed_quantize_per_channel_out = {check_quantize_channels,
                                                                    run_quantize_channels};
const pt_kernel pt_quantized_decomposed_quantize_per_token_out = {check_quantize_tokens,
                                                                  run_quantize_tokens};

// ---- dequantize: (input, scales, zero_points, [axis,] quant_min, quant_max, dtype, out_dtype,
// out), the last three from args[last - 2]

static int check_dequantize(pt_context *c, const pt_ref *args, const channels *lie, uint32_t last) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    pt_tensor out = pt_get_tensor(c, args[last]);
    int error = pt_check_quantized(c, &in, pt_get_int(c, args[last - 2]));
    error = error ? error : pt_check_real_output(c, &out, args[last - 1]);
    error = error ? error : pt_check_parameters(c, args[1], args[2], lie->channels);
    return error ? error : pt_check_alike(c, &in, args[last]);
}

static int run_dequantize(pt_context *c, const pt_ref *args, const channels *lie, uint32_t last) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    pt_tensor scales = pt_get_tensor(c, args[1]);
    pt_tensor zero_points = {0};
    if (!pt_is_none(args[2])) {
        zero_points = pt_get_tensor(c, args[2]);
    }
    pt_tensor out = pt_get_tensor(c, args[last]);
    int32_t at = 0;
    if (pt_numel(&in) == 0) {
        return PT_ERROR_OK;
    }
    for (int32_t outer = 0; outer < lie->outer; outer++) {
        for (int32_t i = 0; i < lie->channels; i++, at += lie->inner) {
            pt_dequantizer q =
                pt_make_dequantizer(scale_of(&scales, i), zero_point_of(&zero_points, i));
            pt_dequantize_part(&q, at, lie->inner, &in, &out);
        }
    }
    return PT_ERROR_OK;
}

static int check_dequantize_channels(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    channels lie;
    int error = read_channels(c, &in, args[3], &lie);
    return error ? error : check_dequantize(c, args, &lie, 8);
}

static int run_dequantize_channels(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    channels lie;
    int error = read_channels(c, &in, args[3], &lie);
    return error ? error : run_dequantize(c, args, &lie, 8);
}

static int check_dequantize_tokens(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    channels lie;
    int error = read_tokens(c, &in, &lie);
    return error ? error : check_dequantize(c, args, &lie, 7);
}

static int run_dequantize_tokens(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[0]);
    channels lie = channels_of_tokens(&in);
    return run_dequantize(c, args, &lie, 7);
}

const pt_kernel pt_quantized_decomposed_dequantize_per_channel_out = {check_dequantize_channels,
                                                                      run_dequantize_channels};
const pt_kernel pt_quantized_decomposed_dequantize_per_token_out = {check_dequantize_tokens,
                                                                    run_dequantize_tokens};
