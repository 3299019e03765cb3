// Assembler macros of the SMLAD tiles that read a band, on cores with the DSP extension: the step
// of 2 values x 2 channels x 4 (winograd.c), and entering an unrolled loop, the next block and the
// next row (winograd.c, tile_3x2.c).
#ifndef PT_ARCH_DSP_TILE_2X2_H
#define PT_ARCH_DSP_TILE_2X2_H

#include "arch/dsp/channel_loop.h"

// clang-format off

#ifdef PT_LOADS_BESIDE

enum { PT_STEP_BYTES = 64 }; // of a step

// The first words, in front of the first step: a step loads those of the next.
#define FIRST_WORDS                          \
    "ldr.w r0, [%[a]]\n\t"                   \
    "ldr.w r4, [%[w]]\n\t"                   \
    "ldr.w r1, [%[a], #4]\n\t"               \
    "ldr.w r6, [%[w], #8]\n\t"

#define PAIR_STEP(before_last)               \
    "smlad %[s0], r0, r4, %[s0]\n\t"         \
    "ldr.w r2, [%[a], #8]\n\t"               \
    "smlad %[s1], r1, r4, %[s1]\n\t"         \
    "ldr.w r5, [%[w], #4]\n\t"               \
    "smlad %[s2], r0, r6, %[s2]\n\t"         \
    "ldr.w r3, [%[a], #12]\n\t"              \
    "smlad %[s3], r1, r6, %[s3]\n\t"         \
    "ldr.w r8, [%[w], #12]\n\t"              \
    "smlad %[s0], r2, r5, %[s0]\n\t"         \
    "ldr.w r0, [%[a], #16]!\n\t"             \
    "smlad %[s1], r3, r5, %[s1]\n\t"         \
    "ldr.w r4, [%[w], #16]!\n\t"             \
    "smlad %[s2], r2, r8, %[s2]\n\t"         \
    "ldr.w r1, [%[a], #4]\n\t"               \
    before_last                              \
    "smlad %[s3], r3, r8, %[s3]\n\t"         \
    "ldr.w r6, [%[w], #8]\n\t"

#else

enum { PT_STEP_BYTES = 40 };

#define FIRST_WORDS

// Two words of each value with two of each channel.
#define PAIR_STEP(before_last)           \
    "ldmia.w %[a]!, {r0-r3}\n\t"         \
    "ldmia.w %[w]!, {r4-r6, r8}\n\t"     \
    "smlad %[s0], r0, r4, %[s0]\n\t"     \
    "smlad %[s1], r1, r4, %[s1]\n\t"     \
    "smlad %[s2], r0, r6, %[s2]\n\t"     \
    "smlad %[s3], r1, r6, %[s3]\n\t"     \
    "smlad %[s0], r2, r5, %[s0]\n\t"     \
    "smlad %[s1], r3, r5, %[s1]\n\t"     \
    "smlad %[s2], r2, r8, %[s2]\n\t"     \
    before_last                          \
    "smlad %[s3], r3, r8, %[s3]\n\t"

#endif

// Unrolled steps, entered at one of them. Behind them r2 has the value that `load` loads, and only
// r3 is free.
#define PAIR_STEPS(unrolled, load)       \
    "2:\n\t"                             \
    ".rept " unrolled " - 1\n\t"         \
    PAIR_STEP("")                        \
    ".endr\n\t"                          \
    PAIR_STEP(load)

// Turns the bytes of code in %[enter] into the address at which the steps are entered. ADR counts
// from a multiple of 4, which the assembler knows only by .balign, since -Os aligns to 2.
#define FIND_ENTRANCE                    \
    ".balign 4\n\t"                      \
    "ldr r1, %[enter]\n\t"               \
    "adr.w r0, 2f + 1\n\t"               \
    "add r0, r1\n\t"                     \
    "str r0, %[enter]\n\t"

// Moves from the block at r0 to the next, with r1 bytes to the next patch and the row's last block
// in r8; behind the last block branches to `end`. A load stands some instructions before its use,
// since M33 waits for it.
#define NEXT_BLOCK(patches, end)          \
    "cmp r0, r8\n\t"                      \
    "beq " end "\n\t"                     \
    "ldrd r4, r5, %[from]\n\t"            \
    "add r0, r0, r1, lsl #" patches "\n\t" \
    "cmp r0, r8\n\t"                      \
    "it hi\n\t"                           \
    "movhi r0, r8\n\t"                    \
    "add %[a], r4, r5\n\t"                \
    "str r0, %[out]\n\t"                  \
    "str %[a], %[from]\n\t"               \
    "b 1b\n"

// Moves to the next row, while rows are left.
#define NEXT_ROW(patches)                 \
    "add r0, r0, r1, lsl #" patches "\n\t" \
    "ldrd r3, r1, %[last]\n\t"           \
    "str r0, %[out]\n\t"                 \
    "add r3, r1\n\t"                     \
    "str r3, %[last]\n\t"                \
    "ldr r0, %[from]\n\t"                \
    "ldr r1, %[back]\n\t"                \
    "ldr r2, %[rows]\n\t"                \
    "add %[a], r0, r1\n\t"               \
    "subs r2, #1\n\t"                    \
    "str %[a], %[from]\n\t"              \
    "str r2, %[rows]\n\t"                \
    "bne 1b"

// clang-format on

// Returns the bytes of code before the entrance, `bytes` a step.
static inline uint32_t pt_spare_code(int32_t steps, int32_t unrolled, uint32_t bytes) {
    return (uint32_t)(unrolled - 1 - (steps - 1) % unrolled) * bytes;
}

// Stores multiplier, right shift and rounding of channel o.
static inline void pt_put_parameters(const pt_gemm_s8 *layer, int32_t o, uint32_t *to) {
    const int32_t shift = layer->output.shifts[o];
    to[0] = (uint32_t)layer->output.multipliers[o];
    to[1] = (uint32_t)-shift;
    to[2] = (uint32_t)pt_rounding(shift, layer->output.range.offset);
}

#endif
