// int8 GEMM tiles for ARMv6-M, requantized: 4 patches x 1 channel (pt_multiply_2x1) and 2 patches x
// 1 channel (1x1, words, packed). A MULS makes two products: two of them, with values of one pair
// and weights of one channel, fit into 16 bits each, unless all are -128. All are added in 32 bits,
// and the sums of the second patch alone beside it: ASRS leaves in the carry that a negative sum of
// the first patch has borrowed from the second.
#ifndef PT_ARCH_V6M_PRODUCTS_H
#define PT_ARCH_V6M_PRODUCTS_H

#include "arch/offsets.h"
#include <stdint.h>

// Arguments of the tile loops: patches, outputs and channels of a layer.
typedef struct pt_tile_args {
    const int32_t *bias, *multipliers, *shifts; // of the next channel
    int32_t center;                             // see PT_CHANNELS
    int8_t *out;
    int32_t out_step; // bytes between the outputs of patches
    const uint32_t *patches;
    int32_t unrolled, steps, odd; // bytes of a channel's weights: in unrolled steps, in steps, rest
    const void *end;              // of the weights
    int32_t low, halvings;        // of the channel: half of the multiplier, right shifts but one
    int32_t rounding;             // the output's offset and a half, doubled
    int32_t unused[2];
    int32_t sums[4];
} pt_tile_args;

PT_OFFSET(pt_tile_args, bias, 0);
PT_OFFSET(pt_tile_args, multipliers, 4);
PT_OFFSET(pt_tile_args, shifts, 8);
PT_OFFSET(pt_tile_args, center, 12);
PT_OFFSET(pt_tile_args, out, 16);
PT_OFFSET(pt_tile_args, out_step, 20);
PT_OFFSET(pt_tile_args, patches, 24);
PT_OFFSET(pt_tile_args, unrolled, 28);
PT_OFFSET(pt_tile_args, steps, 32);
PT_OFFSET(pt_tile_args, odd, 36);
PT_OFFSET(pt_tile_args, end, 40);
PT_OFFSET(pt_tile_args, low, 44);
PT_OFFSET(pt_tile_args, halvings, 48);
PT_OFFSET(pt_tile_args, rounding, 52);
PT_OFFSET(pt_tile_args, sums, 64);
PT_SIZE(pt_tile_args, 80);

// clang-format off
// ---- products: r0 patches, r1 weights, lr the end of the pt_tile_args

// Sets r10 to the end of unrolled steps and r11 to the end of steps of this channel, and clears the
// sums.
#define PT_BEGIN            \
    "mov r2, lr\n\t"        \
    "subs r2, #80\n\t"      \
    "ldr r0, [r2, #24]\n\t" \
    "ldr r3, [r2, #28]\n\t" \
    "adds r3, r3, r1\n\t"   \
    "mov r10, r3\n\t"       \
    "ldr r3, [r2, #32]\n\t" \
    "adds r3, r3, r1\n\t"   \
    "mov r11, r3\n\t"       \
    "ldr r3, [r2, #36]\n\t" \
    "mov r12, r3\n\t"       \
    "movs r3, #0\n\t"       \
    "movs r5, #0\n\t"       \
    "mov r8, r3\n\t"        \
    "mov r9, r3\n\t"

// Loads two weights.
#define PT_WEIGHTS(i)                \
    "ldrb r2, [r1, #" #i "]\n\t"     \
    "ldrb r4, [r1, #" #i " + 1]\n\t" \
    "sxtb r2, r2\n\t"                \
    "sxtb r4, r4\n\t"

// Adds their products with a pair to the sum of all and to the second sum.
#define PT_ADD(all, second)   \
    "ldmia r0!, {r6, r7}\n\t" \
    "muls r6, r2, r6\n\t"     \
    "muls r7, r4, r7\n\t"     \
    "adds r6, r6, r7\n\t"     \
    "add " all ", r6\n\t"     \
    "asrs r6, r6, #16\n\t"    \
    "adcs " second ", r6\n\t"

// Computes the sums over the depth, by `add` of two values at a time.
#define PT_PRODUCTS(add)                         \
    PT_BEGIN                                     \
    "b 2f\n\t"                                   \
    "1:\n\t" PT_WEIGHTS(0) add PT_WEIGHTS(2) add \
    PT_WEIGHTS(4) add PT_WEIGHTS(6) add          \
    "adds r1, #8\n\t"                            \
    "2:\n\t"                                     \
    "cmp r1, r10\n\t"                            \
    "bne 1b\n\t"                                 \
    "b 4f\n\t"                                   \
    "3:\n\t" PT_WEIGHTS(0) add                   \
    "adds r1, #2\n\t"                            \
    "4:\n\t"                                     \
    "cmp r1, r11\n\t"                            \
    "bne 3b\n\t"                                 \
    "mov r2, r12\n\t"                            \
    "cmp r2, #0\n\t"                             \
    "beq 5f\n\t"                                 \
    "ldrb r2, [r1]\n\t" /* one more */           \
    "sxtb r2, r2\n\t"                            \
    "movs r4, #0\n\t" add                        \
    "adds r1, #1\n\t"                            \
    "5:\n\t"

// Multiplies one pair, by words of four weights.
#define PT_FOUR            \
    "ldmia r1!, {r5}\n\t"  \
    "sxtb r2, r5\n\t"      \
    "lsls r4, r5, #16\n\t" \
    "asrs r4, r4, #24\n\t" \
    PT_ADD("r8", "r3")     \
    "lsls r2, r5, #8\n\t"  \
    "asrs r2, r2, #24\n\t" \
    "asrs r4, r5, #24\n\t" \
    PT_ADD("r8", "r3")

#define PT_WORD_PRODUCTS                     \
    PT_BEGIN                                 \
    "b 2f\n\t"                               \
    "1:\n\t" PT_FOUR PT_FOUR PT_FOUR PT_FOUR \
    "2:\n\t"                                 \
    "cmp r1, r10\n\t"                        \
    "bne 1b\n\t"                             \
    "b 4f\n\t"                               \
    "3:\n\t" PT_FOUR                         \
    "4:\n\t"                                 \
    "cmp r1, r11\n\t"                        \
    "bne 3b\n\t"

// Computes the first sum of a pair.
#define PT_FIRST(first, all, second) \
    "mov " first ", " all "\n\t"     \
    "lsls r6, " second ", #16\n\t"   \
    "subs " first ", " first ", r6\n\t"

// Multiplies two values with a packed word of weights: the upper half is the sum of both products.
#define PT_ADD_PACKED(weights)   \
    "ldmia r0!, {r6, r7}\n\t"      \
    "muls r6, " weights ", r6\n\t" \
    "muls r7, " weights ", r7\n\t" \
    "asrs r6, r6, #16\n\t"         \
    "adcs r3, r6\n\t"              \
    "asrs r7, r7, #16\n\t"         \
    "adcs r5, r7\n\t"

#define PT_FOUR_PACKED      \
    "ldmia r1!, {r2, r4}\n\t" \
    PT_ADD_PACKED("r2") PT_ADD_PACKED("r4")

#define PT_PACKED_PRODUCTS                                                     \
    PT_BEGIN                                                                     \
    "b 2f\n\t"                                                                   \
    "1:\n\t" PT_FOUR_PACKED PT_FOUR_PACKED PT_FOUR_PACKED PT_FOUR_PACKED \
    "2:\n\t"                                                                     \
    "cmp r1, r10\n\t"                                                            \
    "bne 1b\n\t"                                                                 \
    "b 4f\n\t"                                                                   \
    "3:\n\t" PT_FOUR_PACKED                                                    \
    "4:\n\t"                                                                     \
    "cmp r1, r11\n\t"                                                            \
    "bne 3b\n\t"

// Stores p->sums, and sets r0 to the first of them.
#define PT_STORE(registers, bytes)   \
    "mov r0, lr\n\t"                 \
    "subs r0, #" #bytes "\n\t"       \
    "stmia r0!, {" registers "}\n\t" \
    "subs r0, #" #bytes "\n\t"

// ---- parameters: r2 bias, r6 multiplier, r1 shift, r7 behind p->shifts; the weights stay in r10

#define PT_PARAMETERS             \
    "mov r10, r1\n\t"             \
    "mov r7, lr\n\t"              \
    "subs r7, #80\n\t"            \
    "ldmia r7!, {r3, r4, r5}\n\t" \
    "ldmia r3!, {r2}\n\t"         \
    "ldmia r4!, {r6}\n\t"         \
    "ldmia r5!, {r1}\n\t"         \
    "subs r7, #12\n\t"            \
    "stmia r7!, {r3, r4, r5}\n\t"

#define PT_PACKED_PARAMETERS        \
    "ldmia r1!, {r2, r3, r6, r7}\n\t" \
    "mov r10, r1\n\t"                 \
    "movs r1, r3\n\t"                 \
    "mov r7, lr\n\t"                  \
    "subs r7, #68\n\t"

// Computes the sums of each channel, and requantizes them as pt_scale does.
//
// An output is a sum times the multiplier, in units of 2^(31 + right shifts), rounded. With 16 bits
// of each factor, in units of 2^21, the product differs from the exact one by less than PT_ERROR,
// and gives the same output unless the next output is as near. In these 5 cases of 64, and for
// channels with fewer than 6 right shifts or a multiplier below 2^30, the exact product is
// computed. In all other channels a sum of more than 16 bits saturates.
enum { PT_ERROR = 5 << 14 };

#define PT_CHANNELS(sums, parameters)         \
    ".syntax unified\n"                       \
    "0:\n\t" sums parameters                  \
    "mov r12, r2\n\t"                         \
    "ldmia r7!, {r3, r4, r5}\n\t"             \
    "mov r8, r3\n\t"                          \
    "mov r11, r5\n\t"                         \
    "adds r5, r4, #1\n\t"                     \
    "subs r7, #8\n\t"                         \
    "str r5, [r7]\n\t"                        \
    "uxth r5, r6\n\t"                         \
    "str r5, [r7, #28]\n\t"                   \
    "lsrs r2, r6, #16\n\t"                    \
    "mvns r1, r1\n\t"                         \
    "str r1, [r7, #32]\n\t"                   \
    "movs r3, #15\n\t"                        \
    "movs r5, #0\n\t"                         \
    "subs r1, #5\n\t"                         \
    "bmi 6f\n\t"                              \
    "lsrs r6, r2, #14\n\t"                    \
    "beq 6f\n\t"                              \
    "movs r3, r1\n\t"                         \
    "movs r5, #59\n\t"                        \
    "lsls r5, r5, #26\n\t"                    \
    "6:\n\t"                                  \
    "mov r9, r5\n\t"                          \
    "movs r1, r4\n\t"                         \
    "6:\n\t"          /* an output */         \
    "ldmia r0!, {r4}\n\t"                     \
    "add r4, r12\n\t"                         \
    "movs r5, r4\n\t"                         \
    "asrs r5, r3\n\t"                         \
    "sxth r6, r5\n\t"                         \
    "cmp r6, r5\n\t"                          \
    "bne 9f\n\t"                              \
    "muls r5, r2, r5\n\t"                     \
    "add r5, r8\n\t"                          \
    "lsls r6, r5, #11\n\t"                    \
    "cmp r6, r9\n\t"                          \
    "bhs 10f\n\t"                             \
    "asrs r4, r5, #21\n\t"                    \
    "7:\n\t"                                  \
    "sxtb r5, r4\n\t"                         \
    "cmp r5, r4\n\t"                          \
    "bne 9f\n\t"                              \
    "8:\n\t"                                  \
    "strb r4, [r1]\n\t"                       \
    "add r1, r11\n\t"                         \
    "cmp r0, lr\n\t"                          \
    "bne 6b\n\t"                              \
    "mov r1, r10\n\t"                         \
    "mov r2, lr\n\t"                          \
    "subs r2, #40\n\t"                        \
    "ldr r2, [r2]\n\t"                        \
    "cmp r1, r2\n\t"                          \
    "beq 11f\n\t"                             \
    "b 0b\n\t"                                \
    "9:\n\t"          /* beyond an int8 */    \
    "asrs r5, r4, #31\n\t"                    \
    "movs r4, #127\n\t"                       \
    "eors r4, r5\n\t"                         \
    "b 8b\n\t"                                \
    "10:\n\t"         /* the exact product */ \
    "push {r3}\n\t"                           \
    "mov r3, lr\n\t"                          \
    "subs r3, #36\n\t"                        \
    "ldr r3, [r3]\n\t"                        \
    "uxth r5, r4\n\t"                         \
    "asrs r4, r4, #16\n\t"                    \
    "movs r6, r5\n\t"                         \
    "muls r6, r3, r6\n\t"                     \
    "lsrs r6, r6, #16\n\t"                    \
    "movs r7, r4\n\t"                         \
    "muls r7, r3, r7\n\t"                     \
    "adds r7, r7, r6\n\t"                     \
    "muls r5, r2, r5\n\t"                     \
    "uxth r6, r7\n\t"                         \
    "adds r5, r5, r6\n\t"                     \
    "asrs r6, r7, #16\n\t"                    \
    "asrs r7, r4, #31\n\t"                    \
    "muls r4, r2, r4\n\t"                     \
    "adds r4, r4, r6\n\t"                     \
    "lsls r4, r4, #1\n\t"                     \
    "adds r4, r4, r7\n\t"                     \
    "lsrs r5, r5, #15\n\t"                    \
    "adcs r4, r5\n\t" /* rounded */           \
    "mov r3, lr\n\t"                          \
    "subs r3, #32\n\t"                        \
    "ldmia r3!, {r5, r6}\n\t"                 \
    "lsls r6, r5\n\t"                         \
    "adds r4, r4, r6\n\t"                     \
    "adds r5, #1\n\t"                         \
    "asrs r4, r5\n\t"                         \
    "pop {r3}\n\t"                            \
    "b 7b\n\t"                                \
    "11:"

// Computes the outputs of patches 0 to 3, if pt_scale covers all sums.
static __attribute__((noinline)) void pt_multiply_2x1(pt_tile_args *p, const void *weights) {
    register const void *w __asm__("r1") = weights;
    register pt_tile_args *end __asm__("lr") = p + 1;
    __asm__ volatile(PT_UNIFIED PT_CHANNELS(PT_PRODUCTS(PT_ADD("r8", "r3") PT_ADD("r9", "r5"))
                                 PT_FIRST("r2", "r8", "r3") PT_FIRST("r4", "r9", "r5")
                                     PT_STORE("r2, r3, r4, r5", 16),
                                 PT_PARAMETERS)
                     : "+r"(w), "+r"(end)
                     :
                     : "r0", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12",
                       "cc", "memory");
}

// Multiplies patches 0 and 1.
static __attribute__((noinline)) void pt_multiply_1x1(pt_tile_args *p, const void *weights) {
    register const void *w __asm__("r1") = weights;
    register pt_tile_args *end __asm__("lr") = p + 1;
    __asm__ volatile(PT_UNIFIED PT_CHANNELS(PT_PRODUCTS(PT_ADD("r8", "r3")) PT_FIRST("r2", "r8", "r3")
                                     PT_STORE("r2, r3", 8),
                                 PT_PARAMETERS)
                     : "+r"(w), "+r"(end)
                     :
                     : "r0", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12",
                       "cc", "memory");
}

// The same by words of weights, for a depth that is a multiple of 4.
static __attribute__((noinline)) void pt_multiply_words(pt_tile_args *p, const void *weights) {
    register const void *w __asm__("r1") = weights;
    register pt_tile_args *end __asm__("lr") = p + 1;
    __asm__ volatile(PT_UNIFIED PT_CHANNELS(PT_WORD_PRODUCTS PT_FIRST("r2", "r8", "r3") PT_STORE("r2, r3", 8),
                                 PT_PARAMETERS)
                     : "+r"(w), "+r"(end)
                     :
                     : "r0", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12",
                       "cc", "memory");
}

// The same with packed weights: bias, shift and multiplier follow the weights of each channel.
static __attribute__((noinline)) void pt_multiply_packed(pt_tile_args *p, const void *weights) {
    register const void *w __asm__("r1") = weights;
    register pt_tile_args *end __asm__("lr") = p + 1;
    __asm__ volatile(PT_UNIFIED PT_CHANNELS(PT_PACKED_PRODUCTS PT_STORE("r3, r5", 8),
                                 PT_PACKED_PARAMETERS)
                     : "+r"(w), "+r"(end)
                     :
                     : "r0", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12",
                       "cc", "memory");
}

#undef PT_BEGIN
#undef PT_WEIGHTS
#undef PT_ADD
#undef PT_PRODUCTS
#undef PT_FOUR
#undef PT_WORD_PRODUCTS
#undef PT_FIRST
#undef PT_ADD_PACKED
#undef PT_FOUR_PACKED
#undef PT_PACKED_PRODUCTS
#undef PT_STORE
#undef PT_PARAMETERS
#undef PT_PACKED_PARAMETERS
#undef PT_CHANNELS
// clang-format on

// ---- weights

// Sums `count` weights, a multiple of 4; stops before a weight of -128.
static inline int32_t pt_sum_weights(const int8_t **weights, int32_t count) {
    const int8_t *end = *weights + count;
    int32_t sum = 0, k = -count, w, min = INT8_MIN;
    __asm__ volatile(PT_UNIFIED "b 2f\n"
                                "1:\n\t"
                                ".rept 4\n\t"
                                "ldrsb %[w], [%[end], %[k]]\n\t"
                                "cmp %[w], %[min]\n\t"
                                "beq 3f\n\t"
                                "adds %[sum], %[sum], %[w]\n\t"
                                "adds %[k], #1\n\t"
                                ".endr\n"
                                "2:\n\t"
                                "cmp %[k], #0\n\t"
                                "bne 1b\n"
                                "3:"
                     : [sum] "+l"(sum), [w] "=&l"(w), [k] "+l"(k)
                     : [end] "l"(end), [min] "h"(min)
                     : "cc", "memory");
    *weights = end + k;
    return sum;
}

#endif
