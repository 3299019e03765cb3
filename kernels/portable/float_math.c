// The polynomials are minimax fits in relative error of the result (least squares, reweighted by
// Lawson's iteration, in 40 digits), their coefficients rounded to the type used.
#include "portable/float_math.h"
#include "portable/float_bits.h"

static double double_with_sign(double x, double sign) {
    union {
        double d;
        uint64_t u;
    } result = {x}, from = {sign};
    result.u = (result.u & INT64_MAX) | (from.u & ~(uint64_t)INT64_MAX);
    return result.d;
}

// ---- exponential

#define LOG2_E 0x1.715476p+0f
// ln 2 in two parts: the first has 15 bits, so its product with a binary exponent is exact.
#define LN2_HIGH 0x1.62e4p-1f
#define LN2_LOW 0x1.7f7d1cp-20f
// Adding it rounds to an integer, in the low bits.
#define ROUNDER 0x1.8p+23f

// The constants of reduced_exp, in its order.
static const float exp_constants[9] = {
    LOG2_E,         ROUNDER,        LN2_HIGH,       LN2_LOW,        0x1.6a1a6ep-10f,
    0x1.123fc6p-7f, 0x1.555916p-5f, 0x1.55548ap-3f, 0x1.fffffcp-2f,
};

// e^(x + low) = 2^n (1 + q) with n in the low bits of *n, |q| < 0.42. |x| < 2^8, low is small.
// e^r = 1 + r + r^2 P(r) for |r| <= ln(2) / 2; the fit's error is 3.3e-9.
static inline __attribute__((always_inline)) float float_math_reduced_exp(float x, float low,
                                                                          uint32_t *n) {
    const float *at = exp_constants;
#if defined(__arm__) && defined(__ARM_FP)
    // One instruction loads all constants; gcc would use one for each.
    register float log2_e __asm__("s4"), rounder __asm__("s5"), ln2_high __asm__("s6");
    register float ln2_low __asm__("s7"), p __asm__("s8"), c3 __asm__("s9"), c2 __asm__("s10");
    register float c1 __asm__("s11"), c0 __asm__("s12");
    __asm__("vldm %[at], {s4-s12}"
            : "=t"(log2_e), "=t"(rounder), "=t"(ln2_high), "=t"(ln2_low), "=t"(p), "=t"(c3),
              "=t"(c2), "=t"(c1), "=t"(c0)
            : [at] "r"(at), "m"(*(const float(*)[9])at));
#else
    float log2_e = at[0], rounder = at[1], ln2_high = at[2], ln2_low = at[3];
    float p = at[4], c3 = at[5], c2 = at[6], c1 = at[7], c0 = at[8];
#endif
    float t = x * log2_e + rounder;
    float k = t - rounder;
    float r = (x - k * ln2_high) - (k * ln2_low - low);
    float q = p * r + c3;
    q = q * r + c2;
    q = q * r + c1;
    q = q * r + c0;
    *n = to_bits(t);
    return q * (r * r) + r;
}

// e^(x + low) where the result may lie outside the normal numbers.
static __attribute__((noinline)) float exp_far(float x, float low) {
    if (pt_is_nanf(x)) {
        return quiet(x);
    }
    if (x > 89.0f) {
        return infinity();
    }
    if (x < -105.0f) {
        return 0.0f;
    }
    uint32_t n;
    float m = 1.0f + float_math_reduced_exp(x, low, &n);
    uint32_t shift = x < 0 ? 64u << 23 : -(64u << 23);
    return from_bits(to_bits(m) + (n << 23) + shift) * (x < 0 ? 0x1p-64f : 0x1p+64f);
}

static inline __attribute__((always_inline)) float float_math_exp_sum(float x, float low) {
    // |x| > 64; beyond 87 the result overflows or is subnormal
    if ((to_bits(x) & 0x7FFFFFFF) > 0x42800000) {
        return exp_far(x, low);
    }
    uint32_t n;
    float m = 1.0f + float_math_reduced_exp(x, low, &n);
    return from_bits(to_bits(m) + (n << 23));
}

float pt_expf(float x) {
    return float_math_exp_sum(x, 0.0f);
}

float pt_expm1f(float x) {
    float size = __builtin_fabsf(x);
    if (size < 0x1p-25f) {
        return x;
    }
    if (!(size < 20.0f)) {
        return x < 0 ? -1.0f : pt_expf(x);
    }
    uint32_t n;
    float q = float_math_reduced_exp(x, 0.0f, &n);
    float scale = from_bits(0x3F800000 + (n << 23));
    return scale * q + (scale - 1.0f);
}

float pt_sigmoidf(float x) {
    float e = pt_expf(-__builtin_fabsf(x));
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}

// tanh x = x + x^3 P(x^2) for |x| < 0.56, the fit's error is 1.3e-9; 1 - 2 / (e^2x + 1) above.
float pt_tanhf(float x) {
    float size = __builtin_fabsf(x);
    if (size < 0.55f) {
        float z = x * x;
        float p = -0x1.963d3ep-8f;
        p = p * z + 0x1.586694p-6f;
        p = p * z - 0x1.b90fc0p-5f;
        p = p * z + 0x1.110c98p-3f;
        p = p * z - 0x1.555548p-2f;
        return with_sign(x + x * (z * p), x);
    }
    if (pt_is_nanf(x)) {
        return quiet(x);
    }
    float y = size > 9.1f ? 1.0f : 1.0f - 2.0f / (pt_expf(2.0f * size) + 1.0f);
    return with_sign(y, x);
}

// ---- logarithm

// x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2). x is positive and finite.
static float float_math_split_exponent(float x, float *k) {
    int32_t offset = 0;
    if (x < 0x1p-126f) {
        x *= 0x1p+25f;
        offset = -25;
    }
    int32_t i = (int32_t)(to_bits(x) - 0x3F3504F3);
    *k = (float)((i >> 23) + offset);
    return from_bits(((uint32_t)i & 0x007FFFFF) + 0x3F3504F3) - 1.0f;
}

// log(1 + f) = f - half_square + *rest, half_square = f^2 / 2, from log(1 + f) = 2 artanh(s) with
// s = f / (2 + f), artanh by the odd polynomial 2s + s^3 P(s^2); the fit's error is 8.4e-10.
static inline float float_math_log_rest(float f, float half_square) {
    float s = f / (2.0f + f);
    float z = s * s;
    float p = 0x1.32063cp-2f;
    p = p * z + 0x1.995d84p-2f;
    p = p * z + 0x1.55557cp-1f;
    return s * (half_square + z * p);
}

// Handles special arguments; returns false if log(x) must be computed.
static bool float_math_log_is_special(float x, float *y) {
    if (x > 0 && x < infinity()) {
        return false;
    }
    *y = pt_is_nanf(x) ? quiet(x) : x == 0 ? -infinity() : x < 0 ? not_a_number() : x;
    return true;
}

// Returns log(2^k (1 + f)) + low.
static float float_math_log_sum(float k, float f, float low) {
    float half_square = 0.5f * f * f;
    float rest = float_math_log_rest(f, half_square) + (k * LN2_LOW + low);
    return k * LN2_HIGH + (f - (half_square - rest));
}

float pt_logf(float x) {
    float y, k;
    if (float_math_log_is_special(x, &y)) {
        return y;
    }
    float f = float_math_split_exponent(x, &k);
    return float_math_log_sum(k, f, 0.0f);
}

float pt_log1pf(float x) {
    float y, k;
    if (__builtin_fabsf(x) < 0x1p-24f) {
        return x;
    }
    float u = 1.0f + x;
    if (float_math_log_is_special(u, &y)) {
        return y;
    }
    float lost = u > 2.0f ? 1.0f - (u - x) : x - (u - 1.0f);
    float f = float_math_split_exponent(u, &k);
    return float_math_log_sum(k, f, lost / u);
}

float pt_log2f(float x) {
    float y, k;
    if (float_math_log_is_special(x, &y)) {
        return y;
    }
    float f = float_math_split_exponent(x, &k);
    float half_square = 0.5f * f * f;
    float high = from_bits(to_bits(f - half_square) & 0xFFFFF000);
    float low = (f - high) - half_square + float_math_log_rest(f, half_square);
    // log2(e) - 1 in two parts, the first with 12 bits as high has: their product is exact
    return k + high + high * 0x1.c54p-2f + (low * LOG2_E + high * 0x1.1d94aep-14f);
}

float pt_log10f(float x) {
    float y, k;
    if (float_math_log_is_special(x, &y)) {
        return y;
    }
    float f = float_math_split_exponent(x, &k);
    float half_square = 0.5f * f * f;
    float log = f - (half_square - float_math_log_rest(f, half_square));
    // log10(2) in two parts, the first with 13 bits
    return k * 0x1.344p-2f + (log * 0x1.bcb7b2p-2f + k * 0x1.3509f8p-18f);
}

// ---- error function

// erfc(t) for 0.75 <= t < 10.1: e^(-t^2) Q(y) / (t + 2), y = (t - 2) / (t + 2); the fit's error is
// 8.2e-10. t^2 is split so that its rounding does not spoil the exponential.
static float float_math_erfc_tail(float t) {
    float y = (t - 2.0f) / (t + 2.0f);
    float q = 0x1.ae298cp-13f;
    q = q * y - 0x1.4d9f7ap-11f;
    q = q * y - 0x1.deed1ep-11f;
    q = q * y + 0x1.95dec4p-9f;
    q = q * y + 0x1.a967b4p-8f;
    q = q * y - 0x1.607482p-6f;
    q = q * y - 0x1.2a8a6ap-5f;
    q = q * y + 0x1.1e2df4p-2f;
    q = q * y - 0x1.5fd386p-1f;
    q = q * y + 0x1.058672p+0f;
    float high = from_bits(to_bits(t) & 0xFFFFF000);
    return float_math_exp_sum(-(high * high), -((t - high) * (t + high))) * (q / (t + 2.0f));
}

// erf(x) - x for |x| < 0.75: x (2 / sqrt(pi) - 1 + x^2 P(x^2)); the fit's error is 2.7e-11.
static float float_math_erf_minus_x(float x) {
    float z = x * x;
    float p = 0x1.8e169ap-14f;
    p = p * z - 0x1.b65936p-11f;
    p = p * z + 0x1.55e7fap-8f;
    p = p * z - 0x1.b82770p-6f;
    p = p * z + 0x1.ce2f04p-4f;
    p = p * z - 0x1.812746p-2f;
    return x * (0x1.06eba8p-3f + z * p);
}

float pt_erff(float x) {
    float size = __builtin_fabsf(x);
    if (size < 0.75f) {
        return x + float_math_erf_minus_x(x);
    }
    if (pt_is_nanf(x)) {
        return quiet(x);
    }
    return with_sign(size > 4.0f ? 1.0f : 1.0f - float_math_erfc_tail(size), x);
}

float pt_erfcf(float x) {
    float size = __builtin_fabsf(x);
    if (size < 0.75f) {
        return 0.5f - ((x - 0.5f) + float_math_erf_minus_x(x));
    }
    if (pt_is_nanf(x)) {
        return quiet(x);
    }
    float tail = size > 10.1f ? 0.0f : float_math_erfc_tail(size);
    return x < 0 ? 2.0f - tail : tail;
}

// ---- sine and cosine

// Bits of 2 / pi after a word of zeros.
static const uint32_t two_over_pi[8] = {0,          0xA2F9836E, 0x4E441529, 0xFC2757D1,
                                        0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB};

static uint32_t float_math_two_over_pi_word(uint32_t position) {
    const uint32_t *w = &two_over_pi[position >> 5];
    return (uint32_t)((((uint64_t)w[0] << 32 | w[1]) << (position & 31)) >> 32);
}

// x = *r + quadrant * pi / 2 with |r| <= pi / 4, quadrant modulo 4, for finite |x| > pi / 4: the
// method of Payne and Hanek. The mantissa times the bits of 2 / pi that matter gives x in
// quadrants as an integer of 2 + 62 bits.
static uint32_t float_math_reduce_angle(float x, float *r) {
    uint32_t bits = to_bits(x) & 0x7FFFFFFF;
    uint32_t mantissa = (bits & 0x007FFFFF) | 0x00800000;
    uint32_t position = (bits >> 23) - 120;
    uint64_t turns = ((uint64_t)(mantissa * float_math_two_over_pi_word(position)) << 32) +
                     (uint64_t)mantissa * float_math_two_over_pi_word(position + 32) +
                     ((uint64_t)mantissa * float_math_two_over_pi_word(position + 64) >> 32);
    uint32_t quadrant = (uint32_t)((turns + ((uint64_t)1 << 61)) >> 62);
    uint64_t rest = turns << 2; // quadrants as a fraction of 64 bits, signed; never 0
    bool negative = rest >> 63 != 0;
    rest = negative ? -rest : rest;
    uint32_t zeros = (uint32_t)__builtin_clzll(rest | 1);
    uint64_t angle = (rest << zeros >> 32) * 0xC90FDAA2; // pi / 2 as a fraction of 2^31
    float y = (float)angle * from_bits((127 - 63 - zeros) << 23);
    *r = negative != (x < 0) ? -y : y;
    return (x < 0 ? 4 - quadrant : quadrant) & 3;
}

// sin r = r + r^3 P(r^2), cos r = 1 - r^2 / 2 + r^4 P(r^2) for |r| <= pi / 4; the fits' errors are
// 3.9e-9 and 1.2e-10.
static float float_math_sin_polynomial(float r) {
    float z = r * r;
    float p = -0x1.994220p-13f;
    p = p * z + 0x1.110736p-7f;
    p = p * z - 0x1.555546p-3f;
    return with_sign(r + r * (z * p), r);
}

static float float_math_cos_polynomial(float r) {
    float z = r * r;
    float p = 0x1.99ea02p-16f;
    p = p * z - 0x1.6c0c2ep-10f;
    p = p * z + 0x1.55554ap-5f;
    return 1.0f - (0.5f * z - (z * z) * p);
}

// Returns sin(x + shift * pi / 2).
static float float_math_shifted_sin(float x, uint32_t shift) {
    float r = x;
    uint32_t quadrant = shift;
    float size = __builtin_fabsf(x);
    if (!(size < infinity())) {
        return pt_is_nanf(x) ? quiet(x) : not_a_number();
    }
    if (size > 0x1.921fb6p-1f) {
        quadrant += float_math_reduce_angle(x, &r);
    }
    float y = quadrant & 1 ? float_math_cos_polynomial(r) : float_math_sin_polynomial(r);
    return quadrant & 2 ? -y : y;
}

float pt_sinf(float x) {
    return float_math_shifted_sin(x, 0);
}

float pt_cosf(float x) {
    return float_math_shifted_sin(x, 1);
}

// ---- square root

#if defined(__arm__) && defined(__ARM_FP) && (__ARM_FP & 4)

float pt_sqrtf(float x) {
    float y;
    __asm__("vsqrt.f32 %0, %1" : "=t"(y) : "t"(x));
    return y;
}

#else

// Returns floor(sqrt(m)), computed bit by bit. For 2^48 <= m < 2^50 the root has 25 bits, one of
// them for rounding.
static uint32_t integer_sqrt(uint64_t m) {
    uint64_t root = 0;
    for (uint64_t bit = (uint64_t)1 << 48; bit != 0; bit >>= 2) {
        bool fits = m >= root + bit;
        m -= fits ? root + bit : 0;
        root = (root >> 1) + (fits ? bit : 0);
    }
    return (uint32_t)root;
}

float pt_sqrtf(float x) {
    if (pt_is_nanf(x)) {
        return quiet(x);
    }
    if (x == 0 || x == infinity()) {
        return x;
    }
    if (x < 0) {
        return not_a_number();
    }
    int32_t exponent = 0;
    if (x < 0x1p-126f) {
        x *= 0x1p+24f;
        exponent = -12;
    }
    uint32_t bits = to_bits(x);
    uint64_t m = (bits & 0x007FFFFF) | 0x00800000;
    bool odd = (bits >> 23 & 1) == 0;
    exponent += ((int32_t)(bits >> 23) - 127) >> 1;
    // No square root of a float lies midway between two floats.
    uint32_t root = (integer_sqrt(m << (odd ? 26 : 25)) + 1) >> 1;
    return from_bits(root + ((uint32_t)(exponent + 126) << 23));
}

#endif

// ---- power

// Terms of log(1 + f) = 2s + s^3 P(s^2), see log_rest; the fit's error is 3.2e-14.
static double log2_double(float x) {
    float k;
    double f = float_math_split_exponent(x, &k);
    double s = f / (2.0 + f);
    double z = s * s;
    double p = 0.1959878896723545;
    p = p * z + 0.22175237555855146;
    p = p * z + 0.28572130208520941;
    p = p * z + 0.39999995441004221;
    p = p * z + 0.66666666676274355;
    return k + (2.0 * s + s * (z * p)) * 0x1.71547652b82fep+0;
}

// 2^y for |y| < 1000; 2^r = 1 + r P(r) for |r| <= 1/2, the fit's error is 4.7e-11.
static double exp2_double(double y) {
    int32_t n = (int32_t)(y < 0 ? y - 0.5 : y + 0.5);
    double r = y - n;
    double p = 1.5196154203046143e-05;
    p = p * r + 0.0001546675651627152;
    p = p * r + 0.0013333935066436866;
    p = p * r + 0.0096180381313159362;
    p = p * r + 0.055504103659766407;
    p = p * r + 0.24022651066567527;
    p = p * r + 0.69314718070453774;
    union {
        uint64_t u;
        double d;
    } scale = {(uint64_t)(n + 1023) << 52};
    return scale.d + scale.d * (r * p);
}

// x^y for finite x > 0 and finite y.
static float float_math_positive_power(float x, float y) {
    double exponent = y * log2_double(x);
    if (exponent > 130.0) {
        return infinity();
    }
    return exponent < -152.0 ? 0.0f : (float)exp2_double(exponent);
}

float pt_powf(float x, float y) {
    if (y == 0 || x == 1.0f) {
        return 1.0f;
    }
    if (pt_is_nanf(x) || pt_is_nanf(y)) {
        return quiet(pt_is_nanf(x) ? x : y);
    }
    float size = __builtin_fabsf(x);
    if (__builtin_fabsf(y) == infinity()) {
        return size == 1.0f ? 1.0f : (size > 1.0f) == (y > 0) ? infinity() : 0.0f;
    }
    bool odd = __builtin_fabsf(y) < 0x1p+24f && y == pt_truncf(y) && ((int32_t)y & 1) != 0;
    float power;
    if (size == 0 || size == infinity()) {
        power = (size == 0) == (y < 0) ? infinity() : 0.0f;
    } else if (x < 0 && y != pt_truncf(y)) {
        return not_a_number();
    } else {
        power = float_math_positive_power(size, y);
    }
    return odd ? with_sign(power, x) : power;
}

// ---- rounding to integers

// From here on every float is an integer, infinite or NaN.
#define NO_FRACTION 0x1p+23f

float pt_truncf(float x) {
    return __builtin_fabsf(x) < NO_FRACTION ? with_sign((float)(int32_t)x, x) : x;
}

float pt_floorf(float x) {
    float y = pt_truncf(x);
    return y > x ? y - 1.0f : y;
}

float pt_ceilf(float x) {
    float y = pt_truncf(x);
    return y < x ? with_sign(y + 1.0f, x) : y;
}

float pt_rintf(float x) {
    float size = __builtin_fabsf(x);
    return size < NO_FRACTION ? with_sign((size + NO_FRACTION) - NO_FRACTION, x) : x;
}

#define NO_FRACTION_DOUBLE 0x1p+52

double pt_trunc(double x) {
    bool has_fraction = __builtin_fabs(x) < NO_FRACTION_DOUBLE;
    return has_fraction ? double_with_sign((double)(int64_t)x, x) : x;
}

double pt_floor(double x) {
    double y = pt_trunc(x);
    return y > x ? y - 1.0 : y;
}

double pt_ceil(double x) {
    double y = pt_trunc(x);
    return y < x ? double_with_sign(y + 1.0, x) : y;
}

double pt_rint(double x) {
    double size = __builtin_fabs(x);
    return size < NO_FRACTION_DOUBLE
               ? double_with_sign((size + NO_FRACTION_DOUBLE) - NO_FRACTION_DOUBLE, x)
               : x;
}

// Returns the mantissa with its leading bit at position 23, and the matching exponent. `bits` is
// positive and finite.
static uint32_t float_math_normalize(uint32_t bits, int32_t *exponent) {
    *exponent = (int32_t)(bits >> 23);
    if (*exponent != 0) {
        return (bits & 0x007FFFFF) | 0x00800000;
    }
    *exponent = 1;
    while (bits < 0x00800000) {
        bits <<= 1;
        --*exponent;
    }
    return bits;
}

// Returns mantissa * 2^(exponent - 150); mantissa < 2^24 has no bits below the smallest float.
static float assemble(uint32_t mantissa, int32_t exponent) {
    if (mantissa == 0) {
        return 0.0f;
    }
    while (mantissa < 0x00800000 && exponent > 1) {
        mantissa <<= 1;
        exponent--;
    }
    if (exponent < 1) {
        return from_bits(mantissa >> (1 - exponent));
    }
    return from_bits(mantissa < 0x00800000 ? mantissa
                                           : mantissa - 0x00800000 + ((uint32_t)exponent << 23));
}

float pt_fmodf(float x, float y) {
    float a = __builtin_fabsf(x);
    float b = __builtin_fabsf(y);
    if (pt_is_nanf(x) || pt_is_nanf(y)) {
        return quiet(pt_is_nanf(x) ? x : y);
    }
    if (a == infinity() || b == 0) {
        return not_a_number();
    }
    if (a < b) {
        return x;
    }
    int32_t exponent, target;
    uint32_t divisor = float_math_normalize(to_bits(b), &target);
    uint32_t rest = float_math_normalize(to_bits(a), &exponent);
    for (; exponent > target; exponent--) {
        rest -= rest >= divisor ? divisor : 0;
        rest <<= 1;
    }
    rest -= rest >= divisor ? divisor : 0;
    return with_sign(assemble(rest, target), x);
}

double pt_fmod(double x, double y) {
    double a = __builtin_fabs(x), b = __builtin_fabs(y);
    if (!(a < __builtin_inf()) || !(b > 0)) { // infinity, 0 or NaN
        return __builtin_nan("");
    }
    double divisor = b; // b times a power of 2: the largest that is at most a
    while (divisor <= a / 2) {
        divisor *= 2;
    }
    for (;; divisor /= 2) {
        a -= a >= divisor ? divisor : 0;
        if (divisor == b) {
            break;
        }
    }
    return double_with_sign(a, x);
}
