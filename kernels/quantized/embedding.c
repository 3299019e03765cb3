// Embedding of a table of quantized weights of 8, 4 or 2 bits, with a scale (and zero point) for
// each row or each group of columns: (weight, scales, zero_points, quant_min, quant_max, indices,
// [dtype,] out). x = (q - zero_point) * scale in float32. Scales, zero points and the output may be
// float16 or bfloat16.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "quantized/affine.h"

// Weights in a byte of the table. Packed weights are unsigned. The first of two nibbles is in the
// high bits, the first of four pairs of bits in the low bits.
typedef enum packing { BYTES, NIBBLES, PAIRS } packing;

static const uint8_t values_per_byte[] = {[BYTES] = 1, [NIBBLES] = 2, [PAIRS] = 4};

typedef struct table {
    pt_tensor weight, scales, zero_points; // zero_points.data is NULL if the call has none
    int32_t columns, groups;
} table;

static table get_table(const pt_context *c, const pt_ref *args, packing p) {
    table t = {.weight = pt_get_tensor(c, args[EMBEDDING_BYTE_WEIGHT]),
               .scales = pt_get_tensor(c, args[EMBEDDING_BYTE_WEIGHT_SCALES])};
    if (!pt_is_none(args[EMBEDDING_BYTE_WEIGHT_ZERO_POINTS])) {
        t.zero_points = pt_get_tensor(c, args[EMBEDDING_BYTE_WEIGHT_ZERO_POINTS]);
    }
    t.columns =
        t.weight.rank == 2 ? (int32_t)((uint32_t)t.weight.sizes[1] * values_per_byte[p]) : 0;
    t.groups = t.scales.rank == 2 ? t.scales.sizes[1] : 1;
    return t;
}

static int check_table(pt_context *c, const pt_ref *args, packing p) {
    table t = get_table(c, args, p);
    if (t.weight.rank != 2) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "weight must have 2 dims");
    }
    if (t.weight.sizes[1] > INT32_MAX / values_per_byte[p]) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "weight has too many columns");
    }
    if (t.weight.dtype != PT_DTYPE_BYTE && !(p == BYTES && t.weight.dtype == PT_DTYPE_CHAR)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                       "weight must be uint8, or int8 if it is not packed");
    }
    if ((t.scales.rank != 1 && t.scales.rank != 2) || t.scales.sizes[0] != t.weight.sizes[0] ||
        t.groups == 0 || t.columns % t.groups != 0) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "scales must be one a row, or as many as divide its columns");
    }
    if (!pt_is_none(args[EMBEDDING_BYTE_WEIGHT_ZERO_POINTS]) &&
        !pt_same_sizes(&t.zero_points, &t.scales)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "zero points must have the sizes of scales");
    }
    if (!pt_is_none(args[EMBEDDING_BYTE_WEIGHT_ZERO_POINTS]) &&
        t.zero_points.dtype != t.scales.dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "zero points must have the dtype of scales");
    }
    return pt_check_real(c, &t.scales);
}

static int embedding_check(pt_context *c, const pt_ref *args, packing p, pt_ref dtype,
                           pt_ref out_arg) {
    pt_tensor indices = pt_get_tensor(c, args[EMBEDDING_BYTE_INDICES]);
    pt_tensor out = pt_get_tensor(c, out_arg);
    PT_TRY(check_table(c, args, p));
    PT_TRY(pt_check_real_output(c, &out, dtype));
    if (indices.dtype != PT_DTYPE_LONG && indices.dtype != PT_DTYPE_INT) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "indices must be int64 or int32");
    }
    table t = get_table(c, args, p);
    if (indices.rank == PT_MAX_RANK) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "more than 16 dims");
    }
    if (!(t.weight.flags & indices.flags & out.flags & PT_VALUE_CONTIGUOUS)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the tensors must be contiguous");
    }
    int32_t sizes[PT_MAX_RANK];
    for (uint32_t d = 0; d < indices.rank; d++) {
        sizes[d] = indices.sizes[d];
    }
    sizes[indices.rank] = t.columns;
    return pt_expect_sizes(c, out_arg, indices.rank + 1u, sizes);
}

static int32_t weight_value(const table *t, packing p, int32_t row, int32_t column) {
    const uint8_t *weights = (const uint8_t *)t->weight.data + row * t->weight.sizes[1];
    switch (p) {
    case NIBBLES:
        return (weights[column >> 1] >> (column & 1 ? 0 : 4) & 15) - 8;
    case PAIRS:
        return (weights[column >> 2] >> 2 * (column & 3) & 3) - 2;
    default:
        return t->weight.dtype == PT_DTYPE_CHAR ? (int8_t)weights[column] : weights[column];
    }
}

// Writes one row to the elements of `out` from `to` on.
static int dequantize_row(pt_context *c, const table *t, packing p, int32_t row,
                          const pt_tensor *out, int32_t to) {
    int32_t group_size = t->columns / t->groups;
    const void *zero_points = t->zero_points.data;
    const uint8_t dtype = t->scales.dtype;
    float *floats = out->dtype == PT_DTYPE_FLOAT ? out->data : NULL;
    for (int32_t group = 0; group < t->groups; group++) {
        int32_t i = row * t->groups + group;
        float scale = pt_load_float(t->scales.data, i, dtype);
        float zero_point = zero_points ? pt_load_float(zero_points, i, dtype) : 0;
        for (int32_t j = group * group_size; j < (group + 1) * group_size; j++) {
            PT_TRY(pt_count_work(c, 1));
            float x = ((float)weight_value(t, p, row, j) - zero_point) * scale;
            if (floats) {
                floats[to++] = x;
            } else {
                pt_store_float(out->data, to++, out->dtype, x);
            }
        }
    }
    return PT_ERROR_OK;
}

static int embedding_run(pt_context *c, const pt_ref *args, packing p, pt_ref out_arg) {
    table t = get_table(c, args, p);
    pt_tensor indices = pt_get_tensor(c, args[EMBEDDING_BYTE_INDICES]);
    pt_tensor out = pt_get_tensor(c, out_arg);
    PT_TRY(pt_check_indices(c, &indices, t.weight.sizes[0], &out));
    int32_t n = pt_numel(&indices);
    for (int32_t i = 0; i < n; i++) {
        int32_t row = (int32_t)pt_load_int(indices.data, i, indices.dtype);
        PT_TRY(dequantize_row(c, &t, p, row, &out, i * t.columns));
    }
    return PT_ERROR_OK;
}

#define EMBEDDING_KERNELS(name, p)                                           \
    static int check_##name(pt_context *c, const pt_ref *args) {             \
        return embedding_check(c, args, p, 0, args[EMBEDDING_BYTE_OUT]);     \
    }                                                                        \
    static int run_##name(pt_context *c, const pt_ref *args) {               \
        return embedding_run(c, args, p, args[EMBEDDING_BYTE_OUT]);          \
    }                                                                        \
    static int check_##name##_dtype(pt_context *c, const pt_ref *args) {     \
        return embedding_check(c, args, p, args[EMBEDDING_BYTE_DTYPE_DTYPE], \
                               args[EMBEDDING_BYTE_DTYPE_OUT]);              \
    }                                                                        \
    static int run_##name##_dtype(pt_context *c, const pt_ref *args) {       \
        return embedding_run(c, args, p, args[EMBEDDING_BYTE_DTYPE_OUT]);    \
    }                                                                        \
    const pt_kernel pt_quantized_decomposed_embedding_##name##_out =         \
        PT_KERNEL(check_##name, run_##name);                                 \
    const pt_kernel pt_quantized_decomposed_embedding_##name##_dtype_out =   \
        PT_KERNEL(check_##name##_dtype, run_##name##_dtype);

EMBEDDING_KERNELS(byte, BYTES)
EMBEDDING_KERNELS(4bit, NIBBLES)
EMBEDDING_KERNELS(2bit, PAIRS)
