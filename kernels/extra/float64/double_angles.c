// Sine, cosine, tangent and their inverses in float64, by the method of float_math.c and
// float_angles.c.
#include "extra/float64/double_bits.h"

// pi / 2 in two parts
#define HALF_PI_HIGH 0x1.921fb54442d18p+0
#define HALF_PI_LOW 0x1.1a62633145c07p-54

// ---- argument reduction, by the method of Payne and Hanek

// Bits of 2 / pi after two words of zeros.
static const uint32_t two_over_pi[] = {
    0,          0,          0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041,
    0xFE5163AB, 0xDEBBC561, 0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E,
    0xE88235F5, 0x2EBB4484, 0xE99C7026, 0xB45F7E41, 0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B,
    0x1FF897FF, 0xDE05980F, 0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7, 0x4F463F66, 0x9E5FEA2D,
    0x7527BAC7, 0xEBE5F17B, 0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046};

enum { WORDS = 6 }; // words of 32 bits, the highest first

static uint32_t double_angles_two_over_pi_word(uint32_t position) {
    const uint32_t *w = &two_over_pi[position >> 5];
    return (uint32_t)((((uint64_t)w[0] << 32 | w[1]) << (position & 31)) >> 32);
}

// Multiplies the mantissa by the bits of 2 / pi that matter, and keeps the low words of the
// product: x in quadrants, with 2 bits of the integer and 190 bits of the fraction.
static void count_quadrants(uint64_t mantissa, uint32_t position, uint32_t turns[WORDS]) {
    const uint32_t low = (uint32_t)mantissa, high = (uint32_t)(mantissa >> 32);
    uint64_t carry = 0;
    for (uint32_t i = WORDS; i-- > 0;) {
        carry += (uint64_t)low * double_angles_two_over_pi_word(position + 32 * i);
        turns[i] = (uint32_t)carry;
        carry >>= 32;
    }
    carry = 0;
    for (uint32_t i = WORDS - 1; i-- > 0;) {
        carry +=
            (uint64_t)high * double_angles_two_over_pi_word(position + 32 * (i + 1)) + turns[i];
        turns[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

// Returns the high 64 bits of a * b.
static uint64_t multiply_high(uint64_t a, uint64_t b) {
    const uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    const uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
    return a_high * b_high + (middle >> 32) + ((a_low * b_high + (uint32_t)middle) >> 32);
}

// Reduces a finite |x| > pi / 4: x = *r + *low + quadrant * pi / 2 with |r| <= pi / 4; returns the
// quadrant modulo 4.
static uint32_t double_angles_reduce_angle(double x, double *r, double *low) {
    const uint64_t bits = to_bits(x) & ~SIGN_BIT;
    uint32_t turns[WORDS];
    count_quadrants((bits & (((uint64_t)1 << MANTISSA_BITS) - 1)) | (uint64_t)1 << MANTISSA_BITS,
                    (uint32_t)(bits >> MANTISSA_BITS) - 1013, turns);
    const uint64_t first = (uint64_t)turns[0] << 32 | turns[1];
    const uint64_t second = (uint64_t)turns[2] << 32 | turns[3];
    const uint32_t quadrant = (uint32_t)((first + ((uint64_t)1 << 61)) >> 62);
    // Quadrants as a signed fraction of 128 bits, whose first 62 bits are never all 0.
    uint64_t rest = first << 2 | second >> 62, more = second << 2 | turns[4] >> 30;
    const bool negative = rest >> 63 != 0;
    rest = negative ? ~rest : rest;
    more = negative ? ~more : more;
    const uint32_t zeros = (uint32_t)__builtin_clzll(rest | 1);
    rest = zeros ? rest << zeros | more >> (64 - zeros) : rest;
    const uint64_t angle = multiply_high(rest, 0xC90FDAA22168C234); // pi / 2 as a fraction of 2^63
    const double scale = from_bits((uint64_t)(1023 - 63 - zeros) << MANTISSA_BITS);
    const double sign = negative != (x < 0) ? -scale : scale;
    *r = (double)(int64_t)(angle >> 11) * 0x1p+11 * sign;
    *low = (double)(int32_t)(angle & 0x7FF) * sign;
    return (x < 0 ? 4 - quadrant : quadrant) & 3;
}

// ---- sine, cosine, tangent

// sin(r + low) with sin r = r + r^3 P(r^2) for |r| <= pi / 4; the error of P is 5.7e-18.
static double double_angles_sin_polynomial(double r, double low) {
    static const double p[] = {-0x1.ab17a79237a19p-41, 0x1.61217ec01749dp-33,
                               -0x1.ae64541266378p-26, 0x1.71de3a54605eep-19,
                               -0x1.a01a01a019936p-13, 0x1.1111111111110p-7,
                               -0x1.5555555555555p-3};
    double z = r * r;
    return with_sign(r + (r * (z * polynomial(p, COUNT(p), z)) + low * (1.0 - 0.5 * z)), r);
}

// cos(r + low) with cos r = 1 - r^2 / 2 + r^4 P(r^2); the error of P is 8.7e-19.
static double double_angles_cos_polynomial(double r, double low) {
    static const double p[] = {-0x1.907d7aebd5e3dp-37, 0x1.1eeb68b109173p-29,
                               -0x1.27e4fa17a41b4p-22, 0x1.a01a019f4e867p-16,
                               -0x1.6c16c16c16966p-10, 0x1.5555555555555p-5};
    double z = r * r, half = 0.5 * z, max = 1.0 - half;
    return max + (((1.0 - max) - half) + (z * z * polynomial(p, COUNT(p), z) - r * low));
}

// Returns sin(x + shift * pi / 2).
static double double_angles_shifted_sin(double x, uint32_t shift) {
    double r = x, low = 0;
    uint32_t quadrant = shift;
    double size = __builtin_fabs(x);
    if (!(size < infinity())) {
        return is_nan(x) ? quiet(x) : not_a_number();
    }
    if (size > 0x1.921fb54442d18p-1) {
        quadrant += double_angles_reduce_angle(x, &r, &low);
    }
    double y =
        quadrant & 1 ? double_angles_cos_polynomial(r, low) : double_angles_sin_polynomial(r, low);
    return quadrant & 2 ? -y : y;
}

double pt_sin(double x) {
    return double_angles_shifted_sin(x, 0);
}

double pt_cos(double x) {
    return double_angles_shifted_sin(x, 1);
}

double pt_tan(double x) {
    return pt_sin(x) / pt_cos(x);
}

// ---- inverse functions

// asin x - x = x^3 P(x^2) for |x| <= 1/2; the error of P is 5.6e-18.
static double double_angles_asin_minus_x(double x, double z) {
    static const double p[] = {0x1.d78189767524ep-6, -0x1.e7a24f548c99fp-7, 0x1.1d661531b222ep-6,
                               0x1.653a8f8cfd43cp-8, 0x1.524ea8b3aad31p-7,  0x1.78246f32d075cp-7,
                               0x1.c9cf3759fd8ffp-7, 0x1.1c4d343fa57f6p-6,  0x1.6e8bb1d89492bp-6,
                               0x1.f1c71c1d4aa0dp-6, 0x1.6db6db6e3292ep-5,  0x1.3333333332ec4p-4,
                               0x1.5555555555556p-3};
    return x * (z * polynomial(p, COUNT(p), z));
}

// acos x = 2 asin(sqrt((1 - x) / 2)) for 1/2 <= x <= 1.
static double double_angles_acos_near_1(double x) {
    double z = 0.5 * (1.0 - x);
    double s = pt_sqrt(z);
    return 2.0 * (s + double_angles_asin_minus_x(s, z));
}

double pt_asin(double x) {
    double size = __builtin_fabs(x);
    if (is_nan(x)) {
        return quiet(x);
    }
    if (size < 0.5) {
        return x + double_angles_asin_minus_x(x, x * x);
    }
    if (size > 1.0) {
        return not_a_number();
    }
    return with_sign(HALF_PI_HIGH - (double_angles_acos_near_1(size) - HALF_PI_LOW), x);
}

double pt_acos(double x) {
    double size = __builtin_fabs(x);
    if (is_nan(x)) {
        return quiet(x);
    }
    if (size < 0.5) {
        return HALF_PI_HIGH - (x + (double_angles_asin_minus_x(x, x * x) - HALF_PI_LOW));
    }
    if (size > 1.0) {
        return not_a_number();
    }
    double y = double_angles_acos_near_1(size);
    return x < 0 ? 2.0 * HALF_PI_HIGH - (y - 2.0 * HALF_PI_LOW) : y;
}

// atan r = r + r^3 P(r^2) for |r| <= tan(pi / 8), the error of P is 6.9e-18; else atan x = pi / 4 +
// atan((x - 1) / (x + 1)) = pi / 2 - atan(1 / x).
double pt_atan(double x) {
    static const double p[] = {-0x1.3a254249c2220p-6, 0x1.415dac51cd10bp-5,  -0x1.a097da67e4438p-5,
                               0x1.dfe5f37f19c8bp-5,  -0x1.10fa72be60a88p-4, 0x1.3b1262ac559fcp-4,
                               -0x1.745d0b24c84b9p-4, 0x1.c71c718525179p-4,  -0x1.2492492435f94p-3,
                               0x1.9999999999349p-3,  -0x1.5555555555555p-2};
    double r = __builtin_fabs(x), quarters = 0;
    if (is_nan(x)) {
        return quiet(x);
    }
    if (r > 0x1.3504f333f9de6p+1) {
        r = -1.0 / r;
        quarters = 2;
    } else if (r > 0x1.a827999fcef32p-2) {
        r = (r - 1.0) / (r + 1.0);
        quarters = 1;
    }
    double z = r * r;
    double rest = r * (z * polynomial(p, COUNT(p), z)) + quarters * (0.5 * HALF_PI_LOW);
    return with_sign(quarters * (0.5 * HALF_PI_HIGH) + (r + rest), x);
}

double pt_atan2(double y, double x) {
    if (is_nan(x) || is_nan(y)) {
        return quiet(is_nan(x) ? x : y);
    }
    double a = __builtin_fabs(y), b = __builtin_fabs(x);
    double angle = a == 0 ? 0 : a == b ? 0.5 * HALF_PI_HIGH : pt_atan(a / b);
    if (to_bits(x) >> 63) {
        angle = 2.0 * HALF_PI_HIGH - (angle - 2.0 * HALF_PI_LOW);
    }
    return with_sign(angle, y);
}
