// The contents of a pool: the records of a loaded method, and the functions of the core that read
// and write them.
//
// A loaded method is a run of little-endian records in its pool. A record holds no address but
// *references*: which memory, and the offset in it. So a pool has the same bytes on every machine.
// Whatever cannot change while a method runs (scalars, lists of ints, sizes, dim orders, constant
// data) stays in the program and is referred to there.
#ifndef PT_RECORD_H
#define PT_RECORD_H

#include <picotorch/kernel.h>

// ---- records

// Kinds of values in a record. That of a tensor is its scalar type.
enum { PT_VALUE_OTHER = 0x40 }; // + KernelTypes of a list or of a variable

// A value that may change, or whose record saves time: tensors, variables (numbers that an
// instruction writes) and lists of either.
typedef struct pt_value {
    pt_ref data;      // list: reference to pt_ref[]; variable: the low half of its number
    uint32_t sizes;   // tensor: reference to int32_t[rank]; list: number of items; variable: the
                      // high half. Of a dynamic tensor the word before the sizes is the most
                      // elements that it may have
    pt_ref dim_order; // tensor: reference to uint8_t[rank]
    uint16_t index;   // number among the program's values; records are sorted by it
    uint8_t type;
    uint8_t flags; // rank in the low bits
} pt_value;

// `data` of a tensor outside the planned memory until pt_place_unplanned gives it a memory.
enum { PT_DATA_UNPLANNED = 1 };

typedef struct pt_instruction {
    uint16_t kernel; // number of the operator, see operators.def
    uint8_t n_args;
    uint8_t op;    // PT_OP_...; beside that of a kernel call, in the high bits: its shortcut
    pt_ref args[]; // a pt_value in the pool, an EValue in the program, or 0 for None
} pt_instruction;

// Uses that an instruction makes of its arguments.
enum {
    PT_OP_KERNEL_CALL, // those of the kernel
    PT_OP_JUMP_FALSE,  // condition; reference to the instruction to go on with; its index
    PT_OP_MOVE,        // tensor or number; tensor or variable that gets its value
    PT_OP_NOTHING,
    PT_OP_DYNAMIC_CALL,      // those of the kernel, whose check is repeated before each run
    PT_OP_DELEGATE_CALL = 8, // `kernel`: index of the delegate; its arguments, then a reference to
                             // the program's vector of their value indexes
};

// The start of a loaded method.
typedef struct pt_method_record {
    uint16_t n_values;    // tensors
    uint16_t n_variables; // whose records follow the tensors'
    uint32_t n_instructions;
    pt_ref values;         // pt_value[n_values + n_variables]
    pt_ref instructions;   // the first pt_instruction; the others follow
    pt_ref program_values; // the meta's vector of EValue, in the program
    uint32_t scratch;      // bytes of temp memory that the kernels ask for
    pt_ref packed;         // pt_ref[n_instructions] to what their checks packed; 0 for nothing
} pt_method_record;

// Without a shortcut.
static inline uint32_t pt_op(const pt_instruction *instruction) {
    return instruction->op & 15u;
}

static inline uint32_t pt_offset_of(pt_ref ref) {
    return (ref & ((1u << PT_REF_OFFSET_BITS) - 1)) << 2;
}

// The record of the method.
static inline pt_method_record *pt_record_of(const pt_context *c) {
    return (pt_method_record *)(void *)(c->records + c->method);
}

// Bytes of the events of a method that is measured.
static inline uint32_t pt_events_size(const pt_context *c) {
    return (pt_record_of(c)->n_instructions + 1) * (uint32_t)sizeof(pt_event);
}

// True of a method whose records lie in an image, which cannot be written.
static inline bool pt_is_ptm(const pt_context *c) {
    return !PT_HAS_PROGRAMS || (PT_HAS_PTM && c->memory[PT_MEMORY_PTM] != NULL);
}

static inline pt_instruction *pt_first_instruction(const pt_context *c) {
    return (pt_instruction *)(void *)pt_at(c, pt_record_of(c)->instructions);
}

// The instruction behind one: the only way to walk them.
static inline pt_instruction *pt_next_instruction(const pt_instruction *instruction) {
    return (pt_instruction *)(uintptr_t)(instruction->args + instruction->n_args);
}

// The place of the next instruction's temp memory, in a method that has them.
static inline const pt_idle_scratch *pt_idle_scratch_of(const pt_context *c) {
    return (const pt_idle_scratch *)(const void *)pt_at(c, c->idle_scratch) + c->instruction;
}

static inline pt_instruction *pt_instruction_at(const pt_context *c, uint32_t position) {
    return (pt_instruction *)(void *)(c->records + position);
}

// Goes to the instruction behind this one.
static inline void pt_go_on(pt_context *c, const pt_instruction *instruction) {
    c->instruction++;
    c->position += sizeof(pt_instruction) + instruction->n_args * sizeof(pt_ref);
}

// ---- records of values

// Place of the first of n records whose index is not below `index`; n for none.
static inline uint32_t pt_search_values(const pt_value *values, uint32_t n, uint32_t index) {
    uint32_t low = 0;
    for (uint32_t high = n; low < high;) {
        uint32_t middle = (low + high) / 2;
        if (values[middle].index < index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

// True for a reference to a record, of the pool or an image: their memories differ in the last bit.
// In an image there is nothing else.
static inline bool pt_is_record(pt_ref arg) {
    if (!PT_HAS_PROGRAMS || !PT_HAS_PTM) {
        return !PT_HAS_PROGRAMS || arg >> PT_REF_OFFSET_BITS == PT_MEMORY_POOL;
    }
    return arg >> (PT_REF_OFFSET_BITS + 1) == PT_MEMORY_POOL >> 1;
}

// The record of a tensor; NULL for an argument that is none.
static inline const pt_value *pt_tensor_record(const pt_context *c, pt_ref arg) {
    if (!pt_is_record(arg)) {
        return NULL;
    }
    const pt_value *value = (const pt_value *)(const void *)pt_at(c, arg);
    return value->type < PT_VALUE_OTHER ? value : NULL;
}

// The record of value `index` where all values up to it are tensors, as constants mostly are; else
// 0.
static inline pt_ref pt_leading_value(const pt_context *c, uint32_t index) {
    const pt_method_record *m = pt_record_of(c);
    pt_ref ref = m->values + index * (uint32_t)(sizeof(pt_value) / 4);
    return index < m->n_values && ((const pt_value *)(const void *)pt_at(c, ref))->index == index
               ? ref
               : 0;
}

// Type of an EValue: PT_TYPE_...
uint8_t pt_value_type(const uint8_t *evalue);
// Index of the value that item i of a list of ints in the program names.
int64_t pt_list_index(const pt_context *c, pt_ref list, uint32_t i);
// The record of a tensor or of a variable of the method by the index of the value; 0 for none.
pt_ref pt_find_value(const pt_context *c, uint32_t index);
// The same: quicker where the tensor comes soon after the last one that was found with this *near,
// which begins as 0.
pt_ref pt_find_value_near(const pt_context *c, uint32_t index, uint32_t *near);
pt_ref pt_find_variable(const pt_context *c, uint32_t index);
// Sorts numbers and removes those that stand there twice; how many are left.
uint32_t pt_sort(uint32_t *items, uint32_t n);
// Turns the indexes of n values, sorted at `position` of the pool, into records of variables there,
// with the numbers of the program. -1, or the first index that names no number.
int32_t pt_put_variables(const pt_context *c, uint32_t position, uint32_t n);
// Gives all variables of the method the numbers of the program again.
void pt_reset_variables(const pt_context *c);
// Charges the items of a list of ints to the number that loading may read; false when that is used
// up.
bool pt_charge_list_items(pt_context *c, pt_ref list);
// True when a list of ints in the program has an item that is a variable, and its items are
// charged.
bool pt_list_has_variable(pt_context *c, pt_ref list);
// Gives a dynamic tensor sizes of its own, from offset `at` of the pool on: a word for the bound,
// then the sizes, which are at first those of the program. One without dims has nothing to change:
// it becomes static. Returns their bytes.
uint32_t pt_make_dynamic(const pt_context *c, pt_ref tensor, uint32_t at);

// ---- the registry of kernels

// Number of the operator `name.overload`, see operators.def; -1 when it is not known or this build
// has no kernel for it.
int pt_find_operator(const char *name, uint32_t name_length, const char *overload,
                     uint32_t overload_length);
// One more than the highest number that this build has a kernel for.
uint32_t pt_operator_count(void);
// "" for an operator that is not linked.
const char *pt_operator_name(uint32_t operator_number);
// One letter an argument, see operators.def; "" for an operator that is not linked.
const char *pt_operator_signature(uint32_t operator_number);
// The schema's name of argument i, `length` characters, not terminated; none where the operator is
// not linked or has no such argument.
const char *pt_operator_argument(uint32_t operator_number, uint32_t i, uint32_t *length);
// Properties of a signature that loading uses.
enum {
    PT_HAS_LISTS = 1,    // V, W or U: lists of tensors, which have records in the pool
    PT_HAS_VARIABLE = 2, // N, always the last letter
    PT_HAS_VIEW = 4,     // A, always the last letter
    PT_NAMES_RESULT = 8, // a call has one more argument: what it returns
};
// Counts its arguments, too.
uint32_t pt_operator_traits(uint32_t operator_number, uint32_t *n_args);
// NULL where the build has no kernel for it.
const pt_kernel *pt_operator_kernel(uint32_t operator_number);

// ---- executor

// True when `arg` is of the kind of `letter`, see operators.def. In a check of upper bounds a
// variable is of every kind that a number may be.
bool pt_has_kind(const pt_context *c, pt_ref arg, char letter);
// Gives each tensor whose data is PT_DATA_UNPLANNED its memory, after all records of the method are
// written: a view, if any instruction makes one, shares that of its source, any other tensor gets a
// memory of its own, from number *external on; *external is then one more than the last. On an
// error c->instruction is that of a view, or c->argument the index of a value for which there is no
// memory.
int pt_place_unplanned(pt_context *c, bool has_views, uint32_t *external);
// Sets the sizes of dynamic tensors to 0 that are larger than the memory at whose start they lie,
// after the caller has exchanged that memory.
void pt_clear_oversized(const pt_context *c, uint32_t memory);
// Checks the instruction record at `position` of the pool: kinds of the arguments (of a kernel
// call: against the signature of its operator), then the kernel's own check. The loader checks
// where a jump leads.
int pt_check_instruction(pt_context *c, uint32_t position);
// Checks the kinds of the arguments of a kernel call against the signature of its operator.
int pt_check_kinds(pt_context *c, const pt_instruction *instruction);
// True for a number that instructions write.
bool pt_is_variable(const pt_context *c, pt_ref arg);
// True when the next instruction, a kernel call, reads its output `arg`, too, or has it as two
// outputs.
bool pt_is_elsewhere(const pt_context *c, pt_ref arg);
// Checks all instructions of the method. c->instruction is the first one that is refused.
int pt_check_method(pt_context *c);
// To the first instruction of the method.
void pt_start(pt_context *c);
// Bytes of pool that pt_pack_weights needs, after all instructions were checked with c->packs; 0
// when no check has asked for any.
uint32_t pt_packed_bytes(const pt_context *c);
// Checks all instructions of the method once more, which now pack what they asked for, into the
// pool from offset `position` (aligned to 8) on.
void pt_pack_weights(pt_context *c, uint32_t position);
// Executes one instruction. PT_ERROR_END_OF_METHOD when there is none left; after any other error
// the method is at its first instruction, and c->failed is the one that failed.
int pt_context_step(pt_context *c);
// Executes from the first instruction to the end. The method is then at its first instruction,
// after an error, too; c->failed is where it ended.
int pt_context_execute(pt_context *c);

// Measures from now on into `events`, one more than the method has instructions. Measures first
// what measuring takes.
void pt_set_tracer(pt_context *c, pt_event *events, uint64_t (*clock)(void), uint64_t mask);

// ---- checks of memories that come after load

// The first memory from number `first` to below `end` that shares a byte with the `size` bytes at
// `data`, PT_MEMORIES when the temp memory or that of events does, PT_MEMORY_NONE when none does.
uint32_t pt_find_overlap(const pt_context *c, const uint8_t *data, uint32_t size, uint32_t first,
                         uint32_t end);
// True when tensor `argument` of n arguments shares no memory with another of them.
bool pt_is_apart(const pt_context *c, uint32_t argument, uint32_t n, const pt_ref *args);
// True when a place shares no byte with a tensor of this call.
bool pt_is_idle(const pt_context *c, const pt_instruction *call, const pt_idle_scratch *idle);
// True when an instruction of the started method writes to a tensor in this memory.
bool pt_is_written(const pt_context *c, uint32_t memory);
// The first memory from `first` to below `end` that shares a byte with one of them before it, where
// an instruction of the started method writes to one of the two; PT_MEMORY_NONE for none.
uint32_t pt_find_shared(const pt_context *c, uint32_t first, uint32_t end);
// Bytes that this memory, of unplanned tensors, must have for the static tensors in it; with
// `bounds` for the dynamic ones at their upper bounds, too.
uint32_t pt_memory_needed(const pt_context *c, uint32_t memory, bool bounds);

// ---- verification

enum {
    PT_FORMAT_PROGRAM,     // .pte
    PT_FORMAT_FLAT_TENSOR, // .ptd
    PT_FORMATS
};

// Checks the structure of the file of `size` bytes at `data`, which is aligned to 4: -1, or the
// position in the file at which it is wrong.
int32_t pt_verify(const uint8_t *data, uint32_t size, uint32_t format);

#endif
