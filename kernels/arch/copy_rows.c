#include "arch/copy_rows.h"
#include <string.h>

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#endif

typedef struct byte_rows {
    uint8_t *to;
    const uint8_t *from;
    int32_t to_step, from_step, n, rows;
} byte_rows;

#if defined(__ARM_FEATURE_MVE)

static void copy_rows(const byte_rows *r) {
    uint8_t *to = r->to;
    const uint8_t *from = r->from;
    for (int32_t i = r->rows; i > 0; i--, to += r->to_step, from += r->from_step) {
        uint8_t *out = to;
        const uint8_t *in = from;
        __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                         "1:\n\t"
                         "vldrb.u8 q0, [%[in]], #16\n\t"
                         "vstrb.8 q0, [%[out]], #16\n\t"
                         "letp lr, 1b\n"
                         "2:"
                         : [in] "+r"(in), [out] "+r"(out)
                         : [n] "r"(r->n)
                         : "lr", "q0", "memory");
    }
}

#else

static void copy_long_rows(const byte_rows *r) {
    uint8_t *to = r->to;
    const uint8_t *from = r->from;
    for (int32_t i = r->rows; i > 0; i--, to += r->to_step, from += r->from_step) {
        memmove(to, from, (uint32_t)r->n);
    }
}

#if defined(__arm__)

// A column: the bytes of each row from `at` on that one unit holds.
typedef struct column_unit {
    int32_t size;
    void (*copy)(const byte_rows *r, int32_t at);
} column_unit;

#define COLUMN(name, copy)                                              \
    static void copy_column_of_##name(const byte_rows *r, int32_t at) { \
        uint8_t *to = r->to + at;                                       \
        const uint8_t *from = r->from + at;                             \
        const int32_t to_step = r->to_step, from_step = r->from_step;   \
        for (int32_t i = r->rows; i > 0; i--) {                         \
            copy;                                                       \
            to += to_step, from += from_step;                           \
        }                                                               \
    }

#define COPY_ONE(type) *(type *)(void *)to = *(const type *)(const void *)from

// Copies four units one by one: gcc would call memcpy for a struct of bytes or halfwords.
#define COPY_FOUR(type)                                    \
    const type *in = (const void *)from;                   \
    type *out = (void *)to;                                \
    const type a = in[0], b = in[1], c = in[2], d = in[3]; \
    out[0] = a, out[1] = b, out[2] = c, out[3] = d

typedef struct four_words {
    uint32_t words[4];
} __attribute__((may_alias)) four_words;

typedef struct two_words {
    uint32_t words[2];
} __attribute__((may_alias)) two_words;

typedef uint32_t __attribute__((may_alias)) one_word;
typedef uint16_t __attribute__((may_alias)) halfword;

COLUMN(four_words, COPY_ONE(four_words))
COLUMN(two_words, COPY_ONE(two_words))
COLUMN(one_word, COPY_ONE(one_word))
COLUMN(halfword, COPY_ONE(halfword))
COLUMN(byte, COPY_ONE(uint8_t))

static const column_unit aligned_units[] = {
    {16, copy_column_of_four_words}, {8, copy_column_of_two_words}, {4, copy_column_of_one_word},
    {2, copy_column_of_halfword},    {1, copy_column_of_byte},
};

#if defined(__ARM_FEATURE_UNALIGNED)

typedef uint32_t __attribute__((may_alias, aligned(1))) unaligned_word;
typedef uint16_t __attribute__((may_alias, aligned(1))) unaligned_halfword;

COLUMN(unaligned_words, COPY_FOUR(unaligned_word))
COLUMN(unaligned_word, COPY_ONE(unaligned_word))
COLUMN(unaligned_halfword, COPY_ONE(unaligned_halfword))

static const column_unit unaligned_units[] = {
    {16, copy_column_of_unaligned_words},
    {4, copy_column_of_unaligned_word},
    {2, copy_column_of_unaligned_halfword},
    {1, copy_column_of_byte},
};

static const column_unit *column_units(uint32_t unit) {
    return unit & 3 ? unaligned_units : aligned_units;
}

#else

COLUMN(four_halfwords, COPY_FOUR(halfword))
COLUMN(four_bytes, COPY_FOUR(uint8_t))

static const column_unit halfword_units[] = {
    {8, copy_column_of_four_halfwords}, {2, copy_column_of_halfword}, {1, copy_column_of_byte}};
static const column_unit byte_units[] = {{4, copy_column_of_four_bytes}, {1, copy_column_of_byte}};

static const column_unit *column_units(uint32_t unit) {
    return unit & 1 ? byte_units : unit & 2 ? halfword_units : aligned_units;
}

#endif

// Copies all rows column by column from byte `at` on, from the largest units on.
static void copy_columns(const byte_rows *r, const column_unit *unit, int32_t at) {
    for (; at < r->n; unit++) {
        for (; at + unit->size <= r->n; at += unit->size) {
            unit->copy(r, at);
        }
    }
}

// Copies the units of each row as if they were rows themselves, then the rest of all rows.
static void copy_rows_of_units(const byte_rows *r, const column_unit *unit) {
    byte_rows units = {r->to, r->from, unit->size, unit->size, unit->size, r->n / unit->size};
    for (int32_t i = r->rows; i > 0; i--, units.to += r->to_step, units.from += r->from_step) {
        unit->copy(&units, 0);
    }
    copy_columns(r, unit + 1, units.rows * unit->size);
}

static void copy_rows(const byte_rows *r) {
    enum { LONG_ROW = 64 }; // bytes from which memmove is as fast, if it copies words
    const uint32_t distance = (uint32_t)(uintptr_t)r->to ^ (uint32_t)(uintptr_t)r->from;
    const uint32_t steps = (uint32_t)r->to_step ^ (uint32_t)r->from_step;
    if (r->n >= LONG_ROW && ((distance | steps) & 3) == 0) {
        copy_long_rows(r);
        return;
    }
    const uint32_t addresses = (uint32_t)(uintptr_t)r->to | (uint32_t)(uintptr_t)r->from;
    const column_unit *unit =
        column_units(addresses | (uint32_t)r->to_step | (uint32_t)r->from_step);
    if (r->n >= LONG_ROW) {
        copy_rows_of_units(r, unit);
    } else {
        copy_columns(r, unit, 0);
    }
}

#else

static void copy_rows(const byte_rows *r) {
    copy_long_rows(r);
}

#endif
#endif

void pt_copy_rows(void *to, int32_t to_step, const void *from, int32_t from_step, int32_t n,
                  int32_t rows) {
    const byte_rows r = {to, from, to_step, from_step, n, rows};
    copy_rows(&r);
}

// ---- planes

// Not inlined, so that each inner loop has all registers.
#define NOINLINE static __attribute__((noinline))

typedef uint32_t __attribute__((may_alias)) element_4;
typedef uint16_t __attribute__((may_alias)) element_2;
typedef uint8_t element_1;

// Copies the rows of a plane from `row` on, four elements at a time.
#define COPY_PLANE(type)                                                                        \
    NOINLINE void copy_plane_of_##type(const pt_plane *p, type *out, const type *in,            \
                                       int32_t row) {                                           \
        const int32_t step = p->in_column;                                                      \
        for (; row < p->rows; row++) {                                                          \
            const type *from = in + row * p->in_row;                                            \
            type *to = out + row * p->out_row;                                                  \
            int32_t n = p->columns;                                                             \
            for (; n >= 4; n -= 4, to += 4, from += 4 * step) {                                 \
                const type a = from[0], b = from[step], c = from[2 * step], d = from[3 * step]; \
                to[0] = a, to[1] = b, to[2] = c, to[3] = d;                                     \
            }                                                                                   \
            for (; n > 0; n--, from += step) {                                                  \
                *to++ = *from;                                                                  \
            }                                                                                   \
        }                                                                                       \
    }

COPY_PLANE(element_4)
COPY_PLANE(element_2)
COPY_PLANE(element_1)

// Copies the rows of a plane whose elements are several words: each element as a row.
static void copy_elements(const pt_plane *p, uint8_t *out, const uint8_t *in, int32_t size) {
    byte_rows r = {NULL, NULL, size, p->in_column * size, size, p->columns};
    for (int32_t row = 0; row < p->rows; row++) {
        r.to = out + row * p->out_row * size;
        r.from = in + row * p->in_row * size;
        copy_rows(&r);
    }
}

// Copies four rows of n elements, which are adjacent in the input.
NOINLINE void transpose_4_rows(element_4 *to_0, int32_t out_row, const element_4 *from,
                               int32_t in_column, int32_t n) {
    element_4 *to_1 = to_0 + out_row;
    element_4 *to_2 = to_1 + out_row;
    element_4 *to_3 = to_2 + out_row;
    for (; n > 0; n--) {
        const element_4 e_0 = from[0], e_1 = from[1], e_2 = from[2], e_3 = from[3];
        from += in_column;
        *to_0++ = e_0;
        *to_1++ = e_1;
        *to_2++ = e_2;
        *to_3++ = e_3;
    }
}

// Transposes rows of words; returns their number.
static int32_t transpose_words(const pt_plane *p, element_4 *out, const element_4 *in) {
    int32_t row = 0;
    for (; p->in_row == 1 && row + 4 <= p->rows; row += 4) {
        transpose_4_rows(out + row * p->out_row, p->out_row, in + row, p->in_column, p->columns);
    }
    return row;
}

#if defined(__ARM_FEATURE_MVE)

// Gathers eight bytes at a time, as far as their distances fit into 16 bits. Returns the number of
// rows.
static int32_t copy_bytes(const pt_plane *p, uint8_t *out, const uint8_t *in) {
    const int32_t step = p->in_column;
    if (step < 0 || step > UINT16_MAX / 7) {
        return 0;
    }
    const uint16x8_t offsets = vmulq_n_u16(vidupq_n_u16(0, 1), (uint16_t)step);
    for (int32_t row = 0; row < p->rows; row++) {
        const uint8_t *from = in + row * p->in_row;
        uint8_t *to = out + row * p->out_row;
        __asm__ volatile("wlstp.16 lr, %[n], 2f\n"
                         "1:\n\t"
                         "vldrb.u16 q0, [%[from], %q[offsets]]\n\t"
                         "add %[from], %[from], %[steps]\n\t"
                         "vstrb.16 q0, [%[to]], #8\n\t"
                         "letp lr, 1b\n"
                         "2:"
                         : [from] "+r"(from), [to] "+l"(to)
                         : [n] "r"(p->columns), [steps] "r"(8 * step), [offsets] "w"(offsets)
                         : "lr", "q0", "memory");
    }
    return p->rows;
}

#elif defined(__thumb2__)

// Transposes blocks of 4 x 4 bytes, of rows whose bytes are adjacent in the input, if all addresses
// are multiples of 4. Returns the number of rows.
static int32_t copy_bytes(const pt_plane *p, uint8_t *out, const uint8_t *in) {
    const uint32_t even = 0x00FF00FF, low = 0xFFFF;
    const uint32_t addresses = (uint32_t)(uintptr_t)out | (uint32_t)(uintptr_t)in;
    const int32_t step = p->in_column, out_row = p->out_row, whole = p->columns & ~3;
    int32_t row = 0;
    if (p->in_row != 1 || ((addresses | (uint32_t)step | (uint32_t)out_row) & 3) != 0) {
        return 0;
    }
    for (; row + 4 <= p->rows; row += 4) {
        const uint8_t *from = in + row;
        uint8_t *to = out + row * out_row;
        for (const uint8_t *end = to + whole; to != end; to += 4, from += 4 * step) {
            const uint32_t a = *(const element_4 *)(const void *)from;
            const uint32_t b = *(const element_4 *)(const void *)(from + step);
            const uint32_t c = *(const element_4 *)(const void *)(from + 2 * step);
            const uint32_t d = *(const element_4 *)(const void *)(from + 3 * step);
            uint32_t x = (a & low) | c << 16, y = (b & low) | d << 16;
            *(element_4 *)(void *)to = (x & even) | (y & even) << 8;
            *(element_4 *)(void *)(to + out_row) = (x >> 8 & even) | (y & ~even);
            x = a >> 16 | (c & ~low), y = b >> 16 | (d & ~low);
            *(element_4 *)(void *)(to + 2 * out_row) = (x & even) | (y & even) << 8;
            *(element_4 *)(void *)(to + 3 * out_row) = (x >> 8 & even) | (y & ~even);
        }
    }
    if (whole < p->columns) {
        const pt_plane rest = {row, p->columns - whole, out_row, 1, step};
        copy_plane_of_element_1(&rest, out + whole, in + whole * step, 0);
    }
    return row;
}

#else

static int32_t copy_bytes(const pt_plane *p, uint8_t *out, const uint8_t *in) {
    (void)p, (void)out, (void)in;
    return 0;
}

#endif

void pt_copy_plane(const pt_plane *p, void *out, const void *in, uint32_t size) {
    const int32_t bytes = (int32_t)size;
    if (p->in_column == 1) {
        pt_copy_rows(out, p->out_row * bytes, in, p->in_row * bytes, p->columns * bytes, p->rows);
        return;
    }
    switch (size) {
    case 1:
        copy_plane_of_element_1(p, out, in, copy_bytes(p, out, in));
        break;
    case 2:
        copy_plane_of_element_2(p, out, in, 0);
        break;
    case 4:
        copy_plane_of_element_4(p, out, in, transpose_words(p, out, in));
        break;
    default:
        copy_elements(p, out, in, bytes);
    }
}
