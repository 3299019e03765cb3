// Common declarations of the module _picotorch. host/_picotorch/contract.py lists the attributes
// that it reads of Python's objects, and its own names. host/_picotorch/__init__.py is the same
// module for CPython, and documents each function.
#ifndef PT_MODPICOTORCH_H
#define PT_MODPICOTORCH_H

#include "py/runtime.h"
#include <picotorch/config.h>
#include <picotorch/picotorch.h>

extern const mp_obj_type_t pt_program_type, pt_data_type, pt_method_type, pt_kept_type;
extern const mp_obj_dict_t pt_module_globals;

enum { PT_SMALL_INT_MAX = 0x3FFFFFFF };

// Returns an int for the number, clamped so that the int needs no heap.
static inline mp_obj_t pt_small_int(int64_t value) {
    return MP_OBJ_NEW_SMALL_INT((mp_int_t)MAX(-PT_SMALL_INT_MAX, MIN(value, PT_SMALL_INT_MAX)));
}

// Converts an int for the library, clamped: negative and too large ints are out of range there.
// TypeError for any other object.
uint32_t pt_clamp(mp_obj_t i);
// Converts an index or a size, as pt_clamp; InvalidType for any other object.
uint32_t pt_index(mp_obj_t owner, mp_obj_t i);

// Bytes of stack below MicroPython's limit that open, load, execute, step and unload require.
// tests/runtime/test_stack.py checks them against the deepest kernel of every board.
#ifndef PT_STACK_BYTES
#define PT_STACK_BYTES 2304
#endif

// Entries of a table of functions: prefix_name, with that number of arguments.
#define PT_FIXED(n, prefix, name)                                                                 \
    {                                                                                             \
        MP_ROM_QSTR(MP_QSTR_##name), MP_ROM_PTR((&(const mp_obj_fun_builtin_fixed_t){             \
                                         {&mp_type_fun_builtin_##n}, {._##n = prefix##_##name}})) \
    }
#define PT_0(prefix, name) PT_FIXED(0, prefix, name)
#define PT_1(prefix, name) PT_FIXED(1, prefix, name)
#define PT_2(prefix, name) PT_FIXED(2, prefix, name)
#define PT_3(prefix, name) PT_FIXED(3, prefix, name)
#define PT_VAR(prefix, name, min, max)                                                          \
    {                                                                                           \
        MP_ROM_QSTR(MP_QSTR_##name),                                                            \
            MP_ROM_PTR((&(const mp_obj_fun_builtin_var_t){{&mp_type_fun_builtin_var},           \
                                                          MP_OBJ_FUN_MAKE_SIG(min, max, false), \
                                                          {.var = prefix##_##name}}))           \
    }

// Requests to the owner of a Method.
enum { PT_ASK_FIND, PT_ASK_INIT, PT_ASK_EXECUTE, PT_ASK_DESTROY, PT_ASK_KEPT };

// ---- errors

// Raises through the owner's `on_error`. While the heap is locked, the first item of its `texts`
// shows the text.
void pt_raise(mp_obj_t owner, const pt_error *error) __attribute__((noreturn));
// Calls a function of the library with `error`, and raises the error if it fails.
#define PT_CALL(owner, call)         \
    do {                             \
        pt_error error;              \
        if ((call) != PT_ERROR_OK) { \
            pt_raise(owner, &error); \
        }                            \
    } while (0)
void pt_refuse_with(mp_obj_t owner, int code, uint8_t subject, int32_t index, const char *what)
    __attribute__((noreturn));
#ifdef PT_NO_TEXTS
#define pt_refuse(owner, code, subject, index, what) \
    ((void)(what), pt_refuse_with(owner, code, subject, index, NULL))
#else
#define pt_refuse pt_refuse_with
#endif
// Raises an error if fewer than PT_STACK_BYTES are left.
void pt_need_stack(mp_obj_t owner);
// Raises a ValueError or TypeError without a text, which needs no heap.
void pt_raise_value_error(void) __attribute__((noreturn));
void pt_check_type(mp_obj_t object, const mp_obj_type_t *type);

// ---- memories

// The memory of a buffer.
typedef struct pt_memory {
    pt_span span;
    char typecode;     // typecode of the buffer's elements
    bool is_resizable; // the memory may move or shrink: the anchor is the object, which is read
                       // again
    void *anchor;      // the object that keeps the memory alive; for a buffer that never moves, its
                       // start
} pt_memory;

// Returns false for an object that is no buffer, and for arrays of references, which must not be
// written as bytes.
bool pt_find_memory(mp_obj_t object, pt_memory *memory);
// InvalidType for an object that is no buffer, NotSupported for a buffer of 1 GiB.
pt_memory pt_memory_of(mp_obj_t owner, mp_obj_t buffer, uint8_t subject, int32_t index);
// True if the anchor of a resizable memory has moved the memory or made it smaller.
bool pt_has_moved(void *anchor, const pt_span *memory);

// ---- files

// An open file, _picotorch.Program or .Data. A pointer to the object is a pointer to its pt_data,
// so that pt_load accepts an array of these objects.
typedef struct pt_file {
    union {
        mp_obj_base_t base; // the `owner` of both
        pt_program program;
        pt_data data;
    };
    mp_obj_t owner; // see pt_raise
    void *anchor;   // the anchor of its memory
    bool is_resizable;
} pt_file;

// Returns a file, after checking that its memory has not moved. TypeError, InvalidState.
pt_file *pt_get_file(mp_obj_t file, const mp_obj_type_t *type);
// Returns the start of the buffer that contains its memory.
void *pt_start_of_file(const pt_file *file);
// Returns the description of a method of a program. NotFound, too.
pt_method_meta pt_get_method_meta(mp_obj_t program, mp_obj_t method);

// ---- values

// Objects for one value, created at set-up, since a locked heap cannot create them.
typedef struct pt_kept {
    mp_obj_base_t base;
    mp_obj_t tensor;
    mp_obj_t data; // memoryviews of the Tensor
    mp_obj_t sizes;
    mp_obj_t dim_order;
    mp_obj_t number;
    mp_obj_t text;
    mp_obj_t list;
} pt_kept;

// Returns an int, bool or float. While the heap is locked a float is stored in `kept`, if that is a
// float. MemoryError for an int that would need the locked heap.
mp_obj_t pt_number(pt_scalar s, mp_obj_t kept);
// Returns a string. While the heap is locked `kept`, made by pt_new_string, refers to the text in
// place, which 0 must follow. ValueError for text that is not UTF-8.
mp_obj_t pt_string(const char *text, size_t length, bool is_terminated, mp_obj_t kept);
// Reads a str; InvalidType for any other object.
pt_text pt_text_of(mp_obj_t owner, mp_obj_t str);
mp_obj_t pt_bytes(pt_text text);
// (dtype, sizes, dim order ...), see TENSOR_FIELDS in contract.py.
mp_obj_t pt_tensor_tuple(const pt_tensor_info *info);

// ---- internals: functions that are not available to a native module

bool pt_heap_locked(void);
// Returns the bytes of stack until MicroPython rejects calls; SIZE_MAX without a limit.
size_t pt_stack_free(void);
// Returns the start of the buffer behind a memoryview, or of the bytes of a bytes or str object;
// NULL for any other object, and for subclasses.
void *pt_fixed_start(mp_obj_t buffer);
// Points `view`, or a new memoryview if it is None, at `size` bytes at `data`, elements of
// `typecode`, of a memory that starts at `start`. TypeError for an object that is no memoryview,
// ValueError for a size that is no multiple of the element size.
mp_obj_t pt_show(mp_obj_t view, void *start, const void *data, size_t size, char typecode,
                 bool writable);
// Returns the text of an error for the owner: a str, see pt_string; in a native module the distance
// from the end of its file.
mp_obj_t pt_text_object(const char *text, mp_obj_t kept);
mp_obj_t pt_new_string(void);
// Points a str made by pt_new_string at a text in place.
void pt_point_string(mp_obj_t string, const char *text, size_t length);
bool pt_is_utf8(const char *text, size_t length);
mp_obj_t pt_float(double value, mp_obj_t kept);
// Returns false for an int of more than 64 bits.
bool pt_get_int64(mp_obj_t value, int64_t *into);
// Removes and returns a pending exception, such as ctrl-C's; MP_OBJ_NULL for none.
mp_obj_t pt_take_pending_exception(void);
// Returns the port's counter: processor cycles on most ports.
uint64_t pt_ticks(void);
#ifndef PT_TICKS_MASK
#define PT_TICKS_MASK ((mp_uint_t)-1) // the bits of the counter that count
#endif
void pt_clear_traceback(mp_obj_t error);

#endif
