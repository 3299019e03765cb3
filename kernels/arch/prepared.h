// Which layers the loops of a core take from what is prepared, where they can take the plain
// weights.
#ifndef PT_ARCH_PREPARED_H
#define PT_ARCH_PREPARED_H

#include "pack_by_depth.h"
#include <stdbool.h>
#include <stdint.h>

// ---- ARMv6-M

static inline bool pt_v6m_takes_prepared(int32_t depth) {
    return depth > 47; // shorter patches are taken in larger blocks
}

// ---- ARMv7-M

// The most products, of an int8 with its offset and a weight, whose sum stays in the low bits.
enum { PT_CHUNK_V7M = (1 << (PT_SHIFT_V7M - 1)) / (255 * 128) };

// True where `bytes` of scratch do for six patches at a time, of plain weights.
static inline bool pt_v7m_takes_six(int32_t depth, uint32_t bytes) {
    return bytes / 12 >= (uint32_t)depth && depth <= PT_CHUNK_V7M;
}

static inline bool pt_v7m_takes_prepared(int32_t depth) {
    return depth >= 64; // short patches are sooner packed the other way
}

// ---- the DSP extension

// True of patches that lie in a row where six at a time, of plain weights, are the quicker way.
static inline bool pt_dsp_prefers_six(int32_t depth, int32_t channels) {
    return depth < 32 || channels < 16;
}

#endif
