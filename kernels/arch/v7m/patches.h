// ARMv7-M: patches two by two. A word is the sum of a value of the first and 2^16 times the one of
// the second; multiplied by a weight it makes a product of both. The layer's offset, times the sum
// of a channel's weights, comes with the bias.
//
// Words lie in the order [two values][pair][value].

enum {
    PT_PATCHES = 6,
    PT_CHANNEL_ROOM = 32, // channels at a time
};

static inline void pt_begin_layer(pt_layer *layer, void *scratch, uint32_t bytes) {
    uint32_t depth = ((uint32_t)layer->depth + 1) & ~1u;
    layer->block = scratch;
    layer->in_parts = true;
    layer->capacity = bytes / (2 * PT_PATCHES) >= depth ? PT_PATCHES : 2;
    layer->spare = (uint32_t *)scratch + (uint32_t)layer->capacity / 2 * depth;
    layer->spare_bytes = bytes - 2 * (uint32_t)layer->capacity * depth;
}

// Scratch for PT_CHANNEL_ROOM words, or NULL.
static inline uint32_t *pt_room_behind(const pt_layer *layer) {
    return layer->spare_bytes >= sizeof(uint32_t[PT_CHANNEL_ROOM]) ? layer->spare : NULL;
}

// With all the room there is, where it is that.
void pt_take_channels(pt_layer *layer, uint32_t *room);

// Blocks of PT_PATCHES where they can be had; all others are pairs.
static inline int32_t pt_begin_block(pt_layer *layer, int32_t left) {
    layer->width = left >= PT_PATCHES && layer->scales_fast ? layer->capacity : 2;
    return left < layer->width ? left : layer->width;
}

// From value k of patch i.
static inline uint32_t *pt_pair_at(const pt_layer *layer, int32_t i, int32_t k) {
    return (uint32_t *)layer->block + ((k & ~1) * (layer->width / 2) + (i & ~1) + (k & 1));
}

// Rows of `count` values, `step` apart, from value k of patch i on. Those of the first patch of a
// pair come first, and make the words.
void pt_pack_values(const pt_layer *layer, int32_t i, int32_t k, const int8_t *values,
                    int32_t count, int32_t rows, int32_t step);
void pt_pad(const pt_layer *layer, int32_t i, int32_t k, int32_t count);

// Patches i, of an even number, and i + 1, whose values lie `next` bytes behind those of the first.
void pt_pack_two(const pt_layer *layer, int32_t i, const int8_t *values, int32_t next,
                 int32_t count, int32_t rows, int32_t step);
#define PT_PACKS_TWO
