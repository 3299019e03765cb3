// ARMv7-M: a SMLAL makes two products, and adds them in 64 bits, of which the low PT_PAIR_SHIFT are
// the first patch's.
#ifndef PT_ARCH_V7M_PRODUCTS_H
#define PT_ARCH_V7M_PRODUCTS_H

#include "../offsets.h"

// Pairs of patches, channels and outputs of a layer.
typedef struct pt_pairs {
    const int32_t *bias, *multipliers, *shifts; // of the next channel
    int32_t bias_step;                          // bytes to the bias of the one after it
    int8_t *out;
    int32_t out_step; // bytes between the outputs of patches
    const uint32_t *patches;
    int32_t depth;
    int32_t rounding; // the output's offset and a half, doubled
    const int8_t *weights, *end;
    int32_t left;      // of the depth
    int32_t firsts[2]; // what has been taken out of sums
} pt_pairs;

PT_OFFSET(pt_pairs, bias, 0);
PT_OFFSET(pt_pairs, multipliers, 4);
PT_OFFSET(pt_pairs, shifts, 8);
PT_OFFSET(pt_pairs, bias_step, 12);
PT_OFFSET(pt_pairs, out, 16);
PT_OFFSET(pt_pairs, out_step, 20);
PT_OFFSET(pt_pairs, patches, 24);
PT_OFFSET(pt_pairs, depth, 28);
PT_OFFSET(pt_pairs, rounding, 32);
PT_OFFSET(pt_pairs, weights, 36);
PT_OFFSET(pt_pairs, end, 40);
PT_OFFSET(pt_pairs, left, 44);
PT_OFFSET(pt_pairs, firsts, 48);

// clang-format off

// Eight values of `step` a time, the rest one by one. r12 counts.
#define PT_LOOP(eight, one) \
    "subs r12, #8\n\t"      \
    "blo 2f\n"              \
    "1:\n\t"                \
    eight                   \
    "subs r12, #8\n\t"      \
    "bhs 1b\n"              \
    "2:\n\t"                \
    "adds r12, #8\n\t"      \
    "beq 4f\n"              \
    "3:\n\t"                \
    one                     \
    "subs r12, #1\n\t"      \
    "bne 3b\n"              \
    "4:\n\t"

// Parameters of the next channel: r8 output, r9 rounding, r10 right shifts, r11 multiplier, r12
// step between outputs, r7 bias.
#define PT_NEXT_CHANNEL                   \
    "ldmia.w %[p], {r6, r8, r9, r10}\n\t" \
    "ldr r7, [r6]\n\t"                    \
    "add r6, r6, r10\n\t"                 \
    "ldr r11, [r8], #4\n\t"               \
    "ldr r12, [r9], #4\n\t"               \
    "stmia.w %[p], {r6, r8, r9}\n\t"      \
    "ldr r9, [%[p], #32]\n\t"             \
    "mvn r10, r12\n\t"                    \
    "lsl r9, r9, r10\n\t"                 \
    "add r10, r10, #1\n\t"                \
    "ldrd r8, r12, [%[p], #16]\n\t"

// As pt_scale, of a doubled sum. r6 and r7 are free.
#define PT_SCALE_TO(sum, to)             \
    "mov.w r6, #0x80000000\n\t"          \
    "add.w r7, r9, " sum ", asr #31\n\t" \
    "smlal r6, r7, " sum ", r11\n\t"     \
    "asr.w r7, r7, r10\n\t"              \
    "ssat r7, #8, r7\n\t"                \
    "strb.w r7, [" to "]\n\t"

// ---- three pairs, a channel at a time

#define PT_STEP_BY(multiply)         \
    "ldmia.w r11!, {r6, r8, r9}\n\t" \
    "ldrsb.w r10, [r7], #1\n\t"      \
    multiply " r0, r1, r6, r10\n\t"  \
    multiply " r2, r3, r8, r10\n\t"  \
    multiply " r4, r5, r9, r10\n\t"

#define PT_STEP PT_STEP_BY("smlal")

#define PT_SEVEN_STEPS \
    PT_STEP            \
    PT_STEP            \
    PT_STEP            \
    PT_STEP            \
    PT_STEP            \
    PT_STEP            \
    PT_STEP

// clang-format on

// The sums of a pair, doubled, with the doubled bias in r6. The borrow of a negative first sum is
// the carry of the shift.
#define PT_SPLIT(low, high)                  \
    "lsrs.w r7, " low ", #23\n\t"            \
    "adc " high ", r7, " high ", lsl #9\n\t" \
    "lsl " low ", " low ", #9\n\t"           \
    "add " low ", r6, " low ", asr #8\n\t"   \
    "add " high ", r6, " high ", lsl #1\n\t"

// The outputs of patches 0 to 5, for a depth of at most PT_CHUNK. r7 has the weights.
static inline void pt_multiply_3x1(pt_pairs *p) {
    // clang-format off
    __asm__ volatile(
        "ldr r7, [%[p], #36]\n"
        "0:\n\t"
        "ldrd r11, r12, [%[p], #24]\n\t"
        "subs r12, #8\n\t"
        "blo 5f\n\t"
        PT_STEP_BY("smull")
        PT_SEVEN_STEPS
        "subs r12, #8\n\t"
        "blo 2f\n"
        "1:\n\t"
        PT_STEP
        PT_SEVEN_STEPS
        "subs r12, #8\n\t"
        "bhs 1b\n"
        "2:\n\t"
        "adds r12, #8\n\t"
        "beq 4f\n"
        "3:\n\t"
        PT_STEP
        "subs r12, #1\n\t"
        "bne 3b\n"
        "4:\n\t"
        "str r7, [%[p], #36]\n\t"
        PT_NEXT_CHANNEL
        "lsls r6, r7, #1\n\t"
        "add r7, r8, #1\n\t"
        "str r7, [%[p], #16]\n\t"
        PT_SPLIT("r0", "r1")
        PT_SPLIT("r2", "r3")
        PT_SPLIT("r4", "r5")
        PT_SCALE_TO("r0", "r8")
        PT_SCALE_TO("r1", "r8, r12")
        PT_SCALE_TO("r2", "r8, r12, lsl #1")
        PT_SCALE_TO("r4", "r8, r12, lsl #2")
        "add r8, r8, r12\n\t"
        PT_SCALE_TO("r3", "r8, r12, lsl #1")
        PT_SCALE_TO("r5", "r8, r12, lsl #2")
        "ldrd r7, r6, [%[p], #36]\n\t"
        "cmp r7, r6\n\t"
        "bne 0b\n\t"
        "b 6f\n"
        "5:\n\t" // less than eight values
        "movs r0, #0\n\t"
        "movs r1, #0\n\t"
        "movs r2, #0\n\t"
        "movs r3, #0\n\t"
        "movs r4, #0\n\t"
        "movs r5, #0\n\t"
        "b 2b\n"
        "6:"
        :
        : [p] "r"(p)
        : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "cc",
        "memory");
    // clang-format on
}

#undef PT_STEP_BY
#undef PT_STEP
#undef PT_SEVEN_STEPS
#undef PT_SPLIT

// ---- a pair, two channels at a time

#define PT_STEP(a)                \
    "ldrsb.w r9, [r10], #1\n\t"   \
    "smlal r0, r1, " a ", r9\n\t" \
    "ldrsb.w r9, [r7], #1\n\t"    \
    "smlal r2, r3, " a ", r9\n\t"

// clang-format off

#define PT_FOUR_STEPS                    \
    "ldmia.w r11!, {r4, r5, r6, r8}\n\t" \
    PT_STEP("r4")                        \
    PT_STEP("r5")                        \
    PT_STEP("r6")                        \
    PT_STEP("r8")

// clang-format on

// Takes the first sum out of a sum, to one of p->firsts.
#define PT_TAKE_FIRST(low, high, at) \
    "sbfx r4, " low ", #0, #23\n\t"  \
    "ldr r5, [%[p], #" at "]\n\t"    \
    "add r5, r5, r4\n\t"             \
    "str r5, [%[p], #" at "]\n\t"    \
    "subs " low ", " low ", r4\n\t"  \
    "sbc " high ", " high ", r4, asr #31\n\t"

#define PT_SPLIT(low, high, first)           \
    "lsrs.w r6, " low ", #23\n\t"            \
    "adc " high ", r6, " high ", lsl #9\n\t" \
    "sbfx " low ", " low ", #0, #23\n\t"     \
    "add " low ", " low ", " first "\n\t"

#define PT_DOUBLE(sum)             \
    "add " sum ", " sum ", r7\n\t" \
    "lsl " sum ", " sum ", #1\n\t"

// The outputs of patches 0 and 1, of an even number of channels.
static inline void pt_multiply_1x2(pt_pairs *p) {
    // clang-format off
    __asm__ volatile(
        "0:\n\t"
        "ldr r10, [%[p], #36]\n\t"
        "ldrd r11, r12, [%[p], #24]\n\t"
        "add r7, r10, r12\n\t"
        "movs r0, #0\n\t"
        "movs r1, #0\n\t"
        "movs r2, #0\n\t"
        "movs r3, #0\n\t"
        "strd r0, r1, [%[p], #48]\n"
        "5:\n\t" // a chunk of the depth
        "subs.w r4, r12, %[chunk]\n\t"
        "str r4, [%[p], #44]\n\t"
        "it hi\n\t"
        "movhi r12, %[chunk]\n\t"
        PT_LOOP(PT_FOUR_STEPS PT_FOUR_STEPS, "ldr.w r4, [r11], #4\n\t" PT_STEP("r4"))
        "ldr r12, [%[p], #44]\n\t"
        "cmp r12, #0\n\t"
        "ble 6f\n\t"
        PT_TAKE_FIRST("r0", "r1", "48")
        PT_TAKE_FIRST("r2", "r3", "52")
        "b 5b\n"
        "6:\n\t"
        "str r7, [%[p], #36]\n\t"
        "ldrd r4, r5, [%[p], #48]\n\t"
        PT_SPLIT("r0", "r1", "r4")
        PT_SPLIT("r2", "r3", "r5")
        PT_NEXT_CHANNEL
        PT_DOUBLE("r0")
        PT_DOUBLE("r1")
        PT_SCALE_TO("r0", "r8")
        PT_SCALE_TO("r1", "r8, r12")
        PT_NEXT_CHANNEL
        PT_DOUBLE("r2")
        PT_DOUBLE("r3")
        "add r8, r8, #1\n\t"
        PT_SCALE_TO("r2", "r8")
        PT_SCALE_TO("r3", "r8, r12")
        "add r8, r8, #1\n\t"
        "str r8, [%[p], #16]\n\t"
        "ldrd r7, r6, [%[p], #36]\n\t"
        "cmp r7, r6\n\t"
        "bne 0b"
        :
        : [p] "r"(p), [chunk] "i"(PT_CHUNK)
        : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11",
        "r12", "cc", "memory");
    // clang-format on
}

#undef PT_STEP
#undef PT_FOUR_STEPS
#undef PT_TAKE_FIRST
#undef PT_SPLIT
#undef PT_DOUBLE
#undef PT_LOOP
#undef PT_NEXT_CHANNEL
#undef PT_SCALE_TO

// ---- a pair with prepared weights, a channel at a time

typedef struct pt_prepared_pair {
    const uint32_t *patches;
    int32_t fours; // values
    int8_t *out;
    int32_t out_step;
    const uint32_t *channel, *end; // prepared
    int32_t left;                  // of the fours
    int32_t unused;
    int32_t sums[2]; // of the chunks before
} pt_prepared_pair;

PT_OFFSET(pt_prepared_pair, patches, 0);
PT_OFFSET(pt_prepared_pair, fours, 4);
PT_OFFSET(pt_prepared_pair, out, 8);
PT_OFFSET(pt_prepared_pair, out_step, 12);
PT_OFFSET(pt_prepared_pair, channel, 16);
PT_OFFSET(pt_prepared_pair, end, 20);
PT_OFFSET(pt_prepared_pair, left, 24);
PT_OFFSET(pt_prepared_pair, sums, 32);

#define PT_FOUR                          \
    "ldmia.w r11!, {r4, r5, r6, r8}\n\t" \
    "ldrd r9, r10, [r7], #8\n\t"         \
    "smlal r0, r1, r4, r9\n\t"           \
    "smlal r2, r3, r5, r9\n\t"           \
    "smlal r0, r1, r6, r10\n\t"          \
    "smlal r2, r3, r8, r10\n\t"

// The sum in bits 23 to 45, with the borrow of a negative one below in the carry.
#define PT_MIDDLE(low, high)                 \
    "lsrs.w r4, " low ", #23\n\t"            \
    "adc " high ", r4, " high ", lsl #9\n\t" \
    "sbfx " high ", " high ", #0, #23\n\t"

#define PT_SCALE_TO(sum, to)             \
    "mov.w r0, #0x80000000\n\t"          \
    "add.w r2, r8, " sum ", asr #31\n\t" \
    "smlal r0, r2, " sum ", r5\n\t"      \
    "asr.w r2, r2, r6\n\t"               \
    "ssat r2, #8, r2\n\t"                \
    "strb.w r2, [" to "]\n\t"

// The outputs of patches 0 and 1.
static inline void pt_multiply_prepared(pt_prepared_pair *p) {
    // clang-format off
    __asm__ volatile(
        "ldr r7, [%[p], #16]\n"
        "0:\n\t"
        "ldrd r11, r12, [%[p]]\n\t"
        "movs r1, #0\n\t"
        "movs r3, #0\n\t"
        "strd r1, r3, [%[p], #32]\n"
        "5:\n\t" // a chunk of the depth
        "movs r0, #0\n\t"
        "movs r1, #0\n\t"
        "movs r2, #0\n\t"
        "movs r3, #0\n\t"
        "subs.w r4, r12, %[chunk]\n\t"
        "str r4, [%[p], #24]\n\t"
        "it hi\n\t"
        "movhi r12, %[chunk]\n\t"
        "subs r12, #4\n\t"
        "blo 2f\n"
        "1:\n\t"
        PT_FOUR
        PT_FOUR
        PT_FOUR
        PT_FOUR
        "subs r12, #4\n\t"
        "bhs 1b\n"
        "2:\n\t"
        "adds r12, #4\n\t"
        "beq 4f\n"
        "3:\n\t"
        PT_FOUR
        "subs r12, #1\n\t"
        "bne 3b\n"
        "4:\n\t"
        PT_MIDDLE("r0", "r1")
        PT_MIDDLE("r2", "r3")
        "ldrd r4, r5, [%[p], #32]\n\t"
        "add r1, r1, r4\n\t"
        "add r3, r3, r5\n\t"
        "ldr r12, [%[p], #24]\n\t"
        "cmp r12, #0\n\t"
        "ble 6f\n\t"
        "strd r1, r3, [%[p], #32]\n\t"
        "b 5b\n"
        "6:\n\t"
        "ldmia.w r7!, {r4, r5, r6, r8}\n\t"
        "ldrd r9, r10, [%[p], #8]\n\t"
        "add r1, r4, r1, lsl #1\n\t"
        "add r3, r4, r3, lsl #1\n\t"
        PT_SCALE_TO("r1", "r9")
        PT_SCALE_TO("r3", "r9, r10")
        "add r9, r9, #1\n\t"
        "str r9, [%[p], #8]\n\t"
        "ldr r4, [%[p], #20]\n\t"
        "cmp r7, r4\n\t"
        "bne 0b"
        :
        : [p] "r"(p), [chunk] "i"(PT_CHUNK / 4)
        : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11",
        "r12", "cc", "memory");
    // clang-format on
}

#undef PT_FOUR
#undef PT_MIDDLE
#undef PT_SCALE_TO

#endif
