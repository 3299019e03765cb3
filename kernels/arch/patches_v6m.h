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

static inline void pt_pack_value(uint32_t *to, int32_t i, int32_t value) {
    *to = i & 1 ? *to + ((uint32_t)value << 16) : (uint32_t)value;
}

static inline void pt_pack_contiguous(uint32_t *to, int32_t i, const int8_t *values,
                                      int32_t count) {
    for (; count >= 4; count -= 4, values += 4, to += 4) {
        int32_t a = values[0], b = values[1], c = values[2], d = values[3];
        pt_pack_value(to, i, a);
        pt_pack_value(to + 1, i, b);
        pt_pack_value(to + 2, i, c);
        pt_pack_value(to + 3, i, d);
    }
    for (; count > 0; count--) {
        pt_pack_value(to++, i, *values++);
    }
}

// Values of the first patch of a pair come first, and make the words.
static inline void pt_pack(const pt_layer *layer, int32_t i, int32_t k, const int8_t *values,
                           int32_t count) {
    if (layer->width > 2) {
        for (; count > 0; count--, k++) {
            pt_pack_value(pt_pair_at(layer, i, k), i, *values++);
        }
    } else if (i & 1) {
        pt_pack_contiguous(pt_pair_at(layer, 1, k), 1, values, count);
    } else {
        pt_pack_contiguous(pt_pair_at(layer, 0, k), 0, values, count);
    }
}

static inline void pt_pad(const pt_layer *layer, int32_t i, int32_t k, int32_t count) {
    for (; count > 0; count--) {
        pt_pack_value(pt_pair_at(layer, i, k++), i, -layer->offset);
    }
}
