// Common parts of the int8 operators: scales, arguments, layouts of images, and windows.
#include "cortex_m/quantized.h"
#include "core/generated/operator_arguments.h"

enum { OFFSET_LIMIT = 255 };
enum { PARAMETER_LIMIT = 1 << 27 }; // sums of a size and two of them stay in int32

// ---- arithmetic

int32_t pt_requantize_int64(int64_t value, int32_t multiplier, int32_t shift) {
    uint32_t left = shift > 0 ? (uint32_t)shift : 0;
    uint64_t shifted = left < 64 ? (uint64_t)value << left : 0;
    uint64_t product = shifted * (uint64_t)(int64_t)multiplier + (1u << 30);
    int64_t result = (int64_t)product >> 31;
    if (shift < 0) {
        uint32_t right = shift > -62 ? -(uint32_t)shift : 62;
        result = (((result + (result >> 63)) >> (right - 1)) + 1) >> 1;
    }
    return (int32_t)result;
}

float pt_real_multiplier(int32_t multiplier, int32_t shift) {
    union {
        uint32_t bits;
        float value;
    } power = {(uint32_t)(127 - 31 + shift) << 23};
    return (float)multiplier * power.value;
}

// ---- arguments

int pt_read_int(pt_context *c, pt_ref arg, int32_t min, int32_t max, int32_t *value) {
    int64_t read = pt_get_int(c, arg);
    *value = (int32_t)read;
    return read >= min && read <= max
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "a parameter is out of its range");
}

int pt_read_offset(pt_context *c, pt_ref arg, int32_t *offset) {
    int64_t read = pt_get_int(c, arg);
    *offset = (int32_t)read;
    return read >= -OFFSET_LIMIT && read <= OFFSET_LIMIT
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                         "a zero point or offset is not in -255..255");
}

int pt_check_scale(pt_context *c, int64_t multiplier, int64_t shift) {
    return multiplier >= INT32_MIN && multiplier <= INT32_MAX && shift >= -62 && shift <= 31
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                         "a multiplier must be an int32, its shift in -62..31");
}

// Behind its multiplier, in all operators.
enum { SHIFT = QUANTIZED_MUL_OUTPUT_SHIFT - QUANTIZED_MUL_OUTPUT_MULTIPLIER };

int pt_read_multiplier(pt_context *c, const pt_ref *args, int32_t *multiplier, int32_t *shift) {
    int64_t read = pt_get_int(c, *args);
    int64_t power = pt_get_int(c, args[SHIFT]);
    *multiplier = (int32_t)read;
    *shift = (int32_t)power;
    return pt_check_scale(c, read, power);
}

int pt_read_activation(pt_context *c, pt_ref min, pt_ref max, pt_range *r) {
    const int64_t low = pt_is_none(min) ? INT8_MIN : pt_get_int(c, min);
    const int64_t high = pt_is_none(max) ? INT8_MAX : pt_get_int(c, max);
    r->min = (int32_t)low;
    r->max = (int32_t)high;
    return low >= INT8_MIN && low <= high && high <= INT8_MAX
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                         "activation_min and activation_max must be -128 <= min <= max <= 127");
}

int pt_read_pair(pt_context *c, pt_ref list, int32_t lowest, int32_t pair[2]) {
    int64_t values[2];
    uint32_t n = pt_list_ints(c, list, 2, values);
    if (n != 1 && n != 2) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "stride, padding and the like must be one or two values");
    }
    for (uint32_t i = 0; i < 2; i++) {
        int64_t value = values[n == 2 ? i : 0];
        if (value < lowest || value > PARAMETER_LIMIT) {
            return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                           "a kernel size, stride, padding or dilation is out of its range");
        }
        pair[i] = (int32_t)value;
    }
    return PT_ERROR_OK;
}

// ---- tensors

bool pt_lies_in_order(const pt_tensor *t, const uint8_t *dims) {
    uint32_t next = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        uint32_t d = t->dim_order[i];
        if (t->sizes[d] == 1) {
            continue;
        }
        while (t->sizes[dims[next]] == 1) {
            next++;
        }
        if (dims[next++] != d) {
            return false;
        }
    }
    return true;
}

bool pt_same_layout(const pt_tensor *a, const pt_tensor *b) {
    return pt_same_sizes(a, b) && pt_lies_in_order(a, b->dim_order);
}

int pt_check_like(pt_context *c, pt_ref out_arg, const pt_tensor *in, uint8_t dtype) {
    pt_tensor out = pt_get_tensor(c, out_arg);
    if (out.dtype != dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output's dtype is not the operator's");
    }
    PT_TRY(pt_expect_sizes(c, out_arg, in->rank, in->sizes));
    if (out.rank != in->rank || !pt_lies_in_order(in, out.dim_order)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the output's dim order must be the input's");
    }
    return PT_ERROR_OK;
}

int pt_read_channels(pt_context *c, pt_ref arg, int32_t n, const int32_t **data) {
    pt_tensor t = pt_get_tensor(c, arg);
    *data = t.data;
    if (t.dtype != PT_DTYPE_INT || pt_numel(&t) != n) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "bias, multipliers and shifts must be one int32 for each output channel");
    }
    return PT_ERROR_OK;
}

static const uint8_t channels_last_dims[4] = {0, 2, 3, 1};
static const uint8_t contiguous_dims[4] = {0, 1, 2, 3};

int pt_read_image(pt_context *c, pt_ref arg, bool explicit_layout, pt_image *image) {
    pt_tensor t = pt_get_tensor(c, arg);
    const uint8_t *dims = explicit_layout ? contiguous_dims : channels_last_dims;
    if (t.rank != 4 || t.dtype != PT_DTYPE_CHAR) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "images must be int8 tensors of 4 dims");
    }
    if (!pt_lies_in_order(&t, dims)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                       explicit_layout ? "the dim order of an NHWC tensor must be contiguous"
                                       : "the dim order of images must be channels_last");
    }
    *image =
        (pt_image){t.data, t.sizes[dims[0]], t.sizes[dims[1]], t.sizes[dims[2]], t.sizes[dims[3]]};
    return PT_ERROR_OK;
}

int pt_expect_image(pt_context *c, pt_ref arg, bool explicit_layout, const pt_image *image) {
    int32_t nhwc[4] = {image->batch, image->height, image->width, image->channels};
    int32_t nchw[4] = {image->batch, image->channels, image->height, image->width};
    pt_image out;
    PT_TRY(pt_expect_sizes(c, arg, 4, explicit_layout ? nhwc : nchw));
    return pt_read_image(c, arg, explicit_layout, &out);
}

// ---- windows

int64_t pt_count_steps(int64_t slack, int32_t stride) {
    return slack < 0 ? 0 : (int64_t)((uint32_t)slack / (uint32_t)stride) + 1;
}

int32_t pt_count_windows(const pt_window *w, uint32_t d, int32_t size) {
    int64_t reach = (int64_t)w->dilation[d] * (w->kernel[d] - 1);
    int64_t slack = size + 2 * (int64_t)w->padding[d] - reach - 1;
    return (int32_t)pt_count_steps(slack, w->stride[d]);
}

void pt_limit_steps(pt_window *w, const pt_image *in, const pt_image *out) {
    const int32_t sizes[2] = {in->height, in->width};
    const int32_t windows[2] = {out->height, out->width};
    for (uint32_t d = 0; d < 2; d++) {
        int32_t size = sizes[d] > 1 ? sizes[d] : 1;
        w->stride[d] = windows[d] > 1 || w->stride[d] < size ? w->stride[d] : size;
        w->dilation[d] = w->kernel[d] > 1 ? w->dilation[d] : 1;
    }
}

pt_span pt_clip_window(const pt_window *w, uint32_t d, int32_t position, int32_t size) {
    int32_t start = position * w->stride[d] - w->padding[d];
    int32_t dilation = w->dilation[d];
    if (start >= 0 && start + dilation * (w->kernel[d] - 1) < size) {
        return (pt_span){0, w->kernel[d], start};
    }
    int32_t first = start < 0 ? (-start + dilation - 1) / dilation : 0;
    int32_t end = start < size ? (size - start + dilation - 1) / dilation : 0;
    end = end < w->kernel[d] ? end : w->kernel[d];
    return (pt_span){first, end > first ? end - first : 0, start + first * dilation};
}
