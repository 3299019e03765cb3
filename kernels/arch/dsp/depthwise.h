// Four outputs at a time, from pairs of values, with SMLAD and its kin.

#include "finish.h"

enum { PT_PLANE_OFFSET = 1 };

// Bias and weights are doubled, for pt_scale. Read by the loops below, in this order.
typedef struct pt_depthwise_channel {
    int32_t bias[4];       // four times the same
    int16_t weights[3][4]; // of a row: 0, 1, 1, 2
    int32_t multiplier, right, rounding;
} pt_depthwise_channel;

PT_OFFSET(pt_depthwise_channel, bias, 0);
PT_OFFSET(pt_depthwise_channel, weights, 16);
PT_OFFSET(pt_depthwise_channel, multiplier, 40);
PT_OFFSET(pt_depthwise_channel, right, 44);
PT_OFFSET(pt_depthwise_channel, rounding, 48);
PT_SIZE(pt_depthwise_channel, 52);

static inline void pt_set_bias(pt_depthwise_channel *channel, int32_t bias) {
    for (uint32_t i = 0; i < 4; i++) {
        channel->bias[i] = 2 * bias;
    }
}

static inline void pt_set_weights(pt_depthwise_channel *channel, int32_t row, int32_t w0,
                                  int32_t w1, int32_t w2) {
    int16_t *w = channel->weights[row];
    w[0] = (int16_t)(2 * w0);
    w[1] = w[2] = (int16_t)(2 * w1);
    w[3] = (int16_t)(2 * w2);
}

static inline void pt_set_scale(pt_depthwise_channel *channel, int32_t multiplier, int32_t right,
                                int32_t rounding) {
    channel->multiplier = multiplier;
    channel->right = right;
    channel->rounding = rounding;
}

typedef uint32_t __attribute__((may_alias)) pt_plane_word;

#define PT_EXTEND(result, word, rotation) \
    __asm__("sxtab16 %0, %1, %2" rotation : "=r"(result) : "r"(offsets), "r"(word))
#define PT_JOIN(instruction, a, b, shift) \
    __asm__(instruction " %0, %1, %2, " shift " #16" : "=r"(word) : "r"(a), "r"(b))

static inline void pt_widen_pixel(const int8_t *in, uint32_t offsets, pt_plane *to, int32_t plane) {
    uint32_t word = *(const pt_plane_word *)(const void *)in, even, odd;
    PT_EXTEND(even, word, "");
    PT_EXTEND(odd, word, ", ror #8");
    to[0] = (int16_t)even;
    to[plane] = (int16_t)odd;
    to[2 * plane] = (int16_t)(even >> 16);
    to[3 * plane] = (int16_t)(odd >> 16);
}

// Two pixels at a time, from an even column on.
static __attribute__((noinline)) void pt_widen(const pt_pixels *pixels, const int8_t *in,
                                               pt_plane *to) {
    int32_t n = pixels->n, step = pixels->step, plane = pixels->plane;
    uint32_t offsets = ((uint32_t)pixels->offset & 0xFFFF) * 0x10001;
    if (n > 0 && ((uintptr_t)to & 2) != 0) {
        pt_widen_pixel(in, offsets, to, plane);
        in += step, to++, n--;
    }
    pt_plane *to2 = to + 2 * plane;
    for (; n > 1; n -= 2, in += 2 * step, to += 2, to2 += 2) {
        uint32_t first = *(const pt_plane_word *)(const void *)in, even, odd;
        uint32_t second = *(const pt_plane_word *)(const void *)(in + step), next_even, next_odd;
        uint32_t word;
        PT_EXTEND(even, first, "");
        PT_EXTEND(next_even, second, "");
        PT_EXTEND(odd, first, ", ror #8");
        PT_EXTEND(next_odd, second, ", ror #8");
        PT_JOIN("pkhbt", even, next_even, "lsl");
        *(pt_plane_word *)(void *)to = word;
        PT_JOIN("pkhbt", odd, next_odd, "lsl");
        *(pt_plane_word *)(void *)(to + plane) = word;
        PT_JOIN("pkhtb", next_even, even, "asr");
        *(pt_plane_word *)(void *)to2 = word;
        PT_JOIN("pkhtb", next_odd, odd, "asr");
        *(pt_plane_word *)(void *)(to2 + plane) = word;
    }
    if (n > 0) {
        pt_widen_pixel(in, offsets, to, plane);
    }
}

#undef PT_EXTEND
#undef PT_JOIN

// Adds the rows at stride 1, each with its x0x1, x2x3, x4x5; r8 has w0w1 and r9 w1w2.

#ifdef PT_LOADS_BESIDE

// `x01`, `w01` and `x23` load what the next row begins with.
#define PT_ROW_AT_STRIDE_1(row, x01, w01, x23)                                                 \
    "smlad r0, r4, r8, r0\n\t"                                                                 \
    "ldr r9, [%[channel]], #4\n\t"                                                             \
    "smlatb r1, r4, r8, r1\n\t"                                                                \
    "ldr r6, [%[" row "]]\n\t"                                                                 \
    "smlad r2, r5, r8, r2\n\t" x01 "smlatb r3, r5, r8, r3\n\t" w01 "smlabt r0, r5, r9, r0\n\t" \
    "smlad r1, r5, r9, r1\n\t" x23 "smlabt r2, r6, r9, r2\n\t"                                 \
    "smlad r3, r6, r9, r3\n\t"

#define PT_X01(row) "ldr r4, [%[" row "]], #4\n\t"
#define PT_W01 "ldr r8, [%[channel]], #4\n\t"
#define PT_X23(row) "ldr r5, [%[" row "]], #4\n\t"

#define PT_FOUR_AT_STRIDE_1                                            \
    PT_X01("row0")                                                     \
    PT_W01                                                             \
    PT_X23("row0")                                                     \
    PT_ROW_AT_STRIDE_1("row0", PT_X01("row1"), PT_W01, PT_X23("row1")) \
    PT_ROW_AT_STRIDE_1("row1", PT_X01("row2"), PT_W01, PT_X23("row2")) \
    PT_ROW_AT_STRIDE_1("row2", , , )

#else

#define PT_FOUR_AT_STRIDE_1    \
    PT_ROW_AT_STRIDE_1("row0") \
    PT_ROW_AT_STRIDE_1("row1") \
    PT_ROW_AT_STRIDE_1("row2")

#define PT_ROW_AT_STRIDE_1(row)         \
    "ldrd r8, r9, [%[channel]], #8\n\t" \
    "ldrd r4, r5, [%[" row "]], #8\n\t" \
    "ldr r6, [%[" row "]]\n\t"          \
    "smlad r0, r4, r8, r0\n\t"          \
    "smlabt r0, r5, r9, r0\n\t"         \
    "smlatb r1, r4, r8, r1\n\t"         \
    "smlad r1, r5, r9, r1\n\t"          \
    "smlad r2, r5, r8, r2\n\t"          \
    "smlabt r2, r6, r9, r2\n\t"         \
    "smlatb r3, r5, r8, r3\n\t"         \
    "smlad r3, r6, r9, r3\n\t"

#endif

#define PT_TWO_AT_STRIDE_1(row)         \
    "ldrd r8, r9, [%[channel]], #8\n\t" \
    "ldrd r4, r5, [%[" row "]], #8\n\t" \
    "smlad r0, r4, r8, r0\n\t"          \
    "smlabt r0, r5, r9, r0\n\t"         \
    "smlatb r1, r4, r8, r1\n\t"         \
    "smlad r1, r5, r9, r1\n\t"

// Adds the rows at stride 2, each with its x0x1 to x8x9.
#define PT_FOUR_AT_STRIDE_2    \
    PT_ROW_AT_STRIDE_2("row0") \
    PT_ROW_AT_STRIDE_2("row1") \
    PT_ROW_AT_STRIDE_2("row2")

#define PT_ROW_AT_STRIDE_2(row)         \
    "ldrd r8, r9, [%[channel]], #8\n\t" \
    "ldrd r4, r5, [%[" row "]], #8\n\t" \
    "smlad r0, r4, r8, r0\n\t"          \
    "smlabt r0, r5, r9, r0\n\t"         \
    "smlad r1, r5, r8, r1\n\t"          \
    "ldrd r4, r5, [%[" row "]], #8\n\t" \
    "smlabt r1, r4, r9, r1\n\t"         \
    "smlad r2, r4, r8, r2\n\t"          \
    "ldr r4, [%[" row "]]\n\t"          \
    "smlabt r2, r5, r9, r2\n\t"         \
    "smlad r3, r5, r8, r3\n\t"          \
    "smlabt r3, r4, r9, r3\n\t"

#define PT_TWO_AT_STRIDE_2(row)         \
    "ldrd r8, r9, [%[channel]], #8\n\t" \
    "ldrd r4, r5, [%[" row "]], #8\n\t" \
    "ldr r6, [%[" row "]]\n\t"          \
    "smlad r0, r4, r8, r0\n\t"          \
    "smlabt r0, r5, r9, r0\n\t"         \
    "smlad r1, r5, r8, r1\n\t"          \
    "smlabt r1, r6, r9, r1\n\t"

// clang-format off

// The address of `blocks` is kept on the stack: no register is free.
#define PT_DEFINE_MULTIPLY(name, FOUR, TWO)                                                     \
    static __attribute__((noinline)) void name(const pt_depthwise_channel *channel,             \
                                               const pt_plane *const *rows, int8_t *out,        \
                                               pt_blocks *blocks) {                             \
        const pt_plane *row0 = rows[0], *row1 = rows[1], *row2 = rows[2];                       \
        register pt_blocks *kept __asm__("r4") = blocks;                                        \
        __asm__ volatile(                                                                       \
            "push {r4}\n"                  /* blocks */                                         \
            "1:\n\t"                                                                            \
            "ldm %[channel]!, {r0-r3}\n\t" /* four times the bias */                            \
            FOUR                                                                                \
            "ldm %[channel]!, {r4-r6}\n\t" /* multiplier, right, rounding */                    \
            "ldr r9, [sp]\n\t"                                                                  \
            FINISH_FOUR("r0", "r1", "r2", "r3", "r4", "r5", "r6", "r8")                         \
            "ldm r9, {r4-r6, r8}\n\t"      /* step, second, third, end */                       \
            "sub %[channel], #52\n\t"      /* back to the bias */                               \
            "strb r3, [%[out], r6]\n\t"                                                         \
            "strb r2, [%[out], r5]\n\t"                                                         \
            "strb r1, [%[out], r4]\n\t"                                                         \
            "strb r0, [%[out]]\n\t"                                                             \
            "add %[out], %[out], r4, lsl #2\n\t"                                                \
            "cmp %[out], r8\n\t"                                                                \
            "bne 1b\n\t"                                                                        \
            "ldr r4, [r9, #16]\n\t"        /* two */                                            \
            "cmp r4, #0\n\t"                                                                    \
            "beq 2f\n\t"                                                                        \
            "ldm %[channel]!, {r0-r3}\n\t" /* the bias */                                       \
            TWO("row0")                                                                         \
            TWO("row1")                                                                         \
            TWO("row2")                                                                         \
            "ldm %[channel]!, {r4-r6}\n\t" /* multiplier, right, rounding */                    \
            FINISH_TWO("r0", "r1", "r4", "r5", "r6", "r8")                                      \
            "ldr r9, [sp]\n\t"                                                                  \
            "ldr r4, [r9, #20]\n\t"        /* last */                                           \
            "sub %[channel], #52\n\t"                                                           \
            "strb r1, [%[out], r4]\n\t"                                                         \
            "strb r0, [%[out]]\n"                                                               \
            "2:\n\t"                                                                            \
            "ldr r8, [r9, #12]\n\t"        /* end */                                            \
            "ldrd r4, r5, [r9, #24]\n\t"   /* plane_gap, out_gap */                             \
            "ldr r6, [r9, #32]\n\t"        /* channels_end */                                   \
            "add r8, #1\n\t"               /* the next channel: its end, its row, its output */ \
            "str r8, [r9, #12]\n\t"                                                             \
            "add %[row0], r4\n\t"                                                               \
            "add %[row1], r4\n\t"                                                               \
            "add %[row2], r4\n\t"                                                               \
            "add %[out], r5\n\t"                                                                \
            "add %[channel], #52\n\t"                                                           \
            "cmp %[channel], r6\n\t"                                                            \
            "bne 1b\n\t"                                                                        \
            "add sp, #4"                                                                        \
            : [channel] "+r"(channel), [row0] "+r"(row0), [row1] "+r"(row1), [row2] "+r"(row2), \
              [out] "+r"(out), "+r"(kept)                                                       \
            :                                                                                   \
            : "r0", "r1", "r2", "r3", "r5", "r6", "r8", "r9", "cc", "memory");                  \
    }

// clang-format on

PT_DEFINE_MULTIPLY(pt_multiply_at_stride_1, PT_FOUR_AT_STRIDE_1, PT_TWO_AT_STRIDE_1)
PT_DEFINE_MULTIPLY(pt_multiply_at_stride_2, PT_FOUR_AT_STRIDE_2, PT_TWO_AT_STRIDE_2)

#undef PT_FOUR_AT_STRIDE_1
#undef PT_ROW_AT_STRIDE_1
#ifdef PT_LOADS_BESIDE
#undef PT_X01
#undef PT_W01
#undef PT_X23
#endif
#undef PT_TWO_AT_STRIDE_1
#undef PT_FOUR_AT_STRIDE_2
#undef PT_ROW_AT_STRIDE_2
#undef PT_TWO_AT_STRIDE_2
#undef PT_DEFINE_MULTIPLY

// Bytes by which a loop goes on in its rows for the two outputs that may follow those by four.
static inline int32_t pt_bytes_of_two(int32_t stride) {
    (void)stride;
    return 8;
}

// The loops have a pointer for each row.
static inline void pt_set_gaps(pt_depthwise_channel *channels, const pt_depthwise_row *row) {
    (void)channels, (void)row;
}
