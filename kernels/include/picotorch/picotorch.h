// picotorch: run ExecuTorch programs without a heap.
//
// This header is all that a C program needs. A model is opened, one of its methods is found and
// loaded into memories of the caller, and executed any number of times:
//
//     static uint64_t pool[POOL / 8], planned[PLANNED / 8], temp[TEMP / 8]; // see `picotorch size`
//     static pt_program program;
//     static pt_method method;
//
//     int classify(const void *model, uint32_t size, const float *x, pt_value_view *y,
//                  pt_error *error) {
//         pt_method_meta meta;
//         const pt_span buffers[] = {{planned, sizeof(planned), false}};
//         const pt_memories memories = {.pool = {pool, sizeof(pool), false},
//                                       .planned = buffers,
//                                       .n_planned = 1,
//                                       .temp = {temp, sizeof(temp), false}};
//         const pt_options options = {.pack_weights = false};
//         PT_TRY(pt_program_open(&program, model, size, PT_VERIFY_STRICT, error));
//         PT_TRY(pt_method_meta_find(&meta, &program, "forward", 7, error));
//         PT_TRY(pt_load(&method, &meta, &memories, &options, error));
//         PT_TRY(pt_set_input(&method, 0, (void *)x, INPUTS * sizeof(float), error));
//         PT_TRY(pt_execute(&method, error));
//         return pt_output(&method, 0, y, error); // y->tensor.data points to the output
//     }
//
// Ownership. All memory is the caller's. No function allocates, and the library has no variables
// of its own. A pt_program, a pt_data, a pt_method, the file behind each and the memories of a
// method stay where they are, and unchanged by the caller, for as long as a method that uses them
// is loaded. pt_load copies pt_method_meta, pt_memories and pt_options, not the arrays that they
// point to.
//
// Alignment. Files and memories start at a multiple of 8 bytes (PT_ALIGNMENT). No two memories of a
// method share a byte.
//
// Errors. A function that returns int returns PT_ERROR_OK (0) or the code of the error, and then
// fills the pt_error, which is never NULL. pt_error_text writes it for people. After an error a
// method can be used as before, unless the function's comment states otherwise. The comments below
// name the codes without PT_ERROR_.
//
// Threads. Different methods may run at the same time, of one program too, if they share no memory
// but the program's. Calls on one method are made one after the other: a handler of interrupts
// does not call into a method that it has interrupted. pt_load writes to each pt_data (it remembers
// where a search ended), so methods that share data files are loaded one after the other.
//
// Trust. No byte of a file is trusted. pt_program_open and pt_data_open with PT_VERIFY_STRICT check
// that tables, vectors, strings and segments lie inside the file; pt_load checks each position,
// index and size in it before a record is written, and a loaded method reads nothing that was not
// checked. PT_VERIFY_MINIMAL is for files whose bytes are known to be good.
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
    uint8_t code;       // PT_ERROR_..., the numbers of ExecuTorch's Error
    uint8_t subject;    // PT_SUBJECT_...: the kind of thing that the error is about
    int16_t argument;   // of PT_SUBJECT_KERNEL: number of the rejected argument; else PT_NO_INDEX
    int32_t index;      // number of the subject, counted from 0; or PT_NO_INDEX
    uint32_t requested; // bytes (of PT_SUBJECT_INSTRUCTION: arguments); or PT_NO_BYTES
    uint32_t available; // bytes; PT_NO_BYTES if they are unknown
    const char *what;   // cause "; " remedy, a constant; NULL in a build with PT_NO_TEXTS
} pt_error;

// Writes an error as one line into the `size` bytes at `text`, terminated and cut if it is longer:
//     MemoryAllocationFailed (0x21): method pool: 2592B requested, 64B available; make it larger
// Returns the length of the whole line without the terminator, as snprintf does.
uint32_t pt_error_text(const pt_error *error, char *text, uint32_t size);

// ---- memory

typedef struct pt_span {
    void *data;
    uint32_t size;    // bytes
    bool is_constant; // the memory cannot be written
} pt_span;

// A string in a file, UTF-8, not terminated. It is valid as long as the file is.
typedef struct pt_text {
    const char *data;
    uint32_t length;
} pt_text;

// Returns true if a string has exactly these characters.
bool pt_text_is(pt_text text, const char *data, uint32_t length);

// ---- programs

// The checks of a file before it is used.
//   PT_VERIFY_MINIMAL  the header
//   PT_VERIFY_STRICT   everything
//   PT_VERIFY_RECORDS  of a .ptm file: references, sizes and kernel numbers, without the kernels'
//                      checks of their calls. It detects damage, not files made to do harm.
typedef enum { PT_VERIFY_MINIMAL, PT_VERIFY_STRICT, PT_VERIFY_RECORDS } pt_verification;

// An open .pte or .ptm file. Its fields are private to the library: positions in the file.
typedef struct pt_program {
    void *owner; // free for the caller
    const uint8_t *data;
    uint32_t size;
    uint32_t tables; // bytes of the FlatBuffer at the start of the file
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
    uint8_t verification; // verification of a .ptm file
} pt_program;

// Opens the .pte file of `size` bytes at `data`, at most PT_PROGRAM_LIMIT. InvalidProgram for a
// damaged file, InvalidArgument for an address that is not a multiple of 8, NotSupported for a
// version or an architecture that this build cannot run.
int pt_program_open(pt_program *program, const void *data, uint32_t size,
                    pt_verification verification, pt_error *error);

// Opens a .ptm file, which `picotorch compile` writes for one core. The errors are the same.
int pt_ptm_open(pt_program *ptm, const void *data, uint32_t size, pt_verification verification,
                pt_error *error);

// Compares the checksum of a .ptm file's constants, which pt_ptm_open does not read.
// InvalidProgram.
int pt_ptm_check_data(const pt_program *ptm, pt_error *error);

// Opens a .pte or a .ptm file, by its first bytes. NotSupported for a format that this build
// excludes.
int pt_open(pt_program *program, const void *data, uint32_t size, pt_verification verification,
            pt_error *error);

// Returns the number of methods of a program.
uint32_t pt_program_methods(const pt_program *program);

// The named data of a program: bytes under a key, as delegates use them. pt_named_data_count
// returns the number of entries. pt_named_data_key and pt_named_data return key and bytes of entry
// i, which lie in the file. InvalidArgument, InvalidProgram.
uint32_t pt_named_data_count(const pt_program *program);
int pt_named_data_key(const pt_program *program, uint32_t i, pt_text *key, pt_error *error);
// Sets *i to the number of a key, or to -1. InvalidArgument if an entry before the key has no key.
int pt_named_data_find(const pt_program *program, const char *key, uint32_t length, int32_t *i,
                       pt_error *error);
int pt_named_data(const pt_program *program, uint32_t i, pt_span *data, pt_error *error);

// ---- methods of a program, before they are loaded

// The description of a method in its program, before it is loaded. Its fields are private to the
// library: positions in the program. It is valid as long as the program is, and may be copied.
typedef struct pt_method_meta {
    const pt_program *program;
    uint32_t index; // number of the method
    uint32_t position;
    uint32_t values;
    uint32_t inputs;
    uint32_t outputs;
    uint32_t chains;
    uint32_t operators;
    uint32_t delegates;
    uint32_t planned; // sizes of the planned buffers
} pt_method_meta;

// The sections of a description, for pt_method_meta_count and pt_method_meta_evalue.
typedef enum {
    PT_VALUES,
    PT_INPUTS,
    PT_OUTPUTS,
    PT_OPERATORS,
    PT_DELEGATES,
    PT_PLANNED_BUFFERS,
    PT_INSTRUCTIONS,
    PT_DELEGATE_ARGUMENTS, // the largest number of arguments of a delegate call
} pt_section;

// Describe method number i, or the method with a name of `length` bytes. NotFound.
int pt_method_meta_at(pt_method_meta *meta, const pt_program *program, uint32_t i, pt_error *error);
int pt_method_meta_find(pt_method_meta *meta, const pt_program *program, const char *name,
                        uint32_t length, pt_error *error);

pt_text pt_method_meta_name(const pt_method_meta *meta);
uint32_t pt_method_meta_count(const pt_method_meta *meta, pt_section what);

// Sets *size to the bytes that planned buffer i needs. InvalidArgument, InvalidProgram.
int pt_method_meta_buffer(const pt_method_meta *meta, uint32_t i, uint32_t *size, pt_error *error);

// A value in the program.
typedef struct pt_evalue {
    uint8_t type;     // PT_TYPE_...
    bool has_numbers; // a list of ints whose entries are the numbers, in a .ptm file
    pt_scalar number; // only for an int, bool or double
    pt_text text;     // only for a string
    uint32_t items;   // only for a list: position of its vector of items
    uint32_t count;   // number of items
    uint32_t table;   // only for a tensor: position of its table
} pt_evalue;

// Reads value number i: of PT_VALUES the value itself, of PT_INPUTS and PT_OUTPUTS the value of
// this input or output. Sets *index to the number of the value, if `index` is not NULL.
// InvalidArgument, InvalidProgram.
int pt_method_meta_evalue(const pt_method_meta *meta, pt_section what, uint32_t i, uint32_t *index,
                          pt_evalue *item, pt_error *error);
// Returns item i, below count, of a list: an int, the index of a value (-1 for None), a bool, or
// the bits of a double.
int64_t pt_list_entry(const pt_method_meta *meta, const pt_evalue *list, uint32_t i);

// A tensor in the program. The arrays lie in the file.
typedef struct pt_tensor_info {
    const int32_t *sizes;     // for a dynamic tensor the upper bounds
    const uint8_t *dim_order; // dims from the outermost in memory to the innermost
    uint8_t dtype;            // PT_DTYPE_..., the numbers of ExecuTorch's ScalarType
    uint8_t rank;
    uint8_t dynamism; // 0: static, 1: dynamic within the sizes, 2: without a bound
    bool is_contiguous;
    bool is_planned;
    bool is_external; // its data, or initial value, comes from a data file
    bool is_constant; // its data lies in the program or in a data file
    uint8_t planned;  // number of the planned buffer
    uint32_t offset;  // in the planned buffer; of a constant: position in the program
    uint32_t nbytes;
    pt_text name; // fully qualified; "" if the program has none
} pt_tensor_info;

// Reads a value that is a tensor. InvalidArgument for another value, InvalidProgram, NotSupported.
int pt_method_meta_tensor(const pt_method_meta *meta, const pt_evalue *item, pt_tensor_info *info,
                          pt_error *error);
// Returns true for a tensor with a fully qualified name.
bool pt_has_name(const pt_method_meta *meta, const pt_evalue *item);
// Reads the names of operator i ("aten::add", "out") and its number in operators.def. The number is
// negative if this build has no kernel for the operator. For a .ptm file, which has no names, it is
// then -1 - number.
int pt_method_meta_operator(const pt_method_meta *meta, uint32_t i, pt_text *name,
                            pt_text *overload, int32_t *number, pt_error *error);

// Returns the name of the backend of delegate i, "" if it has none.
pt_text pt_method_meta_backend(const pt_method_meta *meta, uint32_t i);

typedef struct pt_delegate_info {
    pt_text backend;
    pt_span processed;
    bool is_inline; // processed data lies in the FlatBuffer, not in a segment
    uint32_t specs; // position of the vector of compile specs
    uint32_t n_specs;
} pt_delegate_info;

// Reads delegate i. InvalidArgument, InvalidProgram. NotFound or Internal if the processed data of
// the delegate is missing.
int pt_method_meta_delegate(const pt_method_meta *meta, uint32_t i, pt_delegate_info *info,
                            pt_error *error);
// Reads compile spec i, below n_specs, of a delegate.
void pt_compile_spec(const pt_method_meta *meta, const pt_delegate_info *info, uint32_t i,
                     pt_text *key, pt_span *value);
// Reads the value of the first compile spec of a key. Returns false if there is none.
bool pt_find_spec(const pt_method_meta *meta, const pt_delegate_info *info, const char *key,
                  uint32_t length, pt_span *value);

// The vtable that the walk read last: most tables of one kind share a vtable, so the walk seldom
// reads another. All 0 before the first table. It is a field of pt_instruction_walk and private to
// the library.
typedef struct pt_layout {
    uint32_t vtable;
    uint32_t last; // position up to which the fields of a table with this vtable lie in the file
} pt_layout;

// The last vtable of tables with two fields, and the offsets of these fields.
typedef struct pt_pair_layout {
    pt_layout table;
    uint16_t at[2]; // 0 for a missing field
} pt_pair_layout;

// A walk over the instructions of a method, chain by chain:
//     for (pt_instruction_walk walk = pt_instruction_walk_start(&meta);
//     pt_instruction_walk_next(&walk);) { ... }
typedef struct pt_instruction_walk {
    const pt_method_meta *meta;
    uint32_t chain;        // the next chain
    uint32_t instructions; // position of the vector of this chain's instructions
    uint32_t next;         // number of the next instruction in this chain
    uint32_t length;       // number of this chain's instructions
    uint32_t first;        // number of the chain's first instruction
    uint32_t index;        // number of this instruction, counted from 0
    uint8_t kind;          // PT_INSTRUCTION_...
    int32_t target;        // operator, delegate, moved value, condition or freed value
    int32_t other;         // value that a move writes; destination of a jump, in its chain
    uint32_t args;         // only for a call: position of the vector of its values
    uint32_t n_args;
    bool bad; // a part lies outside the file
    pt_pair_layout instruction;
    pt_pair_layout call;
} pt_instruction_walk;

pt_instruction_walk pt_instruction_walk_start(const pt_method_meta *meta);
// Moves to the next instruction. Returns false after the last instruction. Also returns false at
// the first instruction that lies outside the file, and sets `bad`.
bool pt_instruction_walk_next(pt_instruction_walk *walk);
// Returns the number of the value that is argument k, below n_args, of a call.
int32_t pt_instruction_walk_argument(const pt_instruction_walk *walk, uint32_t k);
// Returns the number of the value that a call makes a view of another value, -1 if it makes none.
int32_t pt_instruction_walk_view(const pt_instruction_walk *walk);
// Returns the number of the operator that instruction i calls, -1 if it calls none.
int32_t pt_method_meta_called_operator(const pt_method_meta *meta, uint32_t i);

// ---- data files

// An open .ptd file: tensors outside the program. Its fields are private to the library: positions
// in the file.
typedef struct pt_data {
    void *owner; // free for the caller
    const uint8_t *data;
    uint32_t size;
    uint32_t tables; // bytes of the file up to the end of the FlatBuffer
    uint32_t segments;
    uint32_t segment_base;
    uint32_t named_data;
    uint32_t next; // key where a search starts
} pt_data;

// Opens the .ptd file of `size` bytes at `data`. NotFound for a file of another kind,
// InvalidExternalData for a damaged one, InvalidArgument, NotSupported.
int pt_data_open(pt_data *file, const void *data, uint32_t size, pt_verification verification,
                 pt_error *error);
// Return the number of keys, and key and bytes of entry i, below that number.
uint32_t pt_data_keys(const pt_data *file);
pt_text pt_data_key(const pt_data *file, uint32_t i);
pt_span pt_data_bytes(const pt_data *file, uint32_t i);
// Returns the number of a key, or -1.
int32_t pt_data_find(const pt_data *file, const char *key, uint32_t length);
// Reads dtype, sizes, dim order and nbytes of entry i. InvalidExternalData if it is no tensor.
int pt_data_tensor(const pt_data *file, uint32_t i, pt_tensor_info *info, pt_error *error);

// ---- loaded methods

// The memories of a method. `picotorch size` prints how many bytes each needs.
typedef struct pt_memories {
    pt_span pool;           // records of the method, and packed weights
    uint32_t pool_used;     // bytes in use at the start of the pool
    const pt_span *planned; // as many as pt_method_meta_count(PT_PLANNED_BUFFERS), each of at least
    uint32_t n_planned;     // pt_method_meta_buffer bytes
    pt_span temp;           // scratch of kernels while they run; data NULL: none
    pt_data *const *data;   // .ptd files with the external tensors of the program
    uint32_t n_data;
} pt_memories;

struct pt_method;

// Functions that execute the parts of a program that its exporter handed to a delegate. Each gets
// the method, whose delegates->owner is the caller's, and the number of the delegate. A function
// fails by returning the code of an error, and may fill `error`.
typedef struct pt_delegates {
    void *owner;
    uint32_t max_delegates; // maximum number of delegates of a method
    uint32_t max_arguments; // maximum number of arguments of a call
    // Looks up the backend of a delegate, even if its number is max_delegates or more. NotFound if
    // there is none.
    int (*find)(struct pt_method *method, uint32_t delegate, pt_error *error);
    // Sets a delegate up, during pt_load. It may call pt_allocate and pt_ask_temp.
    int (*init)(struct pt_method *method, uint32_t delegate, pt_error *error);
    // Runs one call. It reads its arguments by pt_argument, and may call pt_allocate_temp and
    // pt_resize_argument.
    int (*execute)(struct pt_method *method, uint32_t delegate, pt_error *error);
    // Ends a delegate whose init returned PT_ERROR_OK, when the method is unloaded or its load
    // fails.
    void (*destroy)(struct pt_method *method, uint32_t delegate);
} pt_delegates;

// Options of pt_load. Zeros are good defaults.
typedef struct pt_options {
    bool pack_weights; // pack constant weights into the pool once, for a faster run; not with
                       // PT_NO_PACKING
    uint8_t core;      // PT_CORE_...: the core to pack for, whose temp memory pt_usage reports. For
                       // builds with PT_ANY_CORE; other builds use their own core
    const pt_delegates *delegates; // NULL: none
    pt_span events;                // pt_event[1 + instructions]; data NULL: no tracing
    uint64_t (*clock)(void);       // returns the ticks of a clock, for events
    uint64_t clock_mask;           // has a 1 for each bit of the clock
} pt_options;

typedef enum { PT_UNLOADED, PT_LOADING, PT_UNLOADING, PT_LOADED } pt_state;

// A method. All bytes are 0 before its first load. Its fields are private to the library; a
// delegate may read `delegates` and `n_call`.
typedef struct pt_method {
    pt_context c;
    pt_method_meta meta;
    const pt_delegates *delegates;
    pt_data *const *data;
    uint32_t records_end; // end of its records, and start of its packed weights
    uint32_t end;         // end of its part of the pool
    uint8_t state;        // pt_state
    bool is_ready;        // all inputs are set, and all memories are bound
    bool is_running;
    bool failed_delegate; // the run ended in a delegate, which filled the error
    uint8_t n_planned;
    uint8_t first_external; // number of the first memory of tensors outside the planned memory
    uint8_t end_external;
    uint8_t n_call;      // number of arguments of the running delegate call
    uint16_t n_ready;    // number of delegates that are ready, the first ones
    uint16_t missing;    // inputs that are not set
    uint32_t temp_used;  // bytes of temp memory that the delegate call has allocated
    uint32_t has_memory; // a bit for each memory of tensors outside the planned memory
    pt_error *error;     // the error to fill in the running call
    uint32_t set[PT_MAX_INPUTS / 32];
} pt_method;

// Loads a method into its memories: checks the whole method, and writes its records into the pool.
// The records take the same bytes on every machine. After an error the method is not loaded, and
// pt_load may be called again. AlreadyLoaded; OperatorMissing; NotFound for a backend, a tensor of
// a data file; MemoryAllocationFailed for a memory that is too small, with both sizes;
// InvalidArgument; InvalidProgram; InvalidExternalData; NotSupported; OutOfResources for a limit of
// this build (config.h); and the errors of kernels.
int pt_load(pt_method *method, const pt_method_meta *meta, const pt_memories *memories,
            const pt_options *options, pt_error *error);
// Unloads a method, and ends its delegates. Its part of the pool is free again. Does nothing if no
// method is loaded, or while the method executes.
void pt_unload(pt_method *method);

// A tensor of the caller. Without a shape it has the dtype and the sizes of the program's tensor.
typedef struct pt_input_buffer {
    pt_span data;
    char typecode; // typecode of the elements, as in Python's array module; 'B' or 0: bytes
    bool has_shape;
    uint8_t dtype; // dtype, rank, sizes and dim_order: only with has_shape
    uint8_t rank;
    const int32_t *sizes;
    const uint8_t *dim_order; // NULL: the program's
    uint8_t memory;           // out: number of the memory that was bound; 0 if data was copied
} pt_input_buffer;

// Sets input i to a tensor. Its bytes are in the program's dtype and dim order. They are copied
// into planned memory; the bytes of an unplanned input are used in place, and stay in place until
// another input replaces them. pt_give_input also accepts a shape, which sets the sizes of a
// dynamic input. An input stays set until pt_reset_state or pt_unload. InvalidArgument for another
// number of bytes, dtype or index, NotSupported for sizes that the input does not allow,
// InvalidState before pt_load, during an execution and between steps.
int pt_set_input(pt_method *method, uint32_t i, void *data, uint32_t size, pt_error *error);
int pt_give_input(pt_method *method, uint32_t i, pt_input_buffer *buffer, pt_error *error);
// Sets an input that is not a tensor: a number, a string, or PT_TYPE_NULL. It must equal the value
// at export. InvalidArgument, InvalidState.
int pt_set_constant_input(pt_method *method, uint32_t i, const pt_evalue *value, pt_error *error);
// Set the memory of an unplanned output i, or of an unplanned mutable buffer by name. The memory is
// the caller's, and stays in place while the method is loaded. InvalidArgument, NotSupported,
// NotFound, InvalidState.
int pt_set_output(pt_method *method, uint32_t i, pt_input_buffer *buffer, pt_error *error);
int pt_set_attribute(pt_method *method, const char *name, uint32_t length, pt_input_buffer *buffer,
                     pt_error *error);

// Returns the typecode of Python's array module for elements of a dtype. A dtype without one has
// the typecode of unsigned integers of its size, or 'B'.
char pt_typecode(uint8_t dtype);
// Returns true if elements of this typecode may be elements of a tensor of a dtype.
bool pt_accepts(uint8_t dtype, char typecode);

// The current value of a loaded method. It points into the memories of the method.
typedef struct pt_value_view {
    uint8_t type;     // PT_TYPE_...
    uint8_t memory;   // only for a tensor: number of the memory with its data
    uint32_t nbytes;  // only for a tensor
    pt_tensor tensor; // the tensor with its data in place
    pt_scalar number;
    pt_text text;
    pt_evalue list;
    uint32_t value; // only for a list: its number in PT_VALUES
} pt_value_view;

// Read output i; a parameter or buffer by name; item i of a list. A tensor stays in place, in the
// program's dim order, and is valid until the next pt_set_input, execution or pt_unload: planned
// memory is shared. InvalidState before pt_load, for an unplanned tensor without memory, and for
// memory that was resized or moved; InvalidArgument for an index that is too large; NotFound for a
// name.
int pt_output(const pt_method *method, uint32_t i, pt_value_view *view, pt_error *error);
int pt_attribute(const pt_method *method, const char *name, uint32_t length, pt_value_view *view,
                 pt_error *error);
int pt_list_view(const pt_method *method, const pt_evalue *list, uint32_t i, pt_value_view *view,
                 pt_error *error);

// Executes all instructions from the first one, wherever pt_step stopped. InvalidArgument if an
// input is not set, InvalidState if a memory is not set, and the errors of kernels. After an error
// outputs and mutable buffers contain what the earlier instructions wrote; inputs stay set. With or
// without an error the method is at its first instruction afterwards.
int pt_execute(pt_method *method, pt_error *error);
// Executes one instruction. EndOfMethod if no instruction is left. Other errors are as for
// pt_execute.
int pt_step(pt_method *method, pt_error *error);
// Moves to the first instruction. InvalidState.
int pt_restart(pt_method *method, pt_error *error);
// Restarts the random numbers of the following executions; pt_load uses a seed of 0. InvalidState.
int pt_seed(pt_method *method, uint32_t seed, pt_error *error);
// Sets mutable buffers to their initial values, or to zero. Everything but the random numbers is as
// after pt_load: inputs have to be set again. InvalidState.
int pt_reset_state(pt_method *method, pt_error *error);

// Checks that a method is loaded. InvalidState.
int pt_check_loaded(const pt_method *method, pt_error *error);
// Returns true for the number of a memory of the program or of a data file.
bool pt_is_constant_memory(const pt_method *method, uint32_t memory);
// Fills the error for a memory that its owner resized or moved after it was set. InvalidState.
int pt_moved_memory(const pt_method *method, uint32_t memory, pt_error *error);

// Bytes that a loaded method uses.
typedef struct pt_usage {
    uint32_t pool;   // bytes of the pool, from pool_used on
    uint32_t packed; // of these: packed weights, at the end
    uint32_t temp;   // of temp memory; some kernels run with less, and take longer
    // Temp memory with which the kernels are fastest: `temp` or more. The kernels use no more. For
    // a .ptm file opened with PT_VERIFY_MINIMAL it equals `temp`.
    uint32_t preferred_temp;
} pt_usage;

// Returns the bytes that a loaded method uses.
pt_usage pt_get_usage(const pt_method *method);

// ---- for delegates

// Allocates `size` bytes of the pool, all 0, which belong to the delegate until it is destroyed.
// Only in init. `alignment` is a power of 2. MemoryAllocationFailed, InvalidArgument, InvalidState.
int pt_allocate(pt_method *method, uint32_t size, uint32_t alignment, void **data, pt_error *error);
// Allocates `size` bytes of the temp memory until the call ends, with any contents. Only in
// execute. The same errors.
int pt_allocate_temp(pt_method *method, uint32_t size, uint32_t alignment, void **data,
                     pt_error *error);
// Requests `size` bytes of temp memory for execute: pt_load fails if the temp memory is smaller.
// Only in init. InvalidArgument.
int pt_ask_temp(pt_method *method, uint32_t size, pt_error *error);
// Reads argument i, below method->n_call, of the running call. InvalidArgument, InvalidState.
int pt_argument(const pt_method *method, uint32_t i, pt_value_view *view, pt_error *error);
// Sets the sizes of an argument of dynamic shape. NotSupported, InvalidArgument.
int pt_resize_argument(pt_method *method, uint32_t i, uint32_t rank, const int32_t *sizes,
                       pt_error *error);

#ifdef __cplusplus
}
#endif

#endif
