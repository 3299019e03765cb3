// int8 GEMM tiles for ARMv7-M, requantized: 6 patches x 1 channel (pt_multiply_3x1) and 2 patches x
// 2 channels (pt_multiply_1x2). A MLA makes two products, of values of two patches with one weight.
// Two of them, with the next value and weight, and PT_HALVES beside them fit into 16 bits each,
// without a sign. All are added in 32 bits, and the sums of the second patch alone beside it. MLA
// takes 2 cycles, SMLAL 7.
#ifndef PT_ARCH_V7M_PRODUCTS_H
#define PT_ARCH_V7M_PRODUCTS_H

#include "arch/offsets.h"
#include <stdint.h>

// Arguments of the tile loops: patches, channels and outputs of a layer.
typedef struct pt_tile_args {
    const int32_t *bias, *multipliers, *shifts; // of the next channel
    int32_t rounding;                           // the output's offset and a half, doubled
    int8_t *out;
    int32_t out_step; // bytes between the outputs of patches
    const uint32_t *patches;
    int32_t depth;
    const int8_t *weights, *end;
    int32_t first[2]; // initial sums, of all and of the second patch, which cancel the PT_HALVES
} pt_tile_args;

PT_OFFSET(pt_tile_args, bias, 0);
PT_OFFSET(pt_tile_args, multipliers, 4);
PT_OFFSET(pt_tile_args, shifts, 8);
PT_OFFSET(pt_tile_args, rounding, 12);
PT_OFFSET(pt_tile_args, out, 16);
PT_OFFSET(pt_tile_args, out_step, 20);
PT_OFFSET(pt_tile_args, patches, 24);
PT_OFFSET(pt_tile_args, depth, 28);
PT_OFFSET(pt_tile_args, weights, 32);
PT_OFFSET(pt_tile_args, end, 36);
PT_OFFSET(pt_tile_args, first, 40);

// The sum of two products is -32,512 to 32,768.
enum { PT_HALF = 0x7F00, PT_HALVES = PT_HALF << 16 | PT_HALF };

// clang-format off

// r12 counts the depth: by the steps of the first loop, then by two values, then the last value.
// `rest` turns the negative count behind the first loop into the number of remaining values.
#define PT_LOOP(first, rest, two, one) \
    first                        \
    "adds r12, #" rest "\n\t"  \
    "beq 5f\n\t"               \
    "subs r12, #2\n\t"         \
    "bmi 4f\n"                  \
    "3:\n\t"                   \
    two                          \
    "subs r12, #2\n\t"         \
    "bpl 3b\n"                  \
    "4:\n\t"                   \
    "adds r12, #2\n\t"         \
    "beq 5f\n\t"               \
    one                          \
    "5:\n\t"

// Adds two products of a pair in `a` and `b` to the sums of both patches.
#define PT_ADD(a, b, v, w, all, second)      \
    "mla " a ", " a ", " v ", lr\n\t"        \
    "mla " a ", " b ", " w ", " a "\n\t"     \
    "add " all ", " all ", " a "\n\t"        \
    "add " second ", " second ", " a ", lsr #16\n\t"

// Loads the parameters of the next channel: r8 output, r9 rounding, r10 right shifts, r11
// multiplier, r12 step between outputs, r7 doubled bias.
#define PT_NEXT_CHANNEL                 \
    "ldmia.w lr, {r6, r8, r9, r10}\n\t" \
    "ldr r7, [r6], #4\n\t"              \
    "ldr r11, [r8], #4\n\t"             \
    "ldr r12, [r9], #4\n\t"             \
    "stmia.w lr, {r6, r8, r9}\n\t"      \
    "lsls r7, r7, #1\n\t"               \
    "mvn r6, r12\n\t"                   \
    "lsl r9, r10, r6\n\t"               \
    "add r10, r6, #1\n\t"               \
    "ldrd r8, r12, [lr, #16]\n\t"

// Computes the sums of a pair, doubled, with the bias.
#define PT_SPLIT(all, second)                            \
    "sub " all ", " all ", " second ", lsl #16\n\t"      \
    "add " second ", r7, " second ", lsl #1\n\t"         \
    "add " all ", r7, " all ", lsl #1\n\t"

// Requantizes a doubled sum as pt_scale does. Overwrites r6 and r7.
#define PT_SCALE_TO(sum, to)             \
    "smull r6, r7, " sum ", r11\n\t"     \
    "add " sum ", r9, " sum ", asr #31\n\t" \
    "lsls r6, r6, #1\n\t"                \
    "adc r7, r7, " sum "\n\t"            \
    "asr.w r7, r7, r10\n\t"              \
    "ssat r7, #8, r7\n\t"                \
    "strb.w r7, [" to "]\n\t"

// ---- three pairs, a channel at a time: r11 patches, r7 weights

// Multiplies unrolled values `k` and `k` + 1 with the weights in r9 and r10.
#define PT_PAIRS(k)                            \
    "ldr.w r6, [r11, #12 * " k "]\n\t"         \
    "ldr.w r8, [r11, #12 * " k " + 4]\n\t"     \
    PT_ADD("r6", "r8", "r9", "r10", "r0", "r1") \
    "ldrd r6, r8, [r11, #12 * " k " + 8]\n\t"  \
    PT_ADD("r6", "r8", "r9", "r10", "r2", "r3") \
    "ldrd r6, r8, [r11, #12 * " k " + 16]\n\t" \
    PT_ADD("r6", "r8", "r9", "r10", "r4", "r5")

#define PT_TWO(k)                       \
    "ldrsb.w r9, [r7, #" k "]\n\t"      \
    "ldrsb.w r10, [r7, #" k " + 1]\n\t" \
    PT_PAIRS(k)

// Computes the outputs of patches 0 to 5.
static inline void pt_multiply_3x1(const pt_tile_args *args) {
    register const pt_tile_args *p __asm__("lr") = args;
    __asm__ volatile(
        "push {lr}\n"
        "0:\n\t"
        "ldrd r0, r1, [lr, #40]\n\t"
        "ldr r7, [lr, #32]\n\t"
        "ldrd r11, r12, [lr, #24]\n\t"
        "mov r2, r0\n\t"
        "mov r3, r1\n\t"
        "mov r4, r0\n\t"
        "mov r5, r1\n\t"
        "mov lr, %[halves]\n\t"
        PT_LOOP(
            "tst r12, #8\n\t"
            "beq 6f\n\t"
            "subs r7, #8\n\t"
            "sub r11, #96\n\t"
            "sub r12, #8\n\t"
            "b 7f\n"
            "6:\n\t"
            "subs r12, #16\n\t"
            "blo 2f\n"
            "1:\n\t"
            PT_TWO("0") PT_TWO("2") PT_TWO("4") PT_TWO("6")
            "7:\n\t"
            PT_TWO("8") PT_TWO("10") PT_TWO("12") PT_TWO("14")
            "adds r7, #16\n\t"
            "add r11, #192\n\t"
            "subs r12, #16\n\t"
            "bhs 1b\n"
            "2:\n\t",
            "16",
            PT_TWO("0")
            "adds r7, #2\n\t"
            "add r11, #24\n\t",
            "ldrsb.w r9, [r7], #1\n\t"
            "mov r10, #0\n\t"
            PT_PAIRS("0"))
        "ldr lr, [sp]\n\t"
        "str r7, [lr, #32]\n\t"
        PT_NEXT_CHANNEL
        PT_SPLIT("r0", "r1")
        PT_SPLIT("r2", "r3")
        PT_SPLIT("r4", "r5")
        "add r7, r8, #1\n\t"
        "str r7, [lr, #16]\n\t"
        PT_SCALE_TO("r0", "r8")
        PT_SCALE_TO("r1", "r8, r12")
        PT_SCALE_TO("r2", "r8, r12, lsl #1")
        PT_SCALE_TO("r4", "r8, r12, lsl #2")
        "add r8, r8, r12\n\t"
        PT_SCALE_TO("r3", "r8, r12, lsl #1")
        PT_SCALE_TO("r5", "r8, r12, lsl #2")
        "ldrd r7, r6, [lr, #32]\n\t"
        "cmp r7, r6\n\t"
        "bne 0b\n\t"
        "add sp, #4"
        : "+r"(p)
        : [halves] "i"(PT_HALVES)
        : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "cc",
        "memory");
}

#undef PT_PAIRS
#undef PT_TWO

// ---- a pair, two channels at a time: r11 patches, r7 and r10 weights

#define PT_TWO(k)                               \
    "ldr.w r4, [r11, #4 * " k "]\n\t"           \
    "ldr.w r5, [r11, #4 * " k " + 4]\n\t"       \
    "ldrsb.w r6, [r7, #" k "]\n\t"              \
    "ldrsb.w r8, [r7, #" k " + 1]\n\t"          \
    "mla r6, r4, r6, lr\n\t"                    \
    "mla r6, r5, r8, r6\n\t"                    \
    "ldrsb.w r8, [r10, #" k "]\n\t"             \
    "ldrsb.w r9, [r10, #" k " + 1]\n\t"         \
    "add r0, r0, r6\n\t"                        \
    "add r1, r1, r6, lsr #16\n\t"               \
    PT_ADD("r4", "r5", "r8", "r9", "r2", "r3")

// Computes the outputs of patches 0 and 1, of an even number of channels.
static inline void pt_multiply_1x2(const pt_tile_args *args) {
    register const pt_tile_args *p __asm__("lr") = args;
    __asm__ volatile(
        "push {lr}\n"
        "0:\n\t"
        "ldrd r0, r1, [lr, #40]\n\t"
        "ldr r7, [lr, #32]\n\t"
        "ldrd r11, r12, [lr, #24]\n\t"
        "mov r2, r0\n\t"
        "mov r3, r1\n\t"
        "add r10, r7, r12\n\t"
        "mov lr, %[halves]\n\t"
        PT_LOOP(
            "subs r12, #8\n\t"
            "blo 2f\n"
            "1:\n\t"
            PT_TWO("0") PT_TWO("2") PT_TWO("4") PT_TWO("6")
            "adds r7, #8\n\t"
            "add r10, #8\n\t"
            "add r11, #32\n\t"
            "subs r12, #8\n\t"
            "bhs 1b\n"
            "2:\n\t",
            "8",
            PT_TWO("0")
            "adds r7, #2\n\t"
            "add r10, #2\n\t"
            "add r11, #8\n\t",
            "ldr.w r4, [r11]\n\t"
            "ldrsb.w r6, [r7], #1\n\t"
            "ldrsb.w r8, [r10], #1\n\t"
            "mla r6, r4, r6, lr\n\t"
            "mla r8, r4, r8, lr\n\t"
            "add r0, r0, r6\n\t"
            "add r1, r1, r6, lsr #16\n\t"
            "add r2, r2, r8\n\t"
            "add r3, r3, r8, lsr #16\n\t")
        "ldr lr, [sp]\n\t"
        "str r10, [lr, #32]\n\t"
        PT_NEXT_CHANNEL
        PT_SPLIT("r0", "r1")
        PT_SCALE_TO("r0", "r8")
        PT_SCALE_TO("r1", "r8, r12")
        PT_NEXT_CHANNEL
        PT_SPLIT("r2", "r3")
        "add r8, r8, #1\n\t"
        PT_SCALE_TO("r2", "r8")
        PT_SCALE_TO("r3", "r8, r12")
        "add r8, r8, #1\n\t"
        "str r8, [lr, #16]\n\t"
        "ldrd r7, r6, [lr, #32]\n\t"
        "cmp r7, r6\n\t"
        "bne 0b\n\t"
        "add sp, #4"
        : "+r"(p)
        : [halves] "i"(PT_HALVES)
        : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11",
        "r12", "cc", "memory");
}

// clang-format on

#undef PT_TWO
#undef PT_LOOP
#undef PT_ADD
#undef PT_NEXT_CHANNEL
#undef PT_SPLIT
#undef PT_SCALE_TO

#endif
