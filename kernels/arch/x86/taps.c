// Taps of eight channels at a time by the vectors of x86 processors.
#include "../taps.h"

#if defined(PT_X86)
#include "avx2.h"

enum { LANES = 8 };

bool pt_takes_taps(const pt_channels *output, int32_t n) {
    return n >= LANES && pt_vectors() != PT_VECTORS_NONE && pt_scales_by_vectors(output, n);
}

static inline __m128i load_bytes(const int8_t *values) {
    return _mm_loadl_epi64((const void *)values);
}

// ---- SSE2

static inline __m128i widen(__m128i bytes) {
    return _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
}

static void multiply_taps_sse2(const pt_pixel_taps *taps, int32_t offset, const pt_channels *output,
                               int32_t o, int8_t *out) {
    const int8_t *in = taps->in + o, *w = taps->weights + o;
    __m128i offsets = _mm_set1_epi16((int16_t)offset), first = _mm_setzero_si128(), second = first;
    for (int32_t i = taps->rows; i > 0; i--, in += taps->in_row, w += taps->weight_row) {
        for (int32_t j = taps->columns; j > 0; j--, in += taps->in_step, w += taps->weight_step) {
            __m128i x = _mm_add_epi16(widen(load_bytes(in)), offsets), y = widen(load_bytes(w));
            __m128i low = _mm_mullo_epi16(x, y), high = _mm_mulhi_epi16(x, y);
            first = _mm_add_epi32(first, _mm_unpacklo_epi16(low, high));
            second = _mm_add_epi32(second, _mm_unpackhi_epi16(low, high));
        }
    }
    int32_t sums[LANES];
    _mm_storeu_si128((void *)sums, first);
    _mm_storeu_si128((void *)(sums + 4), second);
    for (int32_t j = 0; j < LANES; j++) {
        int32_t sum = pt_add_int32(sums[j], pt_bias_of(output, o + j));
        out[o + j] = pt_finish(output, o + j, sum);
    }
}

// ---- AVX2

static PT_AVX2 void multiply_taps_avx2(const pt_pixel_taps *taps, int32_t offset,
                                       const pt_channels *output, int32_t o, int8_t *out) {
    const int8_t *in = taps->in + o, *w = taps->weights + o;
    __m256i offsets = _mm256_set1_epi32(offset), sums = _mm256_setzero_si256();
    for (int32_t i = taps->rows; i > 0; i--, in += taps->in_row, w += taps->weight_row) {
        for (int32_t j = taps->columns; j > 0; j--, in += taps->in_step, w += taps->weight_step) {
            __m256i x = _mm256_add_epi32(_mm256_cvtepi8_epi32(load_bytes(in)), offsets);
            __m256i product = _mm256_mullo_epi32(x, _mm256_cvtepi8_epi32(load_bytes(w)));
            sums = _mm256_add_epi32(sums, product);
        }
    }
    pt_scale8 scale = pt_scale_of_8(output, o);
    pt_store_4_and_4(pt_scale_8(&scale, sums), out + o, out + o + 4);
}

// ----

int32_t pt_multiply_taps(const pt_pixel_taps *taps, int32_t offset, const pt_channels *output,
                         int32_t n, int8_t *out) {
    const bool wide = pt_vectors() == PT_VECTORS_AVX2;
    int32_t o = 0;
    for (; n - o >= LANES; o += LANES) {
        (wide ? multiply_taps_avx2 : multiply_taps_sse2)(taps, offset, output, o, out);
    }
    return o;
}

#endif
