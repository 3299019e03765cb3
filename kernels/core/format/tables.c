// Values and tensors in the tables of a program.
#include "core/format/program.h"
#include "core/record.h"
#include "core/report.h"
#include <string.h>

// ---- tables, many of which share a vtable

// Each string has a letter for each slot: b a byte, i 32 bits, o an offset, - a slot that is not
// read.
static const char union_kinds[] = "bo", tensor_kinds[] = "bioo-io-bo", call_kinds[] = "ii";

// Checks the vtable of the table at a position, and that its fields lie in the file. `at` gets the
// offsets of the fields.
static uint32_t find_layout(pt_reader *r, pt_layout *l, uint16_t *at, const char *kinds,
                            uint32_t position) {
    pt_table t = pt_table_at(r, position);
    uint32_t end = 4, slot = 0;
    for (; kinds[slot]; slot++) {
        uint32_t field = kinds[slot] == '-' ? 0 : pt_field(r, &t, slot);
        uint32_t offset = field ? field - position : 0, size = kinds[slot] == 'b' ? 1 : 4;
        end = offset && offset + size > end ? offset + size : end;
        r->bad = r->bad || offset % size;
        at[slot] = (uint16_t)offset;
    }
    if (position > 0 && !r->bad && end <= r->size && position <= r->size - end) {
        *l = (pt_layout){t.vtable, r->size - end};
        return position;
    }
    *l = (pt_layout){0, 0};
    memset(at, 0, slot * sizeof(*at));
    return pt_bad(r);
}

// Opens the table at a position; an object that is no table has no fields and position 0.
static inline uint32_t tables_open(pt_reader *r, pt_pair_layout *l, const char *kinds,
                                   uint32_t position) {
    return pt_has_layout(r, &l->table, position)
               ? position
               : find_layout(r, &l->table, l->at, kinds, position);
}

// Return a field of a table by its offset in the table.
static inline uint8_t byte_of(const pt_reader *r, uint32_t table, uint32_t offset) {
    return offset ? r->data[table + offset] : 0;
}

static inline uint32_t word_of(const pt_reader *r, uint32_t table, uint32_t offset) {
    return offset ? pt_read_u32(r->data + table + offset) : 0;
}

// ---- values

void pt_start_values(pt_values *values, pt_reader *r, const pt_method_meta *meta) {
    *values = (pt_values){.first = meta->values + 4};
    pt_evalues(r, meta->values, 4, &values->n);
}

uint32_t pt_find_evalue_layout(pt_reader *r, pt_values *values, uint32_t position) {
    return find_layout(r, &values->evalue.table, values->evalue.at, union_kinds, position);
}

// ---- tensors

// Returns the rank, with PT_VALUE_CONTIGUOUS if the dims are in order; -1 if the dim order is no
// permutation.
static inline int read_dim_order(uint32_t rank, const uint8_t *order) {
    uint32_t seen = 0, in_order = 0;
    while (in_order < rank && order[in_order] == in_order) {
        in_order++;
    }
    if (in_order == rank) {
        return (int)(rank | PT_VALUE_CONTIGUOUS);
    }
    for (uint32_t i = 0; i < rank; i++) {
        if (order[i] >= rank || seen & 1u << order[i]) {
            return -1;
        }
        seen |= 1u << order[i];
    }
    return (int)rank;
}

static inline int count_bytes(uint8_t dtype, uint32_t rank, const uint8_t *sizes, uint32_t limit,
                              uint32_t *nbytes, pt_error *error) {
    uint32_t product = pt_element_size(dtype);
    bool is_empty = false;
    if (product == 0) {
        return pt_report(error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_DTYPE, dtype,
                         "tensors of this dtype");
    }
    for (const uint8_t *end = sizes + 4 * rank; sizes != end; sizes += 4) {
        uint32_t size = pt_read_u32(sizes);
        uint64_t exact = (uint64_t)product * size; // a negative size is above any limit
        if (size == 0) {
            is_empty = true;
        } else if (exact > limit) {
            return pt_report(error, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_NONE, PT_NO_INDEX,
                             "a tensor has a negative size or is too large");
        } else {
            product = (uint32_t)exact;
        }
    }
    *nbytes = is_empty ? 0 : product;
    return PT_ERROR_OK;
}

static int refuse_dim_order(pt_error *error) {
    return pt_report(error, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_NONE, PT_NO_INDEX,
                     "a dim order is not a permutation of the dims");
}

int pt_measure(uint32_t rank, const uint8_t *sizes, const uint8_t *dim_order, uint8_t dtype,
               uint8_t *flags, uint32_t *nbytes, pt_error *error) {
    int found = read_dim_order(rank, dim_order);
    if (found < 0) {
        return refuse_dim_order(error);
    }
    *flags = (uint8_t)found;
    return count_bytes(dtype, rank, sizes, PT_MEMORY_LIMIT, nbytes, error);
}

// Returns the maximum bytes of a tensor. A result of kernels has at most the elements that a board
// allows.
static uint32_t limit_of(const pt_tensor_table *t) {
    bool is_constant =
        !t->allocation && (t->constant || t->location == PT_TENSOR_DATA_LOCATION_EXTERNAL);
    if (PT_PROGRAM_LIMIT == PT_MEMORY_LIMIT || is_constant) {
        return PT_PROGRAM_LIMIT;
    }
    uint64_t max = (uint64_t)PT_MEMORY_LIMIT * pt_element_size(t->dtype);
    return max < PT_PROGRAM_LIMIT ? (uint32_t)max : PT_PROGRAM_LIMIT;
}

int pt_measure_tensor(pt_reader *r, pt_tensor_table *t, pt_error *error) {
    uint32_t rank, dims;
    const uint8_t *sizes = pt_evalues(r, t->sizes, 4, &rank);
    const uint8_t *order = pt_evalues(r, t->dim_order, 1, &dims);
    if (r->bad) {
        return pt_report_outside(error);
    }
    if (rank > PT_MAX_RANK) {
        return pt_report(error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_NONE, PT_NO_INDEX,
                         "tensors of more than 16 dims");
    }
    int flags = rank == dims ? read_dim_order(rank, order) : -1;
    if (flags < 0) {
        return refuse_dim_order(error);
    }
    t->flags = (uint8_t)flags;
    return count_bytes(t->dtype, rank, sizes, limit_of(t), &t->nbytes, error);
}

int pt_read_tensor(pt_reader *r, pt_values *values, uint32_t position, pt_tensor_table *t,
                   pt_error *error) {
    // constants and other tensors alternate, so both layouts are kept
    pt_tensor_layout *l = &values->tensor;
    if (pt_has_layout(r, &values->other_tensor.table, position)) {
        l = &values->other_tensor;
    } else if (!pt_has_layout(r, &l->table, position)) {
        values->other_tensor = *l;
        position = find_layout(r, &l->table, l->at, tensor_kinds, position);
    }
    t->dtype = byte_of(r, position, l->at[PT_SLOT_TENSOR_SCALAR_TYPE]);
    t->dynamism = byte_of(r, position, l->at[PT_SLOT_TENSOR_SHAPE_DYNAMISM]);
    t->location = PT_TENSOR_DATA_LOCATION_SEGMENT;
    t->storage_offset = word_of(r, position, l->at[PT_SLOT_TENSOR_STORAGE_OFFSET]);
    t->constant = word_of(r, position, l->at[PT_SLOT_TENSOR_DATA_BUFFER_IDX]);
    t->allocation = pt_target_of(r, position, l->at[PT_SLOT_TENSOR_ALLOCATION_INFO]);
    t->extra = pt_target_of(r, position, l->at[PT_SLOT_TENSOR_EXTRA_TENSOR_INFO]);
    if (t->extra) {
        pt_table extra = pt_table_at(r, t->extra);
        t->location = (uint8_t)pt_field_u8(r, &extra, PT_SLOT_EXTRA_TENSOR_INFO_LOCATION);
    }
    t->sizes = pt_target_of(r, position, l->at[PT_SLOT_TENSOR_SIZES]);
    t->dim_order = pt_target_of(r, position, l->at[PT_SLOT_TENSOR_DIM_ORDER]);
    return pt_measure_tensor(r, t, error);
}

uint32_t pt_name_position(pt_reader *r, uint32_t extra) {
    return pt_follow_slot(r, extra, PT_SLOT_EXTRA_TENSOR_INFO_FULLY_QUALIFIED_NAME);
}

// ---- instructions

void pt_read_instruction(pt_reader *r, pt_instruction_walk *w) {
    uint32_t entry = w->instructions + 4 + 4 * w->next;
    uint32_t at = tables_open(r, &w->instruction, union_kinds, pt_follow(r, entry));
    uint8_t kind = byte_of(r, at, w->instruction.at[PT_SLOT_INSTRUCTION_INSTR_ARGS_TYPE]);
    bool is_call = kind == PT_INSTRUCTION_KERNEL_CALL || kind == PT_INSTRUCTION_DELEGATE_CALL;
    at = pt_target_of(r, at, w->instruction.at[PT_SLOT_INSTRUCTION_INSTR_ARGS]);
    // in an instruction of any kind slot 0 is an i32, and slot 1 another i32 or the arguments
    at = at ? tables_open(r, &w->call, call_kinds, at) : 0;
    w->target = at ? (int32_t)word_of(r, at, w->call.at[0]) : 0;
    w->other = at && !is_call ? (int32_t)word_of(r, at, w->call.at[1]) : 0;
    w->args = at && is_call ? pt_target_of(r, at, w->call.at[1]) : 0;
    pt_evalues(r, w->args, 4, &w->n_args);
    w->bad = r->bad;
    w->kind = r->bad ? PT_INSTRUCTION_NONE : kind;
}
