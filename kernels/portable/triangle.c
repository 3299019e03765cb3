// tril_indices and triu_indices: (row, col, offset, out): the row indices, then the column indices,
// of the elements of a triangle of a matrix, row by row.
#include "core/generated/operator_arguments.h"
#include "portable/arguments.h"
#include "portable/dtype_access.h"

// Columns first..end-1 of each row are in the triangle.
typedef struct triangle {
    int64_t rows, columns, offset;
    bool upper;
} triangle;

static int64_t triangle_clamp(int64_t v, int64_t max) {
    return v < 0 ? 0 : v > max ? max : v;
}

// Counts the elements of the lower triangle, where column - row <= offset.
static int64_t count_lower(const triangle *t, int64_t offset) {
    const int64_t first = triangle_clamp(-offset, t->rows); // earlier rows have no elements
    const int64_t full = triangle_clamp(t->columns - offset, t->rows);
    const int64_t end = full > first ? full : first; // later rows have all elements
    const int64_t n = end - first, shortest = first + offset + 1;
    return n * shortest + n * (n - 1) / 2 + (t->rows - end) * t->columns;
}

static int check_triangle(pt_context *c, const pt_ref *args, triangle *t, bool upper) {
    pt_tensor out = pt_get_tensor(c, args[TRIL_INDICES_OUT]);
    t->rows = pt_get_int(c, args[TRIL_INDICES_ROW]);
    t->columns = pt_get_int(c, args[TRIL_INDICES_COL]);
    const int64_t offset = pt_get_int(c, args[TRIL_INDICES_OFFSET]);
    t->offset = offset < -INT32_MAX ? -INT32_MAX : offset > INT32_MAX ? INT32_MAX : offset;
    t->upper = upper;
    if (t->rows < 0 || t->columns < 0 || t->rows > INT32_MAX || t->columns > INT32_MAX) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "row or col is out of range");
    }
    if (out.dtype != PT_DTYPE_LONG && out.dtype != PT_DTYPE_INT) {
        return pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "indices must be int64 or int32");
    }
    const int64_t count =
        upper ? t->rows * t->columns - count_lower(t, t->offset - 1) : count_lower(t, t->offset);
    const int32_t sizes[] = {2, (int32_t)count};
    return count > INT32_MAX ? pt_fail(c, PT_ERROR_INVALID_ARGUMENT, "there are too many indices")
                             : pt_expect_sizes(c, args[TRIL_INDICES_OUT], 2, sizes);
}

static int run_triangle(pt_context *c, const pt_ref *args, bool upper) {
    pt_tensor out = pt_get_tensor(c, args[TRIL_INDICES_OUT]);
    triangle t;
    PT_TRY(check_triangle(c, args, &t, upper));
    int32_t strides[2];
    pt_strides(&out, strides);
    int32_t at = 0;
    // Rows without elements precede or follow the others.
    const int64_t begin = upper ? 0 : triangle_clamp(-t.offset, t.rows);
    const int64_t end = upper ? triangle_clamp(t.columns - t.offset, t.rows) : t.rows;
    for (int64_t row = begin; row < end && t.columns > 0; row++) {
        const int64_t first = upper ? triangle_clamp(row + t.offset, t.columns) : 0;
        const int64_t last = upper ? t.columns : triangle_clamp(row + t.offset + 1, t.columns);
        for (int64_t column = first; column < last; column++, at += strides[1]) {
            PT_TRY(pt_count_elements(c, 1));
            pt_store_int(out.data, at, out.dtype, row);
            pt_store_int(out.data, at + strides[0], out.dtype, column);
        }
    }
    return PT_ERROR_OK;
}

static int triangle_check_tril(pt_context *c, const pt_ref *args) {
    triangle t;
    return check_triangle(c, args, &t, false);
}

static int triangle_run_tril(pt_context *c, const pt_ref *args) {
    return run_triangle(c, args, false);
}

static int check_triu(pt_context *c, const pt_ref *args) {
    triangle t;
    return check_triangle(c, args, &t, true);
}

static int run_triu(pt_context *c, const pt_ref *args) {
    return run_triangle(c, args, true);
}

const pt_kernel pt_aten_tril_indices_out = PT_KERNEL(triangle_check_tril, triangle_run_tril);
const pt_kernel pt_aten_triu_indices_out = PT_KERNEL(check_triu, run_triu);
