// One output after the other, with values and weights of a row from LDM, and the product of the sum
// with the multiplier from 16-bit halves, see pt_high_product.

enum { PT_PLANE_OFFSET = 0 };

// Read by the loop below, in this order.
typedef struct pt_depthwise_channel {
    int32_t bias;
    int32_t weights[3][3];
    int32_t multiplier_low, multiplier_high, half;
    int32_t rounding, right;
} pt_depthwise_channel;

PT_OFFSET(pt_depthwise_channel, bias, 0);
PT_OFFSET(pt_depthwise_channel, weights, 4);
PT_OFFSET(pt_depthwise_channel, multiplier_low, 40);
PT_OFFSET(pt_depthwise_channel, multiplier_high, 44);
PT_OFFSET(pt_depthwise_channel, half, 48);
PT_OFFSET(pt_depthwise_channel, rounding, 52);
PT_OFFSET(pt_depthwise_channel, right, 56);
PT_SIZE(pt_depthwise_channel, 60);

static inline void pt_set_bias(pt_depthwise_channel *channel, int32_t bias) {
    channel->bias = bias;
}

static inline void pt_set_weights(pt_depthwise_channel *channel, int32_t row, int32_t w0,
                                  int32_t w1, int32_t w2) {
    int32_t *w = channel->weights[row];
    w[0] = w0;
    w[1] = w1;
    w[2] = w2;
}

static inline void pt_set_scale(pt_depthwise_channel *channel, int32_t multiplier, int32_t right,
                                int32_t rounding) {
    channel->multiplier_low = multiplier & 0xFFFF;
    channel->multiplier_high = multiplier >> 16;
    channel->half = 1 << 14;
    channel->rounding = rounding;
    channel->right = right;
}

typedef uint32_t __attribute__((may_alias)) pt_four_bytes;

static __attribute__((noinline)) void pt_widen(const pt_pixels *pixels, const int8_t *in,
                                               pt_plane *to) {
    int32_t step = pixels->step, plane = pixels->plane;
    for (int32_t n = pixels->n; n > 0; n--, in += step, to++) {
        uint32_t word = *(const pt_four_bytes *)(const void *)in;
        to[0] = (int8_t)word;
        to[plane] = (int8_t)(word >> 8);
        to[2 * plane] = (int8_t)(word >> 16);
        to[3 * plane] = (int32_t)word >> 24;
    }
}

typedef struct pt_depthwise_plan {
    int32_t nothing;
} pt_depthwise_plan;

static inline void pt_plan_rows(pt_depthwise_plan *plan, const pt_depthwise_channel *channels,
                                const pt_depthwise_row *row) {
    (void)plan, (void)channels, (void)row;
}

// Outputs of one channel. Gaps are bytes from where reading a row ends to the next row, and from
// the third to where the next output starts.
typedef struct pt_depthwise_outputs {
    const pt_plane *row;
    const pt_depthwise_channel *channel;
    int32_t gaps[3];
    int8_t *out;
    int32_t step;
    const int8_t *end;
} pt_depthwise_outputs;

PT_OFFSET(pt_depthwise_outputs, row, 0);
PT_OFFSET(pt_depthwise_outputs, channel, 4);
PT_OFFSET(pt_depthwise_outputs, gaps, 8);
PT_OFFSET(pt_depthwise_outputs, out, 20);
PT_OFFSET(pt_depthwise_outputs, step, 24);
PT_OFFSET(pt_depthwise_outputs, end, 28);

// r1 is in the row, r2 in the channel, r0 has the sum; r8 to r10 the gaps, r11 is in the output.
#define PT_ROW(gap)           \
    "ldmia r1!, {r3-r5}\n\t"  \
    "ldmia r2!, {r6, r7}\n\t" \
    "muls r3, r6, r3\n\t"     \
    "adds r0, r0, r3\n\t"     \
    "muls r4, r7, r4\n\t"     \
    "adds r0, r0, r4\n\t"     \
    "ldmia r2!, {r6}\n\t"     \
    "muls r5, r6, r5\n\t"     \
    "adds r0, r0, r5\n\t"     \
    "add r1, r1, " gap "\n\t"

static __attribute__((noinline)) void pt_multiply_outputs(const pt_depthwise_outputs *outputs) {
    register const pt_depthwise_outputs *o __asm__("r0") = outputs;
    // clang-format off
    __asm__ volatile(
        "ldmia r0!, {r1-r7}\n\t"      // row, channel, gaps, out, step
        "ldr r0, [r0]\n\t"            // end
        "mov r8, r3\n\t"
        "mov r9, r4\n\t"
        "mov r10, r5\n\t"
        "mov r11, r6\n\t"
        "mov r12, r7\n\t"
        "mov lr, r0\n"
        "1:\n\t"
        "ldmia r2!, {r0}\n\t"         // bias
        PT_ROW("r8")
        PT_ROW("r9")
        PT_ROW("r10")
        "ldmia r2!, {r3, r4}\n\t"     // multiplier_low, multiplier_high
        "uxth r5, r0\n\t"             // the sum in halves: r5 low, r6 high
        "asrs r6, r0, #16\n\t"
        "movs r7, r5\n\t"
        "muls r7, r3, r7\n\t"         // low by low
        "lsrs r7, r7, #16\n\t"
        "muls r3, r6, r3\n\t"         // high by low
        "adds r3, r3, r7\n\t"
        "muls r6, r4, r6\n\t"         // high by high
        "muls r5, r4, r5\n\t"         // low by high
        "uxth r4, r3\n\t"
        "adds r5, r5, r4\n\t"
        "asrs r3, r3, #16\n\t"
        "adds r6, r6, r3\n\t"
        "ldmia r2!, {r3, r4, r7}\n\t" // half, rounding, right
        "adds r5, r5, r3\n\t"
        "lsrs r5, r5, #15\n\t"
        "adds r6, r6, r6\n\t"
        "adds r6, r6, r5\n\t"
        "asrs r0, r0, #31\n\t"        // less 1 where it is negative
        "adds r6, r6, r0\n\t"
        "adds r6, r6, r4\n\t"
        "asrs r6, r6, r7\n\t"
        "subs r2, r2, #60\n\t"        // back to the bias
        "sxtb r3, r6\n\t"             // limited to int8
        "cmp r3, r6\n\t"
        "beq 2f\n\t"
        "movs r3, #127\n\t"
        "asrs r6, r6, #31\n\t"
        "eors r3, r3, r6\n"
        "2:\n\t"
        "mov r4, r11\n\t"
        "strb r3, [r4]\n\t"
        "add r11, r11, r12\n\t"
        "cmp r11, lr\n\t"
        "bne 1b"
        : "+r"(o)
        :
        : "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12",
          "lr", "cc", "memory");
    // clang-format on
}

#undef PT_ROW

static inline void pt_multiply_rows(pt_depthwise_plan *plan, const pt_depthwise_channel *channels,
                                    const pt_depthwise_row *row) {
    int32_t size = (int32_t)sizeof(pt_plane), read = 3 * size;
    pt_depthwise_outputs outputs = {
        row->rows[0],
        channels,
        {(int32_t)(row->rows[1] - row->rows[0]) * size - read,
         (int32_t)(row->rows[2] - row->rows[1]) * size - read,
         (int32_t)(row->rows[0] - row->rows[2] + row->stride) * size - read},
        row->out,
        row->step,
        row->out + row->n * row->step};
    (void)plan;
    for (int32_t c = 0; c < row->channels; c++) {
        pt_multiply_outputs(&outputs);
        outputs.row += row->plane;
        outputs.channel++;
        outputs.out++;
        outputs.end++;
    }
}
