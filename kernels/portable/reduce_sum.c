// Reductions that add up elements: sum, mean, prod, var, any.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/complex.h"
#include "portable/half.h"
#include "portable/reduction.h"

// ---- sum, mean, var: in float32 for inputs and outputs of float32, float16 or bfloat16.
// Otherwise, and for prod, in double for a floating output, in int64 for any other output.

enum { SUM_BLOCK = 128 }; // elements of a partial sum, which bounds the rounding error of long sums

// Adds n values to `sum`.
static float sum_block(float sum, const float *value, int32_t n, int32_t step) {
    for (; n >= 4; n -= 4) {
        sum += value[0];
        value += step;
        sum += value[0];
        value += step;
        sum += value[0];
        value += step;
        sum += value[0];
        value += step;
    }
    for (; n > 0; n--, value += step) {
        sum += *value;
    }
    return sum;
}

// Adds n values of float16 or bfloat16, from element `at` on, to `sum`.
static float sum_half_block(const pt_tensor *in, int32_t at, int32_t n, int32_t step) {
    float part[32], sum = 0;
    const int32_t max = sizeof part / sizeof part[0];
    for (; n > 0; n -= max, at += max * step) {
        const int32_t some = n < max ? n : max;
        pt_read_halves(part, in->data, at, step, some, in->dtype);
        sum = sum_block(sum, part, some, 1);
    }
    return sum;
}

static float sum_line(pt_reduction *r, int32_t at) {
    const pt_tensor *in = &r->in;
    const int32_t step = r->step;
    int32_t n = r->n;
    float sum = 0;
    if (in->dtype == PT_DTYPE_FLOAT && n <= SUM_BLOCK) {
        r->error = pt_count_work(r->c, n);
        return sum_block(sum, (const float *)in->data + at, n, step);
    }
    for (; n > 0 && pt_reduces_on(r, SUM_BLOCK); n -= SUM_BLOCK, at += SUM_BLOCK * step) {
        const int32_t some = n < SUM_BLOCK ? n : SUM_BLOCK;
        sum += in->dtype == PT_DTYPE_FLOAT ? sum_block(0, (const float *)in->data + at, some, step)
                                           : sum_half_block(in, at, some, step);
    }
    return sum;
}

static bool in_float(const pt_reduction *r) {
    return r->in.dtype == r->out.dtype &&
           (r->in.dtype == PT_DTYPE_FLOAT || pt_is_half(r->in.dtype));
}

static float sum_float(pt_reduction *r, int32_t from) {
    if (r->lines == 1) {
        return sum_line(r, from);
    }
    float sum = 0;
    for (int32_t line = 0; line < r->lines && !r->error; line++) {
        sum += sum_line(r, from + pt_line_start(r, line));
    }
    return sum;
}

static double sum_double(pt_reduction *r, int32_t from) {
    double sum = 0;
    for (pt_piece p = {0}; pt_next_piece(r, from, &p);) {
        int32_t at = p.at;
        for (int32_t i = 0; i < p.n; i++, at += r->step) {
            sum += pt_load_double(r->in.data, at, r->in.dtype);
        }
    }
    return sum;
}

static bool is_true(const pt_reduction *r, int32_t at) {
    return pt_is_floating(r->in.dtype) ? pt_load_double(r->in.data, at, r->in.dtype) != 0
                                       : pt_load_int(r->in.data, at, r->in.dtype) != 0;
}

// Returns an element in the integral dtype of the output.
static uint64_t load_integer(const pt_reduction *r, int32_t at) {
    return r->out.dtype == PT_DTYPE_BOOL ? is_true(r, at)
                                         : (uint64_t)pt_load_int(r->in.data, at, r->in.dtype);
}

void pt_sum_one(pt_reduction *r, int32_t from, int32_t to, int32_t index_to) {
    (void)index_to;
    if (in_float(r)) {
        pt_store_float(r->out.data, to, r->out.dtype, sum_float(r, from));
        return;
    }
    if (pt_is_floating(r->out.dtype)) {
        pt_store_double(r->out.data, to, r->out.dtype, sum_double(r, from));
        return;
    }
    uint64_t sum = 0;
    for (pt_piece p = {0}; pt_next_piece(r, from, &p);) {
        int32_t at = p.at;
        for (int32_t i = 0; i < p.n; i++, at += r->step) {
            sum += load_integer(r, at);
        }
    }
    pt_store_int(r->out.data, to, r->out.dtype, (int64_t)sum);
}

void pt_mean_one(pt_reduction *r, int32_t from, int32_t to, int32_t index_to) {
    (void)index_to;
    int32_t n = r->lines * r->n;
    if (in_float(r)) {
        pt_store_float(r->out.data, to, r->out.dtype, sum_float(r, from) / (float)n);
    } else {
        pt_store_double(r->out.data, to, r->out.dtype, sum_double(r, from) / n);
    }
}

static void prod_one(pt_reduction *r, int32_t from, int32_t to, int32_t index_to) {
    (void)index_to;
    bool floating = pt_is_floating(r->out.dtype);
    double product = 1;
    uint64_t int_product = 1;
    for (pt_piece p = {0}; pt_next_piece(r, from, &p);) {
        int32_t at = p.at;
        for (int32_t i = 0; i < p.n; i++, at += r->step) {
            if (floating) {
                product *= pt_load_double(r->in.data, at, r->in.dtype);
            } else {
                int_product *= load_integer(r, at);
            }
        }
    }
    if (floating) {
        pt_store_double(r->out.data, to, r->out.dtype, product);
    } else {
        pt_store_int(r->out.data, to, r->out.dtype, (int64_t)int_product);
    }
}

// Adds the squared deviations from `mean` in a line of float32 (`floats`) or of the two half dtypes
// to `sum`.
static inline __attribute__((always_inline)) float
add_squares(float sum, pt_reduction *r, int32_t at, float mean, const bool floats) {
    const float *value = (const float *)r->in.data + at;
    for (int32_t n = r->n; n > 0; n -= SUM_BLOCK) {
        const int32_t some = n < SUM_BLOCK ? n : SUM_BLOCK;
        float part = 0;
        if (!pt_reduces_on(r, some)) {
            break;
        }
        for (int32_t i = 0; i < some; i++) {
            float deviation = (floats ? *value : pt_load_float(r->in.data, at, r->in.dtype)) - mean;
            part += deviation * deviation;
            value += floats ? r->step : 0;
            at += r->step;
        }
        sum += part;
    }
    return sum;
}

// Sums the squared deviations from `mean`.
static float squares_float(pt_reduction *r, int32_t from, float mean) {
    float sum = 0;
    for (int32_t line = 0; line < r->lines && !r->error; line++) {
        const int32_t at = from + pt_line_start(r, line);
        sum = r->in.dtype == PT_DTYPE_FLOAT ? add_squares(sum, r, at, mean, true)
                                            : add_squares(sum, r, at, mean, false);
    }
    return sum;
}

static double squares_double(pt_reduction *r, int32_t from, double mean) {
    double sum = 0;
    for (pt_piece p = {0}; pt_next_piece(r, from, &p);) {
        int32_t at = p.at;
        for (int32_t i = 0; i < p.n; i++, at += r->step) {
            double deviation = pt_load_double(r->in.data, at, r->in.dtype) - mean;
            sum += deviation * deviation;
        }
    }
    return sum;
}

static void var_one(pt_reduction *r, int32_t from, int32_t to, int32_t index_to) {
    (void)index_to;
    int32_t n = r->lines * r->n;
    double divisor = n - r->correction;
    divisor = divisor > 0 ? divisor : 0;
    if (in_float(r)) {
        float mean = sum_float(r, from) / (float)n;
        float variance = squares_float(r, from, mean) / (float)divisor;
        pt_store_float(r->out.data, to, r->out.dtype, variance);
    } else {
        double mean = sum_double(r, from) / n;
        pt_store_double(r->out.data, to, r->out.dtype, squares_double(r, from, mean) / divisor);
    }
}

static void any_one(pt_reduction *r, int32_t from, int32_t to, int32_t index_to) {
    (void)index_to;
    bool any = false;
    for (pt_piece p = {0}; !any && pt_next_piece(r, from, &p);) {
        int32_t at = p.at;
        for (int32_t i = 0; !any && i < p.n; i++, at += r->step) {
            any = is_true(r, at);
        }
    }
    pt_store_int(r->out.data, to, r->out.dtype, any);
}

// Checks the dtype argument of sum, mean and prod. Unless it is None, it is the output's dtype, and
// the output's dtype is one of `dtypes`.
static int reduce_sum_check_dtypes(pt_context *c, const pt_tensor *in, pt_ref out_arg, pt_ref dtype,
                                   uint32_t dtypes) {
    pt_tensor out = pt_get_tensor(c, out_arg);
    if (!pt_dtype_in(in->dtype, PT_DTYPES_ALL) || !pt_dtype_in(out.dtype, dtypes)) {
        return pt_refuse_dtypes(c, in, &out, "no such reduction of these dtypes");
    }
    if (!pt_is_none(dtype) && pt_get_int(c, dtype) != out.dtype) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "the output must have the given dtype");
    }
    return PT_ERROR_OK;
}

// Checks (self, dim, keepdim, dtype, out).
static int check_over_dims(pt_context *c, const pt_ref *args, uint32_t dtypes) {
    pt_tensor in = pt_get_tensor(c, args[MEAN_SELF]);
    uint32_t dims;
    PT_TRY(reduce_sum_check_dtypes(c, &in, args[MEAN_OUT], args[MEAN_DTYPE], dtypes));
    PT_TRY(pt_read_dims_or_all(c, args[MEAN_DIM], in.rank, &dims));
    return pt_expect_reduced(c, &in, dims, pt_get_bool(c, args[MEAN_KEEPDIM]), args[MEAN_OUT]);
}

enum { ALL_DIMS = (1 << PT_MAX_RANK) - 1 };

static int reduce(pt_context *c, pt_ref in, pt_ref out, uint32_t dims, bool keep,
                  pt_reduce_one *one) {
    pt_reduction r;
    r.in = pt_get_tensor(c, in);
    r.out = pt_get_tensor(c, out);
    r.indices.data = NULL;
    return pt_reduce(c, &r, dims, keep, one);
}

static int run_over_dims(pt_context *c, const pt_ref *args, pt_reduce_one *one) {
    uint32_t dims;
    PT_TRY(pt_read_dims_or_all(c, args[MEAN_DIM], pt_get_tensor(c, args[MEAN_SELF]).rank, &dims));
    return reduce(c, args[MEAN_SELF], args[MEAN_OUT], dims, pt_get_bool(c, args[MEAN_KEEPDIM]),
                  one);
}

static int sum_check(pt_context *c, const pt_ref *args) {
    return check_over_dims(c, args, PT_DTYPES_ALL);
}

static int sum_run(pt_context *c, const pt_ref *args) {
    return run_over_dims(c, args, pt_sum_one);
}

static int mean_check(pt_context *c, const pt_ref *args) {
    return check_over_dims(c, args, PT_DTYPES_FLOATING);
}

static int mean_run(pt_context *c, const pt_ref *args) {
    return run_over_dims(c, args, pt_mean_one);
}

const pt_kernel pt_aten_sum_IntList_out = PT_KERNEL(sum_check, sum_run);
const pt_kernel pt_aten_mean_out = PT_KERNEL(mean_check, mean_run);

// (self, dtype, out): over all dims.
static int mean_all_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[MEAN_DTYPE_SELF]);
    PT_TRY(reduce_sum_check_dtypes(c, &in, args[MEAN_DTYPE_OUT], args[MEAN_DTYPE_DTYPE],
                                   PT_DTYPES_FLOATING));
    return pt_expect_sizes(c, args[MEAN_DTYPE_OUT], 0, NULL);
}

static int prod_all_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[PROD_SELF]);
    PT_TRY(reduce_sum_check_dtypes(c, &in, args[PROD_OUT], args[PROD_DTYPE], PT_DTYPES_ALL));
    return pt_expect_sizes(c, args[PROD_OUT], 0, NULL);
}

static int mean_all_run(pt_context *c, const pt_ref *args) {
    return reduce(c, args[MEAN_DTYPE_SELF], args[MEAN_DTYPE_OUT], ALL_DIMS, false, pt_mean_one);
}

static int prod_all_run(pt_context *c, const pt_ref *args) {
    return reduce(c, args[PROD_SELF], args[PROD_OUT], ALL_DIMS, false, prod_one);
}

const pt_kernel pt_aten_mean_dtype_out = PT_KERNEL(mean_all_check, mean_all_run);
const pt_kernel pt_aten_prod_out = PT_KERNEL(prod_all_check, prod_all_run);

// prod.int: (self, dim, keepdim, dtype, out)
static int prod_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[PROD_INT_SELF]);
    uint32_t dims;
    PT_TRY(
        reduce_sum_check_dtypes(c, &in, args[PROD_INT_OUT], args[PROD_INT_DTYPE], PT_DTYPES_ALL));
    PT_TRY(pt_read_dim_or_all(c, args[PROD_INT_DIM], in.rank, &dims));
    return pt_expect_reduced(c, &in, dims, pt_get_bool(c, args[PROD_INT_KEEPDIM]),
                             args[PROD_INT_OUT]);
}

static int prod_run(pt_context *c, const pt_ref *args) {
    uint32_t dims;
    PT_TRY(pt_read_dim_or_all(c, args[PROD_INT_DIM], pt_get_tensor(c, args[PROD_INT_SELF]).rank,
                              &dims));
    return reduce(c, args[PROD_INT_SELF], args[PROD_INT_OUT], dims,
                  pt_get_bool(c, args[PROD_INT_KEEPDIM]), prod_one);
}

const pt_kernel pt_aten_prod_int_out = PT_KERNEL(prod_check, prod_run);

// ---- var: (self, dim, correction or unbiased, keepdim, out)

static int var_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[VAR_CORRECTION_SELF]);
    uint32_t dims;
    if (!pt_is_floating(in.dtype)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the input must be float or double");
    }
    PT_TRY(reduce_sum_check_dtypes(c, &in, args[VAR_CORRECTION_OUT], 0, PT_DTYPES_FLOATING));
    PT_TRY(pt_read_dims_or_all(c, args[VAR_CORRECTION_DIM], in.rank, &dims));
    return pt_expect_reduced(c, &in, dims, pt_get_bool(c, args[VAR_CORRECTION_KEEPDIM]),
                             args[VAR_CORRECTION_OUT]);
}

static int run_var(pt_context *c, const pt_ref *args, double correction) {
    pt_reduction r;
    uint32_t dims;
    r.in = pt_get_tensor(c, args[VAR_CORRECTION_SELF]);
    r.out = pt_get_tensor(c, args[VAR_CORRECTION_OUT]);
    r.indices.data = NULL;
    r.correction = correction;
    PT_TRY(pt_read_dims_or_all(c, args[VAR_CORRECTION_DIM], r.in.rank, &dims));
    return pt_reduce(c, &r, dims, pt_get_bool(c, args[VAR_CORRECTION_KEEPDIM]), var_one);
}

static int var_correction_run(pt_context *c, const pt_ref *args) {
    return run_var(c, args,
                   pt_is_none(args[VAR_CORRECTION_CORRECTION])
                       ? 1
                       : pt_get_double(c, args[VAR_CORRECTION_CORRECTION]));
}

static int var_unbiased_run(pt_context *c, const pt_ref *args) {
    return run_var(c, args, pt_get_bool(c, args[VAR_UNBIASED]) ? 1 : 0);
}

const pt_kernel pt_aten_var_correction_out = PT_KERNEL(var_check, var_correction_run);
const pt_kernel pt_aten_var_out = PT_KERNEL(var_check, var_unbiased_run);

// ---- var_mean: (self, dim, correction, keepdim, var, mean)

static int var_mean_check(pt_context *c, const pt_ref *args) {
    PT_TRY(var_check(c, args));
    const pt_ref mean[] = {args[VAR_MEAN_CORRECTION_SELF], args[VAR_MEAN_CORRECTION_DIM],
                           args[VAR_MEAN_CORRECTION_CORRECTION], args[VAR_MEAN_CORRECTION_KEEPDIM],
                           args[VAR_MEAN_CORRECTION_OUT1]};
    return var_check(c, mean);
}

static int var_mean_run(pt_context *c, const pt_ref *args) {
    const pt_ref mean[] = {args[VAR_MEAN_CORRECTION_SELF], args[VAR_MEAN_CORRECTION_DIM],
                           args[VAR_MEAN_CORRECTION_KEEPDIM], 0, args[VAR_MEAN_CORRECTION_OUT1]};
    PT_TRY(run_over_dims(c, mean, pt_mean_one));
    return var_correction_run(c, args);
}

const pt_kernel pt_aten_var_mean_correction_out = PT_KERNEL(var_mean_check, var_mean_run);

// ---- any

static int check_any(pt_context *c, const pt_tensor *in, pt_ref out_arg) {
    pt_tensor out = pt_get_tensor(c, out_arg);
    if (!pt_dtype_in(in->dtype, PT_DTYPES_ALL) ||
        !pt_dtype_in(out.dtype, PT_DTYPES_BOOL | 1 << PT_DTYPE_BYTE)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "the output must be bool or uint8");
    }
    return PT_ERROR_OK;
}

// (self, out)
static int any_all_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[ANY_ALL_SELF]);
    PT_TRY(check_any(c, &in, args[ANY_ALL_OUT]));
    return pt_expect_sizes(c, args[ANY_ALL_OUT], 0, NULL);
}

static int any_all_run(pt_context *c, const pt_ref *args) {
    return reduce(c, args[ANY_ALL_SELF], args[ANY_ALL_OUT], ALL_DIMS, false, any_one);
}

const pt_kernel pt_aten_any_all_out = PT_KERNEL(any_all_check, any_all_run);

// (self, dim, keepdim, out)
static int any_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[ANY_SELF]);
    uint32_t dims;
    PT_TRY(check_any(c, &in, args[ANY_OUT]));
    PT_TRY(pt_read_dim_or_all(c, args[ANY_DIM], in.rank, &dims));
    return pt_expect_reduced(c, &in, dims, pt_get_bool(c, args[ANY_KEEPDIM]), args[ANY_OUT]);
}

static int any_run(pt_context *c, const pt_ref *args) {
    uint32_t dims;
    PT_TRY(pt_read_dim_or_all(c, args[ANY_DIM], pt_get_tensor(c, args[ANY_SELF]).rank, &dims));
    return reduce(c, args[ANY_SELF], args[ANY_OUT], dims, pt_get_bool(c, args[ANY_KEEPDIM]),
                  any_one);
}

const pt_kernel pt_aten_any_out = PT_KERNEL(any_check, any_run);

// (self, dims, keepdim, out); an empty list reduces nothing
static int read_any_dims(pt_context *c, pt_ref list, uint32_t rank, uint32_t *dims) {
    return pt_is_none(list) ? pt_read_dims_or_all(c, list, rank, dims)
                            : pt_read_dims(c, list, rank, dims);
}

static int any_dims_check(pt_context *c, const pt_ref *args) {
    pt_tensor in = pt_get_tensor(c, args[ANY_DIMS_SELF]);
    uint32_t dims;
    PT_TRY(check_any(c, &in, args[ANY_DIMS_OUT]));
    PT_TRY(read_any_dims(c, args[ANY_DIMS_DIM], in.rank, &dims));
    return pt_expect_reduced(c, &in, dims, pt_get_bool(c, args[ANY_DIMS_KEEPDIM]),
                             args[ANY_DIMS_OUT]);
}

static int any_dims_run(pt_context *c, const pt_ref *args) {
    uint32_t dims;
    PT_TRY(read_any_dims(c, args[ANY_DIMS_DIM], pt_get_tensor(c, args[ANY_DIMS_SELF]).rank, &dims));
    return reduce(c, args[ANY_DIMS_SELF], args[ANY_DIMS_OUT], dims,
                  pt_get_bool(c, args[ANY_DIMS_KEEPDIM]), any_one);
}

const pt_kernel pt_aten_any_dims_out = PT_KERNEL(any_dims_check, any_dims_run);
