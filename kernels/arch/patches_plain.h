// Patches as the bytes that they are.
#include <string.h>

enum { PT_PATCHES = 1, PT_PACKS = 0 };

static inline uint32_t pt_patch_bytes(int32_t depth) {
    return (uint32_t)depth;
}

static inline void pt_pack(const pt_layer *layer, void *block, int32_t i, int32_t k,
                           const int8_t *values, int32_t n) {
    memcpy((int8_t *)block + i * layer->depth + k, values, (size_t)n);
}

static inline void pt_pad(const pt_layer *layer, void *block, int32_t i, int32_t k, int32_t n) {
    memset((int8_t *)block + i * layer->depth + k, -layer->offset, (size_t)n);
}
