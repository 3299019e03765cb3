// Products of patches on cores with the DSP extension, see patches_dsp.h.
#include "patches.h"

#if defined(PT_PATCHES_DSP)

#include "dot.h"
#include "scale.h"

// ---- layers

static bool is_fast(const pt_layer *layer) {
    const pt_channels *output = &layer->output;
    if (layer->depth > PT_MAX_PRODUCTS || output->range.min != INT8_MIN ||
        output->range.max != INT8_MAX) {
        return false;
    }
    for (int32_t o = 0; o < layer->channels; o++) {
        int32_t bias = pt_bias_of(output, o);
        if (bias >= PT_BIAS_LIMIT || bias <= -PT_BIAS_LIMIT ||
            !pt_scales_fast(output->multipliers[o], output->shifts[o])) {
            return false;
        }
    }
    return true;
}

void pt_begin_layer(pt_layer *layer, void *scratch, uint32_t bytes) {
    uint32_t n = bytes / (2 * (uint32_t)layer->depth);
    layer->block = scratch;
    layer->fast = is_fast(layer);
    bool aligned =
        (((uintptr_t)scratch | (uintptr_t)layer->weights | (uint32_t)layer->depth) & 3) == 0;
    layer->capacity = !aligned ? 0 : n < 6 ? (int32_t)n : 6;
}

// ---- packing

void pt_pack(const pt_layer *layer, int32_t i, int32_t k, const int8_t *values, int32_t count) {
    if (layer->capacity == 0) {
        memcpy((int8_t *)layer->block + k, values, (size_t)count);
        return;
    }
    int32_t width = layer->width;
    int16x2_t offsets = pt_pair_of(layer->offset);
    uint32_t *to = (uint32_t *)layer->block + (k >> 2) * 2 * width + i;
    if ((((uintptr_t)values | (uint32_t)k | (uint32_t)count) & 3) == 0) {
        for (const int8_t *end = values + count; values != end; values += 4, to += 2 * width) {
            uint32_t u = pt_load_word(values);
            to[0] = (uint32_t)pt_even_bytes_plus(u, offsets);
            to[width] = (uint32_t)pt_odd_bytes_plus(u, offsets);
        }
        return;
    }
    int16_t *half = (int16_t *)layer->block;
    for (; count > 0; count--, k++) {
        half[2 * ((k >> 2) * 2 * width + (k & 1) * width + i) + ((k >> 1) & 1)] =
            (int16_t)(*values++ + layer->offset);
    }
}

void pt_pad(const pt_layer *layer, int32_t i, int32_t k, int32_t count) {
    if (layer->capacity == 0) {
        memset((int8_t *)layer->block + k, -layer->offset, (size_t)count);
        return;
    }
    int32_t width = layer->width;
    int16_t *half = (int16_t *)layer->block;
    for (; count > 0; count--, k++) {
        half[2 * ((k >> 2) * 2 * width + (k & 1) * width + i) + ((k >> 1) & 1)] = 0;
    }
}

// ---- products

// One step: four products each of six patches with a channel.
#define STEP_6                            \
    "ldr.w %[odd], [%[w]], #4\n\t"        \
    "ldmia.w %[a]!, {r0-r3}\n\t"          \
    "sxtb16 %[even], %[odd]\n\t"          \
    "sxtb16 %[odd], %[odd], ror #8\n\t"   \
    "smlad %[s0], r0, %[even], %[s0]\n\t" \
    "smlad %[s1], r1, %[even], %[s1]\n\t" \
    "smlad %[s2], r2, %[even], %[s2]\n\t" \
    "smlad %[s3], r3, %[even], %[s3]\n\t" \
    "ldmia.w %[a]!, {r0-r3}\n\t"          \
    "smlad %[s4], r0, %[even], %[s4]\n\t" \
    "smlad %[s5], r1, %[even], %[s5]\n\t" \
    "smlad %[s0], r2, %[odd], %[s0]\n\t"  \
    "smlad %[s1], r3, %[odd], %[s1]\n\t"  \
    "ldmia.w %[a]!, {r0-r3}\n\t"          \
    "smlad %[s2], r0, %[odd], %[s2]\n\t"  \
    "smlad %[s3], r1, %[odd], %[s3]\n\t"  \
    "smlad %[s4], r2, %[odd], %[s4]\n\t"  \
    "smlad %[s5], r3, %[odd], %[s5]\n\t"

// Two patches with two channels.
#define STEP_2x2                          \
    "ldmia.w %[a]!, {r0-r3}\n\t"          \
    "ldr.w %[odd], [%[w]], #4\n\t"        \
    "sxtb16 %[even], %[odd]\n\t"          \
    "sxtb16 %[odd], %[odd], ror #8\n\t"   \
    "smlad %[s0], r0, %[even], %[s0]\n\t" \
    "smlad %[s1], r1, %[even], %[s1]\n\t" \
    "smlad %[s0], r2, %[odd], %[s0]\n\t"  \
    "smlad %[s1], r3, %[odd], %[s1]\n\t"  \
    "ldr.w %[odd], [%[v]], #4\n\t"        \
    "sxtb16 %[even], %[odd]\n\t"          \
    "sxtb16 %[odd], %[odd], ror #8\n\t"   \
    "smlad %[s2], r0, %[even], %[s2]\n\t" \
    "smlad %[s3], r1, %[even], %[s3]\n\t" \
    "smlad %[s2], r2, %[odd], %[s2]\n\t"  \
    "smlad %[s3], r3, %[odd], %[s3]\n\t"

// Four products of one patch with two channels.
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
    "smlad %[s1], r0, %[even], %[s1]\n\t" \
    "smlad %[s1], r1, %[odd], %[s1]\n\t"

enum { STEPS = 8 }; // of an unrolled loop, which is entered behind `skip` bytes of it

// `bytes` of a step.
static uint32_t bytes_to_skip(int32_t depth, uint32_t bytes) {
    return (uint32_t)(-(depth / 4) & (STEPS - 1)) * bytes;
}

#define LOOP(step)                 \
    "ldr %[even], %[skip]\n\t"     \
    "add pc, %[even]\n\t"          \
    "nop\n\t"                      \
    "1:\n\t"                       \
    ".rept 8\n\t" step ".endr\n\t" \
    "ldr %[even], %[end]\n\t"      \
    "cmp %[a], %[even]\n\t"        \
    "bne 1b"

typedef struct finish {
    int32_t multiplier, right, rounding;
} finish;

static inline finish finish_of(const pt_layer *layer, int32_t o) {
    int32_t shift = layer->output.shifts[o];
    return (finish){layer->output.multipliers[o], -shift,
                    pt_rounding(shift, layer->output.range.offset)};
}

static inline int8_t finished(int32_t sum, const finish *f) {
    return (int8_t)pt_saturate_int8(pt_scale(2 * sum, f->multiplier, f->right, f->rounding));
}

static __attribute__((noinline)) void finish_slowly(const pt_layer *layer, int32_t o,
                                                    const int32_t *sums, int32_t n, int8_t *out) {
    for (; n > 0; n--, out += layer->out_stride) {
        *out = pt_finish(&layer->output, o, *sums++);
    }
}

static void multiply_6(const pt_layer *layer, int32_t n, int8_t *out) {
    const int8_t *w = layer->weights;
    const uint32_t *end = (const uint32_t *)layer->block + layer->depth / 4 * 12;
    uint32_t skip = bytes_to_skip(layer->depth, 72);
    int32_t stride = layer->out_stride;
    for (int32_t o = 0; o < layer->channels; o++, out++) {
        const uint32_t *a = layer->block;
        int32_t s0 = pt_bias_of(&layer->output, o), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0;
        uint32_t even, odd;
        __asm__ volatile(
            LOOP(STEP_6)
            : [a] "+r"(a), [w] "+r"(w), [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3),
              [s4] "+r"(s4), [s5] "+r"(s5), [even] "=&r"(even), [odd] "=&r"(odd)
            : [skip] "m"(skip), [end] "m"(end)
            : "r0", "r1", "r2", "r3", "cc", "memory");
        if (layer->fast) {
            finish f = finish_of(layer, o);
            out[0] = finished(s0, &f);
            out[stride] = finished(s1, &f);
            out[2 * stride] = finished(s2, &f);
            int8_t *third = out + 3 * stride;
            third[0] = finished(s3, &f);
            third[stride] = finished(s4, &f);
            if (n == 6) {
                third[2 * stride] = finished(s5, &f);
            }
        } else {
            int32_t sums[6] = {s0, s1, s2, s3, s4, s5};
            finish_slowly(layer, o, sums, n, out);
        }
    }
}

// The last channel of an odd number is computed twice.
static void multiply_2(const pt_layer *layer, int8_t *out) {
    const uint32_t *end = (const uint32_t *)layer->block + layer->depth;
    uint32_t skip = bytes_to_skip(layer->depth, 60);
    int32_t stride = layer->out_stride, depth = layer->depth;
    for (int32_t o = 0, next = 1; o < layer->channels; o += 2) {
        if (o + 1 == layer->channels) {
            next = 0;
        }
        const uint32_t *a = layer->block;
        const int8_t *w = layer->weights + o * depth, *v = w + next * depth;
        int32_t s0 = pt_bias_of(&layer->output, o), s1 = s0;
        int32_t s2 = pt_bias_of(&layer->output, o + next), s3 = s2;
        uint32_t even, odd;
        __asm__ volatile(LOOP(STEP_2x2)
                         : [a] "+r"(a), [w] "+r"(w), [v] "+r"(v), [s0] "+r"(s0), [s1] "+r"(s1),
                           [s2] "+r"(s2), [s3] "+r"(s3), [even] "=&r"(even), [odd] "=&r"(odd)
                         : [skip] "m"(skip), [end] "m"(end)
                         : "r0", "r1", "r2", "r3", "cc", "memory");
        if (layer->fast) {
            finish f = finish_of(layer, o);
            out[o] = finished(s0, &f);
            out[o + stride] = finished(s1, &f);
            f = finish_of(layer, o + next);
            out[o + next] = finished(s2, &f);
            out[o + next + stride] = finished(s3, &f);
        } else {
            int32_t first[2] = {s0, s1}, second[2] = {s2, s3};
            finish_slowly(layer, o, first, 2, out + o);
            finish_slowly(layer, o + next, second, 2, out + o + next);
        }
    }
}

static void multiply_1(const pt_layer *layer, int8_t *out) {
    const uint32_t *end = (const uint32_t *)layer->block + layer->depth / 2;
    uint32_t skip = bytes_to_skip(layer->depth, 44);
    int32_t depth = layer->depth;
    for (int32_t o = 0, next = 1; o < layer->channels; o += 2) {
        if (o + 1 == layer->channels) {
            next = 0;
        }
        const uint32_t *a = layer->block;
        const int8_t *w = layer->weights + o * depth, *v = w + next * depth;
        int32_t s0 = pt_bias_of(&layer->output, o), s1 = pt_bias_of(&layer->output, o + next);
        uint32_t even, odd;
        __asm__ volatile(LOOP(STEP_1x2)
                         : [a] "+r"(a), [w] "+r"(w), [v] "+r"(v), [s0] "+r"(s0), [s1] "+r"(s1),
                           [even] "=&r"(even), [odd] "=&r"(odd)
                         : [skip] "m"(skip), [end] "m"(end)
                         : "r0", "r1", "cc", "memory");
        if (layer->fast) {
            finish f = finish_of(layer, o);
            out[o] = finished(s0, &f);
            f = finish_of(layer, o + next);
            out[o + next] = finished(s1, &f);
        } else {
            finish_slowly(layer, o, &s0, 1, out + o);
            finish_slowly(layer, o + next, &s1, 1, out + o + next);
        }
    }
}

void pt_multiply_block(const pt_layer *layer, int32_t n, int8_t *out) {
    if (layer->capacity == 0) {
        pt_multiply_patch(layer, layer->block, out);
    } else if (layer->width == 6) {
        multiply_6(layer, n, out);
    } else if (layer->width == 2) {
        multiply_2(layer, out);
    } else {
        multiply_1(layer, out);
    }
}

void pt_multiply_rows(pt_layer *layer, const int8_t *patches, int32_t stride, int32_t n,
                      int8_t *out) {
    int32_t done;
    for (; n > 0; n -= done, out += done * layer->out_stride) {
        if (layer->capacity == 0) {
            done = 1;
            pt_multiply_patch(layer, patches, out);
            patches += stride;
            continue;
        }
        done = pt_begin_block(layer, n);
        for (int32_t i = 0; i < done; i++, patches += stride) {
            pt_pack(layer, i, 0, patches, layer->depth);
        }
        pt_multiply_block(layer, done, out);
    }
}

#endif
