// Arithmetic of doubles for Arm cores without an FPU for them, optimized for size: libgcc's takes 2
// KB on ARMv7-M and 7 KB on ARMv6-M. Results are the same to the bit, except for the sign and the
// payload of a NaN. On ARMv6-M this file also computes with floats, in double: rounding twice
// changes no result, since a double has more than twice the bits of a float plus two.
//
// Names and semantics are those of Arm's run-time ABI.
#include <stdbool.h>
#include <stdint.h>

#if defined(PT_SMALL_DOUBLES)

typedef uint64_t real; // a double's bits
typedef uint32_t single;

#define SIGN ((real)1 << 63)
#define INFINITE ((real)0x7FF << 52)
#define NOT_A_NUMBER ((real)0xFFF << 51)
#define HIDDEN ((real)1 << 52)

enum { EXPONENTS = 0x7FF, BIAS = 1075 }; // BIAS is for a mantissa that is an integer

// ---- common parts

// Returns the double nearest to mantissa * 2^exponent, halves to even. The last bit of the mantissa
// may stand for all lower bits.
static real __attribute__((noinline)) make(real sign, int32_t exponent, real mantissa) {
    if (mantissa == 0) {
        return sign;
    }
    for (; !(mantissa & SIGN); exponent--) {
        mantissa <<= 1;
    }
    exponent += BIAS + 11;
    if (exponent >= EXPONENTS) {
        return sign | INFINITE;
    }
    for (; exponent < 1; exponent++) { // subnormal
        mantissa = mantissa >> 1 | (mantissa & 1);
        if (mantissa == 1) {
            exponent = 0;
        }
    }
    uint32_t rest = (uint32_t)mantissa & 0x7FF;
    mantissa >>= 11;
    mantissa += rest + (uint32_t)(mantissa & 1) > 0x400;
    return sign | (((real)(uint32_t)(exponent - 1) << 52) + mantissa);
}

typedef struct parts {
    real sign, mantissa;
    int32_t exponent;
} parts;

// Splits a finite number.
static parts __attribute__((noinline)) split(real a) {
    int32_t exponent = (int32_t)(a >> 52) & EXPONENTS;
    real fraction = a & (HIDDEN - 1);
    return exponent ? (parts){a & SIGN, fraction | HIDDEN, exponent - BIAS}
                    : (parts){a & SIGN, fraction, 1 - BIAS};
}

static bool is_nan(real a) {
    return (a & ~SIGN) > INFINITE;
}

// Splits a number that is not 0; the mantissa has its highest bit at 52.
static parts __attribute__((noinline)) split_and_shift(real a) {
    parts p = split(a);
    for (; !(p.mantissa & HIDDEN); p.exponent--) {
        p.mantissa <<= 1;
    }
    return p;
}

// ---- sums, products, quotients

real __aeabi_dadd(real a, real b) {
    if ((a & ~SIGN) < (b & ~SIGN)) {
        real swapped = a;
        a = b;
        b = swapped;
    }
    if ((a & ~SIGN) >= INFINITE) { // b may be infinite, too
        return is_nan(a) || (b ^ SIGN) == a ? NOT_A_NUMBER : a;
    }
    parts x = split(a), y = split(b);
    int32_t shift = x.exponent - y.exponent;
    x.mantissa <<= 10;
    y.mantissa <<= 10;
    for (; shift > 0 && y.mantissa > 1; shift--) {
        y.mantissa = y.mantissa >> 1 | (y.mantissa & 1);
    }
    real mantissa = x.sign == y.sign ? x.mantissa + y.mantissa : x.mantissa - y.mantissa;
    return make(mantissa ? x.sign : x.sign & y.sign, x.exponent - 10, mantissa);
}

real __aeabi_dsub(real a, real b) {
    return __aeabi_dadd(a, b ^ SIGN);
}

real __aeabi_drsub(real a, real b) {
    return __aeabi_dsub(b, a);
}

real __aeabi_dmul(real a, real b) {
    real sign = (a ^ b) & SIGN;
    a &= ~SIGN;
    b &= ~SIGN;
    if (a >= INFINITE || b >= INFINITE) {
        return is_nan(a) || is_nan(b) || a == 0 || b == 0 ? NOT_A_NUMBER : sign | INFINITE;
    }
    if (a == 0 || b == 0) {
        return sign;
    }
    parts x = split_and_shift(a), y = split_and_shift(b);
    real high = 0;
    bool rest = false;
    for (uint32_t i = 0; i < 53; i++, y.mantissa >>= 1) {
        rest |= high & 1;
        high = (high >> 1) + (y.mantissa & 1 ? x.mantissa << 9 : 0);
    }
    return make(sign, x.exponent + y.exponent + 52 - 9, high | rest);
}

real __aeabi_ddiv(real a, real b) {
    real sign = (a ^ b) & SIGN;
    a &= ~SIGN;
    b &= ~SIGN;
    if (a >= INFINITE || b == 0) {
        return is_nan(a) || b >= INFINITE || a == 0 ? NOT_A_NUMBER : sign | INFINITE;
    }
    if (b >= INFINITE || a == 0) {
        return is_nan(b) ? NOT_A_NUMBER : sign;
    }
    parts x = split_and_shift(a), y = split_and_shift(b);
    real quotient = 0;
    for (uint32_t i = 0; i < 56; i++, x.mantissa <<= 1) {
        bool is_in = x.mantissa >= y.mantissa;
        quotient = quotient << 1 | is_in;
        x.mantissa -= is_in ? y.mantissa : 0;
    }
    return make(sign, x.exponent - y.exponent - 55, quotient | (x.mantissa != 0));
}

// ---- comparisons

enum { LESS = 1, EQUAL = 2, MORE = 4 };

static uint32_t __attribute__((noinline)) compare(real a, real b) {
    if (is_nan(a) || is_nan(b)) {
        return 0;
    }
    int64_t x = a & SIGN ? -(int64_t)(a & ~SIGN) : (int64_t)a;
    int64_t y = b & SIGN ? -(int64_t)(b & ~SIGN) : (int64_t)b;
    return x < y ? LESS : x == y ? EQUAL : MORE;
}

int __aeabi_dcmpeq(real a, real b) {
    return (compare(a, b) & EQUAL) != 0;
}

int __aeabi_dcmplt(real a, real b) {
    return (compare(a, b) & LESS) != 0;
}

int __aeabi_dcmple(real a, real b) {
    return (compare(a, b) & (LESS | EQUAL)) != 0;
}

int __aeabi_dcmpgt(real a, real b) {
    return (compare(a, b) & MORE) != 0;
}

int __aeabi_dcmpge(real a, real b) {
    return (compare(a, b) & (MORE | EQUAL)) != 0;
}

int __aeabi_dcmpun(real a, real b) {
    return compare(a, b) == 0;
}

// ---- integers

real __aeabi_ul2d(uint64_t i) {
    return make(0, 0, i);
}

real __aeabi_l2d(int64_t i) {
    return i < 0 ? make(SIGN, 0, -(uint64_t)i) : make(0, 0, (uint64_t)i);
}

real __aeabi_i2d(int32_t i) {
    return __aeabi_l2d(i);
}

real __aeabi_ui2d(uint32_t i) {
    return make(0, 0, i);
}

// Rounds towards 0. The result is the largest or the smallest integer if a lies beyond it, and 0
// for NaN.
int64_t __aeabi_d2lz(real a) {
    if ((a & ~SIGN) >= (real)(BIAS - 52 + 63) << 52) {
        return is_nan(a) ? 0 : a & SIGN ? INT64_MIN : INT64_MAX;
    }
    parts x = split(a);
    for (; x.exponent < 0 && x.mantissa; x.exponent++) {
        x.mantissa >>= 1;
    }
    for (; x.exponent > 0; x.exponent--) {
        x.mantissa <<= 1;
    }
    return x.sign ? -(int64_t)x.mantissa : (int64_t)x.mantissa;
}

int32_t __aeabi_d2iz(real a) {
    int64_t i = __aeabi_d2lz(a);
    return i < INT32_MIN ? INT32_MIN : i > INT32_MAX ? INT32_MAX : (int32_t)i;
}

// ---- floats

single __aeabi_d2f(real a) {
    enum { BITS = 24, MIN_EXPONENT = -149, INFINITE_SINGLE = 0x7F800000, NAN_SINGLE = 0x7FC00000 };
    single sign = (single)(a >> 32) & 0x80000000;
    if ((a & ~SIGN) >= INFINITE) {
        return is_nan(a) ? NAN_SINGLE : sign | INFINITE_SINGLE;
    }
    parts x = split(a);
    int32_t shift = 53 - BITS; // bits that are rounded off
    if (x.exponent + shift < MIN_EXPONENT) {
        shift = MIN_EXPONENT - x.exponent;
        shift = shift > 60 ? 60 : shift;
    }
    real half = (real)1 << (shift - 1), rest = x.mantissa & (2 * half - 1);
    single fraction = (single)(x.mantissa >> shift);
    fraction += rest > half || (rest == half && fraction & 1);
    int32_t exponent = x.exponent + shift - MIN_EXPONENT; // exponent of a float, less 1
    if (exponent >= 254) {
        return sign | INFINITE_SINGLE;
    }
    return sign | (((single)(exponent < 0 ? 0 : exponent) << 23) + fraction);
}

real __aeabi_f2d(single a) {
    real sign = (real)(a >> 31) << 63;
    single exponent = a >> 23 & 0xFF, fraction = a & 0x7FFFFF;
    if (exponent == 0xFF) {
        return fraction ? NOT_A_NUMBER : sign | INFINITE;
    }
    return make(sign, exponent ? (int32_t)exponent - 150 : -149,
                exponent ? fraction | 1 << 23 : fraction);
}

#if defined(__ARM_ARCH_6M__) || !defined(__arm__)

single __aeabi_fadd(single a, single b) {
    return __aeabi_d2f(__aeabi_dadd(__aeabi_f2d(a), __aeabi_f2d(b)));
}

single __aeabi_fsub(single a, single b) {
    return __aeabi_fadd(a, b ^ 0x80000000);
}

single __aeabi_frsub(single a, single b) {
    return __aeabi_fsub(b, a);
}

single __aeabi_fmul(single a, single b) {
    return __aeabi_d2f(__aeabi_dmul(__aeabi_f2d(a), __aeabi_f2d(b)));
}

single __aeabi_fdiv(single a, single b) {
    return __aeabi_d2f(__aeabi_ddiv(__aeabi_f2d(a), __aeabi_f2d(b)));
}

static uint32_t __attribute__((noinline)) compare_singles(single a, single b) {
    return compare(__aeabi_f2d(a), __aeabi_f2d(b));
}

int __aeabi_fcmpeq(single a, single b) {
    return (compare_singles(a, b) & EQUAL) != 0;
}

int __aeabi_fcmplt(single a, single b) {
    return (compare_singles(a, b) & LESS) != 0;
}

int __aeabi_fcmple(single a, single b) {
    return (compare_singles(a, b) & (LESS | EQUAL)) != 0;
}

int __aeabi_fcmpgt(single a, single b) {
    return (compare_singles(a, b) & MORE) != 0;
}

int __aeabi_fcmpge(single a, single b) {
    return (compare_singles(a, b) & (MORE | EQUAL)) != 0;
}

int __aeabi_fcmpun(single a, single b) {
    return compare_singles(a, b) == 0;
}

single __aeabi_i2f(int32_t i) {
    return __aeabi_d2f(__aeabi_i2d(i));
}

single __aeabi_ui2f(uint32_t i) {
    return __aeabi_d2f(__aeabi_ui2d(i));
}

int32_t __aeabi_f2iz(single a) {
    return __aeabi_d2iz(__aeabi_f2d(a));
}

#endif
#endif
