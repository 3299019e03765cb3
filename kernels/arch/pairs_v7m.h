// ARMv7-M: one SMLAL makes two products, and adds them in 64 bits, of which the low
// PT_PAIR_SHIFT are the first patch's.
#ifndef PT_ARCH_PAIRS_V7M_H
#define PT_ARCH_PAIRS_V7M_H

#define PT_STEP_3X1                  \
    "ldmia.w r11!, {r6, r8, r9}\n\t" \
    "ldrsb.w r10, [r7], #1\n\t"      \
    "smlal r0, r1, r6, r10\n\t"      \
    "smlal r2, r3, r8, r10\n\t"      \
    "smlal r4, r5, r9, r10\n\t"

#define PT_STEP_1X2(a)                      \
    "ldrsb.w %[v], [%[w]], #1\n\t"          \
    "smlal %Q[s0], %R[s0], " a ", %[v]\n\t" \
    "ldrsb.w %[v], [%[u]], #1\n\t"          \
    "smlal %Q[s1], %R[s1], " a ", %[v]\n\t"

// Products of n values of a pair with the weights of two channels.
static inline __attribute__((always_inline)) void pt_add_1x2(const uint32_t *a, const int8_t *w,
                                                             const int8_t *u, int32_t n,
                                                             int64_t *s0, int64_t *s1) {
    int32_t v;
    __asm__("subs %[n], #8\n\t"
            "blo 2f\n"
            "1:\n\t"                                                                // eight values
            "ldmia.w %[a]!, {r4, r5, r6, r8}\n\t"                                   //
            PT_STEP_1X2("r4") PT_STEP_1X2("r5") PT_STEP_1X2("r6") PT_STEP_1X2("r8") //
            "ldmia.w %[a]!, {r4, r5, r6, r8}\n\t"                                   //
            PT_STEP_1X2("r4") PT_STEP_1X2("r5") PT_STEP_1X2("r6") PT_STEP_1X2("r8") //
            "subs %[n], #8\n\t"
            "bhs 1b\n"
            "2:\n\t"
            "adds %[n], #8\n\t"
            "beq 4f\n"
            "3:\n\t"                   // the rest
            "ldr.w r4, [%[a]], #4\n\t" //
            PT_STEP_1X2("r4") "subs %[n], #1\n\t"
                              "bne 3b\n"
                              "4:"
            : [s0] "+r"(*s0), [s1] "+r"(*s1), [a] "+r"(a), [w] "+r"(w), [u] "+r"(u), [n] "+r"(n),
              [v] "=&r"(v)
            :
            : "r4", "r5", "r6", "r8", "cc", "memory");
}

#undef PT_STEP_1X2

static inline int32_t pt_first_of(int64_t sum) {
    return (int32_t)((uint32_t)sum << (32 - PT_PAIR_SHIFT)) >> (32 - PT_PAIR_SHIFT);
}

// The borrow of a negative first sum is the carry of the shift.
static inline int32_t pt_second_of(int64_t sum) {
    int32_t second;
    __asm__("lsrs %0, %Q1, %2\n\t"
            "adc %0, %0, %R1, lsl %3"
            : "=&r"(second)
            : "r"(sum), "i"(PT_PAIR_SHIFT), "i"(32 - PT_PAIR_SHIFT)
            : "cc");
    return second;
}

// Three pairs with a layer's channels.
typedef struct pt_product {
    const int32_t *bias, *multipliers, *shifts; // of the next channel
    int32_t bias_step;                          // bytes to the bias of the one after it
    int8_t *out;
    int32_t out_step; // bytes between the outputs of patches
    const uint32_t *patches;
    int32_t depth;         // PT_CHUNK or less
    int32_t rounding;      // the output's offset and a half, doubled
    const int8_t *w, *end; // weights
} pt_product;

// The sums of a pair, doubled. r7 is free.
#define PT_SPLIT(low, high)                  \
    "lsrs.w r7, " low ", #23\n\t"            \
    "adc " high ", r7, " high ", lsl #9\n\t" \
    "lsl " low ", " low ", #9\n\t"           \
    "add " low ", r6, " low ", asr #8\n\t"   \
    "add " high ", r6, " high ", lsl #1\n\t"

// As pt_scale.
#define PT_SCALE_TO(sum, to)             \
    "mov.w r6, #0x80000000\n\t"          \
    "add.w r7, r9, " sum ", asr #31\n\t" \
    "smlal r6, r7, " sum ", r11\n\t"     \
    "asr.w r7, r7, r10\n\t"              \
    "ssat r7, #8, r7\n\t"                \
    "strb.w r7, [" to "]\n\t"

// The outputs of patches 0 to 5, where pt_scale takes all sums to them. r7 has the weights.
static inline void pt_multiply_3x1(pt_product *p) {
    __asm__ volatile("push {r7}\n\t"
                     "ldr r7, [%[p], #36]\n"
                     "0:\n\t" // a channel
                     "ldrd r11, r12, [%[p], #24]\n\t"
                     "movs r0, #0\n\t"
                     "movs r1, #0\n\t"
                     "movs r2, #0\n\t"
                     "movs r3, #0\n\t"
                     "movs r4, #0\n\t"
                     "movs r5, #0\n\t"
                     "subs r12, #8\n\t"
                     "blo 2f\n"
                     "1:\n\t"                                            // eight values
                     PT_STEP_3X1 PT_STEP_3X1 PT_STEP_3X1 PT_STEP_3X1     //
                         PT_STEP_3X1 PT_STEP_3X1 PT_STEP_3X1 PT_STEP_3X1 //
                     "subs r12, #8\n\t"
                     "bhs 1b\n"
                     "2:\n\t"
                     "adds r12, #8\n\t"
                     "beq 4f\n"
                     "3:\n\t" // the rest
                     PT_STEP_3X1 "subs r12, #1\n\t"
                     "bne 3b\n"
                     "4:\n\t"
                     "str r7, [%[p], #36]\n\t"
                     "ldmia.w %[p], {r6, r8, r9, r10}\n\t"
                     "ldr r7, [r6]\n\t"
                     "add r6, r6, r10\n\t"
                     "ldr r11, [r8], #4\n\t"
                     "ldr r12, [r9], #4\n\t"
                     "stmia.w %[p], {r6, r8, r9}\n\t"
                     "lsls r6, r7, #1\n\t"
                     "ldr r9, [%[p], #32]\n\t"
                     "mvn r10, r12\n\t"
                     "lsl r9, r9, r10\n\t"
                     "add r10, r10, #1\n\t"
                     "ldrd r8, r12, [%[p], #16]\n\t"
                     "add r7, r8, #1\n\t"
                     "str r7, [%[p], #16]\n\t"                                      //
                     PT_SPLIT("r0", "r1") PT_SPLIT("r2", "r3") PT_SPLIT("r4", "r5") //
                     PT_SCALE_TO("r0", "r8") PT_SCALE_TO("r1", "r8, r12")
                         PT_SCALE_TO("r2", "r8, r12, lsl #1")
                             PT_SCALE_TO("r4", "r8, r12, lsl #2") "add r8, r8, r12\n\t" PT_SCALE_TO(
                                 "r3", "r8, r12, lsl #1")
                                 PT_SCALE_TO("r5", "r8, r12, lsl #2") "ldrd r7, r6, [%[p], #36]\n\t"
                                                                      "cmp r7, r6\n\t"
                                                                      "bne 0b\n\t"
                                                                      "pop {r7}"
                     :
                     : [p] "r"(p)
                     : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12",
                       "cc", "memory");
}

#undef PT_STEP_3X1
#undef PT_SPLIT
#undef PT_SCALE_TO

// Takes a first sum out of its sum.
static inline void pt_take_first(int64_t *sum, int32_t *first) {
    int32_t part = pt_first_of(*sum);
    *first += part;
    *sum -= part;
}

// The sums of `depth` products of a pair with the weights w, then with u.
static __attribute__((noinline)) void pt_sum_1x2(const uint32_t *a, const int8_t *w,
                                                 const int8_t *u, int32_t depth, int32_t *sums) {
    int64_t s0 = 0, s1 = 0;
    int32_t first0 = 0, first1 = 0;
    for (;;) {
        int32_t n = depth < PT_CHUNK ? depth : PT_CHUNK;
        pt_add_1x2(a, w, u, n, &s0, &s1);
        depth -= n;
        if (depth == 0) {
            break;
        }
        a += PT_CHUNK, w += PT_CHUNK, u += PT_CHUNK;
        pt_take_first(&s0, &first0);
        pt_take_first(&s1, &first1);
    }
    sums[0] = first0 + pt_first_of(s0), sums[1] = pt_second_of(s0);
    sums[2] = first1 + pt_first_of(s1), sums[3] = pt_second_of(s1);
}

// The outputs of n sums, as pt_scale makes them.
static inline void pt_scale_sums(const pt_scaling *s, const int32_t *sums, int32_t n, int8_t *out,
                                 int32_t step) {
    for (const int32_t *end = sums + n; sums != end; out += step) {
        int32_t doubled = 2 * (*sums++ + s->bias);
        *out = (int8_t)pt_saturate_int8(pt_scale(doubled, s->multiplier, s->right, s->rounding));
    }
}

#endif
