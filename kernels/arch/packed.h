// Conditions of packed weights on each core, shared by the loops, by arch/pack, which writes the
// weights, and by pt_gemm_s8_use, which omits plain weights from .ptm files.
#ifndef PT_ARCH_PACKED_H
#define PT_ARCH_PACKED_H

#include <picotorch/kernel.h>
#include <stdbool.h>
#include <stdint.h>

// Returns the core that a build packs for: its own, or with PT_ANY_CORE the requested one.
static inline uint8_t pt_packs_for(uint8_t core) {
    return PT_HAS_ANY_CORE ? core : PT_CORE;
}

// ---- ARMv6-M

static inline bool pt_v6m_uses_packed(int32_t depth) {
    return depth > 47; // shorter patches go in larger blocks
}

// ---- the DSP extension

static inline uint32_t pt_word_of(int32_t low, int32_t high) {
    return ((uint32_t)low & 0xFFFF) | (uint32_t)high << 16;
}

// True if six patches at a time with plain weights are faster, for patches that lie in a row.
static inline bool pt_dsp_prefers_six(int32_t depth, int32_t channels) {
    return depth < 32 || channels < 16;
}

#endif
