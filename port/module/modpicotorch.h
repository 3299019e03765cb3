// What the parts of the module _picotorch share. host/native/_picotorch.py is the same module for
// CPython and documents each function.
#ifndef PT_MODPICOTORCH_H
#define PT_MODPICOTORCH_H

#include "core.h"
#include "py/obj.h"

extern const mp_obj_type_t pt_reader_type;
extern const mp_obj_type_t pt_context_type;

enum { PT_SMALL_INT_MAX = 0x3FFFFFFF };

// The number, clamped: no method ever makes an int that needs the heap.
static inline mp_obj_t pt_small_int(int64_t value) {
    if (value > PT_SMALL_INT_MAX) {
        value = PT_SMALL_INT_MAX;
    } else if (value < -PT_SMALL_INT_MAX) {
        value = -PT_SMALL_INT_MAX;
    }
    return MP_OBJ_NEW_SMALL_INT((mp_int_t)value);
}

// Bytes of stack below MicroPython's limit that load, execute, step and unload have to find before
// they begin. tests/host/test_stack.py holds the deepest kernel of every board to it.
#ifndef PT_STACK_BYTES
#define PT_STACK_BYTES 2048
#endif
// The same of what loading calls in C, to the end of the stack, which lies behind that limit.
#ifndef PT_STACK_CHECK_BYTES
#define PT_STACK_CHECK_BYTES 1280
#endif

// Bytes of stack left until MicroPython refuses to call; SIZE_MAX where it never does.
size_t pt_stack_free(void);
// Raises RuntimeError, as MicroPython does, where PT_STACK_CHECK_BYTES are not left.
void pt_check_stack(void);

// Raises a ValueError without a text, which needs no heap.
void pt_raise_value_error(void) __attribute__((noreturn));
// True when `size` bytes at `data` do not start at a multiple of `alignment`.
bool pt_is_misaligned(const void *data, size_t size, size_t alignment);

// The start of the whole buffer that a memoryview is a part of; NULL for any other object.
void *pt_view_start(mp_obj_t buffer);
// Points a memoryview at the `size` bytes at `data`, elements of `typecode`, inside the memory that
// starts at `start` and belongs to `buffer`. Raises TypeError for what is no memoryview, ValueError
// for a size that is no multiple of the elements'.
void pt_point_view(mp_obj_t view, mp_obj_t buffer, uint8_t *start, uint8_t *data, size_t size,
                   uint8_t typecode, bool writable);

// A float. While the heap is locked it is put into `kept`, one that new_float made.
mp_obj_t pt_float(double value, mp_obj_t kept);
// An int, bool or float; `kept` as in pt_float. MemoryError for an int that needs a locked heap,
// ValueError for what is no number.
mp_obj_t pt_number(pt_scalar s, mp_obj_t kept);
// True when `value` is of the type of a number and equal to it, or as close as ExecuTorch asks of
// an input. ValueError for what is no number.
bool pt_is_number(pt_scalar s, mp_obj_t value);
// A string of `length` bytes, which another of 0 follows. While the heap is locked `kept`, one that
// new_string made, refers to them where they are. ValueError for what is no UTF-8.
mp_obj_t pt_string(const uint8_t *text, size_t length, mp_obj_t kept);
MP_DECLARE_CONST_FUN_OBJ_0(pt_heap_locked_obj);
MP_DECLARE_CONST_FUN_OBJ_0(pt_new_float_obj);
MP_DECLARE_CONST_FUN_OBJ_0(pt_new_string_obj);
MP_DECLARE_CONST_FUN_OBJ_0(pt_stack_free_obj);

// A value that an instruction names.
typedef struct pt_argument {
    uint32_t index;  // among the program's values
    uint32_t evalue; // its position in the program
    uint8_t type;    // PT_TYPE_...
} pt_argument;

// The value that item `i` of a vector of indexes names, of the values in another vector. Raises
// ValueError where they lead outside.
pt_argument pt_read_argument(mp_obj_t reader, uint32_t arguments, uint32_t i, uint32_t values);

// Items of a vector. Raises ValueError where it lies outside.
uint32_t pt_vector_length(mp_obj_t reader, uint32_t vector);

#endif
