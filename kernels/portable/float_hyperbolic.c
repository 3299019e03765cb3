// Hyperbolic functions and their inverses; polynomials as in float_math.c.
#include "portable/float_bits.h"

#define LN2 0x1.62e430p-1f

enum { EXP_LIMIT = 88 }; // e^x is finite up to this x

// Returns e^size / 2, also where e^size would overflow.
static float float_hyperbolic_half_exp(float size) {
    float root = pt_expf(0.5f * size);
    return 0.5f * root * root;
}

// sinh x = x + x^3 P(x^2) for |x| < 1; the fit's error is 5.2e-11.
float pt_sinhf(float x) {
    float size = __builtin_fabsf(x);
    if (pt_is_nanf(x)) {
        return quiet(x);
    }
    if (size < 1.0f) {
        float z = x * x;
        float p = 0x1.7a15b6p-19f;
        p = p * z + 0x1.9ffe92p-13f;
        p = p * z + 0x1.111134p-7f;
        p = p * z + 0x1.555556p-3f;
        return x + x * (z * p);
    }
    if (size > EXP_LIMIT) {
        return with_sign(float_hyperbolic_half_exp(size), x);
    }
    float e = pt_expf(size);
    return with_sign(0.5f * e - 0.5f / e, x);
}

float pt_coshf(float x) {
    float size = __builtin_fabsf(x);
    if (!(size <= EXP_LIMIT)) {
        return pt_is_nanf(x) ? quiet(x) : float_hyperbolic_half_exp(size);
    }
    float e = pt_expf(size);
    return 0.5f * e + 0.5f / e;
}

// From here on x^2 + 1 is rounded to x^2.
#define LARGE 0x1p+13f

// asinh x = x + x^3 P(x^2) for |x| < 1/2, the fit's error is 1.2e-9; else
// log(x + sqrt(x^2 + 1)).
float pt_asinhf(float x) {
    float size = __builtin_fabsf(x), z = x * x;
    if (pt_is_nanf(x)) {
        return quiet(x);
    }
    if (size < 0.5f) {
        float p = -0x1.b18e8cp-7f;
        p = p * z + 0x1.cd7720p-6f;
        p = p * z - 0x1.6b97b4p-5f;
        p = p * z + 0x1.332504p-4f;
        p = p * z - 0x1.555536p-3f;
        return with_sign(x + x * (z * p), x);
    }
    float y =
        size < LARGE ? pt_log1pf(size + z / (1.0f + pt_sqrtf(z + 1.0f))) : pt_logf(size) + LN2;
    return with_sign(y, x);
}

// acosh x = log(x + sqrt(x^2 - 1)) with t = x - 1
float pt_acoshf(float x) {
    if (!(x >= 1.0f)) {
        return pt_is_nanf(x) ? quiet(x) : not_a_number();
    }
    float t = x - 1.0f;
    return x < LARGE ? pt_log1pf(t + pt_sqrtf(2.0f * t + t * t)) : pt_logf(x) + LN2;
}

// atanh x = log((1 + x) / (1 - x)) / 2
float pt_atanhf(float x) {
    float size = __builtin_fabsf(x);
    if (!(size <= 1.0f)) {
        return pt_is_nanf(x) ? quiet(x) : not_a_number();
    }
    float twice = 2.0f * size;
    float y = size < 0.5f ? twice + twice * size / (1.0f - size) : twice / (1.0f - size);
    return with_sign(0.5f * pt_log1pf(y), x);
}
