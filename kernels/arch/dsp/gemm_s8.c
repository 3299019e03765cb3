// int8 GEMM on cores with the DSP extension: pt_multiply_block, for all convolutions that no
// variant, conv_strip.c or conv1x1.c computes. Tile: 2 patches x 2 channels x 4 values by SMLAD.
// Weights: plain if the depth is a multiple of 4, else widened to int16 for some channels at a
// time, or packed by pt_pack_layer_dsp. Patches: see im2col.inc. Scratch: 4 bytes x depth, rounded
// up to 4.
#include "arch/gemm_s8.h"

#if defined(PT_IM2COL_DSP)

#include "arch/dot.h"
#include "arch/dsp/channel_loop.h"
#include "arch/pack/pack.h"

typedef int16_t __attribute__((may_alias)) half;

// ---- layers

// Returns the number of channels whose widened weights fit into the words for them.
static int32_t channels_of_part(const pt_gemm_s8 *layer) {
    return (layer->part_words * 4 / (2 * pt_whole_depth(layer))) & ~1;
}

void pt_begin_layer(pt_gemm_s8 *layer, void *scratch, uint32_t bytes) {
    layer->block = scratch;
    layer->capacity_bytes = (int32_t)bytes;
    layer->in_parts = false;
    if (layer->packed) {
        return;
    }
    if (!pt_gemm_s8_scales_fast(layer)) {
        layer->capacity_bytes = 0;
    } else if (layer->depth & 3) {
        // To widen weights for a single patch takes longer than its products.
        layer->in_parts = !layer->has_one_patch && channels_of_part(layer) > 0;
        layer->capacity_bytes = layer->in_parts ? layer->capacity_bytes : 0;
    }
}

void pt_begin_channels(pt_gemm_s8 *layer, uint32_t *scratch) {
    int32_t max = channels_of_part(layer);
    if (!layer->in_parts) {
        return;
    }
    layer->channels = layer->channels < max ? layer->channels : max;
    layer->packed = scratch;
    for (int32_t o = 0; o + 1 < layer->channels; o += 2) {
        scratch = pt_widen_pair(layer->weights + o * layer->depth, layer->depth, scratch);
    }
}

// ---- packing

static inline uint32_t *gemm_s8_word_at(const pt_gemm_s8 *layer, int32_t i, int32_t k) {
    return (uint32_t *)layer->block + (k >> 2) * 2 * layer->width + 2 * i;
}

#define PACK_WORD(word)                                \
    "sxtab16 %[even], %[offsets], " word "\n\t"        \
    "sxtab16 %[odd], %[offsets], " word ", ror #8\n\t" \
    "strd %[even], %[odd], [%[to]]\n\t"                \
    "add %[to], %[to], %[step]\n\t"

// Packs n words of four values from an aligned address, `step` bytes apart.
static inline uint32_t *pack_words(uint32_t *to, const int8_t *values, int32_t n, uint32_t offsets,
                                   int32_t step) {
    uint32_t even, odd;
    for (const int8_t *end = values + 4 * (n & ~3); values != end;) {
        // clang-format off
        __asm__ volatile(
            "ldmia %[values]!, {r0-r3}\n\t"
            PACK_WORD("r0")
            PACK_WORD("r1")
            PACK_WORD("r2")
            PACK_WORD("r3")
            : [values] "+r"(values), [to] "+r"(to), [even] "=&r"(even), [odd] "=&r"(odd)
            : [offsets] "r"(offsets), [step] "r"(step)
            : "r0", "r1", "r2", "r3", "memory");
        // clang-format on
    }
    for (const int8_t *end = values + 4 * (n & 3); values != end; values += 4) {
        __asm__ volatile(
            PACK_WORD("%[word]")
            : [to] "+r"(to), [even] "=&r"(even), [odd] "=&r"(odd)
            : [word] "r"(pt_load_word(values)), [offsets] "r"(offsets), [step] "r"(step)
            : "memory");
    }
    return to;
}

// Returns values k and k + 2 with the offset added.
static inline __attribute__((always_inline)) uint32_t gemm_s8_pair_of(int32_t low, int32_t high,
                                                                      int16x2_t offsets) {
    uint32_t pair;
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(pair) : "r"(low), "r"(high));
    return (uint32_t)__sadd16((int16x2_t)pair, offsets);
}

// Returns values k and k + 2 of rows of nine that are `step` apart.
static inline __attribute__((always_inline)) uint32_t
pair_of_nines(const int8_t *values, int32_t step, int32_t k, int16x2_t offsets) {
    return gemm_s8_pair_of(values[k / 9 * step + k % 9], values[(k + 2) / 9 * step + (k + 2) % 9],
                           offsets);
}

// Packs the patch of a 3x3 kernel with three channels.
void pt_pack_3x9(const pt_gemm_s8 *layer, int32_t i, const int8_t *values, int32_t step) {
    int16x2_t offsets = pt_pair_of(layer->offset);
    uint32_t *to = gemm_s8_word_at(layer, i, 0);
#pragma GCC unroll 6
    for (int32_t k = 0; k < 24; k += 4, to += 2 * layer->width) {
        to[0] = pair_of_nines(values, step, k, offsets);
        to[1] = pair_of_nines(values, step, k + 1, offsets);
    }
    to[0] = pair_of_nines(values, step, 24, offsets);
    to[1] = (uint16_t)(values[2 * step + 7] + layer->offset);
}

// Packs the patch of a 3x3 kernel with one channel.
void pt_pack_3x3(const pt_gemm_s8 *layer, int32_t i, const int8_t *values, int32_t step) {
    int16x2_t offsets = pt_pair_of(layer->offset);
    const int8_t *second = values + step, *third = second + step;
    uint32_t *to = gemm_s8_word_at(layer, i, 0);
    to[0] = gemm_s8_pair_of(values[0], values[2], offsets);
    to[1] = gemm_s8_pair_of(values[1], second[0], offsets);
    to += 2 * layer->width;
    to[0] = gemm_s8_pair_of(second[1], third[0], offsets);
    to[1] = gemm_s8_pair_of(second[2], third[1], offsets);
    to += 2 * layer->width;
    to[0] = (uint16_t)(third[2] + layer->offset);
    to[1] = 0;
}

static void gemm_s8_pack_value(const pt_gemm_s8 *layer, int32_t i, int32_t k, int32_t value) {
    half *halves = (half *)(gemm_s8_word_at(layer, i, k) + (k & 1));
    halves[k >> 1 & 1] = (int16_t)value;
}

void pt_pack_words(const pt_gemm_s8 *layer, int32_t i, int32_t k, const int8_t *values,
                   int32_t count, int32_t rows, int32_t step) {
    uint32_t offsets = (uint32_t)pt_pair_of(layer->offset);
    uint32_t *to = gemm_s8_word_at(layer, i, k);
    for (; rows > 0; rows--, values += step) {
        to = pack_words(to, values, count / 4, offsets, 8 * layer->width);
    }
}

void pt_pack_bytes(const pt_gemm_s8 *layer, int32_t i, int32_t k, const int8_t *values,
                   int32_t count) {
    if (layer->capacity_bytes == 0) {
        memcpy((int8_t *)layer->block + k, values, (size_t)count);
        return;
    }
    for (const int8_t *end = values + count; values != end;) {
        if ((k & 3) || end - values < 4) {
            gemm_s8_pack_value(layer, i, k++, *values++ + layer->offset);
        } else {
            int16x2_t offsets = pt_pair_of(layer->offset);
            uint32_t *to = gemm_s8_word_at(layer, i, k);
            to[0] = gemm_s8_pair_of(values[0], values[2], offsets);
            to[1] = gemm_s8_pair_of(values[1], values[3], offsets);
            k += 4, values += 4;
        }
    }
    if (k == layer->depth) {
        pt_pad(layer, i, k, 0);
    }
}

enum { SHORT_PATCH = 64, CALL_BYTES = 12 }; // bytes of a row from which on memcpy is faster

// Gathers the rows of a patch, then packs words.
static __attribute__((noinline)) void pack_short_patch(const pt_gemm_s8 *layer, int32_t i,
                                                       const int8_t *values, int32_t count,
                                                       int32_t rows, int32_t step) {
    uint32_t words[SHORT_PATCH / 4];
    int32_t depth = pt_whole_depth(layer);
    int8_t *to = (int8_t *)words;
    words[depth / 4 - 1] = (uint32_t)(uint8_t)-layer->offset * 0x01010101;
    for (; rows > 0; rows--, values += step, to += count) {
        if (count >= CALL_BYTES) {
            memcpy(to, values, (size_t)count);
            continue;
        }
        for (int32_t k = count - 1; k >= 0; k--) {
            to[k] = values[k];
            __asm__ volatile("" ::: "memory"); // no call of memcpy
        }
    }
    pack_words(gemm_s8_word_at(layer, i, 0), (const int8_t *)words, depth / 4,
               (uint32_t)pt_pair_of(layer->offset), 8 * layer->width);
}

void pt_pack_byte_rows(const pt_gemm_s8 *layer, int32_t i, const int8_t *values, int32_t count,
                       int32_t rows, int32_t step) {
    if (layer->capacity_bytes > 0 && layer->depth <= SHORT_PATCH) {
        pack_short_patch(layer, i, values, count, rows, step);
        return;
    }
    for (int32_t k = 0; rows > 0; rows--, k += count, values += step) {
        pt_pack_bytes(layer, i, k, values, count);
    }
}

void pt_pad(const pt_gemm_s8 *layer, int32_t i, int32_t k, int32_t count) {
    if (layer->capacity_bytes == 0) {
        memset((int8_t *)layer->block + k, -layer->offset, (size_t)count);
        return;
    }
    int32_t end = k + count;
    end = end == layer->depth ? pt_whole_depth(layer) : end;
    for (; k < end && ((k | end) & 3); k++) {
        gemm_s8_pack_value(layer, i, k, 0);
    }
    for (uint32_t *to = gemm_s8_word_at(layer, i, k); k < end; k += 4, to += 2 * layer->width) {
        to[0] = to[1] = 0;
    }
}

// ---- products

pt_loop pt_begin_loop(const pt_gemm_s8 *layer, int32_t channels, int32_t steps, uint32_t bytes,
                      int8_t *out) {
    static const int32_t no_bias = 0;
    const pt_channels *output = &layer->output;
    uintptr_t multipliers = (uintptr_t)output->multipliers;
    uintptr_t bias = (uintptr_t)(output->bias ? output->bias : &no_bias);
    return (pt_loop){.start = layer->block,
                     .end = (const uint32_t *)layer->block +
                            layer->width * (pt_whole_depth(layer) / 2),
                     .skip = ((uint32_t)-steps & (PT_STEPS - 1)) * bytes,
                     .bias = {bias, output->bias ? 4 : 0},
                     .parameters = {multipliers, (uintptr_t)output->shifts - multipliers - 4},
                     .twice = 2 * output->range.offset + 1,
                     .out = {(uintptr_t)out, (uintptr_t)layer->out_stride},
                     .out_end = out + channels,
                     .depth = layer->depth};
}

// clang-format off

// Two channels: their biases to s0 and s2.
#define BEGIN_PAIR               \
    "1:\n\t"                     \
    "ldrd r0, r1, %[bias]\n\t"   \
    "ldr %[a], %[start]\n\t"     \
    "ldr %[s0], [r0]\n\t"        \
    "add r0, r1\n\t"             \
    "ldr %[s2], [r0]\n\t"        \
    "add r0, r1\n\t"             \
    "str r0, %[bias]\n\t"

// Their multipliers to r2 and m, the shifts to r3 and e, `twice` to r0.
#define PARAMETERS_OF_PAIR(m, e)       \
    "ldrd r0, r1, %[parameters]\n\t"   \
    "ldr r2, [r0], #4\n\t"             \
    "ldr r3, [r0, r1]\n\t"             \
    "ldr " m ", [r0], #4\n\t"          \
    "ldr " e ", [r0, r1]\n\t"          \
    "str r0, %[parameters]\n\t"        \
    "ldr r0, %[twice]\n\t"

#define STORE_2x2                \
    "ldrd r0, r1, %[out]\n\t"    \
    "strb %[s1], [r0, r1]\n\t"   \
    "strb %[s0], [r0], #1\n\t"   \
    "strb %[s3], [r0, r1]\n\t"   \
    "strb %[s2], [r0], #1\n\t"

#define END_PAIR               \
    "ldr r1, %[out_end]\n\t"   \
    "str r0, %[out]\n\t"       \
    "cmp r0, r1\n\t"           \
    "bne 1b"

// Four products each of two patches with two channels.
#define STEP_2x2                            \
    "ldmia.w %[a]!, {r0-r3}\n\t"            \
    "ldr.w %[odd], [%[w]], #4\n\t"          \
    "sxtb16 %[even], %[odd]\n\t"            \
    "sxtb16 %[odd], %[odd], ror #8\n\t"     \
    "smlad %[s0], r0, %[even], %[s0]\n\t"   \
    "smlad %[s1], r2, %[even], %[s1]\n\t"   \
    "smlad %[s0], r1, %[odd], %[s0]\n\t"    \
    "smlad %[s1], r3, %[odd], %[s1]\n\t"    \
    "ldr.w %[odd], [%[v]], #4\n\t"          \
    "sxtb16 %[even], %[odd]\n\t"            \
    "sxtb16 %[odd], %[odd], ror #8\n\t"     \
    "smlad %[s2], r0, %[even], %[s2]\n\t"   \
    "smlad %[s3], r2, %[even], %[s3]\n\t"   \
    "smlad %[s2], r1, %[odd], %[s2]\n\t"    \
    "smlad %[s3], r3, %[odd], %[s3]\n\t"

// With one patch, the outputs of the second patch are written first, and those of the first
// overwrite them.
static void multiply_2(const pt_gemm_s8 *layer, int32_t channels, int32_t n, int8_t *out) {
    pt_loop x = pt_begin_loop(layer, channels, layer->depth / 4, 60, out);
    const int8_t *w = layer->weights, *v;
    const uint32_t *a;
    int32_t s0, s1, s2, s3, even, odd;
    x.out.second = n == 2 ? x.out.second : 0;
    __asm__ volatile(
        BEGIN_PAIR
        "ldr r2, %[depth]\n\t"
        "mov %[s1], %[s0]\n\t"
        "mov %[s3], %[s2]\n\t"
        "add %[v], %[w], r2\n\t"
        SUM(STEP_2x2, "%[even]")
        "mov %[w], %[v]\n\t"
        PARAMETERS_OF_PAIR("%[even]", "%[odd]")
        ROUNDING("%[a]", "r3", "r0")
        DOUBLE("%[s0]")
        DOUBLE("%[s1]")
        FINISH_TWO("%[s0]", "%[s1]", "r2", "r3", "%[a]", "r1")
        ROUNDING("%[a]", "%[odd]", "r0")
        DOUBLE("%[s2]")
        DOUBLE("%[s3]")
        FINISH_TWO("%[s2]", "%[s3]", "%[even]", "%[odd]", "%[a]", "r1")
        STORE_2x2
        END_PAIR
        : [w] "+r"(w), [v] "=&r"(v), [a] "=&r"(a), [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2),
          [s3] "=&r"(s3), [even] "=&r"(even), [odd] "=&r"(odd), [bias] "+m"(x.bias),
          [parameters] "+m"(x.parameters), [out] "+m"(x.out)
        : [start] "m"(x.start), [end] "m"(x.end), [skip] "m"(x.skip), [twice] "m"(x.twice),
          [out_end] "m"(x.out_end), [depth] "m"(x.depth)
        : "r0", "r1", "r2", "r3", "cc", "memory");
}

// Four products each of two patches with two channels whose weights are packed.
#define STEP_PACKED                    \
    "ldmia.w %[a]!, {r0-r3}\n\t"         \
    "ldmia.w %[w]!, {r4-r6, r8}\n\t"     \
    "smlad %[s0], r0, r4, %[s0]\n\t"     \
    "smlad %[s1], r2, r4, %[s1]\n\t"     \
    "smlad %[s0], r1, r5, %[s0]\n\t"     \
    "smlad %[s1], r3, r5, %[s1]\n\t"     \
    "smlad %[s2], r0, r6, %[s2]\n\t"     \
    "smlad %[s3], r2, r6, %[s3]\n\t"     \
    "smlad %[s2], r1, r8, %[s2]\n\t"     \
    "smlad %[s3], r3, r8, %[s3]\n\t"

#define PACKED_OPERANDS                                                                       \
    [w] "+r"(w), [a] "=&r"(a), [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3), \
        [out] "+m"(x.out)

static void gemm_s8_multiply_packed(const pt_gemm_s8 *layer, int32_t channels, int32_t n, int8_t *out) {
    pt_loop x = pt_begin_loop(layer, channels, pt_whole_depth(layer) / 4, 40, out);
    const void *w = layer->packed;
    const uint32_t *a;
    int32_t s0, s1, s2, s3;
    x.out.second = n == 2 ? x.out.second : 0;
    __asm__ volatile(
        "1:\n\t"
        "ldr %[a], %[start]\n\t"
        "ldrd %[s0], %[s2], [%[w]], #8\n\t"
        "mov %[s1], %[s0]\n\t"
        "mov %[s3], %[s2]\n\t"
        SUM(STEP_PACKED, "r0")
        "ldmia.w %[w]!, {r0-r5}\n\t"
        FINISH_PAIRS("")
        STORE_2x2
        END_PAIR
        : PACKED_OPERANDS
        : [start] "m"(x.start), [end] "m"(x.end), [skip] "m"(x.skip), [out_end] "m"(x.out_end)
        : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r8", "cc", "memory");
}

// The same, with packed weights but plain parameters.
static void multiply_part(const pt_gemm_s8 *layer, int32_t channels, int32_t n, int8_t *out) {
    pt_loop x = pt_begin_loop(layer, channels, pt_whole_depth(layer) / 4, 40, out);
    const void *w = layer->packed;
    const uint32_t *a;
    int32_t s0, s1, s2, s3;
    x.out.second = n == 2 ? x.out.second : 0;
    __asm__ volatile(
        BEGIN_PAIR
        "lsl %[s0], %[s0], #1\n\t"
        "lsl %[s2], %[s2], #1\n\t"
        "mov %[s1], %[s0]\n\t"
        "mov %[s3], %[s2]\n\t"
        SUM(STEP_PACKED, "r0")
        PARAMETERS_OF_PAIR("r4", "r5")
        ROUNDING("r6", "r3", "r0")
        FINISH_TWO("%[s0]", "%[s1]", "r2", "r3", "r6", "r1")
        ROUNDING("r6", "r5", "r0")
        FINISH_TWO("%[s2]", "%[s3]", "r4", "r5", "r6", "r1")
        STORE_2x2
        END_PAIR
        : PACKED_OPERANDS, [bias] "+m"(x.bias), [parameters] "+m"(x.parameters)
        : [start] "m"(x.start), [end] "m"(x.end), [skip] "m"(x.skip), [twice] "m"(x.twice),
          [out_end] "m"(x.out_end)
        : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r8", "cc", "memory");
}

// clang-format on

static inline int16x2_t weights_k_and_k_plus_2(const int8_t *w) {
    uint32_t pair;
    __asm__("pkhbt %0, %1, %2, lsl #16" : "=r"(pair) : "r"((int32_t)w[0]), "r"((int32_t)w[2]));
    return (int16x2_t)pair;
}

// Computes channel o, the last of an odd number, for n patches: one or two. Its weights may have
// any address.
static void multiply_channel(const pt_gemm_s8 *layer, int32_t o, int32_t n, int8_t *out) {
    const int8_t *w = layer->weights + o * layer->depth;
    const int16x2_t *a = (const void *)layer->block;
    int32_t s0 = pt_bias_of(&layer->output, o), s1 = s0, k = layer->depth;
    for (; k >= 4; k -= 4, w += 4, a += 4) {
        const int16x2_t even = weights_k_and_k_plus_2(w), odd = weights_k_and_k_plus_2(w + 1);
        s0 = __smlad(a[1], odd, __smlad(a[0], even, s0));
        s1 = __smlad(a[3], odd, __smlad(a[2], even, s1));
    }
    const half *values = (const half *)a;
    for (int32_t j = 0; j < k; j++) {
        const int32_t at = 2 * (j & 1) + (j >> 1);
        s0 += values[at] * w[j];
        s1 += values[4 + at] * w[j];
    }
    out[o] = pt_finish(&layer->output, o, s0);
    if (n == 2) {
        out[layer->out_stride + o] = pt_finish(&layer->output, o, s1);
    }
}

void pt_limit(const pt_gemm_s8 *layer, int32_t n, int8_t *out) {
    const pt_range *range = &layer->output.range;
    for (; n > 0 && pt_narrows(range); n--, out += layer->out_stride) {
        for (int32_t o = 0; o < layer->channels; o++) {
            out[o] = (int8_t)pt_clamp(out[o], range->min, range->max);
        }
    }
}

static void gemm_s8_multiply(const pt_gemm_s8 *layer, int32_t n, int8_t *out) {
    int32_t even = layer->channels & ~1;
    if (even > 0 && layer->in_parts) {
        multiply_part(layer, even, n, out);
    } else if (even > 0 && layer->packed) {
        gemm_s8_multiply_packed(layer, even, n, out);
    } else if (even > 0) {
        multiply_2(layer, even, n, out);
    }
    if (even < layer->channels) {
        multiply_channel(layer, even, n, out);
    }
}

void pt_multiply_block(const pt_gemm_s8 *layer, int32_t n, int8_t *out) {
    if (layer->capacity_bytes == 0) {
        pt_multiply_patch(layer, layer->block, out);
        return;
    }
    gemm_s8_multiply(layer, n, out);
    pt_limit(layer, n, out);
}

#endif
