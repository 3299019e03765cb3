// Quantization by vectors of SSE2, which all x86 processors of 64 bits have.
#include <emmintrin.h>

// As pt_quantize_value: values beyond 2^22 are on the same side of int8's limits, NaN is 0.
static inline __m128i pt_quantize_four(const float *x, __m128 inverse, __m128i zero_points) {
    const __m128 most = _mm_set1_ps(0x1p22f), least = _mm_set1_ps(-0x1p22f);
    __m128 scaled = _mm_mul_ps(_mm_loadu_ps(x), inverse);
    __m128i numbers = _mm_castps_si128(_mm_cmpord_ps(scaled, scaled));
    __m128i q = _mm_cvtps_epi32(_mm_min_ps(_mm_max_ps(scaled, least), most));
    return _mm_and_si128(numbers, _mm_add_epi32(q, zero_points));
}

static inline int32_t pt_quantize_some(const float *x, int8_t *q, int32_t n, float inverse,
                                       int32_t zero_point) {
    const __m128 inverses = _mm_set1_ps(inverse);
    const __m128i zero_points = _mm_set1_epi32(zero_point);
    const int32_t some = pt_vectors() == PT_VECTORS_NONE ? 0 : n & ~7;
    for (int32_t i = 0; i < some; i += 8) {
        __m128i first = pt_quantize_four(x + i, inverses, zero_points);
        __m128i second = pt_quantize_four(x + i + 4, inverses, zero_points);
        __m128i both = _mm_packs_epi32(first, second);
        _mm_storel_epi64((void *)(q + i), _mm_packs_epi16(both, both));
    }
    return some;
}

static inline int32_t pt_dequantize_some(const int8_t *q, float *x, int32_t n, float scale,
                                         int32_t zero_point) {
    const __m128 scales = _mm_set1_ps(scale);
    const __m128i zero_points = _mm_set1_epi32(zero_point);
    const int32_t some = pt_vectors() == PT_VECTORS_NONE ? 0 : n & ~7;
    for (int32_t i = 0; i < some; i += 8) {
        __m128i bytes = _mm_loadl_epi64((const void *)(q + i));
        __m128i words = _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
        __m128i first = _mm_srai_epi32(_mm_unpacklo_epi16(words, words), 16);
        __m128i second = _mm_srai_epi32(_mm_unpackhi_epi16(words, words), 16);
        first = _mm_sub_epi32(first, zero_points);
        second = _mm_sub_epi32(second, zero_points);
        _mm_storeu_ps(x + i, _mm_mul_ps(_mm_cvtepi32_ps(first), scales));
        _mm_storeu_ps(x + i + 4, _mm_mul_ps(_mm_cvtepi32_ps(second), scales));
    }
    return some;
}
