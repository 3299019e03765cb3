// ARMv7-M: patches two by two. A word is the sum of a value of the first, offset added, and 2^23
// times the one of the second; multiplied by a weight it makes a product of both.
//
// Words lie in the order [value][pair].
//
// With prepared weights, where there is one pair: a word is the sum of a value, offset added, and
// 2^23 times the next; times the sum of a next weight and 2^23 times the one before it, it makes
// 2^23 times the sum of both products, among others. Words lie in the order [two values][patch].

#include "../pack_by_depth.h"

enum {
    PT_PATCHES = 6,
    PT_PAIR_SHIFT = PT_SHIFT_V7M,
    PT_CHUNK = PT_CHUNK_V7M,
    PT_CHANNEL_ROOM = 1,
};

static inline void pt_begin_layer(pt_layer *layer, void *scratch, uint32_t bytes) {
    layer->block = scratch;
    layer->capacity = pt_v7m_takes_six(layer->depth, bytes) ? PT_PATCHES : 2;
}

static inline void pt_take_channels(pt_layer *layer, uint32_t *room) {
    (void)room;
    layer->scales_fast =
        !pt_narrows(&layer->output.range) && (layer->prepared || pt_layer_scales_fast(layer));
}

// True when blocks of PT_PATCHES can be had; all others are pairs.
static inline bool pt_takes_all(const pt_layer *layer) {
    return layer->capacity == PT_PATCHES && layer->scales_fast;
}

static inline bool pt_takes_prepared(const pt_layer *layer) {
    return layer->prepared && layer->scales_fast && pt_v7m_takes_prepared(layer->depth);
}

static inline int32_t pt_begin_block(pt_layer *layer, int32_t left) {
    layer->width = left >= PT_PATCHES && pt_takes_all(layer) ? PT_PATCHES : 2;
    layer->by_depth = layer->width == 2 && pt_takes_prepared(layer);
    return left < layer->width ? left : layer->width;
}

static inline uint32_t *pt_pair_at(const pt_layer *layer, int32_t i, int32_t k) {
    return (uint32_t *)layer->block + (k * layer->width + i) / 2;
}

// Rows of `count` values, `step` apart, from value k of patch i on. Those of the first patch of a
// pair come first: with them comes the offset of the second.
void pt_pack_values(const pt_layer *layer, int32_t i, int32_t k, const int8_t *values,
                    int32_t count, int32_t rows, int32_t step);
void pt_pad(const pt_layer *layer, int32_t i, int32_t k, int32_t count);
