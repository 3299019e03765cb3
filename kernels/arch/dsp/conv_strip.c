// int8 convolution with a kernel three columns wide at column stride 1, on cores with the DSP
// extension: pt_convolve, called by convolve_at_once unless patches are pixels. Tile: 4
// neighbouring patches x 1 channel x 4 input channels of 3 taps by SMLAD; input channels a multiple
// of 8, plain weights. Packing: the 6 input columns that the patches share, like 6 patches of
// gemm_s8.c. Scratch: 12 bytes x kernel rows x input channels.
#include "arch/conv_geometry.h"

#if defined(PT_IM2COL_DSP)

#include "arch/dsp/channel_loop.h"

enum { PATCHES = 4, COLUMNS = PATCHES + 2 };

typedef struct strip {
    const pt_geometry *g;
    const pt_gemm_s8 *layer;
    const int8_t *in;
} strip;

// ---- packing

// Packs column i of the strip, which is column `x` of the input, from row `y` on.
static void pack_column(const strip *s, int32_t i, int32_t y, int32_t x) {
    const pt_geometry *g = s->g;
    int32_t line = g->in[1] * g->pixel, rows = g->kernel[0], step = g->dilation[0];
    if (x < 0 || x >= g->in[1]) {
        pt_pad(s->layer, i, 0, rows * g->channels);
    } else if (y >= 0 && y + (rows - 1) * step < g->in[0]) {
        pt_pack_words(s->layer, i, 0, s->in + y * line + x * g->pixel, g->channels, rows,
                      step * line);
    } else {
        for (int32_t r = 0; r < rows; r++, y += step) {
            if (y >= 0 && y < g->in[0]) {
                pt_pack(s->layer, i, r * g->channels, s->in + y * line + x * g->pixel, g->channels);
            } else {
                pt_pad(s->layer, i, r * g->channels, g->channels);
            }
        }
    }
}

// ---- products

// clang-format off

#define WIDEN(even, odd)                        \
    "sxtb16 %[" even "], %[" odd "]\n\t"        \
    "sxtb16 %[" odd "], %[" odd "], ror #8\n\t"

#define COLUMN "ldrd r0, r1, [%[a]], #8\n\t"

#define TAP(sum, even, odd)                                     \
    "smlad %[" sum "], r0, %[" even "], %[" sum "]\n\t"         \
    "smlad %[" sum "], r1, %[" odd "], %[" sum "]\n\t"

// Four channels of a row of the kernel: three taps of each patch.
#define STEP                                    \
    "ldr r0, %[channels]\n\t"                   \
    "ldr %[odd1], [%[w], r0]\n\t"               \
    "ldr %[odd2], [%[w], r0, lsl #1]\n\t"       \
    "ldr %[odd0], [%[w]], #4\n\t"               \
    WIDEN("even0", "odd0")                      \
    WIDEN("even1", "odd1")                      \
    WIDEN("even2", "odd2")                      \
    COLUMN                                      \
    TAP("s0", "even0", "odd0")                  \
    COLUMN                                      \
    TAP("s0", "even1", "odd1")                  \
    TAP("s1", "even0", "odd0")                  \
    COLUMN                                      \
    TAP("s0", "even2", "odd2")                  \
    TAP("s1", "even1", "odd1")                  \
    TAP("s2", "even0", "odd0")                  \
    COLUMN                                      \
    TAP("s1", "even2", "odd2")                  \
    TAP("s2", "even1", "odd1")                  \
    TAP("s3", "even0", "odd0")                  \
    COLUMN                                      \
    TAP("s2", "even2", "odd2")                  \
    TAP("s3", "even1", "odd1")                  \
    COLUMN                                      \
    TAP("s3", "even2", "odd2")

static void multiply_strip(const pt_gemm_s8 *layer, int32_t rows, int32_t channels, int8_t *out) {
    pt_loop x = pt_begin_loop(layer, layer->channels, 0, 0, out);
    const uint32_t *end = (const uint32_t *)layer->block + rows * (channels / 2) * COLUMNS;
    const int8_t *w = layer->weights, *row_end = w + channels;
    const uint32_t *a;
    int32_t s0, s1, s2, s3, even0, even1, even2, odd0, odd1, odd2;
    __asm__ volatile(
        "1:\n\t"
        "ldrd r0, r1, %[bias]\n\t"
        "ldr %[a], %[start]\n\t"
        "ldr %[s0], [r0]\n\t"
        "add r0, r1\n\t"
        "str r0, %[bias]\n\t"
        "mov %[s1], %[s0]\n\t"
        "mov %[s2], %[s0]\n\t"
        "mov %[s3], %[s0]\n"
        "2:\n\t"
        STEP
        STEP
        "ldr r0, %[row_end]\n\t"
        "cmp %[w], r0\n\t"
        "bne 2b\n\t"
        "ldr r1, %[channels]\n\t"
        "add %[w], %[w], r1, lsl #1\n\t"
        "add r0, %[w], r1\n\t"
        "str r0, %[row_end]\n\t"
        "ldr r1, %[end]\n\t"
        "cmp %[a], r1\n\t"
        "bne 2b\n\t"
        "ldrd r0, r1, %[parameters]\n\t"
        "ldr %[even0], [r0], #4\n\t"
        "str r0, %[parameters]\n\t"
        "ldr %[odd0], [r0, r1]\n\t"
        "ldr r1, %[twice]\n\t"
        ROUNDING("r0", "%[odd0]", "r1")
        DOUBLE("%[s0]")
        DOUBLE("%[s1]")
        DOUBLE("%[s2]")
        DOUBLE("%[s3]")
        FINISH_FOUR("%[s0]", "%[s1]", "%[s2]", "%[s3]", "%[even0]", "%[odd0]", "r0", "r1")
        "ldrd r0, r1, %[out]\n\t"
        "add %[a], r0, r1\n\t"
        "strb %[s1], [r0, r1]\n\t"
        "strb %[s2], [r0, r1, lsl #1]\n\t"
        "strb %[s3], [%[a], r1, lsl #1]\n\t"
        "strb %[s0], [r0], #1\n\t"
        "ldr r1, %[out_end]\n\t"
        "str r0, %[out]\n\t"
        "cmp r0, r1\n\t"
        "bne 1b"
        : [w] "+r"(w), [a] "=&r"(a), [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2),
          [s3] "=&r"(s3), [even0] "=&r"(even0), [even1] "=&r"(even1), [even2] "=&r"(even2),
          [odd0] "=&r"(odd0), [odd1] "=&r"(odd1), [odd2] "=&r"(odd2), [bias] "+m"(x.bias),
          [parameters] "+m"(x.parameters), [out] "+m"(x.out), [row_end] "+m"(row_end)
        : [start] "m"(x.start), [end] "m"(end), [channels] "m"(channels), [twice] "m"(x.twice),
          [out_end] "m"(x.out_end)
        : "r0", "r1", "cc", "memory");
}

// clang-format on

// ---- images

bool pt_convolve(const pt_geometry *g, pt_gemm_s8 *layer, const int8_t *in, int8_t *out,
                 void *block, uint32_t bytes) {
    uint32_t needed = 2 * COLUMNS * (uint32_t)(g->kernel[0] * g->channels);
    strip s = {g, layer, in};
    if (layer->capacity_bytes == 0 || layer->packed || g->kernel[1] != 3 || g->stride[1] != 1 ||
        g->dilation[1] != 1 || g->channels % 8 || g->out[1] < PATCHES || bytes < needed) {
        return false;
    }
    (void)block;
    layer->width = COLUMNS;
    for (int32_t i = 0; i < g->out[0]; i++) {
        for (int32_t j = 0; j < g->out[1]; j += PATCHES) {
            int32_t at = j < g->out[1] - PATCHES ? j : g->out[1] - PATCHES;
            int8_t *to = out + (i * g->out[1] + at) * layer->out_stride;
            for (int32_t k = 0; k < COLUMNS; k++) {
                pack_column(&s, k, i * g->stride[0] - g->padding[0], at + k - g->padding[1]);
            }
            multiply_strip(layer, g->kernel[0], g->channels, to);
            pt_limit(layer, PATCHES, to);
        }
    }
    return true;
}

#endif
