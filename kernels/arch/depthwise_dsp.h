// Four outputs at a time from pairs of values, with SMLAD and its kin.
#include <arm_acle.h>

typedef int16_t pt_plane;

enum { PT_PLANE_OFFSET = 1 };

// Bias and weights are doubled, for pt_scale. Read by the loops below, in this order.
typedef struct pt_depthwise_channel {
    int32_t bias[4];       // four times the same
    int16_t weights[3][4]; // of a row: 0, 1, 1, 2
    int32_t multiplier, right, rounding;
    pt_depthwise_block block;
} pt_depthwise_channel;

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

typedef uint32_t __attribute__((may_alias)) pt_plane_word;

#define PT_EXTEND(result, word, offsets, rotation) \
    __asm__("sxtab16 %0, %1, %2" rotation : "=r"(result) : "r"(offsets), "r"(word))

// Two pixels at a time, from an even column on.
static inline void pt_widen(const int8_t *in, int32_t step, int32_t n, int32_t offset, pt_plane *to,
                            int32_t plane) {
    uint32_t offsets = ((uint32_t)offset & 0xFFFF) * 0x10001;
    uint32_t even, odd, next_even, next_odd, word;
    bool single = ((uintptr_t)to & 2) != 0;
    while (n > 0) {
        word = *(const pt_plane_word *)(const void *)in;
        PT_EXTEND(even, word, offsets, "");
        PT_EXTEND(odd, word, offsets, ", ror #8");
        in += step;
        if (single || n == 1) {
            to[0] = (int16_t)even;
            to[plane] = (int16_t)odd;
            to[2 * plane] = (int16_t)(even >> 16);
            to[3 * plane] = (int16_t)(odd >> 16);
            single = false;
            n--, to++;
            continue;
        }
        word = *(const pt_plane_word *)(const void *)in;
        PT_EXTEND(next_even, word, offsets, "");
        PT_EXTEND(next_odd, word, offsets, ", ror #8");
        in += step;
        *(pt_plane_word *)(void *)to = (even & 0xFFFF) | next_even << 16;
        *(pt_plane_word *)(void *)(to + plane) = (odd & 0xFFFF) | next_odd << 16;
        *(pt_plane_word *)(void *)(to + 2 * plane) = even >> 16 | (next_even & 0xFFFF0000);
        *(pt_plane_word *)(void *)(to + 3 * plane) = odd >> 16 | (next_odd & 0xFFFF0000);
        n -= 2, to += 2;
    }
}

#undef PT_EXTEND

// x0x1, x2x3, x4x5 of a row at stride 1, with w0w1 in r8 and w1w2 in r9.
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

// x0x1 to x8x9 of a row at stride 2.
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

#define PT_SCALE(sum)                     \
    "add r8, r6, " sum ", asr #31\n\t"    \
    "smmlar " sum ", " sum ", r4, r8\n\t" \
    "asr " sum ", " sum ", r5\n\t"        \
    "ssat " sum ", #8, " sum "\n\t"

// Outputs are stored from the last to the first, see pt_make_last_block.
#define PT_DEFINE_BLOCKS(name, ROW)                                                               \
    static __attribute__((noinline)) void name(const pt_depthwise_channel *channel,               \
                                               const pt_plane *row0, const pt_plane *row1,        \
                                               const pt_plane *row2, int8_t *out) {               \
        __asm__ volatile("1:\n\t"                                                                 \
                         "ldm %[channel]!, {r0-r3}\n\t" ROW("row0") ROW("row1")                   \
                             ROW("row2") "ldm %[channel]!, {r4-r6}\n\t" PT_SCALE("r0")            \
                                 PT_SCALE("r1") PT_SCALE("r2")                                    \
                                     PT_SCALE("r3") "ldm %[channel], {r4-r6, r8}\n\t"             \
                                                    "sub %[channel], #52\n\t"                     \
                                                    "strb r3, [%[out], r6]\n\t"                   \
                                                    "strb r2, [%[out], r5]\n\t"                   \
                                                    "strb r1, [%[out], r4]\n\t"                   \
                                                    "strb r0, [%[out]]\n\t"                       \
                                                    "add %[out], %[out], r4, lsl #2\n\t"          \
                                                    "cmp %[out], r8\n\t"                          \
                                                    "bne 1b"                                      \
                         : [channel] "+r"(channel), [row0] "+r"(row0), [row1] "+r"(row1),         \
                           [row2] "+r"(row2), [out] "+r"(out)                                     \
                         :                                                                        \
                         : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "cc", "memory"); \
    }

PT_DEFINE_BLOCKS(pt_depthwise_blocks_1, PT_ROW_AT_STRIDE_1)
PT_DEFINE_BLOCKS(pt_depthwise_blocks_2, PT_ROW_AT_STRIDE_2)

#undef PT_ROW_AT_STRIDE_1
#undef PT_ROW_AT_STRIDE_2
#undef PT_SCALE
#undef PT_DEFINE_BLOCKS

static inline void pt_depthwise_row(pt_depthwise_channel *channel, const pt_plane *const rows[3],
                                    int32_t stride, const pt_outputs *outputs, int8_t *out) {
    void (*run)(const pt_depthwise_channel *, const pt_plane *, const pt_plane *, const pt_plane *,
                int8_t *) = stride == 1 ? pt_depthwise_blocks_1 : pt_depthwise_blocks_2;
    int32_t step = outputs->step, whole = outputs->n & ~3, rest = outputs->n & 3;
    if (whole) {
        channel->block = pt_make_block(out, step, whole);
        run(channel, rows[0], rows[1], rows[2], out);
        out += whole * step;
    }
    if (rest) {
        channel->block = pt_make_last_block(out, step, rest);
        int32_t done = whole * stride;
        run(channel, rows[0] + done, rows[1] + done, rows[2] + done, out);
    }
}
