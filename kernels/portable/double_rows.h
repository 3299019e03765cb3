// Operators on whole rows of float64, called through pt_float64 as the functions of double_math.h.
#ifndef PT_PORTABLE_DOUBLE_ROWS_H
#define PT_PORTABLE_DOUBLE_ROWS_H

#include "portable/double_math.h"

// A group of elements that are normalized together: `rows` rows of `n` elements; steps count
// elements.
typedef struct pt_double_rows {
    pt_context *c;
    const double *in;
    double *out;
    const double *weight, *bias; // or NULL
    int32_t repeat;              // elements in a row that share a weight and a bias
    int32_t rows, row_step, n, step;
    double mean, rstd; // rstd is 1 / sqrt(variance + eps)
} pt_double_rows;

// Computes mean and rstd; without elements mean is 0 and rstd NaN.
int pt_measure_doubles(pt_double_rows *r, double eps);
// Computes out = (in - mean) * rstd * weight + bias.
int pt_normalize_doubles(const pt_double_rows *r);
// Computes *out, the p-norm of a - b, over n elements.
PT_MUST_USE int pt_distance_of_doubles(pt_context *c, double *out, const double *a, const double *b,
                                       int32_t n, double p);

#endif
