// Parts of a program, for the rest of the core.
#ifndef PT_CORE_PROGRAM_H
#define PT_CORE_PROGRAM_H

#include "reader.h"

static inline pt_reader pt_program_reader(const pt_program *p) {
    return (pt_reader){p->data, p->tables, false};
}

// InvalidArgument for a file that is not aligned to 8, NotSupported above 128 MiB.
int pt_check_file(const void *data, uint32_t size, uint8_t subject, pt_error *error);
// Position in the file of constant `index`, of `size` bytes.
int pt_find_constant(const pt_program *p, pt_reader *r, uint32_t index, uint32_t size,
                     uint32_t *position, pt_error *error);
// The same of the initial value of a mutable buffer: item `index` of entry `entry` of the mutable
// data segments.
int pt_find_initial_value(const pt_program *p, pt_reader *r, uint32_t entry, uint32_t index,
                          uint32_t size, uint32_t *position, pt_error *error);
// The bytes of segment `index`, of `subject` number `of`.
int pt_find_segment(const pt_program *p, uint32_t index, uint8_t subject, int32_t of, pt_span *data,
                    pt_error *error);

// Number of value i, or of the value that input or output i is. InvalidArgument, InvalidProgram.
int pt_value_index(const pt_plan *plan, pt_what what, uint32_t i, uint32_t *index, pt_error *error);

// The fields of a tensor's table, and of that with more about it.
typedef struct pt_tensor_table {
    uint32_t storage_offset;
    uint32_t sizes; // positions
    uint32_t dim_order;
    uint32_t constant; // index of its data
    uint32_t allocation;
    uint32_t extra;
    uint8_t dtype;
    uint8_t dynamism;
    uint8_t location; // of its data, or initial value
} pt_tensor_table;

// The values of a plan, read one after the other, and their tensors.
typedef struct pt_values {
    uint32_t first; // position of the first offset to an EValue
    uint32_t n;     // values
    pt_layout evalue;
    pt_layout tensor;
    pt_layout other_tensor;
} pt_values;

void pt_start_values(pt_values *values, pt_reader *r, const pt_plan *plan);
// Position of the EValue of value i, and its type; 0 where it leads outside, or there is none.
uint32_t pt_read_value(pt_reader *r, pt_values *values, uint32_t i, uint32_t *type);
// Position of the table that the EValue at a position, the last that was read, holds.
uint32_t pt_value_member(pt_reader *r, const pt_values *values, uint32_t position);
// Goes to the next tensor behind value *i, which begins as -1: the position of its table, or 0
// behind the last.
uint32_t pt_next_tensor(pt_reader *r, pt_values *values, uint32_t *i);
pt_tensor_table pt_read_tensor(pt_reader *r, pt_values *values, uint32_t position);
// Reads instruction number `next` of the chain that a walk is in.
void pt_read_instruction(pt_reader *r, pt_plan_walk *walk);
// Rank and PT_VALUE_CONTIGUOUS of these sizes and this dim order, and the bytes of their elements.
// InvalidProgram, NotSupported.
int pt_measure_tensor(pt_reader *r, const pt_tensor_table *t, uint8_t *flags, uint32_t *nbytes,
                      pt_error *error);
// Its fully qualified name; 0 where there is none.
uint32_t pt_name_position(pt_reader *r, const pt_tensor_table *t);
// Bytes of a tensor: 0 with a size of 0. InvalidProgram for sizes that, but for those of 0, make
// more than 128 MiB or that are negative, NotSupported for a dtype without whole bytes.
int pt_tensor_nbytes(uint8_t dtype, uint32_t rank, const uint8_t *sizes, uint32_t *nbytes,
                     pt_error *error);
// Rank and PT_VALUE_CONTIGUOUS of a dim order; -1 when it is no permutation of so many dims, of 16
// at most.
int pt_dim_order_flags(uint32_t rank, const uint8_t *order);
// 4 for data of a dtype that lies at no multiple of 4, 8 for elements of 8 bytes at no multiple of
// 8; else 0.
uint32_t pt_misplaced(uint32_t position, uint8_t dtype);

#endif
