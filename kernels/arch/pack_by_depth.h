// Packing of patches whose words are two values: the sum of the first and 2^16 times the second.
// Words lie in the order [two values][patch].
#ifndef PT_ARCH_PACK_BY_DEPTH_H
#define PT_ARCH_PACK_BY_DEPTH_H

#include <stdint.h>

// A row of `count` values from value k of patch i of two on.
static inline void pt_pack_row_by_depth(uint32_t *block, int32_t i, int32_t k, const int8_t *values,
                                        int32_t count) {
    uint32_t *to = block + (k & ~1) + i;
    const int8_t *end = values + count;
    if (k & 1 && count > 0) {
        *to += (uint32_t)*values++ << 16;
        to += 2;
    }
    for (; end - values > 3; values += 4, to += 4) {
        to[0] = (uint32_t)values[0] + ((uint32_t)values[1] << 16);
        to[2] = (uint32_t)values[2] + ((uint32_t)values[3] << 16);
    }
    for (; end - values > 1; values += 2, to += 2) {
        *to = (uint32_t)values[0] + ((uint32_t)values[1] << 16);
    }
    if (values != end) {
        *to = (uint32_t)*values;
    }
}

// Makes the second patch a copy of the first.
static inline void pt_double_patch_by_depth(uint32_t *block, int32_t depth) {
    for (int32_t k = 0; k < depth; k += 2) {
        block[k + 1] = block[k];
    }
}

#endif
