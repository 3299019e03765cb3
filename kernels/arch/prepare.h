// Preparing constant weights in a check: in the order and the form in which the loops of a core
// read them. Plain C, so that the host makes the bytes of any core.
#ifndef PT_ARCH_PREPARE_H
#define PT_ARCH_PREPARE_H

#include "arch/patches.h"
#include "arch/rows.h"
#include <picotorch/kernel.h>

// pt_layer_bytes of a layer, whose channels are all of it or of a group.
void pt_prepare_layer_v6m(const pt_layer *layer, void *to);
void pt_prepare_layer_dsp(const pt_layer *layer, void *to);
// Writes of channel o the weights by twos, then bias with the offset, shift and multiplier. Returns
// the end; `fit` becomes 0 if two weights of a step are -128.
uint32_t *pt_prepare_channel_v6m(const pt_layer *layer, int32_t o, uint32_t *words, uint32_t *fit);
// pt_prepared_rows bytes of the rows of w.
void pt_prepare_rows_dsp(const pt_linear *p, const int8_t *w, void *to);

// Doubled weights of two channels: of each four the pairs (k0, k2) and (k1, k3) of one, then of the
// other. Zeros fill the last four. Returns the end.
uint32_t *pt_widen_pair(const int8_t *weights, int32_t depth, uint32_t *to);

// The core that a build prepares for: its own, or with PT_ANY_CORE the one asked for.
static inline uint8_t pt_prepares_for(uint8_t core) {
    return PT_HAS_ANY_CORE ? core : PT_CORE;
}

static inline void pt_prepare_layer(uint8_t core, const pt_layer *layer, void *to) {
    switch (pt_prepares_for(core)) {
    case PT_CORE_V6M:
        pt_prepare_layer_v6m(layer, to);
        break;
    case PT_CORE_DSP:
        pt_prepare_layer_dsp(layer, to);
        break;
    default:
        break;
    }
}

static inline void pt_prepare_rows(uint8_t core, const pt_linear *p, const int8_t *w, void *to) {
    if (pt_prepares_for(core) == PT_CORE_DSP) {
        pt_prepare_rows_dsp(p, w, to);
    }
}

// Bytes of scratch with which the loops of a core are at their best for groups of `channels`, in an
// image of a number of patches; 0 where pt_useful_scratch is enough. The loops keep prepared
// channels in it: for those that do not fit the patches are gathered again.
static inline uint32_t pt_most_scratch(uint8_t core, int32_t depth, int32_t channels,
                                       int32_t patches) {
    enum { MOST = 32768, FEWEST = 8, FEWEST_PATCHES = 48, OTHERS = 48, FEWEST_CHANNELS = 24 };
    const uint32_t even = ((uint32_t)depth + 1) & ~1u, n = (uint32_t)channels;
    if (even > MOST / 16 || (core != PT_CORE_V6M && core != PT_CORE_V7M)) {
        return 0;
    }
    if (core == PT_CORE_V7M) { // six patches, and the folded bias of each channel
        const uint32_t biases = n < 32 ? 32 : n, most = (MOST - 12 * even) / 4;
        return 12 * even + 4 * (biases < most ? biases : most);
    }
    const uint32_t channel = pt_layer_bytes(depth, 2) / 2, most = (MOST - 4 * even) / channel;
    if (!pt_v6m_takes_prepared(depth) || patches < FEWEST_PATCHES || (most < FEWEST && most < n)) {
        // Two pairs of patches.
        return pt_v6m_takes_prepared(depth) && n < FEWEST_CHANNELS ? 0 : 8 * even + 4 * OTHERS;
    }
    return 4 * even + channel * (n < most ? n : most);
}

// ---- for a build with PT_ANY_CORE

// Returns the form of a layer that the loops of a core read. in_rows: patches lie in a row in the
// input.
pt_prepared_use pt_layer_use(uint8_t core, const pt_layer *layer, bool in_rows);
// The same of rows, whose addends are read all the same; `constant` when these cannot change.
pt_prepared_use pt_rows_use(uint8_t core, const pt_linear *p, bool constant);
// The products of n patches, `stride` bytes apart, with prepared weights.
void pt_multiply_restored(const pt_layer *layer, const int8_t *patches, int32_t stride, int32_t n,
                          int8_t *out);

// Makes a layer plain, if the context has memory for what is restored. A later run finds it there.
void pt_restore_layer(pt_context *c, pt_layer *layer, int32_t groups);

// Keeps room at the end of the scratch to restore a channel where there is something prepared.
// Returns the bytes that are left of at least pt_least_scratch.
static inline uint32_t pt_keep_room(pt_layer *layer, void *scratch, uint32_t bytes) {
#if PT_HAS_ANY_CORE
    bytes -= layer->prepared ? (uint32_t)layer->depth : 0;
    layer->restored = (int8_t *)scratch + bytes;
#else
    (void)layer, (void)scratch;
#endif
    return bytes;
}

#endif
