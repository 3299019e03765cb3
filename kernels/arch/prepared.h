// Chooses between prepared and plain weights of a layer, for loops that can take both.
#ifndef PT_ARCH_PREPARED_H
#define PT_ARCH_PREPARED_H

#include <stdbool.h>
#include <stdint.h>

// ---- ARMv6-M

static inline bool pt_v6m_takes_prepared(int32_t depth) {
    return depth > 47; // shorter patches are taken in larger blocks
}

// ---- the DSP extension

// True of patches that lie in a row where six at a time, of plain weights, are the quicker way.
static inline bool pt_dsp_prefers_six(int32_t depth, int32_t channels) {
    return depth < 32 || channels < 16;
}

#endif
