// Products of patches with the weights of all channels of a layer: the inner loops of int8
// convolutions and linear layers.
//
// A patch is the `depth` int8 values of the input that make one output of each channel. The caller
// packs patches into a block of scratch, in the order that the ISA's loops read, and multiplies the
// block. An ISA that reads patches as they are (PT_PACKS is 0) also takes them where they lie.
//
//     uint32_t pt_patch_bytes(int32_t depth)          of a packed patch
//     PT_PATCHES                                      most patches of a block
//     pt_pack(layer, block, i, k, values, n)          values k to k + n of patch i
//     pt_pad(layer, block, i, k, n)                   zero points there; n may be 0
//     pt_multiply_patches(layer, patches, n, out)     n patches, channels of each
//
// All values of a patch are to be packed, from 0 to `depth` in ascending order. Every ISA gives the
// bytes of patches_plain.h.
#ifndef PT_ARCH_PATCHES_H
#define PT_ARCH_PATCHES_H

#include "requantize.h"
#include <stdbool.h>

typedef struct pt_layer {
    const int8_t *weights; // `depth` for each channel
    int32_t depth, channels;
    int32_t offset; // added to the values of patches; its negative is an int8
    pt_channels output;
    int32_t out_stride;   // bytes from the outputs of a patch to those of the next
    int32_t patch_stride; // bytes from a patch to the next, where they are taken as they lie
    int32_t block;        // patches that are packed together, at least 1
} pt_layer;

// The sum of four channels' products with a patch, and what follows, four at a time and the rest
// singly.
void pt_multiply_patches(const pt_layer *layer, const void *patches, int32_t n, int8_t *out);

// To the layer of the channels that follow the first n: the next group.
static inline void pt_skip_channels(pt_layer *layer, int32_t n) {
    layer->weights += n * layer->depth;
    layer->output.bias += layer->output.bias ? n : 0;
    layer->output.multipliers += n;
    layer->output.shifts += n;
}

// Bytes of scratch that any ISA can work with, of those the most that any asks for.
static inline uint32_t pt_least_scratch(int32_t depth) {
    return 4 * (((uint32_t)depth + 3) & ~3u);
}

static inline uint32_t pt_useful_scratch(int32_t depth) {
    uint32_t least = pt_least_scratch(depth);
    return least <= 1024 ? 3 * least : least;
}

#include "patches_plain.h"

// Patches of a block in `bytes` of scratch.
static inline int32_t pt_patches_in(uint32_t bytes, int32_t depth) {
    uint32_t n = bytes / pt_patch_bytes(depth);
    return n < PT_PATCHES ? (int32_t)n : PT_PATCHES;
}

#endif
