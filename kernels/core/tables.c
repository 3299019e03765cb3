// Values and tensors as the tables of a program have them.
#include "program.h"
#include "record.h"
#include "report.h"

// ---- tables, many of which have one vtable

// Checks the vtable of the table at a position, and where its fields lie. `kinds` has a letter for
// each slot: b a byte, i 32 bits, o an offset, - what is not read.
static uint32_t find_layout(pt_reader *r, pt_layout *l, const char *kinds, uint32_t position) {
    pt_table t = pt_table_at(r, position);
    uint32_t end = 4, slot = 0;
    for (; kinds[slot] && slot < t.n_slots; slot++) {
        uint32_t at = pt_field(r, &t, slot) - position, size = kinds[slot] == 'b' ? 1 : 4;
        if (kinds[slot] != '-' && at + position != 0) {
            end = at + size > end ? at + size : end;
            r->bad = r->bad || at % size;
        }
    }
    bool fits = position > 0 && !r->bad && end <= r->size && position <= r->size - end;
    *l = fits ? (pt_layout){t.vtable, r->size - end, slot} : (pt_layout){0, 0, 0};
    return fits ? position : pt_bad(r);
}

static inline bool has_layout(const pt_reader *r, const pt_layout *l, uint32_t position) {
    return position <= l->last && position % 4 == 0 &&
           position - pt_read_u32(r->data + position) == l->vtable;
}

// Goes to the table at a position; what is no table has no fields, at 0.
static inline uint32_t open(pt_reader *r, pt_layout *l, const char *kinds, uint32_t position) {
    return has_layout(r, l, position) ? position : find_layout(r, l, kinds, position);
}

// Offset of a field in its table; 0 where it is left out.
static inline uint32_t offset_of(const pt_reader *r, const pt_layout *l, uint32_t slot) {
    return slot < l->n_slots ? pt_read_u16(r->data + l->vtable + 4 + 2 * slot) : 0;
}

static inline uint8_t byte_of(const pt_reader *r, const pt_layout *l, uint32_t table,
                              uint32_t slot) {
    uint32_t offset = offset_of(r, l, slot);
    return offset ? r->data[table + offset] : 0;
}

static inline uint32_t word_of(const pt_reader *r, const pt_layout *l, uint32_t table,
                               uint32_t slot) {
    uint32_t offset = offset_of(r, l, slot);
    return offset ? pt_read_u32(r->data + table + offset) : 0;
}

static inline uint32_t target_of(pt_reader *r, const pt_layout *l, uint32_t table, uint32_t slot) {
    uint32_t offset = offset_of(r, l, slot), position = table + offset;
    return offset ? pt_offset_to(r, position, pt_read_u32(r->data + position)) : 0;
}

// ---- values

void pt_start_values(pt_values *values, pt_reader *r, const pt_plan *plan) {
    *values = (pt_values){.first = plan->values + 4};
    pt_items(r, plan->values, 4, &values->n);
}

static inline uint32_t read_value(pt_reader *r, pt_values *values, uint32_t i, uint32_t *type) {
    uint32_t entry = values->first + 4 * i;
    uint32_t position = open(r, &values->evalue, "bo", entry + pt_read_u32(r->data + entry));
    *type = byte_of(r, &values->evalue, position, PT_SLOT_EVALUE_VAL_TYPE);
    return position;
}

uint32_t pt_read_value(pt_reader *r, pt_values *values, uint32_t i, uint32_t *type) {
    return i < values->n ? read_value(r, values, i, type) : 0;
}

uint32_t pt_value_member(pt_reader *r, const pt_values *values, uint32_t position) {
    return target_of(r, &values->evalue, position, PT_SLOT_EVALUE_VAL);
}

uint32_t pt_next_tensor(pt_reader *r, pt_values *values, uint32_t *i) {
    uint32_t k = *i + 1, position = 0, type = PT_TYPE_NONE;
    for (; k < values->n && !r->bad; k++) {
        position = read_value(r, values, k, &type);
        if (type == PT_TYPE_TENSOR) {
            break;
        }
    }
    *i = k;
    if (k >= values->n || r->bad) {
        return 0;
    }
    position = pt_value_member(r, values, position);
    return position ? position : pt_bad(r);
}

// ---- tensors

pt_tensor_table pt_read_tensor(pt_reader *r, pt_values *values, uint32_t position) {
    pt_layout *l = &values->tensor;
    if (!has_layout(r, l, position)) { // tensors of two kinds take turns
        pt_layout last = *l;
        *l = values->other_tensor;
        values->other_tensor = last;
    }
    position = open(r, l, "bioo-io-bo", position);
    pt_tensor_table t = {
        .storage_offset = word_of(r, l, position, PT_SLOT_TENSOR_STORAGE_OFFSET),
        .sizes = target_of(r, l, position, PT_SLOT_TENSOR_SIZES),
        .dim_order = target_of(r, l, position, PT_SLOT_TENSOR_DIM_ORDER),
        .constant = word_of(r, l, position, PT_SLOT_TENSOR_DATA_BUFFER_IDX),
        .allocation = target_of(r, l, position, PT_SLOT_TENSOR_ALLOCATION_INFO),
        .extra = target_of(r, l, position, PT_SLOT_TENSOR_EXTRA_TENSOR_INFO),
        .dtype = byte_of(r, l, position, PT_SLOT_TENSOR_SCALAR_TYPE),
        .dynamism = byte_of(r, l, position, PT_SLOT_TENSOR_SHAPE_DYNAMISM),
        .location = PT_TENSOR_DATA_LOCATION_SEGMENT,
    };
    if (t.extra) {
        pt_table extra = pt_table_at(r, t.extra);
        t.location = (uint8_t)pt_field_u8(r, &extra, PT_SLOT_EXTRA_TENSOR_INFO_LOCATION);
    }
    return t;
}

int pt_dim_order_flags(uint32_t rank, const uint8_t *order) {
    uint32_t seen = 0, in_order = 0;
    if (rank > PT_MAX_RANK) {
        return -1;
    }
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

int pt_tensor_nbytes(uint8_t dtype, uint32_t rank, const uint8_t *sizes, uint32_t *nbytes,
                     pt_error *error) {
    uint32_t product = pt_element_size(dtype);
    bool is_empty = false;
    if (product == 0) {
        return pt_report(error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_DTYPE, dtype,
                         "tensors of this dtype");
    }
    for (uint32_t i = 0; i < rank && product <= PT_MEMORY_LIMIT; i++) {
        uint32_t size = pt_read_u32(sizes + 4 * i);
        uint64_t exact = (uint64_t)product * (size ? size : 1);
        is_empty = is_empty || size == 0;
        product = exact > PT_MEMORY_LIMIT ? UINT32_MAX : (uint32_t)exact; // or a negative size
    }
    *nbytes = is_empty ? 0 : product;
    return product <= PT_MEMORY_LIMIT
               ? PT_ERROR_OK
               : pt_report(error, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_NONE, PT_NO_INDEX,
                           "a tensor has a negative size or more than 128 MiB");
}

int pt_measure_tensor(pt_reader *r, const pt_tensor_table *t, uint8_t *flags, uint32_t *nbytes,
                      pt_error *error) {
    uint32_t rank, dims;
    const uint8_t *sizes = pt_items(r, t->sizes, 4, &rank);
    const uint8_t *order = pt_items(r, t->dim_order, 1, &dims);
    if (r->bad) {
        return pt_report_outside(error);
    }
    if (rank > PT_MAX_RANK) {
        return pt_report(error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_NONE, PT_NO_INDEX,
                         "tensors of more than 16 dims");
    }
    int found = rank == dims ? pt_dim_order_flags(rank, order) : -1;
    if (found < 0) {
        return pt_report(error, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_NONE, PT_NO_INDEX,
                         "a dim order is no permutation of the dims");
    }
    *flags = (uint8_t)found;
    return pt_tensor_nbytes(t->dtype, rank, sizes, nbytes, error);
}

uint32_t pt_name_position(pt_reader *r, const pt_tensor_table *t) {
    return pt_follow_slot(r, t->extra, PT_SLOT_EXTRA_TENSOR_INFO_FULLY_QUALIFIED_NAME);
}

uint32_t pt_misplaced(uint32_t position, uint8_t dtype) {
    if (position & 3) {
        return 4;
    }
    return position & 4 && pt_element_size(dtype) == 8 ? 8 : 0;
}

// ---- instructions

void pt_read_instruction(pt_reader *r, pt_plan_walk *w) {
    uint32_t entry = w->instructions + 4 + 4 * w->next;
    uint32_t at = open(r, &w->instruction, "bo", pt_follow(r, entry));
    uint8_t kind = byte_of(r, &w->instruction, at, PT_SLOT_INSTRUCTION_INSTR_ARGS_TYPE);
    bool is_call = kind == PT_INSTRUCTION_KERNEL_CALL || kind == PT_INSTRUCTION_DELEGATE_CALL;
    at = target_of(r, &w->instruction, at, PT_SLOT_INSTRUCTION_INSTR_ARGS);
    // of each kind slot 0 is an i32, slot 1 another or the arguments
    at = at ? open(r, &w->call, "ii", at) : 0;
    w->target = at ? (int32_t)word_of(r, &w->call, at, 0) : 0;
    w->other = at && !is_call ? (int32_t)word_of(r, &w->call, at, 1) : 0;
    w->args = at && is_call ? target_of(r, &w->call, at, PT_SLOT_KERNEL_CALL_ARGS) : 0;
    pt_items(r, w->args, 4, &w->n_args);
    w->bad = r->bad;
    w->kind = r->bad ? PT_INSTRUCTION_NONE : kind;
}
