// rand and randn: (size, out). Numbers follow each other as the output lies in memory.
#include "../core/operator_arguments.h"
#include "arguments.h"
#include "element.h"
#include "float_math.h"

static int check_random(pt_context *c, const pt_ref *args) {
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank;
    if (!pt_is_floating(pt_get_tensor(c, args[RAND_OUT]).dtype)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "random numbers are floats");
    }
    PT_TRY(pt_read_sizes(c, args[RAND_SIZE], 0, &rank, sizes));
    return pt_expect_sizes(c, args[RAND_OUT], rank, sizes);
}

// From 0 to below 1, of as many bits as the dtype holds without rounding: 24, also of float64.
static float uniform(pt_context *c, uint8_t dtype) {
    const uint32_t bits = dtype == PT_DTYPE_HALF ? 11 : dtype == PT_DTYPE_BFLOAT16 ? 8 : 24;
    return (float)(pt_random(c) >> (32 - bits)) / (float)(1u << bits);
}

// Of mean 0 and variance 1, at most 5.77 from 0: Box and Muller's, whose other half is left out.
static float normal(pt_context *c) {
    const float size = pt_sqrtf(-2 * pt_logf(1 - uniform(c, PT_DTYPE_FLOAT)));
    return size * pt_cosf(6.2831853f * uniform(c, PT_DTYPE_FLOAT));
}

static int draw(pt_context *c, const pt_ref *args, bool is_normal) {
    const pt_tensor out = pt_get_tensor(c, args[RAND_OUT]);
    const int32_t n = pt_numel(&out);
    for (int32_t i = 0; i < n; i++) {
        if (i % PT_PIECE == 0) {
            PT_TRY(pt_count_elements(c, n - i < PT_PIECE ? n - i : PT_PIECE));
        }
        pt_store_float(out.data, i, out.dtype, is_normal ? normal(c) : uniform(c, out.dtype));
    }
    return PT_ERROR_OK;
}

static int run_rand(pt_context *c, const pt_ref *args) {
    return draw(c, args, false);
}

static int run_randn(pt_context *c, const pt_ref *args) {
    return draw(c, args, true);
}

const pt_kernel pt_aten_rand_out = PT_KERNEL(check_random, run_rand);
const pt_kernel pt_aten_randn_out = PT_KERNEL(check_random, run_randn);
