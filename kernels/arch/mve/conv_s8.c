// int8 convolution with MVE: pt_convolve, called by convolve_at_once for every convolution. Tile: 4
// patches x 4 channels x 16 values by VMLADAVA (gemm_s8.h); a 3x3 kernel of 16, 32 or 64 channels
// reads the pixels that four patches share. Fewer than 4 channels: 4 patches x 1 channel. Other
// shifts or too little scratch: one output at a time. Packing: 16 bytes of each patch in turn.
// Scratch: 4 patches, and 4 bytes a channel for the folded bias, else on the stack.
#include "arch/conv_geometry.h"

#if defined(__ARM_FEATURE_MVE)

#include "arch/mve/gemm_s8.h"
#include "arch/mve/requantize.h"
#include "arch/mve/sum.h"

// Not inlined, so that their stack frames are not live together.
#define NOINLINE __attribute__((noinline))

enum {
    PATCHES = 4,
    // Channels whose biases are on the stack, if the scratch is too small for them.
    CHANNELS = 64,
    FEW_CHANNELS = 16,
    LINE = 160, // longest patch that is gathered before it is packed
};

typedef struct convolution {
    const pt_geometry *g;
    const pt_gemm_s8 *layer;
    const int8_t *in;
    int8_t *block;
    int32_t row, column; // of the next patch
} convolution;

// ---- packing

// Packs n bytes to the first 16 of each 64 bytes from `to` on.
static inline void pack_bytes(int8_t *to, const int8_t *from, int32_t n) {
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrb.u8 q0, [%[from]], #16\n\t"
                     "vstrb.8 q0, [%[to]], #64\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [to] "+r"(to), [from] "+r"(from)
                     : [n] "r"(n)
                     : "lr", "q0", "memory");
}

static inline void mve_conv_s8_pack_value(int8_t *to, int8_t value, int32_t n) {
    int8x16_t values = vdupq_n_s8(value);
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vstrb.8 %q[values], [%[to]], #64\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [to] "+r"(to)
                     : [n] "r"(n), [values] "w"(values)
                     : "lr", "memory");
}

// Packs n bytes, or padding if `from` is NULL, from byte k of a patch on.
static void pack_at(const convolution *x, int8_t *patch, int32_t k, const int8_t *from, int32_t n) {
    int8_t padding = (int8_t)-x->layer->offset;
    int8_t *to = patch + (k & ~15) * PATCHES;
    int32_t within = k & 15;
    if (within) {
        int32_t piece = n < 16 - within ? n : 16 - within;
        mve_pred16_t p = vctp8q((uint32_t)piece);
        vstrbq_p_s8(to + within, from ? vldrbq_z_s8(from, p) : vdupq_n_s8(padding), p);
        n -= piece;
        from += from ? piece : 0;
        to += 16 * PATCHES;
    }
    if (from) {
        pack_bytes(to, from, n);
    } else {
        mve_conv_s8_pack_value(to, padding, n);
    }
}

// The taps of a window that lie inside the image along a dim: the first, their number, and the
// position of the first in the image.
typedef struct taps {
    int32_t first, n, position;
} taps;

static taps find_taps(const pt_geometry *g, uint32_t dim, int32_t position) {
    const int32_t dilation = g->dilation[dim], size = g->in[dim], kernel = g->kernel[dim];
    int32_t first = 0, end = kernel;
    if (position < 0) {
        first = dilation == 1 ? -position : (dilation - 1 - position) / dilation;
    }
    if (position + (kernel - 1) * dilation >= size) {
        const int32_t rest = size - 1 - position; // from the position to the last
        end = rest < 0 ? 0 : dilation == 1 ? rest + 1 : rest / dilation + 1;
    }
    return (taps){first, end > first ? end - first : 0, position + first * dilation};
}

// True if neighbouring taps of a row are neighbouring bytes.
static bool has_whole_rows(const pt_geometry *g) {
    return g->dilation[1] == 1 && g->pixel == g->channels;
}

// Packs the patch of the window at (y, column) row by row.
static NOINLINE void pack_rows(const convolution *x, int32_t y, int32_t column, int8_t *patch) {
    const pt_geometry *g = x->g;
    const taps rows = find_taps(g, 0, y), columns = find_taps(g, 1, column);
    const int32_t bytes = g->channels, size = g->kernel[1] * bytes;
    const int32_t pieces = has_whole_rows(g) ? 1 : columns.n;
    const int32_t piece = has_whole_rows(g) ? columns.n * bytes : bytes;
    const int32_t before = columns.n ? columns.first * bytes : size;
    for (int32_t i = 0, k = 0; i < g->kernel[0]; i++, k += size) {
        if (i < rows.first || i >= rows.first + rows.n) {
            pack_at(x, patch, k, NULL, size);
            continue;
        }
        const int32_t row = rows.position + (i - rows.first) * g->dilation[0];
        const int8_t *from = x->in + (row * g->in[1] + columns.position) * g->pixel;
        pack_at(x, patch, k, NULL, before);
        int32_t at = before;
        for (int32_t j = pieces; j > 0; j--, at += piece, from += g->dilation[1] * g->pixel) {
            pack_at(x, patch, k + at, from, piece);
        }
        pack_at(x, patch, k + at, NULL, size - at);
    }
}

static void pack_patch(const convolution *x, int8_t *patch) {
    const pt_geometry *g = x->g;
    pack_rows(x, x->row * g->stride[0] - g->padding[0], x->column * g->stride[1] - g->padding[1],
              patch);
}

// Copies rows of at most 16 bytes.
static inline void mve_conv_s8_copy_rows(int8_t *to, const int8_t *from, int32_t rows,
                                         int32_t bytes, int32_t to_step, int32_t from_step) {
    __asm__ volatile(
        "vctp.8 %[bytes]\n\t"
        "dls lr, %[rows]\n"
        "1:\n\t"
        "vpstt\n\t"
        "vldrbt.u8 q0, [%[from]]\n\t"
        "vstrbt.8 q0, [%[to]]\n\t"
        "add %[from], %[from], %[from_step]\n\t"
        "add %[to], %[to], %[to_step]\n\t"
        "le lr, 1b"
        : [from] "+r"(from), [to] "+r"(to)
        : [bytes] "r"(bytes), [rows] "r"(rows), [from_step] "r"(from_step), [to_step] "r"(to_step)
        : "lr", "q0", "cc", "memory");
}

// Copies rows of any length, 16 bytes of each row at a time.
static inline void copy_long_rows(int8_t *to, const int8_t *from, int32_t rows, int32_t bytes,
                                  int32_t to_step, int32_t from_step) {
    for (; bytes > 0; bytes -= 16, to += 16, from += 16) {
        mve_conv_s8_copy_rows(to, from, rows, bytes, to_step, from_step);
    }
}

// Gathers the patch of the window at (y, column) as a line. What lies outside the image is padding.
static NOINLINE void gather(const convolution *x, int32_t y, int32_t column, int8_t *line) {
    const pt_geometry *g = x->g;
    const taps rows = find_taps(g, 0, y), columns = find_taps(g, 1, column);
    const int32_t bytes = g->channels, size = g->kernel[1] * bytes;
    const int32_t step = g->dilation[0] * g->in[1] * g->pixel;
    if (rows.n < g->kernel[0] || columns.n < g->kernel[1]) {
        const int8x16_t padding = vdupq_n_s8((int8_t)-x->layer->offset);
        for (int32_t i = 0; i < x->layer->depth; i += 16) {
            vst1q_s8(line + i, padding);
        }
        if (rows.n == 0 || columns.n == 0) {
            return;
        }
    }
    const int8_t *from = x->in + (rows.position * g->in[1] + columns.position) * g->pixel;
    line += rows.first * size + columns.first * bytes;
    if (has_whole_rows(g)) {
        copy_long_rows(line, from, rows.n, columns.n * bytes, size, step);
        return;
    }
    for (int32_t i = rows.n; i > 0; i--, line += size, from += step) {
        copy_long_rows(line, from, columns.n, bytes, bytes, g->dilation[1] * g->pixel);
    }
}

// Packs a patch of at most LINE bytes that was gathered as a line.
static inline void pack_line(const int8_t *line, int32_t depth, int8_t *patch) {
    for (int32_t i = 0; i < depth; i += 16) {
        vst1q_s8(patch + PATCHES * i, vld1q_s8(line + i));
    }
}

// Packs four neighbouring patches of three short rows, 17 to 32 bytes in all: three stores make a
// line, and each overwrites the excess bytes of the store before it.
static inline void pack_short_rows(int8_t *patch, const int8_t *from, int32_t bytes, int32_t step,
                                   int32_t line_step) {
    int8_t line[3 * 16];
    const int8_t *row, *last;
    int32_t times = PATCHES;
    // clang-format off
    __asm__ volatile(
        "vctp.8 %[bytes]\n\t"
        "dls lr, %[times]\n"
        "1:\n\t"
        "add %[row], %[from], %[line_step]\n\t"
        "add %[last], %[row], %[line_step]\n\t"
        "vpsttt\n\t"
        "vldrbt.u8 q0, [%[from]]\n\t"
        "vldrbt.u8 q1, [%[row]]\n\t"
        "vldrbt.u8 q2, [%[last]]\n\t"
        "vstrb.8 q0, [%[line]]\n\t"
        "vstrb.8 q1, [%[second]]\n\t"
        "vstrb.8 q2, [%[third]]\n\t"
        "vldrb.u8 q0, [%[line]]\n\t"
        "vldrb.u8 q1, [%[line], #16]\n\t"
        "add %[from], %[from], %[step]\n\t"
        "vstrb.8 q1, [%[patch], #64]\n\t"
        "vstrb.8 q0, [%[patch]], #16\n\t"
        "le lr, 1b"
        : [patch] "+r"(patch), [from] "+r"(from), [row] "=&r"(row),
          [last] "=&r"(last)
        : [bytes] "r"(bytes), [step] "r"(step), [line_step] "r"(line_step), [times] "r"(times),
          [line] "r"(line), [second] "r"(line + bytes), [third] "r"(line + 2 * bytes)
        : "lr", "q0", "q1", "q2", "cc", "memory");
    // clang-format on
}

// Ways to pack patches: row by row; gathered as a line; four neighbours inside the image together,
// with contiguous rows that are gathered as a line, short, or multiples of 16 bytes.
typedef enum packing { BY_ROWS, BY_LINES, IN_LINES, IN_SHORT_ROWS, IN_WHOLE_ROWS } packing;

static packing choose_packing(const pt_geometry *g, int32_t depth) {
    if (!has_whole_rows(g)) {
        return depth <= LINE ? BY_LINES : BY_ROWS;
    }
    if (depth <= LINE && g->kernel[1] * g->channels <= 16) {
        return IN_SHORT_ROWS;
    }
    return g->channels % 16 == 0 ? IN_WHOLE_ROWS : depth <= LINE ? IN_LINES : BY_ROWS;
}

// Packs four neighbouring patches inside the image, the first at `from`.
static NOINLINE void pack_inside(const convolution *x, const int8_t *from, packing how) {
    const pt_geometry *g = x->g;
    int32_t size = g->kernel[1] * g->channels, step = g->stride[1] * g->pixel;
    int32_t line_step = g->dilation[0] * g->in[1] * g->pixel;
    int32_t rows = g->kernel[0], depth = x->layer->depth;
    int8_t line[LINE];
    if (how == IN_SHORT_ROWS && rows == 3 && depth > 16 && depth <= 32) {
        pack_short_rows(x->block, from, size, step, line_step);
        return;
    }
    for (int8_t *patch = x->block; patch != x->block + 16 * PATCHES; patch += 16, from += step) {
        if (how == IN_SHORT_ROWS) {
            mve_conv_s8_copy_rows(line, from, rows, size, size, line_step);
            pack_line(line, depth, patch);
            continue;
        }
        if (how == IN_LINES) {
            copy_long_rows(line, from, rows, size, size, line_step);
            pack_line(line, depth, patch);
            continue;
        }
        const int8_t *row = from;
        int8_t *to = patch;
        for (int32_t i = rows; i > 0; i--, row += line_step, to += PATCHES * size) {
            pack_bytes(to, row, size);
        }
    }
}

static NOINLINE void pack_gathered(const convolution *x, int32_t y, int32_t column, int8_t *patch) {
    int8_t line[LINE];
    gather(x, y, column, line);
    pack_line(line, x->layer->depth, patch);
}

// Packs the next patch, and moves on; stays at the last patch of the image.
static void pack_next(convolution *x, packing how, int8_t *patch) {
    const pt_geometry *g = x->g;
    const int32_t y = x->row * g->stride[0] - g->padding[0];
    const int32_t column = x->column * g->stride[1] - g->padding[1];
    if (how == IN_SHORT_ROWS || how == IN_LINES || how == BY_LINES) {
        pack_gathered(x, y, column, patch);
    } else {
        pack_rows(x, y, column, patch);
    }
    if (x->column + 1 < g->out[1]) {
        x->column++;
    } else if (x->row + 1 < g->out[0]) {
        x->row++;
        x->column = 0;
    }
}

// Packs the next four patches; at the end of the image the last one is repeated.
static NOINLINE void pack_block(convolution *x, packing how) {
    const pt_geometry *g = x->g;
    const int32_t y = x->row * g->stride[0] - g->padding[0];
    const int32_t column = x->column * g->stride[1] - g->padding[1];
    const int32_t last_row = y + (g->kernel[0] - 1) * g->dilation[0];
    const int32_t end = column + (PATCHES - 1) * g->stride[1] + g->kernel[1];
    if (how >= IN_LINES && y >= 0 && last_row < g->in[0] && column >= 0 && end <= g->in[1] &&
        x->column + PATCHES <= g->out[1]) {
        pack_inside(x, x->in + (y * g->in[1] + column) * g->pixel, how);
        x->column += PATCHES;
        if (x->column == g->out[1]) {
            bool last = x->row + 1 == g->out[0];
            x->column = last ? g->out[1] - 1 : 0;
            x->row += !last;
        }
        return;
    }
    for (int8_t *patch = x->block; patch != x->block + 16 * PATCHES; patch += 16) {
        pack_next(x, how, patch);
    }
}

// Packs the pixels with these numbers as patches.
static void mve_conv_s8_pack_pixels(const convolution *x, uint32x4_t numbers) {
    const int8_t *from[PATCHES], *p0, *p1, *p2, *p3;
    int8_t *to = x->block;
    vst1q_u32((uint32_t *)(void *)from,
              vaddq_n_u32(vmulq_n_u32(numbers, (uint32_t)x->g->pixel), (uint32_t)x->in));
    p0 = from[0], p1 = from[1], p2 = from[2], p3 = from[3];
    // clang-format off
    __asm__ volatile(
        "wlstp.8 lr, %[n], 2f\n"
        "1:\n\t"
        "vldrb.u8 q0, [%[p0]], #16\n\t"
        "vldrb.u8 q1, [%[p1]], #16\n\t"
        "vldrb.u8 q2, [%[p2]], #16\n\t"
        "vldrb.u8 q3, [%[p3]], #16\n\t"
        "vstrb.8 q0, [%[to]], #64\n\t"
        "vstrb.8 q1, [%[to], #-48]\n\t"
        "vstrb.8 q2, [%[to], #-32]\n\t"
        "vstrb.8 q3, [%[to], #-16]\n\t"
        "letp lr, 1b\n"
        "2:"
        : [p0] "+r"(p0), [p1] "+r"(p1), [p2] "+r"(p2), [p3] "+r"(p3), [to] "+r"(to)
        : [n] "r"(x->g->channels)
        : "lr", "q0", "q1", "q2", "q3", "memory");
    // clang-format on
}

// ---- channels

// Adds the input's offset times the sum of the weights to the biases.
static void mve_conv_s8_fold_offset(const pt_gemm_s8 *layer, int32_t first, int32_t n,
                                    int32_t *bias) {
    int32_t depth = layer->depth, offset = layer->offset;
    const int8_t *weights = layer->weights + first * depth;
    const int32_t *from = layer->output.bias ? layer->output.bias + first : NULL;
    for (int32_t *end = bias + n; bias != end; weights += depth) {
        uint32_t sum = offset ? (uint32_t)pt_sum_bytes(weights, depth) : 0;
        *bias++ = (int32_t)(sum * (uint32_t)offset + (uint32_t)(from ? *from++ : 0));
    }
}

// ---- products

// Multiplies four patches whose outputs are not aligned to words, by way of words on the stack. The
// last four channels overlap the ones before.
static NOINLINE void multiply_unaligned(const pt_quads *quads, int32_t channels) {
    enum { PART = 32 }; // channels at a time
    int32_t words[PATCHES][PART / 4];
    pt_quads some = *quads;
    for (int32_t i = 0; i < PATCHES; i++) {
        some.out[i] = (uint32_t)words[i];
    }
    for (int32_t o = 0, n; o < channels; o += n) {
        n = channels - o < PART ? (channels - o) & ~3 : PART;
        if (n == 0) {
            n = 4;
            o = channels - 4;
        }
        some.quads = n / 4;
        some.bias = quads->bias + o;
        some.multipliers = quads->multipliers + o;
        some.shifts = quads->shifts + o;
        some.weights = quads->weights + o * quads->depth;
        pt_multiply_quads(&some);
        for (int32_t i = 0; i < PATCHES; i++) {
            copy_long_rows((int8_t *)quads->out[i] + o, (const int8_t *)words[i], 1, n, 0, 0);
        }
    }
}

// Computes the sums of four packed patches with a row of weights.
static inline int32x4_t sum_patches(const int8_t *patch, const int8_t *weights, int32_t n) {
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrb.u8 q0, [%[weights]], #16\n\t"
                     "vldrb.u8 q1, [%[patch]], #64\n\t"
                     "vmladava.s8 %[s0], q0, q1\n\t"
                     "vldrb.u8 q2, [%[patch], #-48]\n\t"
                     "vmladava.s8 %[s1], q0, q2\n\t"
                     "vldrb.u8 q1, [%[patch], #-32]\n\t"
                     "vmladava.s8 %[s2], q0, q1\n\t"
                     "vldrb.u8 q2, [%[patch], #-16]\n\t"
                     "vmladava.s8 %[s3], q0, q2\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [patch] "+r"(patch), [weights] "+r"(weights), [s0] "+Te"(s0), [s1] "+Te"(s1),
                       [s2] "+Te"(s2), [s3] "+Te"(s3)
                     : [n] "r"(n)
                     : "lr", "q0", "q1", "q2", "memory");
    return (int32x4_t){s0, s1, s2, s3};
}

// Multiplies four patches with less than four channels, one at a time: the patches are in lanes.
static NOINLINE void multiply_few(const pt_quads *quads, int32_t channels) {
    const uint32x4_t out = vld1q_u32(quads->out);
    const int8_t *weights = quads->weights;
    for (int32_t o = 0; o < channels; o++, weights += quads->depth) {
        int32x4_t sums = sum_patches(quads->packed, weights, quads->depth);
        sums = vqrdmulhq_n_s32(vaddq_n_s32(sums, quads->bias[o]), quads->multipliers[o]);
        sums = vrshlq_n_s32(vaddq_s32(sums, vshrq_n_s32(sums, 31)), quads->shifts[o]);
        sums = vaddq_n_s32(sums, quads->output_offset);
        sums = vmaxq_s32(vminq_s32(sums, vdupq_n_s32(INT8_MAX)), vdupq_n_s32(INT8_MIN));
        vstrbq_scatter_offset_s32((int8_t *)o, out, sums);
    }
}

// True if every pixel of the input is a patch.
static bool is_pointwise(const pt_geometry *g) {
    return ((g->kernel[0] & g->kernel[1] & g->stride[0] & g->stride[1]) == 1) &&
           g->kernel[0] + g->kernel[1] + g->stride[0] + g->stride[1] == 4 &&
           (g->padding[0] | g->padding[1]) == 0;
}

// ---- windows of 3 x 3

static bool mve_conv_s8_has_windows(const pt_geometry *g, const pt_gemm_s8 *layer,
                                    const int8_t *out) {
    int32_t c = g->channels, stride = g->stride[0];
    return g->kernel[0] == 3 && g->kernel[1] == 3 && stride <= 2 && g->stride[1] == stride &&
           (g->dilation[0] | g->dilation[1]) == 1 && g->out[1] >= PATCHES &&
           (c == 16 || c == 32 || (c == 64 && stride == 1)) &&
           (((uint32_t)layer->weights | (uint32_t)out | (uint32_t)layer->out_stride |
             (uint32_t)layer->channels) &
            3) == 0;
}

// Returns the bytes of a window, with 16 bytes of overread.
static uint32_t window_bytes(const pt_geometry *g) {
    int32_t columns = (PATCHES - 1) * g->stride[1] + 3;
    return (uint32_t)(3 * columns * g->channels + 16);
}

static int32_t choose_windows(const pt_geometry *g) {
    int32_t apart = g->stride[0] == 1 ? PT_WINDOWS_16 : PT_WINDOWS_16_APART;
    return apart + (g->channels == 16 ? 0 : g->channels == 32 ? 1 : 2);
}

static inline void mve_conv_s8_fill(int8_t *to, int8_t value, int32_t bytes) {
    for (int32_t i = 0; i < bytes; i += 16) {
        vst1q_s8(to + i, vdupq_n_s8(value));
    }
}

// clang-format off

#define PT_PACK_COLUMN                   \
    "vldrb.u8 q0, [%[from]]\n\t"         \
    "add %[from], %[from], %[pixel]\n\t" \
    "vstrw.32 q0, [%[to]], #16\n\t"

// clang-format on

// Packs 16 bytes of each of n pixels.
static inline void pack_columns(int8_t *to, const int8_t *from, int32_t pixel, int32_t n) {
    if (n == PATCHES + 2) {
        // clang-format off
        __asm__ volatile(
            PT_PACK_COLUMN
            PT_PACK_COLUMN
            PT_PACK_COLUMN
            PT_PACK_COLUMN
            PT_PACK_COLUMN
            PT_PACK_COLUMN
            : [to] "+r"(to), [from] "+r"(from)
            : [pixel] "r"(pixel)
            : "q0", "memory");
        // clang-format on
        return;
    }
    // clang-format off
    __asm__ volatile(
        "dls lr, %[n]\n"
        "1:\n\t"
        PT_PACK_COLUMN
        "le lr, 1b"
        : [to] "+r"(to), [from] "+r"(from)
        : [n] "r"(n), [pixel] "r"(pixel)
        : "lr", "q0", "memory");
    // clang-format on
}

// Packs the pixels of four neighbouring patches: columns from `column` on, of three rows.
static NOINLINE void pack_window(const convolution *x, int32_t row, int32_t column) {
    const pt_geometry *g = x->g;
    int32_t columns = (PATCHES - 1) * g->stride[1] + 3, left = column < 0 ? -column : 0;
    int32_t width = (column + columns < g->in[1] ? columns : g->in[1] - column) - left;
    const int8_t *in = x->in + (row * g->in[1] + column + left) * g->pixel;
    int8_t *to = x->block;
    if (row >= 0 && row + 3 <= g->in[0] && width == columns) {
        int32_t channels = g->channels, pixel = g->pixel, step = g->in[1] * pixel;
        for (const int8_t *end = in + 3 * step; in != end; in += step) {
            for (int32_t part = 0; part < channels; part += 16, to += columns * 16) {
                pack_columns(to, in + part, pixel, columns);
            }
        }
        return;
    }
    for (int32_t i = 0; i < 3; i++, row++, in += g->in[1] * g->pixel) {
        bool inside = row >= 0 && row < g->in[0] && width > 0;
        if (!inside || width < columns) {
            mve_conv_s8_fill(to, (int8_t)-x->layer->offset, g->channels * columns);
        }
        for (int32_t part = 0; part < g->channels; part += 16, to += columns * 16) {
            if (inside) {
                pack_columns(to + left * 16, in + part, g->pixel, width);
            }
        }
    }
}

static void mve_conv_s8_convolve_windows(const convolution *x, pt_quads *quads, int8_t *out) {
    const pt_geometry *g = x->g;
    int32_t stride = x->layer->out_stride, last = g->out[1] - PATCHES;
    quads->rounds = choose_windows(g);
    for (int32_t i = 0; i < g->out[0]; i++, out += g->out[1] * stride) {
        for (int32_t j = 0; j < g->out[1]; j += PATCHES) {
            int32_t column = j < last ? j : last;
            for (int32_t p = 0; p < PATCHES; p++) {
                quads->out[p] = (uint32_t)(out + (column + p) * stride);
            }
            pack_window(x, i * g->stride[0] - g->padding[0], column * g->stride[1] - g->padding[1]);
            pt_multiply_windows(quads);
        }
    }
}

// Multiplies all patches with n channels from `first` on.
static NOINLINE void mve_conv_s8_convolve_channels(convolution *x, int32_t first, int32_t n,
                                                   int8_t *out, int32_t *bias) {
    const pt_geometry *g = x->g;
    const pt_gemm_s8 *layer = x->layer;
    mve_conv_s8_fold_offset(layer, first, n, bias);
    pt_quads quads = {.bias = bias,
                      .multipliers = layer->output.multipliers + first,
                      .shifts = layer->output.shifts + first,
                      .packed = x->block,
                      .depth = layer->depth,
                      .last = ((layer->depth - 1) & 15) + 1,
                      .output_offset = layer->output.range.offset,
                      .quads = n / 4,
                      .weights = layer->weights + first * layer->depth};
    if (mve_conv_s8_has_windows(g, layer, out)) {
        mve_conv_s8_convolve_windows(x, &quads, out);
        return;
    }
    bool words = (((uint32_t)out | (uint32_t)layer->out_stride | (uint32_t)n) & 3) == 0;
    bool pixels = is_pointwise(g);
    packing how = choose_packing(g, layer->depth);
    int32_t end = g->out[0] * g->out[1] - 1;
    x->row = x->column = 0;
    for (int32_t i = 0; i <= end; i += PATCHES) {
        uint32x4_t numbers = vminq_u32(vidupq_n_u32((uint32_t)i, 1), vdupq_n_u32((uint32_t)end));
        vst1q_u32(quads.out,
                  vaddq_n_u32(vmulq_n_u32(numbers, (uint32_t)layer->out_stride), (uint32_t)out));
        if (pixels) {
            mve_conv_s8_pack_pixels(x, numbers);
        } else {
            pack_block(x, how);
        }
        if (words) {
            pt_multiply_quads(&quads);
        } else if (n < 4) {
            multiply_few(&quads, n);
        } else {
            multiply_unaligned(&quads, n);
        }
    }
}

// Multiplies at most `max` channels at a time, and at least four.
static void mve_conv_s8_convolve_parts(convolution *x, int32_t max, int8_t *out, int32_t *bias) {
    for (int32_t first = 0, n; first < x->layer->channels; first += n) {
        int32_t rest = x->layer->channels - first;
        n = rest <= max ? rest : rest < max + 4 ? (max / 2) & ~3 : max & ~3;
        mve_conv_s8_convolve_channels(x, first, n, out + first, bias);
    }
}

static NOINLINE void convolve_by_stack(convolution *x, int8_t *out) {
    int32_t bias[CHANNELS];
    mve_conv_s8_convolve_parts(x, CHANNELS, out, bias);
}

static NOINLINE void convolve_few_by_stack(convolution *x, int8_t *out) {
    int32_t bias[FEW_CHANNELS];
    mve_conv_s8_convolve_parts(x, FEW_CHANNELS, out, bias);
}

static int32_t mve_conv_s8_multiply_packed(const int8_t *patch, const int8_t *weights, int32_t n) {
    register int32_t sum __asm__("r2") = 0;
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrb.u8 q0, [%[patch]], #64\n\t"
                     "vldrb.u8 q1, [%[weights]], #16\n\t"
                     "vmladava.s8 %[sum], q0, q1\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [patch] "+r"(patch), [weights] "+r"(weights), [sum] "+r"(sum)
                     : [n] "r"(n)
                     : "lr", "q0", "q1", "memory");
    return sum;
}

// Computes one output at a time, for any parameters, with minimum scratch at any address.
static NOINLINE void convolve_singly(convolution *x, int8_t *out) {
    const pt_gemm_s8 *layer = x->layer;
    for (x->row = 0; x->row < x->g->out[0]; x->row++) {
        for (x->column = 0; x->column < x->g->out[1]; x->column++, out += layer->out_stride) {
            const int8_t *weights = layer->weights;
            pack_patch(x, x->block);
            for (int32_t o = 0; o < layer->channels; o++, weights += layer->depth) {
                uint32_t sum =
                    (uint32_t)mve_conv_s8_multiply_packed(x->block, weights, layer->depth);
                sum += (uint32_t)pt_sum_bytes(weights, layer->depth) * (uint32_t)layer->offset;
                out[o] = pt_finish(&layer->output, o,
                                   pt_add_int32((int32_t)sum, pt_bias_of(&layer->output, o)));
            }
        }
    }
}

// Computes the sums of a patch with two rows of weights, and adds the sums of the weights times the
// input's offset.
static inline void sum_two_rows(const int8_t *patch, int32_t offset, const int8_t *weights,
                                int32_t depth, int32_t *sums) {
    const int8_t *second = weights + depth;
    int32_t s0 = 0, s1 = 0, w0 = 0, w1 = 0;
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrb.u8 q0, [%[patch]], #16\n\t"
                     "vldrb.u8 q1, [%[weights]], #16\n\t"
                     "vmladava.s8 %[s0], q0, q1\n\t"
                     "vldrb.u8 q2, [%[second]], #16\n\t"
                     "vaddva.s8 %[w0], q1\n\t"
                     "vmladava.s8 %[s1], q0, q2\n\t"
                     "vaddva.s8 %[w1], q2\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [patch] "+r"(patch), [weights] "+r"(weights), [second] "+r"(second),
                       [s0] "+Te"(s0), [s1] "+Te"(s1), [w0] "+Te"(w0), [w1] "+Te"(w1)
                     : [n] "r"(depth)
                     : "lr", "q0", "q1", "q2", "memory");
    sums[0] = (int32_t)((uint32_t)s0 + (uint32_t)w0 * (uint32_t)offset);
    sums[1] = (int32_t)((uint32_t)s1 + (uint32_t)w1 * (uint32_t)offset);
}

// Multiplies an image of a single patch, four channels at a time: to compute four patches, or to
// sum the weights beforehand, takes longer. The last four channels overlap the ones before.
static NOINLINE void convolve_one_patch(convolution *x, int8_t *out) {
    const pt_gemm_s8 *layer = x->layer;
    const pt_channels *output = &layer->output;
    const int32_t depth = layer->depth, channels = layer->channels;
    gather(x, -x->g->padding[0], -x->g->padding[1], x->block);
    for (int32_t i = 0; i < channels; i += 4) {
        const int32_t o = i + 4 <= channels ? i : channels - 4;
        const int8_t *weights = layer->weights + o * depth;
        int32_t sums[4];
        sum_two_rows(x->block, layer->offset, weights, depth, sums);
        sum_two_rows(x->block, layer->offset, weights + 2 * depth, depth, sums + 2);
        int32x4_t y = vld1q_s32(sums);
        if (output->bias) {
            y = vaddq_s32(y, vld1q_s32(output->bias + o));
        }
        y = vqrdmulhq_s32(y, vld1q_s32(output->multipliers + o));
        y = vrshlq_s32(vaddq_s32(y, vshrq_n_s32(y, 31)), vld1q_s32(output->shifts + o));
        y = vaddq_n_s32(y, output->range.offset);
        y = vmaxq_s32(vminq_s32(y, vdupq_n_s32(INT8_MAX)), vdupq_n_s32(INT8_MIN));
        vstrbq_s32(out + o, y);
    }
}

bool pt_convolve(const pt_geometry *g, pt_gemm_s8 *layer, const int8_t *in, int8_t *out,
                 void *block, uint32_t bytes) {
    convolution x = {g, layer, in, block, 0, 0};
    const bool fast =
        pt_have_fast_scales(&layer->output, layer->channels) && !((uint32_t)block & 3);
    if (fast && g->out[0] * g->out[1] == 1 && layer->channels >= 4) {
        convolve_one_patch(&x, out);
        pt_limit_pixels(&layer->output.range, out, 1, layer->out_stride, layer->channels);
        return true;
    }
    uint32_t needed = (((uint32_t)layer->depth + 15) & ~15u) * PATCHES;
    if (bytes < needed || !fast) {
        convolve_singly(&x, out);
        return true;
    }
    uint32_t used = mve_conv_s8_has_windows(g, layer, out) ? window_bytes(g) : needed;
    int32_t max_channels = (int32_t)((bytes - used) / 4);
    if (max_channels >= CHANNELS || max_channels >= layer->channels) {
        mve_conv_s8_convolve_parts(&x, max_channels, out, (int32_t *)(void *)(x.block + used));
    } else if (layer->channels <= FEW_CHANNELS) {
        convolve_few_by_stack(&x, out);
    } else {
        convolve_by_stack(&x, out);
    }
    pt_limit_pixels(&layer->output.range, out, g->out[0] * g->out[1], layer->out_stride,
                    layer->channels);
    return true;
}

// ---- several outputs of each input channel

// Transposes the weights of n outputs, from (k, `step` outputs) to rows of k.
static NOINLINE void turn_weights(const int8_t *weights, int32_t step, int32_t n, int32_t depth,
                                  int8_t *rows) {
    for (int32_t i = 0; i < n; i += 8) {
        mve_pred16_t p = vctp16q((uint32_t)(n - i));
        uint16x8_t offsets = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)depth);
        for (int32_t k = 0; k < depth; k++) {
            vstrbq_scatter_offset_p_s16(rows + i * depth + k, offsets,
                                        vldrbq_z_s16(weights + k * step + i, p), p);
        }
    }
}

// Convolves each input channel as a convolution of its own.
bool pt_convolve_multiplied(pt_geometry *g, pt_gemm_s8 *layer, const int8_t *in, int8_t *out,
                            void *block, uint32_t bytes) {
    uint32_t rows = ((uint32_t)(g->channels * layer->depth) + 3) & ~3u;
    if (rows + pt_min_scratch(layer->depth) > bytes || layer->depth > UINT16_MAX / 8) {
        return false;
    }
    int32_t outputs = layer->channels, n = g->channels;
    const int8_t *weights = layer->weights;
    g->channels = 1;
    layer->channels = n;
    for (const int8_t *end = in + g->pixel; in != end; in++, out += n, weights += n) {
        turn_weights(weights, outputs, n, layer->depth, block);
        layer->weights = block;
        pt_convolve(g, layer, in, out, (int8_t *)block + rows, bytes - rows);
        pt_skip_channels(layer);
    }
    return true;
}

#endif
