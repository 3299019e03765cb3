// Packing of constant weights at load, in the layout that the loops of a core read: 2 bytes a
// weight. Plain C, so that the host packs for any core. A build without PT_HAS_PACKING has none of
// this code: its packed weights come in a .ptm file.
#ifndef PT_ARCH_PACK_PACK_H
#define PT_ARCH_PACK_PACK_H

#include "arch/fully_connected_s8.h"
#include "arch/gemm_s8.h"
#include <picotorch/kernel.h>

#if PT_HAS_PACKING

// Write pt_gemm_s8_bytes of a layer; its channels are those of a group.
void pt_pack_layer_v6m(const pt_gemm_s8 *layer, void *to);
void pt_pack_layer_dsp(const pt_gemm_s8 *layer, void *to);
// Writes pt_packed_rows bytes of the rows of w.
void pt_pack_rows_dsp(const pt_linear *p, const int8_t *w, void *to);

static inline void pt_pack_layer(uint8_t core, const pt_gemm_s8 *layer, void *to) {
    switch (pt_packs_for(core)) {
    case PT_CORE_V6M:
        pt_pack_layer_v6m(layer, to);
        break;
    case PT_CORE_DSP:
        pt_pack_layer_dsp(layer, to);
        break;
    default:
        break;
    }
}

static inline void pt_pack_rows(uint8_t core, const pt_linear *p, const int8_t *w, void *to) {
    if (pt_packs_for(core) == PT_CORE_DSP) {
        pt_pack_rows_dsp(p, w, to);
    }
}

#else

static inline void pt_pack_layer(uint8_t core, const pt_gemm_s8 *layer, void *to) {
    (void)core, (void)layer, (void)to;
}

static inline void pt_pack_rows(uint8_t core, const pt_linear *p, const int8_t *w, void *to) {
    (void)core, (void)p, (void)w, (void)to;
}

#endif

// ---- for a build with PT_ANY_CORE

// Returns whether the loops of a core read a layer's weights packed, plain or both. in_rows:
// patches lie in a row of the input.
pt_packed_use pt_gemm_s8_use(uint8_t core, const pt_gemm_s8 *layer, bool in_rows);
// The same for the rows of a linear layer. `constant`: the addends never change; they are read in
// any case.
pt_packed_use pt_rows_use(uint8_t core, const pt_linear *p, bool constant);
// Multiplies n patches, `stride` bytes apart, with packed weights.
void pt_multiply_unpacked(const pt_gemm_s8 *layer, const int8_t *patches, int32_t stride, int32_t n,
                          int8_t *out);

// Unpacks a layer, if the context has memory for it. Later runs reuse the unpacked weights.
void pt_unpack_layer(pt_context *c, pt_gemm_s8 *layer, int32_t groups);

// Reserves the end of the scratch for an unpacked channel, if weights are packed. Returns the
// remaining bytes, at least pt_min_scratch.
static inline uint32_t pt_reserve_unpacked(pt_gemm_s8 *layer, void *scratch, uint32_t bytes) {
#if PT_HAS_ANY_CORE
    bytes -= layer->packed ? (uint32_t)layer->depth : 0;
    layer->unpacked = (int8_t *)scratch + bytes;
#else
    (void)layer, (void)scratch;
#endif
    return bytes;
}

#endif
