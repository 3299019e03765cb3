// Pack the weights of two channels for SMLAD: doubled int16 pairs, at load for packed layers
// (pack/dsp.c) and at run for some channels at a time (dsp/gemm_s8.c). Plain C, also built for the
// host.
#include "arch/gemm_s8.h"

// Writes four weights of one channel.
static inline void widen_four(const int8_t *w, uint32_t *to) {
    to[0] = pt_word_of(2 * w[0], 2 * w[2]);
    to[1] = pt_word_of(2 * w[1], 2 * w[3]);
}

uint32_t *pt_widen_pair(const int8_t *weights, int32_t depth, uint32_t *to) {
    const int8_t *first = weights, *second = weights + depth;
    for (int32_t k = depth; k >= 4; k -= 4, first += 4, second += 4, to += 4) {
        widen_four(first, to);
        widen_four(second, to + 2);
    }
    if (depth & 3) {
        int8_t rest[2][4] = {{0}};
        for (int32_t k = 0; k < (depth & 3); k++) {
            rest[0][k] = first[k];
            rest[1][k] = second[k];
        }
        widen_four(rest[0], to);
        widen_four(rest[1], to + 2);
        to += 4;
    }
    return to;
}
