// Products of two pixels with two channels on cores with the DSP extension, see wide.h.
//
// As many pixels as there is room for lie there as pairs of int16, the offset added:
//
//     [two pixels][four channels: (k0, k2) of both, (k1, k3) of both]
//
// behind the weights of two channels, which are widened for them or prepared:
//
//     [doubled bias of each][two words of each ...][multiplier, right shift, rounding of each]
//
// One of weights and values is doubled: the weights where they are prepared.
#include "../wide.h"

#if PT_HAS_WIDE

#include "band.h"

enum {
    FEWEST_VALUES = 1024, // of a band, for which it pays to widen the weights
#ifdef PT_LOADS_BESIDE
    FEWEST_PREPARED = 2,
#else
    FEWEST_PREPARED = 48, // pixels; for less the loops of pt_multiply_rows are as quick
#endif
};

// Of the weights of two channels, and what a sum may read behind the values.
static uint32_t fixed_bytes(const pt_geometry *g) {
    return 32 + 4 * (uint32_t)g->channels + 8;
}

// Pixels at a time, an even number; 0 for too little room.
static int32_t pixels_in(const pt_geometry *g, uint32_t room) {
    const uint32_t fixed = fixed_bytes(g), pixel = 2 * (uint32_t)g->channels;
    const int32_t pixels = room < fixed ? 0 : (int32_t)((room - fixed) / pixel) & ~1;
    return pixels * g->channels < FEWEST_VALUES ? 0 : pixels;
}

static uint32_t scratch(const pt_geometry *g, const pt_layer *layer) {
    const int32_t n = g->out[0] * g->out[1];
    if (!pt_is_pointwise(g) || g->channels % 4 || !pt_suits_bands(g, layer) || n < 2 ||
        n * g->channels < FEWEST_VALUES || (layer->prepared && n < FEWEST_PREPARED)) {
        return 0;
    }
    const int32_t most = pixels_in(g, PT_WIDE_SCRATCH), pixels = n < most ? n + (n & 1) : most;
    return pixels ? fixed_bytes(g) + 2 * (uint32_t)(pixels * g->channels) : 0;
}

#if defined(PT_PATCHES_DSP)

#include "../dot.h"
#include "pairs.h"

// ---- weights

// clang-format off

// Of two channels, `channels` weights behind one another.
static void widen(const int8_t *w, int32_t channels, uint32_t *to) {
    const int8_t *v = w + channels, *end = v;
    __asm__ volatile(
        "1:\n\t"
        "ldr r1, [%[w]], #4\n\t"
        "ldr r3, [%[v]], #4\n\t"
        "sxtb16 r0, r1\n\t"
        "sxtb16 r1, r1, ror #8\n\t"
        "sxtb16 r2, r3\n\t"
        "sxtb16 r3, r3, ror #8\n\t"
        "stmia %[to]!, {r0-r3}\n\t"
        "cmp %[w], %[end]\n\t"
        "bne 1b"
        : [w] "+&r"(w), [v] "+&r"(v), [to] "+&r"(to)
        : [end] "r"(end)
        : "r0", "r1", "r2", "r3", "cc", "memory");
}

// ---- values

#define PACK_WORDS                                \
    "ldr r2, [%[x]], #4\n\t"                      \
    "ldr r3, [%[y]], #4\n\t"                      \
    "sxtab16 r0, %[offsets], r2\n\t"              \
    "sxtab16 r1, %[offsets], r3\n\t"              \
    "sxtab16 r2, %[offsets], r2, ror #8\n\t"      \
    "sxtab16 r3, %[offsets], r3, ror #8\n\t"

#define KEEP_WORDS                                \
    "stmia %[to]!, {r0-r3}\n\t"                   \
    "cmp %[x], %[end]\n\t"                        \
    "bne 1b"

#define PACK(doubling)                                                            \
    __asm__ volatile("1:\n\t" PACK_WORDS doubling KEEP_WORDS                      \
                     : [x] "+&r"(x), [y] "+&r"(y), [to] "+&r"(to)                    \
                     : [offsets] "r"(offsets), [end] "r"(end)                     \
                     : "r0", "r1", "r2", "r3", "cc", "memory")

// Two pixels of the input. Returns the end.
static uint32_t *pack(const pt_geometry *g, const int8_t *x, const int8_t *y, uint32_t offsets,
                      bool doubled, uint32_t *to) {
    const int8_t *end = x + g->channels;
    if (doubled) {
        PACK("sadd16 r0, r0, r0\n\t"
             "sadd16 r1, r1, r1\n\t"
             "sadd16 r2, r2, r2\n\t"
             "sadd16 r3, r3, r3\n\t");
    } else {
        PACK("");
    }
    return to;
}

// clang-format on

// Where the next pixel of the input is, and the one before.
typedef struct walk {
    const int8_t *next, *last;
    int32_t left; // in its row
} walk;

static const int8_t *take(const pt_geometry *g, walk *w) {
    const int8_t *at = w->next;
    w->last = at;
    w->next += g->stride[1] * g->pixel;
    if (--w->left == 0) {
        w->left = g->out[1];
        w->next += (g->stride[0] * g->in[1] - g->stride[1] * g->out[1]) * g->pixel;
    }
    return at;
}

// n pixels; of an odd number the last together with the one before it.
static void pack_pixels(const pt_geometry *g, walk *w, int32_t n, uint32_t offsets, bool doubled,
                        uint32_t *to) {
    for (int32_t i = 0; i < n; i += 2) {
        const int8_t *x = i + 1 < n ? take(g, w) : w->last;
        to = pack(g, x, take(g, w), offsets, doubled, to);
    }
}

// ---- products

// clang-format off

// Pairs of pixels with two channels.
static void multiply(const pt_layer *layer, const uint32_t *values, const uint32_t *pair,
                     int32_t pairs, int8_t *out) {
    const int32_t steps = layer->depth / 4;
    const uint32_t *w_end = pair + 2 + 4 * steps, *w, *a = values;
    uint32_t enter = pt_spare_code(steps, 8);
    pt_pair to = {(uintptr_t)out, (uintptr_t)layer->out_stride};
    const int8_t *out_end = out + 2 * pairs * layer->out_stride;
    int32_t s0, s1, s2, s3;
    __asm__ volatile(
        FIND_ENTRANCE
        "1:\n\t"
        "ldr %[w], %[pair]\n\t"
        "ldrd %[s0], %[s2], [%[w]], #8\n\t"
        "mov %[s1], %[s0]\n\t"
        "mov %[s3], %[s2]\n\t"
        FIRST_WORDS
        "ldr pc, %[enter]\n"
        PAIR_STEPS("8")
        "ldr r2, %[w_end]\n\t"
        "cmp %[w], r2\n\t"
        "bne 2b\n\t"
        "ldmia %[w], {r0-r5}\n\t"
        FINISH_PAIRS
        "ldrd r0, r1, %[out]\n\t"
        "ldr r3, %[out_end]\n\t"
        "add r2, r0, r1\n\t"
        "strb %[s0], [r0]\n\t"
        "strb %[s2], [r0, #1]\n\t"
        "add r0, r2, r1\n\t"
        "strb %[s1], [r2]\n\t"
        "strb %[s3], [r2, #1]\n\t"
        "str r0, %[out]\n\t"
        "cmp r0, r3\n\t"
        "bne 1b"
        : [w] "=&r"(w), [a] "+&r"(a), [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2),
          [s3] "=&r"(s3), [enter] "+m"(enter), [out] "+m"(to)
        : [pair] "m"(pair), [w_end] "m"(w_end), [out_end] "m"(out_end)
        : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r8", "cc", "memory");
}

// clang-format on

// Two channels of which `o` is the first.
static void make_pair(const pt_layer *layer, int32_t o, uint32_t *pair) {
    for (int32_t i = 0; i < 2; i++) {
        pair[i] = 2 * (uint32_t)pt_bias_of(&layer->output, o + i);
        pt_put_parameters(layer, o + i, pair + 2 + layer->depth + 3 * i);
    }
    widen(layer->weights + o * layer->depth, layer->depth, pair + 2);
}

static bool convolve(pt_geometry *g, pt_layer *layer, const int8_t *in, int8_t *out, void *block,
                     uint32_t room) {
    const uint32_t *prepared = layer->channels % 2 == 0 ? layer->prepared : NULL;
    const int32_t n = g->out[0] * g->out[1], most = pixels_in(g, room);
    if (most == 0 || n < 2 || !(prepared || layer->weights) ||
        !(layer->prepared || pt_layer_scales_fast(layer))) {
        return false;
    }
    uint32_t *const values = (uint32_t *)block + fixed_bytes(g) / 4 - 2;
    const int32_t words = layer->depth; // of two pixels
    const uint32_t offsets = (uint32_t)pt_pair_of(layer->offset);
    walk at = {.next = in, .left = g->out[1]};
    for (int32_t first = 0, some; first < n; first += some, out += some * layer->out_stride) {
        some = n - first < most ? n - first : most;
        pack_pixels(g, &at, some, offsets, !prepared, values);
        const uint32_t *pair = prepared ? prepared : block;
        for (int32_t o = 0; o < layer->channels; o += 2) {
            const int32_t channel = pt_first_of_pair(layer, o);
            if (!prepared) {
                make_pair(layer, channel, block);
            }
            if (some > 1) {
                multiply(layer, values, pair, some / 2, out + channel);
            }
            if (some % 2) {
                multiply(layer, values + some / 2 * words, pair, 1,
                         out + (some - 2) * layer->out_stride + channel);
            }
            pair += prepared ? 8 + layer->depth : 0;
        }
        pt_limit(layer, some, out);
    }
    return true;
}

#endif

const pt_wide pt_pointwise = {scratch, PT_BAND_FORM(convolve)};

#endif
