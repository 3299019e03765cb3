// Elements in the portable kernels: dtype classes and promotion, conversion between
// dtypes, broadcasting, and the walk over tensors that differ in strides.
#ifndef PT_PORTABLE_DTYPE_ACCESS_H
#define PT_PORTABLE_DTYPE_ACCESS_H

#include <picotorch/kernel.h>

// ---- dtype classes

enum {
    PT_DTYPES_BOOL = 1 << PT_DTYPE_BOOL,
    PT_DTYPES_INTEGER = 1 << PT_DTYPE_BYTE | 1 << PT_DTYPE_CHAR | 1 << PT_DTYPE_SHORT |
                        1 << PT_DTYPE_INT | 1 << PT_DTYPE_LONG,
    PT_DTYPES_INTEGRAL = PT_DTYPES_INTEGER | PT_DTYPES_BOOL,
    PT_DTYPES_HALF = 1 << PT_DTYPE_HALF | 1 << PT_DTYPE_BFLOAT16, // computed as float32
    PT_DTYPES_FLOATING = 1 << PT_DTYPE_FLOAT | 1 << PT_DTYPE_DOUBLE | PT_DTYPES_HALF,
    PT_DTYPES_ALL = PT_DTYPES_INTEGRAL | PT_DTYPES_FLOATING, // the dtypes that kernels compute with
};

// True if `dtype` is one of the set `dtypes` (PT_DTYPES_..., or bits 1 << PT_DTYPE_...).
static inline bool pt_dtype_in(uint8_t dtype, uint32_t dtypes) {
    return dtype < 32 && (dtypes >> dtype & 1) != 0;
}

static inline bool pt_is_floating(uint8_t dtype) {
    return pt_dtype_in(dtype, PT_DTYPES_FLOATING);
}

// True for the 16-bit dtypes, float16 and bfloat16. Kernels compute them in float32: reading
// converts, writing rounds once.
static inline bool pt_is_half(uint8_t dtype) {
    return pt_dtype_in(dtype, PT_DTYPES_HALF);
}

// Returns the dtype to which PyTorch promotes both. Both are in PT_DTYPES_ALL.
uint8_t pt_promote(uint8_t a, uint8_t b);
// Returns the dtype to which PyTorch promotes two tensors. A 0-d tensor matters only if its
// category (bool, integer, floating) is above the category of the tensor with dims.
uint8_t pt_promote_tensors(const pt_tensor *a, const pt_tensor *b);
// Returns the dtype to which PyTorch promotes a tensor, 0-d or not, with a number. The number
// counts as int64, as bool or, if it is a double, as float32.
uint8_t pt_promote_scalar(uint8_t dtype, pt_scalar s);

static inline bool pt_is_zero(pt_scalar s) {
    return s.type == PT_TYPE_DOUBLE ? s.as.d == 0.0 : s.as.i == 0;
}

static inline bool pt_is_one(pt_scalar s) {
    return s.type == PT_TYPE_DOUBLE ? s.as.d == 1.0 : s.as.i == 1;
}

// ---- conversion

// Returns the integer part of v, limited to int64; NaN gives 0.
int64_t pt_double_to_int(double v);

// Return x / y, truncated, and x - y * (x / y). INT64_MIN / -1 wraps, as other operations do. Both
// results are 0 for y = 0: kernels reject divisors of 0, but an output that overlaps the divisors
// can still write a 0.
static inline int64_t pt_divide_int(int64_t x, int64_t y) {
    return y == -1 ? (int64_t)(0 - (uint64_t)x) : y == 0 ? 0 : x / y;
}

static inline int64_t pt_rest_int(int64_t x, int64_t y) {
    return y == -1 || y == 0 ? 0 : x % y;
}

// Return element i of an array of `dtype`, which is in PT_DTYPES_ALL. pt_load_int truncates a
// floating value as pt_double_to_int does.
double pt_load_double(const void *data, int32_t i, uint8_t dtype);
int64_t pt_load_int(const void *data, int32_t i, uint8_t dtype);
float pt_load_float(const void *data, int32_t i, uint8_t dtype);
// Store element i. Integers narrower than int64 get the low bits; bool is v != 0, true for NaN. A
// value for float16 or bfloat16 is rounded to float32 first, as in PyTorch.
void pt_store_double(void *data, int32_t i, uint8_t dtype, double v);
void pt_store_float(void *data, int32_t i, uint8_t dtype, float v);
void pt_store_int(void *data, int32_t i, uint8_t dtype, int64_t v);
// Converts from[j] to to[i].
void pt_convert_element(void *to, int32_t i, uint8_t to_dtype, const void *from, int32_t j,
                        uint8_t from_dtype);

// ---- broadcasting

// Broadcasts `sizes` with the sizes of t; returns false if they do not match. `sizes` has
// PT_MAX_RANK entries, of which *rank are in use. The first call starts with rank 0.
bool pt_broadcast(int32_t *sizes, uint32_t *rank, const pt_tensor *t);

// ---- walk

enum {
    PT_PIECE = 4096,      // maximum elements between two polls
    PT_ELEMENT_STEPS = 8, // steps of an element, which may be a function value
};

// Counts `n` elements, at most PT_PIECE.
PT_MUST_USE int pt_count_elements(pt_context *c, int32_t n);

enum { PT_WALK_OPERANDS = 4 };

// A walk over the elements of up to four operands with different strides, row by row, long rows in
// pieces. It follows operand 0 in memory order. Within a piece of `n` elements, operand k steps by
// `strides[k][0]` from element `offset[k]`.
//
//   do {
//       row(w.n, out + w.offset[0], in + w.offset[1], w.strides[1][0]);
//   } while (pt_walk_next(c, &w));
//   return w.error;
//
// A walk takes 400 bytes of stack: a function with a walk should have few other variables.
typedef struct pt_walk {
    uint8_t rank;
    uint8_t operands;
    int32_t sizes[PT_MAX_RANK]; // after the start innermost first, and none is 1 except in rank 1
    int32_t strides[PT_WALK_OPERANDS][PT_MAX_RANK];
    int32_t index[PT_MAX_RANK];
    int32_t offset[PT_WALK_OPERANDS];
    int32_t n;
    int error; // error of a poll, which ended the walk
} pt_walk;

// Exchanges two dims of a walk.
void pt_walk_swap_dims(pt_walk *w, uint32_t a, uint32_t b);

// Starts a walk. The caller has set rank, operands, sizes and strides (outermost first, at most
// PT_MAX_RANK) and offsets. Sorts the dims, and joins dims that are contiguous in every operand. No
// size is 0.
void pt_walk_start(pt_walk *w);
// Starts a walk over `tensors` from offset 0. The tensors after the first are broadcast to the
// sizes of tensors[0]. No size is 0.
void pt_walk_tensors(pt_walk *w, uint32_t operands, const pt_tensor *const *tensors);
// Moves to the next piece; returns false at the end. Polls; an element counts as PT_ELEMENT_STEPS.
bool pt_walk_next(pt_context *c, pt_walk *w);
// Moves to the next row without a poll, for callers that poll in long rows.
bool pt_walk_next_row(pt_walk *w);

#endif
