// Patches as the bytes that they are, one at a time.

enum { PT_CHANNEL_ROOM = 1 };

static inline void pt_begin_layer(pt_layer *layer, void *scratch, uint32_t bytes) {
    (void)bytes;
    layer->block = scratch;
}

static inline void pt_take_channels(pt_layer *layer, uint32_t *room) {
    (void)layer;
    (void)room;
}

static inline int32_t pt_begin_block(pt_layer *layer, int32_t left) {
    (void)layer;
    (void)left;
    return 1;
}

static inline void pt_pack(const pt_layer *layer, int32_t i, int32_t k, const int8_t *values,
                           int32_t count) {
    (void)i;
    memcpy((int8_t *)layer->block + k, values, (size_t)count);
}

static inline void pt_pad(const pt_layer *layer, int32_t i, int32_t k, int32_t count) {
    (void)i;
    memset((int8_t *)layer->block + k, -layer->offset, (size_t)count);
}
