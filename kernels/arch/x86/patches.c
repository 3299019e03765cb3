// Products of patches by the vectors of x86 processors: of SSE2, which all of 64 bits have, and of
// AVX2. Sums of int32 wrap around, in whatever order they are added: the bytes are those of the
// plain form.
#include "../patches.h"

#if defined(PT_X86)
#include "../dot.h"
#include "../prepare.h"
#include "avx2.h"

// Values of patches in 16 bits.
enum {
    PT_ROOM = 16384,
    NEAR = 8192, // that stay in the first cache
};

static int32_t padded_depth(int32_t depth, int32_t lanes) {
    return (depth + lanes - 1) & -lanes;
}

// Returns the number of patches, of n, that are widened together.
static int32_t patches_of(int32_t padded, int32_t n) {
    int32_t most = padded <= NEAR / 4 ? NEAR / padded & ~1 : PT_ROOM / padded;
    return n < most ? n : most;
}

// Copies the last rows of weights, behind which a whole vector would not end inside of them, with
// zeros up to `padded`. Returns the number of the first.
static int32_t copy_last_rows(const pt_layer *layer, int32_t padded, int8_t *to) {
    int32_t depth = layer->depth, rows = (padded - 1) / depth;
    int32_t inside = layer->channels > rows ? layer->channels - rows : 0;
    for (int32_t row = inside; row < layer->channels; row++, to += padded) {
        memcpy(to, layer->weights + row * depth, (size_t)depth);
        memset(to + depth, 0, (size_t)(padded - depth));
    }
    return inside;
}

static void finish_channels(const pt_layer *layer, int32_t o, int32_t n, const int32_t *sums,
                            int8_t *out) {
    for (int32_t j = 0; j < n; j++) {
        int32_t sum = pt_add_int32(sums[j], pt_bias_of(&layer->output, o + j));
        out[j] = pt_finish(&layer->output, o + j, sum);
    }
}

// ---- SSE2

static inline __m128i load_8(const void *values) {
    return _mm_loadu_si128(values);
}

static inline __m128i widen_8(const int8_t *values) {
    __m128i bytes = _mm_loadl_epi64((const void *)values);
    return _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
}

// Returns the sum of each vector.
static inline __m128i sum_of_each(__m128i a, __m128i b, __m128i c, __m128i d) {
    __m128i ab = _mm_add_epi32(_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
    __m128i cd = _mm_add_epi32(_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
    return _mm_add_epi32(_mm_unpacklo_epi64(ab, cd), _mm_unpackhi_epi64(ab, cd));
}

static inline void sum_lanes_sse2(__m128i s0, __m128i s1, __m128i s2, __m128i s3, __m128i t0,
                                  __m128i t1, __m128i t2, __m128i t3, int32_t sums[8]) {
    _mm_storeu_si128((void *)sums, sum_of_each(s0, s1, s2, s3));
    _mm_storeu_si128((void *)(sums + 4), sum_of_each(t0, t1, t2, t3));
}

typedef struct finisher_sse2 {
    const pt_layer *layer;
    int32_t o;
} finisher_sse2;

static inline finisher_sse2 begin_finish_sse2(const pt_layer *layer, int32_t o) {
    return (finisher_sse2){layer, o};
}

static inline void finish_sse2(const finisher_sse2 *f, const int32_t *sums, int8_t *first,
                               int8_t *second) {
    finish_channels(f->layer, f->o, 4, sums, first);
    finish_channels(f->layer, f->o, 4, sums + 4, second);
}

#define PT_LOOP(name) name##_sse2
#define PT_TARGET
#define PT_LANES 8
#define pt_vector __m128i
#define PT_LOAD load_8
#define PT_STORE(p, v) _mm_storeu_si128((void *)(p), v)
#define PT_WIDEN widen_8
#define PT_SPREAD _mm_set1_epi16
#define PT_ADD16 _mm_add_epi16
#define PT_ADD32 _mm_add_epi32
#define PT_PRODUCTS _mm_madd_epi16
#include "loops.h"
#undef PT_LOOP
#undef PT_TARGET
#undef PT_LANES
#undef pt_vector
#undef PT_LOAD
#undef PT_STORE
#undef PT_WIDEN
#undef PT_SPREAD
#undef PT_ADD16
#undef PT_ADD32
#undef PT_PRODUCTS

// ---- AVX2

static inline PT_AVX2 __m256i load_16(const void *values) {
    return _mm256_loadu_si256(values);
}

static inline PT_AVX2 __m256i widen_16(const int8_t *values) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)values));
}

// Returns the sum of each half of each vector.
static inline PT_AVX2 __m256i sum_of_halves(__m256i a, __m256i b, __m256i c, __m256i d) {
    __m256i ab = _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    __m256i cd = _mm256_add_epi32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    return _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
}

static inline PT_AVX2 void sum_lanes_avx2(__m256i s0, __m256i s1, __m256i s2, __m256i s3,
                                          __m256i t0, __m256i t1, __m256i t2, __m256i t3,
                                          int32_t sums[8]) {
    __m256i s = sum_of_halves(s0, s1, s2, s3), t = sum_of_halves(t0, t1, t2, t3);
    __m256i lower = _mm256_permute2x128_si256(s, t, 0x20);
    __m256i upper = _mm256_permute2x128_si256(s, t, 0x31);
    _mm256_storeu_si256((void *)sums, _mm256_add_epi32(lower, upper));
}

typedef pt_scale8 finisher_avx2;

static inline PT_AVX2 pt_scale8 begin_finish_avx2(const pt_layer *layer, int32_t o) {
    return pt_scale_of_4_twice(&layer->output, o);
}

static inline PT_AVX2 void finish_avx2(const pt_scale8 *scale, const int32_t *sums, int8_t *first,
                                       int8_t *second) {
    pt_store_4_and_4(pt_scale_8(scale, pt_load8(sums)), first, second);
}

#define PT_LOOP(name) name##_avx2
#define PT_TARGET PT_AVX2
#define PT_LANES 16
#define pt_vector __m256i
#define PT_LOAD load_16
#define PT_STORE(p, v) _mm256_storeu_si256((void *)(p), v)
#define PT_WIDEN widen_16
#define PT_SPREAD _mm256_set1_epi16
#define PT_ADD16 _mm256_add_epi16
#define PT_ADD32 _mm256_add_epi32
#define PT_PRODUCTS _mm256_madd_epi16
#include "loops.h"

// ---- the one that the processor has

int32_t pt_dot_vectors(const int8_t *x, int32_t offset, const int8_t *w, int32_t stride, int32_t n,
                       int32_t sums[4]) {
    switch (pt_vectors()) {
    case PT_VECTORS_AVX2:
        return dot_avx2(x, offset, w, stride, n, sums);
    case PT_VECTORS_SSE2:
        return dot_sse2(x, offset, w, stride, n, sums);
    default:
        return 0;
    }
}

static void multiply_rows(const pt_layer *layer, const int8_t *patches, int32_t stride, int32_t n,
                          int8_t *out) {
    int vectors = layer->depth <= PT_ROOM / 2 - 16 ? pt_vectors() : PT_VECTORS_NONE;
    if (PT_HAS_ANY_CORE && layer->prepared) {
        pt_multiply_restored(layer, patches, stride, n, out);
        return;
    }
    if (vectors == PT_VECTORS_AVX2) {
        multiply_avx2(layer, patches, stride, n, out);
    } else if (vectors == PT_VECTORS_SSE2) {
        multiply_sse2(layer, patches, stride, n, out);
    } else {
        for (; n > 0; n--, patches += stride, out += layer->out_stride) {
            pt_multiply_patch(layer, patches, out);
        }
    }
}

void pt_multiply_rows(pt_layer *layer, const int8_t *patches, int32_t stride, int32_t n,
                      int8_t *out) {
    multiply_rows(layer, patches, stride, n, out);
}

void pt_multiply_block(const pt_layer *layer, int32_t n, int8_t *out) {
    multiply_rows(layer, layer->block, layer->depth, n, out);
}

#endif
