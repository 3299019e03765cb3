// Four outputs at a time, with values and weights three at a time from LDM.

enum { PT_PLANE_OFFSET = 0 };

// Bias and weights are doubled, for pt_scale. Read by the loops below, in this order.
typedef struct pt_depthwise_channel {
    int32_t bias[4];       // four times the same
    int32_t weights[3][4]; // the fourth: bytes from where reading the row ends to the next row
    int32_t multiplier, right, rounding;
} pt_depthwise_channel;

PT_OFFSET(pt_depthwise_channel, bias, 0);
PT_OFFSET(pt_depthwise_channel, weights, 16);
PT_OFFSET(pt_depthwise_channel, multiplier, 64);
PT_OFFSET(pt_depthwise_channel, right, 68);
PT_OFFSET(pt_depthwise_channel, rounding, 72);
PT_SIZE(pt_depthwise_channel, 76);

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

static inline void pt_set_scale(pt_depthwise_channel *channel, int32_t multiplier, int32_t right,
                                int32_t rounding) {
    channel->multiplier = multiplier;
    channel->right = right;
    channel->rounding = rounding;
}

typedef uint32_t __attribute__((may_alias)) pt_four_bytes;

static inline void pt_widen_pixel(const int8_t *in, pt_plane *to, int32_t plane) {
    uint32_t word = *(const pt_four_bytes *)(const void *)in;
    to[0] = (int8_t)word;
    to[plane] = (int8_t)(word >> 8);
    to[2 * plane] = (int8_t)(word >> 16);
    to[3 * plane] = (int32_t)word >> 24;
}

#define PT_STORE_PAIR(rotation, to)        \
    "sxtb %[a], %[first]" rotation "\n\t"  \
    "sxtb %[b], %[second]" rotation "\n\t" \
    "strd %[a], %[b], [%[" to "]], #8\n\t"

// Two pixels at a time.
static __attribute__((noinline)) void pt_widen(const pt_pixels *pixels, const int8_t *in,
                                               pt_plane *to) {
    int32_t step = pixels->step, pairs = pixels->n / 2, plane = pixels->plane;
    if (pixels->n & 1) {
        pt_widen_pixel(in, to, plane);
        in += step, to++;
    }
    if (pairs == 0) {
        return;
    }
    pt_plane *to1 = to + plane, *to2 = to1 + plane, *to3 = to2 + plane;
    uint32_t first, second, a, b;
    // clang-format off
    __asm__ volatile(
        "1:\n\t"
        "ldr %[second], [%[in], %[step]]\n\t"
        "ldr %[first], [%[in]]\n\t"
        "add %[in], %[in], %[step], lsl #1\n\t"
        PT_STORE_PAIR("", "to")
        PT_STORE_PAIR(", ror #8", "to1")
        PT_STORE_PAIR(", ror #16", "to2")
        PT_STORE_PAIR(", ror #24", "to3")
        "subs %[pairs], #1\n\t"
        "bne 1b"
        : [in] "+r"(in), [pairs] "+r"(pairs), [to] "+r"(to), [to1] "+r"(to1), [to2] "+r"(to2),
          [to3] "+r"(to3), [first] "=&r"(first), [second] "=&r"(second), [a] "=&r"(a), [b] "=&r"(b)
        : [step] "r"(step)
        : "cc", "memory");
    // clang-format on
}

#undef PT_STORE_PAIR

// Adds a row at stride 1, with three of its x0 to x5 at a time; r8, r9 and r10 have the weights.
#define PT_FOUR_AT_STRIDE_1         \
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

#define PT_TWO_AT_STRIDE_1          \
    "ldm %[channel]!, {r8-r11}\n\t" \
    "ldm %[row]!, {r4-r6}\n\t"      \
    "ldr r3, [%[row]]\n\t"          \
    "mla r0, r4, r8, r0\n\t"        \
    "mla r0, r5, r9, r0\n\t"        \
    "mla r0, r6, r10, r0\n\t"       \
    "mla r1, r5, r8, r1\n\t"        \
    "mla r1, r6, r9, r1\n\t"        \
    "mla r1, r3, r10, r1\n\t"       \
    "add %[row], r11\n\t"

// Adds a row at stride 2, with three of its x0 to x8 at a time.
#define PT_FOUR_AT_STRIDE_2         \
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

#define PT_TWO_AT_STRIDE_2          \
    "ldm %[channel]!, {r8-r11}\n\t" \
    "ldm %[row]!, {r4-r6}\n\t"      \
    "mla r0, r4, r8, r0\n\t"        \
    "mla r0, r5, r9, r0\n\t"        \
    "mla r0, r6, r10, r0\n\t"       \
    "mla r1, r6, r8, r1\n\t"        \
    "ldm %[row]!, {r4-r6}\n\t"      \
    "mla r1, r4, r9, r1\n\t"        \
    "mla r1, r5, r10, r1\n\t"       \
    "add %[row], r11\n\t"

#define PT_OUTPUT(sum)                      \
    "smull r9, r10, " sum ", r4\n\t"        \
    "add " sum ", r6, " sum ", asr #31\n\t" \
    "lsls r9, r9, #1\n\t"                   \
    "adc " sum ", r10, " sum "\n\t"         \
    "asr " sum ", r5\n\t"                   \
    "ssat " sum ", #8, " sum "\n\t"

// clang-format off

// The address of `blocks` is kept on the stack: no register is free.
#define PT_DEFINE_MULTIPLY(name, FOUR, TWO)                                                     \
    static __attribute__((noinline)) void name(const pt_depthwise_channel *channel,             \
                                               const pt_plane *const *rows, int8_t *out,        \
                                               pt_blocks *blocks) {                             \
        const pt_plane *row = rows[0];                                                          \
        register pt_blocks *kept __asm__("r4") = blocks;                                        \
        __asm__ volatile(                                                                       \
            "push {r4}\n"                  /* blocks */                                         \
            "1:\n\t"                                                                            \
            "ldm %[channel]!, {r0-r3}\n\t" /* four times the bias */                            \
            FOUR                                                                                \
            FOUR                                                                                \
            FOUR                                                                                \
            "ldm %[channel]!, {r4-r6}\n\t" /* multiplier, right, rounding */                    \
            PT_OUTPUT("r0")                                                                     \
            PT_OUTPUT("r1")                                                                     \
            PT_OUTPUT("r2")                                                                     \
            PT_OUTPUT("r3")                                                                     \
            "ldr r9, [sp]\n\t"                                                                  \
            "ldm r9, {r4-r6, r8}\n\t"      /* step, second, third, end */                       \
            "sub %[channel], #76\n\t"      /* back to the bias */                               \
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
            TWO                                                                                 \
            TWO                                                                                 \
            TWO                                                                                 \
            "ldm %[channel]!, {r4-r6}\n\t" /* multiplier, right, rounding */                    \
            PT_OUTPUT("r0")                                                                     \
            PT_OUTPUT("r1")                                                                     \
            "ldr r9, [sp]\n\t"                                                                  \
            "ldr r4, [r9, #20]\n\t"        /* last */                                           \
            "sub %[channel], #76\n\t"                                                           \
            "strb r1, [%[out], r4]\n\t"                                                         \
            "strb r0, [%[out]]\n"                                                               \
            "2:\n\t"                                                                            \
            "ldr r8, [r9, #12]\n\t"        /* end */                                            \
            "ldrd r4, r5, [r9, #24]\n\t"   /* plane_gap, out_gap */                             \
            "ldr r6, [r9, #32]\n\t"        /* channels_end */                                   \
            "add r8, #1\n\t"               /* the next channel: its end, its row, its output */ \
            "str r8, [r9, #12]\n\t"                                                             \
            "add %[row], r4\n\t"                                                                \
            "add %[out], r5\n\t"                                                                \
            "add %[channel], #76\n\t"                                                           \
            "cmp %[channel], r6\n\t"                                                            \
            "bne 1b\n\t"                                                                        \
            "add sp, #4"                                                                        \
            : [channel] "+r"(channel), [row] "+r"(row), [out] "+r"(out), "+r"(kept)             \
            :                                                                                   \
            : "r0", "r1", "r2", "r3", "r5", "r6", "r8", "r9", "r10", "r11", "cc", "memory");    \
    }

// clang-format on

PT_DEFINE_MULTIPLY(pt_multiply_at_stride_1, PT_FOUR_AT_STRIDE_1, PT_TWO_AT_STRIDE_1)
PT_DEFINE_MULTIPLY(pt_multiply_at_stride_2, PT_FOUR_AT_STRIDE_2, PT_TWO_AT_STRIDE_2)

#undef PT_FOUR_AT_STRIDE_1
#undef PT_TWO_AT_STRIDE_1
#undef PT_FOUR_AT_STRIDE_2
#undef PT_TWO_AT_STRIDE_2
#undef PT_OUTPUT
#undef PT_DEFINE_MULTIPLY

// Bytes by which a loop goes on behind the outputs of a block.
static inline int32_t pt_bytes_of_block(const pt_blocks *blocks) {
    return 4 * blocks->places[0];
}

// The loops read 3 values of a row, or 6 of 9, with the pointer that goes from row to row.
static inline void pt_set_gaps(pt_depthwise_channel *channels, const pt_depthwise_row *row) {
    int32_t size = (int32_t)sizeof(pt_plane), read = 3 * row->stride * size;
    int32_t first = (int32_t)(row->rows[1] - row->rows[0]) * size - read;
    int32_t second = (int32_t)(row->rows[2] - row->rows[1]) * size - read;
    int32_t third = (int32_t)(row->rows[0] - row->rows[2] + 4 * row->stride) * size - read;
    for (int32_t c = 0; c < row->channels; c++) {
        channels[c].weights[0][3] = first;
        channels[c].weights[1][3] = second;
        channels[c].weights[2][3] = third;
    }
}

// Bytes by which a loop goes on in its rows for the two outputs that may follow those by four.
static inline int32_t pt_bytes_of_two(int32_t stride) {
    return 4 * stride * (int32_t)sizeof(pt_plane);
}
