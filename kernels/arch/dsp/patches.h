// Patches as int16 with the offset added, for cores with the DSP extension: of each four values the
// pairs (k0, k2) and (k1, k3) of all patches of the block, one after the other. Zeros fill the last
// four.
//
// Weights that are not prepared are taken as they are where their rows are multiples of 4. Others
// are widened in the room for parts; where it does not do, or a sum could overflow, patches stay
// bytes (capacity 0).
enum { PT_CHANNEL_ROOM = 112 };

void pt_begin_layer(pt_layer *layer, void *scratch, uint32_t bytes);
void pt_take_channels(pt_layer *layer, uint32_t *room);
void pt_pack_words(const pt_layer *layer, int32_t i, int32_t k, const int8_t *values, int32_t count,
                   int32_t rows, int32_t step);
void pt_pack_bytes(const pt_layer *layer, int32_t i, int32_t k, const int8_t *values,
                   int32_t count);
void pt_pack_byte_rows(const pt_layer *layer, int32_t i, const int8_t *values, int32_t count,
                       int32_t rows, int32_t step);
void pt_pack_3x9(const pt_layer *layer, int32_t i, const int8_t *values, int32_t step);
void pt_pack_3x3(const pt_layer *layer, int32_t i, const int8_t *values, int32_t step);
void pt_pad(const pt_layer *layer, int32_t i, int32_t k, int32_t count);

static inline void pt_pack(const pt_layer *layer, int32_t i, int32_t k, const int8_t *values,
                           int32_t count) {
    if (layer->capacity > 0 && (((uintptr_t)values | (uint32_t)(k | count)) & 3) == 0) {
        pt_pack_words(layer, i, k, values, count, 1, 0);
    } else {
        pt_pack_bytes(layer, i, k, values, count);
    }
}

// Whole patches, of as many rows.
static inline void pt_pack_patch(const pt_layer *layer, int32_t i, const int8_t *values,
                                 int32_t count, int32_t rows, int32_t step) {
    if (layer->capacity > 0 && (((uintptr_t)values | (uint32_t)(count | step)) & 3) == 0) {
        pt_pack_words(layer, i, 0, values, count, rows, step);
    } else if (layer->capacity > 0 && count == 9 && rows == 3) {
        pt_pack_3x9(layer, i, values, step);
    } else if (layer->capacity > 0 && count == 3 && rows == 3) {
        pt_pack_3x3(layer, i, values, step);
    } else {
        pt_pack_byte_rows(layer, i, values, count, rows, step);
    }
}
#define PT_PACKS_PATCHES

// Limits outputs of n patches, which are int8 already, to the layer's range.
void pt_limit(const pt_layer *layer, int32_t n, int8_t *out);

// Two patches at a time, of which the second may be none.
static inline int32_t pt_begin_block(pt_layer *layer, int32_t left) {
    layer->width = 2;
    return layer->capacity > 0 && left > 1 ? 2 : 1;
}
