// Products of patches on cores with the DSP extension, see patches_dsp.h.
#include "patches.h"

#if defined(PT_PATCHES_DSP)

#include "dot.h"
#include "scale.h"

// ---- layers

// True when the sums cannot overflow and all go to outputs the way of scale.h.
static bool is_fast(const pt_layer *layer) {
    const pt_channels *output = &layer->output;
    bool fast = layer->depth <= PT_MAX_PRODUCTS;
    for (int32_t o = 0; o < layer->channels && fast; o++) {
        int32_t bias = pt_bias_of(output, o);
        fast = bias < PT_BIAS_LIMIT && bias > -PT_BIAS_LIMIT &&
               pt_scales_fast(output->multipliers[o], output->shifts[o]);
    }
    return fast;
}

void pt_begin_layer(pt_layer *layer, void *scratch, uint32_t bytes) {
    const pt_range *range = &layer->output.range;
    uintptr_t aligned = (uintptr_t)scratch | (uintptr_t)layer->weights | (uint32_t)layer->depth;
    uint32_t n = bytes / (2 * (uint32_t)layer->depth);
    layer->block = scratch;
    layer->capacity = aligned & 3 || !is_fast(layer) ? 0 : n < 6 ? (int32_t)n : 6;
    layer->limits = range->min > INT8_MIN || range->max < INT8_MAX;
}

// ---- packing

static inline uint32_t *place(const pt_layer *layer, int32_t i, int32_t k) {
    return (uint32_t *)layer->block + (k >> 2) * 2 * layer->width + 2 * i;
}

#define PACK_WORD(word)                                \
    "sxtab16 %[even], %[offsets], " word "\n\t"        \
    "sxtab16 %[odd], %[offsets], " word ", ror #8\n\t" \
    "strd %[even], %[odd], [%[to]], %[step]\n\t"

// `width` is a constant.
static inline __attribute__((always_inline)) void
pack_words(uint32_t *to, const int8_t *values, int32_t n, uint32_t offsets, int32_t width) {
    uint32_t even, odd;
    for (const int8_t *end = values + 4 * (n & ~3); values != end;) {
        __asm__ volatile(
            "ldmia %[values]!, {r0-r3}\n\t" PACK_WORD("r0") PACK_WORD("r1") PACK_WORD("r2")
                PACK_WORD("r3")
            : [values] "+r"(values), [to] "+r"(to), [even] "=&r"(even), [odd] "=&r"(odd)
            : [offsets] "r"(offsets), [step] "i"(8 * width)
            : "r0", "r1", "r2", "r3", "memory");
    }
    for (const int8_t *end = values + 4 * (n & 3); values != end; values += 4) {
        __asm__ volatile(
            PACK_WORD("%[word]")
            : [to] "+r"(to), [even] "=&r"(even), [odd] "=&r"(odd)
            : [word] "r"(pt_load_word(values)), [offsets] "r"(offsets), [step] "i"(8 * width)
            : "memory");
    }
}

// A multiple of 4 values from an address that is one, too.
static void pack_aligned(const pt_layer *layer, int32_t i, int32_t k, const int8_t *values,
                         int32_t count) {
    uint32_t offsets = (uint32_t)pt_pair_of(layer->offset);
    uint32_t *to = place(layer, i, k);
    if (layer->width == 6) {
        pack_words(to, values, count / 4, offsets, 6);
    } else if (layer->width == 2) {
        pack_words(to, values, count / 4, offsets, 2);
    } else {
        pack_words(to, values, count / 4, offsets, 1);
    }
}

static void pack_value(const pt_layer *layer, int32_t i, int32_t k, int32_t value) {
    int16_t *halves = (int16_t *)(place(layer, i, k) + (k & 1));
    halves[k >> 1 & 1] = (int16_t)value;
}

void pt_pack(const pt_layer *layer, int32_t i, int32_t k, const int8_t *values, int32_t count) {
    if (layer->capacity == 0) {
        memcpy((int8_t *)layer->block + k, values, (size_t)count);
    } else if ((((uintptr_t)values | (uint32_t)k | (uint32_t)count) & 3) == 0) {
        pack_aligned(layer, i, k, values, count);
    } else {
        for (; count > 0; count--) {
            pack_value(layer, i, k++, *values++ + layer->offset);
        }
    }
}

void pt_pad(const pt_layer *layer, int32_t i, int32_t k, int32_t count) {
    if (layer->capacity == 0) {
        memset((int8_t *)layer->block + k, -layer->offset, (size_t)count);
        return;
    }
    for (; count > 0 && ((k | count) & 3); count--) {
        pack_value(layer, i, k++, 0);
    }
    uint32_t *to = place(layer, i, k);
    for (; count > 0; count -= 4, to += 2 * layer->width) {
        to[0] = to[1] = 0;
    }
}

// ---- products

// What the loops over channels keep in memory: all registers are taken inside.
typedef struct pair {
    uintptr_t first, second;
} pair;

typedef struct loop {
    const uint32_t *start, *end; // of the block
    uint32_t skip;               // bytes of code of the steps that the first round does not do
    pair bias;                   // of the next channel; bytes to the one that follows
    pair parameters; // the next multiplier; bytes from the one that follows to the shift
    int32_t twice;   // the output's offset, doubled, and 1
    pair out;        // of the first patch; bytes to the next patch's
    int8_t *out_end;
    int32_t depth;
} loop;

enum { STEPS = 8 }; // that are unrolled

static const int32_t no_bias = 0;

// `steps` of `bytes` of code.
static loop begin_loop(const pt_layer *layer, int32_t channels, int32_t steps, uint32_t bytes,
                       int8_t *out) {
    const pt_channels *output = &layer->output;
    uintptr_t multipliers = (uintptr_t)output->multipliers;
    uintptr_t bias = (uintptr_t)(output->bias ? output->bias : &no_bias);
    return (loop){.start = layer->block,
                  .end = (const uint32_t *)layer->block + layer->width * (layer->depth / 2),
                  .skip = ((uint32_t)-steps & (STEPS - 1)) * bytes,
                  .bias = {bias, output->bias ? 4 : 0},
                  .parameters = {multipliers, (uintptr_t)output->shifts - multipliers - 4},
                  .twice = 2 * output->range.offset + 1,
                  .out = {(uintptr_t)out, (uintptr_t)layer->out_stride},
                  .out_end = out + channels,
                  .depth = layer->depth};
}

// The steps of a sum: an unrolled loop that is entered behind what it has too many.
#define SUM(step)                  \
    "ldr %[even], %[skip]\n\t"     \
    "add pc, %[even]\n\t"          \
    "nop\n"                        \
    "2:\n\t"                       \
    ".rept 8\n\t" step ".endr\n\t" \
    "ldr %[even], %[end]\n\t"      \
    "cmp %[a], %[even]\n\t"        \
    "bne 2b\n\t"

// As pt_scale and pt_saturate_int8 do.
#define FINISH(sum, multiplier, right, rounding, spare)      \
    "add " spare ", " rounding ", " sum ", asr #31\n\t"      \
    "lsl " sum ", " sum ", #1\n\t"                           \
    "smmlar " sum ", " sum ", " multiplier ", " spare "\n\t" \
    "asr " sum ", " sum ", " right "\n\t"                    \
    "ssat " sum ", #8, " sum "\n\t"

// From a shift, its negative and the rounding.
#define ROUNDING(rounding, right, twice)            \
    "mvn " rounding ", " right "\n\t"               \
    "lsl " rounding ", " twice ", " rounding "\n\t" \
    "rsb " right ", " right ", #0\n\t"

// Four products each of six patches with a channel.
#define STEP_6(s0, s1, s2, s3, s4, s5)     \
    "ldr.w %[odd], [%[w]], #4\n\t"         \
    "ldmia.w %[a]!, {r0-r3}\n\t"           \
    "sxtb16 %[even], %[odd]\n\t"           \
    "sxtb16 %[odd], %[odd], ror #8\n\t"    \
    "smlad %[s0], r0, %[even], " s0 "\n\t" \
    "smlad %[s1], r2, %[even], " s1 "\n\t" \
    "smlad %[s0], r1, %[odd], %[s0]\n\t"   \
    "smlad %[s1], r3, %[odd], %[s1]\n\t"   \
    "ldmia.w %[a]!, {r0-r3}\n\t"           \
    "smlad %[s2], r0, %[even], " s2 "\n\t" \
    "smlad %[s3], r2, %[even], " s3 "\n\t" \
    "smlad %[s2], r1, %[odd], %[s2]\n\t"   \
    "smlad %[s3], r3, %[odd], %[s3]\n\t"   \
    "ldmia.w %[a]!, {r0-r3}\n\t"           \
    "smlad %[s4], r0, %[even], " s4 "\n\t" \
    "smlad %[s5], r2, %[even], " s5 "\n\t" \
    "smlad %[s4], r1, %[odd], %[s4]\n\t"   \
    "smlad %[s5], r3, %[odd], %[s5]\n\t"

// Six patches, channel by channel. The first step adds to the bias.
static void multiply_6(const pt_layer *layer, int8_t *out) {
    int32_t steps = layer->depth / 4;
    loop x = begin_loop(layer, layer->channels, steps - 1, 72, out);
    const int8_t *w = layer->weights;
    const uint32_t *a;
    int32_t s0, s1, s2, s3, s4, s5, even, odd;
    x.skip = steps == 1 ? STEPS * 72 : x.skip;
    __asm__ volatile(
        "1:\n\t"
        "ldrd r0, r1, %[bias]\n\t"
        "ldr %[a], %[start]\n\t"
        "ldr %[s5], [r0]\n\t"
        "add r0, r1\n\t"
        "str r0, %[bias]\n\t" STEP_6("%[s5]", "%[s5]", "%[s5]", "%[s5]", "%[s5]", "%[s5]")
            SUM(STEP_6("%[s0]", "%[s1]", "%[s2]", "%[s3]", "%[s4]",
                       "%[s5]")) "ldrd r0, r1, %[parameters]\n\t"
                                 "ldr r2, [r0], #4\n\t"
                                 "str r0, %[parameters]\n\t"
                                 "ldr r3, [r0, r1]\n\t"
                                 "ldr r1, %[twice]\n\t"
                                 "ldrd %[even], %[odd], %[out]\n\t" ROUNDING("r0", "r3", "r1")
                                     FINISH("%[s0]", "r2", "r3", "r0",
                                            "r1") FINISH("%[s1]", "r2", "r3", "r0", "r1")
                                         FINISH("%[s2]", "r2", "r3", "r0",
                                                "r1") FINISH("%[s3]", "r2", "r3", "r0", "r1")
                                             FINISH("%[s4]", "r2", "r3", "r0", "r1") FINISH(
                                                 "%[s5]", "r2", "r3", "r0",
                                                 "r1") "add r1, %[even], %[odd]\n\t"
                                                       "strb %[s1], [%[even], %[odd]]\n\t"
                                                       "strb %[s2], [%[even], %[odd], lsl #1]\n\t"
                                                       "strb %[s3], [r1, %[odd], lsl #1]\n\t"
                                                       "strb %[s4], [%[even], %[odd], lsl #2]\n\t"
                                                       "strb %[s5], [r1, %[odd], lsl #2]\n\t"
                                                       "strb %[s0], [%[even]], #1\n\t"
                                                       "ldr r1, %[out_end]\n\t"
                                                       "str %[even], %[out]\n\t"
                                                       "cmp %[even], r1\n\t"
                                                       "bne 1b"
        : [w] "+r"(w), [a] "=&r"(a), [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3),
          [s4] "=&r"(s4), [s5] "=&r"(s5), [even] "=&r"(even), [odd] "=&r"(odd), [bias] "+m"(x.bias),
          [parameters] "+m"(x.parameters), [out] "+m"(x.out)
        : [start] "m"(x.start), [end] "m"(x.end), [skip] "m"(x.skip), [twice] "m"(x.twice),
          [out_end] "m"(x.out_end)
        : "r0", "r1", "r2", "r3", "cc", "memory");
}

// Four products each of two patches with two channels.
#define STEP_2x2                          \
    "ldmia.w %[a]!, {r0-r3}\n\t"          \
    "ldr.w %[odd], [%[w]], #4\n\t"        \
    "sxtb16 %[even], %[odd]\n\t"          \
    "sxtb16 %[odd], %[odd], ror #8\n\t"   \
    "smlad %[s0], r0, %[even], %[s0]\n\t" \
    "smlad %[s1], r2, %[even], %[s1]\n\t" \
    "smlad %[s0], r1, %[odd], %[s0]\n\t"  \
    "smlad %[s1], r3, %[odd], %[s1]\n\t"  \
    "ldr.w %[odd], [%[v]], #4\n\t"        \
    "sxtb16 %[even], %[odd]\n\t"          \
    "sxtb16 %[odd], %[odd], ror #8\n\t"   \
    "smlad %[s2], r0, %[even], %[s2]\n\t" \
    "smlad %[s3], r2, %[even], %[s3]\n\t" \
    "smlad %[s2], r1, %[odd], %[s2]\n\t"  \
    "smlad %[s3], r3, %[odd], %[s3]\n\t"

// Four products of a patch with two channels.
#define STEP_1x2                          \
    "ldrd r0, r1, [%[a]], #8\n\t"         \
    "ldr.w %[odd], [%[w]], #4\n\t"        \
    "sxtb16 %[even], %[odd]\n\t"          \
    "sxtb16 %[odd], %[odd], ror #8\n\t"   \
    "smlad %[s0], r0, %[even], %[s0]\n\t" \
    "smlad %[s0], r1, %[odd], %[s0]\n\t"  \
    "ldr.w %[odd], [%[v]], #4\n\t"        \
    "sxtb16 %[even], %[odd]\n\t"          \
    "sxtb16 %[odd], %[odd], ror #8\n\t"   \
    "smlad %[s2], r0, %[even], %[s2]\n\t" \
    "smlad %[s2], r1, %[odd], %[s2]\n\t"

// Two channels: their biases to s0 and s2, the place of the second one's weights to v.
#define BEGIN_PAIR             \
    "1:\n\t"                   \
    "ldrd r0, r1, %[bias]\n\t" \
    "ldr r2, %[depth]\n\t"     \
    "ldr %[a], %[start]\n\t"   \
    "add %[v], %[w], r2\n\t"   \
    "ldr %[s0], [r0]\n\t"      \
    "add r0, r1\n\t"           \
    "ldr %[s2], [r0]\n\t"      \
    "add r0, r1\n\t"           \
    "str r0, %[bias]\n\t"

// The multipliers to r2 and even, the shifts to r3 and odd, `twice` to r0.
#define PARAMETERS_OF_PAIR           \
    "mov %[w], %[v]\n\t"             \
    "ldrd r0, r1, %[parameters]\n\t" \
    "ldr r2, [r0], #4\n\t"           \
    "ldr r3, [r0, r1]\n\t"           \
    "ldr %[even], [r0], #4\n\t"      \
    "ldr %[odd], [r0, r1]\n\t"       \
    "str r0, %[parameters]\n\t"      \
    "ldr r0, %[twice]\n\t"

#define END_PAIR             \
    "ldr r1, %[out_end]\n\t" \
    "str r0, %[out]\n\t"     \
    "cmp r0, r1\n\t"         \
    "bne 1b"

// Channels up to an even number, two at a time.
static void multiply_2(const pt_layer *layer, int8_t *out) {
    loop x = begin_loop(layer, layer->channels & ~1, layer->depth / 4, 60, out);
    const int8_t *w = layer->weights, *v;
    const uint32_t *a;
    int32_t s0, s1, s2, s3, even, odd;
    __asm__ volatile(
        BEGIN_PAIR
        "mov %[s1], %[s0]\n\t"
        "mov %[s3], %[s2]\n\t" SUM(STEP_2x2) PARAMETERS_OF_PAIR ROUNDING("%[a]", "r3", "r0")
            FINISH("%[s0]", "r2", "r3", "%[a]", "r1") FINISH("%[s1]", "r2", "r3", "%[a]", "r1")
                ROUNDING("%[a]", "%[odd]", "r0") FINISH("%[s2]", "%[even]", "%[odd]", "%[a]", "r1")
                    FINISH("%[s3]", "%[even]", "%[odd]", "%[a]",
                           "r1") "ldrd r0, r1, %[out]\n\t"
                                 "strb %[s1], [r0, r1]\n\t"
                                 "strb %[s0], [r0], #1\n\t"
                                 "strb %[s3], [r0, r1]\n\t"
                                 "strb %[s2], [r0], #1\n\t" END_PAIR
        : [w] "+r"(w), [v] "=&r"(v), [a] "=&r"(a), [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2),
          [s3] "=&r"(s3), [even] "=&r"(even), [odd] "=&r"(odd), [bias] "+m"(x.bias),
          [parameters] "+m"(x.parameters), [out] "+m"(x.out)
        : [start] "m"(x.start), [end] "m"(x.end), [skip] "m"(x.skip), [twice] "m"(x.twice),
          [out_end] "m"(x.out_end), [depth] "m"(x.depth)
        : "r0", "r1", "r2", "r3", "cc", "memory");
}

static void multiply_1(const pt_layer *layer, int8_t *out) {
    loop x = begin_loop(layer, layer->channels & ~1, layer->depth / 4, 44, out);
    const int8_t *w = layer->weights, *v;
    const uint32_t *a;
    int32_t s0, s2, even, odd;
    __asm__ volatile(BEGIN_PAIR SUM(STEP_1x2) PARAMETERS_OF_PAIR ROUNDING("%[a]", "r3", "r0")
                         FINISH("%[s0]", "r2", "r3", "%[a]", "r1") ROUNDING("%[a]", "%[odd]", "r0")
                             FINISH("%[s2]", "%[even]", "%[odd]", "%[a]",
                                    "r1") "ldr r0, %[out]\n\t"
                                          "strb %[s0], [r0], #1\n\t"
                                          "strb %[s2], [r0], #1\n\t" END_PAIR
                     : [w] "+r"(w), [v] "=&r"(v), [a] "=&r"(a), [s0] "=&r"(s0), [s2] "=&r"(s2),
                       [even] "=&r"(even), [odd] "=&r"(odd), [bias] "+m"(x.bias),
                       [parameters] "+m"(x.parameters), [out] "+m"(x.out)
                     : [start] "m"(x.start), [end] "m"(x.end), [skip] "m"(x.skip),
                       [twice] "m"(x.twice), [out_end] "m"(x.out_end), [depth] "m"(x.depth)
                     : "r0", "r1", "r2", "r3", "cc", "memory");
}

// Channel o alone.
static void multiply_channel(const pt_layer *layer, int32_t o, int32_t n, int8_t *out) {
    int32_t width = layer->width;
    for (int32_t i = 0; i < n; i++, out += layer->out_stride) {
        const int8_t *w = layer->weights + o * layer->depth;
        const int16x2_t *a = (const int16x2_t *)layer->block + 2 * i;
        int32_t sum = pt_bias_of(&layer->output, o);
        for (const int8_t *end = w + layer->depth; w != end; w += 4, a += 2 * width) {
            uint32_t u = pt_load_word(w);
            sum = __smlad(a[0], pt_even_bytes(u), sum);
            sum = __smlad(a[1], pt_odd_bytes(u), sum);
        }
        out[o] = pt_finish(&layer->output, o, sum);
    }
}

static void multiply_pairs(const pt_layer *layer, int32_t n, int8_t *out) {
    if (layer->channels > 1 && n == 2) {
        multiply_2(layer, out);
    } else if (layer->channels > 1) {
        multiply_1(layer, out);
    }
    if (layer->channels & 1) {
        multiply_channel(layer, layer->channels - 1, n, out);
    }
}

// Limits outputs that are limited to int8 already.
static void limit(const pt_layer *layer, int32_t n, int8_t *out) {
    const pt_range *range = &layer->output.range;
    for (; n > 0; n--, out += layer->out_stride) {
        for (int32_t o = 0; o < layer->channels; o++) {
            out[o] = (int8_t)pt_clamp(out[o], range->min, range->max);
        }
    }
}

void pt_multiply_block(const pt_layer *layer, int32_t n, int8_t *out) {
    if (layer->capacity == 0) {
        pt_multiply_patch(layer, layer->block, out);
        return;
    }
    if (n == 6) {
        multiply_6(layer, out);
    } else {
        multiply_pairs(layer, n, out);
    }
    if (layer->limits) {
        limit(layer, n, out);
    }
}

void pt_multiply_rows(pt_layer *layer, const int8_t *patches, int32_t stride, int32_t n,
                      int8_t *out) {
    if (layer->capacity == 0) {
        for (; n > 0; n--, patches += stride, out += layer->out_stride) {
            pt_multiply_patch(layer, patches, out);
        }
    }
    for (int32_t done; n > 0; n -= done, out += done * layer->out_stride) {
        done = pt_begin_block(layer, n);
        for (int32_t i = 0; i < done; i++, patches += stride) {
            pt_pack(layer, i, 0, patches, layer->depth);
        }
        pt_multiply_block(layer, done, out);
    }
}

#endif
