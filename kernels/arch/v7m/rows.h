// ARMv7-M: products of a row's values with four rows of weights.

// Adds those with the rows at w, w + second, w + third and w + fourth to sums[0] to sums[3].
// `count` is a multiple of 4. Loads behind a load take one cycle, and no other two.
static inline void pt_add_values(const pt_value_at *values, int32_t count, const int8_t *w,
                                 int32_t second, int32_t third, int32_t fourth, int32_t *sums) {
#define PT_VALUE(i)                      \
    "ldr.w r5, [r7, #8 * " i " + 4]\n\t" \
    "ldr.w r4, [r7, #8 * " i "]\n\t"     \
    "ldrsb.w r6, [r8, r5]\n\t"           \
    "ldrsb.w r12, [r9, r5]\n\t"          \
    "ldrsb.w lr, [r10, r5]\n\t"          \
    "ldrsb.w r5, [r11, r5]\n\t"          \
    "mla r0, r6, r4, r0\n\t"             \
    "mla r1, r12, r4, r1\n\t"            \
    "mla r2, lr, r4, r2\n\t"             \
    "mla r3, r5, r4, r3\n\t"
    register const pt_value_at *at __asm__("r7") = values;
    register const int8_t *w0 __asm__("r8") = w;
    register const int8_t *w1 __asm__("r9") = w + second;
    register const int8_t *w2 __asm__("r10") = w + third;
    register const int8_t *w3 __asm__("r11") = w + fourth;
    register int32_t *at_sums __asm__("r12") = sums;
    register const pt_value_at *end __asm__("lr") = values + count;
    // clang-format off
    __asm__ volatile(
        "push {r12, lr}\n\t"
        "ldmia.w r12, {r0, r1, r2, r3}\n\t"
        "b 2f\n"
        "1:\n\t"
        PT_VALUE("0")
        PT_VALUE("1")
        PT_VALUE("2")
        PT_VALUE("3")
        "adds r7, #32\n\t"
        "ldr lr, [sp, #4]\n"
        "2:\n\t"
        "cmp r7, lr\n\t"
        "bne 1b\n\t"
        "pop {r12, lr}\n\t"
        "stmia.w r12, {r0, r1, r2, r3}"
        : "+r"(at), "+r"(at_sums), "+r"(end)
        : "r"(w0), "r"(w1), "r"(w2), "r"(w3)
        : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "cc", "memory");
    // clang-format on
#undef PT_VALUE
}
