// ARMv6-M: products of a row's values with four rows of weights.

// Adds those with the rows at w, w + second, w + third and w + fourth to sums[0] to sums[3].
// `count` is a multiple of 4.
static inline void pt_add_values(const pt_value_at *values, int32_t count, const int8_t *w,
                                 int32_t second, int32_t third, int32_t fourth, int32_t *sums) {
#define PT_VALUE              \
    "ldmia r7!, {r4, r5}\n\t" \
    "ldrsb r6, [r0, r5]\n\t"  \
    "muls r6, r4, r6\n\t"     \
    "add r8, r6\n\t"          \
    "ldrsb r6, [r1, r5]\n\t"  \
    "muls r6, r4, r6\n\t"     \
    "add r9, r6\n\t"          \
    "ldrsb r6, [r2, r5]\n\t"  \
    "muls r6, r4, r6\n\t"     \
    "add r10, r6\n\t"         \
    "ldrsb r6, [r3, r5]\n\t"  \
    "muls r6, r4, r6\n\t"     \
    "add r11, r6\n\t"
    register const int8_t *w0 __asm__("r0") = w;
    register const int8_t *w1 __asm__("r1") = w + second;
    register const int8_t *w2 __asm__("r2") = w + third;
    register const int8_t *w3 __asm__("r3") = w + fourth;
    register int32_t *to __asm__("lr") = sums;
    register const pt_value_at *end __asm__("r12") = values + count;
    register const pt_value_at *at __asm__("r7") = values;
    // clang-format off
    __asm__ volatile(
        ".syntax unified\n\t"
        "mov r6, lr\n\t"
        "ldmia r6!, {r4, r5}\n\t"
        "mov r8, r4\n\t"
        "mov r9, r5\n\t"
        "ldmia r6!, {r4, r5}\n\t"
        "mov r10, r4\n\t"
        "mov r11, r5\n\t"
        "b 2f\n"
        "1:\n\t"
        PT_VALUE
        PT_VALUE
        PT_VALUE
        PT_VALUE
        "2:\n\t"
        "cmp r7, r12\n\t"
        "bne 1b\n\t"
        "mov r4, r8\n\t"
        "mov r5, r9\n\t"
        "mov r6, lr\n\t"
        "stmia r6!, {r4, r5}\n\t"
        "mov r4, r10\n\t"
        "mov r5, r11\n\t"
        "stmia r6!, {r4, r5}"
        : "+r"(at), "+r"(to)
        : "r"(end), "r"(w0), "r"(w1), "r"(w2), "r"(w3)
        : "r4", "r5", "r6", "r8", "r9", "r10", "r11", "cc", "memory");
    // clang-format on
#undef PT_VALUE
}
