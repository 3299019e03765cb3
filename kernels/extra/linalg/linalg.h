// Shared by the operators of linear algebra: matrices of float32 or float64 in the last two dims of
// tensors in any dim order. The other dims are the batch, and are broadcast.
//
// The functions of a family are in an .inc file, which its C file includes twice: after
// linalg_float.inc, and after linalg_double.inc. Scratch grows with one matrix, whose size has no
// other limit.
#ifndef PT_PORTABLE_LINALG_H
#define PT_PORTABLE_LINALG_H

#include "portable/double_math.h"

// A matrix in the memory of a tensor. A vector is a column, a number a matrix of one element.
typedef struct pt_matrix {
    void *data; // data of the tensor
    int32_t at; // offset of the first element in the tensor
    int32_t rows, columns;
    int32_t down, right; // elements from row to row, and from column to column
} pt_matrix;

static inline pt_matrix pt_transposed(pt_matrix m) {
    return (pt_matrix){m.data, m.at, m.columns, m.rows, m.right, m.down};
}

// The dims that count the matrices of one or more tensors.
typedef struct pt_batch {
    uint32_t rank;
    int32_t sizes[PT_MAX_RANK];
} pt_batch;

// Returns the batch of a tensor: all dims except the last `inner`.
pt_batch pt_batch_of(const pt_tensor *t, uint32_t inner);
// Broadcasts a batch with the batch of another tensor.
PT_MUST_USE int pt_join_batch(pt_context *c, pt_batch *b, const pt_tensor *t, uint32_t inner);
// For a run: returns the number of matrices in the batch; 0 if no output of the call has elements,
// since the batch may then have any size.
int32_t pt_batch_count(const pt_context *c, const pt_batch *b);
// Returns matrix i of a batch in a tensor; `inner` is 2 for matrices, 1 for vectors, 0 for numbers.
pt_matrix pt_matrix_of(const pt_tensor *t, uint32_t inner, const pt_batch *b, int32_t i);

// Rejects a tensor of other dtypes than float32 and float64, or of less than 2 dims.
PT_MUST_USE int pt_check_matrices(pt_context *c, const pt_tensor *t);
// Rejects the tensors that pt_check_matrices rejects, and matrices that are not square.
PT_MUST_USE int pt_check_square(pt_context *c, const pt_tensor *t);
enum { PT_NO_COLUMNS = -1 };
// Rejects another dtype. Expects a batch of rows x columns; vectors if `columns` is PT_NO_COLUMNS;
// numbers if `rows` is PT_NO_COLUMNS, too.
PT_MUST_USE int pt_expect_matrices(pt_context *c, pt_ref arg, uint8_t dtype, const pt_batch *b,
                                   int32_t rows, int32_t columns);
// Expects one dim without elements: an output that is not requested.
PT_MUST_USE int pt_expect_none(pt_context *c, pt_ref arg, uint8_t dtype);
// Expects an int32 for each matrix: its info, which is not 0 if the operation failed for the
// matrix.
PT_MUST_USE int pt_expect_info(pt_context *c, pt_ref arg, const pt_batch *b);
// Returns the bytes of scratch for `reals` numbers of `size` bytes and `ints` int32. The result is
// above PT_MEMORY_LIMIT if they are too many; pt_request_matrices rejects it then.
uint32_t pt_matrix_scratch(uint32_t size, int64_t reals, int64_t ints);
PT_MUST_USE int pt_request_matrices(pt_context *c, uint32_t bytes);
// Counts the work for each matrix in addition to the work for its elements.
PT_MUST_USE static inline int pt_count_matrix(pt_context *c) {
    return pt_count_work(c, 16);
}
// For a run: stores the info of matrix i. If the info is not 0 and `raises` is set, returns an
// error instead.
PT_MUST_USE int pt_set_info(pt_context *c, bool raises, const pt_tensor *info, const pt_batch *b,
                            int32_t i, int32_t value, const char *reason);

#define PT_REASON_FIT "the operands do not fit together"
#define PT_REASON_NOT_FINITE "a matrix has an infinity or a NaN"

// Defines the kernel of an operator, and the kernel of a build with float64: see
// PT_EXTENDED_OPERATOR in operators.def. Both reject float64 if pt_float64 is NULL.
#define PT_LINALG_KERNEL(name, symbol, wide_symbol)                                          \
    static int name##_run(pt_context *c, const pt_ref *args) {                               \
        return pt_get_tensor(c, args[0]).dtype == PT_DTYPE_DOUBLE ? name##_run_f64(c, args)  \
                                                                  : name##_run_f32(c, args); \
    }                                                                                        \
    const pt_kernel pt_##symbol = PT_KERNEL(name##_check, name##_run_f32);                   \
    const pt_kernel pt_##wide_symbol = PT_KERNEL(name##_check, name##_run);

#endif
