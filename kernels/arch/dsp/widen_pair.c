// Pack the weights of two channels for SMLAD: doubled int16 pairs, at load for packed layers
// (pack/dsp.c) and at run for some channels at a time (dsp/gemm_s8.c). Plain C, also built for the
// host.
#include "arch/gemm_s8.h"

// Weight k, doubled; 0 behind the last.
static inline int32_t twice(const int8_t *weights, int32_t depth, int32_t k) {
    return k < depth ? 2 * weights[k] : 0;
}

uint32_t *pt_widen_pair(const int8_t *weights, int32_t depth, uint32_t *to) {
    for (int32_t k = 0; k < depth; k += 4) {
        for (int32_t i = 0; i < 4; i++) {
            const int8_t *w = weights + i / 2 * depth;
            int32_t low = k + i % 2;
            *to++ = pt_word_of(twice(w, depth, low), twice(w, depth, low + 2));
        }
    }
    return to;
}
