// Divide a convolution of a whole image into parts of at most PT_PART_STEPS products, with a poll
// before each: some rows, or some columns of a row.
#include "cortex_m/image_parts.h"
#include "cortex_m/convolution.h"

// Limits g to `n` positions along dim d of the output, from `first` on; `step` is the input's step
// along d. Returns the input.
static const int8_t *select_positions(pt_geometry *g, uint32_t d, int32_t first, int32_t n,
                                      const int8_t *in, int32_t step) {
    g->out[d] = n;
    if (g->padding[d] == 0) {
        return in + first * g->stride[d] * step;
    }
    g->padding[d] -= first * g->stride[d];
    return in;
}

// Returns the rows or columns of a part, of n with `pixels` each: `max`, or fewer if the last part
// would have too few pixels for tiles of three.
static int32_t without_few(int32_t n, int32_t max, int32_t pixels) {
    enum { FEWEST = 3 };
    const int32_t rest = n % max, parts = n / max + 1;
    return rest > 0 && pixels < FEWEST && rest * pixels < FEWEST ? (n + parts - 1) / parts : max;
}

// Not inlined: small images do not need its stack.
static __attribute__((noinline)) int convolve_large(pt_context *c, pt_image_loop *loop,
                                                    const pt_geometry *g, const pt_gemm_s8 *layer,
                                                    const int8_t *in, int8_t *out, uint32_t bytes,
                                                    void *block, bool *done) {
    enum { FEWEST = 16 }; // columns
    const int64_t pixel = (int64_t)layer->depth * layer->channels, row = pixel * g->out[1];
    const int32_t rows =
        without_few(g->out[0], row < PT_PART_STEPS ? PT_PART_STEPS / (int32_t)row : 1, g->out[1]);
    int32_t columns = g->out[1];
    if (row > PT_PART_STEPS) {
        columns = pixel < PT_PART_STEPS / FEWEST ? PT_PART_STEPS / (int32_t)pixel : FEWEST;
        columns = without_few(g->out[1], columns, 1);
    }
    for (int32_t i = 0; i < g->out[0]; i += rows) {
        for (int32_t j = 0; j < g->out[1]; j += columns) {
            const int32_t m = g->out[0] - i < rows ? g->out[0] - i : rows;
            const int32_t n = g->out[1] - j < columns ? g->out[1] - j : columns;
            pt_geometry part = *g;
            pt_gemm_s8 own = *layer;
            const int8_t *from = select_positions(&part, 0, i, m, in, g->in[1] * g->pixel);
            from = select_positions(&part, 1, j, n, from, g->pixel);
            PT_TRY(pt_count_product(c, m * n, (int32_t)pixel));
            *done = loop(&part, &own, from, out + (i * g->out[1] + j) * layer->out_stride, block,
                         bytes);
            if (!*done) {
                return PT_ERROR_OK;
            }
        }
    }
    return PT_ERROR_OK;
}

int pt_convolve_in_parts(pt_context *c, pt_image_loop *loop, pt_geometry *g, pt_gemm_s8 *layer,
                         const int8_t *in, int8_t *out, uint32_t bytes, void *block, bool *done) {
    const int64_t steps = (int64_t)layer->depth * layer->channels * g->out[1] * g->out[0];
    if (steps > PT_PART_STEPS) {
        return convolve_large(c, loop, g, layer, in, out, bytes, block, done);
    }
    PT_TRY(pt_count_work(c, (int32_t)steps));
    *done = loop(g, layer, in, out, block, bytes);
    return PT_ERROR_OK;
}
