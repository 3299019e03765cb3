// Four outputs at a time, with values and weights three at a time from LDM.

typedef int32_t pt_plane;

enum { PT_PLANE_OFFSET = 0 };

// Bias and weights are doubled, for pt_scale. Read by the loops below, in this order.
typedef struct pt_depthwise_channel {
    int32_t bias[4];       // four times the same
    int32_t weights[3][4]; // the fourth: bytes from where reading the row ends to the next row
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
    int32_t *w = channel->weights[row];
    w[0] = 2 * w0;
    w[1] = 2 * w1;
    w[2] = 2 * w2;
}

typedef uint32_t __attribute__((may_alias)) pt_four_bytes;

static inline void pt_widen(const int8_t *in, int32_t step, int32_t n, int32_t offset, pt_plane *to,
                            int32_t plane) {
    (void)offset;
    for (; n > 0; n--, in += step, to++) {
        uint32_t word = *(const pt_four_bytes *)(const void *)in;
        to[0] = (int8_t)word;
        to[plane] = (int8_t)(word >> 8);
        to[2 * plane] = (int8_t)(word >> 16);
        to[3 * plane] = (int32_t)word >> 24;
    }
}

#define PT_ROW_AT_STRIDE_1          \
    "ldm %[channel]!, {r8-r11}\n\t" \
    "ldm %[row]!, {r4-r6}\n\t"      \
    "mla r0, r4, r8, r0\n\t"        \
    "mla r0, r5, r9, r0\n\t"        \
    "mla r0, r6, r10, r0\n\t"       \
    "mla r1, r5, r8, r1\n\t"        \
    "mla r1, r6, r9, r1\n\t"        \
    "mla r2, r6, r8, r2\n\t"        \
    "ldm %[row], {r4-r6}\n\t"       \
    "mla r1, r4, r10, r1\n\t"       \
    "mla r2, r4, r9, r2\n\t"        \
    "mla r2, r5, r10, r2\n\t"       \
    "mla r3, r4, r8, r3\n\t"        \
    "mla r3, r5, r9, r3\n\t"        \
    "mla r3, r6, r10, r3\n\t"       \
    "add %[row], r11\n\t"

#define PT_ROW_AT_STRIDE_2          \
    "ldm %[channel]!, {r8-r11}\n\t" \
    "ldm %[row]!, {r4-r6}\n\t"      \
    "mla r0, r4, r8, r0\n\t"        \
    "mla r0, r5, r9, r0\n\t"        \
    "mla r0, r6, r10, r0\n\t"       \
    "mla r1, r6, r8, r1\n\t"        \
    "ldm %[row]!, {r4-r6}\n\t"      \
    "mla r1, r4, r9, r1\n\t"        \
    "mla r1, r5, r10, r1\n\t"       \
    "mla r2, r5, r8, r2\n\t"        \
    "mla r2, r6, r9, r2\n\t"        \
    "ldm %[row], {r4-r6}\n\t"       \
    "mla r2, r4, r10, r2\n\t"       \
    "mla r3, r4, r8, r3\n\t"        \
    "mla r3, r5, r9, r3\n\t"        \
    "mla r3, r6, r10, r3\n\t"       \
    "add %[row], r11\n\t"

#define PT_SCALE(sum)                   \
    "add r10, r6, " sum ", asr #31\n\t" \
    "mov r9, #0x80000000\n\t"           \
    "smlal r9, r10, " sum ", r4\n\t"    \
    "asr " sum ", r10, r5\n\t"          \
    "ssat " sum ", #8, " sum "\n\t"

// Outputs are stored from the last to the first, see pt_make_last_block.
#define PT_DEFINE_BLOCKS(name, ROW)                                                             \
    static __attribute__((noinline)) void name(const pt_depthwise_channel *channel,             \
                                               const pt_plane *row, int8_t *out) {              \
        __asm__ volatile("1:\n\t"                                                               \
                         "ldm %[channel]!, {r0-r3}\n\t" ROW ROW ROW                             \
                         "ldm %[channel]!, {r4-r6}\n\t" PT_SCALE("r0") PT_SCALE("r1")           \
                             PT_SCALE("r2") PT_SCALE("r3") "ldm %[channel], {r4-r6, r9}\n\t"    \
                                                           "sub %[channel], #76\n\t"            \
                                                           "strb r3, [%[out], r6]\n\t"          \
                                                           "strb r2, [%[out], r5]\n\t"          \
                                                           "strb r1, [%[out], r4]\n\t"          \
                                                           "strb r0, [%[out]]\n\t"              \
                                                           "add %[out], %[out], r4, lsl #2\n\t" \
                                                           "cmp %[out], r9\n\t"                 \
                                                           "bne 1b"                             \
                         : [channel] "+r"(channel), [row] "+r"(row), [out] "+r"(out)            \
                         :                                                                      \
                         : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11",  \
                           "cc", "memory");                                                     \
    }

PT_DEFINE_BLOCKS(pt_depthwise_blocks_1, PT_ROW_AT_STRIDE_1)
PT_DEFINE_BLOCKS(pt_depthwise_blocks_2, PT_ROW_AT_STRIDE_2)

#undef PT_ROW_AT_STRIDE_1
#undef PT_ROW_AT_STRIDE_2
#undef PT_SCALE
#undef PT_DEFINE_BLOCKS

static inline void pt_depthwise_row(pt_depthwise_channel *channel, const pt_plane *const rows[3],
                                    int32_t stride, const pt_outputs *outputs, int8_t *out) {
    void (*run)(const pt_depthwise_channel *, const pt_plane *, int8_t *) =
        stride == 1 ? pt_depthwise_blocks_1 : pt_depthwise_blocks_2;
    int32_t step = outputs->step, whole = outputs->n & ~3, rest = outputs->n & 3;
    int32_t read = stride == 1 ? 12 : 24, size = (int32_t)sizeof(pt_plane);
    channel->weights[0][3] = (rows[1] - rows[0]) * size - read;
    channel->weights[1][3] = (rows[2] - rows[1]) * size - read;
    channel->weights[2][3] = (rows[0] - rows[2] + 4 * stride) * size - read;
    if (whole) {
        channel->block = pt_make_block(out, step, whole);
        run(channel, rows[0], out);
        out += whole * step;
    }
    if (rest) {
        channel->block = pt_make_last_block(out, step, rest);
        run(channel, rows[0] + whole * stride, out);
    }
}
