// int8 GEMM of patches that lie in a row of the input (1x1 convolution), on cores with the DSP
// extension: pt_multiply_rows, called by convolve_1x1. Tile: 6 patches x 1 channel x 4 values by
// SMLAD, for a depth that is a multiple of 4 and plain weights, or packed ones where
// pt_dsp_prefers_six; else pairs by gemm_s8.c. Packing: values with the offset, doubled, as int16.
// Scratch: 12 bytes a value of depth, then 16 bytes a channel.
#include "arch/gemm_s8.h"

#if defined(PT_IM2COL_DSP)

#include "arch/dot.h"
#include "arch/dsp/channel_loop.h"
#include "arch/offsets.h"

enum { PATCHES = 6, FEWEST_CHANNELS = 8 };

// The parameters that requantize the sums of a channel.
typedef struct finish {
    int32_t multiplier, right, rounding;
    int32_t bias; // doubled, of the next channel
} finish;

PT_OFFSET(finish, multiplier, 0);
PT_OFFSET(finish, right, 4);
PT_OFFSET(finish, rounding, 8);
PT_OFFSET(finish, bias, 12);
PT_SIZE(finish, 16);

// ---- packing

#define PACK_WORD(word)                                \
    "sxtab16 %[even], %[offsets], " word "\n\t"        \
    "sxtab16 %[odd], %[offsets], " word ", ror #8\n\t" \
    "sxtab16 %[even], %[even], " word "\n\t"           \
    "sxtab16 %[odd], %[odd], " word ", ror #8\n\t"     \
    "strd %[even], %[odd], [%[to]], #48\n\t"

// Packs a patch of `count` values with the offset added, doubled.
static void pack_doubled(uint32_t *to, const int8_t *values, int32_t count, uint32_t offsets) {
    uint32_t even, odd;
    for (const int8_t *end = values + (count & ~15); values != end;) {
        // clang-format off
        __asm__ volatile(
            "ldmia %[values]!, {r0-r3}\n\t"
            PACK_WORD("r0")
            PACK_WORD("r1")
            PACK_WORD("r2")
            PACK_WORD("r3")
            : [values] "+r"(values), [to] "+r"(to), [even] "=&r"(even), [odd] "=&r"(odd)
            : [offsets] "r"(offsets)
            : "r0", "r1", "r2", "r3", "memory");
        // clang-format on
    }
    for (const int8_t *end = values + (count & 15); values != end; values += 4) {
        __asm__ volatile(PACK_WORD("%[word]")
                         : [to] "+r"(to), [even] "=&r"(even), [odd] "=&r"(odd)
                         : [word] "r"(pt_load_word(values)), [offsets] "r"(offsets)
                         : "memory");
    }
}

// ---- products

// clang-format off

// Four products each of six patches with a channel.
#define STEP(s0, s1, s2, s3, s4, s5)         \
    "ldr.w %[odd], [%[w]], #4\n\t"           \
    "ldmia.w %[a]!, {r0-r3}\n\t"             \
    "sxtb16 %[even], %[odd]\n\t"             \
    "sxtb16 %[odd], %[odd], ror #8\n\t"      \
    "smlad %[s0], r0, %[even], " s0 "\n\t"   \
    "smlad %[s1], r2, %[even], " s1 "\n\t"   \
    "smlad %[s0], r1, %[odd], %[s0]\n\t"     \
    "smlad %[s1], r3, %[odd], %[s1]\n\t"     \
    "ldmia.w %[a]!, {r0-r3}\n\t"             \
    "smlad %[s2], r0, %[even], " s2 "\n\t"   \
    "smlad %[s3], r2, %[even], " s3 "\n\t"   \
    "smlad %[s2], r1, %[odd], %[s2]\n\t"     \
    "smlad %[s3], r3, %[odd], %[s3]\n\t"     \
    "ldmia.w %[a]!, {r0-r3}\n\t"             \
    "smlad %[s4], r0, %[even], " s4 "\n\t"   \
    "smlad %[s5], r2, %[even], " s5 "\n\t"   \
    "smlad %[s4], r1, %[odd], %[s4]\n\t"     \
    "smlad %[s5], r3, %[odd], %[s5]\n\t"

enum { STEP_BYTES = 72 };

// Six packed patches, channel by channel. The first step adds to the bias.
static void multiply_6(const pt_gemm_s8 *layer, const int8_t *w, int32_t bias, const finish *channel,
                       const finish *end_of_channels, int8_t *out) {
    const uint32_t *start = layer->block, *a, *end = start + layer->depth / 4 * (2 * PATCHES);
    int32_t steps = layer->depth / 4 - 1, s0, s1, s2, s3, s4, even, odd;
    uint32_t skip = steps ? (uint32_t)-steps & (PT_STEPS - 1) : PT_STEPS;
    pt_pair to = {(uintptr_t)out, (uintptr_t)layer->out_stride};
    pt_pair channels = {(uintptr_t)channel, (uintptr_t)end_of_channels}; // the next, behind the last
    skip *= STEP_BYTES;
    __asm__ volatile(
        "1:\n\t"
        "ldr %[a], %[start]\n\t"
        STEP("%[s5]", "%[s5]", "%[s5]", "%[s5]", "%[s5]", "%[s5]")
        SUM(STEP("%[s0]", "%[s1]", "%[s2]", "%[s3]", "%[s4]", "%[s5]"), "%[even]")
        "ldr r0, %[channel]\n\t"
        "ldrd %[even], %[odd], %[to]\n\t"
        "ldr %[a], [r0, #12]\n\t"
        "ldmia r0, {r1-r3}\n\t"
        "add r0, #16\n\t"
        "str r0, %[channel]\n\t"
        FINISH_BEGIN("%[s0]", "r1", "r3", "r0")
        FINISH_BEGIN("%[s1]", "r1", "r3", "r0")
        FINISH_NEXT("%[s0]", "r2", "%[s2]", "r1", "r3", "r0")
        FINISH_NEXT("%[s1]", "r2", "%[s3]", "r1", "r3", "r0")
        FINISH_NEXT("%[s2]", "r2", "%[s4]", "r1", "r3", "r0")
        FINISH_NEXT("%[s3]", "r2", "%[s5]", "r1", "r3", "r0")
        FINISH_END("%[s4]", "r2")
        FINISH_END("%[s5]", "r2")
        "add r1, %[even], %[odd]\n\t"
        "strb %[s1], [%[even], %[odd]]\n\t"
        "strb %[s2], [%[even], %[odd], lsl #1]\n\t"
        "strb %[s3], [r1, %[odd], lsl #1]\n\t"
        "strb %[s4], [%[even], %[odd], lsl #2]\n\t"
        "strb %[s5], [r1, %[odd], lsl #2]\n\t"
        "strb %[s0], [%[even]], #1\n\t"
        "ldrd r0, r1, %[channel]\n\t"
        "mov %[s5], %[a]\n\t"
        "str %[even], %[to]\n\t"
        "cmp r0, r1\n\t"
        "bne 1b"
        : [w] "+r"(w), [a] "=&r"(a), [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2),
          [s3] "=&r"(s3), [s4] "=&r"(s4), [s5] "+r"(bias), [even] "=&r"(even), [odd] "=&r"(odd),
          [channel] "+m"(channels), [to] "+m"(to)
        : [start] "m"(start), [end] "m"(end), [skip] "m"(skip)
        : "r0", "r1", "r2", "r3", "cc", "memory");
}

// clang-format on

// Returns the number of channels whose table fits into the scratch behind six patches.
static int32_t channels_at_a_time(const pt_gemm_s8 *layer) {
    int32_t bytes = layer->capacity_bytes - PATCHES * 2 * layer->depth;
    bool best = !layer->packed || pt_dsp_prefers_six(layer->depth, layer->channels);
    bool possible = bytes > 0 && best && !layer->in_parts && layer->depth % 4 == 0;
    return !possible ? 0 : bytes < PT_TABLE_BYTES ? bytes / 16 : PT_TABLE_BYTES / 16;
}

static void make_table(const pt_gemm_s8 *layer, int32_t first, int32_t n, finish *table) {
    const pt_channels *output = &layer->output;
    const int32_t *multipliers = output->multipliers + first, *shifts = output->shifts + first;
    const int32_t *bias = output->bias ? output->bias + first : NULL;
    for (const finish *end = table + n; table != end; table++) {
        int32_t shift = *shifts++;
        table->multiplier = *multipliers++;
        table->right = (int32_t) - (uint32_t)shift;
        table->rounding = pt_rounding(shift, output->range.offset);
        table->bias = bias && table + 1 != end ? (int32_t)(2 * (uint32_t) * ++bias) : 0;
    }
}

// Multiplies n patches, or up to four fewer; returns their number.
static int32_t multiply_sixes(const pt_gemm_s8 *layer, const int8_t *patches, int32_t stride,
                              int32_t n, int8_t *out) {
    int32_t max = channels_at_a_time(layer), depth = layer->depth, channels;
    int32_t last = n % PATCHES == PATCHES - 1 ? n - PATCHES : n / PATCHES * PATCHES - PATCHES;
    uint32_t *block = layer->block, offsets = (uint32_t)pt_pair_of(2 * layer->offset);
    finish *table = (finish *)(void *)(block + depth * PATCHES / 2);
    if (max < FEWEST_CHANNELS || last < 0) {
        return 0;
    }
    for (int32_t first = 0; first < layer->channels; first += channels) {
        int32_t left = layer->channels - first;
        int32_t bias = (int32_t)(2 * (uint32_t)pt_bias_of(&layer->output, first));
        channels = left < max ? left : max;
        make_table(layer, first, channels, table);
        for (int32_t i = 0; i < last + PATCHES; i += PATCHES) {
            int32_t at = i < last ? i : last; // five patches: six with one that is done again
            for (int32_t j = 0; j < PATCHES; j++) {
                pack_doubled(block + 2 * j, patches + (at + j) * stride, depth, offsets);
            }
            multiply_6(layer, layer->weights + first * depth, bias, table, table + channels,
                       out + at * layer->out_stride + first);
        }
    }
    pt_limit(layer, last + PATCHES, out);
    return last + PATCHES;
}

void pt_multiply_rows(pt_gemm_s8 *layer, const int8_t *patches, int32_t stride, int32_t n,
                      int8_t *out) {
    int32_t done = multiply_sixes(layer, patches, stride, n, out);
    n -= done;
    out += done * layer->out_stride;
    patches += done * stride;
    for (; n > 0; n -= done, out += done * layer->out_stride) {
        done = pt_begin_block(layer, n);
        if (layer->capacity_bytes == 0) {
            pt_multiply_patch(layer, patches, out);
            patches += stride;
            continue;
        }
        for (int32_t i = 0; i < done; i++, patches += stride) {
            pt_pack(layer, i, 0, patches, layer->depth);
        }
        pt_multiply_block(layer, done, out);
    }
}

#endif
