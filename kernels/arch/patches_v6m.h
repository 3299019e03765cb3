// ARMv6-M: patches two by two. A word is the sum of a value of the first and 2^16 times the one of
// the second; multiplied by a weight it makes a product of both. The layer's offset, times the sum
// of a channel's weights, comes with the bias.
//
// Words lie in the order [two values][pair][value].

enum {
    PT_PATCHES = 4,
    PT_CHANNEL_ROOM = 64, // channels at a time
};

static inline void pt_begin_layer(pt_layer *layer, void *scratch, uint32_t bytes) {
    uint32_t depth = ((uint32_t)layer->depth + 1) & ~1u;
    layer->block = scratch;
    layer->capacity = bytes / (2 * PT_PATCHES) >= depth ? PT_PATCHES : 2;
}

// Folds the layer's offset into the bias of each channel; fast where no weight is -128, too.
void pt_fold_offset(pt_layer *layer, int32_t *folded);

static inline void pt_take_channels(pt_layer *layer, uint32_t *room) {
    layer->channels = layer->channels < PT_CHANNEL_ROOM ? layer->channels : PT_CHANNEL_ROOM;
    layer->scales_fast = pt_layer_scales_fast(layer);
    layer->folded = (int32_t *)room;
    pt_fold_offset(layer, (int32_t *)room);
}

static inline int32_t pt_begin_block(pt_layer *layer, int32_t left) {
    layer->width = left >= PT_PATCHES ? layer->capacity : 2;
    return left < layer->width ? left : layer->width;
}

// From value k of patch i.
static inline uint32_t *pt_pair_at(const pt_layer *layer, int32_t i, int32_t k) {
    int32_t pairs = layer->width / 2;
    return (uint32_t *)layer->block + ((k & ~1) * pairs + (i & ~1) + (k & 1));
}

// Values of the first patch of a pair come first, and make the words.
static inline void pt_pack(const pt_layer *layer, int32_t i, int32_t k, const int8_t *values,
                           int32_t count) {
    uint32_t *to = pt_pair_at(layer, i, k);
    int32_t gap = layer->width - 2; // behind an odd value
    for (const int8_t *end = values + count; values != end; to += 1 + (k++ & 1 ? gap : 0)) {
        *to = i & 1 ? *to + ((uint32_t)*values++ << 16) : (uint32_t)*values++;
    }
}

static inline void pt_pad(const pt_layer *layer, int32_t i, int32_t k, int32_t count) {
    int8_t zero_point = (int8_t)-layer->offset;
    for (; count > 0; count--) {
        pt_pack(layer, i, k++, &zero_point, 1);
    }
}
