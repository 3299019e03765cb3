// int8 GEMM with the host's vectors (SSE2, AVX2, NEON): pt_multiply_rows, pt_multiply_block and
// pt_dot_vectors. The loops are in loops.inc; patches and the last rows of weights are padded to
// whole vectors on the stack. int32 sums wrap around in any order of addition, so the bytes are
// those of plain C.
#include "arch/gemm_s8.h"

#if defined(PT_HAS_HOST_VECTORS)
#include "arch/dot.h"
#include "arch/host/vector_isa.h"
#include "arch/pack/pack.h"

// Values of patches.
enum {
    PT_BLOCK_VALUES = 16384,
    NEAR = 8192, // values that stay in the L1 cache
};

static int32_t padded_depth(int32_t depth, int32_t lanes) {
    return (depth + lanes - 1) & -lanes;
}

// Returns the number of patches of a block, at most n.
static int32_t patches_of(int32_t padded, int32_t n) {
    int32_t max = padded <= NEAR / 4 ? NEAR / padded & ~1 : PT_BLOCK_VALUES / padded;
    return n < max ? n : max;
}

// Copies the last rows of weights, whose last vector would read beyond the weights, with zeros up
// to `padded`. Returns the number of the first copied row.
static int32_t copy_last_rows(const pt_gemm_s8 *layer, int32_t padded, int8_t *to) {
    int32_t depth = layer->depth, rows = (padded - 1) / depth;
    int32_t inside = layer->channels > rows ? layer->channels - rows : 0;
    for (int32_t row = inside; row < layer->channels; row++, to += padded) {
        memcpy(to, layer->weights + row * depth, (size_t)depth);
        memset(to + depth, 0, (size_t)(padded - depth));
    }
    return inside;
}

static void finish_channels(const pt_gemm_s8 *layer, int32_t o, int32_t n, const int32_t *sums,
                            int8_t *out) {
    for (int32_t j = 0; j < n; j++) {
        int32_t sum = pt_add_int32(sums[j], pt_bias_of(&layer->output, o + j));
        out[j] = pt_finish(&layer->output, o + j, sum);
    }
}

// ---- by each kind: by the lower one of the processor, and by the upper one

#if defined(PT_X86)

#define PT_LOOP(name) name##_sse2
#define PT_TARGET
#define PT_WIDENS 1
#include "arch/host/loops.inc"
#define PT_LOOP(name) name##_avx2
#define PT_TARGET PT_AVX2
#define PT_WIDENS 1
#include "arch/host/loops.inc"

#define LOWER(name) name##_sse2
#define UPPER(name) name##_avx2

#else

#define PT_LOOP(name) name##_neon
#define PT_TARGET
#define PT_WIDENS 1
#include "arch/host/loops.inc"
#if defined(PT_DOT_PRODUCTS)
#define PT_LOOP(name) name##_dot
#define PT_TARGET PT_DOT_PRODUCTS
#define PT_WIDENS 0
#include "arch/host/loops.inc"
#else
#define multiply_dot multiply_neon
#endif
#define dot_dot dot_neon

#define LOWER(name) name##_neon
#define UPPER(name) name##_dot

#endif

// ---- by the one that runs

int32_t pt_dot_vectors(const int8_t *x, int32_t offset, const int8_t *w, int32_t stride, int32_t n,
                       int32_t sums[4]) {
    const int vectors = pt_vectors();
    return vectors == PT_VECTORS_NONE ? 0
                                      : (vectors == PT_VECTORS_UPPER ? UPPER(dot) : LOWER(dot))(
                                            x, offset, w, stride, n, sums);
}

static void host_gemm_s8_multiply_rows(const pt_gemm_s8 *layer, const int8_t *patches,
                                       int32_t stride, int32_t n, int8_t *out) {
    const int vectors = layer->depth <= PT_BLOCK_VALUES / 2 - 16 ? pt_vectors() : PT_VECTORS_NONE;
    if (PT_HAS_ANY_CORE && layer->packed) {
        pt_multiply_unpacked(layer, patches, stride, n, out);
    } else if (vectors == PT_VECTORS_UPPER) {
        UPPER(multiply)(layer, patches, stride, n, out);
    } else if (vectors == PT_VECTORS_LOWER) {
        LOWER(multiply)(layer, patches, stride, n, out);
    } else {
        for (; n > 0; n--, patches += stride, out += layer->out_stride) {
            pt_multiply_patch(layer, patches, out);
        }
    }
}

void pt_multiply_rows(pt_gemm_s8 *layer, const int8_t *patches, int32_t stride, int32_t n,
                      int8_t *out) {
    host_gemm_s8_multiply_rows(layer, patches, stride, n, out);
}

void pt_multiply_block(const pt_gemm_s8 *layer, int32_t n, int8_t *out) {
    host_gemm_s8_multiply_rows(layer, layer->block, layer->depth, n, out);
}

#endif
