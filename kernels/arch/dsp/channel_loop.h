// State of the assembler loops over the channels of a layer (pt_loop), for the int8 GEMM and the
// convolutions of cores with the DSP extension: gemm_s8.c, conv_strip.c and the tiles. The loops
// keep it in memory because their sums and operands take all registers.
#ifndef PT_ARCH_DSP_CHANNEL_LOOP_H
#define PT_ARCH_DSP_CHANNEL_LOOP_H

#include "arch/dsp/finish.h"
#include "arch/gemm_s8.h"
#include "arch/offsets.h"

static inline int32_t pt_whole_depth(const pt_gemm_s8 *layer) {
    return (layer->depth + 3) & ~3;
}

// An address and a step.
typedef struct pt_pair {
    uintptr_t first, second;
} pt_pair;

PT_OFFSET(pt_pair, first, 0);
PT_OFFSET(pt_pair, second, 4);
PT_SIZE(pt_pair, 8);

typedef struct pt_loop {
    const uint32_t *start, *end; // of the block
    uint32_t skip;               // bytes of code of the steps that the first round skips
    pt_pair bias;                // of the next channel; bytes to the channel behind it
    pt_pair parameters;          // the next multiplier; bytes from behind it to the shift
    int32_t twice;               // 2 * output offset + 1
    pt_pair out;                 // of the first patch; bytes to the next patch's
    int8_t *out_end;
    int32_t depth;
} pt_loop;

enum { PT_STEPS = 8 }; // unrolled steps

// Begins a loop of `steps`, each of `bytes` of code.
pt_loop pt_begin_loop(const pt_gemm_s8 *layer, int32_t channels, int32_t steps, uint32_t bytes,
                      int8_t *out);

#endif
