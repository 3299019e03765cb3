// ARMv6-M: patches two by two. A word is the sum of a value of the first and 2^16 times the one of
// the second; multiplied by a weight it makes a product of both. The layer's offset, times the sum
// of a channel's weights, comes with the bias.
//
// Words lie in the order [two values][pair][value].
//
// With prepared weights, in blocks of one pair: a word is the sum of a value and 2^16 times the
// next; times the sum of a next weight and 2^16 times the one before it, it makes 2^16 times the
// sum of both products, among others. Words lie in the order [two values][patch].

enum {
    PT_PATCHES = 4,
    PT_CHANNEL_ROOM = 48, // channels at a time
};

static inline void pt_begin_layer(pt_layer *layer, void *scratch, uint32_t bytes) {
    uint32_t depth = ((uint32_t)layer->depth + 1) & ~1u;
    layer->block = scratch;
    layer->in_parts = true;
    layer->capacity = bytes / (2 * PT_PATCHES) >= depth ? PT_PATCHES : 2;
    layer->spare = (uint32_t *)scratch + depth; // behind one pair
    layer->spare_bytes = bytes - 4 * depth;
}

// Scratch for PT_CHANNEL_ROOM words behind a full block, or NULL.
static inline uint32_t *pt_room_behind(const pt_layer *layer) {
    uint32_t depth = ((uint32_t)layer->depth + 1) & ~1u, more = layer->capacity > 2 ? depth : 0;
    bool is_there = layer->spare_bytes >= 4 * more + sizeof(uint32_t[PT_CHANNEL_ROOM]);
    return is_there ? layer->spare + more : NULL;
}

void pt_take_channels(pt_layer *layer, uint32_t *room);

static inline int32_t pt_begin_block(pt_layer *layer, int32_t left) {
    bool full = left >= PT_PATCHES && layer->scales_fast && !layer->by_depth;
    layer->width = full ? layer->capacity : 2;
    return left < layer->width ? left : layer->width;
}

// From value k of patch i.
static inline uint32_t *pt_pair_at(const pt_layer *layer, int32_t i, int32_t k) {
    int32_t pairs = layer->width / 2;
    return (uint32_t *)layer->block + ((k & ~1) * pairs + (i & ~1) + (k & 1));
}

// Rows of `count` values, `step` apart, from value k of patch i on. Those of the first patch of a
// pair come first, and make the words.
void pt_pack_values(const pt_layer *layer, int32_t i, int32_t k, const int8_t *values,
                    int32_t count, int32_t rows, int32_t step);
void pt_pad(const pt_layer *layer, int32_t i, int32_t k, int32_t count);
