// ARMv6-M: a MULS makes two products, of at most 255 * 128 each. All are added in 32 bits, the
// second ones beside in another sum, whose part is taken out at the end. ASRS leaves in the carry
// what a negative first product has borrowed from the second.
#ifndef PT_ARCH_PAIRS_V6M_H
#define PT_ARCH_PAIRS_V6M_H

// Patches 0 to 3, one value and a channel's weight.
#define PT_STEP_2X1           \
    "ldmia r0!, {r5, r6}\n\t" \
    "ldrsb r7, [r1, r2]\n\t"  \
    "muls r5, r7, r5\n\t"     \
    "add r8, r5\n\t"          \
    "asrs r5, r5, #16\n\t"    \
    "adcs r3, r5\n\t"         \
    "muls r6, r7, r6\n\t"     \
    "add r9, r6\n\t"          \
    "asrs r6, r6, #16\n\t"    \
    "adcs r4, r6\n\t"         \
    "adds r2, #1\n\t"

// Patches 0 and 1, one value and the weights of two channels.
#define PT_STEP_1X2          \
    "ldmia r0!, {r5}\n\t"    \
    "ldrsb r6, [r1, r2]\n\t" \
    "muls r6, r5, r6\n\t"    \
    "add r8, r6\n\t"         \
    "asrs r6, r6, #16\n\t"   \
    "adcs r3, r6\n\t"        \
    "ldrsb r6, [r7, r2]\n\t" \
    "muls r6, r5, r6\n\t"    \
    "add r9, r6\n\t"         \
    "asrs r6, r6, #16\n\t"   \
    "adcs r4, r6\n\t"        \
    "adds r2, #1\n\t"

// r2 counts up to 0: to a multiple of 4, then by 4. Then the sums go to r12.
#define PT_LOOP(step)                       \
    "movs r3, #0\n\t"                       \
    "movs r4, #0\n\t"                       \
    "mov r8, r3\n\t"                        \
    "mov r9, r3\n\t"                        \
    "b 2f\n"                                \
    "1:\n\t" step "2:\n\t"                  \
    "lsls r5, r2, #30\n\t"                  \
    "bne 1b\n\t"                            \
    "cmp r2, #0\n\t"                        \
    "beq 4f\n"                              \
    "3:\n\t" step step step step "bne 3b\n" \
    "4:\n\t"                                \
    "mov r0, r12\n\t"                       \
    "mov r5, r8\n\t"                        \
    "lsls r6, r3, #16\n\t"                  \
    "subs r5, r5, r6\n\t"                   \
    "mov r6, r9\n\t"                        \
    "lsls r7, r4, #16\n\t"                  \
    "subs r6, r6, r7\n\t"                   \
    "stmia r0!, {r5}\n\t"                   \
    "stmia r0!, {r3}\n\t"                   \
    "stmia r0!, {r6}\n\t"                   \
    "stmia r0!, {r4}"

// The sums of `depth` products of patches 0 to 3.
static __attribute__((noinline)) void pt_sum_2x1(const uint32_t *patches, const int8_t *weights,
                                                 int32_t depth, int32_t *sums) {
    register const uint32_t *a __asm__("r0") = patches;
    register const int8_t *w __asm__("r1") = weights + depth;
    register int32_t k __asm__("r2") = -depth;
    register int32_t *to __asm__("r12") = sums;
    __asm__ volatile(".syntax unified\n\t" PT_LOOP(PT_STEP_2X1)
                     : "+r"(a), "+r"(w), "+r"(k), "+r"(to)
                     :
                     : "r3", "r4", "r5", "r6", "r7", "r8", "r9", "cc", "memory");
}

// Of patches 0 and 1 with the weights w, then with u.
static __attribute__((noinline)) void pt_sum_1x2(const uint32_t *patches, const int8_t *weights,
                                                 const int8_t *others, int32_t depth,
                                                 int32_t *sums) {
    register const uint32_t *a __asm__("r0") = patches;
    register const int8_t *w __asm__("r1") = weights + depth;
    register int32_t k __asm__("r2") = -depth;
    register const int8_t *u __asm__("r3") = others + depth;
    register int32_t *to __asm__("r12") = sums;
    __asm__ volatile(".syntax unified\n\t"
                     "movs r7, r3\n\t" PT_LOOP(PT_STEP_1X2)
                     : "+r"(a), "+r"(w), "+r"(k), "+r"(u), "+r"(to)
                     :
                     : "r4", "r5", "r6", "r7", "r8", "r9", "cc", "memory");
}

#undef PT_STEP_2X1
#undef PT_STEP_1X2
#undef PT_LOOP

// The outputs of n sums, as pt_scale makes them.
static __attribute__((noinline)) void pt_scale_sums(const pt_scaling *s, const int32_t *sums,
                                                    int32_t n, int8_t *out, int32_t step) {
    register const int32_t *from __asm__("r0") = sums;
    register int8_t *to __asm__("r1") = out;
    register int32_t low __asm__("r2") = s->multiplier & 0xFFFF;
    register int32_t high __asm__("r3") = s->multiplier >> 16;
    register int32_t bias __asm__("r8") = s->bias;
    register int32_t rounding __asm__("r9") = s->rounding;
    register int32_t right __asm__("r10") = s->right;
    register int32_t next __asm__("r11") = step;
    register const int32_t *end __asm__("r12") = sums + n;
    register int32_t half __asm__("r14") = 0x4000;
    __asm__ volatile(".syntax unified\n"
                     "1:\n\t"
                     "ldmia r0!, {r4}\n\t"
                     "add r4, r8\n\t"
                     "uxth r5, r4\n\t"
                     "asrs r4, r4, #16\n\t"
                     "movs r6, r5\n\t"
                     "muls r6, r2, r6\n\t"
                     "lsrs r6, r6, #16\n\t"
                     "movs r7, r4\n\t"
                     "muls r7, r2, r7\n\t"
                     "adds r7, r7, r6\n\t"
                     "muls r5, r3, r5\n\t"
                     "uxth r6, r7\n\t"
                     "adds r5, r5, r6\n\t"
                     "add r5, r14\n\t"
                     "lsrs r5, r5, #15\n\t"
                     "asrs r6, r7, #16\n\t"
                     "asrs r7, r4, #31\n\t"
                     "muls r4, r3, r4\n\t"
                     "adds r4, r4, r6\n\t"
                     "lsls r4, r4, #1\n\t"
                     "adds r4, r4, r5\n\t"
                     "adds r4, r4, r7\n\t"
                     "add r4, r9\n\t"
                     "mov r5, r10\n\t"
                     "asrs r4, r5\n\t"
                     "sxtb r5, r4\n\t"
                     "cmp r5, r4\n\t"
                     "bne 3f\n"
                     "2:\n\t"
                     "strb r4, [r1]\n\t"
                     "add r1, r11\n\t"
                     "cmp r0, r12\n\t"
                     "bne 1b\n\t"
                     "b 4f\n"
                     "3:\n\t" // beyond an int8
                     "asrs r5, r4, #31\n\t"
                     "movs r4, #127\n\t"
                     "eors r4, r5\n\t"
                     "b 2b\n"
                     "4:"
                     : "+r"(from), "+r"(to), "+r"(low), "+r"(high)
                     : "r"(bias), "r"(rounding), "r"(right), "r"(next), "r"(end), "r"(half)
                     : "r4", "r5", "r6", "r7", "cc", "memory");
}

#endif
