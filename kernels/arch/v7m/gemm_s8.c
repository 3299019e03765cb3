// int8 GEMM for ARMv7-M, for all convolutions. Tiles: 6 patches x 1 channel x 2 values, or 2
// patches x 2 channels x 2 values; one MLA makes two products (products.h). Other parameters: plain
// C. Plain weights. Patches: see im2col.inc. Scratch: the block, then the folded biases, of some
// channels at a time if it is short.
#include "arch/gemm_s8.h"

#if defined(PT_LOOPS_V7M)
#include "arch/v7m/products.h"

// ---- channels

typedef uint32_t __attribute__((may_alias)) pt_word;

// Sums four weights at a time, as values from 0 to 255 in halves of words, which 64 of them fit
// into.
static int32_t sum_weights(const int8_t *weights, int32_t depth) {
    enum { MAX_WORDS = 64 };
    const uint32_t mask = 0x00FF00FF;
    const int8_t *end = weights + depth;
    int32_t sum = 0;
    while (weights != end) {
        int32_t words = (int32_t)(end - weights) / 4;
        if (words == 0 || (uintptr_t)weights & 3) {
            sum += *weights++;
            continue;
        }
        const pt_word *word = (const pt_word *)(const void *)weights;
        words = words < MAX_WORDS ? words : MAX_WORDS;
        weights += 4 * words;
        uint32_t all = 0, halves = 0; // of the odd bytes; all without them has the even ones
#pragma GCC unroll 4
        for (int32_t i = 0; i < words; i++) {
            uint32_t bytes = *word++ ^ 0x80808080;
            all += bytes;
            halves += bytes >> 8 & mask;
        }
        all -= halves << 8;
        sum += (int32_t)((all & 0xFFFF) + (all >> 16));
        sum += (int32_t)((halves & 0xFFFF) + (halves >> 16)) - words * 4 * 128;
    }
    return sum;
}

// Folds the layer's offset into the biases, of as many channels as fit into the scratch.
void pt_begin_channels(pt_gemm_s8 *layer, uint32_t *scratch) {
    const pt_channels *output = &layer->output;
    const int8_t *w = layer->weights;
    int32_t max = scratch == pt_channel_scratch(layer)
                      ? (int32_t)(layer->spare_bytes / sizeof *scratch)
                      : PT_CHANNEL_WORDS;
    layer->channels = layer->channels < max ? layer->channels : max;
    layer->scales_fast = !pt_narrows(&output->range) && pt_gemm_s8_scales_fast(layer);
    layer->folded = (int32_t *)scratch;
    for (int32_t o = 0; o < layer->channels; o++, w += layer->depth) {
        uint32_t offset = (uint32_t)layer->offset * (uint32_t)sum_weights(w, layer->depth);
        scratch[o] = (uint32_t)pt_bias_of(output, o) + offset;
    }
}

// ---- packing

#define PT_LOAD_FOUR(values)           \
    "ldrsb.w r4, [" values "]\n\t"     \
    "ldrsb.w r5, [" values ", #1]\n\t" \
    "ldrsb.w r6, [" values ", #2]\n\t" \
    "ldrsb.w r8, [" values ", #3]\n\t" \
    "add.w " values ", " values ", #4\n\t"

// Packs four values at a time of the first patch of a pair; `step` is the bytes from one pair of
// values to the next. `fours` is not 0.
static inline void pack_fours(uint32_t **to, const int8_t **values, int32_t step, int32_t fours) {
    // clang-format off
    __asm__ volatile(
        "1:\n\t"
        PT_LOAD_FOUR("%[values]")
        "str.w r4, [%[to]]\n\t"
        "str.w r5, [%[to], #4]\n\t"
        "add %[to], %[to], %[step]\n\t"
        "str.w r6, [%[to]]\n\t"
        "str.w r8, [%[to], #4]\n\t"
        "add %[to], %[to], %[step]\n\t"
        "subs %[fours], #1\n\t"
        "bne 1b"
        : [to] "+r"(*to), [values] "+r"(*values), [fours] "+r"(fours)
        : [step] "r"(step)
        : "r4", "r5", "r6", "r8", "cc", "memory");
    // clang-format on
}

// The same for the second patch, added to the words.
static inline void add_fours(uint32_t **to, const int8_t **values, int32_t step, int32_t fours) {
    uint32_t a, b;
    // clang-format off
    __asm__ volatile(
        "1:\n\t"
        PT_LOAD_FOUR("%[values]")
        "ldr.w %[a], [%[to]]\n\t"
        "ldr.w %[b], [%[to], #4]\n\t"
        "add %[a], %[a], r4, lsl #16\n\t"
        "add %[b], %[b], r5, lsl #16\n\t"
        "str.w %[a], [%[to]]\n\t"
        "str.w %[b], [%[to], #4]\n\t"
        "add %[to], %[to], %[step]\n\t"
        "ldr.w %[a], [%[to]]\n\t"
        "ldr.w %[b], [%[to], #4]\n\t"
        "add %[a], %[a], r6, lsl #16\n\t"
        "add %[b], %[b], r8, lsl #16\n\t"
        "str.w %[a], [%[to]]\n\t"
        "str.w %[b], [%[to], #4]\n\t"
        "add %[to], %[to], %[step]\n\t"
        "subs %[fours], #1\n\t"
        "bne 1b"
        : [to] "+r"(*to), [values] "+r"(*values), [fours] "+r"(fours), [a] "=&r"(a), [b] "=&r"(b)
        : [step] "r"(step)
        : "r4", "r5", "r6", "r8", "cc", "memory");
    // clang-format on
}

#undef PT_LOAD_FOUR

static inline void gemm_s8_pack_value(uint32_t *to, int32_t i, int32_t value) {
    *to = i & 1 ? *to + ((uint32_t)value << 16) : (uint32_t)value;
}

void pt_pack_values(const pt_gemm_s8 *layer, int32_t i, int32_t k, const int8_t *values,
                    int32_t count, int32_t rows, int32_t step) {
    uint32_t *to = pt_pair_at(layer, i, k);
    const int32_t words = layer->width;
    for (step -= count; rows > 0; rows--, values += step) {
        const int8_t *end = values + count;
        if (k & 1 && values != end) {
            gemm_s8_pack_value(to, i, *values++);
            to += words - 1;
        }
        int32_t fours = (int32_t)(end - values) / 4;
        if (fours) {
            if (i & 1) {
                add_fours(&to, &values, words * (int32_t)sizeof *to, fours);
            } else {
                pack_fours(&to, &values, words * (int32_t)sizeof *to, fours);
            }
        }
        for (; end - values > 1; values += 2, to += words) {
            gemm_s8_pack_value(to, i, values[0]);
            gemm_s8_pack_value(to + 1, i, values[1]);
        }
        if (values != end) {
            gemm_s8_pack_value(to++, i, *values++);
        }
        k += count;
    }
}

// Packs four values at a time of both patches.
static inline void pack_both(uint32_t **to, const int8_t **values, int32_t next, int32_t step,
                             int32_t fours) {
#define PT_TWO_OF_BOTH(first, second)          \
    "ldrsb.w r4, [%[values], #" first "]\n\t"  \
    "ldrsb.w r5, [%[others], #" first "]\n\t"  \
    "ldrsb.w r6, [%[values], #" second "]\n\t" \
    "ldrsb.w r8, [%[others], #" second "]\n\t" \
    "add.w r4, r4, r5, lsl #16\n\t"            \
    "add.w r6, r6, r8, lsl #16\n\t"            \
    "str.w r4, [%[to]]\n\t"                    \
    "str.w r6, [%[to], #4]\n\t"                \
    "add %[to], %[to], %[step]\n\t"
    const int8_t *others = *values + next;
    // clang-format off
    __asm__ volatile(
        "1:\n\t"
        PT_TWO_OF_BOTH("0", "1")
        PT_TWO_OF_BOTH("2", "3")
        "add %[values], %[values], #4\n\t"
        "add %[others], %[others], #4\n\t"
        "subs %[fours], #1\n\t"
        "bne 1b"
        : [to] "+r"(*to), [values] "+r"(*values), [others] "+r"(others), [fours] "+r"(fours)
        : [step] "r"(step)
        : "r4", "r5", "r6", "r8", "cc", "memory");
    // clang-format on
#undef PT_TWO_OF_BOTH
}

void pt_pack_two(const pt_gemm_s8 *layer, int32_t i, const int8_t *values, int32_t next,
                 int32_t count, int32_t rows, int32_t step) {
    uint32_t *to = pt_pair_at(layer, i, 0);
    const int32_t words = layer->width;
    for (step -= count; rows > 0; rows--, values += step) {
        int32_t left = count;
        while (left > 0) {
            // A single word: pack_both starts at the first of two values.
            bool second = (((uintptr_t)to - (uintptr_t)layer->block) & 4) != 0;
            if (!second && left > 3) {
                pack_both(&to, &values, next, words * (int32_t)sizeof *to, left / 4);
                left &= 3;
                continue;
            }
            *to = (uint32_t)values[0] + ((uint32_t)values[next] << 16);
            to += second ? words - 1 : 1;
            values++;
            left--;
        }
    }
}

void pt_pad(const pt_gemm_s8 *layer, int32_t i, int32_t k, int32_t count) {
    uint32_t *to = pt_pair_at(layer, i, k);
    const int32_t value = -layer->offset, words = layer->width;
    if (k & 1 && count > 0) {
        gemm_s8_pack_value(to, i, value);
        to += words - 1;
        count--;
    }
    for (; count > 1; count -= 2, to += words) {
        gemm_s8_pack_value(to, i, value);
        gemm_s8_pack_value(to + 1, i, value);
    }
    if (count > 0) {
        gemm_s8_pack_value(to, i, value);
    }
}

// ---- blocks

// Multiplies a pair, of which n patches exist, with the channels from o on, for any parameters.
static void gemm_s8_multiply_plainly(const pt_gemm_s8 *layer, int32_t o, int32_t n, int8_t *out) {
    const int8_t *w = layer->weights + o * layer->depth;
    for (; o < layer->channels; o++) {
        const int32_t *words = layer->block;
        uint32_t first = (uint32_t)layer->folded[o], second = first;
        for (const int8_t *end = w + layer->depth; w != end; w++) {
            int32_t word = *words++, low = (int16_t)word;
            first += (uint32_t)(low * *w);
            second += (uint32_t)(((word - low) >> 16) * *w);
        }
        out[o] = pt_finish(&layer->output, o, (int32_t)first);
        if (n == 2) {
            out[o + layer->out_stride] = pt_finish(&layer->output, o, (int32_t)second);
        }
    }
}

// Makes the second patch of a pair a copy of the first.
static void double_first(const pt_gemm_s8 *layer) {
    int16_t *values = layer->block;
    uint32_t *words = layer->block;
    for (int32_t k = 0; k < layer->depth; k++) {
        words[k] = (uint32_t)values[2 * k] * 0x10001u;
    }
}

static void multiply_fast(const pt_gemm_s8 *layer, int32_t n, int8_t *out) {
    const pt_channels *p = &layer->output;
    bool full = layer->width == PT_PATCHES;
    int32_t channels = full ? layer->channels : layer->channels & ~1;
    uint32_t halves = (uint32_t)(layer->depth + 1) / 2 * PT_HALF;
    pt_tile_args args = {.bias = layer->folded,
                         .multipliers = p->multipliers,
                         .shifts = p->shifts,
                         .rounding = 2 * p->range.offset + 1,
                         .out = out,
                         .out_step = n > 1 ? layer->out_stride : 0,
                         .patches = layer->block,
                         .depth = layer->depth,
                         .weights = layer->weights,
                         .end = layer->weights + channels * layer->depth,
                         .first = {(int32_t) - (halves * 0x10001u), (int32_t)-halves}};
    if (full) {
        pt_multiply_3x1(&args);
    } else if (channels) {
        pt_multiply_1x2(&args);
    }
}

void pt_multiply_block(const pt_gemm_s8 *layer, int32_t n, int8_t *out) {
    if (!layer->scales_fast) {
        gemm_s8_multiply_plainly(layer, 0, n, out);
        return;
    }
    if (n == 1) {
        double_first(layer);
    }
    multiply_fast(layer, n, out);
    if (layer->width < PT_PATCHES && layer->channels & 1) {
        gemm_s8_multiply_plainly(layer, layer->channels - 1, n, out);
    }
}

// ---- rows

// Packs two rows to a block of one pair.
static inline void pack_pair(const pt_gemm_s8 *layer, const int8_t *first, const int8_t *second) {
    uint32_t *to = layer->block;
    const int8_t *end = first + layer->depth;
#pragma GCC unroll 4
    while (first != end) {
        *to++ = (uint32_t)*first++ + ((uint32_t)*second++ << 16);
    }
}

// Packs six rows, `stride` bytes apart, to a full block, two values at a time.
static void pack_six(const pt_gemm_s8 *layer, const int8_t *rows, int32_t stride) {
#define PT_TWO_ROWS(first, second, at)  \
    "ldrsb.w r10, [" first "], #1\n\t"  \
    "ldrsb.w r11, [" second "], #1\n\t" \
    "ldrsb.w r12, [" first "], #1\n\t"  \
    "ldrsb.w lr, [" second "], #1\n\t"  \
    "add.w r10, r10, r11, lsl #16\n\t"  \
    "add.w r12, r12, lr, lsl #16\n\t"   \
    "str.w r10, [%[to], #" at "]\n\t"   \
    "str.w r12, [%[to], #" at " + 4]\n\t"
    register const int8_t *row __asm__("r0") = rows;
    register int32_t step __asm__("r12") = stride;
    uint32_t *to = layer->block;
    int32_t twos = layer->depth / 2;
    // clang-format off
    __asm__ volatile(
        "add r1, r0, r12\n\t"
        "add r2, r1, r12\n\t"
        "add r3, r2, r12\n\t"
        "add r4, r3, r12\n\t"
        "add r5, r4, r12\n\t"
        "b 2f\n"
        "1:\n\t"
        PT_TWO_ROWS("r0", "r1", "0")
        PT_TWO_ROWS("r2", "r3", "8")
        PT_TWO_ROWS("r4", "r5", "16")
        "add %[to], %[to], #24\n"
        "2:\n\t"
        "subs %[twos], #1\n\t"
        "bpl 1b"
        : "+r"(row), "+r"(step), [to] "+r"(to), [twos] "+r"(twos)
        :
        : "r1", "r2", "r3", "r4", "r5", "r10", "r11", "lr", "cc", "memory");
    // clang-format on
#undef PT_TWO_ROWS
    for (int32_t i = 0; i < PT_PATCHES && layer->depth & 1; i++) {
        gemm_s8_pack_value(to + (i & ~1), i, rows[i * stride + layer->depth - 1]);
    }
}

// The last block overlaps the block before it if pairs would be slower.
void pt_multiply_rows(pt_gemm_s8 *layer, const int8_t *patches, int32_t stride, int32_t n,
                      int8_t *out) {
    int32_t count, max_rest = layer->depth < 64 ? 2 : 4;
    for (int32_t done = 0; done < n; done += count) {
        pt_begin_block(layer, n - done > max_rest ? n : 2);
        count = layer->width < n ? layer->width : n;
        done = done + count < n ? done : n - count;
        const int8_t *row = patches + done * stride;
        if (layer->width == 2) {
            pack_pair(layer, row, count == 2 ? row + stride : row);
        } else {
            pack_six(layer, row, stride);
        }
        pt_multiply_block(layer, count, out + done * layer->out_stride);
    }
}

#endif
