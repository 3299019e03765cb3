// int8 depthwise convolution with MVE: pt_convolve_depthwise, called by cortex_m/depthwise.c for
// every depthwise convolution. 3x3 of small images: 16 channels in lanes. Other 3x3 at stride 1 or
// 2: 1 channel x 8 outputs, from interleaved lines. Many outputs for each input channel:
// convolutions of their own. Else depthwise_lanes.c. Scratch: records of 16 channels and
// interleaved lines, or the list of pixels; without it depthwise_lanes.c.
#include "arch/conv_geometry.h"

#if defined(__ARM_FEATURE_MVE)

#include "arch/mve/depthwise_lanes.h"
#include "arch/mve/requantize.h"

// Lines of the input are interleaved by fours: four bytes for each channel of each column. So a
// window of 4 x 4 is a gather of four words, and one VMLADAV with the 3 x 3 weights at their offset
// in such a window is an output: at stride 1 a window has four.

// Not inlined, so that their stack frames are not live together.
#define NOINLINE __attribute__((noinline))

enum {
    RECORD = 76,          // bytes of weights and parameters of a channel
    STAGE = 2 * 4 * 64,   // bytes for interleaving weights
    OUTPUTS = 8,          // outputs at a time
    MAX_OFFSET = 1 << 16, // maximum bytes from the first of eight outputs to the last
    SPANS = 3,            // kinds of windows along a dim: at its start, inside, at its end
};

// A dim of the image: along (a step is a column) or across (a step is a line).
typedef struct walk {
    int32_t in, out, padding;
    int32_t in_step, out_step, weight_step; // bytes
} walk;

typedef struct depthwise {
    const pt_gemm_s8 *layer;
    walk along, across;
    int32_t stride;
    int32_t column;            // bytes of a column of interleaved lines
    int8_t *records, *columns; // in scratch
} depthwise;

// The arguments of the window loops, which compute four outputs of two lines, or eight of one, of
// each channel, `times` times: their stack, and the offsets of windows from the first.
typedef struct windows {
    int32_t one, offset;
    int32_t window_step, out_step;
    uint16_t outputs[OUTPUTS];
    int8_t *out;
    int32_t out_end;               // from out
    int32_t window_back, out_back; // before the last time, which overlaps
    int32_t times, channels;
    const int8_t *columns, *records;
    uint32_t window[4][4];
    int32_t second; // to the second four windows at stride 2
} windows;

PT_OFFSET(windows, one, 0);
PT_OFFSET(windows, offset, 4);
PT_OFFSET(windows, window_step, 8);
PT_OFFSET(windows, out_step, 12);
PT_OFFSET(windows, outputs, 16);
PT_OFFSET(windows, out, 32);
PT_OFFSET(windows, out_end, 36);
PT_OFFSET(windows, window_back, 40);
PT_OFFSET(windows, out_back, 44);
PT_OFFSET(windows, times, 48);
PT_OFFSET(windows, channels, 52);
PT_OFFSET(windows, columns, 56);
PT_OFFSET(windows, records, 60);
PT_OFFSET(windows, window, 64);
PT_STATIC_ASSERT(RECORD == 16 * 4 + 3 * 4, "assembler has records of 76");

// ---- the loops

// clang-format off

// Instructions of one unit are not adjacent where possible, since the second would wait: the first
// four sums are requantized while the others are computed.

// Requantizes eight sums and moves to the next windows. The first four sums are in `first`, with
// the bias; r0, r2, r4 and r6 are one to out_step.
#define PT_FINISH_WINDOWS(first)                                              \
    "vmov q1[2], q1[0], r8, r12\n\t"                                          \
    "vqrdmulh.s32 " #first ", " #first ", r5\n\t" /* multiplier */            \
    "vmov q1[3], q1[1], r10, lr\n\t"                                          \
    "vqdmlah.s32 " #first ", " #first ", r0\n\t"  /* halves away from zero */ \
    "vrshl.s32 " #first ", r7\n\t"                /* shift */                 \
    "subs r11, #1\n\t"                            /* times */                 \
    "vadd.i32 q1, q1, r3\n\t"                     /* bias */                  \
    "vqrdmulh.s32 q1, q1, r5\n\t"                                             \
    "vqmovnb.s32 " #first ", " #first "\n\t"                                  \
    "vqdmlah.s32 q1, q1, r0\n\t"                                              \
    "vrshl.s32 q1, r7\n\t"                                                    \
    "vqmovnt.s32 " #first ", q1\n\t"                                          \
    "add r1, r1, r4\n\t"                                                      \
    "vldrh.u16 q1, [sp, #16]\n\t"                 /* outputs */               \
    "vqadd.s16 " #first ", " #first ", r2\n\t"                                \
    "ldrd r0, r2, [sp, #32]\n\t"                 /* out, out_end */          \
    "vqmovnb.s16 " #first ", " #first "\n\t"                                  \
    "vstrb.16 " #first ", [r9, q1]\n\t"                                       \
    "add r9, r9, r6\n\t"

#define PT_BEGIN_WINDOWS                                      \
    "sub sp, sp, #64\n\t"                                     \
    "vldrw.u32 q0, [r0], #64\n\t" /* windows up to records */ \
    "vldrw.u32 q1, [r0, #-48]\n\t"                            \
    "vldrw.u32 q2, [r0, #-32]\n\t"                            \
    "vldrw.u32 q3, [r0, #-16]\n\t"                            \
    "vstrw.32 q0, [sp]\n\t"                                   \
    "vstrw.32 q1, [sp, #16]\n\t"                              \
    "vstrw.32 q2, [sp, #32]\n\t"                              \
    "vstrw.32 q3, [sp, #48]\n\t"                              \
    "vldrw.u32 q2, [r0]\n\t"      /* window[0] */             \
    "vldrw.u32 q3, [r0, #16]\n"   /* window[1] */             \
    "1:\n\t"                      /* a channel */             \
    "ldrd r1, r11, [sp, #56]\n\t" /* columns, records */      \
    "vldrw.u32 q4, [r11], #64\n\t"

#define PT_BEGIN_CHANNEL                                        \
    "ldm r11!, {r3, r5, r7}\n\t"  /* bias, multiplier, shift */ \
    "add r0, r1, #4\n\t"                                        \
    "strd r0, r11, [sp, #56]\n\t" /* columns, records */        \
    "ldr r9, [sp, #32]\n\t"       /* out */                     \
    "ldr r11, [sp, #48]\n"        /* times */                   \
    "2:\n\t"

#define PT_END_CHANNEL                                         \
    "bne 2b\n\t"                                               \
    "sub r4, r9, r0\n\t"                                       \
    "cmp r4, r2\n\t"                                           \
    "beq 3f\n\t"                 /* the last time was there */ \
    "ldrd r4, r6, [sp, #40]\n\t" /* window_back, out_back */   \
    "add r1, r1, r4\n\t"                                       \
    "add r9, r9, r6\n\t"                                       \
    "movs r11, #1\n\t"                                         \
    "b 2b\n"                                                   \
    "3:\n\t"                                                   \
    "adds r0, #1\n\t"                                          \
    "str r0, [sp, #32]\n\t"                                    \
    "ldr r2, [sp, #52]\n\t"      /* channels */                \
    "subs r2, #1\n\t"                                          \
    "str r2, [sp, #52]\n\t"                                    \
    "bne 1b\n\t"                                               \
    "add sp, sp, #64\n\t"

// clang-format on

#define PT_WINDOWS_CLOBBER                                                                       \
    "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", "q0", "q1", \
        "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory"

// Stride 1: windows two columns apart, with the weights at four offsets.
static NOINLINE void mve_depthwise_run_windows(const windows *w) {
    register const windows *r0 __asm__("r0") = w;
    // clang-format off
    __asm__ volatile(
        PT_BEGIN_WINDOWS
        "vldrw.u32 q5, [r11, #-48]\n\t"
        "vldrw.u32 q6, [r11, #-32]\n\t"
        "vldrw.u32 q7, [r11, #-16]\n\t"
        PT_BEGIN_CHANNEL
        "vldrw.u32 q0, [r1, q2]\n\t"
        "vmladav.s8 r2, q0, q5\n\t"
        "vmladav.s8 r0, q0, q4\n\t"
        "vldrw.u32 q1, [r1, q3]\n\t"
        "vmladav.s8 r4, q0, q6\n\t"
        "vmladav.s8 r6, q0, q7\n\t"
        "vmov q0[2], q0[0], r0, r4\n\t"
        "vmladav.s8 lr, q1, q7\n\t"
        "vmov q0[3], q0[1], r2, r6\n\t"
        "vmladav.s8 r12, q1, q6\n\t"
        "vadd.i32 q0, q0, r3\n\t"         // bias
        "vmladav.s8 r8, q1, q4\n\t"
        "ldm sp, {r0, r2, r4, r6}\n\t"    // one to out_step
        "vmladav.s8 r10, q1, q5\n\t"
        PT_FINISH_WINDOWS(q0)
        PT_END_CHANNEL
        : "+r"(r0)
        :
        : PT_WINDOWS_CLOBBER);
    // clang-format on
}

// Stride 2: windows two columns apart, each for one output.
static NOINLINE void run_windows_apart(const windows *w) {
    register const windows *r0 __asm__("r0") = w;
    register int32_t second __asm__("r10") = w->second;
    // clang-format off
    __asm__ volatile(
        "sub sp, sp, #16\n\t"
        "str r10, [sp]\n\t"            // second
        "vldrw.u32 q5, [r0, #96]\n\t"  // window[2]
        "vldrw.u32 q6, [r0, #112]\n\t" // window[3]
        PT_BEGIN_WINDOWS
        PT_BEGIN_CHANNEL
        "vldrw.u32 q0, [r1, q2]\n\t"
        "vldrw.u32 q1, [r1, q3]\n\t"
        "vmladav.s8 r0, q0, q4\n\t"
        "vldrw.u32 q0, [r1, q5]\n\t"
        "vmladav.s8 r2, q1, q4\n\t"
        "vldrw.u32 q1, [r1, q6]\n\t"
        "ldr r8, [sp, #64]\n\t"        // second
        "vmladav.s8 r4, q0, q4\n\t"
        "add r1, r1, r8\n\t"
        "vldrw.u32 q0, [r1, q2]\n\t"
        "vmladav.s8 r6, q1, q4\n\t"
        "vldrw.u32 q1, [r1, q3]\n\t"
        "vmladav.s8 r8, q0, q4\n\t"
        "vmov q7[2], q7[0], r0, r4\n\t"
        "vldrw.u32 q0, [r1, q5]\n\t"
        "vmladav.s8 r10, q1, q4\n\t"
        "vmov q7[3], q7[1], r2, r6\n\t"
        "vldrw.u32 q1, [r1, q6]\n\t"
        "vmladav.s8 r12, q0, q4\n\t"
        "vadd.i32 q7, q7, r3\n\t"      // bias
        "ldm sp, {r0, r2, r4, r6}\n\t" // one to out_step
        "vmladav.s8 lr, q1, q4\n\t"
        PT_FINISH_WINDOWS(q7)
        PT_END_CHANNEL
        "add sp, sp, #16"
        : "+r"(r0), "+r"(second)
        :
        : "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r11", "r12", "lr", "q0", "q1",
          "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory");
    // clang-format on
}

// Four lines, and the bytes from 16 bytes to the next 16: 0 for a line of padding.
typedef struct lines {
    const int8_t *from[4];
    int32_t step[4];
} lines;

PT_OFFSET(lines, from, 0);
PT_OFFSET(lines, step, 16);
PT_SIZE(lines, 32);

// Interleaves `times` times 16 bytes of four lines.
static void interleave(int32_t times, const lines *l, int8_t *to) {
    if (times > 0) {
        // clang-format off
        __asm__ volatile(
            "ldm %[lines], {r1, r2, r3, r4, r5, r6, r8, r9}\n\t"
            "dls lr, %[times]\n"
            "1:\n\t"
            "vldrb.u8 q0, [r1]\n\t"
            "add r1, r1, r5\n\t"
            "vldrb.u8 q1, [r2]\n\t"
            "add r2, r2, r6\n\t"
            "vldrb.u8 q2, [r3]\n\t"
            "add r3, r3, r8\n\t"
            "vldrb.u8 q3, [r4]\n\t"
            "add r4, r4, r9\n\t"
            "vst40.8 {q0, q1, q2, q3}, [%[to]]\n\t"
            "vst41.8 {q0, q1, q2, q3}, [%[to]]\n\t"
            "vst42.8 {q0, q1, q2, q3}, [%[to]]\n\t"
            "vst43.8 {q0, q1, q2, q3}, [%[to]]!\n\t"
            "le lr, 1b"
            : [to] "+r"(to)
            : [times] "r"(times), [lines] "r"(l)
            : "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "lr", "q0", "q1", "q2",
              "q3", "memory");
        // clang-format on
    }
}

// ---- weights

static int8x16_t load_weights(const depthwise *x, int32_t first, int32_t n, int32_t i, int32_t j) {
    const int8_t *weights = x->layer->weights + first;
    return vldrbq_z_s8(weights + i * x->along.weight_step + j * x->across.weight_step,
                       vctp8q((uint32_t)n));
}

// Writes for n channels from `first` on the weights at their four positions in a window of four
// columns of four lines, bias with the input's offset times the weights, multiplier and shift.
static NOINLINE void make_records(const depthwise *x, int32_t first, int32_t n) {
    static const uint32_t offsets[4][4] = {
        {0, 64, 128, 192}, {192, 0, 64, 128}, {256, 320, 384, 192}, {192, 256, 320, 384}};
    const pt_channels *output = &x->layer->output;
    int8_t *stage = x->columns, *record = x->records;
    int8x16_t zero = vdupq_n_s8(0);
    for (int32_t i = 0; i < 3; i++) {
        int8x16_t w0 = load_weights(x, first, n, i, 0), w1 = load_weights(x, first, n, i, 1);
        int8x16_t w2 = load_weights(x, first, n, i, 2);
        int8x16x4_t above = {{w0, w1, w2, zero}}, below = {{zero, w0, w1, w2}};
        vst4q_s8(stage + 64 * i, above);
        vst4q_s8(stage + 256 + 64 * i, below);
        vst1q_s8(stage + 192 + 16 * i, zero);
    }
    vst1q_s8(stage + 240, zero);
    const uint32x4_t p0 = vld1q_u32(offsets[0]), p1 = vld1q_u32(offsets[1]);
    const uint32x4_t p2 = vld1q_u32(offsets[2]), p3 = vld1q_u32(offsets[3]);
    const int32_t *bias = output->bias ? output->bias + first : NULL;
    const int32_t *multipliers = output->multipliers + first, *shifts = output->shifts + first;
    int32_t offset = x->layer->offset;
    for (const int8_t *end = stage + 4 * n; stage != end; stage += 4, record += RECORD) {
        uint32_t *to = (uint32_t *)(void *)record;
        const uint32_t *from = (const uint32_t *)(const void *)stage;
        uint32x4_t weights = vldrwq_gather_offset_u32(from, p0);
        uint32_t sum = (uint32_t)vaddvq_s8(vreinterpretq_s8_u32(weights));
        vst1q_u32(to, weights);
        vst1q_u32(to + 4, vldrwq_gather_offset_u32(from, p1));
        vst1q_u32(to + 8, vldrwq_gather_offset_u32(from, p2));
        vst1q_u32(to + 12, vldrwq_gather_offset_u32(from, p3));
        to[16] = sum * (uint32_t)offset + (uint32_t)(bias ? *bias++ : 0);
        to[17] = (uint32_t)*multipliers++;
        to[18] = (uint32_t)*shifts++;
    }
}

// ---- lines

static int8_t *pad_columns(const depthwise *x, int8_t *to, int32_t n) {
    int8x16_t padding = vdupq_n_s8((int8_t)-x->layer->offset);
    int32_t bytes = n * x->column;
    for (int32_t i = 0; i < bytes; i += 16) {
        vst1q_s8(to + i, padding);
    }
    return to + bytes;
}

// Packs columns from `column` on of the four lines from `line` on, for n channels from `in` on.
static NOINLINE void pack_lines(const depthwise *x, const int8_t *in, int32_t line, int32_t column,
                                int32_t columns, int32_t n) {
    int8x16_t padding = vdupq_n_s8((int8_t)-x->layer->offset);
    int8_t around[16];
    vst1q_s8(around, padding);
    int32_t left = column < 0 ? -column : 0, size = n < PT_LANES ? n : PT_LANES;
    left = left < columns ? left : columns;
    int32_t inside = x->along.in - column - left;
    inside = inside < 0 ? 0 : inside < columns - left ? inside : columns - left;
    lines l;
    in += (column + left) * x->along.in_step;
    for (int32_t i = 0; i < 4; i++, line++) {
        bool is_inside = line >= 0 && line < x->across.in;
        l.from[i] = is_inside ? in + line * x->across.in_step : around;
        l.step[i] = !is_inside ? 0 : n < PT_LANES ? PT_LANES : x->along.in_step;
    }
    int8_t *to = pad_columns(x, x->columns, left);
    int32_t times = n < PT_LANES ? inside * size / PT_LANES : inside;
    interleave(times, &l, to);
    int32_t rest = n < PT_LANES ? inside * size % PT_LANES : 0;
    if (rest) {
        mve_pred16_t p = vctp8q((uint32_t)rest);
        int8x16x4_t last;
        for (int32_t i = 0; i < 4; i++) {
            last.val[i] = vldrbq_z_s8(l.from[i] + times * l.step[i], p);
        }
        vst4q_s8(to + times * 64, last);
    }
    pad_columns(x, to + inside * x->column, columns - left - inside);
}

// ---- walks

// Computes the offsets of the windows of a segment of `n` outputs, and of their outputs.
static NOINLINE void place_windows(const depthwise *x, int32_t n, windows *w) {
    int32_t each = x->stride == 1 ? 4 : 8, step = x->along.out_step, times = n / each;
    int32_t last = n < each ? n - each / 2 : each / 2; // the second half of few outputs
    last = last < 0 ? 0 : last;
    for (int32_t i = 0; i < 4; i++) {
        int32_t first_column = x->stride == 1 ? i / 2 * last : 2 * (i < n ? i : n - 1);
        for (int32_t j = 0; j < 4; j++) {
            w->window[i][j] = (uint32_t)((first_column + j) * x->column);
        }
        int32_t out =
            x->stride == 1 ? i % 2 * step + i / 2 * x->across.out_step : (i < n ? i : n - 1) * step;
        w->outputs[2 * i] = (uint16_t)out;
        w->outputs[2 * i + 1] = (uint16_t)(out + last * step);
    }
    if (x->stride == 1) {
        memcpy(w->window[1], w->window[2], sizeof w->window[1]);
    }
    w->second = last * 2 * x->column;
    w->times = times > 0 ? times : 1;
    w->out_step = each * step;
    w->out_end = (times > 0 ? n : each) * step;
    w->out_back = (n % each - each) * step;
    w->window_step = each * x->stride * x->column - (x->stride == 1 ? 0 : w->second);
    w->window_back = (n % each - each) * x->stride * x->column;
}

// Computes n outputs from `begin` on, of channels from `first` on.
static NOINLINE void run_segment(const depthwise *x, const int8_t *in, int8_t *out, int32_t begin,
                                 int32_t n, int32_t first, int32_t channels) {
    const pt_gemm_s8 *layer = x->layer;
    int32_t lines = x->stride == 1 ? 2 : 1, end = x->across.out;
    windows w = {.one = 1, .offset = layer->output.range.offset};
    place_windows(x, n, &w);
    for (int32_t i = 0; i < end; i += lines) {
        int32_t line = i + lines <= end ? i : end - lines;
        pack_lines(x, in + first, line * x->stride - x->across.padding,
                   begin * x->stride - x->along.padding, (n - 1) * x->stride + 3, channels);
        w.out = out + first + line * x->across.out_step + begin * x->along.out_step;
        w.channels = channels;
        w.columns = x->columns;
        w.records = x->records;
        if (x->stride == 1) {
            mve_depthwise_run_windows(&w);
        } else {
            run_windows_apart(&w);
        }
    }
}

// ---- channels in lanes

// Parameters of 16 channels. Lanes contain the even channels of 8, then the odd ones.
typedef struct lanes {
    int32_t one, offset;
    int32_t multipliers[PT_LANES], shifts[PT_LANES];
    int8_t weights[9][PT_LANES];
    int32_t bias[SPANS][SPANS][PT_LANES]; // by span of rows and of columns
} lanes;

PT_OFFSET(lanes, one, 0);
PT_OFFSET(lanes, offset, 4);
PT_OFFSET(lanes, multipliers, 8);
PT_OFFSET(lanes, shifts, 72);

// Spans of taps inside the image along a dim; each output of that dim has one of a few spans.
typedef struct spans {
    int32_t n, first[SPANS], end[SPANS];
} spans;

typedef struct image {
    const pt_geometry *g;
    const pt_gemm_s8 *layer;
    const int8_t *in;
    spans along[2];
    lanes *record;
    pt_lanes_pixel *pixels;
} image;

// Returns the position of the first tap inside the image of output i along dim d. Sets *index to
// its span, existing or new.
static int32_t find_span(const pt_geometry *g, uint32_t d, int32_t i, spans *s, int32_t *index) {
    int32_t start = i * g->stride[d] - g->padding[d], rest = g->in[d] - start, at = 0;
    int32_t first = start < 0 ? -start : 0, end = rest < 3 ? rest : 3;
    while (at < s->n && (s->first[at] != first || s->end[at] != end)) {
        at++;
    }
    if (at == s->n && at < SPANS) {
        s->first[at] = first;
        s->end[at] = end;
    }
    *index = at;
    return start + first;
}

// Finds the spans of a dim. Returns false for an output without taps, or too many spans.
static bool find_spans(const pt_geometry *g, uint32_t d, spans *s) {
    s->n = 0;
    for (int32_t i = 0; i < g->out[d]; i++) {
        int32_t at;
        find_span(g, d, i, s, &at);
        if (at == SPANS || s->first[at] >= s->end[at]) {
            return false;
        }
        s->n += at == s->n;
    }
    return true;
}

// Each field of a pixel is the sum of a part of its row and a part of its column.
static void mve_depthwise_add_row(image *x, int32_t i, int32_t to[4]) {
    spans *s = &x->along[0];
    int32_t at, y = find_span(x->g, 0, i, s, &at), first = s->first[at];
    to[0] = (int32_t)(x->in + y * x->g->in[1] * x->g->pixel);
    to[1] = (int32_t)x->record->weights[3 * first];
    to[2] = (int32_t)x->record->bias[at];
    to[3] = 4 * (s->end[at] - first);
}

static void add_column(image *x, int32_t j, int32_t to[4]) {
    spans *s = &x->along[1];
    int32_t at, column = find_span(x->g, 1, j, s, &at), first = s->first[at];
    to[0] = column * x->g->pixel;
    to[1] = first * PT_LANES;
    to[2] = at * (int32_t)sizeof(x->record->bias[0][0]);
    to[3] = s->end[at] - first;
}

// Lists the pixels of n rows, from row `begin` on: each row from the row before it, the first from
// the columns.
static NOINLINE void list_pixels(image *x, int32_t begin, int32_t n) {
    int32_t columns = x->g->out[1], part[4];
    int32_t *to = (int32_t *)(void *)x->pixels, *from = to;
    for (int32_t j = 0; j < columns; j++) {
        add_column(x, j, to + 4 * j);
    }
    int32x4_t last = vdupq_n_s32(0);
    for (int32_t i = begin; i < begin + n; i++) {
        mve_depthwise_add_row(x, i, part);
        int32x4_t step = vsubq_s32(vld1q_s32(part), last);
        last = vld1q_s32(part);
        for (int32_t j = 0; j < columns; j++, from += 4, to += 4) {
            vst1q_s32(to, vaddq_s32(vld1q_s32(from), step));
        }
        from = to - 4 * columns;
    }
}

static inline void copy_apart(int32_t *to, const int32_t *from) {
    for (int32_t i = 0; i < PT_LANES; i += 8) {
        int32x4x2_t values = vld2q_s32(from + i);
        vst1q_s32(to + i, values.val[0]);
        vst1q_s32(to + i + 4, values.val[1]);
    }
}

// Sums the weights of eight channels in some rows, up to each column.
static inline void sum_columns(const int8_t *row, const int8_t *end, int16x8_t before[4]) {
    int16x8_t s0 = vldrbq_s16(row), s1 = vldrbq_s16(row + PT_LANES),
              s2 = vldrbq_s16(row + 2 * PT_LANES);
    for (row += 3 * PT_LANES; row != end; row += 3 * PT_LANES) {
        s0 = vaddq_s16(s0, vldrbq_s16(row));
        s1 = vaddq_s16(s1, vldrbq_s16(row + PT_LANES));
        s2 = vaddq_s16(s2, vldrbq_s16(row + 2 * PT_LANES));
    }
    before[0] = vdupq_n_s16(0);
    before[1] = s0;
    before[2] = s1 = vaddq_s16(s0, s1);
    before[3] = vaddq_s16(s1, s2);
}

static inline void mve_depthwise_add_products(int32_t *to, int32x4x2_t bias, int16x8_t sum,
                                              int16x8_t offset) {
    vst1q_s32(to, vaddq_s32(bias.val[0], vmullbq_int_s16(sum, offset)));
    vst1q_s32(to + 4, vaddq_s32(bias.val[1], vmulltq_int_s16(sum, offset)));
}

// Adds the input's offset times the sums of the weights to the biases.
static NOINLINE void make_biases(const image *x, const int32_t *bias) {
    const spans *down = &x->along[0], *across = &x->along[1];
    lanes *record = x->record;
    int16x8_t low[4], high[4], offset = vdupq_n_s16((int16_t)x->layer->offset);
    int32x4x2_t first = {{vdupq_n_s32(0), vdupq_n_s32(0)}}, second = first;
    if (bias) {
        first = vld2q_s32(bias);
        second = vld2q_s32(bias + 8);
    }
    for (int32_t i = 0, n = down->n; i < n; i++) {
        const int8_t *row = record->weights[3 * down->first[i]];
        const int8_t *end = record->weights[3 * down->end[i]];
        sum_columns(row, end, low);
        sum_columns(row + 8, end + 8, high);
        int32_t *to = record->bias[i][0];
        for (int32_t j = 0, m = across->n; j < m; j++, to += PT_LANES) {
            int32_t k = across->first[j], l = across->end[j];
            mve_depthwise_add_products(to, first, vsubq_s16(low[l], low[k]), offset);
            mve_depthwise_add_products(to + 8, second, vsubq_s16(high[l], high[k]), offset);
        }
    }
}

static NOINLINE void make_lanes(const image *x, int32_t first) {
    const pt_gemm_s8 *layer = x->layer;
    const pt_channels *output = &layer->output;
    const int8_t *weights = layer->weights + first;
    const int32_t *bias = output->bias ? output->bias + first : NULL;
    const int32_t step = layer->channels;
    lanes *record = x->record;
    for (int8_t *to = record->weights[0]; to != record->weights[9];
         to += PT_LANES, weights += step) {
        vst1q_s8(to, vld1q_s8(weights));
    }
    copy_apart(record->multipliers, output->multipliers + first);
    copy_apart(record->shifts, output->shifts + first);
    make_biases(x, bias);
}

// clang-format off

#define PT_WITHOUT_OFFSET(q)
#define PT_WITH_OFFSET(q) "vadd.i16 " q ", " q ", r8\n\t"

// Multiplies a tap of 16 channels, at `x` and at `weights` from r3 on. The last two products of a
// tap are added during the next tap.
#define PT_LANES_TAP(x, weights) PT_OFFSET_TAP(x, weights, PT_WITHOUT_OFFSET)
#define PT_OFFSET_TAP(x, weights, offset)               \
    "vldrb.s16 q4, [" x "]\n\t"                         \
    "vadd.i32 q2, q2, q6\n\t"                           \
    offset("q4")                                        \
    "vldrb.s16 q7, [r3, #" weights "]\n\t"              \
    "vadd.i32 q3, q3, q5\n\t"                           \
    "vmullb.s16 q6, q4, q7\n\t"                         \
    "vldrb.s16 q5, [r3, #" weights " + 8]\n\t"          \
    "vmullt.s16 q4, q4, q7\n\t"                         \
    "vldrb.s16 q7, [" x ", #8]\n\t"                     \
    "vadd.i32 q0, q0, q6\n\t"                           \
    offset("q7")                                        \
    "vmullb.s16 q6, q7, q5\n\t"                         \
    "vadd.i32 q1, q1, q4\n\t"                           \
    "vmullt.s16 q5, q7, q5\n\t"                         \
    "add " x ", " x ", r9\n\t"

// Loops over the taps of a window, r2 rows and r5 columns; r9 and r4 are the steps from column to
// column.
#define PT_ALL_TAPS(tap)                                \
    "cbz r2, 15f\n\t"                                   \
    "11:\n\t"                                           \
    "dls lr, r5\n"                                      \
    "12:\n\t"                                           \
    tap                                                 \
    "add r3, r3, r4\n\t"                                \
    "le lr, 12b\n\t"                                    \
    "ldrd r6, lr, [r12, #144]\n\t" /* row, weight_row */\
    "add r1, r1, r6\n\t"                                \
    "subs r2, #1\n\t"                                   \
    "add r3, r3, lr\n\t"                                \
    "bne 11b\n\t"                                       \
    "15:\n\t"

// Multiplies a tap of up to eight channels.
#define PT_EIGHT_TAP                                    \
    "vpstt\n\t"                                         \
    "vldrbt.s16 q4, [r1, q7]\n\t"                       \
    "vldrbt.s16 q5, [r3]\n\t"                           \
    PT_WITH_OFFSET("q4")                                \
    "add r1, r1, r9\n\t"                                \
    "vmullb.s16 q6, q4, q5\n\t"                         \
    "vmullt.s16 q4, q4, q5\n\t"                         \
    "vadd.i32 q0, q0, q6\n\t"                           \
    "vadd.i32 q1, q1, q4\n\t"

// clang-format on

void pt_run_lanes(const pt_lanes_run *x) {
    register const pt_lanes_run *r0 __asm__("r0") = x;
    // clang-format off
    __asm__ volatile(
        "ldm r0, {r0, r6-r12}\n"
        "1:\n\t"
        "ldm r0!, {r1, r3, r4, r5}\n\t"  // a pixel: in, weights, bias, shape
        "add r1, r1, r6\n\t"
        "vldrw.u32 q0, [r4]\n\t"
        "lsrs r2, r5, #2\n\t"
        "vldrw.u32 q1, [r4, #16]\n\t"
        "and r5, r5, #3\n\t"
        "vldrw.u32 q2, [r4, #32]\n\t"
        "vmov.i32 q5, #0\n\t"
        "vldrw.u32 q3, [r4, #48]\n\t"
        "dls lr, r2\n\t"
        "vmov.i32 q6, #0\n\t"
        "add r2, r1, r8\n\t"
        "add r4, r2, r8\n\t"
        "cmp r5, #2\n\t"
        "beq 4f\n\t"
        "blt 5f\n"
        "2:\n\t"                         // a row of three taps
        PT_LANES_TAP("r1", "0")
        PT_LANES_TAP("r2", "16")
        PT_LANES_TAP("r4", "32")
        "adds r3, #48\n\t"
        "le lr, 2b\n"
        "3:\n\t"
        "ldrd r1, r2, [r12]\n\t"           // one, offset
        "vldrw.u32 q4, [r12, #8]\n\t"      // multipliers
        "vqrdmulh.s32 q0, q0, q4\n\t"
        "vldrw.u32 q4, [r12, #40]\n\t"
        "vadd.i32 q2, q2, q6\n\t"
        "vldrw.u32 q6, [r12, #56]\n\t"
        "vqdmlah.s32 q0, q0, r1\n\t"       // halves away from zero
        "vldrw.u32 q7, [r12, #24]\n\t"
        "vqrdmulh.s32 q2, q2, q4\n\t"
        "vadd.i32 q3, q3, q5\n\t"
        "vqdmlah.s32 q2, q2, r1\n\t"
        "vldrw.u32 q4, [r12, #104]\n\t"    // shifts
        "vrshl.s32 q2, q2, q4\n\t"
        "vldrw.u32 q5, [r12, #72]\n\t"
        "vqrdmulh.s32 q3, q3, q6\n\t"
        "vqmovnb.s32 q2, q2\n\t"
        "vqrdmulh.s32 q1, q1, q7\n\t"
        "vldrw.u32 q7, [r12, #88]\n\t"
        "vrshl.s32 q0, q0, q5\n\t"
        "vqdmlah.s32 q1, q1, r1\n\t"
        "vqmovnb.s32 q0, q0\n\t"
        "vqdmlah.s32 q3, q3, r1\n\t"
        "vrshl.s32 q1, q1, q7\n\t"
        "vqmovnt.s32 q0, q1\n\t"
        "vldrw.u32 q5, [r12, #120]\n\t"
        "vrshl.s32 q3, q3, q5\n\t"
        "vqadd.s16 q0, q0, r2\n\t"
        "vqmovnt.s32 q2, q3\n\t"
        "vqmovnb.s16 q0, q0\n\t"
        "cmp r0, r11\n\t"
        "vqadd.s16 q2, q2, r2\n\t"
        "vstrb.16 q0, [r7]\n\t"
        "vqmovnb.s16 q2, q2\n\t"
        "vstrb.16 q2, [r7, #8]\n\t"
        "add r7, r7, r10\n\t"
        "bne 1b\n\t"
        "b 6f\n"
        "4:\n\t"                         // two taps
        PT_LANES_TAP("r1", "0")
        PT_LANES_TAP("r2", "16")
        "adds r3, #48\n\t"
        "le lr, 4b\n\t"
        "b 3b\n"
        "5:\n\t"                         // one
        "cbz r5, 7f\n\t"
        PT_LANES_TAP("r1", "0")
        "adds r3, #48\n\t"
        "le lr, 5b\n\t"
        "b 3b\n"
        "7:\n\t"                         // any
        "mov r2, lr\n\t"
        "ldrd r4, r5, [r12, #136]\n\t"   // weight_step, columns
        "ldr r6, [r12, #152]\n\t"        // kind
        "cmp r6, #16\n\t"
        "blt 9f\n\t"
        "beq 10f\n"
        PT_ALL_TAPS(PT_LANES_TAP("r1", "0"))
        "b 8f\n"
        "10:\n"
        PT_ALL_TAPS(PT_OFFSET_TAP("r1", "0", PT_WITH_OFFSET))
        "b 8f\n"
        "9:\n\t"
        "vldrh.u16 q7, [r12, #160]\n\t"  // inputs
        "vctp.16 r6\n"
        PT_ALL_TAPS(PT_EIGHT_TAP)
        "ldr r4, [r12, #156]\n\t"        // keeps_sums
        "cbnz r4, 13f\n\t"
        "ldrd r1, r2, [r12]\n\t"         // one, offset
        "vldrw.u32 q4, [r12, #8]\n\t"    // multipliers
        "vqrdmulh.s32 q0, q0, q4\n\t"
        "vldrw.u32 q5, [r12, #24]\n\t"
        "vqdmlah.s32 q0, q0, r1\n\t"     // halves away from zero
        "vldrw.u32 q4, [r12, #72]\n\t"   // shifts
        "vqrdmulh.s32 q1, q1, q5\n\t"
        "vldrw.u32 q6, [r12, #88]\n\t"
        "vrshl.s32 q0, q0, q4\n\t"
        "vqdmlah.s32 q1, q1, r1\n\t"
        "vqmovnb.s32 q0, q0\n\t"
        "vrshl.s32 q1, q1, q6\n\t"
        "vqmovnt.s32 q0, q1\n\t"
        "vqadd.s16 q0, q0, r2\n\t"
        "vqmovnb.s16 q0, q0\n\t"
        "vpst\n\t"
        "vstrbt.16 q0, [r7]\n\t"
        "b 14f\n"
        "8:\n\t"
        "ldr r2, [r12, #156]\n\t"        // keeps_sums
        "movs r6, #0\n\t"              // skip
        "cmp r2, #0\n\t"
        "beq 3b\n\t"
        "vadd.i32 q2, q2, q6\n\t"
        "vadd.i32 q3, q3, q5\n"
        "13:\n\t"
        "vstrw.32 q0, [r7]\n\t"
        "vstrw.32 q1, [r7, #16]\n\t"
        "vstrw.32 q2, [r7, #32]\n\t"
        "vstrw.32 q3, [r7, #48]\n"
        "14:\n\t"
        "movs r6, #0\n\t"              // skip
        "add r7, r7, r10\n\t"
        "cmp r0, r11\n\t"
        "bne 1b\n"
        "6:"
        : "+r"(r0)
        :
        : "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", "q0",
          "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory");
    // clang-format on
}

// True if channels in lanes take fewer cycles than windows.
static bool is_small(const pt_geometry *g) {
    int32_t max = (g->stride[0] | g->stride[1]) == 1 ? 64 : 256; // pixels of the output
    return g->out[1] <= max && g->out[0] * g->out[1] <= max;
}

static NOINLINE bool convolve_lanes(const pt_geometry *g, const pt_gemm_s8 *layer, const int8_t *in,
                                    int8_t *out, void *block, uint32_t scratch_bytes) {
    image x = {.g = g, .layer = layer, .in = in, .record = block};
    int32_t channels = layer->channels, columns = g->out[1];
    int32_t max = ((int32_t)scratch_bytes - (int32_t)sizeof(lanes)) /
                  (columns * (int32_t)sizeof(pt_lanes_pixel));
    if (channels < PT_LANES || !is_small(g) || max < 1 || !find_spans(g, 0, &x.along[0]) ||
        !find_spans(g, 1, &x.along[1])) {
        return false;
    }
    x.pixels = (pt_lanes_pixel *)(void *)(x.record + 1);
    x.record->one = 1;
    x.record->offset = layer->output.range.offset;
    for (int32_t i = 0; i < g->out[0]; i += max) {
        int32_t rows = g->out[0] - i < max ? g->out[0] - i : max;
        list_pixels(&x, i, rows);
        for (int32_t first = 0; first < channels; first += PT_LANES) {
            int32_t begin = first + PT_LANES <= channels ? first : channels - PT_LANES;
            make_lanes(&x, begin);
            const pt_lanes_run all = {.pixels = x.pixels,
                                      .skip = begin,
                                      .out = out + i * columns * layer->out_stride + begin,
                                      .column = g->pixel,
                                      .row = g->in[1] * g->pixel,
                                      .out_stride = layer->out_stride,
                                      .end = x.pixels + rows * columns,
                                      .record = x.record};
            pt_run_lanes(&all);
        }
    }
    return true;
}

// ---- 3 x 3 windows, or not

static int32_t count_times(const pt_geometry *g, uint32_t along) {
    int32_t n = g->out[along], m = g->out[!along];
    return g->stride[0] == 1 ? (n + 3) / 4 * ((m + 1) / 2) : (n + 7) / 8 * m;
}

static walk make_walk(const pt_geometry *g, const pt_gemm_s8 *layer, uint32_t dim) {
    int32_t pixels = dim == 0 ? g->in[1] : 1, outputs = dim == 0 ? g->out[1] : 1;
    return (walk){.in = g->in[dim],
                  .out = g->out[dim],
                  .padding = g->padding[dim],
                  .in_step = pixels * g->pixel,
                  .out_step = outputs * layer->out_stride,
                  .weight_step = (dim == 0 ? 3 : 1) * layer->channels};
}

static bool is_3x3(const pt_geometry *g, const pt_gemm_s8 *layer) {
    return g->kernel[0] == 3 && g->kernel[1] == 3 && (g->dilation[0] | g->dilation[1]) == 1 &&
           g->channels == 1 && pt_have_fast_scales(&layer->output, layer->channels);
}

static bool mve_depthwise_has_windows(const pt_geometry *g) {
    int32_t stride = g->stride[0];
    return stride <= 2 && g->stride[1] == stride && g->out[0] >= 3 - stride &&
           g->out[1] >= 3 - stride;
}

static NOINLINE bool mve_depthwise_convolve_windows(const pt_geometry *g, const pt_gemm_s8 *layer,
                                                    const int8_t *in, int8_t *out, void *block,
                                                    uint32_t scratch_bytes) {
    int32_t channels = layer->channels;
    if (!mve_depthwise_has_windows(g)) {
        return false;
    }
    uint32_t along = channels < PT_LANES || count_times(g, 1) <= count_times(g, 0);
    int32_t n = channels < PT_LANES ? channels : PT_LANES;
    depthwise x = {.layer = layer,
                   .along = make_walk(g, layer, along),
                   .across = make_walk(g, layer, !along),
                   .stride = g->stride[0],
                   .column = 4 * n,
                   .records = block,
                   .columns = (int8_t *)block + n * RECORD};
    int32_t size =
        (int32_t)scratch_bytes - n * RECORD - 64; // 64: the loops write beyond the last column
    int32_t max = (size / x.column - 3) / x.stride + 1;
    if (size < STAGE || max < OUTPUTS ||
        x.across.out_step + OUTPUTS * x.along.out_step > MAX_OFFSET) {
        return false;
    }
    for (int32_t first = 0; first < channels; first += n) {
        int32_t begin = first + n <= channels ? first : channels - n;
        make_records(&x, begin, n);
        for (int32_t i = 0; i < x.along.out; i += max) {
            int32_t rest = x.along.out - i;
            if (rest >= max) {
                run_segment(&x, in, out, i, max, begin, n);
            } else {
                int32_t last = rest < OUTPUTS && i > 0 ? OUTPUTS : rest;
                run_segment(&x, in, out, x.along.out - last, last, begin, n);
            }
        }
    }
    return true;
}

// True if the outputs of an input channel take fewer instructions as a convolution of their own.
static bool pays_by_input(const pt_geometry *g) {
    return g->channels >= (g->pixel == 1 ? 4 : 32);
}

static bool convolve_3x3(const pt_geometry *g, const pt_gemm_s8 *layer, const int8_t *in,
                         int8_t *out, void *block, uint32_t scratch_bytes, bool pads) {
    if (!is_3x3(g, layer) || ((uint32_t)block & 3)) {
        return false;
    }
    bool done = convolve_lanes(g, layer, in, out, block, scratch_bytes) ||
                (pads && mve_depthwise_convolve_windows(g, layer, in, out, block, scratch_bytes));
    if (done) {
        pt_limit_pixels(&layer->output.range, out, g->out[0] * g->out[1], layer->out_stride,
                        layer->channels);
    }
    return done;
}

void pt_convolve_depthwise(pt_geometry *g, pt_gemm_s8 *layer, const int8_t *in, int8_t *out,
                           void *block, uint32_t scratch_bytes) {
    bool pads = -layer->offset == (int8_t)-layer->offset, done = false;
    if (g->channels == 1) {
        done = convolve_3x3(g, layer, in, out, block, scratch_bytes, pads);
    } else if (pads && pays_by_input(g)) {
        done = pt_convolve_multiplied(g, layer, in, out, block, scratch_bytes);
    }
    if (!done) {
        pt_convolve_any_depthwise(g, layer, in, out);
    }
}

#endif
