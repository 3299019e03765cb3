// Quantization by the vectors that all processors of the host's kind have, eight values at a time.
#if defined(PT_X86)
#include <emmintrin.h>

// As pt_quantize_value: values beyond 2^22 are on the same side of int8's limits, NaN is 0.
static inline __m128i pt_quantize_four(const float *x, float inverse, int32_t zero_point) {
    const __m128 most = _mm_set1_ps(0x1p22f), least = _mm_set1_ps(-0x1p22f);
    __m128 scaled = _mm_mul_ps(_mm_loadu_ps(x), _mm_set1_ps(inverse));
    __m128i numbers = _mm_castps_si128(_mm_cmpord_ps(scaled, scaled));
    __m128i q = _mm_cvtps_epi32(_mm_min_ps(_mm_max_ps(scaled, least), most));
    return _mm_and_si128(numbers, _mm_add_epi32(q, _mm_set1_epi32(zero_point)));
}

static inline void pt_quantize_eight(const float *x, int8_t *q, float inverse, int32_t zero_point) {
    __m128i first = pt_quantize_four(x, inverse, zero_point);
    __m128i second = pt_quantize_four(x + 4, inverse, zero_point);
    __m128i both = _mm_packs_epi32(first, second);
    _mm_storel_epi64((void *)q, _mm_packs_epi16(both, both));
}

static inline void pt_dequantize_four(__m128i q, float *x, float scale, int32_t zero_point) {
    __m128i difference = _mm_sub_epi32(q, _mm_set1_epi32(zero_point));
    _mm_storeu_ps(x, _mm_mul_ps(_mm_cvtepi32_ps(difference), _mm_set1_ps(scale)));
}

static inline void pt_dequantize_eight(const int8_t *q, float *x, float scale, int32_t zero_point) {
    __m128i bytes = _mm_loadl_epi64((const void *)q);
    __m128i words = _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
    pt_dequantize_four(_mm_srai_epi32(_mm_unpacklo_epi16(words, words), 16), x, scale, zero_point);
    pt_dequantize_four(_mm_srai_epi32(_mm_unpackhi_epi16(words, words), 16), x + 4, scale,
                       zero_point);
}

#else
#include <arm_neon.h>

// As pt_quantize_value: values beyond 2^22 are on the same side of int8's limits, NaN is 0.
static inline int16x4_t pt_quantize_four(const float *x, float inverse, int32_t zero_point) {
    const float32x4_t most = vdupq_n_f32(0x1p22f), least = vdupq_n_f32(-0x1p22f);
    float32x4_t scaled = vmulq_n_f32(vld1q_f32(x), inverse);
    int32x4_t numbers = vreinterpretq_s32_u32(vceqq_f32(scaled, scaled));
    int32x4_t q = vcvtnq_s32_f32(vminq_f32(vmaxq_f32(scaled, least), most));
    return vqmovn_s32(vandq_s32(numbers, vaddq_s32(q, vdupq_n_s32(zero_point))));
}

static inline void pt_quantize_eight(const float *x, int8_t *q, float inverse, int32_t zero_point) {
    int16x4_t first = pt_quantize_four(x, inverse, zero_point);
    int16x4_t second = pt_quantize_four(x + 4, inverse, zero_point);
    vst1_s8(q, vqmovn_s16(vcombine_s16(first, second)));
}

static inline void pt_dequantize_four(int32x4_t q, float *x, float scale, int32_t zero_point) {
    int32x4_t difference = vsubq_s32(q, vdupq_n_s32(zero_point));
    vst1q_f32(x, vmulq_n_f32(vcvtq_f32_s32(difference), scale));
}

static inline void pt_dequantize_eight(const int8_t *q, float *x, float scale, int32_t zero_point) {
    int16x8_t words = vmovl_s8(vld1_s8(q));
    pt_dequantize_four(vmovl_s16(vget_low_s16(words)), x, scale, zero_point);
    pt_dequantize_four(vmovl_high_s16(words), x + 4, scale, zero_point);
}

#endif

static inline int32_t pt_quantize_some(const float *x, int8_t *q, int32_t n, float inverse,
                                       int32_t zero_point) {
    const int32_t some = pt_vectors() == PT_VECTORS_NONE ? 0 : n & ~7;
    for (int32_t i = 0; i < some; i += 8) {
        pt_quantize_eight(x + i, q + i, inverse, zero_point);
    }
    return some;
}

static inline int32_t pt_dequantize_some(const int8_t *q, float *x, int32_t n, float scale,
                                         int32_t zero_point) {
    const int32_t some = pt_vectors() == PT_VECTORS_NONE ? 0 : n & ~7;
    for (int32_t i = 0; i < some; i += 8) {
        pt_dequantize_eight(q + i, x + i, scale, zero_point);
    }
    return some;
}
