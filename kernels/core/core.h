// The core of picotorch: memories and references, values, the kernels' view of their arguments,
// the registry of kernels and the executor.
//
// A loaded method is a run of little-endian records in its pool. A record holds no address but
// *references*: which memory, and the offset in it. So a pool has the same bytes on every machine.
// Whatever cannot change while a method runs (scalars, lists of ints, sizes, dim orders, constant
// data) stays in the program and is referred to there.
#ifndef PT_CORE_H
#define PT_CORE_H

#include "schema.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- memories and references

// A reference: memory in bits 25-29, offset in words of 4 bytes in bits 0-24, so at most 128 MiB a
// memory; bits 30 and 31 are zero, which keeps it a small int under MicroPython. 0 refers to
// nothing.
typedef uint32_t pt_ref;

#define PT_REF_OFFSET_BITS 25
#define PT_MEMORY_LIMIT (4u << PT_REF_OFFSET_BITS)

enum {
    PT_MEMORY_NONE,
    PT_MEMORY_PROGRAM,
    PT_MEMORY_POOL,
    PT_MEMORY_PLANNED, // planned buffer 0; then its followers, then buffers of unplanned tensors
    PT_MEMORIES = 32
};

// ---- records

// What a value record holds. Of a tensor: its scalar type.
enum { PT_VALUE_OTHER = 0x40 }; // + KernelTypes of a list or of a variable

enum {
    PT_VALUE_RANK = 0x1F,
    PT_VALUE_CONTIGUOUS = 0x20, // dim order 0, 1, 2, ...
    PT_VALUE_CONSTANT = 0x40,   // its data lies in the program
    PT_VALUE_DYNAMIC = 0x80,    // its sizes lie in the pool, behind their bound, and may change
};

// A value that may change, or whose record saves time: tensors, variables (numbers that an
// instruction writes) and lists of either.
typedef struct pt_value {
    pt_ref data;      // list: reference to pt_ref[]; variable: the low half of its number
    uint32_t sizes;   // tensor: reference to int32_t[rank]; list: number of items; variable: the
                      // high half. Of a dynamic tensor the word before the sizes is the most
                      // elements that it may have
    pt_ref dim_order; // tensor: reference to uint8_t[rank]
    uint16_t index;   // place among the program's values; records are sorted by it
    uint8_t type;
    uint8_t flags; // rank in the low bits
} pt_value;

// `data` of a tensor outside the planned memory until pt_settle finds where it lies.
enum { PT_DATA_UNPLANNED = 1 };

typedef struct pt_instruction {
    uint16_t kernel; // place in the list of operators, see operators.def
    uint8_t n_args;
    uint8_t op;
    pt_ref args[]; // a pt_value in the pool, an EValue in the program, or 0 for None
} pt_instruction;

// What an instruction does with its arguments.
enum {
    PT_OP_KERNEL_CALL, // those of the kernel
    PT_OP_JUMP_FALSE,  // condition; reference to the instruction to go on with; its index
    PT_OP_MOVE,        // tensor or number; tensor or variable that gets its value
    PT_OP_NOTHING,
    PT_OP_DYNAMIC_CALL,      // those of the kernel, whose check is repeated before each run
    PT_OP_DELEGATE_CALL = 8, // `kernel`: index of the delegate; its arguments, then a reference to
                             // the program's vector of their value indexes
};

// A method that executes more instructions is taken never to end. A fuzzer waits for fewer.
#ifndef PT_MAX_STEPS
#define PT_MAX_STEPS 10000000
#endif

// The start of a loaded method.
typedef struct pt_method {
    uint16_t n_values;    // tensors
    uint16_t n_variables; // whose records follow the tensors'
    uint32_t n_instructions;
    pt_ref values;         // pt_value[n_values + n_variables]
    pt_ref instructions;   // the first pt_instruction; the others follow
    pt_ref program_values; // the plan's vector of EValue, in the program
    uint32_t scratch;      // bytes of temp memory that the kernels ask for
    pt_ref prepared;       // pt_ref[n_instructions] to what their checks prepared; 0 for nothing
} pt_method;

// ---- tracing

// How often something ran, and the ticks of the clock that it took.
typedef struct pt_event {
    uint64_t ticks;
    uint32_t calls;
    uint32_t reserved;
} pt_event;

// Counts what each instruction takes, what failed included.
typedef struct pt_tracer {
    pt_event *events; // [0]: the end of the loop, once an execution; [1 + i]: instruction i, and
                      // the loop around it; NULL: nothing is measured
    uint64_t (*clock)(void);
    uint64_t mask;     // of the bits that the clock has
    uint64_t last;     // when the last instruction ended
    uint32_t overhead; // ticks that measuring takes, of each call
} pt_tracer;

// ---- context

// Loading looks at no more items of lists of ints, of all instructions together: many may name one
// long list.
enum { PT_MAX_LIST_ITEMS = 1 << 20 };

// What sizes and variables are while a kernel's check runs.
enum {
    PT_CHECK_STATIC, // nothing that it sees will change
    PT_CHECK_BOUNDS, // sizes are upper bounds, variables have no value yet: it asks for scratch
    PT_CHECK_RUN,    // those of the run that follows
};

typedef struct pt_context {
    uint8_t *memory[PT_MEMORIES];
    uint32_t memory_size[PT_MEMORIES];
    uint8_t *scratch; // the temp memory, aligned to 8; undefined contents
    uint32_t scratch_size;
    uint32_t scratch_needed;  // most that any check has asked for
    uint32_t list_items;      // of lists of ints that loading has looked at
    uint8_t checking;         // PT_CHECK_...
    bool prepares;            // checks may ask for memory for what they prepare
    uint32_t prepared_needed; // bytes that they asked for together
    uint8_t *prepare_at;      // where the next check prepares; NULL while they only ask
    uint32_t prepare_left;    // bytes there
    pt_ref prepared;          // copies of the method's, while it is loaded or runs
    pt_ref program_values;
    uint32_t method;      // offset of the pt_method in the pool
    uint32_t instruction; // index of the next instruction
    uint32_t position;    // its offset in the pool
    uint32_t failed;      // index of the instruction at which a run ended last
    int32_t argument;     // which one a check refused for its kind, or -1
    const char *reason;   // why the last check or run failed: static text
    pt_tracer tracer;
    // Runs the delegate call whose record is at `position` of the pool: an error code. NULL: there
    // are no delegates.
    int (*call_delegate)(struct pt_context *c, uint32_t position);
    // Asked before each instruction of an execution, which ends there with the error code that it
    // returns. NULL: nobody is asked.
    int (*poll)(struct pt_context *c);
    void *owner; // of this context, for call_delegate and poll
} pt_context;

static inline uint8_t *pt_at(const pt_context *c, pt_ref ref) {
    return c->memory[ref >> PT_REF_OFFSET_BITS] +
           ((size_t)(ref & ((1u << PT_REF_OFFSET_BITS) - 1)) << 2);
}

static inline pt_ref pt_make_ref(uint32_t memory, uint32_t offset) {
    return memory << PT_REF_OFFSET_BITS | offset >> 2;
}

// Records why a kernel refuses its arguments. `reason` is static text without a final full stop.
static inline int pt_fail(pt_context *c, int error, const char *reason) {
    c->reason = reason;
    return error;
}

// ---- the arguments of a kernel

// A tensor as a kernel sees it. `data` is NULL in a check where it is not yet known.
typedef struct pt_tensor {
    void *data;
    const int32_t *sizes;
    const uint8_t *dim_order;
    uint8_t dtype; // PT_DTYPE_...
    uint8_t rank;
    uint8_t flags; // PT_VALUE_CONTIGUOUS ...
} pt_tensor;

enum { PT_MAX_RANK = 16 };

static inline bool pt_is_none(pt_ref arg) {
    return arg == 0;
}

// The tensor that an argument refers to; the argument is not None.
pt_tensor pt_get_tensor(const pt_context *c, pt_ref arg);

// A number, of the program or of a variable: int, bool or double.
typedef struct pt_scalar {
    uint8_t type; // PT_TYPE_INT, PT_TYPE_BOOL or PT_TYPE_DOUBLE
    union {
        int64_t i; // also of a bool: 0 or 1
        double d;
    } as;
} pt_scalar;

pt_scalar pt_get_scalar(const pt_context *c, pt_ref arg);
int64_t pt_get_int(const pt_context *c, pt_ref arg); // of an int or bool
bool pt_get_bool(const pt_context *c, pt_ref arg);
double pt_get_double(const pt_context *c, pt_ref arg); // of any of the three
double pt_scalar_as_double(pt_scalar s);
double pt_int_as_double(int64_t i);
// For a run: the variable `arg` gets a number, and its type with it.
void pt_set_scalar(const pt_context *c, pt_ref arg, pt_scalar s);
void pt_set_int(const pt_context *c, pt_ref arg, int64_t value);
void pt_set_bool(const pt_context *c, pt_ref arg, bool value);
void pt_set_double(const pt_context *c, pt_ref arg, double value);
// The bytes of a string, not terminated.
const char *pt_get_string(const pt_context *c, pt_ref arg, uint32_t *length);

// Lists. Ints are read one by one from the program: read them once.
uint32_t pt_list_length(const pt_context *c, pt_ref arg);
int64_t pt_list_int(const pt_context *c, pt_ref arg, uint32_t i);
double pt_list_double(const pt_context *c, pt_ref arg, uint32_t i); // of a list of doubles
// The first ints of a list, at most `most`; returns the list's length.
uint32_t pt_list_ints(const pt_context *c, pt_ref arg, uint32_t most, int64_t *values);
// Item i of a list of tensors as an argument: for pt_is_none and pt_get_tensor.
pt_ref pt_list_item(const pt_context *c, pt_ref arg, uint32_t i);

// Number of elements.
int32_t pt_numel(const pt_tensor *t);
// Elements for which the tensor `arg` has memory: of a dynamic one its bound.
uint32_t pt_capacity(const pt_context *c, pt_ref arg);
// Bytes of an element; 0 for a type that has none (bits, quarter bytes).
uint32_t pt_element_size(uint8_t dtype);
// Elements between neighbours along each dim, from sizes and dim order. `strides` has room for
// rank.
void pt_strides(const pt_tensor *t, int32_t *strides);
// True when both have the same rank and sizes.
bool pt_same_sizes(const pt_tensor *a, const pt_tensor *b);
// True when both have the same dim order.
bool pt_same_dim_order(const pt_tensor *a, const pt_tensor *b);

// Gives the tensor `arg` these sizes. A static one must have them already, a dynamic one takes any
// of its rank whose number of elements is within its bound: otherwise NotSupported, with no size
// changed. Beside a size of 0 the others make at most PT_MEMORY_LIMIT. `sizes` may be any tensor's
// own.
int pt_resize_tensor(pt_context *c, pt_ref arg, uint32_t rank, const int32_t *sizes);
// For a check: the sizes of the output `arg` are to be `sizes`. As pt_resize_tensor, but the error
// is InvalidArgument, also where `arg` is an input of the same call whose sizes would change. What
// a tensor's sizes refer to changes with it: a check looks at an output's sizes, and derives from
// them, only behind this.
int pt_expect_sizes(pt_context *c, pt_ref arg, uint32_t rank, const int32_t *sizes);
// For a check: the kernel needs `bytes` of scratch when it runs, at c->scratch.
void pt_ask_scratch(pt_context *c, uint32_t bytes);
// For a check: the kernel runs faster with `bytes` that depend only on constants, weights in
// another encoding for instance. NULL, or the memory (aligned to 8) into which the check writes
// them now. How many bytes depends on the arguments alone, never on the machine; what they are may.
void *pt_ask_prepared(pt_context *c, uint32_t bytes);

// For a run: what the check of this instruction prepared, or NULL.
static inline const void *pt_prepared(const pt_context *c) {
    pt_ref ref =
        c->prepared ? ((const pt_ref *)(const void *)pt_at(c, c->prepared))[c->instruction] : 0;
    return ref ? pt_at(c, ref) : NULL;
}

// ---- records of values

// Type of an EValue: PT_TYPE_...
uint8_t pt_value_type(const uint8_t *evalue);
// Index of the value that item i of a list of ints in the program names.
int64_t pt_list_index(const pt_context *c, pt_ref list, uint32_t i);
// The record of a tensor or of a variable of the method by the index of the value; 0 for none.
pt_ref pt_find_value(const pt_context *c, uint32_t index);
pt_ref pt_find_variable(const pt_context *c, uint32_t index);
// Sorts numbers and removes those that stand there twice; how many are left.
uint32_t pt_sort(uint32_t *items, uint32_t n);
// Turns the indexes of n values, sorted at `position` of the pool, into records of variables there,
// with the numbers of the program. -1, or the first index that names no number.
int32_t pt_put_variables(const pt_context *c, uint32_t position, uint32_t n);
// Gives all variables of the method the numbers of the program again.
void pt_reset_variables(const pt_context *c);
// Counts the items of a list of ints among those that loading looks at; false when it has looked at
// too many.
bool pt_may_look(pt_context *c, pt_ref list);
// True when a list of ints in the program has an item that is a variable, and may be looked at.
bool pt_list_has_variable(pt_context *c, pt_ref list);
// Gives the tensor whose record is at `position` of the pool sizes of its own, from offset `at` of
// the pool on: a word for the bound, then the sizes, which are at first those of the program. One
// without dims has nothing to change: it stays static.
void pt_make_dynamic(const pt_context *c, uint32_t position, uint32_t at);

// ---- kernels and their registry

// `args` has an entry for each letter of the operator's signature.
typedef struct pt_kernel {
    // At load: refuses what the kernel cannot do (dtypes, ranks, sizes, dim orders, values of
    // scalars) and asks for scratch. Reads sizes, scalars and lists, no data. After it has returned
    // PT_ERROR_OK run may rely on all it has checked. Where sizes or numbers change it is called
    // once more before each run.
    int (*check)(pt_context *c, const pt_ref *args);
    // At each execution: checks only what depends on data, before it writes.
    int (*run)(pt_context *c, const pt_ref *args);
} pt_kernel;

// Place of the operator `name.overload` in the list of known operators; -1 when it is not known or
// this build has no kernel for it.
int pt_find_operator(const char *name, uint32_t name_length, const char *overload,
                     uint32_t overload_length);
// One more than the highest number that this build has a kernel for.
uint32_t pt_operator_count(void);
// "" for an operator that is not linked.
const char *pt_operator_name(uint32_t operator_number);
// One letter an argument, see operators.def; "" for an operator that is not linked.
const char *pt_operator_signature(uint32_t operator_number);
// What a signature has that loading has to know.
enum {
    PT_HAS_LISTS = 1,    // V, W or U: lists of tensors, which have records in the pool
    PT_HAS_VARIABLE = 2, // N, always the last letter
    PT_HAS_VIEW = 4,     // A, always the last letter
};
uint32_t pt_operator_traits(uint32_t operator_number);
// NULL where the build has no kernel for it.
const pt_kernel *pt_operator_kernel(uint32_t operator_number);

// ---- executor

// True when `arg` is of the kind of `letter`, see operators.def. In a check of upper bounds a
// variable is of every kind that a number may be.
bool pt_has_kind(const pt_context *c, pt_ref arg, char letter);
// Finds out where tensors lie whose data is PT_DATA_UNPLANNED, after all records of the method are
// written: a view where its source does, any other in a memory of its own, from number *external
// on; *external is then one more than the last. On an error c->instruction is that of a view, or
// c->argument the index of a value for which there is no memory.
int pt_settle(pt_context *c, uint32_t method, uint32_t *external);
// Leaves no element to the dynamic tensors that are larger than a memory, at whose start they lie:
// after it has become another one. Those that instructions give new sizes are not affected.
void pt_fit(const pt_context *c, uint32_t memory);
// Checks the instruction record at `position` of the pool: kinds of the arguments (of a kernel
// call: against the signature of its operator), then the kernel's own check. The loader checks
// where a jump leads.
int pt_check_instruction(pt_context *c, uint32_t position);
// True when the next instruction, a kernel call, reads the tensor `arg`.
bool pt_is_input(const pt_context *c, pt_ref arg);
// Checks all instructions of the method. c->instruction is the first one that is refused.
int pt_check_method(pt_context *c, uint32_t method);
// To the first instruction of the method whose pt_method is at offset `method` of the pool.
void pt_start(pt_context *c, uint32_t method);
// Bytes of pool that pt_prepare needs, after all instructions were checked with c->prepares; 0 when
// no check has asked for any.
uint32_t pt_prepared_bytes(const pt_context *c, uint32_t method);
// Checks all instructions of the method once more, which now prepare what they asked for, into the
// pool from offset `position` (aligned to 8) on.
void pt_prepare(pt_context *c, uint32_t method, uint32_t position);
// Executes one instruction. PT_ERROR_END_OF_METHOD when there is none left; after any other error
// the method is at its first instruction, and c->failed is the one that failed.
int pt_step(pt_context *c);
// Executes from the first instruction to the end. The method is then at its first instruction,
// after an error, too; c->failed is where it ended.
int pt_execute(pt_context *c);

// Measures from now on into `events`, one more than the method has instructions. Measures first
// what measuring takes.
void pt_set_tracer(pt_context *c, pt_event *events, uint64_t (*clock)(void), uint64_t mask);

// ---- checks of memories that come after load

// The first memory from number `first` to below `end` that shares a byte with the `size` bytes at
// `data`, PT_MEMORIES when the temp memory or that of events does, PT_MEMORY_NONE when none does.
uint32_t pt_find_overlap(const pt_context *c, const uint8_t *data, uint32_t size, uint32_t first,
                         uint32_t end);
// True when tensor `place` of n arguments shares no memory with another of them.
bool pt_is_apart(const pt_context *c, uint32_t place, uint32_t n, const pt_ref *args);
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
