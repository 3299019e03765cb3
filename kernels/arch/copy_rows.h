// Copy rows of bytes, and planes of elements whose dims lie in another order: parts of tensors
// (portable/copy.c), permutations (portable/permute.c), padded images (cortex_m/pad.c). Block of
// rows: 16 bytes with MVE, four words on other cores; on cores without unaligned accesses four
// halfwords or bytes, by the alignment of all rows. Block of planes: 8 gathered bytes with MVE, 4 x
// 4 bytes with Thumb-2, 4 rows of words. No scratch.
#ifndef PT_ARCH_COPY_ROWS_H
#define PT_ARCH_COPY_ROWS_H

#include <stdint.h>

// Copies `rows` rows of n bytes; from row to row the addresses move by the steps. Both counts are
// at least 0. Source and destination of a row may be equal. Otherwise no destination overlaps a
// source, of another row neither.
void pt_copy_rows(void *to, int32_t to_step, const void *from, int32_t from_step, int32_t n,
                  int32_t rows);

// Two dims of a copy: `rows` rows of `columns` elements that are adjacent in the output. The other
// fields are the elements between neighbours along both dims.
typedef struct pt_plane {
    int32_t rows, columns;
    int32_t out_row, in_row, in_column;
} pt_plane;

// Copies a plane of elements of 1, 2, 4, 8 or 16 bytes.
void pt_copy_plane(const pt_plane *p, void *out, const void *in, uint32_t size);

#endif
