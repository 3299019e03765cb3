// The vector ISAs of the host's int8 loops: SSE2 and AVX2, or NEON, and the test for multipliers
// and shifts that they cover.
#ifndef PT_ARCH_HOST_VECTOR_ISA_H
#define PT_ARCH_HOST_VECTOR_ISA_H

#include "arch/requantize.h"
#include "arch/vectors.h"

#if defined(PT_X86)
#include "arch/host/avx2.h"
#include "arch/host/sse2.h"
#else
#include "arch/host/neon.h"
#endif

// True if vectors support all multipliers and shifts.
static inline bool pt_scales_by_vectors(const pt_channels *output, int32_t n) {
    bool fast = true;
    for (int32_t o = 0; o < n; o++) {
        int32_t multiplier = output->multipliers[o], shift = output->shifts[o];
        fast = fast && multiplier >= 0 && shift < 0 && shift >= -31;
    }
    return fast;
}

#endif
