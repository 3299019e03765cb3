// Parts of a program, for the rest of the core.
#ifndef PT_CORE_PROGRAM_H
#define PT_CORE_PROGRAM_H

#include "core/format/reader.h"
#include <picotorch/kernel.h>

static inline pt_reader pt_program_reader(const pt_program *p) {
    return (pt_reader){p->data, p->tables, false};
}

// Adds the offset of segment i to *position, for either format. Returns false if the segment does
// not lie in the `rest` bytes from there on.
bool pt_segment_at(pt_reader *r, uint32_t segments, uint32_t i, uint32_t rest, uint32_t *position,
                   uint32_t *size);
// Checks address and size of a file: InvalidArgument if the address is not aligned to 8,
// NotSupported above 128 MiB.
int pt_check_file(const void *data, uint32_t size, uint8_t subject, pt_error *error);
// Checks a file as pt_check_file does, but accepts up to PT_PROGRAM_LIMIT bytes.
static inline int pt_check_large_file(const void *data, uint32_t size, uint8_t subject,
                                      pt_error *error) {
    bool is_large = size > PT_MEMORY_LIMIT && size <= PT_PROGRAM_LIMIT;
    return pt_check_file(data, is_large ? PT_MEMORY_LIMIT : size, subject, error);
}
// Sets the position in the file of constant `index`, which has `size` bytes.
int pt_find_constant(const pt_program *p, pt_reader *r, uint32_t index, uint32_t size,
                     uint32_t *position, pt_error *error);
// Sets the position in the file of the initial value of a mutable buffer: item `index` of entry
// `entry` of the mutable data segments.
int pt_find_initial_value(const pt_program *p, pt_reader *r, uint32_t entry, uint32_t index,
                          uint32_t size, uint32_t *position, pt_error *error);
// Finds the bytes of segment `index`, for `subject` number `of`.
int pt_find_segment(const pt_program *p, uint32_t index, uint8_t subject, int32_t of, pt_span *data,
                    pt_error *error);

// Sets the number of value i, or of the value of input or output i. InvalidArgument,
// InvalidProgram.
int pt_value_index(const pt_method_meta *meta, pt_section what, uint32_t i, uint32_t *index,
                   pt_error *error);
// Sets the number of the value with this fully qualified name. NotFound.
int pt_find_attribute(const pt_method_meta *meta, const char *name, uint32_t length,
                      uint32_t *value, pt_error *error);

// The fields of a tensor's table and of its extra table, and the values that follow from them.
typedef struct pt_tensor_table {
    uint32_t storage_offset;
    uint32_t sizes; // positions of the vectors
    uint32_t dim_order;
    uint32_t constant; // index of the tensor's data
    uint32_t allocation;
    uint32_t extra;
    uint32_t nbytes; // bytes of the elements: 0 with a size of 0
    uint8_t dtype;
    uint8_t dynamism;
    uint8_t location; // location of the data, or of the initial value
    uint8_t flags;    // rank and PT_VALUE_CONTIGUOUS
} pt_tensor_table;

typedef struct pt_tensor_layout {
    pt_layout table;
    uint16_t at[PT_SLOT_TENSOR_EXTRA_TENSOR_INFO + 1]; // offsets of the fields, by slot
} pt_tensor_layout;

// A walk over the values of a method and their tensors.
typedef struct pt_values {
    uint32_t first; // position of the first offset to an EValue
    uint32_t n;     // number of values
    pt_pair_layout evalue;
    pt_tensor_layout tensor;
    pt_tensor_layout other_tensor;
} pt_values;

void pt_start_values(pt_values *values, pt_reader *r, const pt_method_meta *meta);
// Checks the vtable of the EValue at a position and stores the vtable. Returns 0 if the EValue lies
// outside the file.
uint32_t pt_find_evalue_layout(pt_reader *r, pt_values *values, uint32_t position);

static inline __attribute__((always_inline)) bool
pt_has_layout(const pt_reader *r, const pt_layout *l, uint32_t position) {
    return position <= l->last && position % 4 == 0 &&
           position - pt_read_u32(r->data + position) == l->vtable;
}

// Returns the target of the field at an offset of a table; 0 for a missing field.
static inline __attribute__((always_inline)) uint32_t pt_target_of(pt_reader *r, uint32_t table,
                                                                   uint32_t offset) {
    uint32_t position = table + offset;
    return offset ? pt_offset_to(r, position, pt_read_u32(r->data + position)) : 0;
}

// Returns the position of the EValue of an existing value i, and its type; 0 if the EValue lies
// outside the file.
static inline __attribute__((always_inline)) uint32_t pt_read_value(pt_reader *r, pt_values *values,
                                                                    uint32_t i, uint32_t *type) {
    uint32_t entry = values->first + 4 * i, position = entry + pt_read_u32(r->data + entry);
    if (!pt_has_layout(r, &values->evalue.table, position)) {
        position = pt_find_evalue_layout(r, values, position);
    }
    uint32_t offset = values->evalue.at[PT_SLOT_EVALUE_VAL_TYPE];
    *type = offset ? r->data[position + offset] : (uint32_t)PT_TYPE_NONE;
    return position;
}

// Returns the position of the table of the EValue at a position. This EValue was the last one read.
static inline uint32_t pt_value_member(pt_reader *r, const pt_values *values, uint32_t position) {
    return pt_target_of(r, position, values->evalue.at[PT_SLOT_EVALUE_VAL]);
}

// Returns the position of the table of value i if it is a tensor, else 0.
static inline uint32_t pt_tensor_at(pt_reader *r, pt_values *values, uint32_t i) {
    uint32_t type, position = pt_read_value(r, values, i, &type);
    if (type != PT_TYPE_TENSOR) {
        return 0;
    }
    position = pt_value_member(r, values, position);
    return position ? position : pt_bad(r);
}

// Reads the table of a tensor at a position, and computes its flags and bytes. InvalidProgram,
// NotSupported.
int pt_read_tensor(pt_reader *r, pt_values *values, uint32_t position, pt_tensor_table *t,
                   pt_error *error);
// Computes flags and bytes from sizes, dim order and dtype. InvalidProgram for a dim order that is
// no permutation of the dims, and for a negative size. InvalidProgram, too, for too many bytes: the
// product of all sizes but those of 0 is limited to PT_PROGRAM_LIMIT bytes and, unless the tensor
// is a constant, to PT_MEMORY_LIMIT elements. NotSupported for more than 16 dims and for a dtype
// without whole bytes.
int pt_measure_tensor(pt_reader *r, pt_tensor_table *t, pt_error *error);
// Computes flags and bytes as pt_measure_tensor does, for at most 16 sizes and a dim order of the
// same length.
int pt_measure(uint32_t rank, const uint8_t *sizes, const uint8_t *dim_order, uint8_t dtype,
               uint8_t *flags, uint32_t *nbytes, pt_error *error);
// Returns the position of the fully qualified name in a tensor's extra table; 0 if there is none.
uint32_t pt_name_position(pt_reader *r, uint32_t extra);
// Reads instruction number `next` of the current chain of a walk.
void pt_read_instruction(pt_reader *r, pt_instruction_walk *walk);
// Returns the alignment that the position of data misses: 8 for elements of 8 bytes or more at no
// multiple of 8, 4 for other data at no multiple of 4; else 0.
static inline uint32_t pt_misplaced(uint32_t position, uint8_t dtype) {
    if (position & 3) {
        return 4;
    }
    return position & 4 && pt_element_size(dtype) >= 8 ? 8 : 0;
}

#endif
