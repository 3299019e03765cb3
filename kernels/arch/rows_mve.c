// Products of a row with rows of weights with MVE, four rows at a time.
#include "rows.h"

#if defined(__ARM_FEATURE_MVE)

#include "requantize_mve.h"
#include "sum_mve.h"

enum {
    ADDENDS = 64,       // that are put together at a time
    SHORT_ROW = 128,    // bytes of a row that stays in registers
    MAX_DEPTH = 1 << 16 // with which sums of products are below 2^30
};

// ---- sums

// The products of a row with four, of `n` bytes.
static inline int32x4_t multiply_rows(const int8_t *x, const int8_t *w0, int32_t stride,
                                      int32_t n) {
    const int8_t *w1 = w0 + stride, *w2 = w1 + stride, *w3 = w2 + stride;
    register int32_t s0 __asm__("r0") = 0, s1 __asm__("r2") = 0;
    register int32_t s2 __asm__("r4") = 0, s3 __asm__("r6") = 0;
    int32x4_t sums;
    __asm__("wlstp.8 lr, %[n], 2f\n"
            "1:\n\t"
            "vldrb.u8 q0, [%[x]], #16\n\t"
            "vldrb.u8 q1, [%[w0]], #16\n\tvmladava.s8 %[s0], q0, q1\n\t"
            "vldrb.u8 q2, [%[w1]], #16\n\tvmladava.s8 %[s1], q0, q2\n\t"
            "vldrb.u8 q1, [%[w2]], #16\n\tvmladava.s8 %[s2], q0, q1\n\t"
            "vldrb.u8 q2, [%[w3]], #16\n\tvmladava.s8 %[s3], q0, q2\n\t"
            "letp lr, 1b\n"
            "2:\n\t"
            "vmov %q[sums][2], %q[sums][0], %[s0], %[s2]\n\t"
            "vmov %q[sums][3], %q[sums][1], %[s1], %[s3]"
            : [sums] "=w"(sums), [x] "+r"(x), [w0] "+r"(w0), [w1] "+r"(w1), [w2] "+r"(w2),
              [w3] "+r"(w3), [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3)
            : [n] "r"(n)
            : "lr", "q0", "q1", "q2", "memory");
    return sums;
}

#define PT_PART(row, part, x, sum)                              \
    "vldrw.u32 q7, [%[w], #(" #row " * 128 + " #part " * 16)]\n\t" \
    "vmladava.s8 " sum ", " x ", q7\n\t"
#define PT_SIX_PARTS(row, sum)                                                             \
    "vldrw.u32 q7, [%[w], #(" #row " * 128)]\n\t"                                          \
    "vmladav.s8 " sum ", %q[x0], q7\n\t" PT_PART(row, 1, "%q[x1]", sum)                    \
        PT_PART(row, 2, "%q[x2]", sum) PT_PART(row, 3, "%q[x3]", sum)                      \
            PT_PART(row, 4, "%q[x4]", sum) PT_PART(row, 5, "%q[x5]", sum)
#define PT_PART_6 "vldrb.u8 q6, [%[x], #96]\n\t"
#define PT_PART_7 "vldrb.u8 q6, [%[x], #112]\n\t"

// The same of SHORT_ROW bytes, all but the last 32 of them in registers; w is a multiple of 4.
static inline int32x4_t multiply_short_rows(const int8x16_t row[6], const int8_t *x,
                                            const int8_t *w) {
    int32x4_t sums;
    __asm__(PT_SIX_PARTS(0, "r0") PT_PART_6 PT_PART(0, 6, "q6", "r0")
                PT_PART_7 PT_PART(0, 7, "q6", "r0")
            PT_SIX_PARTS(1, "r2") PT_PART(1, 7, "q6", "r2")
                PT_PART_6 PT_PART(1, 6, "q6", "r2")
            PT_SIX_PARTS(2, "r4") PT_PART(2, 6, "q6", "r4")
                PT_PART_7 PT_PART(2, 7, "q6", "r4")
            PT_SIX_PARTS(3, "r6") PT_PART(3, 7, "q6", "r6")
                PT_PART_6 PT_PART(3, 6, "q6", "r6")
            "vmov %q[sums][2], %q[sums][0], r0, r4\n\t"
            "vmov %q[sums][3], %q[sums][1], r2, r6"
            : [sums] "=w"(sums)
            : [w] "r"(w), [x] "r"(x), [x0] "w"(row[0]), [x1] "w"(row[1]), [x2] "w"(row[2]),
              [x3] "w"(row[3]), [x4] "w"(row[4]), [x5] "w"(row[5])
            : "r0", "r2", "r4", "r6", "q6", "q7", "memory");
    return sums;
}

// ---- outputs

static inline void finish(const pt_product *p, int32x4_t sums, const int32_t *addends,
                          mve_pred16_t counts, int8_t *y) {
    sums = vaddq_s32(sums, vldrwq_z_s32(addends, counts));
    sums = vqrdmulhq_n_s32(sums, p->multiplier);
    sums = vqdmlahq_n_s32(sums, sums, 1); // halves away from zero
    sums = vaddq_n_s32(vrshlq_n_s32(sums, p->shift), p->range.offset);
    sums = vminq_s32(sums, vdupq_n_s32(p->range.max));
    vstrbq_p_s32(y, vmaxq_s32(sums, vdupq_n_s32(p->range.min)), counts);
}

static void multiply_all(const pt_product *p, const int8_t *x, const int8_t *w,
                         const int32_t *addends, int32_t outputs, int8_t *y) {
    int32_t depth = p->depth;
    for (int32_t j = 0; j < outputs; j += 4) {
        int32_t first = j + 4 <= outputs || outputs < 4 ? j : outputs - 4;
        int32_t stride = outputs < 4 ? 0 : depth;
        const int8_t *rows = w + first * depth;
        int32x4_t sums = multiply_rows(x, rows, stride, depth);
        if (outputs >= 2 && outputs < 4) {
            for (int32_t i = 1; i < outputs; i++) {
                int32_t one = vgetq_lane_s32(multiply_rows(x, rows + i * depth, 0, depth), 0);
                sums = i == 1 ? vsetq_lane_s32(one, sums, 1) : vsetq_lane_s32(one, sums, 2);
            }
        }
        finish(p, sums, addends + first, vctp32q((uint32_t)(outputs - first)), y + first);
    }
}

static void multiply_short(const pt_product *p, const int8_t *x, const int8_t *w,
                           const int32_t *addends, int32_t outputs, int8_t *y) {
    int8x16_t row[6];
    for (int32_t i = 0; i < 6; i++) {
        row[i] = vldrbq_s8(x + 16 * i);
    }
    for (int32_t j = 0; j < outputs; j += 4) {
        finish(p, multiply_short_rows(row, x, w + j * SHORT_ROW), addends + j, vctp32q(4), y + j);
    }
}

// ---- addends

static int32_t largest(const int32_t *values, int32_t n) {
    uint32_t size = 0;
    for (int32_t i = 0; i < n; i += 4) {
        size = vmaxavq_s32(size, vldrwq_z_s32(values + i, vctp32q((uint32_t)(n - i))));
    }
    return size >> 31 ? INT32_MAX : (int32_t)size;
}

// Whether no sum leaves int32, if that matters.
static bool stays_exact(const pt_product *p, int64_t row_sum) {
    if (!p->exact_addends) {
        return true;
    }
    int64_t size = row_sum < 0 ? -row_sum : row_sum;
    return p->depth < MAX_DEPTH &&
           size + largest(p->addends, p->outputs) < ((int64_t)1 << 31) - (1 << 30);
}

static void make_addends(const pt_product *p, int64_t row_sum, const int8_t *w, int32_t first,
                         int32_t n, int32_t *addends) {
    w += first * p->depth;
    for (int32_t i = 0; i < n; i++, w += p->depth) {
        uint32_t sum = p->x_offset ? (uint32_t)pt_sum_bytes(w, p->depth) : 0;
        addends[i] = (int32_t)(sum * (uint32_t)p->x_offset + (uint32_t)row_sum +
                               (uint32_t)(p->addends ? p->addends[first + i] : 0));
    }
}

bool pt_multiply_row(const pt_product *p, const int8_t *x, int64_t row_sum, const int8_t *w,
                     int8_t *y) {
    if (!pt_has_fast_scale(p->multiplier, p->shift) || !stays_exact(p, row_sum)) {
        return false;
    }
    bool is_short = p->depth == SHORT_ROW && p->outputs % 4 == 0 && ((uint32_t)w & 3) == 0;
    bool made = p->x_offset || row_sum || !p->addends;
    int32_t room[ADDENDS], step = made ? ADDENDS : p->outputs;
    for (int32_t first = 0; first < p->outputs; first += step) {
        int32_t n = p->outputs - first < step ? p->outputs - first : step;
        const int32_t *addends = made ? room : p->addends;
        if (made) {
            make_addends(p, row_sum, w, first, n, room);
        }
        if (is_short) {
            multiply_short(p, x, w + first * p->depth, addends, n, y + first);
        } else {
            multiply_all(p, x, w + first * p->depth, addends, n, y + first);
        }
    }
    return true;
}

#endif
