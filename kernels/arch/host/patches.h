// Patches as the bytes that they are, as many as the scratch has room for; one where loops take no
// vectors.

enum { PT_CHANNEL_ROOM = 1, PT_MOST_PATCHES = 24 };

static inline void pt_begin_layer(pt_layer *layer, void *scratch, uint32_t bytes) {
    uint32_t most = bytes / (uint32_t)layer->depth;
    layer->block = scratch;
    layer->capacity = pt_vectors() == PT_VECTORS_NONE ? 1
                      : most < PT_MOST_PATCHES        ? (int32_t)most
                                                      : PT_MOST_PATCHES;
}

static inline void pt_take_channels(pt_layer *layer, uint32_t *room) {
    (void)layer;
    (void)room;
}

static inline int32_t pt_begin_block(pt_layer *layer, int32_t left) {
    return left < layer->capacity ? left : layer->capacity;
}

static inline int8_t *pt_place(const pt_layer *layer, int32_t i, int32_t k) {
    return (int8_t *)layer->block + i * layer->depth + k;
}

static inline void pt_pack(const pt_layer *layer, int32_t i, int32_t k, const int8_t *values,
                           int32_t count) {
    memcpy(pt_place(layer, i, k), values, (size_t)count);
}

static inline void pt_pad(const pt_layer *layer, int32_t i, int32_t k, int32_t count) {
    memset(pt_place(layer, i, k), -layer->offset, (size_t)count);
}
