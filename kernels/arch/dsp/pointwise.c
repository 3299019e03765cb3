// 1x1 variant of int8 convolutions on cores with the DSP extension (pt_pointwise in
// conv_variants.h): unpadded 1x1 kernels, input channels a multiple of 4. Tile: 3 pixels x 2
// channels x 4 values (tile_3x2.h). Packing: as many pixels as fit, as int16 with the offset;
// weights of two channels, packed at load or widened. Scratch: 40 + 4 x channels bytes, and 2 bytes
// a value, at most PT_VARIANT_SCRATCH.
#include "arch/conv_variants.h"

#if PT_HAS_CONV_VARIANTS

#include "arch/dsp/im2row_band.h"
#include "arch/dsp/tile_3x2.h"

// Layout of the pixels:
//
//     [four channels: (k0, k2), (k1, k3)][three pixels]
//
// behind the weights of two channels, if they are widened:
//
//     [doubled bias of each][two words of each ...][multiplier, right shift, rounding of each]
//
// Either the weights or the values are doubled: the weights if they are packed.

enum {
    PIXELS = PT_TILE_PATCHES,
    FEWEST_VALUES = 1024, // of a band, for which widening the weights pays
    ENOUGH = 192,         // pixels for which widening takes 1 %
    FEW = 24,             // pixels for which pt_multiply_rows may be faster
    FEW_PACKED = 48,
};

// Returns the bytes of the weights of two channels, and of the overread behind the values.
static uint32_t fixed_bytes(const pt_geometry *g) {
    return 32 + 4 * (uint32_t)g->channels + 8;
}

// Returns the pixels of a band, a multiple of PIXELS; 0 for too little scratch.
static int32_t pixels_in(const pt_geometry *g, uint32_t bytes) {
    const uint32_t fixed = fixed_bytes(g), pixel = 2 * (uint32_t)g->channels;
    const int32_t pixels = bytes < fixed ? 0 : (int32_t)((bytes - fixed) / pixel) / PIXELS * PIXELS;
    return pixels * g->channels < FEWEST_VALUES ? 0 : pixels;
}

static int32_t whole_groups(int32_t pixels) {
    return (pixels + PIXELS - 1) / PIXELS * PIXELS;
}

// Returns the pixels of a band, of n in bands of about the same size: as many as gain speed.
static int32_t pixels_of(const pt_geometry *g, int32_t n) {
    const int32_t fitting = pixels_in(g, PT_VARIANT_SCRATCH); // 0: too many channels
    const bool few = fitting && ENOUGH * g->channels < FEWEST_VALUES;
    const int32_t enough = few ? whole_groups(FEWEST_VALUES / g->channels) : ENOUGH;
    const int32_t max = fitting < enough ? fitting : enough;
    if (n <= max || max == 0) {
        return max == 0 ? 0 : whole_groups(n);
    }
    const int32_t bands = (n + max - 1) / max, pixels = whole_groups((n + bands - 1) / bands);
    return pixels * g->channels < FEWEST_VALUES ? max : pixels;
}

static uint32_t conv1x1_scratch(const pt_geometry *g, const pt_gemm_s8 *layer) {
    const int32_t n = g->out[0] * g->out[1];
    if (!pt_is_pointwise(g) || g->channels % 4 || !pt_suits_bands(g, layer) || n < PIXELS ||
        n * g->channels < FEWEST_VALUES) {
        return 0;
    }
    const int32_t pixels = pixels_of(g, n);
    return pixels ? fixed_bytes(g) + 2 * (uint32_t)(pixels * g->channels) : 0;
}

#if defined(PT_IM2COL_DSP)

#include "arch/dot.h"
#include "arch/dsp/tile_2x2.h"

// True if pt_multiply_rows is faster: for few pixels, unless they are an odd number of whole groups
// of three. It multiplies six or two at a time, and a single one slowly. Never where loads issue
// beside products.
static bool suits_rows(int32_t n, bool packed) {
#ifdef PT_LOADS_BESIDE
    (void)n, (void)packed;
    return false;
#else
    return n < (packed && n % PIXELS ? FEW_PACKED : FEW) && n % (2 * PIXELS) != PIXELS;
#endif
}

// ---- weights

// clang-format off

// Widens the weights of two channels, `channels` weights behind one another.
static void conv1x1_widen(const int8_t *w, int32_t channels, uint32_t *to) {
    const int8_t *v = w + channels, *end = v;
    __asm__ volatile(
        "1:\n\t"
        "ldr r1, [%[w]], #4\n\t"
        "ldr r3, [%[v]], #4\n\t"
        "sxtb16 r0, r1\n\t"
        "sxtb16 r1, r1, ror #8\n\t"
        "sxtb16 r2, r3\n\t"
        "sxtb16 r3, r3, ror #8\n\t"
        "str r1, [%[to], #4]\n\t"
        "str r2, [%[to], #8]\n\t"
        "str r3, [%[to], #12]\n\t"
        "str r0, [%[to]], #16\n\t"
        "cmp %[w], %[end]\n\t"
        "bne 1b"
        : [w] "+&r"(w), [v] "+&r"(v), [to] "+&r"(to)
        : [end] "r"(end)
        : "r0", "r1", "r2", "r3", "cc", "memory");
}

// ---- values

#define PACK_WORDS                                \
    "ldr r3, [%[x]], #4\n\t"                      \
    "ldr r4, [%[y]], #4\n\t"                      \
    "ldr r5, [%[z]], #4\n\t"                      \
    "sxtab16 r0, %[offsets], r3\n\t"              \
    "sxtab16 r1, %[offsets], r4\n\t"              \
    "sxtab16 r2, %[offsets], r5\n\t"              \
    "sxtab16 r3, %[offsets], r3, ror #8\n\t"      \
    "sxtab16 r4, %[offsets], r4, ror #8\n\t"      \
    "sxtab16 r5, %[offsets], r5, ror #8\n\t"

#define KEEP_WORDS                                \
    "str r1, [%[to], #4]\n\t"                     \
    "str r2, [%[to], #8]\n\t"                     \
    "str r3, [%[to], #12]\n\t"                    \
    "str r4, [%[to], #16]\n\t"                    \
    "str r5, [%[to], #20]\n\t"                    \
    "str r0, [%[to]], #24\n\t"                    \
    "cmp %[x], %[end]\n\t"                        \
    "bne 1b"

#define PACK(doubling)                                                              \
    __asm__ volatile("1:\n\t" PACK_WORDS doubling KEEP_WORDS                        \
                     : [x] "+&r"(x), [y] "+&r"(y), [z] "+&r"(z), [to] "+&r"(to)      \
                     : [offsets] "r"(offsets), [end] "r"(end)                       \
                     : "r0", "r1", "r2", "r3", "r4", "r5", "cc", "memory")

// Packs three pixels of the input. Returns the end.
static __attribute__((noinline)) uint32_t *conv1x1_pack(const pt_geometry *g, const int8_t *x, const int8_t *y, const int8_t *z,
                      uint32_t offsets, bool doubled, uint32_t *to) {
    const int8_t *end = x + g->channels;
    if (doubled) {
        PACK("sadd16 r0, r0, r0\n\t"
             "sadd16 r1, r1, r1\n\t"
             "sadd16 r2, r2, r2\n\t"
             "sadd16 r3, r3, r3\n\t"
             "sadd16 r4, r4, r4\n\t"
             "sadd16 r5, r5, r5\n\t");
    } else {
        PACK("");
    }
    return to;
}

// clang-format on

// Addresses of the next pixel of the input, and of the last three.
typedef struct walk {
    const int8_t *next, *last[PIXELS];
    int32_t left; // in its row
} walk;

static void conv1x1_advance(const pt_geometry *g, walk *w) {
    w->last[0] = w->last[1];
    w->last[1] = w->last[2];
    w->last[2] = w->next;
    w->next += g->stride[1] * g->pixel;
    if (--w->left == 0) {
        w->left = g->out[1];
        w->next += (g->stride[0] * g->in[1] - g->stride[1] * g->out[1]) * g->pixel;
    }
}

// Packs n pixels by threes; a rest of fewer than three together with pixels before them.
static void conv1x1_pack_pixels(const pt_geometry *g, walk *w, int32_t n, uint32_t offsets,
                                bool doubled, uint32_t *to) {
    for (int32_t i = 1; i <= n; i++) {
        conv1x1_advance(g, w);
        if (i == n || i % PIXELS == 0) {
            to = conv1x1_pack(g, w->last[0], w->last[1], w->last[2], offsets, doubled, to);
        }
    }
}

// Widens two channels, `o` and the next.
static void conv1x1_make_pair(const pt_gemm_s8 *layer, int32_t o, uint32_t *pair) {
    for (int32_t i = 0; i < 2; i++) {
        pair[i] = 2 * (uint32_t)pt_bias_of(&layer->output, o + i);
        pt_put_parameters(layer, o + i, pair + 2 + layer->depth + 3 * i);
    }
    conv1x1_widen(layer->weights + o * layer->depth, layer->depth, pair + 2);
}

static bool conv1x1_convolve(pt_geometry *g, pt_gemm_s8 *layer, const int8_t *in, int8_t *out,
                             void *block, uint32_t bytes) {
    const uint32_t *packed = layer->channels % 2 == 0 ? layer->packed : NULL;
    const int32_t n = g->out[0] * g->out[1], max = pixels_in(g, bytes);
    if (max == 0 || n < PIXELS || !(packed || layer->weights) || suits_rows(n, packed) ||
        !(layer->packed || pt_gemm_s8_scales_fast(layer))) {
        return false;
    }
    uint32_t *const values = (uint32_t *)block + fixed_bytes(g) / 4 - 2;
    const int32_t stride = layer->out_stride;
    const uint32_t offsets = (uint32_t)pt_pair_of(layer->offset);
    walk at = {.next = in, .left = g->out[1]};
    for (int32_t first = 0, some; first < n; first += some, out += some * stride) {
        some = n - first < max ? n - first : max;
        const int32_t again = some < PIXELS ? PIXELS - some : 0;
        const pt_tile_3x2 tile = {.values = values,
                                  .steps = layer->depth / 4,
                                  .last = (some + again - PIXELS) * stride,
                                  .rows = 1};
        conv1x1_pack_pixels(g, &at, some, offsets, !packed, values);
        const uint32_t *pair = packed ? packed : block;
        for (int32_t o = 0; o < layer->channels; o += 2) {
            const int32_t channel = pt_first_of_pair(layer, o);
            if (!packed) {
                conv1x1_make_pair(layer, channel, block);
            }
            pt_multiply_tile_3x2(&tile, pair, stride, out - again * stride + channel);
            pair += packed ? 8 + layer->depth : 0;
        }
        pt_limit(layer, again + some, out - again * stride);
    }
    return true;
}

#endif

const pt_conv_variant pt_pointwise = {conv1x1_scratch, PT_BAND_VARIANT(conv1x1_convolve)};

#endif
