// Exponential, logarithm, error function, square root and power in float64. The method is that of
// float_math.c; the polynomials interpolate at Chebyshev nodes, in 400 bits.
#include "extra/float64/double_bits.h"
#include "portable/double_rows.h"
#include "portable/grid_sampler.h"

// ---- exponential

#define LOG2_E 0x1.71547652b82fep+0
// ln 2 in two parts: the first has 32 bits, so its product with a binary exponent is exact.
#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW 0x1.a39ef35793c76p-33
// Adding it rounds to an integer, in the low bits.
#define ROUNDER 0x1.8p+52

// e^(x + low) = 2^n (1 + q) with n in *n, |q| < 0.42. |x| < 2^11, low is small.
// e^r = 1 + r + r^2 P(r) for |r| <= ln(2) / 2; the error of P is 2.9e-19.
static double double_math_reduced_exp(double x, double low, int32_t *n) {
    static const double p[] = {0x1.1f730349868cep-29,
                               0x1.af4de97ca4194p-26,
                               0x1.27e4db646b17ep-22,
                               0x1.71de0231960ebp-19,
                               0x1.a01a01a6d889cp-16,
                               0x1.a01a01abe7fe1p-13,
                               0x1.6c16c16c162d4p-10,
                               0x1.11111111100dcp-7,
                               0x1.5555555555556p-5,
                               0x1.5555555555557p-3,
                               0.5};
    double t = x * LOG2_E + ROUNDER;
    double k = t - ROUNDER;
    double r = (x - k * LN2_HIGH) - (k * LN2_LOW - low);
    *n = (int32_t)(uint32_t)to_bits(t);
    return polynomial(p, COUNT(p), r) * (r * r) + r;
}

static double double_math_exp_sum(double x, double low) {
    if (is_nan(x)) {
        return quiet(x);
    }
    if (x > 710.0) {
        return infinity();
    }
    if (x < -746.0) {
        return 0.0;
    }
    // The power of 2 in two factors: the result may lie outside the normal numbers.
    int32_t n;
    double m = 1.0 + double_math_reduced_exp(x, low, &n);
    int32_t part = n < -900 ? -128 : n > 900 ? 128 : 0;
    double scale = from_bits((uint64_t)(1023 + part) << MANTISSA_BITS);
    return from_bits(to_bits(m) + ((uint64_t)(int64_t)(n - part) << MANTISSA_BITS)) * scale;
}

double pt_exp(double x) {
    return double_math_exp_sum(x, 0.0);
}

double pt_expm1(double x) {
    double size = __builtin_fabs(x);
    if (size < 0x1p-54) {
        return x;
    }
    if (!(size < 45.0)) {
        return x < 0 ? -1.0 : pt_exp(x);
    }
    int32_t n;
    double q = double_math_reduced_exp(x, 0.0, &n);
    double scale = from_bits((uint64_t)(1023 + n) << MANTISSA_BITS);
    return scale * q + (scale - 1.0);
}

double pt_sigmoid(double x) {
    double e = pt_exp(-__builtin_fabs(x));
    return (x < 0 ? e : 1.0) / (1.0 + e);
}

double pt_tanh(double x) {
    double size = __builtin_fabs(x);
    if (is_nan(x)) {
        return quiet(x);
    }
    if (size < 0x1p-28) {
        return x;
    }
    double e = pt_expm1(2.0 * size);
    return with_sign(size > 22.0 ? 1.0 : e / (e + 2.0), x);
}

static double double_math_half_exp(double size) {
    double root = pt_exp(0.5 * size);
    return 0.5 * root * root;
}

double pt_sinh(double x) {
    double size = __builtin_fabs(x);
    if (is_nan(x)) {
        return quiet(x);
    }
    if (size < 0x1p-28) {
        return x;
    }
    double e = size < 709.0 ? pt_expm1(size) : 0.0;
    return with_sign(size < 709.0 ? 0.5 * (e + e / (e + 1.0)) : double_math_half_exp(size), x);
}

double pt_cosh(double x) {
    double size = __builtin_fabs(x);
    if (!(size <= 709.0)) {
        return is_nan(x) ? quiet(x) : double_math_half_exp(size);
    }
    double e = pt_exp(size);
    return 0.5 * e + 0.5 / e;
}

// ---- logarithm

// x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2). x is positive and finite.
static double double_math_split_exponent(double x, double *k) {
    const uint64_t root = 0x3FE6A09E667F3BCD; // bits of sqrt(1/2)
    int32_t offset = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p+54;
        offset = -54;
    }
    uint64_t i = to_bits(x) - root;
    *k = (double)((int32_t)((int64_t)i >> MANTISSA_BITS) + offset);
    return from_bits((i & (((uint64_t)1 << MANTISSA_BITS) - 1)) + root) - 1.0;
}

// log(1 + f) = f - half_square + *rest, half_square = f^2 / 2, from log(1 + f) = 2 artanh(s) with
// s = f / (2 + f), artanh by 2s + s^3 P(s^2); the error of P is 4.7e-18.
static double double_math_log_rest(double f, double half_square) {
    static const double p[] = {0x1.2b5900de53b32p-3, 0x1.39fe51a7c18f9p-3, 0x1.7462b51cb66b1p-3,
                               0x1.c71c62e3f11e6p-3, 0x1.2492492df281ap-2, 0x1.99999999952d7p-2,
                               0x1.5555555555558p-1};
    double s = f / (2.0 + f);
    double z = s * s;
    return s * (half_square + z * polynomial(p, COUNT(p), z));
}

// Handles special arguments; returns false if log(x) must be computed.
static bool double_math_log_is_special(double x, double *y) {
    if (x > 0 && x < infinity()) {
        return false;
    }
    *y = is_nan(x) ? quiet(x) : x == 0 ? -infinity() : x < 0 ? not_a_number() : x;
    return true;
}

// Returns log(2^k (1 + f)) + low.
static double double_math_log_sum(double k, double f, double low) {
    double half_square = 0.5 * f * f;
    double rest = double_math_log_rest(f, half_square) + (k * LN2_LOW + low);
    return k * LN2_HIGH + (f - (half_square - rest));
}

double pt_log(double x) {
    double y, k;
    if (double_math_log_is_special(x, &y)) {
        return y;
    }
    double f = double_math_split_exponent(x, &k);
    return double_math_log_sum(k, f, 0.0);
}

double pt_log1p(double x) {
    double y, k;
    if (__builtin_fabs(x) < 0x1p-53) {
        return x;
    }
    double u = 1.0 + x;
    if (double_math_log_is_special(u, &y)) {
        return y;
    }
    double lost = u > 2.0 ? 1.0 - (u - x) : x - (u - 1.0);
    double f = double_math_split_exponent(u, &k);
    return double_math_log_sum(k, f, lost / u);
}

double pt_log2(double x) {
    double y, k;
    if (double_math_log_is_special(x, &y)) {
        return y;
    }
    double f = double_math_split_exponent(x, &k);
    double half_square = 0.5 * f * f;
    double high = high_part(f - half_square);
    double low = (f - high) - half_square + double_math_log_rest(f, half_square);
    // log2(e) - 1 in two parts, the first with 30 bits: its product with high is exact
    return k + high + high * 0x1.c551d948p-2 + (low * LOG2_E + high * 0x1.705fc2eefa200p-33);
}

double pt_log10(double x) {
    double y, k;
    if (double_math_log_is_special(x, &y)) {
        return y;
    }
    double f = double_math_split_exponent(x, &k);
    double half_square = 0.5 * f * f;
    double log = f - (half_square - double_math_log_rest(f, half_square));
    // log10(2) in two parts, the first with 32 bits
    return k * 0x1.34413508p-2 + (log * 0x1.bcb7b1526e50ep-2 + k * 0x1.f79fef311f12bp-34);
}

#define LN2 0x1.62e42fefa39efp-1
// From here on x^2 + 1 is rounded to x^2.
#define LARGE 0x1p+28

double pt_asinh(double x) {
    double size = __builtin_fabs(x), z = x * x;
    if (is_nan(x)) {
        return quiet(x);
    }
    double y = size < LARGE ? pt_log1p(size + z / (1.0 + pt_sqrt(z + 1.0))) : pt_log(size) + LN2;
    return with_sign(y, x);
}

// acosh x = log(x + sqrt(x^2 - 1)) with t = x - 1
double pt_acosh(double x) {
    if (!(x >= 1.0)) {
        return is_nan(x) ? quiet(x) : not_a_number();
    }
    double t = x - 1.0;
    return x < LARGE ? pt_log1p(t + pt_sqrt(2.0 * t + t * t)) : pt_log(x) + LN2;
}

// atanh x = log((1 + x) / (1 - x)) / 2
double pt_atanh(double x) {
    double size = __builtin_fabs(x);
    if (!(size <= 1.0)) {
        return is_nan(x) ? quiet(x) : not_a_number();
    }
    double twice = 2.0 * size;
    double y = size < 0.5 ? twice + twice * size / (1.0 - size) : twice / (1.0 - size);
    return with_sign(0.5 * pt_log1p(y), x);
}

// ---- error function

// erfc(t) for 0.75 <= t < 27.3: e^(-t^2) Q(y) / (t + 2), y = (t - 2) / (t + 2); the error of Q is
// 1.7e-17. t^2 is split so that its rounding does not spoil the exponential.
static double double_math_erfc_tail(double t) {
    static const double q[] = {
        -0x1.1b9cb65e391b8p-23, 0x1.c603f4209314cp-22,  -0x1.c7ea8b03dd97dp-24,
        -0x1.182f3db8ed468p-21, -0x1.9c4c2f7470288p-22, 0x1.31be4474bd3aap-26,
        0x1.017fa14718f9dp-19,  0x1.eb8e1b5591e2bp-19,  -0x1.29325d997e9ffp-20,
        -0x1.0e95bd6ed6be7p-16, -0x1.6c0a90680920dp-16, 0x1.1e78ddb3321d1p-15,
        0x1.2efa3d1474587p-13,  0x1.2053d6ef2c610p-15,  -0x1.5ba43874602abp-11,
        -0x1.b6fbf96a06ce2p-11, 0x1.9517bb7090bbdp-9,   0x1.a89eaff84422fp-8,
        -0x1.606e4155299e2p-6,  -0x1.2a88e6107d47fp-5,  0x1.1e2deea6b1173p-2,
        -0x1.5fd386754eff9p-1,  0x1.058671b52c776p+0};
    double y = (t - 2.0) / (t + 2.0);
    double high = high_part(t);
    return double_math_exp_sum(-(high * high), -((t - high) * (t + high))) *
           (polynomial(q, COUNT(q), y) / (t + 2.0));
}

// erf(x) - x for |x| < 0.75: x (2 / sqrt(pi) - 1 + x^2 P(x^2)); the error of P is 6.6e-18.
static double double_math_erf_minus_x(double x) {
    static const double p[] = {
        -0x1.0ae8a79c4cc9dp-30, 0x1.f1694bbe2d8bdp-27,  -0x1.5eedc468b99edp-23,
        0x1.b9df01b06bad1p-20,  -0x1.f4d211d4fc478p-17, 0x1.f9a3252fa5ebfp-14,
        -0x1.c02db3f95ff69p-11, 0x1.565bcd0e5ae35p-8,   -0x1.b82ce31288918p-6,
        0x1.ce2f21a042be0p-4,   -0x1.812746b0379e7p-2};
    double z = x * x;
    return x * (0x1.06eba8214db69p-3 + z * polynomial(p, COUNT(p), z));
}

double pt_erf(double x) {
    double size = __builtin_fabs(x);
    if (size < 0.75) {
        return x + double_math_erf_minus_x(x);
    }
    if (is_nan(x)) {
        return quiet(x);
    }
    return with_sign(size > 6.0 ? 1.0 : 1.0 - double_math_erfc_tail(size), x);
}

double pt_erfc(double x) {
    double size = __builtin_fabs(x);
    if (size < 0.75) {
        return 0.5 - ((x - 0.5) + double_math_erf_minus_x(x));
    }
    if (is_nan(x)) {
        return quiet(x);
    }
    double tail = size > 27.3 ? 0.0 : double_math_erfc_tail(size);
    return x < 0 ? 2.0 - tail : tail;
}

// ---- square root

// Computes the root of a mantissa of 106 bits bit by bit. The remainder fits in 64 bits at each
// step.
double pt_sqrt(double x) {
    if (!(x > 0) || x == infinity()) {
        return is_nan(x) ? quiet(x) : x < 0 ? not_a_number() : x;
    }
    int32_t exponent = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p+54;
        exponent = -27;
    }
    const uint64_t bits = to_bits(x);
    uint64_t mantissa = (bits & (((uint64_t)1 << MANTISSA_BITS) - 1)) | (uint64_t)1
                                                                            << MANTISSA_BITS;
    const int32_t biased = (int32_t)(bits >> MANTISSA_BITS);
    mantissa <<= (biased & 1) == 0; // makes the exponent even
    exponent += (biased - 1023) >> 1;
    // 54 bits of the root, one of them for rounding. `left` is below twice the root plus 1.
    uint64_t root = 0, left = 0;
    mantissa <<= 10; // moves its 54 bits to the top
    for (uint32_t i = 0; i < 54; i++) {
        left = left << 2 | mantissa >> 62;
        mantissa <<= 2;
        const bool fits = left >= (root << 2 | 1);
        left -= fits ? (root << 2 | 1) : 0;
        root = root << 1 | fits;
    }
    // No square root of a double lies midway between two doubles.
    root = (root + 1) >> 1;
    return from_bits(root + ((uint64_t)(exponent + 1022) << MANTISSA_BITS));
}

// ---- power

// Returns a * b; *low is the exact rounding error (Dekker). Neither operand exceeds 2^900.
static double product(double a, double b, double *low) {
    const double split = 0x1p+27 + 1;
    double a_high = a * split - (a * split - a), a_low = a - a_high;
    double b_high = b * split - (b * split - b), b_low = b - b_high;
    double p = a * b;
    *low = ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low;
    return p;
}

// log x = result + *low to about 65 bits, for finite x > 0: log(1 + f) = 2s (1 + s^2 / 3 + s^4
// Q(s^2)), the error of Q is 1e-20.
static double long_log(double x, double *low) {
    static const double q[] = {0x1.e02e6fff27908p-5, 0x1.df7cc8e5fa539p-5, 0x1.1118c7e4b0917p-4,
                               0x1.3b1395d2190c1p-4, 0x1.745d177a96056p-4, 0x1.c71c71c6eaa10p-4,
                               0x1.2492492492521p-3, 0x1.999999999999ap-3};
    const double third = 0x1.5555555555555p-2, third_low = 0x1.5555555555555p-56;
    double k, s_low, z_low, w_low, v_low;
    double f = double_math_split_exponent(x, &k);
    double d = 2.0 + f, d_low = f - (d - 2.0);
    double s = f / d;
    double back = product(s, d, &s_low);
    s_low = ((f - back) - s_low - s * d_low) / d;
    double z = product(s, s, &z_low);
    z_low += 2.0 * s * s_low;
    double w = product(z, third, &w_low);
    w_low += z * third_low + z_low * third + z * z * polynomial(q, COUNT(q), z);
    double v = product(2.0 * s, w, &v_low);
    v_low += 2.0 * (s * w_low + s_low * w);
    double sum = 2.0 * s + v;
    double sum_low = (2.0 * s - sum) + v + (v_low + 2.0 * s_low);
    double all = k * LN2_HIGH + sum;
    double rest = k == 0 ? sum - all : (k * LN2_HIGH - all) + sum;
    *low = rest + (sum_low + k * LN2_LOW);
    return all;
}

// x^y for finite x > 0, not 1, and finite y.
static double double_math_positive_power(double x, double y) {
    double log_low, low;
    if (__builtin_fabs(y) >= 0x1p+64) {
        return (x > 1.0) == (y > 0) ? infinity() : 0.0;
    }
    double log = long_log(x, &log_low);
    double exponent = product(y, log, &low);
    return double_math_exp_sum(exponent, low + y * log_low);
}

double pt_pow(double x, double y) {
    if (y == 0 || x == 1.0) {
        return 1.0;
    }
    if (is_nan(x) || is_nan(y)) {
        return quiet(is_nan(x) ? x : y);
    }
    double size = __builtin_fabs(x);
    bool odd = __builtin_fabs(y) < 0x1p+53 && y == pt_trunc(y) && ((int64_t)y & 1) != 0;
    double power;
    if (__builtin_fabs(y) == infinity()) {
        return size == 1.0 ? 1.0 : (size > 1.0) == (y > 0) ? infinity() : 0.0;
    }
    if (size == 0 || size == infinity()) {
        power = (size == 0) == (y < 0) ? infinity() : 0.0;
    } else if (x < 0 && y != pt_trunc(y)) {
        return not_a_number();
    } else {
        power = size == 1.0 ? 1.0 : double_math_positive_power(size, y);
    }
    return odd ? with_sign(power, x) : power;
}

// ---- the table of functions

extern const pt_float64_functions pt_all_float64;

const pt_float64_functions pt_all_float64 = {
    .exp = pt_exp,
    .expm1 = pt_expm1,
    .log = pt_log,
    .log2 = pt_log2,
    .log10 = pt_log10,
    .log1p = pt_log1p,
    .sqrt = pt_sqrt,
    .sin = pt_sin,
    .cos = pt_cos,
    .tan = pt_tan,
    .asin = pt_asin,
    .acos = pt_acos,
    .atan = pt_atan,
    .sinh = pt_sinh,
    .cosh = pt_cosh,
    .tanh = pt_tanh,
    .asinh = pt_asinh,
    .acosh = pt_acosh,
    .atanh = pt_atanh,
    .sigmoid = pt_sigmoid,
    .erf = pt_erf,
    .erfc = pt_erfc,
    .atan2 = pt_atan2,
    .pow = pt_pow,
    .measure = pt_measure_doubles,
    .normalize = pt_normalize_doubles,
    .distance = pt_distance_of_doubles,
    .sample = pt_sample_doubles,
};
