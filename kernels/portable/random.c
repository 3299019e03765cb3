// rand and randn: (size, out); rand_like and randn_like; randint: (low, high, size, out); randperm:
// (n, out). Numbers are drawn in memory order of the output.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/dtype_access.h"
#include "portable/float_math.h"

static int check_floats(pt_context *c, pt_ref out, uint32_t rank, const int32_t *sizes) {
    if (!pt_is_floating(pt_get_tensor(c, out).dtype)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "random numbers are floats");
    }
    return pt_expect_sizes(c, out, rank, sizes);
}

static int check_random(pt_context *c, const pt_ref *args) {
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank;
    PT_TRY(pt_read_sizes(c, args[RAND_SIZE], 0, &rank, sizes));
    return check_floats(c, args[RAND_OUT], rank, sizes);
}

static int check_like(pt_context *c, const pt_ref *args) {
    const pt_tensor self = pt_get_tensor(c, args[RAND_LIKE_SELF]);
    return check_floats(c, args[RAND_LIKE_OUT], self.rank, self.sizes);
}

// Draws from [0, 1), with as many bits as the dtype represents exactly. The maximum is 24 bits,
// also for float64.
static float uniform(pt_context *c, uint8_t dtype) {
    const uint32_t bits = dtype == PT_DTYPE_HALF ? 11 : dtype == PT_DTYPE_BFLOAT16 ? 8 : 24;
    return (float)(pt_random(c) >> (32 - bits)) / (float)(1u << bits);
}

// Draws from the normal distribution: one of the two values of the Box-Muller transform. The value
// is at most 5.77 from 0.
static float normal(pt_context *c) {
    const float size = pt_sqrtf(-2 * pt_logf(1 - uniform(c, PT_DTYPE_FLOAT)));
    return size * pt_cosf(6.2831853f * uniform(c, PT_DTYPE_FLOAT));
}

static int draw(pt_context *c, pt_ref to, bool is_normal) {
    const pt_tensor out = pt_get_tensor(c, to);
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
    return draw(c, args[RAND_OUT], false);
}

static int run_randn(pt_context *c, const pt_ref *args) {
    return draw(c, args[RAND_OUT], true);
}

static int run_rand_like(pt_context *c, const pt_ref *args) {
    return draw(c, args[RAND_LIKE_OUT], false);
}

static int run_randn_like(pt_context *c, const pt_ref *args) {
    return draw(c, args[RAND_LIKE_OUT], true);
}

const pt_kernel pt_aten_rand_out = PT_KERNEL(check_random, run_rand);
const pt_kernel pt_aten_randn_out = PT_KERNEL(check_random, run_randn);
const pt_kernel pt_aten_rand_like_out = PT_KERNEL(check_like, run_rand_like);
const pt_kernel pt_aten_randn_like_out = PT_KERNEL(check_like, run_randn_like);

// ---- integers

// True if the dtype represents v; floating dtypes may round it, but not to infinity.
static bool represents(uint8_t dtype, int64_t v) {
    uint64_t element;
    pt_store_int(&element, 0, dtype, v);
    return pt_is_floating(dtype) ? pt_load_double(&element, 0, dtype) < __builtin_inf() &&
                                       pt_load_double(&element, 0, dtype) > -__builtin_inf()
                                 : pt_load_int(&element, 0, dtype) == v;
}

// Draws from 0 to below `range`, uniformly to within one part in 2^32.
static uint32_t draw_below(pt_context *c, uint64_t range) {
    return (uint32_t)(pt_random(c) * range >> 32);
}

static int check_integers(pt_context *c, const pt_ref *args, int64_t low, pt_ref out) {
    const int64_t high = pt_get_int(c, args[RANDINT_HIGH]);
    const uint8_t dtype = pt_get_tensor(c, out).dtype;
    int32_t sizes[PT_MAX_RANK];
    uint32_t rank;
    if (!pt_dtype_in(dtype, PT_DTYPES_ALL)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the operator does not support this dtype");
    }
    if (low >= high || !represents(dtype, low) || !represents(dtype, high - 1)) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "low is not below high, or the output's dtype does not hold them");
    }
    if ((uint64_t)high - (uint64_t)low > (uint64_t)1 << 32) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "high - low is above 2^32");
    }
    PT_TRY(pt_read_sizes(c, args[RANDINT_SIZE], 0, &rank, sizes));
    return pt_expect_sizes(c, out, rank, sizes);
}

static int draw_integers(pt_context *c, const pt_ref *args, int64_t low, pt_ref to) {
    const pt_tensor out = pt_get_tensor(c, to);
    const uint64_t range = (uint64_t)pt_get_int(c, args[RANDINT_HIGH]) - (uint64_t)low;
    const int32_t n = pt_numel(&out);
    for (int32_t i = 0; i < n; i++) {
        PT_TRY(pt_count_elements(c, 1));
        pt_store_int(out.data, i, out.dtype, low + (int64_t)draw_below(c, range));
    }
    return PT_ERROR_OK;
}

static int check_randint(pt_context *c, const pt_ref *args) {
    return check_integers(c, args, 0, args[RANDINT_OUT]);
}

static int run_randint(pt_context *c, const pt_ref *args) {
    return draw_integers(c, args, 0, args[RANDINT_OUT]);
}

static int check_randint_from(pt_context *c, const pt_ref *args) {
    return check_integers(c, args + RANDINT_LOW_HIGH - RANDINT_HIGH,
                          pt_get_int(c, args[RANDINT_LOW_LOW]), args[RANDINT_LOW_OUT]);
}

static int run_randint_from(pt_context *c, const pt_ref *args) {
    return draw_integers(c, args + RANDINT_LOW_HIGH - RANDINT_HIGH,
                         pt_get_int(c, args[RANDINT_LOW_LOW]), args[RANDINT_LOW_OUT]);
}

const pt_kernel pt_aten_randint_out = PT_KERNEL(check_randint, run_randint);
const pt_kernel pt_aten_randint_low_out = PT_KERNEL(check_randint_from, run_randint_from);

static int check_permutation(pt_context *c, const pt_ref *args) {
    const int64_t n = pt_get_int(c, args[RANDPERM_N]);
    const uint8_t dtype = pt_get_tensor(c, args[RANDPERM_OUT]).dtype;
    if (!pt_dtype_in(dtype, PT_DTYPES_INTEGER)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "random permutations are integers");
    }
    if (n < 0 || n > INT32_MAX || (n > 0 && !represents(dtype, n - 1))) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT,
                       "n is below 0, or the output's dtype does not hold n - 1");
    }
    const int32_t size = (int32_t)n;
    return pt_expect_sizes(c, args[RANDPERM_OUT], 1, &size);
}

// Shuffles by Fisher and Yates: swaps each element with an earlier one or itself.
static int run_permutation(pt_context *c, const pt_ref *args) {
    const pt_tensor out = pt_get_tensor(c, args[RANDPERM_OUT]);
    for (int32_t i = 0; i < out.sizes[0]; i++) {
        const int32_t other = (int32_t)draw_below(c, (uint64_t)i + 1);
        PT_TRY(pt_count_elements(c, 1));
        if (other != i) {
            pt_convert_element(out.data, i, out.dtype, out.data, other, out.dtype);
        }
        pt_store_int(out.data, other, out.dtype, i);
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_randperm_out = PT_KERNEL(check_permutation, run_permutation);
