#include "../patches.h"

#if defined(PT_LOOPS_V7M)
#include "../pack_by_depth.h"
#include "products.h"

// ---- packing

// Four words a time, of a block of one pair. `fours` is not 0.
static inline void pack_fours(uint32_t **to, const int8_t **values, uint32_t offset,
                              int32_t fours) {
    __asm__ volatile("1:\n\t"
                     "ldrsb.w r4, [%[values]], #1\n\t"
                     "ldrsb.w r5, [%[values]], #1\n\t"
                     "ldrsb.w r6, [%[values]], #1\n\t"
                     "ldrsb.w r8, [%[values]], #1\n\t"
                     "subs %[fours], #1\n\t"
                     "add r4, r4, %[offset]\n\t"
                     "add r5, r5, %[offset]\n\t"
                     "add r6, r6, %[offset]\n\t"
                     "add r8, r8, %[offset]\n\t"
                     "stmia.w %[to]!, {r4, r5, r6, r8}\n\t"
                     "bne 1b"
                     : [to] "+r"(*to), [values] "+r"(*values), [fours] "+r"(fours)
                     : [offset] "r"(offset)
                     : "r4", "r5", "r6", "r8", "cc", "memory");
}

// The same of the second patch.
static inline void add_fours(uint32_t **to, const int8_t **values, int32_t fours) {
    int32_t a, b;
    __asm__ volatile(
        "1:\n\t"
        "ldmia.w %[to], {r4, r5, r6, r8}\n\t"
        "ldrsb.w %[a], [%[values]], #1\n\t"
        "ldrsb.w %[b], [%[values]], #1\n\t"
        "add r4, r4, %[a], lsl %[shift]\n\t"
        "add r5, r5, %[b], lsl %[shift]\n\t"
        "ldrsb.w %[a], [%[values]], #1\n\t"
        "ldrsb.w %[b], [%[values]], #1\n\t"
        "add r6, r6, %[a], lsl %[shift]\n\t"
        "add r8, r8, %[b], lsl %[shift]\n\t"
        "subs %[fours], #1\n\t"
        "stmia.w %[to]!, {r4, r5, r6, r8}\n\t"
        "bne 1b"
        : [to] "+r"(*to), [values] "+r"(*values), [fours] "+r"(fours), [a] "=&r"(a), [b] "=&r"(b)
        : [shift] "i"(PT_PAIR_SHIFT)
        : "r4", "r5", "r6", "r8", "cc", "memory");
}

// The same by twos of values, of one of two patches.
static inline void pack_fours_by_depth(uint32_t **to, const int8_t **values, uint32_t offsets,
                                       int32_t fours) {
    __asm__ volatile("1:\n\t"
                     "ldrsb.w r4, [%[values]], #1\n\t"
                     "ldrsb.w r5, [%[values]], #1\n\t"
                     "ldrsb.w r6, [%[values]], #1\n\t"
                     "ldrsb.w r8, [%[values]], #1\n\t"
                     "subs %[fours], #1\n\t"
                     "add r4, r4, %[offsets]\n\t"
                     "add r6, r6, %[offsets]\n\t"
                     "add r4, r4, r5, lsl %[shift]\n\t"
                     "add r6, r6, r8, lsl %[shift]\n\t"
                     "str r4, [%[to]], #8\n\t"
                     "str r6, [%[to]], #8\n\t"
                     "bne 1b"
                     : [to] "+r"(*to), [values] "+r"(*values), [fours] "+r"(fours)
                     : [offsets] "r"(offsets), [shift] "i"(PT_PAIR_SHIFT)
                     : "r4", "r5", "r6", "r8", "cc", "memory");
}

static void pack_by_depth(const pt_layer *layer, int32_t i, int32_t k, const int8_t *values,
                          int32_t count, int32_t rows, int32_t step) {
    uint32_t offsets = (uint32_t)layer->offset + ((uint32_t)layer->offset << PT_PAIR_SHIFT);
    int32_t fours = count / 4;
    for (; rows > 0; rows--, values += step - count) {
        const int8_t *end = values + count;
        if (fours && !(k & 1)) {
            uint32_t *to = (uint32_t *)layer->block + k + i;
            pack_fours_by_depth(&to, &values, offsets, fours);
            k += 4 * fours;
        }
        pt_pack_row_by_depth(layer->block, i, k, PT_PAIR_SHIFT, layer->offset, values,
                             (int32_t)(end - values));
        k += (int32_t)(end - values);
        values = end;
    }
}

// Three rows of nine values, as the first layer of an image has them, of a block of one pair.
static void pack_3x9(uint32_t *to, const int8_t *values, int32_t step, uint32_t offset) {
    const int8_t *end = values + 3 * step;
    for (step -= 8; values != end; values += step) {
        pack_fours(&to, &values, offset, 2);
        *to++ = (uint32_t)*values + offset;
    }
}

static void add_3x9(uint32_t *to, const int8_t *values, int32_t step) {
    const int8_t *end = values + 3 * step;
    for (step -= 8; values != end; values += step) {
        add_fours(&to, &values, 2);
        *to++ += (uint32_t)*values << PT_PAIR_SHIFT;
    }
}

void pt_pack_values(const pt_layer *layer, int32_t i, int32_t k, const int8_t *values,
                    int32_t count, int32_t rows, int32_t step) {
    if (layer->by_depth) {
        pack_by_depth(layer, i, k, values, count, rows, step);
        return;
    }
    uint32_t *to = pt_pair_at(layer, i, k), offset = (uint32_t)layer->offset;
    int32_t pairs = layer->width / 2, fours = pairs == 1 ? count / 4 : 0;
    offset += offset << PT_PAIR_SHIFT;
    if (pairs == 1 && count == 9 && rows == 3) {
        if (i) {
            add_3x9(to, values, step);
        } else {
            pack_3x9(to, values, step, offset);
        }
        return;
    }
    for (step -= count; rows > 0; rows--, values += step) {
        const int8_t *end = values + count;
        if (i & 1) {
            if (fours) {
                add_fours(&to, &values, fours);
            }
            for (; values != end; to += pairs) {
                *to += (uint32_t)*values++ << PT_PAIR_SHIFT;
            }
        } else {
            if (fours) {
                pack_fours(&to, &values, offset, fours);
            }
            for (; values != end; to += pairs) {
                *to = (uint32_t)*values++ + offset;
            }
        }
    }
}

void pt_pad(const pt_layer *layer, int32_t i, int32_t k, int32_t count) {
    uint32_t *to = pt_pair_at(layer, i, k), offset = (uint32_t)layer->offset << PT_PAIR_SHIFT;
    int8_t zero_point = (int8_t)-layer->offset;
    for (int32_t pairs = layer->width / 2; count > 0; count--, to += pairs) {
        if (layer->by_depth) {
            pt_pack_row_by_depth(layer->block, i, k++, PT_PAIR_SHIFT, layer->offset, &zero_point,
                                 1);
        } else {
            *to = i & 1 ? *to - offset : offset;
        }
    }
}

// ---- blocks

// The first sum of 64 bits with two.
static inline int32_t first_of(uint64_t sum) {
    int32_t bits = 32 - PT_PAIR_SHIFT;
    return (int32_t)((uint32_t)sum << bits) >> bits;
}

// A pair and the channels from o on, for any parameters; n of its patches are there.
static void multiply_plainly(const pt_layer *layer, int32_t o, int32_t n, int8_t *out) {
    const int8_t *w = layer->weights + o * layer->depth;
    for (; o < layer->channels; o++) {
        const uint32_t *words = layer->block;
        uint64_t sum = 0;
        uint32_t first = 0;
        for (int32_t k = 0; k < layer->depth; k++) {
            sum += (uint64_t)((int64_t)(int32_t)words[k] * *w++);
            if (k % PT_CHUNK == PT_CHUNK - 1 || k == layer->depth - 1) {
                first += (uint32_t)first_of(sum);
                sum -= (uint64_t)(int64_t)first_of(sum);
            }
        }
        uint32_t sums[2] = {first, (uint32_t)(sum >> PT_PAIR_SHIFT)};
        for (int32_t i = 0; i < n; i++) {
            int32_t biased = pt_add_int32((int32_t)sums[i], pt_bias_of(&layer->output, o));
            out[o + i * layer->out_stride] = pt_finish(&layer->output, o, biased);
        }
    }
}

// Makes the second patch of a pair a copy of the first.
static void double_first(const pt_layer *layer) {
    uint32_t *words = layer->block;
    for (int32_t k = 0; k < layer->depth; k++) {
        uint32_t value = (uint32_t)first_of(words[k]);
        words[k] = value + (value << PT_PAIR_SHIFT);
    }
}

static void multiply_prepared(const pt_layer *layer, int32_t n, int8_t *out) {
    int32_t fours = (layer->depth + 3) / 4;
    pt_prepared_pair pair = {.patches = layer->block,
                             .fours = fours,
                             .out = out,
                             .out_step = n > 1 ? layer->out_stride : 0,
                             .channel = layer->prepared,
                             .end = (const uint32_t *)layer->prepared +
                                    layer->channels * (2 * fours + 4)};
    if (n == 1) {
        pt_double_patch_by_depth(layer->block, layer->depth);
    }
    pt_multiply_prepared(&pair);
}

static void multiply_fast(const pt_layer *layer, int32_t n, int8_t *out) {
    static const int32_t no_bias = 0;
    const pt_channels *p = &layer->output;
    bool full = layer->width == PT_PATCHES;
    int32_t channels = full ? layer->channels : layer->channels & ~1;
    pt_pairs pairs = {.bias = p->bias ? p->bias : &no_bias,
                      .bias_step = p->bias ? sizeof *p->bias : 0,
                      .multipliers = p->multipliers,
                      .shifts = p->shifts,
                      .out = out,
                      .out_step = n > 1 ? layer->out_stride : 0,
                      .patches = layer->block,
                      .depth = layer->depth,
                      .rounding = 2 * p->range.offset + 1,
                      .weights = layer->weights,
                      .end = layer->weights + channels * layer->depth};
    if (full) {
        pt_multiply_3x1(&pairs);
    } else if (channels) {
        pt_multiply_1x2(&pairs);
    }
}

void pt_multiply_block(const pt_layer *layer, int32_t n, int8_t *out) {
    if (layer->by_depth) {
        multiply_prepared(layer, n, out);
        return;
    }
    if (!layer->scales_fast) {
        multiply_plainly(layer, 0, n, out);
        return;
    }
    if (n == 1) {
        double_first(layer);
    }
    multiply_fast(layer, n, out);
    if (layer->width < PT_PATCHES && layer->channels & 1) {
        multiply_plainly(layer, layer->channels - 1, n, out);
    }
}

// ---- rows

static uint32_t both_offsets(const pt_layer *layer) {
    return (uint32_t)layer->offset + ((uint32_t)layer->offset << PT_PAIR_SHIFT);
}

// Two rows, to a block of one pair.
static inline void pack_pair(const pt_layer *layer, const int8_t *first, const int8_t *second) {
    uint32_t *to = layer->block, offsets = both_offsets(layer);
    const int8_t *end = first + layer->depth;
#pragma GCC unroll 4
    while (first != end) {
        *to++ = offsets + (uint32_t)*first++ + ((uint32_t)*second++ << PT_PAIR_SHIFT);
    }
}

// Six rows, `stride` bytes apart, to a full block.
static void pack_six(const pt_layer *layer, const int8_t *rows, int32_t stride) {
#define PT_PAIR(word, first, second)           \
    "ldrsb.w " word ", [" first "], #1\n\t"    \
    "ldrsb.w lr, [" second "], #1\n\t"         \
    "add.w " word ", " word ", %[offsets]\n\t" \
    "add.w " word ", " word ", lr, lsl %[shift]\n\t"
    register const int8_t *row __asm__("r0") = rows;
    register int32_t step __asm__("r12") = stride;
    uint32_t *to = layer->block;
    int32_t left = layer->depth;
    // clang-format off
    __asm__ volatile(
        "add r1, r0, r12\n\t"
        "add r2, r1, r12\n\t"
        "add r3, r2, r12\n\t"
        "add r4, r3, r12\n\t"
        "add r5, r4, r12\n"
        "1:\n\t"
        PT_PAIR("r10", "r0", "r1")
        PT_PAIR("r11", "r2", "r3")
        PT_PAIR("r12", "r4", "r5")
        "subs %[left], #1\n\t"
        "stmia.w %[to]!, {r10, r11, r12}\n\t"
        "bne 1b"
        : "+r"(row), "+r"(step), [to] "+r"(to), [left] "+r"(left)
        : [offsets] "r"(both_offsets(layer)), [shift] "i"(PT_PAIR_SHIFT)
        : "r1", "r2", "r3", "r4", "r5", "r10", "r11", "lr", "cc", "memory");
    // clang-format on
#undef PT_PAIR
}

// The last block takes rows of the one before it again, where pairs would take longer.
void pt_multiply_rows(pt_layer *layer, const int8_t *patches, int32_t stride, int32_t n,
                      int8_t *out) {
    int32_t taken, pairs = layer->depth < 64 ? 2 : 4;
    bool full = n >= PT_PATCHES && pt_takes_all(layer);
    for (int32_t done = 0; done < n; done += taken) {
        layer->width = full && n - done > pairs ? PT_PATCHES : 2;
        taken = layer->width < n ? layer->width : n;
        done = done + taken < n ? done : n - taken;
        const int8_t *row = patches + done * stride;
        layer->by_depth = layer->width == 2 && pt_takes_prepared(layer);
        if (layer->by_depth) {
            pt_pack_values(layer, 0, 0, row, layer->depth, 1, 0);
            pt_pack_values(layer, 1, 0, taken == 2 ? row + stride : row, layer->depth, 1, 0);
        } else if (layer->width == 2) {
            pack_pair(layer, row, taken == 2 ? row + stride : row);
        } else {
            pack_six(layer, row, stride);
        }
        pt_multiply_block(layer, taken, out + done * layer->out_stride);
    }
}

#endif
