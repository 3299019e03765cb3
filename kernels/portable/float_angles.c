// Tangent and the inverse trigonometric functions; polynomials as in float_math.c.
#include "portable/float_bits.h"

// pi / 2 in two parts
#define HALF_PI_HIGH 0x1.921fb6p+0f
#define HALF_PI_LOW -0x1.777a5cp-25f

float pt_tanf(float x) {
    return pt_sinf(x) / pt_cosf(x);
}

// asin x - x = x^3 P(x^2) for |x| <= 1/2; the fit's error is 4.9e-9.
static float float_angles_asin_minus_x(float x, float z) {
    float p = 0x1.59aba2p-5f;
    p = p * z + 0x1.8be36cp-6f;
    p = p * z + 0x1.7484c0p-5f;
    p = p * z + 0x1.3301a8p-4f;
    p = p * z + 0x1.5555cap-3f;
    return x * (z * p);
}

// acos x = 2 asin(sqrt((1 - x) / 2)) for 1/2 <= x <= 1; NaN above.
static float float_angles_acos_near_1(float x) {
    float z = 0.5f * (1.0f - x);
    float s = pt_sqrtf(z);
    return 2.0f * (s + float_angles_asin_minus_x(s, z));
}

float pt_asinf(float x) {
    float size = __builtin_fabsf(x);
    if (pt_is_nanf(x)) {
        return quiet(x);
    }
    if (size < 0.5f) {
        return x + float_angles_asin_minus_x(x, x * x);
    }
    if (size > 1.0f) {
        return not_a_number();
    }
    return with_sign(HALF_PI_HIGH - (float_angles_acos_near_1(size) - HALF_PI_LOW), x);
}

float pt_acosf(float x) {
    float size = __builtin_fabsf(x);
    if (pt_is_nanf(x)) {
        return quiet(x);
    }
    if (size < 0.5f) {
        return HALF_PI_HIGH - (x + (float_angles_asin_minus_x(x, x * x) - HALF_PI_LOW));
    }
    if (size > 1.0f) {
        return not_a_number();
    }
    float y = float_angles_acos_near_1(size);
    return x < 0 ? 2.0f * HALF_PI_HIGH - (y - 2.0f * HALF_PI_LOW) : y;
}

// atan r = r + r^3 P(r^2) for |r| <= tan(pi / 8), the fit's error is 6.8e-10; else atan x = pi / 4
// + atan((x - 1) / (x + 1)) = pi / 2 - atan(1 / x).
float pt_atanf(float x) {
    float r = __builtin_fabsf(x), quarters = 0;
    if (pt_is_nanf(x)) {
        return quiet(x);
    }
    if (r > 0x1.3504f4p+1f) {
        r = -1.0f / r;
        quarters = 2;
    } else if (r > 0x1.a8279ap-2f) {
        r = (r - 1.0f) / (r + 1.0f);
        quarters = 1;
    }
    float z = r * r;
    float p = -0x1.f1bd08p-5f;
    p = p * z + 0x1.b1e310p-4f;
    p = p * z - 0x1.23b48ep-3f;
    p = p * z + 0x1.99918ep-3f;
    p = p * z - 0x1.55554ap-2f;
    float rest = r * (z * p) + quarters * (0.5f * HALF_PI_LOW);
    return with_sign(quarters * (0.5f * HALF_PI_HIGH) + (r + rest), x);
}

float pt_atan2f(float y, float x) {
    if (pt_is_nanf(x) || pt_is_nanf(y)) {
        return quiet(pt_is_nanf(x) ? x : y);
    }
    float a = __builtin_fabsf(y), b = __builtin_fabsf(x);
    float angle = a == 0 ? 0 : a == b ? 0.5f * HALF_PI_HIGH : pt_atanf(a / b);
    if (to_bits(x) >> 31) {
        angle = 2.0f * HALF_PI_HIGH - (angle - 2.0f * HALF_PI_LOW);
    }
    return with_sign(angle, y);
}
