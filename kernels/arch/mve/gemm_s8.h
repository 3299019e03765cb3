// int8 GEMM with MVE, requantized: 4 patches x 4 channels x 16 values by VMLADAVA, two channels at
// a time. Loops for 16, 32, 48, 64 and 128 values of depth keep parts of the patches in registers;
// another loop takes any depth; pt_multiply_windows is for 3x3 kernels. Called by conv_s8.c, which
// packs 16 bytes of each patch in turn. Plain weights at any alignment.
#ifndef PT_ARCH_MVE_GEMM_S8_H
#define PT_ARCH_MVE_GEMM_S8_H

#include "arch/offsets.h"
#include <arm_mve.h>
#include <stdint.h>

// The arguments of the loops over four patches by four rows of weights at a time.
//
// Patches are packed 16 bytes of each in turn; bytes beyond their ends may have any value. Rows of
// weights are contiguous, at any alignment, and the loops do not read beyond the last. Output
// [patch][channel] is sum + bias requantized: saturated to int8, for shifts in -31..-1 and
// multipliers from 0 up.
typedef struct pt_quads {
    const int32_t *bias, *multipliers, *shifts; // a multiple of 4
    const int8_t *packed;                       // a multiple of 4
    int32_t rounds;                             // set by pt_multiply_quads
    const void *entry;                          // likewise
    int32_t depth;
    int32_t last;          // used bytes of the last 16: 1..16
    int32_t output_offset; // -255..255
    int32_t quads;         // rows of weights / 4
    const int8_t *weights;
    uint32_t out[4]; // addresses of the four outputs of channel 0, multiples of 4
} pt_quads;

PT_OFFSET(pt_quads, bias, 0);
PT_OFFSET(pt_quads, multipliers, 4);
PT_OFFSET(pt_quads, shifts, 8);
PT_OFFSET(pt_quads, packed, 12);
PT_OFFSET(pt_quads, rounds, 16);
PT_OFFSET(pt_quads, entry, 20);
PT_OFFSET(pt_quads, depth, 24);
PT_OFFSET(pt_quads, last, 28);
PT_OFFSET(pt_quads, output_offset, 32);
PT_OFFSET(pt_quads, quads, 36);
PT_OFFSET(pt_quads, weights, 40);
PT_OFFSET(pt_quads, out, 44);

// clang-format off

// The loops compute the sums of a pair of rows with the four patches. r5 points into the patches,
// r1 and r3 into the rows; sums with the first row are in r0, r2, r4 and r6, with the second in r8,
// r10, r12 and lr. r9 is the bytes of a row, r11 the address for the sums; its bit 5 is set for the
// second pair. The stack contains, at
//
//     0    the sums of two pairs, 32 bytes each
//     64   the first ten fields of pt_quads
//     104  the address of the code for a pair
//     120  the stack pointer as it was

// ---- parts of loops

#define PT_QUADS_CLOBBER                                                             \
    "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", \
    "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory"

// Sets up the stack. Afterwards r1 is the weights, r5 the patches, r6 the rounds, r8 the depth, r9
// the bytes of the last part, and q7 the addresses of the outputs, less 4.
#define PT_BEGIN_QUADS        \
    "mov r3, sp\n\t"          \
    "sub r1, r3, #128\n\t"    \
    "bic r1, r1, #63\n\t"     \
    "mov sp, r1\n\t"          \
    "str r3, [sp, #120]\n\t"  \
    "add r1, sp, #64\n\t"     \
    "ldm r0!, {r2-r11}\n\t"   \
    "stm r1, {r2-r11}\n\t"    \
    "ldr r1, [r0], #4\n\t"    \
    "vldrw.u32 q7, [r0]\n\t"  \
    "vmov.i32 q0, #4\n\t"     \
    "vsub.i32 q7, q7, q0\n\t" \
    "mov r11, sp\n\t"

// Stores the address of the code for a pair: `label`.
#define PT_KEEP_CODE(label)          \
    "adr r2, " label "f\n\t"         \
    "adds r2, #1\n\t" /* of Thumb */ \
    "str r2, [sp, #104]\n\t"

// Stores the sums of a pair. Sets NE before the second pair; behind it branches to label 9.
#define PT_STORE_PAIR \
    "stm r11!, {r0, r2, r4, r6, r8, r10, r12, lr}\n\t"

#define PT_STORE_SUMS \
    PT_STORE_PAIR     \
    "tst r11, #32\n\t"

// Requantizes the sums of four rows to bytes in q0; r10 is the number of remaining quads. Products
// are rounded twice, halves away from zero. Instructions of one unit are not adjacent where
// possible, since the second would wait.
#define PT_REQUANTIZE_QUAD                                           \
    "ldrd r7, r11, [sp, #64]\n\t"                                    \
    "ldm r11!, {r8, r10, r12, lr}\n\t" /* multipliers */             \
    "ldm r7!, {r0, r2, r4, r6}\n\t"    /* biases */                  \
    "vldrw.u32 q1, [sp, #32]\n\t"      /* row 2 */                   \
    "vadd.i32 q1, q1, r4\n\t"                                        \
    "vldrw.u32 q0, [sp]\n\t"           /* row 0 */                   \
    "vadd.i32 q0, q0, r0\n\t"                                        \
    "vldrw.u32 q2, [sp, #16]\n\t"      /* row 1 */                   \
    "vqrdmulh.s32 q0, q0, r8\n\t"                                    \
    "strd r7, r11, [sp, #64]\n\t"                                    \
    "ldr r7, [sp, #72]\n\t"                                          \
    "movs r0, #1\n\t"                                                \
    "vqrdmulh.s32 q1, q1, r12\n\t"                                   \
    "vadd.i32 q2, q2, r2\n\t"                                        \
    "ldm r7!, {r2, r4, r8, r12}\n\t"   /* shifts */                  \
    "vqdmlah.s32 q0, q0, r0\n\t"                                     \
    "vrshl.s32 q0, r2\n\t"                                           \
    "vqdmlah.s32 q1, q1, r0\n\t"                                     \
    "vqmovnb.s32 q0, q0\n\t"           /* rows 0 and 2 in 16 bits */ \
    "vqrdmulh.s32 q2, q2, r10\n\t"                                   \
    "vrshl.s32 q1, r8\n\t"                                           \
    "vqmovnt.s32 q0, q1\n\t"                                         \
    "vqdmlah.s32 q2, q2, r0\n\t"                                     \
    "vrshl.s32 q2, r4\n\t"                                           \
    "str r7, [sp, #72]\n\t"                                          \
    "vqmovnb.s32 q2, q2\n\t"           /* rows 1 and 3 */            \
    "vldrw.u32 q1, [sp, #48]\n\t"      /* row 3 */                   \
    "vadd.i32 q1, q1, r6\n\t"                                        \
    "ldrd r8, r10, [sp, #96]\n\t"      /* output_offset, quads */    \
    "vqrdmulh.s32 q1, q1, lr\n\t"                                    \
    "vqadd.s16 q0, q0, r8\n\t"                                       \
    "vqdmlah.s32 q1, q1, r0\n\t"                                     \
    "vrshl.s32 q1, r12\n\t"                                          \
    "vqmovnt.s32 q2, q1\n\t"                                         \
    "mov r11, sp\n\t"                                                \
    "vqmovnb.s16 q0, q0\n\t"           /* all, in 8 bits */          \
    "subs r10, #1\n\t"                                               \
    "vqadd.s16 q2, q2, r8\n\t"                                       \
    "str r10, [sp, #100]\n\t"                                        \
    "vqmovnt.s16 q0, q2\n\t"

// Requantizes and stores the sums of two pairs, and continues with the next quad or ends.
#define PT_END_QUADS             \
    "9:\n\t"                     \
    PT_REQUANTIZE_QUAD           \
    "vstrw.32 q0, [q7, #4]!\n\t" \
    "it ne\n\t"                  \
    "ldrne pc, [sp, #104]\n\t"   \
    "ldr r0, [sp, #120]\n\t"     \
    "mov sp, r0"

// ---- a few parts of 16 bytes: four at most, or eight
//
// All products are written out, and 16 bytes of each patch, or two of each second one, stay in
// registers. Of the last part of a row only the bytes that count are read. A load takes no time of its
// own behind a product: another unit does it. `add` is empty for the first products, which set the
// sums, and a for the others, which are added.

#define PT_FIRST_ROW(part) \
    "vldrb.u8 q1, [r1, #16*" #part "]\n\t"

#define PT_OTHER_ROW(part) \
    "vldrb.u8 q2, [r3, #16*" #part "]\n\t"

#define PT_LAST_ROWS(part)                  \
    "vpstt\n\t"                             \
    "vldrbt.u8 q1, [r1, #16*" #part "]\n\t" \
    "vldrbt.u8 q2, [r3, #16*" #part "]\n\t"

#define PT_PATCH(part, i) \
    "vldrw.u32 q0, [r5, #64*" #part "+16*" #i "]\n\t"

// Multiplies a patch with a part of both rows; `between` is a load.
#define PT_WITH_ROWS(add, q, sum, between, other) \
    "vmladav" #add ".s8 " #sum ", " #q ", q1\n\t" \
    between                                       \
    "vmladav" #add ".s8 " #other ", " #q ", q2\n\t"

// Multiplies a part, with patch 3 in a register (RESIDENT) or loaded. q0 contains patch 0, q1 the
// first row; `other` loads the other row, next_row and next_patch the start of the next part.
#define PT_PART_RESIDENT(part, add, q, other, next_row, next_patch) \
    PT_WITH_ROWS(add, q0, r0, other, r8)                        \
    PT_PATCH(part, 1)                                           \
    PT_WITH_ROWS(add, q0, r2, , r10)                            \
    PT_PATCH(part, 2)                                           \
    PT_WITH_ROWS(add, q0, r4, , r12)                            \
    next_patch                                                  \
    PT_WITH_ROWS(add, q, r6, next_row, lr)

#define PT_PART_LOADED(part, add, other, next_row, next_patch) \
    PT_WITH_ROWS(add, q0, r0, other, r8)                       \
    PT_PATCH(part, 1)                                          \
    PT_WITH_ROWS(add, q0, r2, , r10)                           \
    PT_PATCH(part, 2)                                          \
    PT_WITH_ROWS(add, q0, r4, , r12)                           \
    PT_PATCH(part, 3)                                          \
    PT_WITH_ROWS(add, q0, r6, next_row, lr)                    \
    next_patch

// Loads the patches that stay in registers, at these byte offsets.
#define PT_LOAD_RESIDENT(first, second, third, fourth) \
    "vldrw.u32 q3, [r5, #" #first "]\n\t"     \
    "vldrw.u32 q4, [r5, #" #second "]\n\t"    \
    "vldrw.u32 q5, [r5, #" #third "]\n\t"     \
    "vldrw.u32 q6, [r5, #" #fourth "]\n\t"

// Move to the next two rows.
#define PT_MOVE_FIRST "add r1, r3, r9\n\t"
#define PT_MOVE_OTHER "add r3, r1, r9\n\t"

#define PT_END_PARTS(label) \
    PT_MOVE_FIRST           \
    PT_MOVE_OTHER           \
    PT_STORE_SUMS           \
    "bne " label "b\n\t"    \
    "b 9f\n\t"

// Ends the first of two unrolled pairs.
#define PT_BEGIN_OTHER \
    PT_MOVE_FIRST      \
    PT_FIRST_ROW(0)

#define PT_PAIR_OF_1                                     \
    PT_LAST_ROWS(0)                                      \
    PT_WITH_ROWS(, q3, r0, PT_MOVE_FIRST, r8)            \
    PT_WITH_ROWS(, q4, r2, PT_MOVE_OTHER, r10)           \
    PT_WITH_ROWS(, q5, r4, , r12)                        \
    PT_WITH_ROWS(, q6, r6, , lr)                         \
    PT_STORE_PAIR

#define PT_PAIR_OF_2(begin, next_row, next_patch)    \
    begin                                            \
    PT_WITH_ROWS(, q0, r0, PT_OTHER_ROW(0), r8)      \
    PT_PATCH(0, 1)                                   \
    PT_WITH_ROWS(, q0, r2, , r10)                    \
    PT_PATCH(1, 0)                                   \
    PT_WITH_ROWS(, q3, r4, , r12)                    \
    PT_WITH_ROWS(, q4, r6, , lr)                     \
    PT_LAST_ROWS(1)                                  \
    PT_WITH_ROWS(a, q0, r0, , r8)                    \
    PT_PATCH(1, 1)                                   \
    PT_WITH_ROWS(a, q0, r2, , r10)                   \
    next_patch                                       \
    PT_WITH_ROWS(a, q5, r4, , r12)                   \
    PT_WITH_ROWS(a, q6, r6, next_row, lr)            \
    PT_MOVE_OTHER                                    \
    PT_STORE_PAIR

#define PT_PAIR_OF_4(begin, next_row, next_patch)                                    \
    begin                                                                            \
    PT_PART_RESIDENT(0, , q3, PT_OTHER_ROW(0), PT_FIRST_ROW(1), PT_PATCH(1, 0))          \
    PT_PART_RESIDENT(1, a, q4, PT_OTHER_ROW(1), PT_FIRST_ROW(2), PT_PATCH(2, 0))         \
    PT_PART_RESIDENT(2, a, q5, PT_OTHER_ROW(2), , PT_PATCH(3, 0))                        \
    PT_LAST_ROWS(3)                                                                  \
    PT_PART_RESIDENT(3, a, q6, , next_row, next_patch)                                   \
    PT_MOVE_OTHER                                                                    \
    PT_STORE_PAIR

// ---- any number of parts

// A part of each patch, and of the two rows: 56 bytes of code together.
#define PT_NEXT_PATCH(q, sum, between, other)  \
    "vmladava.s8 " #sum ", " #q ", q4\n\t"     \
    between                                    \
    "vmladava.s8 " #other ", " #q ", q5\n\t"

#define PT_STEP_2X4                               \
    "vldrb.u8 q4, [r1], #16\n\t"                  \
    "vldrw.u32 q0, [r5], #64\n\t"                 \
    PT_NEXT_PATCH(q0, r0,                         \
                  "vldrb.u8 q5, [r3], #16\n\t", r8) \
    PT_REST_2X4

#define PT_REST_2X4                \
    "vldrw.u32 q1, [r5, #-48]\n\t" \
    PT_NEXT_PATCH(q1, r2, , r10)   \
    "vldrw.u32 q2, [r5, #-32]\n\t" \
    PT_NEXT_PATCH(q2, r4, , r12)   \
    "vldrw.u32 q3, [r5, #-16]\n\t" \
    PT_NEXT_PATCH(q3, r6, , lr)

static void __attribute__((noinline)) pt_multiply_quads(const pt_quads *quads) {
    register const pt_quads *r0 __asm__("r0") = quads;
    __asm__ volatile(
        PT_BEGIN_QUADS
        "adds r6, r8, #15\n\t"
        "lsrs r6, r6, #4\n\t"
        "subs r6, #1\n\t" // parts but the last
        "vctp.8 r9\n\t"   // the bytes of the last that count
        "mov r9, r8\n\t"
        "add r3, r1, r9\n\t"
        "cmp r6, #7\n\t"
        "beq 18f\n\t"
        "cmp r6, #3\n\t"
        "bhi 5f\n\t"
        "tbh [pc, r6, lsl #1]\n"
        "6:\n\t"
        ".short (11f - 6b) / 2\n\t"
        ".short (12f - 6b) / 2\n\t"
        ".short (13f - 6b) / 2\n\t"
        ".short (14f - 6b) / 2\n"

        ".balign 4\n"
        "11:\n\t" // one part
        PT_KEEP_CODE("1")
        PT_LOAD_RESIDENT(0, 16, 32, 48)
        ".balign 4\n"
        "1:\n\t"
        PT_PAIR_OF_1
        PT_PAIR_OF_1
        "b 9f\n\t"

        ".balign 4\n"
        "12:\n\t" // two
        PT_KEEP_CODE("2")
        PT_LOAD_RESIDENT(32, 48, 64+32, 64+48)
        ".balign 4\n"
        "2:\n\t"
        PT_PAIR_OF_2(PT_FIRST_ROW(0) PT_PATCH(0, 0), PT_BEGIN_OTHER, PT_PATCH(0, 0))
        PT_PAIR_OF_2(, PT_MOVE_FIRST, )
        "b 9f\n\t"

        ".balign 4\n"
        "13:\n\t" // three
        PT_KEEP_CODE("3")
        PT_LOAD_RESIDENT(48, 64+48, 128+32, 128+48)
        ".balign 4\n"
        "3:\n\t"
        PT_FIRST_ROW(0)
        PT_PATCH(0, 0)
        PT_PART_RESIDENT(0, , q3, PT_OTHER_ROW(0), PT_FIRST_ROW(1), PT_PATCH(1, 0))
        PT_PART_RESIDENT(1, a, q4, PT_OTHER_ROW(1), , PT_PATCH(2, 0))
        PT_LAST_ROWS(2)
        PT_WITH_ROWS(a, q0, r0, , r8)
        PT_PATCH(2, 1)
        PT_WITH_ROWS(a, q0, r2, , r10)
        PT_WITH_ROWS(a, q5, r4, , r12)
        PT_WITH_ROWS(a, q6, r6, , lr)
        PT_END_PARTS("3")

        ".balign 4\n"
        "18:\n\t" // eight
        PT_KEEP_CODE("10")
        PT_LOAD_RESIDENT(48, 64+48, 128+48, 192+48)
        ".balign 4\n"
        "10:\n\t"
        PT_FIRST_ROW(0)
        PT_PATCH(0, 0)
        PT_PART_RESIDENT(0, , q3, PT_OTHER_ROW(0), PT_FIRST_ROW(1), PT_PATCH(1, 0))
        PT_PART_RESIDENT(1, a, q4, PT_OTHER_ROW(1), PT_FIRST_ROW(2), PT_PATCH(2, 0))
        PT_PART_RESIDENT(2, a, q5, PT_OTHER_ROW(2), PT_FIRST_ROW(3), PT_PATCH(3, 0))
        PT_PART_RESIDENT(3, a, q6, PT_OTHER_ROW(3), PT_FIRST_ROW(4), PT_PATCH(4, 0))
        PT_PART_LOADED(4, a, PT_OTHER_ROW(4), PT_FIRST_ROW(5), PT_PATCH(5, 0))
        PT_PART_LOADED(5, a, PT_OTHER_ROW(5), PT_FIRST_ROW(6), PT_PATCH(6, 0))
        PT_PART_LOADED(6, a, PT_OTHER_ROW(6), , PT_PATCH(7, 0))
        PT_LAST_ROWS(7)
        PT_PART_LOADED(7, a, , , )
        PT_END_PARTS("10")

        // Other depths: rounds of four parts, entered so that all parts but the last remain.
        ".balign 4\n"
        "5:\n\t"
        "add r7, r6, #3\n\t"
        "lsrs r7, r7, #2\n\t"
        "str r7, [sp, #80]\n\t"      // rounds
        "rsb r6, r6, r7, lsl #2\n\t" // steps that are left out
        "rsb r6, r6, r6, lsl #3\n\t"
        "lsls r6, r6, #3\n\t"        // 56 bytes each
        "adr r2, 7f\n\t"
        "add r2, r2, r6\n\t"
        "adds r2, #1\n\t"
        "str r2, [sp, #84]\n\t"      // entry
        PT_KEEP_CODE("8")
        ".balign 4\n"
        "8:\n\t"
        "ldrd r5, r7, [sp, #76]\n\t" // packed, rounds
        "clrm {r0, r2, r4, r6, r8, r10, r12, lr}\n\t"
        "ldr pc, [sp, #84]\n\t"
        ".balign 4\n"
        "7:\n\t"
        PT_STEP_2X4
        PT_STEP_2X4
        PT_STEP_2X4
        PT_STEP_2X4
        "subs r7, #1\n\t"
        "bne 7b\n\t"
        "vldrw.u32 q0, [r5], #64\n\t"
        "vpstt\n\t"
        "vldrbt.u8 q4, [r1]\n\t"
        "vldrbt.u8 q5, [r3]\n\t"
        PT_NEXT_PATCH(q0, r0, , r8)
        PT_REST_2X4
        "ldr r7, [sp, #92]\n\t"      // last
        "add r1, r3, r7\n\t"
        "add r3, r1, r9\n\t"
        PT_STORE_SUMS
        "bne 8b\n\t"
        "b 9f\n\t"

        ".balign 4\n"
        "14:\n\t" // four
        PT_KEEP_CODE("4")
        PT_LOAD_RESIDENT(48, 64+48, 128+48, 192+48)
        ".balign 4\n"
        "4:\n\t"
        PT_PAIR_OF_4(PT_FIRST_ROW(0) PT_PATCH(0, 0), PT_BEGIN_OTHER, PT_PATCH(0, 0))
        PT_PAIR_OF_4(, PT_MOVE_FIRST, )
        PT_END_QUADS
        : "+r"(r0)
        :
        : PT_QUADS_CLOBBER);
}

// clang-format on

// ---- windows of 3 x 3

// Four neighbouring patches share columns: the packed block has, for each row and each 16 channels,
// six pixels of 16 bytes at stride 1, nine at stride 2. The weights are aligned to 4. `rounds`
// selects the code:
typedef enum pt_windows {
    PT_WINDOWS_16,
    PT_WINDOWS_32,
    PT_WINDOWS_64,
    PT_WINDOWS_16_APART, // at stride 2
    PT_WINDOWS_32_APART,
} pt_windows;

PT_STATIC_ASSERT(PT_WINDOWS_16 == 0 && PT_WINDOWS_32 == 1 && PT_WINDOWS_64 == 2 &&
                     PT_WINDOWS_16_APART == 3 && PT_WINDOWS_32_APART == 4,
                 "assembler has a table by these");

// clang-format off

// A load behind a product costs no time, since another unit executes it. So each load stands alone
// between two products, and the weights use three registers. A part is 16 channels of a row of
// taps: it begins with column 0 in q0 and the first row's tap 0 in q4, and ends by loading these
// for the next part. The last load may read 16 bytes behind the packed pixels.

// A column with a tap of one of the rows.
#define PT_WITH(add, sum, column, tap) \
    "vmladav" #add ".s8 " #sum ", " #column ", " #tap "\n\t"

// 16 channels of pixel i of a row of `channels`, and of tap i.
#define PT_COLUMN(columns, q, part, i) \
    "vldrw.u32 " #q ", [r5, #16*(" #columns "*" #part "+" #i ")]\n\t"

#define PT_TAP(row, channels, q, part, i) \
    "vldrw.u32 " #q ", [" #row ", #" #channels "*" #i "+16*" #part "]\n\t"

// The first of the next row of taps.
#define PT_NEXT_TAP(row, channels, q) \
    "vldrw.u32 " #q ", [" #row ", #3*" #channels "]!\n\t"

#define PT_NEXT_COLUMN(columns, channels) \
    "vldrw.u32 q0, [r5, #" #columns "*" #channels "]!\n\t"

// `other`: loads the second row's tap 0; next_tap and next_column: what the next part begins with.
// `add` is empty for the first products, which set the sums, and a for the others.
#define PT_ROW_PART(add, channels, part, other, next_tap, next_column) \
    PT_WITH(add, r0, q0, q4)                                           \
    PT_COLUMN(6, q1, part, 1)                                          \
    PT_WITH(add, r2, q1, q4)                                           \
    PT_COLUMN(6, q2, part, 2)                                          \
    PT_WITH(add, r4, q2, q4)                                           \
    PT_COLUMN(6, q3, part, 3)                                          \
    PT_WITH(add, r6, q3, q4)                                           \
    other                                                              \
    PT_WITH(add, r8, q0, q5)                                           \
    PT_COLUMN(6, q0, part, 4)                                          \
    PT_WITH(add, r10, q1, q5)                                          \
    PT_TAP(r1, channels, q6, part, 1)                                  \
    PT_WITH(add, r12, q2, q5)                                          \
    PT_TAP(r3, channels, q4, part, 1)                                  \
    PT_WITH(add, lr, q3, q5)                                           \
    PT_WITH(a, r0, q1, q6)                                             \
    PT_TAP(r1, channels, q5, part, 2)                                  \
    PT_WITH(a, r2, q2, q6)                                             \
    PT_WITH(a, r4, q3, q6)                                             \
    PT_WITH(a, r6, q0, q6)                                             \
    PT_TAP(r3, channels, q6, part, 2)                                  \
    PT_WITH(a, r8, q1, q4)                                             \
    PT_COLUMN(6, q1, part, 5)                                          \
    PT_WITH(a, r10, q2, q4)                                            \
    PT_WITH(a, r12, q3, q4)                                            \
    PT_WITH(a, lr, q0, q4)                                             \
    next_tap                                                           \
    PT_WITH(a, r0, q2, q5)                                             \
    PT_WITH(a, r2, q3, q5)                                             \
    PT_WITH(a, r4, q0, q5)                                             \
    PT_WITH(a, r6, q1, q5)                                             \
    PT_WITH(a, r12, q0, q6)                                            \
    next_column                                                        \
    PT_WITH(a, r8, q2, q6)                                             \
    PT_WITH(a, r10, q3, q6)                                            \
    PT_WITH(a, lr, q1, q6)

// The same at stride 2: tap 2 comes before tap 1, which shares no column with the others.
#define PT_ROW_PART_APART(add, channels, part, other, next_tap, next_column) \
    PT_WITH(add, r0, q0, q4)                                                 \
    PT_COLUMN(9, q1, part, 2)                                                \
    PT_WITH(add, r2, q1, q4)                                                 \
    PT_COLUMN(9, q2, part, 4)                                                \
    PT_WITH(add, r4, q2, q4)                                                 \
    PT_COLUMN(9, q3, part, 6)                                                \
    PT_WITH(add, r6, q3, q4)                                                 \
    other                                                                    \
    PT_WITH(add, r8, q0, q5)                                                 \
    PT_COLUMN(9, q0, part, 8)                                                \
    PT_WITH(add, r10, q1, q5)                                                \
    PT_TAP(r1, channels, q6, part, 2)                                        \
    PT_WITH(add, r12, q2, q5)                                                \
    PT_TAP(r3, channels, q4, part, 2)                                        \
    PT_WITH(add, lr, q3, q5)                                                 \
    PT_TAP(r1, channels, q5, part, 1)                                        \
    PT_WITH(a, r0, q1, q6)                                                   \
    PT_WITH(a, r2, q2, q6)                                                   \
    PT_WITH(a, r4, q3, q6)                                                   \
    PT_WITH(a, r6, q0, q6)                                                   \
    PT_TAP(r3, channels, q6, part, 1)                                        \
    PT_WITH(a, r8, q1, q4)                                                   \
    PT_COLUMN(9, q1, part, 1)                                                \
    PT_WITH(a, r10, q2, q4)                                                  \
    PT_COLUMN(9, q2, part, 3)                                                \
    PT_WITH(a, r12, q3, q4)                                                  \
    PT_COLUMN(9, q3, part, 5)                                                \
    PT_WITH(a, lr, q0, q4)                                                   \
    PT_COLUMN(9, q0, part, 7)                                                \
    PT_WITH(a, r0, q1, q5)                                                   \
    next_tap                                                                 \
    PT_WITH(a, r2, q2, q5)                                                   \
    PT_WITH(a, r4, q3, q5)                                                   \
    PT_WITH(a, r6, q0, q5)                                                   \
    PT_WITH(a, lr, q0, q6)                                                   \
    next_column                                                              \
    PT_WITH(a, r8, q1, q6)                                                   \
    PT_WITH(a, r10, q2, q6)                                                  \
    PT_WITH(a, r12, q3, q6)

// A part before another of its row, in the middle of a row, or the last.
#define PT_FIRST_PART(row_part, columns, channels)                  \
    row_part(a, channels, 0, PT_NEXT_TAP(r3, channels, q5),         \
         PT_TAP(r1, channels, q4, 1, 0), PT_COLUMN(columns, q0, 1, 0))

#define PT_MIDDLE_PART(row_part, columns, channels, part, next)          \
    row_part(a, channels, part, PT_TAP(r3, channels, q5, part, 0),       \
         PT_TAP(r1, channels, q4, next, 0), PT_COLUMN(columns, q0, next, 0))

#define PT_LAST_PART(row_part, columns, channels, part)            \
    row_part(a, channels, part, PT_TAP(r3, channels, q5, part, 0), \
         PT_NEXT_TAP(r1, channels, q4), PT_NEXT_COLUMN(columns, channels))

// A row of one part.
#define PT_ONLY_PART(row_part, add, columns)             \
    row_part(add, 16, 0, PT_NEXT_TAP(r3, 16, q5),        \
         PT_NEXT_TAP(r1, 16, q4), PT_NEXT_COLUMN(columns, 16))

// Three rows of these parts, from sums of zero.
#define PT_ROWS(label, parts)                        \
    "movs r7, #3\n\t"                                \
    "clrm {r0, r2, r4, r6, r8, r10, r12, lr}\n"      \
    label ":\n\t"                                    \
    parts                                            \
    "subs r7, #1\n\t"                                \
    "bne " label "b\n\t"

// The code for a number of channels. The second row's address is that of the row of taps before.
#define PT_WINDOWS(channels, label, rows) \
    PT_KEEP_CODE(label)                   \
    "add r3, r1, #6*" #channels "\n"      \
    ".balign 4\n"                         \
    label ":\n\t"                         \
    "mov r5, r9\n\t"                      \
    "vldrw.u32 q4, [r1]\n\t"              \
    "vldrw.u32 q0, [r5]\n\t"              \
    rows                                  \
    "add r1, r1, #9*" #channels "\n\t"    \
    "add r3, r3, #9*" #channels "\n\t"   \
    PT_STORE_SUMS                         \
    "bne " label "b\n\t"                  \
    "b 9f\n\t"                            \
    ".balign 4\n"

static void __attribute__((noinline)) pt_multiply_windows(const pt_quads *quads) {
    register const pt_quads *r0 __asm__("r0") = quads;
    __asm__ volatile(
        PT_BEGIN_QUADS
        "mov r9, r5\n\t" // packed
        "tbh [pc, r6, lsl #1]\n"
        "20:\n\t"
        ".short (21f - 20b) / 2\n\t"
        ".short (22f - 20b) / 2\n\t"
        ".short (23f - 20b) / 2\n\t"
        ".short (24f - 20b) / 2\n\t"
        ".short (25f - 20b) / 2\n"
        ".balign 4\n"
        "21:\n\t"
        PT_WINDOWS(16, "1",
            PT_ONLY_PART(PT_ROW_PART, , 6)
            PT_ONLY_PART(PT_ROW_PART, a, 6)
            PT_ONLY_PART(PT_ROW_PART, a, 6))
        "22:\n\t"
        PT_WINDOWS(32, "2", PT_ROWS("3",
            PT_FIRST_PART(PT_ROW_PART, 6, 32)
            PT_LAST_PART(PT_ROW_PART, 6, 32, 1)))
        "23:\n\t"
        PT_WINDOWS(64, "4", PT_ROWS("5",
            PT_FIRST_PART(PT_ROW_PART, 6, 64)
            PT_MIDDLE_PART(PT_ROW_PART, 6, 64, 1, 2)
            PT_MIDDLE_PART(PT_ROW_PART, 6, 64, 2, 3)
            PT_LAST_PART(PT_ROW_PART, 6, 64, 3)))
        "24:\n\t"
        PT_WINDOWS(16, "6", PT_ROWS("7",
            PT_ONLY_PART(PT_ROW_PART_APART, a, 9)))
        "25:\n\t"
        PT_WINDOWS(32, "8", PT_ROWS("10",
            PT_FIRST_PART(PT_ROW_PART_APART, 9, 32)
            PT_LAST_PART(PT_ROW_PART_APART, 9, 32, 1)))
        PT_END_QUADS
        : "+r"(r0)
        :
        : PT_QUADS_CLOBBER);
}

// clang-format on

#endif
