// MicroPython's functions and types for a native module. They are reached through mp_fun_table, or
// by name from the builtins; others are not available. The compiler includes this file before each
// source (Makefile), so the sources of port/module are the same for firmware and native module.
//
// Here MP_QSTR_x is the index of a name in the table that MicroPython creates when it loads the
// module. mpy_init puts the names themselves into the constant tables and types (init.c).
#ifndef PT_NATIVE_H
#define PT_NATIVE_H

#undef __SOFTFP__ // so that nlr_buf_t includes the registers that a firmware with an FPU saves
#include "py/binary.h"
#include "py/nativeglue.h"
#include "py/objarray.h"
#include "py/objint.h"
#include "py/objstr.h"
#include "py/runtime.h"
#include "py/smallint.h"

// Properties of the MicroPython that loaded the module, set by mpy_init.
typedef struct pt_native {
    const mp_obj_type_t *type_bytes, *type_float, *type_int, *type_memoryview, *type_tuple;
    const mp_obj_type_t *memory_error, *runtime_error, *type_error, *value_error;
    mp_obj_t min, max;        // ints of 64 bits
    mp_obj_t pause;           // a function of bytecode, see pt_pause
    mp_obj_t ticks;           // time.ticks_cpu, or MP_OBJ_NULL
    uint8_t bytes_of_a_float; // bytes of a float object; 0: unknown
} pt_native;

extern pt_native pt_micropython;
extern const uint16_t mp_native_qstr_table[];

static inline qstr pt_name(qstr index) {
    return mp_native_qstr_table[index];
}

// Calls an empty bytecode function, which checks the stack, runs scheduled callbacks and raises
// pending exceptions.
void pt_pause(void);
mp_obj_t pt_new_memoryview(void *start);
mp_obj_t pt_number_at(char typecode, const void *number);
double pt_double_of(mp_obj_t number);
void *pt_new(size_t size);
void pt_raise_type(const mp_obj_type_t *type) __attribute__((noreturn));
void pt_raise_object(mp_obj_t exception) __attribute__((noreturn));
void pt_get_array(mp_obj_t array, size_t *length, mp_obj_t **items);
const char *pt_get_text(mp_obj_t text, size_t *length);

// time.ticks_cpu returns small ints.
#define PT_TICKS_MASK ((mp_uint_t)-1 >> 2)

// ---- constants and types

#undef mp_const_none
#undef mp_const_false
#undef mp_const_true
#undef MP_OBJ_NEW_QSTR
#undef MP_ROM_QSTR
#undef mp_obj_is_type
#define mp_const_none ((mp_obj_t)mp_fun_table.const_none)
#define mp_const_false ((mp_obj_t)mp_fun_table.const_false)
#define mp_const_true ((mp_obj_t)mp_fun_table.const_true)
#define MP_OBJ_NEW_QSTR(index) (mp_fun_table.native_to_obj(pt_name(index), MP_NATIVE_TYPE_QSTR))
#define MP_ROM_QSTR(index) ((mp_obj_t)((mp_uint_t)(index) << 3 | 2)) // for mpy_init
#define mp_obj_is_type(o, type) mp_obj_is_exact_type(o, type)
#define mp_type_bytes (*pt_micropython.type_bytes)
#define mp_type_float (*pt_micropython.type_float)
#define mp_type_int (*pt_micropython.type_int)
#define mp_type_memoryview (*pt_micropython.type_memoryview)
#define mp_type_tuple (*pt_micropython.type_tuple)
#define mp_type_TypeError (*pt_micropython.type_error)
#define mp_type_ValueError (*pt_micropython.value_error)
#undef mp_obj_is_bool
#define mp_obj_is_bool(o) ((o) == mp_const_false || (o) == mp_const_true)

// MicroPython registers a native module by its file.
#define MP_REGISTER_MODULE(name, module)

// ---- objects

#define mp_obj_get_type(o) (mp_fun_table.obj_get_type(o))
#define mp_obj_is_true(o) (mp_fun_table.obj_is_true(o))
#define mp_obj_get_int(o) ((mp_int_t)mp_fun_table.native_from_obj(o, MP_NATIVE_TYPE_INT))
#define mp_obj_get_float(o) pt_double_of(o)
#define mp_get_buffer(o, info, flags) (mp_fun_table.get_buffer(o, info, flags))
#define mp_obj_get_array(o, length, items) pt_get_array(o, length, items)
#define mp_obj_tuple_get(o, length, items) pt_get_array(o, length, items)
#define mp_obj_str_get_data(o, length) pt_get_text(o, length)
#define mp_binary_get_size(kind, code, align) (mp_fun_table.binary_get_size(kind, code, align))

#define mp_obj_new_bool(b) ((b) ? mp_const_true : mp_const_false)
#define mp_obj_new_int(i) (mp_fun_table.native_to_obj((mp_uint_t)(i), MP_NATIVE_TYPE_INT))
#define mp_obj_new_int_from_ll(i) pt_number_at('q', &(long long){i})
#define mp_obj_new_str(data, length) (mp_fun_table.obj_new_str(data, length))
#define mp_obj_new_bytes(data, length) (mp_fun_table.obj_new_bytes(data, length))
#define mp_obj_new_tuple(n, items) (mp_fun_table.new_tuple(n, items))
#define mp_obj_new_list(n, items) (mp_fun_table.new_list(n, items))
#define mp_obj_list_append(list, item) (mp_fun_table.list_append(list, item))
#define mp_obj_new_memoryview(code, length, items) pt_new_memoryview(items)
#define m_malloc0(size) pt_new(size)
#undef mp_obj_malloc
#define mp_obj_malloc(kind, of_type) pt_with_type(pt_new(sizeof(kind)), of_type)

static inline void *pt_with_type(void *object, const mp_obj_type_t *type) {
    ((mp_obj_base_t *)object)->type = type;
    return object;
}

// ---- functions of objects

#define mp_load_attr(o, index) (mp_fun_table.load_attr(o, pt_name(index)))
#define mp_store_attr(o, index, value) (mp_fun_table.store_attr(o, pt_name(index), value))
#define mp_load_method(o, index, into) (mp_fun_table.load_method(o, pt_name(index), into))
#define mp_load_method_maybe(o, index, into) \
    (mp_fun_table.load_method_maybe(o, pt_name(index), into))
#define mp_call_method_n_kw(n, n_kw, call) (mp_fun_table.call_method_n_kw(n, n_kw, call))
#define mp_binary_op(op, a, b) (mp_fun_table.binary_op(op, a, b))
#define mp_arg_check_num(n, n_kw, min, max, takes_kw) \
    (mp_fun_table.arg_check_num_sig(n, n_kw, MP_OBJ_FUN_MAKE_SIG(min, max, takes_kw)))
#define nlr_push(buffer) (mp_fun_table.nlr_push(buffer))
#define nlr_pop() (mp_fun_table.nlr_pop())
#undef nlr_raise
#define nlr_raise(exception) pt_raise_object(exception)
#undef mp_raise_type
#define mp_raise_type(type) pt_raise_type(type)

#endif
