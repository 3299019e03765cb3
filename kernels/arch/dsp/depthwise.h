// Six outputs at a time, from pairs of values, with SMLAD and its kin.

#include "finish.h"

enum { PT_PLANE_OFFSET = 1 };

// Bias and weights are doubled, for pt_scale. Read by the loops below, in this order.
typedef struct pt_depthwise_channel {
    int32_t bias;
    int16_t weights[3][4]; // of a row: 0, 1, 1, 2
    int32_t multiplier, right, rounding;
} pt_depthwise_channel;

PT_OFFSET(pt_depthwise_channel, bias, 0);
PT_OFFSET(pt_depthwise_channel, weights, 4);
PT_OFFSET(pt_depthwise_channel, multiplier, 28);
PT_OFFSET(pt_depthwise_channel, right, 32);
PT_OFFSET(pt_depthwise_channel, rounding, 36);
PT_SIZE(pt_depthwise_channel, 40);

static inline void pt_set_bias(pt_depthwise_channel *channel, int32_t bias) {
    channel->bias = 2 * bias;
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

static inline void pt_widen_pixel(const int8_t *in, uint32_t offsets, pt_plane *to, int32_t plane) {
    uint32_t word = *(const pt_plane_word *)(const void *)in, even, odd;
    PT_EXTEND(even, word, "");
    PT_EXTEND(odd, word, ", ror #8");
    to[0] = (int16_t)even;
    to[plane] = (int16_t)odd;
    to[2 * plane] = (int16_t)(even >> 16);
    to[3 * plane] = (int16_t)(odd >> 16);
}

#undef PT_EXTEND

// Two pixels at a time, from an even column on.
static __attribute__((noinline)) void pt_widen(const pt_pixels *pixels, const int8_t *in,
                                               pt_plane *to) {
    int32_t n = pixels->n, step = pixels->step, plane = pixels->plane;
    const uint32_t offsets = ((uint32_t)pixels->offset & 0xFFFF) * 0x10001;
    if (n > 0 && ((uintptr_t)to & 2) != 0) {
        pt_widen_pixel(in, offsets, to, plane);
        in += step, to++, n--;
    }
    if (n > 1) {
        pt_plane *to2 = to + 2 * plane;
        const pt_plane *end = to + (n & ~1);
        uint32_t even, odd, next_even, next_odd, both;
        __asm__ volatile(
            "1:\n\t"
            "ldr %[even], [%[in]]\n\t"
            "ldr %[next_even], [%[in], %[step]]\n\t"
            "add %[in], %[in], %[step], lsl #1\n\t"
            "sxtab16 %[odd], %[offsets], %[even], ror #8\n\t"
            "sxtab16 %[even], %[offsets], %[even]\n\t"
            "sxtab16 %[next_odd], %[offsets], %[next_even], ror #8\n\t"
            "sxtab16 %[next_even], %[offsets], %[next_even]\n\t"
            "pkhbt %[both], %[odd], %[next_odd], lsl #16\n\t"
            "str %[both], [%[to], %[plane]]\n\t"
            "pkhbt %[both], %[even], %[next_even], lsl #16\n\t"
            "str %[both], [%[to]], #4\n\t"
            "pkhtb %[both], %[next_odd], %[odd], asr #16\n\t"
            "str %[both], [%[to2], %[plane]]\n\t"
            "pkhtb %[both], %[next_even], %[even], asr #16\n\t"
            "str %[both], [%[to2]], #4\n\t"
            "cmp %[to], %[end]\n\t"
            "bne 1b"
            : [in] "+&r"(in), [to] "+&r"(to), [to2] "+&r"(to2), [even] "=&r"(even),
              [odd] "=&r"(odd), [next_even] "=&r"(next_even), [next_odd] "=&r"(next_odd),
              [both] "=&r"(both)
            : [step] "r"(step), [plane] "r"(2 * plane), [offsets] "r"(offsets), [end] "r"(end)
            : "cc", "memory");
    }
    if (n & 1) {
        pt_widen_pixel(in, offsets, to, plane);
    }
}

// Adds the rows, each with its x0x1, x2x3 and so on from the last to the first; `at` is where the
// channel has w0w1, followed by w1w2. Loads behind one another take one cycle each on M4, but the
// first.

// clang-format off

#define PT_LOAD(to, from) "ldr %[" to "], " from "\n\t"
#define PT_LOAD_WEIGHTS(at)                   \
    PT_LOAD("w01", "[%[channel], #" at "]")   \
    PT_LOAD("w12", "[%[channel], #" at " + 4]")
#define PT_ADD(name, sum, x, w, to) name " " sum ", %[" x "], %[" w "], " to "\n\t"
#define PT_SUM(name, sum, x, w) PT_ADD(name, sum, x, w, sum)

// In the first row r9 to lr begin with the bias, which is in r8: `as` chooses r8 or the sum.
#define PT_SIX_AT_STRIDE_1(row, at, as)       \
    PT_LOAD_WEIGHTS(at)                       \
    PT_LOAD("y", "[%[" row "], #12]")         \
    PT_LOAD("x", "[%[" row "], #8]")          \
    PT_ADD("smlad", "lr", "y", "w12", as("lr")) \
    PT_ADD("smlabt", "r12", "y", "w12", as("r12")) \
    PT_ADD("smlad", "r11", "x", "w12", as("r11")) \
    PT_ADD("smlabt", "r10", "x", "w12", as("r10")) \
    PT_SUM("smlad", "r12", "x", "w01")         \
    PT_SUM("smlatb", "lr", "x", "w01")        \
    PT_LOAD("y", "[%[" row "], #4]")          \
    PT_LOAD("x", "[%[" row "]], #12")         \
    PT_SUM("smlad", "r10", "y", "w01")         \
    PT_SUM("smlatb", "r11", "y", "w01")        \
    PT_ADD("smlad", "r9", "y", "w12", as("r9")) \
    PT_SUM("smlabt", "r8", "y", "w12")        \
    PT_SUM("smlatb", "r9", "x", "w01")        \
    PT_SUM("smlad", "r8", "x", "w01")

#define PT_TWO_AT_STRIDE_1(row, at, as)       \
    PT_LOAD_WEIGHTS(at)                       \
    PT_LOAD("y", "[%[" row "], #4]")          \
    PT_LOAD("x", "[%[" row "]], #4")          \
    PT_ADD("smlad", "r9", "y", "w12", as("r9")) \
    PT_SUM("smlabt", "r8", "y", "w12")        \
    PT_SUM("smlatb", "r9", "x", "w01")        \
    PT_SUM("smlad", "r8", "x", "w01")

#define PT_SIX_AT_STRIDE_2(row, at, as)       \
    PT_LOAD_WEIGHTS(at)                       \
    PT_LOAD("y", "[%[" row "], #24]")         \
    PT_LOAD("x", "[%[" row "], #20]")         \
    PT_ADD("smlabt", "lr", "y", "w12", as("lr")) \
    PT_SUM("smlad", "lr", "x", "w01")         \
    PT_ADD("smlabt", "r12", "x", "w12", as("r12")) \
    PT_LOAD("y", "[%[" row "], #16]")         \
    PT_LOAD("x", "[%[" row "], #12]")         \
    PT_SUM("smlad", "r12", "y", "w01")         \
    PT_ADD("smlabt", "r11", "y", "w12", as("r11")) \
    PT_SUM("smlad", "r11", "x", "w01")         \
    PT_ADD("smlabt", "r10", "x", "w12", as("r10")) \
    PT_LOAD("y", "[%[" row "], #8]")          \
    PT_LOAD("x", "[%[" row "], #4]")          \
    PT_SUM("smlad", "r10", "y", "w01")         \
    PT_ADD("smlabt", "r9", "y", "w12", as("r9")) \
    PT_SUM("smlad", "r9", "x", "w01")         \
    PT_SUM("smlabt", "r8", "x", "w12")        \
    PT_LOAD("x", "[%[" row "]], #24")         \
    PT_SUM("smlad", "r8", "x", "w01")

#define PT_TWO_AT_STRIDE_2(row, at, as)       \
    PT_LOAD_WEIGHTS(at)                       \
    PT_LOAD("y", "[%[" row "], #8]")          \
    PT_LOAD("x", "[%[" row "], #4]")          \
    PT_ADD("smlabt", "r9", "y", "w12", as("r9")) \
    PT_SUM("smlabt", "r8", "x", "w12")        \
    PT_SUM("smlad", "r9", "x", "w01")         \
    PT_LOAD("x", "[%[" row "]], #8")          \
    PT_SUM("smlad", "r8", "x", "w01")

#define PT_BIAS(sum) "r8"
#define PT_ITSELF(sum) sum
#define PT_THREE_ROWS(ROW)                    \
    "ldr r8, [%[channel]]\n\t" /* bias */     \
    ROW("row0", "4", PT_BIAS)                 \
    ROW("row1", "12", PT_ITSELF)              \
    ROW("row2", "20", PT_ITSELF)

#define PT_LOAD_SCALE                         \
    PT_LOAD("w01", "[%[channel], #28]")       \
    PT_LOAD("y", "[%[channel], #36]")         \
    PT_LOAD("w12", "[%[channel], #32]")

#define PT_BEGIN(sum) FINISH_BEGIN(sum, "%[w01]", "%[y]", "%[x]")
#define PT_NEXT(done, sum) FINISH_NEXT(done, "%[w12]", sum, "%[w01]", "%[y]", "%[x]")
#define PT_END(done) FINISH_END(done, "%[w12]")

// The addresses of `blocks` and of the output are kept on the stack: no register is free.
#define PT_DEFINE_MULTIPLY(name, SIX, TWO)                                                      \
    static __attribute__((noinline)) void name(const pt_depthwise_channel *channel,             \
                                               const pt_plane *const *rows, int8_t *out,        \
                                               pt_blocks *blocks) {                             \
        const pt_plane *row0 = rows[0], *row1 = rows[1], *row2 = rows[2];                       \
        uintptr_t x = (uintptr_t)blocks, y = (uintptr_t)out, w01, w12;                          \
        __asm__ volatile(                                                                       \
            "push {%[y]}\n\t"                                                                   \
            "push {%[x]}\n"                                                                     \
            "1:\n\t"                                                                            \
            PT_THREE_ROWS(SIX)                                                                  \
            PT_LOAD_SCALE                                                                       \
            PT_BEGIN("r8")                                                                      \
            PT_BEGIN("r9")                                                                      \
            PT_NEXT("r8", "r10")                                                                 \
            PT_NEXT("r9", "r11")                                                                 \
            PT_NEXT("r10", "r12")                                                                 \
            PT_NEXT("r11", "lr")                                                                 \
            PT_END("r12")                                                                           \
            "asr lr, lr, %[w12]\n\t"                                                                \
            PT_LOAD("x", "[sp]")                                                                    \
            PT_LOAD("y", "[sp, #4]")                                                                \
            PT_LOAD("w01", "[%[x], #16]")  /* fifth place */                                        \
            PT_LOAD("w12", "[%[x], #12]")                                                           \
            "ssat lr, #8, lr\n\t"                                                                   \
            "strb lr, [%[y], %[w01]]\n\t"                                                       \
            "ldr lr, [%[x], #8]\n\t"                                                            \
            "strb r12, [%[y], %[w12]]\n\t"                                                       \
            "ldr r12, [%[x], #4]\n\t"                                                            \
            PT_LOAD("w12", "[%[x]]")       /* the first: the step */                            \
            "strb r11, [%[y], lr]\n\t"                                                           \
            "ldr lr, [%[x], #20]\n\t"      /* end */                                            \
            "strb r10, [%[y], r12]\n\t"                                                           \
            "strb r9, [%[y], %[w12]]\n\t"                                                       \
            "strb r8, [%[y]]\n\t"                                                               \
            "add %[y], %[w01]\n\t"                                                              \
            "add %[y], %[w12]\n\t"                                                              \
            "str %[y], [sp, #4]\n\t"                                                            \
            "cmp %[y], lr\n\t"                                                                  \
            "bne 1b\n\t"                                                                        \
            "ldr r12, [%[x], #24]\n\t"      /* two */                                            \
            "cmp r12, #0\n\t"                                                                    \
            "beq 2f\n\t"                                                                        \
            PT_THREE_ROWS(TWO)                                                                  \
            PT_LOAD_SCALE                                                                       \
            PT_BEGIN("r8")                                                                      \
            PT_BEGIN("r9")                                                                      \
            PT_END("r8")                                                                        \
            PT_LOAD("x", "[sp]")                                                                \
            PT_LOAD("y", "[sp, #4]")                                                            \
            PT_END("r9")                                                                        \
            "ldr r12, [%[x], #28]\n\t"      /* last */                                           \
            "strb r9, [%[y], r12]\n\t"                                                           \
            "strb r8, [%[y]]\n"                                                                 \
            "2:\n\t"                                                                            \
            "ldr r8, [%[x], #20]\n\t"      /* end */                                            \
            "ldr r9, [%[x], #36]\n\t"      /* out_gap */                                        \
            "ldr r10, [%[x], #32]\n\t"      /* plane_gap */                                      \
            "ldr r11, [%[x], #40]\n\t"      /* channels_end */                                   \
            "add r8, #1\n\t"               /* the next channel: its end, its row, its output */ \
            "str r8, [%[x], #20]\n\t"                                                           \
            "add %[y], r9\n\t"                                                                  \
            "str %[y], [sp, #4]\n\t"                                                            \
            "add %[row0], r10\n\t"                                                               \
            "add %[row1], r10\n\t"                                                               \
            "add %[row2], r10\n\t"                                                               \
            "add %[channel], #40\n\t"                                                           \
            "cmp %[channel], r11\n\t"                                                            \
            "bne 1b\n\t"                                                                        \
            "add sp, #8"                                                                        \
            : [channel] "+l"(channel), [row0] "+l"(row0), [row1] "+l"(row1), [row2] "+l"(row2), \
              [x] "+l"(x), [y] "+l"(y), [w01] "=&l"(w01), [w12] "=&l"(w12)                      \
            :                                                                                   \
            : "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");                              \
    }

// clang-format on

PT_DEFINE_MULTIPLY(pt_multiply_at_stride_1, PT_SIX_AT_STRIDE_1, PT_TWO_AT_STRIDE_1)
PT_DEFINE_MULTIPLY(pt_multiply_at_stride_2, PT_SIX_AT_STRIDE_2, PT_TWO_AT_STRIDE_2)

#undef PT_LOAD
#undef PT_LOAD_WEIGHTS
#undef PT_ADD
#undef PT_SUM
#undef PT_SIX_AT_STRIDE_1
#undef PT_TWO_AT_STRIDE_1
#undef PT_SIX_AT_STRIDE_2
#undef PT_TWO_AT_STRIDE_2
#undef PT_BIAS
#undef PT_ITSELF
#undef PT_THREE_ROWS
#undef PT_LOAD_SCALE
#undef PT_BEGIN
#undef PT_NEXT
#undef PT_END
#undef PT_DEFINE_MULTIPLY

// Bytes by which a loop goes on in its rows for the two outputs that may follow those by four.
static inline int32_t pt_bytes_of_two(int32_t stride) {
    return 4 * stride;
}

// Bytes by which a loop goes on behind the outputs of a block.
static inline int32_t pt_bytes_of_block(const pt_blocks *blocks) {
    return blocks->places[0] + blocks->places[PT_ROW_OUTPUTS - 2];
}

// The loops have a pointer for each row.
static inline void pt_set_gaps(pt_depthwise_channel *channels, const pt_depthwise_row *row) {
    (void)channels, (void)row;
}
