// Winograd variant of int8 convolutions, F(2,3) along rows, on cores with the DSP extension
// (pt_winograd in conv_variants.h): kernels three columns wide, column stride 1, input channels a
// multiple of 4, at least 4 outputs a row. Tile: 4 neighbouring patches, as two times two outputs,
// x 2 channels x 4 values by SMLAD. Packing: transformed values of a band and transformed weights
// of two channels. Scratch: both, at most PT_VARIANT_SCRATCH.
#include "arch/conv_variants.h"

#if PT_HAS_CONV_VARIANTS

#include "arch/dsp/im2row_band.h"

#if defined(PT_IM2COL_DSP)
#include "arch/dot.h"
#include "arch/dsp/tile_2x2.h"
#endif

// Values are transformed for some rows of outputs at a time, weights before each use. Words contain
// two int16, of each four channels c the pairs (c0, c2) and (c1, c3):
//
//     values   [m][block of the row][row of the input][channels / 4][pair][two times]
//     weights  [doubled bias of each][multiplier, right shift, rounding of each]
//              [m][row of the kernel][channels / 4][of each][pair]
//
// with m in the order 1, 2, 0, 3. So a sum is over contiguous values and weights.

enum {
    PATCHES = 4, // neighbours, of a block
    COLUMNS = PATCHES + 2,
    PARAMETERS = 8, // words in front of the weights of two channels
    FEWEST = 16,    // outputs of a channel for which transforming its weights pays
    ENOUGH = 512,   // outputs for which the transform takes 1 %
};

// ---- sizes

// Returns channels times rows of the kernel.
static int32_t depth_of(const pt_geometry *g) {
    return g->kernel[0] * g->channels;
}

// Returns the bytes of the weights and parameters of two channels.
static uint32_t bytes_of_pair(const pt_geometry *g) {
    return 4 * (PARAMETERS + 4 * (uint32_t)depth_of(g));
}

static pt_band winograd_band_of(const pt_geometry *g) {
    return (pt_band){.g = g,
                     .patches = PATCHES,
                     .columns = COLUMNS,
                     .planes = 4,
                     .words = g->channels,
                     .weights = bytes_of_pair(g)};
}

// Returns the rows of outputs of a band; 0 for too little scratch.
static int32_t winograd_outputs_of(const pt_band *b, uint32_t bytes) {
    int32_t rows = pt_band_outputs(b, bytes, (ENOUGH + b->g->out[1] - 1) / b->g->out[1]);
    return rows * b->g->out[1] < FEWEST ? 0 : rows;
}

static uint32_t winograd_scratch(const pt_geometry *g, const pt_gemm_s8 *layer) {
    if (g->kernel[1] != 3 || g->stride[1] != 1 || g->channels % 4 || g->out[1] < PATCHES ||
        !pt_suits_bands(g, layer)) {
        return 0;
    }
    pt_band b = winograd_band_of(g);
    int32_t rows = winograd_outputs_of(&b, PT_VARIANT_SCRATCH);
    return rows ? pt_band_bytes(&b, rows) : 0;
}

#if defined(PT_IM2COL_DSP)

// ---- weights

// clang-format off

#define WIDEN(even, odd)                                     \
    "sxtb16 %[" even "], %[" odd "]\n\t"                     \
    "sxtb16 %[" odd "], %[" odd "], ror #8\n\t"

// Transforms a kernel row of one channel. In each m the words of the other channel lie between.
static void transform_weights(const int8_t *w, int32_t channels, uint32_t *to, int32_t step) {
    uint32_t *m1 = to, *m2 = m1 + step, *m0 = m2 + step, *m3 = m0 + step;
    const int8_t *end = w + channels;
    int32_t even0, odd0, even1, odd1, even2, odd2, twice;
    __asm__ volatile(
        "1:\n\t"
        "ldr %[odd1], [%[w], %[channels]]\n\t"
        "ldr %[odd2], [%[w], %[channels], lsl #1]\n\t"
        "ldr %[odd0], [%[w]], #4\n\t"
        WIDEN("even0", "odd0")
        WIDEN("even2", "odd2")
        "sadd16 %[even1], %[even0], %[even0]\n\t"
        "sadd16 %[twice], %[odd0], %[odd0]\n\t"
        "strd %[even1], %[twice], [%[m0]], #16\n\t"
        WIDEN("even1", "odd1")
        "sadd16 %[even0], %[even0], %[even2]\n\t"
        "sadd16 %[odd0], %[odd0], %[odd2]\n\t"
        "sadd16 %[even2], %[even2], %[even2]\n\t"
        "sadd16 %[odd2], %[odd2], %[odd2]\n\t"
        "strd %[even2], %[odd2], [%[m3]], #16\n\t"
        "sadd16 %[even2], %[even0], %[even1]\n\t"
        "sadd16 %[odd2], %[odd0], %[odd1]\n\t"
        "strd %[even2], %[odd2], [%[m1]], #16\n\t"
        "ssub16 %[even0], %[even0], %[even1]\n\t"
        "ssub16 %[odd0], %[odd0], %[odd1]\n\t"
        "strd %[even0], %[odd0], [%[m2]], #16\n\t"
        "cmp %[w], %[end]\n\t"
        "bne 1b"
        : [w] "+&r"(w), [m1] "+&r"(m1), [m2] "+&r"(m2), [m0] "+&r"(m0), [m3] "+&r"(m3),
          [even0] "=&r"(even0), [odd0] "=&r"(odd0), [even1] "=&r"(even1), [odd1] "=&r"(odd1),
          [even2] "=&r"(even2), [odd2] "=&r"(odd2), [twice] "=&r"(twice)
        : [channels] "r"(channels), [end] "r"(end)
        : "cc", "memory");
}

// clang-format on

// clang-format off

// The same for both channels, from packed weights, which are doubled.
static void transform_packed(const uint32_t *w, int32_t channels, uint32_t *to, int32_t step) {
    const uint32_t *w0 = w, *w1 = w0 + channels, *w2 = w1 + channels, *end = w1;
    uint32_t *m1 = to, *m2 = m1 + step, *m0 = m2 + step, *m3 = m0 + step;
    int32_t a0, b0, a1, b1, a2, b2;
    __asm__ volatile(
        "1:\n\t"
        "ldrd %[a0], %[b0], [%[w0]], #8\n\t"
        "ldrd %[a2], %[b2], [%[w2]], #8\n\t"
        "ldrd %[a1], %[b1], [%[w1]], #8\n\t"
        "strd %[a0], %[b0], [%[m0]], #8\n\t"
        "strd %[a2], %[b2], [%[m3]], #8\n\t"
        "sadd16 %[a0], %[a0], %[a2]\n\t"
        "sadd16 %[b0], %[b0], %[b2]\n\t"
        "shadd16 %[a2], %[a0], %[a1]\n\t"
        "shadd16 %[b2], %[b0], %[b1]\n\t"
        "strd %[a2], %[b2], [%[m1]], #8\n\t"
        "shsub16 %[a0], %[a0], %[a1]\n\t"
        "shsub16 %[b0], %[b0], %[b1]\n\t"
        "strd %[a0], %[b0], [%[m2]], #8\n\t"
        "cmp %[w0], %[end]\n\t"
        "bne 1b"
        : [w0] "+&r"(w0), [w1] "+&r"(w1), [w2] "+&r"(w2), [m1] "+&r"(m1), [m2] "+&r"(m2), [m0] "+&r"(m0),
          [m3] "+&r"(m3), [a0] "=&r"(a0), [b0] "=&r"(b0), [a1] "=&r"(a1), [b1] "=&r"(b1),
          [a2] "=&r"(a2), [b2] "=&r"(b2)
        : [end] "r"(end)
        : "cc", "memory");
}

// clang-format on

// Transforms two channels as pt_pack_layer_dsp packed them.
static void transform_pair(const pt_geometry *g, const uint32_t *from, int32_t depth,
                           uint32_t *to) {
    const int32_t step = depth_of(g);
    memcpy(to, from, 8);
    memcpy(to + 2, from + 2 + depth, 24);
    for (int32_t k = 0; k < step; k += g->channels) {
        transform_packed(from + 2 + 3 * k, g->channels, to + PARAMETERS + k, step);
    }
}

// Transforms channels o and o + 1 from their plain weights.
static void winograd_make_pair(const pt_geometry *g, const pt_gemm_s8 *layer, int32_t o,
                               uint32_t *to) {
    const int8_t *w = layer->weights + o * layer->depth;
    const int32_t step = depth_of(g);
    for (int32_t i = 0; i < 2; i++) {
        to[i] = 2 * (uint32_t)pt_bias_of(&layer->output, o + i);
        pt_put_parameters(layer, o + i, to + 2 + 3 * i);
        for (int32_t k = 0; k < step; k += g->channels, w += 3 * g->channels) {
            transform_weights(w, g->channels, to + PARAMETERS + k + 2 * i, step);
        }
    }
}

// ---- values

// clang-format off

// Transforms bytes 0 and 2 of each of six columns, or 1 and 3 with a rotation. `first`:
// post-increment of the last loads; `to`: address of the first m.
#define TRANSFORM(first, rotation, shift, to)                       \
    "ldr %[x2], [%[x], %[pixel], lsl #1]\n\t"                       \
    "ldr %[x4], [%[x], %[pixel], lsl #2]\n\t"                       \
    "ldr %[x0], [%[x]]" first "\n\t"                                \
    "ldr %[x3], [%[next], %[pixel], lsl #1]\n\t"                    \
    "ldr %[x5], [%[next], %[pixel], lsl #2]\n\t"                    \
    "ldr %[x1], [%[next]]" first "\n\t"                             \
    "sxtab16 %[x0], %[offsets], %[x0]" rotation "\n\t"              \
    "sxtab16 %[x1], %[offsets], %[x1]" rotation "\n\t"              \
    "sxtab16 %[x2], %[offsets], %[x2]" rotation "\n\t"              \
    "sxtab16 %[x3], %[offsets], %[x3]" rotation "\n\t"              \
    "sxtab16 %[x4], %[offsets], %[x4]" rotation "\n\t"              \
    "sxtab16 %[x5], %[offsets], %[x5]" rotation "\n\t"              \
    "add %[m], %[to], %[step], lsl #1\n\t"                          \
    "ssub16 %[x0], %[x0], %[x2]\n\t"                                \
    "ssub16 %[spare], %[x2], %[x4]\n\t"                             \
    "strd %[x0], %[spare], [%[m]" shift "]\n\t"                     \
    "add %[m], %[m], %[step]\n\t"                                   \
    "ssub16 %[x0], %[x3], %[x1]\n\t"                                \
    "ssub16 %[x5], %[x5], %[x3]\n\t"                                \
    "strd %[x0], %[x5], [%[m]" shift "]\n\t"                        \
    "add %[m], %[to], %[step]\n\t"                                  \
    "sadd16 %[x0], %[x1], %[x2]\n\t"                                \
    "sadd16 %[x5], %[x3], %[x4]\n\t"                                \
    "strd %[x0], %[x5], [%[to]" to "\n\t"                           \
    "ssub16 %[x2], %[x2], %[x1]\n\t"                                \
    "ssub16 %[x4], %[x4], %[x3]\n\t"                                \
    "strd %[x2], %[x4], [%[m]" shift "]\n\t"

// Transforms the six columns of a block in one row.
static void transform_values(const pt_band *b, const int8_t *x, int32_t pixel, uint32_t *to) {
    const int32_t channels = b->g->channels, offset = b->offset;
    const int32_t step = 4 * b->blocks * b->rows * b->words; // from plane to plane
    const int8_t *next = x + pixel, *end = x + channels;
    uint32_t x0, x1, x2, x3, x4, x5, spare, *m;
    __asm__ volatile(
        "1:\n\t"
        TRANSFORM("", "", "", "]")
        TRANSFORM(", #4", ", ror #8", ", #8", ", #8]\n\tadd %[to], #16")
        "ldr %[m], %[end]\n\t"
        "cmp %[x], %[m]\n\t"
        "bne 1b"
        : [x] "+&r"(x), [next] "+&r"(next), [to] "+&r"(to), [m] "=&r"(m), [x0] "=&r"(x0),
          [x1] "=&r"(x1), [x2] "=&r"(x2), [x3] "=&r"(x3), [x4] "=&r"(x4), [x5] "=&r"(x5),
          [spare] "=&r"(spare)
        : [pixel] "r"(pixel), [offsets] "r"(pt_pair_of(offset)), [step] "r"(step), [end] "m"(end)
        : "cc", "memory");
}

// clang-format on

// ---- products

// clang-format off

// Stores the address at which the code continues behind the sum.
#define CONTINUE_AT(label, m)             \
    "ldr r0, %[" m "]\n\t"                \
    "adr.w r1, " label " + 1\n\t"         \
    "strd r0, r1, %[" m "]\n\t"

// Adds the products of m, whose values follow the previous ones at a distance of `gap`.
#define ADD(m, gap)                       \
    "ldrd r0, r1, %[" m "]\n\t"           \
    "add %[a], " gap "\n\t"               \
    ENTER

// Enters the products; r0 has their end, r1 the address to continue at.
#define ENTER                             \
    "strd r0, r1, %[current]\n\t"         \
    FIRST_WORDS                           \
    "ldr pc, %[enter]\n"

#define KEEP(s0, s1, s2, s3)              \
    "strd " s0 ", " s1 ", %[kept0]\n\t"   \
    "strd " s2 ", " s3 ", %[kept2]\n\t"

#define TAKE(s0, s1, s2, s3)              \
    "ldrd " s0 ", " s1 ", %[kept0]\n\t"   \
    "ldrd " s2 ", " s3 ", %[kept2]\n\t"

// Requantizes, with the parameters' address in r6. Loads the output address to r0, and the bytes to
// the next patch to r1.
#define FINISH_ALL                                  \
    "ldmia r6, {r0-r5}\n\t"                         \
    FINISH_PAIRS("ldrd r0, r1, %[out]\n\t")

// Stores two patches: at `first`, and two patches further.
#define STORE_ALL(first)                  \
    "strb %[s0], [" first "]\n\t"         \
    "strb %[s2], [" first ", #1]\n\t"     \
    "add r2, " first ", r1, lsl #1\n\t"   \
    "strb %[s1], [r2]\n\t"                \
    "strb %[s3], [r2, #1]\n\t"

// Computes some rows of outputs of two channels from their transformed weights.
static void winograd_multiply_rows(const pt_band *b, const pt_gemm_s8 *layer, const uint32_t *pair,
                          int32_t rows, int8_t *out) {
    const int32_t depth = depth_of(b->g), block = b->rows * b->words;
    const uint32_t *w = pair + PARAMETERS, *a;
    // The second word: bytes to the values of the next m.
    pt_pair parameters = {(uintptr_t)(pair + 2), 4 * (uintptr_t)(b->blocks * block - depth)};
    pt_pair m1 = {(uintptr_t)(w + depth), 0}, m2 = {(uintptr_t)(w + 2 * depth), 0};
    pt_pair m0 = {(uintptr_t)(w + 3 * depth), 0}, m3 = {(uintptr_t)(w + 4 * depth), 0};
    pt_pair from = {(uintptr_t)b->values, 4 * (uintptr_t)block};
    const int32_t back = 4 * (b->g->stride[0] * b->words - (b->blocks - 1) * b->rows * b->words);
    pt_pair to = {(uintptr_t)out, (uintptr_t)layer->out_stride}, kept0, kept2;
    volatile pt_pair current; // as a whole, where the code reads its second word
    pt_pair last = {(uintptr_t)(out + (b->g->out[1] - PATCHES) * layer->out_stride),
                    (uintptr_t)(b->g->out[1] * layer->out_stride)};
    uint32_t enter = pt_spare_code(depth / 4, 12, PT_STEP_BYTES);
    int32_t s0, s1, s2, s3;
    __asm__ volatile(
        FIND_ENTRANCE
        CONTINUE_AT("3f", "m1")
        CONTINUE_AT("4f", "m2")
        CONTINUE_AT("5f", "m0")
        CONTINUE_AT("6f", "m3")
        "ldr %[a], %[from]\n"
        "1:\n\t"
        "ldr %[w], %[parameters]\n\t"
        "ldrd r0, r1, %[m1]\n\t"
        "ldrd %[s0], %[s2], [%[w], #-8]\n\t"
        "add %[w], #24\n\t"
        "mov %[s1], %[s0]\n\t"
        "mov %[s3], %[s2]\n\t"
        ENTER
        PAIR_STEPS("12", "ldr r2, %[current]\n\t")
        "cmp %[w], r2\n\t"
        "bne 2b\n\t"
        "ldr pc, %[resume]\n"
        "3:\n\t"
        KEEP("%[s0]", "%[s1]", "%[s2]", "%[s3]")
        "ldrd r2, r3, %[parameters]\n\t"
        ADD("m2", "r3")
        "4:\n\t" /* m1 - m2 is twice m1 without m1 + m2 */
        "ldrd r4, r5, %[parameters]\n\t"
        TAKE("r0", "r1", "r2", "r3")
        "rsb r0, %[s0], r0, lsl #1\n\t"
        "rsb r1, %[s1], r1, lsl #1\n\t"
        "rsb r2, %[s2], r2, lsl #1\n\t"
        "rsb r3, %[s3], r3, lsl #1\n\t"
        KEEP("r0", "r1", "r2", "r3")
        ADD("m0", "r5")
        "5:\n\t"
        "ldrd r6, r8, %[parameters]\n\t"
        FINISH_ALL
        STORE_ALL("r0")
        TAKE("%[s0]", "%[s1]", "%[s2]", "%[s3]")
        ADD("m3", "r8")
        "6:\n\t"
        "ldr r6, %[parameters]\n\t"
        "ldr r8, %[last]\n\t"
        FINISH_ALL
        "add r3, r0, r1\n\t"
        STORE_ALL("r3")
        NEXT_BLOCK("2", "7f")
        "7:\n\t"
        NEXT_ROW("2")
        : [w] "=&r"(w), [a] "=&r"(a), [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2),
          [s3] "=&r"(s3), [m1] "+m"(m1), [m2] "+m"(m2), [m0] "+m"(m0), [m3] "+m"(m3),
          [current] "=m"(current), [kept0] "=m"(kept0), [kept2] "=m"(kept2), [enter] "+m"(enter),
          [from] "+m"(from), [out] "+m"(to), [rows] "+m"(rows), [last] "+m"(last)
        : [parameters] "m"(parameters), [back] "m"(back), [resume] "m"(current.second)
        : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r8", "cc", "memory");
}

// clang-format on

static bool winograd_convolve(pt_geometry *g, pt_gemm_s8 *layer, const int8_t *in, int8_t *out,
                              void *block, uint32_t bytes) {
    if (winograd_scratch(g, layer) == 0 || !(layer->packed || pt_gemm_s8_scales_fast(layer))) {
        return false;
    }
    pt_band b = winograd_band_of(g);
    const int32_t rows = winograd_outputs_of(&b, bytes), line = g->out[1] * layer->out_stride;
    if (rows == 0) {
        return false;
    }
    b.transform = transform_values;
    b.offset = layer->offset;
    pt_begin_band(&b, rows, block);
    for (int32_t first = 0; first < g->out[0]; first += rows, out += rows * line) {
        const int32_t n = g->out[0] - first < rows ? g->out[0] - first : rows;
        const uint32_t *packed = layer->packed;
        pt_fill_band(&b, in, first);
        for (int32_t o = 0; o < layer->channels; o += 2) {
            const int32_t channel = pt_first_of_pair(layer, o);
            if (packed && channel == o) {
                transform_pair(g, packed, layer->depth, block);
                packed += 8 + layer->depth;
            } else {
                winograd_make_pair(g, layer, channel, block);
            }
            winograd_multiply_rows(&b, layer, block, n, out + channel);
        }
        pt_limit(layer, n * g->out[1], out);
    }
    return true;
}

#endif

const pt_conv_variant pt_winograd = {winograd_scratch, PT_BAND_VARIANT(winograd_convolve)};

#endif
