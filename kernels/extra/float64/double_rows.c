#include "portable/double_rows.h"

static int double_rows_sum_deviations(const pt_double_rows *r, bool squared, double *sum) {
    *sum = 0;
    for (int32_t row = 0; row < r->rows; row++) {
        const double *x = r->in + row * r->row_step;
        for (int32_t i = 0; i < r->n; i++, x += r->step) {
            PT_TRY(pt_count_elements(r->c, 1));
            const double d = *x - r->mean;
            *sum += squared ? d * d : d;
        }
    }
    return PT_ERROR_OK;
}

// The second sum corrects the rounding error of the first in the mean.
int pt_measure_doubles(pt_double_rows *r, double eps) {
    const double n = r->rows * r->n;
    double sum;
    r->mean = 0;
    r->rstd = __builtin_nan("");
    if (n == 0) {
        return PT_ERROR_OK;
    }
    for (int32_t i = 0; i < 2; i++) {
        PT_TRY(double_rows_sum_deviations(r, false, &sum));
        r->mean += sum / n;
    }
    PT_TRY(double_rows_sum_deviations(r, true, &sum));
    r->rstd = 1 / pt_sqrt(sum / n + eps);
    return PT_ERROR_OK;
}

int pt_normalize_doubles(const pt_double_rows *r) {
    for (int32_t row = 0; row < r->rows; row++) {
        int32_t at = row * r->row_step, parameter = 0, left = r->repeat;
        for (int32_t i = 0; i < r->n; i++, at += r->step) {
            PT_TRY(pt_count_elements(r->c, 1));
            const double x = (r->in[at] - r->mean) * r->rstd;
            r->out[at] =
                x * (r->weight ? r->weight[parameter] : 1) + (r->bias ? r->bias[parameter] : 0);
            if (--left == 0) {
                parameter++;
                left = r->repeat;
            }
        }
    }
    return PT_ERROR_OK;
}

int pt_distance_of_doubles(pt_context *c, double *out, const double *a, const double *b, int32_t n,
                           double p) {
    const bool largest = p == __builtin_inf();
    double sum = 0;
    for (int32_t i = 0; i < n; i++) {
        double d = __builtin_fabs(a[i] - b[i]);
        PT_TRY(pt_count_work(c, PT_FLOAT64_STEPS));
        if (largest) {
            sum = d > sum || d != d ? d : sum;
            continue;
        }
        sum += p == 0 ? d != 0 : p == 1 ? d : p == 2 ? d * d : pt_pow(d, p);
    }
    *out = p == 0 || p == 1 || largest ? sum : p == 2 ? pt_sqrt(sum) : pt_pow(sum, 1 / p);
    return pt_count_work(c, PT_FLOAT64_STEPS);
}
