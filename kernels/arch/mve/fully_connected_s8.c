// int8 fully connected layer with MVE: pt_multiply_row, called by cortex_m/linear.c where shift and
// sums permit. Tile: 1 row x 4 outputs x 16 values by VMLADAVA; rows of 128 bytes keep the input in
// registers. Plain weights. No scratch; addends are made on the stack, ADDENDS at a time.
#include "arch/fully_connected_s8.h"

#if defined(__ARM_FEATURE_MVE)

#include "arch/mve/requantize.h"
#include "arch/mve/sum.h"
#include "arch/offsets.h"

enum {
    ADDENDS = 64,       // addends made at a time
    SHORT_ROW = 128,    // bytes of a row that stays in registers
    MAX_DEPTH = 1 << 16 // for sums of products below 2^30
};

// Groups of four rows of weights, in the order in which the loops read them.
typedef struct groups {
    int32_t multiplier, shift, offset, one;
    const int8_t *x;
    int32_t stride;    // bytes from a row of weights to the next
    int32_t back;      // from the end of a row that was read to the next row
    const int8_t *end; // of y
    int32_t depth;
    const int8_t *w;
    const int32_t *addends; // four for each group
    int8_t *y;
} groups;

PT_OFFSET(groups, multiplier, 0);
PT_OFFSET(groups, shift, 4);
PT_OFFSET(groups, offset, 8);
PT_OFFSET(groups, one, 12);
PT_OFFSET(groups, x, 16);
PT_OFFSET(groups, stride, 20);
PT_OFFSET(groups, back, 24);
PT_OFFSET(groups, end, 28);
PT_OFFSET(groups, depth, 32);
PT_OFFSET(groups, w, 36);
PT_OFFSET(groups, addends, 40);
PT_OFFSET(groups, y, 44);
PT_STATIC_ASSERT(SHORT_ROW == 128, "assembler has rows of 128");

// clang-format off

// Moves the sums in r0, r2, r4 and r6, which include the addends, to a vector. r8 to r11 have the
// first fields of groups.
#define PT_SUMS_TO(q)                            \
    "vmov " q "[2], " q "[0], r0, r4\n\t"        \
    "vmov " q "[3], " q "[1], r2, r6\n\t"

#define PT_MULTIPLY(q) "vqrdmulh.s32 " q ", " q ", r8\n\t"
#define PT_ROUND(q) "vqdmlah.s32 " q ", " q ", r11\n\t" // halves away from zero
#define PT_SHIFT(q) "vrshl.s32 " q ", r9\n\t"
#define PT_OFFSET_BY(q) "vadd.i32 " q ", " q ", r10\n\t"
#define PT_NARROW(q) "vqmovnb.s32 " q ", " q "\n\t"
#define PT_NARROW_AGAIN(q) "vqmovnb.s16 " q ", " q "\n\t"

#define PT_FINISH_SUMS(q) \
    PT_MULTIPLY(q)        \
    PT_ROUND(q)           \
    PT_SHIFT(q)           \
    PT_OFFSET_BY(q)       \
    PT_NARROW(q)          \
    PT_NARROW_AGAIN(q)    \
    "vstrb.32 " q ", [r7], #4\n\t"

// clang-format on

#define PT_GROUPS_CLOBBER                                                                        \
    "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", "q0", "q1", \
        "q2", "q3", "q4", "q5", "q6", "q7", "cc", "memory"

// Multiplies rows of any length, without reading beyond them.
static void __attribute__((noinline)) multiply_groups(const groups *g) {
    register const groups *r0 __asm__("r0") = g;
    // clang-format off
    __asm__ volatile(
        "sub sp, sp, #8\n\t"
        "mov r12, r0\n\t"
        "ldrd r1, r5, [r0, #36]\n\t"      // w, addends
        "ldr r7, [r0, #44]\n"             // y
        "1:\n\t"
        "ldm r5!, {r0, r2, r4, r6}\n\t"   // addends
        "strd r7, r5, [sp]\n\t"
        "ldrd r8, r9, [r12, #16]\n\t"     // x, stride
        "ldr r10, [r12, #32]\n\t"         // depth
        "add r3, r1, r9\n\t"              // four rows of weights
        "add r5, r3, r9\n\t"
        "add r7, r5, r9\n\t"
        "wlstp.8 lr, r10, 3f\n"
        "2:\n\t"
        "vldrb.u8 q0, [r8], #16\n\t"
        "vldrb.u8 q1, [r1], #16\n\t"
        "vmladava.s8 r0, q0, q1\n\t"
        "vldrb.u8 q2, [r3], #16\n\t"
        "vmladava.s8 r2, q0, q2\n\t"
        "vldrb.u8 q1, [r5], #16\n\t"
        "vmladava.s8 r4, q0, q1\n\t"
        "vldrb.u8 q2, [r7], #16\n\t"
        "vmladava.s8 r6, q0, q2\n\t"
        "letp lr, 2b\n"
        "3:\n\t"
        "ldrd r1, r3, [r12, #24]\n\t"     // back, end
        "add r1, r1, r7\n\t"              // the next four
        "ldrd r7, r5, [sp]\n\t"           // y, addends
        "ldm r12, {r8, r9, r10, r11}\n\t" // multiplier, shift, offset, one
        PT_SUMS_TO("q0")
        PT_FINISH_SUMS("q0")
        "cmp r7, r3\n\t"
        "bne 1b\n\t"
        "add sp, sp, #8"
        : "+r"(r0)
        :
        : PT_GROUPS_CLOBBER);
    // clang-format on
}

#define PT_PART(row, part, x, sum)                               \
    "vldrw.u32 q7, [r1, #(" #row " * 128 + " #part " * 16)]\n\t" \
    "vmladava.s8 " sum ", " x ", q7\n\t"

// clang-format off

#define PT_SIX_PARTS(row, sum)                  \
    PT_PART(row, 0, "q0", sum)                  \
    PT_PART(row, 1, "q1", sum)                  \
    PT_PART(row, 2, "q2", sum)                  \
    PT_PART(row, 3, "q3", sum)                  \
    PT_PART(row, 4, "q4", sum)                  \
    PT_PART(row, 5, "q5", sum)

#define PT_PART_OF_ALL(part)                    \
    PT_PART(0, part, "q6", "r0")                \
    PT_PART(1, part, "q6", "r2")                \
    PT_PART(2, part, "q6", "r4")                \
    PT_PART(3, part, "q6", "r6")

// clang-format on

// Multiplies rows of SHORT_ROW bytes at multiples of 4: all but the last 32 bytes of x stay in
// registers. The sums of a group are requantized while the first row of the next group is
// multiplied; the first group overwrites the undefined outputs stored before it.
static void __attribute__((noinline)) multiply_short_groups(const groups *g) {
    register const groups *r0 __asm__("r0") = g;
    // clang-format off
    __asm__ volatile(
        "ldr r3, [r0, #16]\n\t"          // x
        "ldr r12, [r0, #28]\n\t"         // end
        "ldrd r1, r5, [r0, #36]\n\t"     // w, addends
        "ldr r7, [r0, #44]\n\t"          // y
        "sub r12, r12, r7\n\t"
        "lsr r12, r12, #2\n\t"
        "dls lr, r12\n\t"                // groups
        "ldm r0, {r8, r9, r10, r11}\n\t" // multiplier, shift, offset, one
        "vldrb.u8 q0, [r3]\n\t"
        "vldrb.u8 q1, [r3, #16]\n\t"
        "vldrb.u8 q2, [r3, #32]\n\t"
        "vldrb.u8 q3, [r3, #48]\n\t"
        "vldrb.u8 q4, [r3, #64]\n\t"
        "vldrb.u8 q5, [r3, #80]\n\t"
        "mov r12, #0\n"                  // from the stored group's outputs to the next
        "1:\n\t"
        "ldm r5!, {r0, r2, r4, r6}\n\t"  // addends
        PT_MULTIPLY("q6")
        PT_PART(0, 0, "q0", "r0")
        PT_ROUND("q6")
        PT_PART(0, 1, "q1", "r0")
        PT_SHIFT("q6")
        PT_PART(0, 2, "q2", "r0")
        PT_OFFSET_BY("q6")
        PT_PART(0, 3, "q3", "r0")
        PT_NARROW("q6")
        PT_PART(0, 4, "q4", "r0")
        PT_NARROW_AGAIN("q6")
        PT_PART(0, 5, "q5", "r0")
        "vstrb.32 q6, [r7]\n\t"
        "add r7, r7, r12\n\t"
        PT_SIX_PARTS(1, "r2")
        PT_SIX_PARTS(2, "r4")
        PT_SIX_PARTS(3, "r6")
        "vldrb.u8 q6, [r3, #96]\n\t"
        "mov r12, #4\n\t"                // between two loads, as ADD between two VMOV
        PT_PART_OF_ALL(6)
        "vldrb.u8 q6, [r3, #112]\n\t"
        PT_PART_OF_ALL(7)
        "vmov q6[2], q6[0], r0, r4\n\t"
        "add r1, r1, #512\n\t"           // the next four rows
        "vmov q6[3], q6[1], r2, r6\n\t"
        "le lr, 1b\n\t"
        PT_FINISH_SUMS("q6")
        : "+r"(r0)
        :
        : PT_GROUPS_CLOBBER);
    // clang-format on
}

// ---- outputs

// Computes fewer than four outputs, each as four equal ones.
static void multiply_few(const groups *g, int32_t outputs) {
    for (int32_t j = 0; j < outputs; j++) {
        int8_t y[4];
        int32_t addend = g->addends[j], addends[4] = {addend, addend, addend, addend};
        groups one = *g;
        one.stride = 0;
        one.w += j * g->stride;
        one.addends = addends;
        one.y = y;
        one.end = y + 4;
        multiply_groups(&one);
        g->y[j] = y[0];
    }
}

// Computes four outputs at a time; the last four may overlap the four before.
static void multiply_all(const pt_linear *p, groups *g, int32_t outputs) {
    int32_t whole = outputs & ~3, rest = outputs - whole;
    g->end = g->y + whole;
    if (outputs < 4) {
        multiply_few(g, outputs);
        return;
    }
    if (p->depth == SHORT_ROW && ((uint32_t)g->w & 3) == 0) {
        multiply_short_groups(g);
    } else {
        multiply_groups(g);
    }
    if (rest) {
        g->w += (outputs - 4) * p->depth;
        g->addends += outputs - 4;
        g->y += outputs - 4;
        g->end = g->y + 4;
        multiply_groups(g);
    }
}

static void mve_fc_multiply_row(const pt_linear *p, const int8_t *x, const int8_t *w,
                                const int32_t *addends, int32_t outputs, int8_t *y) {
    groups g = {.multiplier = p->multiplier,
                .shift = p->shift,
                .offset = p->range.offset,
                .one = 1,
                .x = x,
                .stride = p->depth,
                .back = p->depth - ((p->depth + 15) & ~15),
                .depth = p->depth,
                .w = w,
                .addends = addends,
                .y = y};
    multiply_all(p, &g, outputs);
    pt_limit_pixels(&p->range, y, 1, 0, outputs);
}

// ---- addends

// Returns the maximum absolute value of n values.
static int64_t mve_fc_largest(const int32_t *values, int32_t n) {
    register uint32_t size __asm__("r2") = 0;
    __asm__ volatile("wlstp.32 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrw.u32 q0, [%[values]], #16\n\t"
                     "vmaxav.s32 %[size], q0\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [values] "+r"(values), [size] "+r"(size)
                     : [n] "r"(n)
                     : "lr", "q0", "memory");
    return size;
}

// True if all sums fit into int32, or may wrap around.
static bool stays_exact(const pt_linear *p, int64_t row_sum) {
    if (!p->exact_addends) {
        return true;
    }
    int64_t size = row_sum < 0 ? -row_sum : row_sum;
    size += p->small_addends ? PT_BIAS_LIMIT : mve_fc_largest(p->addends, p->outputs);
    return p->depth < MAX_DEPTH && size < ((int64_t)1 << 31) - (1 << 30);
}

static void make_addends(const pt_linear *p, int64_t row_sum, const int8_t *w, int32_t first,
                         int32_t n, int32_t *addends) {
    w += first * p->depth;
    if (p->x_offset == 0 && p->addends) {
        for (int32_t i = 0; i < n; i += 4) {
            const mve_pred16_t rest = vctp32q((uint32_t)(n - i));
            const int32x4_t some = vldrwq_z_s32(p->addends + first + i, rest);
            vstrwq_p_s32(addends + i, vaddq_n_s32(some, (int32_t)row_sum), rest);
        }
        return;
    }
    for (int32_t i = 0; i < n; i++, w += p->depth) {
        uint32_t sum = p->x_offset ? (uint32_t)pt_sum_bytes(w, p->depth) : 0;
        addends[i] = (int32_t)(sum * (uint32_t)p->x_offset + (uint32_t)row_sum +
                               (uint32_t)(p->addends ? p->addends[first + i] : 0));
    }
}

// Makes addends, for ADDENDS outputs at a time.
static void __attribute__((noinline))
multiply_with_made(const pt_linear *p, const int8_t *x, int64_t row_sum, const int8_t *w,
                   int8_t *y) {
    int32_t addends[ADDENDS];
    for (int32_t first = 0; first < p->outputs; first += ADDENDS) {
        int32_t n = p->outputs - first < ADDENDS ? p->outputs - first : ADDENDS;
        make_addends(p, row_sum, w, first, n, addends);
        mve_fc_multiply_row(p, x, w + first * p->depth, addends, n, y + first);
    }
}

bool pt_multiply_row(const pt_linear *p, const int8_t *x, int64_t row_sum, const int8_t *w,
                     int8_t *y, void *scratch) {
    (void)scratch;
    if (!pt_has_fast_scale(p->multiplier, p->shift) || !stays_exact(p, row_sum)) {
        return false;
    }
    if (p->x_offset || row_sum || !p->addends) {
        multiply_with_made(p, x, row_sum, w, y);
    } else if (p->outputs > 0) {
        mve_fc_multiply_row(p, x, w, p->addends, p->outputs, y);
    }
    return true;
}

#endif
