// The contents of a pool: the records of a loaded method, and the functions of the core that read
// and write the records.
//
// A loaded method is a run of little-endian records in its pool. A record contains no address but
// *references*: the number of a memory, and the offset in it. So a pool has the same bytes on every
// machine. Constant values (scalars, lists of ints, sizes, dim orders, constant data) stay in the
// program, and records refer to them.
#ifndef PT_RECORD_H
#define PT_RECORD_H

#include <picotorch/kernel.h>

// ---- records

// Kinds of values in a record. The kind of a tensor is its scalar type.
enum { PT_VALUE_OTHER = 0x40 }; // plus the KernelTypes of a list or of a variable

// The record of a value that may change or is read often: a tensor, a variable (a number that an
// instruction writes), or a list of either.
typedef struct pt_value {
    pt_ref data;      // list: reference to pt_ref[]; variable: the low half of its number
    uint32_t sizes;   // tensor: reference to int32_t[rank]; list: number of items; variable: the
                      // high half. The word before the sizes of a dynamic tensor is the maximum
                      // number of its elements
    pt_ref dim_order; // tensor: reference to uint8_t[rank]
    uint16_t index;   // number among the program's values; records are sorted by it
    uint8_t type;
    uint8_t flags; // rank in the low bits
} pt_value;

// `data` of a tensor outside the planned memory, until pt_place_unplanned assigns its memory.
enum { PT_DATA_UNPLANNED = 1 };

typedef struct pt_instruction {
    uint16_t kernel; // number of the operator, see operators.def
    uint8_t n_args;
    uint8_t op;    // PT_OP_...; for a kernel call the high bits are the variant
    pt_ref args[]; // references to a pt_value in the pool, or to an EValue in the program; 0 for
                   // None
} pt_instruction;

// The codes of instructions. The comments list the arguments.
enum {
    PT_OP_KERNEL_CALL, // arguments of the kernel
    PT_OP_JUMP_FALSE,  // condition; reference to the next instruction if it is false; index of that
                       // instruction
    PT_OP_MOVE,        // tensor or number; tensor or variable that gets the value
    PT_OP_NOTHING,
    PT_OP_DYNAMIC_CALL,      // arguments of the kernel; its check is repeated before each run
    PT_OP_DELEGATE_CALL = 8, // arguments of the delegate, then a reference to the program's vector
                             // of their value indexes; `kernel` is the index of the delegate
};

// The start of a loaded method.
typedef struct pt_method_record {
    uint16_t n_values;    // number of tensors
    uint16_t n_variables; // number of variables; their records follow the records of the tensors
    uint32_t n_instructions;
    pt_ref values;         // pt_value[n_values + n_variables]
    pt_ref instructions;   // the first pt_instruction; the others follow
    pt_ref program_values; // the method's vector of EValue, in the program
    uint32_t scratch;      // bytes of temp memory that the kernels request
    pt_ref packed;         // pt_ref[n_instructions]: data that the checks packed; 0 for none
} pt_method_record;

// Returns the kind without the variant.
static inline uint32_t pt_op(const pt_instruction *instruction) {
    return instruction->op & 15u;
}

static inline uint32_t pt_offset_of(pt_ref ref) {
    return (ref & ((1u << PT_REF_OFFSET_BITS) - 1)) << 2;
}

// Returns the record of the method.
static inline pt_method_record *pt_record_of(const pt_context *c) {
    return (pt_method_record *)(void *)(c->records + c->method);
}

// Returns the bytes of the events of a traced method.
static inline uint32_t pt_events_size(const pt_context *c) {
    return (pt_record_of(c)->n_instructions + 1) * (uint32_t)sizeof(pt_event);
}

// True if the method's records lie in a .ptm file, which cannot be written.
static inline bool pt_is_ptm(const pt_context *c) {
    return !PT_HAS_PROGRAMS || (PT_HAS_PTM && c->memory[PT_MEMORY_PTM] != NULL);
}

static inline pt_instruction *pt_first_instruction(const pt_context *c) {
    return (pt_instruction *)(void *)pt_at(c, pt_record_of(c)->instructions);
}

// Returns the next instruction; records have no other index.
static inline pt_instruction *pt_next_instruction(const pt_instruction *instruction) {
    return (pt_instruction *)(uintptr_t)(instruction->args + instruction->n_args);
}

// Returns the idle scratch of the next instruction. The method must have idle scratch.
static inline const pt_idle_scratch *pt_idle_scratch_of(const pt_context *c) {
    return (const pt_idle_scratch *)(const void *)pt_at(c, c->idle_scratch) + c->instruction;
}

static inline pt_instruction *pt_instruction_at(const pt_context *c, uint32_t position) {
    return (pt_instruction *)(void *)(c->records + position);
}

// Moves to the next instruction.
static inline void pt_go_on(pt_context *c, const pt_instruction *instruction) {
    c->instruction++;
    c->position += sizeof(pt_instruction) + instruction->n_args * sizeof(pt_ref);
}

// ---- records of values

// Returns the number of the first of n records whose index is not below `index`; n if there is
// none.
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

// True for a reference to a record, in the pool or in a .ptm file: the numbers of the two memories
// differ in the last bit. In a .ptm file all references are to records.
static inline bool pt_is_record(pt_ref arg) {
    if (!PT_HAS_PROGRAMS || !PT_HAS_PTM) {
        return !PT_HAS_PROGRAMS || arg >> PT_REF_OFFSET_BITS == PT_MEMORY_POOL;
    }
    return arg >> (PT_REF_OFFSET_BITS + 1) == PT_MEMORY_POOL >> 1;
}

// Returns the record of a tensor; NULL if the argument is no tensor.
static inline const pt_value *pt_tensor_record(const pt_context *c, pt_ref arg) {
    if (!pt_is_record(arg)) {
        return NULL;
    }
    const pt_value *value = (const pt_value *)(const void *)pt_at(c, arg);
    return value->type < PT_VALUE_OTHER ? value : NULL;
}

// Returns the record of value `index` if all values up to it are tensors, as most constants are;
// else returns 0.
static inline pt_ref pt_leading_value(const pt_context *c, uint32_t index) {
    const pt_method_record *m = pt_record_of(c);
    pt_ref ref = m->values + index * (uint32_t)(sizeof(pt_value) / 4);
    return index < m->n_values && ((const pt_value *)(const void *)pt_at(c, ref))->index == index
               ? ref
               : 0;
}

// Returns the type of an EValue: PT_TYPE_...
uint8_t pt_value_type(const uint8_t *evalue);
// Returns the index of the value of item i of a list of ints in the program.
int64_t pt_list_index(const pt_context *c, pt_ref list, uint32_t i);
// Returns the record of the tensor or variable with this value index; 0 for none.
pt_ref pt_find_value(const pt_context *c, uint32_t index);
// Returns the record as pt_find_value does. It is faster if the tensor follows soon after the last
// one found with this *near, which starts at 0.
pt_ref pt_find_value_near(const pt_context *c, uint32_t index, uint32_t *near);
pt_ref pt_find_variable(const pt_context *c, uint32_t index);
// Sorts numbers and removes duplicates; returns the number that remain.
uint32_t pt_sort(uint32_t *items, uint32_t n);
// Turns the sorted indexes of n values at `position` of the pool into records of variables, with
// the program's numbers. Returns -1, or the first index of a value that is no number.
int32_t pt_put_variables(const pt_context *c, uint32_t position, uint32_t n);
// Resets all variables of the method to the program's numbers.
void pt_reset_variables(const pt_context *c);
// Subtracts the items of a list of ints from the number of items that loading may read. Returns
// false if the rest is too small.
bool pt_charge_list_items(pt_context *c, pt_ref list);
// True if a list of ints in the program has a variable as an item, and loading may read the items.
// Subtracts them as pt_charge_list_items does.
bool pt_list_has_variable(pt_context *c, pt_ref list);
// Writes the sizes of a dynamic tensor to offset `at` of the pool: a word for the bound, then the
// program's sizes. A tensor without dims becomes static. Returns the bytes written.
uint32_t pt_make_dynamic(const pt_context *c, pt_ref tensor, uint32_t at);

// ---- the registry of kernels

// Returns the number of the operator `name.overload`, see operators.def; -1 if this build has no
// kernel for it.
int pt_find_operator(const char *name, uint32_t name_length, const char *overload,
                     uint32_t overload_length);
// Returns one more than the highest operator number of this build.
uint32_t pt_operator_count(void);
// Returns the operator's name; "" if it is not linked.
const char *pt_operator_name(uint32_t operator_number);
// Returns a letter for each argument, see operators.def; "" if the operator is not linked.
const char *pt_operator_signature(uint32_t operator_number);
// Returns the schema's name of argument i, `length` characters, not terminated; length 0 if the
// operator is not linked or has no such argument.
const char *pt_operator_argument(uint32_t operator_number, uint32_t i, uint32_t *length);
// Properties of a signature that loading uses.
enum {
    PT_HAS_LISTS = 1,    // V, W or U: lists of tensors, which have records in the pool
    PT_HAS_VARIABLE = 2, // N, always the last letter
    PT_HAS_VIEW = 4,     // A, always the last letter
    PT_NAMES_RESULT = 8, // a call has one more argument: the returned value
};
// Returns the PT_... properties of an operator's signature, and the number of arguments in *n_args.
uint32_t pt_operator_traits(uint32_t operator_number, uint32_t *n_args);
// Returns the signature of the operator's form that has n_args arguments in a program, the returned
// value included, with - for each argument that this form lacks; NULL if no form has this number.
// Sets *n to the number of arguments in a record, where None stands for each - of the form.
const char *pt_operator_form(uint32_t operator_number, uint32_t n_args, uint32_t *n);
// Returns NULL if this build has no kernel for the operator.
const pt_kernel *pt_operator_kernel(uint32_t operator_number);

// ---- executor

// True if `arg` is of the kind of `letter`, see operators.def. In a check of upper bounds a
// variable counts as every kind of number.
bool pt_has_kind(const pt_context *c, pt_ref arg, char letter);
// Assigns a memory to each tensor whose data is PT_DATA_UNPLANNED, after all records of the method
// are written. A view shares the memory of its source, any other tensor gets a memory of its own,
// from number *external on. *external becomes the number after the last one used. On an error
// c->instruction is the instruction of a view, or c->argument the index of a value without a
// memory.
int pt_place_unplanned(pt_context *c, bool has_views, uint32_t *external);
// Sets the sizes of dynamic tensors to 0 if they exceed the memory at whose start they lie. The
// caller has replaced that memory.
void pt_clear_oversized(const pt_context *c, uint32_t memory);
// Checks the instruction record at `position` of the pool: the kinds of the arguments, then the
// kernel's own check. The kinds of a kernel call must match the signature of its operator. The
// loader checks where a jump leads.
int pt_check_instruction(pt_context *c, uint32_t position);
// Checks the kinds of the arguments of a kernel call against the signature of its operator.
int pt_check_kinds(pt_context *c, const pt_instruction *instruction);
// True for a variable: a number that instructions write.
bool pt_is_variable(const pt_context *c, pt_ref arg);
// True if the next instruction, a kernel call, also reads its output `arg`, or has this tensor as
// two outputs.
bool pt_is_elsewhere(const pt_context *c, pt_ref arg);
// Checks all instructions of the method. On an error c->instruction is the refused instruction.
int pt_check_method(pt_context *c);
// Moves to the first instruction of the method.
void pt_start(pt_context *c);
// Returns the bytes of pool that pt_pack_weights needs; 0 if no check requested any. All
// instructions were checked with c->packs.
uint32_t pt_packed_bytes(const pt_context *c);
// Checks all instructions of the method again. The checks now pack the weights into the pool from
// offset `position` on, a multiple of 8.
void pt_pack_weights(pt_context *c, uint32_t position);
// Executes one instruction. Returns PT_ERROR_END_OF_METHOD behind the last one. After any other
// error the method is at its first instruction, and c->failed is the index of the failed
// instruction.
int pt_context_step(pt_context *c);
// Executes from the first instruction to the end. The method is then at its first instruction,
// after an error too; c->failed is the index of the instruction at which the run ended.
int pt_context_execute(pt_context *c);

// Starts tracing into `events`, after measuring the overhead of tracing. There is one more event
// than the method has instructions.
void pt_set_tracer(pt_context *c, pt_event *events, uint64_t (*clock)(void), uint64_t mask);

// ---- checks of memories that come after load

// Returns the first memory from number `first` to below `end` that shares a byte with the `size`
// bytes at `data`. Returns PT_MEMORIES if only the temp memory or the memory of events shares one,
// and PT_MEMORY_NONE if none does.
uint32_t pt_find_overlap(const pt_context *c, const uint8_t *data, uint32_t size, uint32_t first,
                         uint32_t end);
// True if tensor `argument` of n arguments shares no memory with another of them.
bool pt_is_apart(const pt_context *c, uint32_t argument, uint32_t n, const pt_ref *args);
// True if idle scratch shares no byte with a tensor of this call.
bool pt_is_idle(const pt_context *c, const pt_instruction *call, const pt_idle_scratch *idle);
// True if an instruction of the started method writes to a tensor in this memory.
bool pt_is_written(const pt_context *c, uint32_t memory);
// Returns the first memory from `first` to below `end` that shares a byte with an earlier memory of
// this range, if an instruction of the started method writes to either. Returns PT_MEMORY_NONE if
// there is none.
uint32_t pt_find_shared(const pt_context *c, uint32_t first, uint32_t end);
// Returns the bytes that a memory of unplanned tensors needs for its static tensors, and with
// `bounds` for its dynamic tensors at their bounds.
uint32_t pt_memory_needed(const pt_context *c, uint32_t memory, bool bounds);

// ---- verification

enum {
    PT_FORMAT_PROGRAM,     // .pte
    PT_FORMAT_FLAT_TENSOR, // .ptd
    PT_FORMATS
};

// Checks the structure of the file of `size` bytes at `data`, which is aligned to 4. Returns -1, or
// the position of the first fault.
int32_t pt_verify(const uint8_t *data, uint32_t size, uint32_t format);

#endif
