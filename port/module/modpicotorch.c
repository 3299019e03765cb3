// The MicroPython module _picotorch: the library for the runtime in Python.
#include "modpicotorch.h"
#include "py/binary.h"
#include "py/runtime.h"
#include "record.h"
#include <string.h>

// ---- buffers

static mp_obj_t module_misaligned(mp_obj_t buffer_in, mp_obj_t alignment_in) {
    mp_buffer_info_t buffer;
    mp_get_buffer_raise(buffer_in, &buffer, MP_BUFFER_READ);
    mp_int_t alignment = mp_obj_get_int(alignment_in);
    if (alignment <= 0) {
        pt_raise_value_error();
    }
    return mp_obj_new_bool(buffer.len > 0 && (uintptr_t)buffer.buf % (mp_uint_t)alignment != 0);
}

static mp_obj_t module_view(size_t n_args, const mp_obj_t *args) {
    mp_buffer_info_t buffer, writable;
    mp_get_buffer_raise(args[1], &buffer, MP_BUFFER_READ);
    mp_int_t offset = mp_obj_get_int(args[2]), size = mp_obj_get_int(args[3]);
    if (offset < 0 || size < 0 || (int64_t)offset + size > (int64_t)buffer.len) {
        pt_raise_value_error();
    }
    void *start = pt_fixed_start(args[1]);
    bool can_write =
        (n_args < 6 || mp_obj_is_true(args[5])) && mp_get_buffer(args[1], &writable, MP_BUFFER_RW);
    return pt_show(args[0], start ? start : buffer.buf, (uint8_t *)buffer.buf + offset,
                   (size_t)size, *mp_obj_str_get_str(args[4]), can_write);
}

static mp_obj_t module_nbytes(mp_obj_t object) {
    mp_buffer_info_t buffer;
    return pt_small_int(mp_get_buffer(object, &buffer, MP_BUFFER_READ) ? (int64_t)buffer.len : -1);
}

static mp_obj_t module_typecode(mp_obj_t object) {
    mp_buffer_info_t buffer;
    mp_get_buffer_raise(object, &buffer, MP_BUFFER_READ);
    return MP_OBJ_NEW_SMALL_INT(pt_typecode_of(&buffer));
}

static mp_obj_t module_readonly(mp_obj_t object) {
    mp_buffer_info_t buffer;
    return mp_obj_new_bool(!mp_get_buffer(object, &buffer, MP_BUFFER_RW));
}

static mp_obj_t module_clear(mp_obj_t object) {
    mp_buffer_info_t buffer;
    mp_get_buffer_raise(object, &buffer, MP_BUFFER_WRITE);
    memset(buffer.buf, 0, buffer.len);
    return mp_const_none;
}

// ---- what only MicroPython needs

static mp_obj_t module_new_string(void) {
    return pt_new_string();
}

static mp_obj_t module_clear_traceback(mp_obj_t error) {
    pt_clear_traceback(error);
    return mp_const_none;
}

static mp_obj_t module_heap_locked(void) {
    return mp_obj_new_bool(pt_heap_locked());
}

static mp_obj_t module_new_float(void) {
    return mp_obj_new_float(0);
}

static mp_obj_t module_stack_free(void) {
    size_t free = pt_stack_free();
    return pt_small_int(free < PT_SMALL_INT_MAX ? (int64_t)free : PT_SMALL_INT_MAX);
}

// ---- operators and events

static mp_obj_t module_element_size(mp_obj_t dtype_in) {
    mp_int_t dtype = mp_obj_get_int(dtype_in);
    return pt_small_int(dtype >= 0 && dtype < 256 ? pt_element_size((uint8_t)dtype) : 0);
}

// One of the interned strings: needs no heap.
static mp_obj_t module_element_typecode(mp_obj_t dtype) {
    static const char letters[] = "BbhHiIqQfd";
    static const uint16_t names[] = {MP_QSTR_B, MP_QSTR_b, MP_QSTR_h, MP_QSTR_H, MP_QSTR_i,
                                     MP_QSTR_I, MP_QSTR_q, MP_QSTR_Q, MP_QSTR_f, MP_QSTR_d};
    const char *found = strchr(letters, pt_typecode((uint8_t)mp_obj_get_int(dtype)));
    return MP_OBJ_NEW_QSTR(names[found - letters]);
}

static mp_obj_t module_operator_count(void) {
    return pt_small_int(pt_operator_count());
}

static mp_obj_t module_operator_name(mp_obj_t number) {
    const char *name = pt_operator_name(pt_index(number));
    return mp_obj_new_str(name, strlen(name));
}

static mp_obj_t module_argument_name(mp_obj_t number, mp_obj_t i) {
    uint32_t length = 0;
    const char *name = pt_operator_argument((uint32_t)mp_obj_get_int(number),
                                            (uint32_t)mp_obj_get_int(i), &length);
    return mp_obj_new_str(name, length);
}

static pt_event event_at(mp_obj_t buffer_in, mp_obj_t index_in) {
    mp_buffer_info_t buffer;
    mp_get_buffer_raise(buffer_in, &buffer, MP_BUFFER_READ);
    mp_uint_t index = (mp_uint_t)mp_obj_get_int(index_in);
    pt_event event;
    if (index >= buffer.len / sizeof(event)) {
        pt_raise_value_error();
    }
    memcpy(&event, (uint8_t *)buffer.buf + index * sizeof(event), sizeof(event));
    return event;
}

static mp_obj_t module_event_calls(mp_obj_t buffer, mp_obj_t index) {
    return pt_small_int(event_at(buffer, index).calls);
}

static mp_obj_t module_event_ticks(mp_obj_t buffer, mp_obj_t index) {
    int64_t ticks = (int64_t)event_at(buffer, index).ticks;
    return pt_number((pt_scalar){PT_TYPE_INT, {.i = ticks}}, mp_const_none);
}

#define CONSTANT(name, value) \
    { MP_ROM_QSTR(MP_QSTR_##name), MP_ROM_INT(value) }
#define TYPE(name, type) \
    { MP_ROM_QSTR(MP_QSTR_##name), MP_ROM_PTR(&type) }

static const mp_rom_map_elem_t globals_table[] = {
    {MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR__picotorch)},
    PT_0(module, heap_locked),
    PT_1(module, nbytes),
    PT_VAR(module, view, 5, 6),
    TYPE(Program, pt_program_type),
    TYPE(Data, pt_data_type),
    TYPE(Method, pt_method_type),
    PT_2(module, misaligned),
    PT_1(module, typecode),
    PT_1(module, readonly),
    PT_1(module, clear),
    PT_1(module, clear_traceback),
    PT_0(module, new_float),
    PT_0(module, new_string),
    PT_0(module, stack_free),
    PT_1(module, element_size),
    PT_1(module, element_typecode),
    PT_0(module, operator_count),
    PT_1(module, operator_name),
    PT_2(module, argument_name),
    PT_2(module, event_calls),
    PT_2(module, event_ticks),
    CONSTANT(VALUES, PT_VALUES),
    CONSTANT(INPUTS, PT_INPUTS),
    CONSTANT(OUTPUTS, PT_OUTPUTS),
    CONSTANT(OPERATORS, PT_OPERATORS),
    CONSTANT(DELEGATES, PT_DELEGATES),
    CONSTANT(PLANNED_BUFFERS, PT_PLANNED_BUFFERS),
    CONSTANT(INSTRUCTIONS, PT_INSTRUCTIONS),
    CONSTANT(FIND, PT_ASK_FIND),
    CONSTANT(INIT, PT_ASK_INIT),
    CONSTANT(EXECUTE, PT_ASK_EXECUTE),
    CONSTANT(DESTROY, PT_ASK_DESTROY),
    CONSTANT(MEMORIES, PT_MEMORIES),
    CONSTANT(EVENT_BYTES, sizeof(pt_event)),
    CONSTANT(STACK_BYTES, PT_STACK_BYTES),
    CONSTANT(SMALL_INT_MAX, PT_SMALL_INT_MAX)};
static MP_DEFINE_CONST_DICT(globals, globals_table);

const mp_obj_module_t pt_module = {
    .base = {&mp_type_module},
    .globals = (mp_obj_dict_t *)&globals,
};
MP_REGISTER_MODULE(MP_QSTR__picotorch, pt_module);
