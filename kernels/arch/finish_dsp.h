// From sums to outputs in assembler, for cores with the DSP extension.
#ifndef PT_ARCH_FINISH_DSP_H
#define PT_ARCH_FINISH_DSP_H

// As pt_scale and pt_saturate_int8 do, of a doubled sum.
#define FINISH_DOUBLED(sum, multiplier, right, rounding, spare) \
    "add " spare ", " rounding ", " sum ", asr #31\n\t"         \
    "smmlar " sum ", " sum ", " multiplier ", " spare "\n\t"    \
    "asr " sum ", " sum ", " right "\n\t"                       \
    "ssat " sum ", #8, " sum "\n\t"

#define FINISH(sum, multiplier, right, rounding, spare) \
    "lsl " sum ", " sum ", #1\n\t" FINISH_DOUBLED(sum, multiplier, right, rounding, spare)

// From a shift, its negative and the rounding.
#define ROUNDING(rounding, right, twice)            \
    "mvn " rounding ", " right "\n\t"               \
    "lsl " rounding ", " twice ", " rounding "\n\t" \
    "rsb " right ", " right ", #0\n\t"

#endif
