// int8 depthwise convolution of one pixel with the host's vectors (depthwise_pixel.h), called by
// cortex_m/depthwise.c. Tile: 1 pixel x 8 channels, tap by tap. No packing, no scratch.
#include "arch/depthwise_pixel.h"

#if defined(PT_HAS_HOST_VECTORS)
#include "arch/host/vector_isa.h"

enum { LANES = 8 };

bool pt_supports_taps(const pt_channels *output, int32_t n) {
    return n >= LANES && pt_vectors() != PT_VECTORS_NONE && pt_scales_by_vectors(output, n);
}

typedef void multiply_function(const pt_pixel_taps *taps, int32_t offset, const pt_channels *output,
                               int32_t o, int8_t *out);

#define MULTIPLY_TAPS(kind, target)                                                              \
    static target void multiply_taps_##kind(const pt_pixel_taps *taps, int32_t offset,           \
                                            const pt_channels *output, int32_t o, int8_t *out) { \
        const int8_t *in = taps->in + o, *w = taps->weights + o;                                 \
        eight_##kind sums = no_sums_##kind();                                                    \
        for (int32_t i = taps->rows; i > 0; i--, in += taps->in_row, w += taps->weight_row) {    \
            for (int32_t j = taps->columns; j > 0; j--) {                                        \
                add_tap_##kind(&sums, in, offset, w);                                            \
                in += taps->in_step, w += taps->weight_step;                                     \
            }                                                                                    \
        }                                                                                        \
        finish_8_##kind(&sums, output, o, out + o);                                              \
    }

#if defined(PT_X86)
MULTIPLY_TAPS(sse2, )
MULTIPLY_TAPS(avx2, PT_AVX2)
#else
MULTIPLY_TAPS(neon, )
#endif

int32_t pt_multiply_taps(const pt_pixel_taps *taps, int32_t offset, const pt_channels *output,
                         int32_t n, int8_t *out) {
#if defined(PT_X86)
    const bool has_avx2 = pt_vectors() == PT_VECTORS_UPPER;
    multiply_function *multiply = has_avx2 ? multiply_taps_avx2 : multiply_taps_sse2;
#else
    multiply_function *multiply = multiply_taps_neon;
#endif
    int32_t o = 0;
    for (; n - o >= LANES; o += LANES) {
        multiply(taps, offset, output, o, out);
    }
    return o;
}

#endif
