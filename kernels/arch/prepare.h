// What a check prepares of constant weights: in the order and the form in which the loops of a core
// read them. Plain C, so that the host makes the bytes of any core.
#ifndef PT_ARCH_PREPARE_H
#define PT_ARCH_PREPARE_H

#include "../core/kernel.h"
#include "patches.h"
#include "rows.h"

// pt_layer_bytes of a layer, whose channels are all of it or of a group.
void pt_prepare_layer_v6m(const pt_layer *layer, void *to);
void pt_prepare_layer_v7m(const pt_layer *layer, void *to);
void pt_prepare_layer_dsp(const pt_layer *layer, void *to);
// pt_prepared_rows bytes of the rows of w.
void pt_prepare_rows_dsp(const pt_linear *p, const int8_t *w, void *to);

// Doubled weights of two channels: of each four the pairs (k0, k2) and (k1, k3) of one, then of the
// other. Zeros fill the last four. Returns the end.
uint32_t *pt_widen_pair(const int8_t *weights, int32_t depth, uint32_t *to);

// A build prepares for its own core. The host's, with PT_ANY_CORE, does so for the one asked for.
#ifdef PT_ANY_CORE
#define PT_PREPARES_FOR(core) (core)
#else
#define PT_PREPARES_FOR(core) ((void)(core), PT_CORE)
#endif

static inline void pt_prepare_layer(uint8_t core, const pt_layer *layer, void *to) {
    switch (PT_PREPARES_FOR(core)) {
    case PT_CORE_V6M:
        pt_prepare_layer_v6m(layer, to);
        break;
    case PT_CORE_V7M:
        pt_prepare_layer_v7m(layer, to);
        break;
    case PT_CORE_DSP:
        pt_prepare_layer_dsp(layer, to);
        break;
    default:
        break;
    }
}

static inline void pt_prepare_rows(uint8_t core, const pt_linear *p, const int8_t *w, void *to) {
    if (PT_PREPARES_FOR(core) == PT_CORE_DSP) {
        pt_prepare_rows_dsp(p, w, to);
    }
}

#endif
