// picotorch: runs ExecuTorch programs without a heap.
//
//     static pt_program program;
//     pt_plan plan;
//     static pt_method method;
//     pt_error error;
//     if (pt_program_open(&program, model, model_size, PT_VERIFY_STRICT, &error) ||
//         pt_plan_find(&plan, &program, "forward", 7, &error) ||
//         pt_load(&method, &plan, &memories, &options, &error) ||
//         pt_set_input(&method, 0, x, sizeof(x), &error) || pt_execute(&method, &error) ||
//         pt_output(&method, 0, &y, &error)) {
//         // error.code, error.what ...
//     }
//
// All memory is the caller's: these structs, the file and the memories of a method stay where they
// are while they are in use. No function allocates, none keeps anything elsewhere. Functions that
// can fail return PT_ERROR_OK or the error's code, and tell the rest in a pt_error.
//
// What is trusted and what is not: no byte of a file is. pt_program_open and pt_data_open check
// that tables, vectors, strings and segments lie inside the file (PT_VERIFY_STRICT). Every number
// in it that means a position, an index or a size is checked where it is used, before a record is
// written. A method that is loaded reads nothing that was not checked. PT_VERIFY_MINIMAL is for
// files whose bytes are known to be good.
#ifndef PICOTORCH_H
#define PICOTORCH_H

#include <picotorch/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- errors

#define PT_NO_BYTES UINT32_MAX // the error is not about bytes
enum { PT_NO_INDEX = -1 };

typedef struct pt_error {
    uint8_t code;       // PT_ERROR_...
    uint8_t subject;    // what it is about: PT_SUBJECT_...
    int16_t argument;   // PT_SUBJECT_KERNEL: the argument that is refused; or PT_NO_INDEX
    int32_t index;      // which subject; or PT_NO_INDEX
    uint32_t requested; // bytes wanted; or PT_NO_BYTES
    uint32_t available; // bytes that there were
    const char *what;   // static text, behind "; " what to do; NULL for none
} pt_error;

// ---- memory

typedef struct pt_span {
    void *data;
    uint32_t size;
    bool is_constant; // cannot be written
} pt_span;

// A string in a file: not terminated.
typedef struct pt_text {
    const char *data;
    uint32_t length;
} pt_text;

// True when a string is these characters.
bool pt_text_is(pt_text text, const char *data, uint32_t length);

// ---- programs

// PT_VERIFY_RECORDS is for images: references, sizes and numbers of kernels are checked, but
// kernels do not check their calls again. It finds what is damaged, not what somebody made to do
// harm.
typedef enum { PT_VERIFY_MINIMAL, PT_VERIFY_STRICT, PT_VERIFY_RECORDS } pt_verification;

// The .pte file, or image, of `size` bytes at `data`, which is aligned to 8. Fields are positions
// in it.
typedef struct pt_program {
    void *owner; // the caller's
    const uint8_t *data;
    uint32_t size;
    uint32_t tables; // bytes of the FlatBuffer, which the file begins with
    uint32_t root;
    uint32_t plans;
    uint32_t segments;
    uint32_t segment_base;
    uint32_t constant_buffer;
    uint32_t constant_offsets;
    uint32_t n_constants; // offsets there
    uint32_t constant_segment;
    uint32_t constant_size;
    const struct pt_format *format;
    uint8_t verification; // of an image
} pt_program;

// InvalidProgram, InvalidArgument, NotSupported.
int pt_program_open(pt_program *program, const void *data, uint32_t size,
                    pt_verification verification, pt_error *error);
// The same for an image, which `picotorch compile` writes. With PT_VERIFY_MINIMAL its header alone
// is checked. The data of constants, which the checksum of the records leaves out, has one of its
// own.
int pt_image_open(pt_program *image, const void *data, uint32_t size, pt_verification verification,
                  pt_error *error);
int pt_image_check_data(const pt_program *image, pt_error *error);
// Opens either, by what it begins with, of those that a build takes.
int pt_open(pt_program *program, const void *data, uint32_t size, pt_verification verification,
            pt_error *error);
uint32_t pt_program_methods(const pt_program *program);
// The bytes with a key: of delegates, for instance.
uint32_t pt_named_data_count(const pt_program *program);
int pt_named_data_key(const pt_program *program, uint32_t i, pt_text *key, pt_error *error);
// Number of a key, or -1. InvalidArgument where an entry before it has none.
int pt_named_data_find(const pt_program *program, const char *key, uint32_t length, int32_t *i,
                       pt_error *error);
int pt_named_data(const pt_program *program, uint32_t i, pt_span *data, pt_error *error);

// ---- methods of a program, before they are loaded

// A method as the program describes it. Fields are positions in the program.
typedef struct pt_plan {
    const pt_program *program;
    uint32_t index; // of the method
    uint32_t position;
    uint32_t values;
    uint32_t inputs;
    uint32_t outputs;
    uint32_t chains;
    uint32_t operators;
    uint32_t delegates;
    uint32_t planned; // sizes of the planned buffers
} pt_plan;

// The items of a plan that it may have several of.
typedef enum {
    PT_VALUES,
    PT_INPUTS,
    PT_OUTPUTS,
    PT_OPERATORS,
    PT_DELEGATES,
    PT_PLANNED_BUFFERS,
    PT_INSTRUCTIONS,
    PT_DELEGATE_ARGUMENTS, // the most that a call of a delegate has
} pt_what;

// Method number i: NotFound. Method of a name: NotFound.
int pt_plan_at(pt_plan *plan, const pt_program *program, uint32_t i, pt_error *error);
int pt_plan_find(pt_plan *plan, const pt_program *program, const char *name, uint32_t length,
                 pt_error *error);
pt_text pt_plan_name(const pt_plan *plan);
uint32_t pt_plan_count(const pt_plan *plan, pt_what what);
// Bytes of a planned buffer, at most UINT32_MAX. InvalidArgument, InvalidProgram.
int pt_plan_buffer(const pt_plan *plan, uint32_t i, uint32_t *size, pt_error *error);

// A value as the program has it.
typedef struct pt_item {
    uint8_t type;     // PT_TYPE_...
    bool has_numbers; // a list of ints whose entries are the numbers, as an image may have it
    pt_scalar number; // of an int, bool or double
    pt_text text;     // of a string
    uint32_t items;   // of a list: position of its vector of items
    uint32_t count;   // how many
    uint32_t table;   // of a tensor: position of its table
} pt_item;

// Value number i; of PT_INPUTS and PT_OUTPUTS the value that this input or output is. `index`,
// where it is not NULL, gets its number. InvalidArgument, InvalidProgram.
int pt_plan_item(const pt_plan *plan, pt_what what, uint32_t i, uint32_t *index, pt_item *item,
                 pt_error *error);
// Item i, below count, of a list: index of a value (-1 for None), a bool, the bits of a double.
int64_t pt_list_entry(const pt_plan *plan, const pt_item *list, uint32_t i);

// A tensor as the program has it.
typedef struct pt_tensor_info {
    const int32_t *sizes; // of a dynamic tensor the most that they may be
    const uint8_t *dim_order;
    uint8_t dtype; // PT_DTYPE_...
    uint8_t rank;
    uint8_t dynamism; // 0: static, 1: dynamic within the sizes, 2: without a bound
    bool is_contiguous;
    bool is_planned;
    bool is_external; // its data, or initial value, comes from a data file
    bool is_constant; // its data lies in the program or in a data file
    uint8_t planned;  // number of the planned buffer
    uint32_t offset;  // in the planned buffer; of a constant: position in the program
    uint32_t nbytes;
    pt_text name; // fully qualified; "" where the program gives none
} pt_tensor_info;

// InvalidArgument for what is not a tensor, InvalidProgram, NotSupported.
int pt_plan_tensor(const pt_plan *plan, const pt_item *item, pt_tensor_info *info, pt_error *error);
// True for a tensor with a fully qualified name.
bool pt_has_name(const pt_plan *plan, const pt_item *item);
// An operator's names, and its number; a negative one where this build has no kernel for it: of an
// image, which keeps no names, -1 - number.
int pt_plan_operator(const pt_plan *plan, uint32_t i, pt_text *name, pt_text *overload,
                     int32_t *number, pt_error *error);

// The name of the backend of delegate i, "" where there is none.
pt_text pt_plan_backend(const pt_plan *plan, uint32_t i);

typedef struct pt_delegate_info {
    pt_text backend;
    pt_span processed;
    bool is_inline; // processed data lies in the FlatBuffer, not in a segment
    uint32_t specs; // position of the vector of compile specs
    uint32_t n_specs;
} pt_delegate_info;

// InvalidArgument, InvalidProgram; NotFound, Internal for processed data that is not there.
int pt_plan_delegate(const pt_plan *plan, uint32_t i, pt_delegate_info *info, pt_error *error);
void pt_compile_spec(const pt_plan *plan, const pt_delegate_info *info, uint32_t i, pt_text *key,
                     pt_span *value);
// The value of the first compile spec of a key; false where there is none.
bool pt_find_spec(const pt_plan *plan, const pt_delegate_info *info, const char *key,
                  uint32_t length, pt_span *value);

// The vtable of the table that was read last: those of a kind share few. Zeros before the first.
typedef struct pt_layout {
    uint32_t vtable;
    uint32_t last; // position up to which the fields of such a table lie in the file
} pt_layout;

// The same of tables with two fields.
typedef struct pt_pair_layout {
    pt_layout table;
    uint16_t at[2]; // offsets of the fields in the table; 0 for what is left out
} pt_pair_layout;

// The instructions of a method one after the other, through all chains.
typedef struct pt_plan_walk {
    const pt_plan *plan;
    uint32_t chain;        // that follows this one
    uint32_t instructions; // vector of this chain's
    uint32_t next;         // in the chain
    uint32_t length;       // of the chain
    uint32_t first;        // number of the chain's first instruction
    uint32_t index;        // of this instruction, counted from 0
    uint8_t kind;          // PT_INSTRUCTION_...
    int32_t target; // operator, delegate, value that is moved, condition, value that is freed
    int32_t other;  // value that a move writes; destination of a jump, in its chain
    uint32_t args;  // of a call: position of the vector of its values
    uint32_t n_args;
    bool bad; // a part lies outside the file
    pt_pair_layout instruction;
    pt_pair_layout call;
} pt_plan_walk;

pt_plan_walk pt_plan_walk_start(const pt_plan *plan);
// Goes to the next instruction; false behind the last.
bool pt_plan_walk_next(pt_plan_walk *walk);
// Value number k of a call, below n_args.
int32_t pt_plan_walk_argument(const pt_plan_walk *walk, uint32_t k);
// The value that a call makes a view of another; -1 for none.
int32_t pt_plan_walk_view(const pt_plan_walk *walk);
// The operator that instruction number i calls; -1 for none.
int32_t pt_plan_called_operator(const pt_plan *plan, uint32_t i);

// ---- data files

// The .ptd file of `size` bytes at `data`, which is aligned to 8. Fields are positions in it.
typedef struct pt_data {
    void *owner; // the caller's
    const uint8_t *data;
    uint32_t size;
    uint32_t tables; // bytes of the file up to the end of the FlatBuffer
    uint32_t segments;
    uint32_t segment_base;
    uint32_t named_data;
    uint32_t next; // key where a search starts
} pt_data;

// NotFound for a file that is not a .ptd file, InvalidExternalData, InvalidArgument, NotSupported.
int pt_data_open(pt_data *file, const void *data, uint32_t size, pt_verification verification,
                 pt_error *error);
uint32_t pt_data_keys(const pt_data *file);
pt_text pt_data_key(const pt_data *file, uint32_t i);
// Number of a key, or -1.
int32_t pt_data_find(const pt_data *file, const char *key, uint32_t length);
pt_span pt_data_bytes(const pt_data *file, uint32_t i);
// dtype, sizes, dim order and nbytes of the tensor with key i. InvalidExternalData for what is
// none.
int pt_data_tensor(const pt_data *file, uint32_t i, pt_tensor_info *info, pt_error *error);

// ---- loaded methods

// The memories of a method. Each starts at a multiple of 8 bytes, and none shares a byte with
// another.
typedef struct pt_memories {
    pt_span pool;       // the method's records
    uint32_t pool_used; // bytes at its start that are taken
    const pt_span *planned;
    uint32_t n_planned;
    pt_span temp; // what kernels use while they run; NULL for none, where all can do without
    pt_data *const *data;
    uint32_t n_data;
} pt_memories;

struct pt_method;

// Functions that execute the parts of a program that its exporter handed to a delegate. Each gets
// the method and the number of the delegate: `method->delegates->owner` is the caller's.
// To fail it returns an error's code, and may say more in `error`.
typedef struct pt_delegates {
    void *owner;
    uint32_t most;           // delegates of a method
    uint32_t most_arguments; // of a call
    // Looks for the backend of any delegate, be its number above `most`: NotFound where there is
    // none.
    int (*find)(struct pt_method *method, uint32_t delegate, pt_error *error);
    // Makes it ready, at load: pt_allocate and pt_ask_temp may be called.
    int (*init)(struct pt_method *method, uint32_t delegate, pt_error *error);
    // Runs a call: pt_argument gives its arguments, pt_allocate_temp memory.
    int (*execute)(struct pt_method *method, uint32_t delegate, pt_error *error);
    // For each that was ready, when the method is unloaded.
    void (*destroy)(struct pt_method *method, uint32_t delegate);
} pt_delegates;

typedef struct pt_options {
    bool prepare; // kernels re-encode constant weights in the pool, once, for a faster run
    uint8_t core; // PT_CORE_...: for which core, on the host; a board does it for its own. Its
                  // loops tell how much temp memory is wished for
    const pt_delegates *delegates; // NULL: there are none
    pt_span events;                // pt_event[1 + instructions]; NULL: nothing is measured
    uint64_t (*clock)(void);       // for events
    uint64_t clock_mask;           // of the bits that the clock has
} pt_options;

enum { PT_MAX_INPUTS = PT_MOST_INPUTS };

typedef enum { PT_UNLOADED, PT_LOADING, PT_UNLOADING, PT_LOADED } pt_state;

// A method. Zeros before its first load.
typedef struct pt_method {
    pt_context c;
    pt_plan plan;
    const pt_delegates *delegates;
    pt_data *const *data;
    uint32_t records_end; // where its records end, and what is prepared begins
    uint32_t end;         // where all that it holds of the pool ends
    uint8_t state;        // pt_state
    bool is_ready;        // all inputs are set, all memories are there
    bool is_running;
    bool failed_delegate; // the run ended in one, which has said why
    uint8_t n_planned;
    uint8_t first_external; // number of the first memory of tensors outside the planned memory
    uint8_t end_external;
    uint8_t n_call;      // arguments of the delegate call that runs
    uint16_t n_ready;    // delegates that are ready, from the first on
    uint16_t missing;    // inputs that are not set
    uint32_t temp_used;  // by that call
    uint32_t has_memory; // a bit for each memory of tensors outside the planned memory
    pt_error *error;     // of the call that runs
    uint32_t set[PT_MAX_INPUTS / 32];
} pt_method;

// Loads a method into its memories. What the records need is the same on every machine. After an
// error the method is not loaded, and pt_load may be called again. AlreadyLoaded, NotFound,
// OperatorMissing, MemoryAllocationFailed, InvalidProgram, InvalidExternalData, NotSupported,
// OutOfResources, or what a kernel answers.
int pt_load(pt_method *method, const pt_plan *plan, const pt_memories *memories,
            const pt_options *options, pt_error *error);
// Lets a method go. What it held of the pool is free again.
void pt_unload(pt_method *method);

// A tensor that is handed over. Without a shape it has the program's.
typedef struct pt_given {
    pt_span data;
    char typecode; // of the elements, as Python's array module has them; 'B' or 0: bytes
    bool has_shape;
    uint8_t dtype;
    uint8_t rank;
    const int32_t *sizes;
    const uint8_t *dim_order; // NULL: that of the program
    uint8_t memory;           // out: number of the memory that it has become; 0 when it was copied
} pt_given;

// Copies an input into planned memory, or uses it in place where the program leaves it unplanned.
// InvalidArgument, NotSupported for sizes that the input cannot take, InvalidState.
int pt_set_input(pt_method *method, uint32_t i, void *data, uint32_t size, pt_error *error);
int pt_give_input(pt_method *method, uint32_t i, pt_given *given, pt_error *error);
// An input that is not a tensor has to be the value that the program was exported with: a number, a
// string, or PT_TYPE_NULL.
int pt_set_constant_input(pt_method *method, uint32_t i, const pt_item *value, pt_error *error);
// Memory of an output, or of a mutable buffer by its name, that the program leaves unplanned.
int pt_set_output(pt_method *method, uint32_t i, pt_given *given, pt_error *error);
int pt_set_attribute(pt_method *method, const char *name, uint32_t length, pt_given *given,
                     pt_error *error);

// Typecode that shows elements of a dtype; those of a type that has none as bytes or bits.
char pt_typecode(uint8_t dtype);
// True when elements of this typecode may be those of a tensor of a dtype.
bool pt_accepts(uint8_t dtype, char typecode);

// A value of a loaded method, as it is now.
typedef struct pt_value_view {
    uint8_t type;     // PT_TYPE_...
    uint8_t memory;   // of a tensor: number of the memory that its data lies in
    uint32_t nbytes;  // of a tensor
    pt_tensor tensor; // where it is
    pt_scalar number;
    pt_text text;
    pt_item list;
    uint32_t value; // of a list: which of the plan's values it is
} pt_value_view;

int pt_output(const pt_method *method, uint32_t i, pt_value_view *view, pt_error *error);
int pt_attribute(const pt_method *method, const char *name, uint32_t length, pt_value_view *view,
                 pt_error *error);
// Item i of a list.
int pt_list_view(const pt_method *method, const pt_item *list, uint32_t i, pt_value_view *view,
                 pt_error *error);

// Executes from the first instruction to the end, wherever pt_step stopped. InvalidArgument without
// all inputs, InvalidState without all memories, or what a kernel answers. Afterwards the method is
// at its first instruction.
int pt_execute(pt_method *method, pt_error *error);
// Executes one instruction. EndOfMethod when none is left.
int pt_step(pt_method *method, pt_error *error);
// Back to the first instruction.
int pt_restart(pt_method *method, pt_error *error);
// Random numbers of the following executions start again, as they do from load with a seed of 0.
// Without it each execution continues them.
int pt_seed(pt_method *method, uint32_t seed, pt_error *error);
// Buffers get their initial values again, or zero. All is as after load, but for random numbers:
// inputs have to be set.
int pt_reset_state(pt_method *method, pt_error *error);

// InvalidState where the method is not loaded.
int pt_check_loaded(const pt_method *method, pt_error *error);
// True of the program's memory and of data files'.
bool pt_is_constant_memory(const pt_method *method, uint32_t memory);
// The error of a memory that was resized, or moved, after it was handed over.
int pt_moved_memory(const pt_method *method, uint32_t memory, pt_error *error);

typedef struct pt_usage {
    uint32_t pool;     // bytes from the method's start on
    uint32_t prepared; // the last of these
    uint32_t temp; // bytes of temp memory that kernels use; with less, those take longer that can
                   // do without
    // Bytes of temp memory with which the kernels are at their best, `temp` or more: they take no
    // more than these. Of an image that was opened without checks it is `temp`.
    uint32_t temp_wished;
} pt_usage;

pt_usage pt_get_usage(const pt_method *method);

// ---- for delegates

// In init: `size` bytes of the pool, zeros, which stay the delegate's. In execute: bytes of the
// temp memory, until the call ends. MemoryAllocationFailed, InvalidArgument, InvalidState.
int pt_allocate(pt_method *method, uint32_t size, uint32_t alignment, void **data, pt_error *error);
int pt_allocate_temp(pt_method *method, uint32_t size, uint32_t alignment, void **data,
                     pt_error *error);
// In init: execute will allocate `size` bytes of temp memory. InvalidArgument.
int pt_ask_temp(pt_method *method, uint32_t size, pt_error *error);
// Argument i of the call that runs; method->n_call says how many there are.
int pt_argument(const pt_method *method, uint32_t i, pt_value_view *view, pt_error *error);
// Gives an argument of dynamic shape other sizes. NotSupported, InvalidArgument.
int pt_resize_argument(pt_method *method, uint32_t i, uint32_t rank, const int32_t *sizes,
                       pt_error *error);

#ifdef __cplusplus
}
#endif

#endif
