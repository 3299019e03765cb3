// ARMv7-M: products of a row's values with four rows of weights.

// Adds those with the rows at w, w + second, w + third and w + fourth to sums[0] to sums[3].
// `count` is a multiple of 4.
static inline void pt_add_values(const pt_value_at *values, int32_t count, const int8_t *w,
                                 int32_t second, int32_t third, int32_t fourth, int32_t *sums) {
#define PT_VALUE                   \
    "ldrd r4, r5, [%[at]], #8\n\t" \
    "ldrsb.w r6, [r8, r5]\n\t"     \
    "mla r0, r6, r4, r0\n\t"       \
    "ldrsb.w r6, [r9, r5]\n\t"     \
    "mla r1, r6, r4, r1\n\t"       \
    "ldrsb.w r6, [r10, r5]\n\t"    \
    "mla r2, r6, r4, r2\n\t"       \
    "ldrsb.w r6, [r11, r5]\n\t"    \
    "mla r3, r6, r4, r3\n\t"
    register const int8_t *w0 __asm__("r8") = w;
    register const int8_t *w1 __asm__("r9") = w + second;
    register const int8_t *w2 __asm__("r10") = w + third;
    register const int8_t *w3 __asm__("r11") = w + fourth;
    const pt_value_at *end = values + count;
    // clang-format off
    __asm__ volatile(
        "ldmia.w %[sums], {r0, r1, r2, r3}\n\t"
        "b 2f\n"
        "1:\n\t"
        PT_VALUE
        PT_VALUE
        PT_VALUE
        PT_VALUE
        "2:\n\t"
        "cmp %[at], %[end]\n\t"
        "bne 1b\n\t"
        "stmia.w %[sums], {r0, r1, r2, r3}"
        : [at] "+r"(values)
        : [end] "r"(end), [sums] "r"(sums), "r"(w0), "r"(w1), "r"(w2), "r"(w3)
        : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "cc", "memory");
    // clang-format on
#undef PT_VALUE
}
