// Patches as int16 with the offset added, for cores with the DSP extension: of each four values the
// words (k0, k2) of all patches of the block, then the words (k1, k3).
//
// Where the weights of a channel are not a multiple of 4 bytes, or a patch is not, ...
enum { PT_CHANNEL_ROOM = 1 };

// Decides how the layer is computed.
void pt_begin_layer(pt_layer *layer, void *scratch, uint32_t bytes);
void pt_pack(const pt_layer *layer, int32_t i, int32_t k, const int8_t *values, int32_t count);
void pt_pad(const pt_layer *layer, int32_t i, int32_t k, int32_t count);

static inline void pt_take_channels(pt_layer *layer, uint32_t *room) {
    (void)layer;
    (void)room;
}

// Six patches at a time, or two, or one.
static inline int32_t pt_begin_block(pt_layer *layer, int32_t left) {
    int32_t most = layer->capacity < left ? layer->capacity : left;
    layer->width = most >= 6 ? 6 : most >= 2 ? 2 : 1;
    return layer->width;
}
