// A .ptm file: methods as pt_load writes them, stored ahead of time.
//
//   pt_ptm_header | pt_ptm_method of each method, its records, and what these refer to | data
//
// A method's pt_method_record, the pt_value of its tensors, constant numbers, strings and lists,
// and its instructions stay in the file: references to them have the memory PT_MEMORY_PTM. The data
// of constant tensors and the packed weights follow: references to them have PT_MEMORY_PROGRAM.
// Records that instructions change (the pt_value of variables, bounds and sizes of dynamic tensors)
// are copied to the pool at load, to offset 0 of PT_MEMORY_POOL: variables first, then bound and
// sizes of each dynamic tensor, in the order of their records. All fields are little-endian and at
// multiples of 4, positions count from the start of the file, and a vector is a uint32_t, its
// length, followed by its items.
//
// The version also covers two properties of the kernels: the variants in the records of their calls
// (pt_note_variant), and the layout of the weights that they pack for each core
// (pt_request_packed). A file with other variants or layouts is refused or gives wrong outputs, so
// PT_PTM_MAGIC changes with them. tests/core/ptm.lock lists both for the fixtures.
#ifndef PT_CORE_PTM_H
#define PT_CORE_PTM_H

#include "core/record.h"

#include <picotorch/picotorch.h>

enum { PT_PTM_MAGIC = 0x354D5450 }; // "PTM5": the format's version

// Bit of `core`: its loops read some constants only packed, and the file omits their plain bytes.
enum { PT_PTM_OWN_CORE = 0x80 };

// `data` of an omitted constant. The header lies there: reading it is valid, and the bytes mean
// nothing.
enum { PT_DATA_LEFT_OUT = PT_MEMORY_PROGRAM << PT_REF_OFFSET_BITS };

typedef struct pt_ptm_header {
    uint32_t magic;
    uint32_t size;         // bytes
    uint32_t records;      // bytes before the data
    uint32_t sums[2];      // checksums of the fields from `operators` on
    uint32_t data_sums[2]; // checksums of the data
    uint16_t operators;    // operators known to the writer: operator numbers are below this
    uint8_t core;          // the core whose kernels packed: PT_CORE_..., PT_PTM_OWN_CORE
    uint8_t n_methods;
} pt_ptm_header; // then a vector: the position of each pt_ptm_method

typedef struct pt_ptm_method {
    uint32_t name;       // position of a vector of characters
    uint32_t record;     // position of the pt_method_record
    uint32_t n_records;  // number of pt_value records: tensors first, then constants
    uint32_t values;     // number of values, at most 65535, as a vector without items
    uint32_t inputs;     // position of a vector of indexes of values
    uint32_t outputs;    // position of a vector of indexes of values
    uint32_t operators;  // position of a vector of operator numbers
    uint32_t planned;    // position of a vector of int64_t: the bytes of each buffer; the first is
                         // reserved
    uint32_t attributes; // position of a vector of pt_ptm_attribute, sorted by value
    uint32_t initial;    // position of a vector of pt_ptm_initial
    uint32_t changing;   // position of the bytes that are copied to the pool
    uint32_t changing_bytes;
    uint32_t n_external;   // number of memories of tensors outside the planned memory
    uint32_t idle_scratch; // position of the pt_idle_scratch of each instruction; 0 for none
} pt_ptm_method;

typedef struct pt_ptm_attribute {
    uint32_t name; // position of a vector of characters
    uint32_t value;
} pt_ptm_attribute;

enum { PT_PTM_ZEROS = 0 }; // a `position` of initial bytes that are all 0

// Initial bytes of planned memory that the method reads before it writes them. An entry may overlap
// an earlier one.
typedef struct pt_ptm_initial {
    pt_ref to;
    uint32_t position; // or PT_PTM_ZEROS
    uint32_t bytes;
} pt_ptm_initial;

static inline const pt_ptm_header *pt_header_of(const pt_program *ptm) {
    return (const pt_ptm_header *)(const void *)ptm->data;
}

static inline const pt_ptm_method *pt_ptm_method_of(const pt_method_meta *meta) {
    return (const pt_ptm_method *)(const void *)(meta->program->data + meta->position);
}

// Returns length and items of a vector in a checked file.
static inline uint32_t pt_vector(const pt_program *ptm, uint32_t position, const void **items) {
    const uint32_t *vector = (const uint32_t *)(const void *)(ptm->data + position);
    *items = vector + 1;
    return *vector;
}

// True for a .ptm file of any version.
bool pt_begins_ptm(const void *data, uint32_t size);
// Adds up the words between two positions.
void pt_sum_ptm(const pt_program *ptm, uint32_t start, uint32_t end, uint32_t sums[2]);
// Checks all records: every position, index and size in them.
int pt_walk_ptm(const pt_program *ptm, pt_error *error);

int pt_ptm_load(pt_method *m, const pt_memories *memories, const pt_options *options,
                pt_error *error);
int pt_ptm_reset(pt_method *m, pt_error *error);

#endif
