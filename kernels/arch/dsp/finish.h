// Assembler macros for cores with the DSP extension: an unrolled loop that is entered in its
// middle, and requantization by SMMLAR and SSAT as pt_scale and pt_saturate_int8 do it.
#ifndef PT_ARCH_DSP_FINISH_H
#define PT_ARCH_DSP_FINISH_H

// clang-format off

// The steps of a sum: an unrolled loop that is entered behind its excess steps.
#define SUM(step, spare)         \
    "ldr " spare ", %[skip]\n\t" \
    "add pc, " spare "\n\t"      \
    "nop\n"                      \
    "2:\n\t"                     \
    ".rept 8\n\t"                \
    step                         \
    ".endr\n\t"                  \
    "ldr " spare ", %[end]\n\t"  \
    "cmp %[a], " spare "\n\t"    \
    "bne 2b\n\t"

// Requantizes doubled sums, as pt_scale and pt_saturate_int8 do. A product takes two cycles on M7
// and M33, so one sum is multiplied while the sum before it is shifted: FINISH_BEGIN for the first
// two, FINISH_NEXT for the others with the sum before the last as `done`, FINISH_END for the last
// two.
#define FINISH_BEGIN(sum, multiplier, rounding, spare)       \
    "add " spare ", " rounding ", " sum ", asr #31\n\t"      \
    "smmlar " sum ", " sum ", " multiplier ", " spare "\n\t"

#define FINISH_NEXT(done, right, sum, multiplier, rounding, spare) \
    "asr " done ", " done ", " right "\n\t"                        \
    "add " spare ", " rounding ", " sum ", asr #31\n\t"            \
    "ssat " done ", #8, " done "\n\t"                              \
    "smmlar " sum ", " sum ", " multiplier ", " spare "\n\t"

#define FINISH_END(done, right)               \
    "asr " done ", " done ", " right "\n\t"   \
    "ssat " done ", #8, " done "\n\t"

#define FINISH_TWO(s0, s1, multiplier, right, rounding, spare) \
    FINISH_BEGIN(s0, multiplier, rounding, spare)              \
    FINISH_BEGIN(s1, multiplier, rounding, spare)              \
    FINISH_END(s0, right)                                      \
    FINISH_END(s1, right)

#define FINISH_FOUR(s0, s1, s2, s3, multiplier, right, rounding, spare) \
    FINISH_BEGIN(s0, multiplier, rounding, spare)                       \
    FINISH_BEGIN(s1, multiplier, rounding, spare)                       \
    FINISH_NEXT(s0, right, s2, multiplier, rounding, spare)             \
    FINISH_NEXT(s1, right, s3, multiplier, rounding, spare)             \
    FINISH_END(s2, right)                                               \
    FINISH_END(s3, right)

// Requantizes two sums of each of two channels; r0 to r5 are multiplier, right shift and rounding
// of each. `load` may use r0 to r3.
#define FINISH_PAIRS(load)                                       \
    FINISH_BEGIN("%[s0]", "r0", "r2", "r6")                      \
    FINISH_BEGIN("%[s1]", "r0", "r2", "r6")                      \
    FINISH_NEXT("%[s0]", "r1", "%[s2]", "r3", "r5", "r6")        \
    FINISH_NEXT("%[s1]", "r1", "%[s3]", "r3", "r5", "r6")        \
    FINISH_END("%[s2]", "r4")                                    \
    load                                                         \
    FINISH_END("%[s3]", "r4")

#define DOUBLE(sum) "lsl " sum ", " sum ", #1\n\t"

// clang-format on

// Computes the negative of a shift and the rounding.
#define ROUNDING(rounding, right, twice)            \
    "mvn " rounding ", " right "\n\t"               \
    "lsl " rounding ", " twice ", " rounding "\n\t" \
    "rsb " right ", " right ", #0\n\t"

#endif
