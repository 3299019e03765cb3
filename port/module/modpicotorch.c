// The MicroPython module _picotorch: the library for the runtime in Python.
#include "modpicotorch.h"
#include "core/record.h"
#include "portable/half.h"

#if !MICROPY_PY_BUILTINS_FLOAT
#error "picotorch needs floats: define MICROPY_FLOAT_IMPL as MICROPY_FLOAT_IMPL_FLOAT or _DOUBLE"
#endif

// ---- buffers

// The arguments are view, buffer, offset, size, dtype and optionally whether the view is writable.
static mp_obj_t module_view(size_t n_args, const mp_obj_t *args) {
    pt_memory memory;
    int64_t offset = mp_obj_get_int(args[2]), size = mp_obj_get_int(args[3]);
    if (!pt_find_memory(args[1], &memory) || offset < 0 || size < 0 ||
        offset + size > memory.span.size) {
        pt_raise_value_error();
    }
    uint8_t *data = memory.span.data;
    bool writable = !memory.span.is_constant && (n_args < 6 || mp_obj_is_true(args[5]));
    return pt_show(args[0], memory.is_resizable ? data : memory.anchor, data + offset, (size_t)size,
                   pt_typecode((uint8_t)mp_obj_get_int(args[4])), writable);
}

static mp_obj_t module_nbytes(mp_obj_t object) {
    pt_memory memory;
    return pt_small_int(pt_find_memory(object, &memory) ? (int64_t)memory.span.size : -1);
}

static mp_obj_t module_buffer(mp_obj_t object) {
    pt_memory memory;
    if (!pt_find_memory(object, &memory)) {
        pt_raise_value_error();
    }
    bool is_aligned = memory.span.size == 0 || (uintptr_t)memory.span.data % PT_ALIGNMENT == 0;
    mp_obj_t items[] = {MP_OBJ_NEW_SMALL_INT(memory.typecode),
                        mp_obj_new_bool(!memory.span.is_constant), mp_obj_new_bool(is_aligned)};
    return mp_obj_new_tuple(MP_ARRAY_SIZE(items), items);
}

// ---- MicroPython only

static mp_obj_t module_clear_traceback(mp_obj_t error) {
    pt_clear_traceback(error);
    return mp_const_none;
}

static mp_obj_t module_text(void) {
    return pt_new_string();
}

static mp_obj_t module_heap_locked(void) {
    return mp_obj_new_bool(pt_heap_locked());
}

// ---- dtypes and operators

static mp_obj_t module_element_size(mp_obj_t dtype_in) {
    mp_int_t dtype = mp_obj_get_int(dtype_in);
    return pt_small_int(dtype >= 0 && dtype < 256 ? pt_element_size((uint8_t)dtype) : 0);
}

// Converts an item of a tensor's data to a number; items of float16 and bfloat16 are bits.
static mp_obj_t module_number(mp_obj_t item, mp_obj_t dtype_in) {
    mp_int_t dtype = mp_obj_get_int(dtype_in);
    bool is_half = dtype == PT_DTYPE_HALF || dtype == PT_DTYPE_COMPLEX_HALF;
    if (!is_half && dtype != PT_DTYPE_BFLOAT16) {
        return item;
    }
    uint16_t bits = (uint16_t)mp_obj_get_int(item);
    float number = is_half ? pt_half_to_float(bits) : pt_bfloat16_to_float(bits);
    return pt_float((double)number, mp_const_none);
}

static mp_obj_t module_has_operator(mp_obj_t number) {
    return mp_obj_new_bool(pt_operator_kernel(pt_clamp(number)) != NULL);
}

static mp_obj_t module_argument_name(mp_obj_t number, mp_obj_t i) {
    uint32_t length = 0;
    const char *name = pt_operator_argument(pt_clamp(number), pt_clamp(i), &length);
    return mp_obj_new_str(name, length);
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
#if PT_HAS_PROGRAMS
    TYPE(Data, pt_data_type),
#endif
    TYPE(Method, pt_method_type),
    TYPE(Kept, pt_kept_type),
    PT_1(module, buffer),
    PT_1(module, clear_traceback),
    PT_0(module, text),
    PT_1(module, element_size),
    PT_2(module, number),
    PT_1(module, has_operator),
    PT_2(module, argument_name),
    CONSTANT(VALUES, PT_VALUES),
    CONSTANT(INPUTS, PT_INPUTS),
    CONSTANT(OUTPUTS, PT_OUTPUTS),
    CONSTANT(OPERATORS, PT_OPERATORS),
    CONSTANT(DELEGATES, PT_DELEGATES),
    CONSTANT(PLANNED_BUFFERS, PT_PLANNED_BUFFERS),
    CONSTANT(INSTRUCTIONS, PT_INSTRUCTIONS),
    CONSTANT(DELEGATE_ARGUMENTS, PT_DELEGATE_ARGUMENTS),
    CONSTANT(FIND, PT_ASK_FIND),
    CONSTANT(INIT, PT_ASK_INIT),
    CONSTANT(EXECUTE, PT_ASK_EXECUTE),
    CONSTANT(DESTROY, PT_ASK_DESTROY),
    CONSTANT(KEPT, PT_ASK_KEPT),
    CONSTANT(EVENT_BYTES, sizeof(pt_event)),
    CONSTANT(SMALL_INT_MAX, PT_SMALL_INT_MAX)};
MP_DEFINE_CONST_DICT(pt_module_globals, globals_table);

const mp_obj_module_t pt_module = {
    .base = {&mp_type_module},
    .globals = (mp_obj_dict_t *)&pt_module_globals,
};
MP_REGISTER_MODULE(MP_QSTR__picotorch, pt_module);
