// Patches two by two, for cores that multiply one pair of registers at a time: a word has a value
// of each, offset added, the first in its low bits. Multiplied by a weight it makes a product of
// both.
//
// Words lie in the order [value][pair].

// PT_CHUNK: the most products, of an int8 with its offset and a weight, whose sum stays in the low
// bits. ARMv6-M takes a sum out of each.
#if defined(__ARM_ARCH_7M__)
enum { PT_PATCHES = 6, PT_PAIR_SHIFT = 23, PT_CHUNK = (1 << (PT_PAIR_SHIFT - 1)) / (255 * 128) };
#else
enum { PT_PATCHES = 4, PT_PAIR_SHIFT = 16, PT_CHUNK = INT32_MAX };
#endif

enum { PT_CHANNEL_ROOM = 1 };

static inline void pt_begin_layer(pt_layer *layer, void *scratch, uint32_t bytes) {
    layer->block = scratch;
    bool room = bytes / (2 * PT_PATCHES) >= (uint32_t)layer->depth;
    layer->capacity = room && layer->depth <= PT_CHUNK ? PT_PATCHES : 2;
}

static inline void pt_take_channels(pt_layer *layer, uint32_t *room) {
    (void)room;
    layer->scales_fast = !pt_narrows(&layer->output.range) && pt_layer_scales_fast(layer);
}

// True when blocks of PT_PATCHES can be had; all others are pairs.
static inline bool pt_takes_all(const pt_layer *layer) {
    return layer->capacity == PT_PATCHES && layer->scales_fast;
}

static inline int32_t pt_begin_block(pt_layer *layer, int32_t left) {
    layer->width = left >= PT_PATCHES && pt_takes_all(layer) ? PT_PATCHES : 2;
    return left < layer->width ? left : layer->width;
}

static inline uint32_t *pt_pair_at(const pt_layer *layer, int32_t i, int32_t k) {
    return (uint32_t *)layer->block + (k * layer->width + i) / 2;
}

static inline void pt_pack_first(uint32_t *to, int32_t pairs, int32_t offset, const int8_t *values,
                                 const int8_t *end) {
    offset += (int32_t)((uint32_t)offset << PT_PAIR_SHIFT);
#pragma GCC unroll 4
    for (; values != end; to += pairs) {
        *to = (uint32_t)(*values++ + offset);
    }
}

static inline void pt_pack_second(uint32_t *to, int32_t pairs, const int8_t *values,
                                  const int8_t *end) {
#pragma GCC unroll 4
    for (; values != end; to += pairs) {
        *to += (uint32_t)*values++ << PT_PAIR_SHIFT;
    }
}

// Values of the first patch of a pair come first: with them comes the offset of the second.
static inline void pt_pack(const pt_layer *layer, int32_t i, int32_t k, const int8_t *values,
                           int32_t count) {
    uint32_t *to = pt_pair_at(layer, i, k);
    const int8_t *end = values + count;
    if (i & 1) {
        if (layer->width == 2) {
            pt_pack_second(to, 1, values, end);
        } else {
            pt_pack_second(to, PT_PATCHES / 2, values, end);
        }
    } else if (layer->width == 2) {
        pt_pack_first(to, 1, layer->offset, values, end);
    } else {
        pt_pack_first(to, PT_PATCHES / 2, layer->offset, values, end);
    }
}

static inline void pt_pad(const pt_layer *layer, int32_t i, int32_t k, int32_t count) {
    uint32_t *to = pt_pair_at(layer, i, k);
    int32_t pairs = layer->width / 2;
    uint32_t offset = (uint32_t)layer->offset << PT_PAIR_SHIFT;
    for (; count > 0; count--, to += pairs) {
        *to = i & 1 ? *to - offset : offset;
    }
}
