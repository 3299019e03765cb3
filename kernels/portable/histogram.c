// histc: (self, bins, min, max, out): counts the elements in each of `bins` parts of the range from
// min to max, which includes both ends. If min and max are equal, the range is from the smallest to
// the largest element.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/double_math.h"
#include "portable/dtype_access.h"

static int check_histc(pt_context *c, const pt_ref *args) {
    const pt_tensor self = pt_get_tensor(c, args[HISTC_SELF]);
    const int64_t bins = pt_get_int(c, args[HISTC_BINS]);
    if (!pt_is_floating(self.dtype) || pt_get_tensor(c, args[HISTC_OUT]).dtype != self.dtype) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "histc supports floating dtypes only");
    }
    if (bins <= 0 || bins > INT32_MAX) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "bins must be above 0 and at most 2^31 - 1");
    }
    const int32_t size = (int32_t)bins;
    return pt_expect_sizes(c, args[HISTC_OUT], 1, &size);
}

static double histogram_number(const pt_context *c, pt_ref arg) {
    const pt_scalar s = pt_get_scalar(c, arg);
    return s.type == PT_TYPE_DOUBLE ? s.as.d : (double)s.as.i;
}

static int find_range(pt_context *c, const pt_tensor *self, double *low, double *high) {
    const int32_t n = pt_numel(self);
    if (*low == *high && n > 0) {
        *low = *high = pt_load_double(self->data, 0, self->dtype);
        for (int32_t i = 0; i < n; i++) {
            const double x = pt_load_double(self->data, i, self->dtype);
            PT_TRY(pt_count_elements(c, 1));
            *low = x < *low || x != x ? x : *low; // keeps a NaN
            *high = x > *high ? x : *high;
        }
    }
    if (!(*high - *low < __builtin_inf())) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the range is not finite");
    }
    if (*low > *high) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "min is above max");
    }
    if (*low == *high) {
        *low -= 1;
        *high += 1;
    }
    return PT_ERROR_OK;
}

// Not inlined: GCC 12 turns conditional conversions into instructions that its assembler rejects
// for Cortex-M55.
#define APART static __attribute__((noinline))

APART float in_dtype(double x, uint8_t dtype) {
    float stored;
    pt_store_float(&stored, 0, dtype, (float)x);
    return pt_load_float(&stored, 0, dtype);
}

// Returns the bin of an element in the range. Rounds each step to the dtype, as PyTorch does.
APART int32_t bin_of_float(double x, double low, double high, int32_t bins, uint8_t dtype) {
    const float beyond = in_dtype((float)x - (float)low, dtype);
    const float times = in_dtype(beyond * in_dtype(bins, dtype), dtype);
    const float position = in_dtype(times / in_dtype((float)high - (float)low, dtype), dtype);
    const float max = 0x7FFFFF80; // representable as int32_t and as float
    const int32_t bin = (int32_t)(position < max ? position : max);
    return bin < bins ? bin : bins - 1;
}

APART int32_t bin_of_double(double x, double low, double high, int32_t bins) {
    const double position = (x - low) * bins / (high - low);
    const int32_t bin = (int32_t)(position < INT32_MAX ? position : INT32_MAX);
    return bin < bins ? bin : bins - 1;
}

static int run_histc(pt_context *c, const pt_ref *args) {
    const pt_tensor self = pt_get_tensor(c, args[HISTC_SELF]);
    const pt_tensor out = pt_get_tensor(c, args[HISTC_OUT]);
    const int32_t n = pt_numel(&self), bins = out.sizes[0];
    double low = histogram_number(c, args[HISTC_MIN]), high = histogram_number(c, args[HISTC_MAX]);
    if (self.dtype != PT_DTYPE_DOUBLE) { // an element at an end is in the range
        low = in_dtype(low, PT_DTYPE_FLOAT);
        high = in_dtype(high, PT_DTYPE_FLOAT);
    }
    PT_TRY(find_range(c, &self, &low, &high));
    if (pt_is_half(self.dtype)) {
        low = in_dtype(low, self.dtype);
        high = in_dtype(high, self.dtype);
    }
    for (int32_t i = 0; i < bins; i++) {
        PT_TRY(pt_count_work(c, 1));
        pt_store_int(out.data, i, out.dtype, 0);
    }
    for (int32_t i = 0; i < n; i++) {
        const double x = pt_load_double(self.data, i, self.dtype);
        PT_TRY(pt_count_elements(c, 1));
        if (x >= low && x <= high) {
            const int32_t at = self.dtype == PT_DTYPE_DOUBLE
                                   ? bin_of_double(x, low, high, bins)
                                   : bin_of_float(x, low, high, bins, self.dtype);
            pt_store_double(out.data, at, out.dtype, pt_load_double(out.data, at, out.dtype) + 1);
        }
    }
    return PT_ERROR_OK;
}

const pt_kernel pt_aten_histc_out = PT_KERNEL(check_histc, run_histc);
