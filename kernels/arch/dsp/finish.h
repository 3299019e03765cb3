// Parts of loops in assembler, for cores with the DSP extension.
#ifndef PT_ARCH_DSP_FINISH_H
#define PT_ARCH_DSP_FINISH_H

// clang-format off

// The steps of a sum: an unrolled loop that is entered behind what it has too many.
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

// As pt_scale and pt_saturate_int8 do, of a doubled sum.
#define FINISH_DOUBLED(sum, multiplier, right, rounding, spare) \
    "add " spare ", " rounding ", " sum ", asr #31\n\t"         \
    "smmlar " sum ", " sum ", " multiplier ", " spare "\n\t"    \
    "asr " sum ", " sum ", " right "\n\t"                       \
    "ssat " sum ", #8, " sum "\n\t"

#define FINISH(sum, multiplier, right, rounding, spare) \
    "lsl " sum ", " sum ", #1\n\t"                      \
    FINISH_DOUBLED(sum, multiplier, right, rounding, spare)

// clang-format on

// From a shift, its negative and the rounding.
#define ROUNDING(rounding, right, twice)            \
    "mvn " rounding ", " right "\n\t"               \
    "lsl " rounding ", " twice ", " rounding "\n\t" \
    "rsb " right ", " right ", #0\n\t"

#endif
