// int8 GEMM tile of 3 patches x 2 channels x 4 values by SMLAD, requantized, on cores with the DSP
// extension: the inner loop of the variants im2row and 1x1. With PT_LOADS_BESIDE (Cortex-M7) single
// loads alternate with products; else loads follow one another.
#include "arch/dsp/tile_3x2.h"
#include "arch/gemm_s8.h"

#if defined(PT_IM2COL_DSP)

#include "arch/dsp/tile_2x2.h"

// clang-format off

#ifdef PT_LOADS_BESIDE

enum { STEP_BYTES = 88, BEGUN = 0 }; // bytes of code of a step, and steps that BEGIN does

#define W_END "r3"
#define LAST_STEP STEP "ldr r3, %[w_end]\n\t"

// The biases. A step loads the first words of the next.
#define BEGIN                               \
    "ldrd %[s0], %[s1], [%[w]], #8\n\t"     \
    "mov %[s2], %[s0]\n\t"                  \
    "mov %[s3], %[s1]\n\t"                  \
    "mov %[s4], %[s0]\n\t"                  \
    "mov %[s5], %[s1]\n\t"                  \
    "ldr.w r0, [%[a]]\n\t"                  \
    "ldr.w r2, [%[w]]\n\t"                  \
    "ldr.w r1, [%[a], #4]\n\t"              \
    "ldr.w r4, [%[w], #8]\n\t"

#define STEP                                \
    "smlad %[s0], r0, r2, %[s0]\n\t"        \
    "ldr.w r5, [%[a], #8]\n\t"              \
    "smlad %[s1], r0, r4, %[s1]\n\t"        \
    "ldr.w r3, [%[w], #4]\n\t"              \
    "smlad %[s2], r1, r2, %[s2]\n\t"        \
    "ldr.w r0, [%[a], #12]\n\t"             \
    "smlad %[s3], r1, r4, %[s3]\n\t"        \
    "smlad %[s4], r5, r2, %[s4]\n\t"        \
    "ldr.w r1, [%[a], #16]\n\t"             \
    "smlad %[s5], r5, r4, %[s5]\n\t"        \
    "ldr.w r4, [%[w], #12]\n\t"             \
    "smlad %[s0], r0, r3, %[s0]\n\t"        \
    "ldr.w r5, [%[a], #20]\n\t"             \
    "smlad %[s2], r1, r3, %[s2]\n\t"        \
    "ldr.w r2, [%[w], #16]!\n\t"            \
    "smlad %[s1], r0, r4, %[s1]\n\t"        \
    "ldr.w r0, [%[a], #24]!\n\t"            \
    "smlad %[s3], r1, r4, %[s3]\n\t"        \
    "ldr.w r1, [%[a], #4]\n\t"              \
    "smlad %[s4], r5, r3, %[s4]\n\t"        \
    "smlad %[s5], r5, r4, %[s5]\n\t"        \
    "ldr.w r4, [%[w], #8]\n\t"

#else

enum { STEP_BYTES = 72, BEGUN = 1 };

#define W_END "r5"
#define LAST_STEP STEP

// Two words of each channel with two of each value. A load behind a load takes one cycle on M4, one
// behind a product two.
#define STEP                                \
    LOAD_ODD_WORDS                          \
    OF_WORD("%[s0]", "%[s1]", "%[s2]", "%[s3]", "%[s4]", "%[s5]") \
    EVEN_WORDS

// The biases, and the first step, whose sums begin with them.
#define BEGIN                               \
    "ldr.w %[s0], [%[w]], #8\n\t"           \
    "ldr.w %[s1], [%[w], #-4]\n\t"          \
    "ldr r5, %[w_end]\n\t"                  \
    LOAD_ODD_WORDS                          \
    OF_WORD("%[s0]", "%[s1]", "%[s0]", "%[s1]", "%[s0]", "%[s1]") \
    EVEN_WORDS

#define LOAD_ODD_WORDS                      \
    "ldr.n r3, [%[w], #4]\n\t"              \
    "ldr.n r4, [%[w], #12]\n\t"             \
    "ldr.n r0, [%[a], #12]\n\t"             \
    "ldr.n r1, [%[a], #16]\n\t"             \
    "ldr.n r2, [%[a], #20]\n\t"

#define EVEN_WORDS                          \
    "ldr.n r4, [%[w], #8]\n\t"              \
    "ldr.w r3, [%[w]], #16\n\t"             \
    "ldr.n r1, [%[a], #4]\n\t"              \
    "ldr.n r2, [%[a], #8]\n\t"              \
    "ldr.w r0, [%[a]], #24\n\t"             \
    OF_WORD("%[s0]", "%[s1]", "%[s2]", "%[s3]", "%[s4]", "%[s5]")

#define OF_WORD(t0, t1, t2, t3, t4, t5)     \
    "smlad %[s2], r1, r3, " t2 "\n\t"       \
    "smlad %[s3], r1, r4, " t3 "\n\t"       \
    "smlad %[s4], r2, r3, " t4 "\n\t"       \
    "smlad %[s5], r2, r4, " t5 "\n\t"       \
    "smlad %[s0], r0, r3, " t0 "\n\t"       \
    "smlad %[s1], r0, r4, " t1 "\n\t"

#endif

#define FINISH_3x2                                           \
    FINISH_BEGIN("%[s0]", "r0", "r2", "%[w]")                   \
    FINISH_BEGIN("%[s1]", "r3", "r5", "%[w]")                   \
    FINISH_NEXT("%[s0]", "r1", "%[s2]", "r0", "r2", "%[w]")     \
    FINISH_NEXT("%[s1]", "r4", "%[s3]", "r3", "r5", "%[w]")     \
    FINISH_NEXT("%[s2]", "r1", "%[s4]", "r0", "r2", "%[w]")     \
    FINISH_NEXT("%[s3]", "r4", "%[s5]", "r3", "r5", "%[w]")     \
    FINISH_END("%[s4]", "r1")                                   \
    FINISH_END("%[s5]", "r4")

void pt_multiply_tile_3x2(const pt_tile_3x2 *x, const uint32_t *pair, int32_t stride, int8_t *out) {
    const uint32_t *w_end = pair + 2 + 4 * x->steps, *w = pair, *a = x->values, *row = a;
    uint32_t enter = pt_spare_code(x->steps - BEGUN, 8, STEP_BYTES);
    const int8_t *last = out + x->last;
    int32_t rows = x->rows, gap = x->gap, row_bytes = x->row, out_bytes = x->out_row;
    const int32_t out_back = out_bytes - x->last;
    int32_t s0, s1, s2, s3, s4, s5;
    __asm__ volatile(
        FIND_ENTRANCE
        "1:\n\t"
        BEGIN
        "ldr pc, %[enter]\n"
        "2:\n\t"
        ".rept 7\n\t"
        STEP
        ".endr\n\t"
        LAST_STEP
        "cmp %[w], " W_END "\n\t"
        "bne 2b\n\t"
        "ldmia %[w], {r0-r5}\n\t"
        FINISH_3x2
        "ldr r0, %[out]\n\t"
        "ldr r1, %[stride]\n\t"
        "ldr r3, %[last]\n\t"
        "ldr %[w], %[gap]\n\t"
        "add r2, r0, r1\n\t"
        "strb %[s0], [r0]\n\t"
        "strb %[s1], [r0, #1]\n\t"
        "add r4, r2, r1\n\t"
        "add %[a], %[w]\n\t"
        "strb %[s2], [r2]\n\t"
        "strb %[s3], [r2, #1]\n\t"
        "add r2, r4, r1\n\t"
        "strb %[s4], [r4]\n\t"
        "strb %[s5], [r4, #1]\n\t"
        "str r2, %[out]\n\t"
        "ldr %[w], %[pair]\n\t"
        "cmp r2, r3\n\t"
        "bls 1b\n\t"
        "str r3, %[out]\n\t" /* the row's last block */
        "cmp r0, r3\n\t"
        "bne 1b\n\t"
        "ldr r1, %[rows]\n\t" /* the next row */
        "ldr r2, %[out_back]\n\t"
        "ldr r4, %[out_bytes]\n\t"
        "ldr r5, %[row_bytes]\n\t"
        "ldr %[a], %[row]\n\t"
        "add r0, r2\n\t"
        "add r3, r4\n\t"
        "add %[a], r5\n\t"
        "str r0, %[out]\n\t"
        "str r3, %[last]\n\t"
        "str %[a], %[row]\n\t"
        "subs r1, #1\n\t"
        "str r1, %[rows]\n\t"
        "bne 1b"
        : [w] "+&l"(w), [a] "+&l"(a), [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2),
          [s3] "=&r"(s3), [s4] "=&r"(s4), [s5] "=&r"(s5), [enter] "+m"(enter), [out] "+m"(out),
          [last] "+m"(last), [row] "+m"(row), [rows] "+m"(rows)
        : [pair] "m"(pair), [stride] "m"(stride), [w_end] "m"(w_end), [gap] "m"(gap), [out_back] "m"(out_back),
          [out_bytes] "m"(out_bytes), [row_bytes] "m"(row_bytes)
        : "r0", "r1", "r2", "r3", "r4", "r5", "cc", "memory");
}

// clang-format on

#endif
