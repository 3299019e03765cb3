// The MicroPython module _picotorch: the core for the loader in Python.
#include "modpicotorch.h"
#include "core.h"
#include "py/binary.h"
#include "py/objarray.h"
#include "py/runtime.h"
#include <string.h>

void pt_raise_value_error(void) {
    mp_raise_type(&mp_type_ValueError);
}

bool pt_is_misaligned(const void *data, size_t size, size_t alignment) {
    return size > 0 && (uintptr_t)data % alignment != 0;
}

static mp_obj_t misaligned(mp_obj_t buffer_in, mp_obj_t alignment_in) {
    mp_buffer_info_t buffer;
    mp_get_buffer_raise(buffer_in, &buffer, MP_BUFFER_READ);
    mp_int_t alignment = mp_obj_get_int(alignment_in);
    if (alignment <= 0) {
        pt_raise_value_error();
    }
    return mp_obj_new_bool(pt_is_misaligned(buffer.buf, buffer.len, (size_t)alignment));
}
static MP_DEFINE_CONST_FUN_OBJ_2(misaligned_obj, misaligned);

void *pt_view_start(mp_obj_t buffer) {
    return mp_obj_is_type(buffer, &mp_type_memoryview)
               ? ((mp_obj_array_t *)MP_OBJ_TO_PTR(buffer))->items
               : NULL;
}

// As MicroPython's own views do, it holds the start of the whole buffer, which the garbage
// collector follows, and an offset in elements. Where that cannot be expressed it holds `data`, and
// the caller has to keep the buffer alive.
void pt_point_view(mp_obj_t view_in, mp_obj_t buffer, uint8_t *start, uint8_t *data, size_t size,
                   uint8_t typecode, bool writable) {
    size_t element = mp_binary_get_size('@', (char)typecode, NULL);
    if (!mp_obj_is_type(view_in, &mp_type_memoryview)) {
        mp_raise_type(&mp_type_TypeError);
    }
    if (size % element) {
        pt_raise_value_error();
    }
    start = pt_view_start(buffer) ? pt_view_start(buffer) : start;
    size_t offset = (size_t)(data - start);
    if (offset % element || offset / element >= (size_t)1 << MP_OBJ_ARRAY_FREE_SIZE_BITS) {
        start = data;
        offset = 0;
    }
    mp_obj_array_t *view = MP_OBJ_TO_PTR(view_in);
    view->items = start;
    view->free = offset / element;
    view->typecode = typecode | (writable ? MP_OBJ_ARRAY_TYPECODE_FLAG_RW : 0);
    view->len = size / element;
}

static mp_obj_t view(size_t n_args, const mp_obj_t *args) {
    mp_buffer_info_t buffer;
    mp_get_buffer_raise(args[1], &buffer, MP_BUFFER_READ);
    mp_int_t offset = mp_obj_get_int(args[2]), size = mp_obj_get_int(args[3]);
    if (offset < 0 || size < 0 || (int64_t)offset + size > (int64_t)buffer.len) {
        pt_raise_value_error();
    }
    uint8_t *start = buffer.buf;
    bool writable =
        (n_args < 6 || mp_obj_is_true(args[5])) && mp_get_buffer(args[1], &buffer, MP_BUFFER_RW);
    pt_point_view(args[0], args[1], start, start + offset, (size_t)size,
                  (uint8_t)*mp_obj_str_get_str(args[4]), writable);
    return args[0];
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(view_obj, 5, 6, view);

static mp_obj_t nbytes(mp_obj_t object) {
    mp_buffer_info_t buffer;
    return pt_small_int(mp_get_buffer(object, &buffer, MP_BUFFER_READ) ? (int64_t)buffer.len : -1);
}
static MP_DEFINE_CONST_FUN_OBJ_1(nbytes_obj, nbytes);

static mp_obj_t typecode(mp_obj_t object) {
    mp_buffer_info_t buffer;
    mp_get_buffer_raise(object, &buffer, MP_BUFFER_READ);
    switch (buffer.typecode) {
    case BYTEARRAY_TYPECODE:
        return MP_OBJ_NEW_SMALL_INT('B');
    case 'l':
        return MP_OBJ_NEW_SMALL_INT(sizeof(long) == 4 ? 'i' : 'q');
    case 'L':
        return MP_OBJ_NEW_SMALL_INT(sizeof(long) == 4 ? 'I' : 'Q');
    default:
        return MP_OBJ_NEW_SMALL_INT(buffer.typecode);
    }
}
static MP_DEFINE_CONST_FUN_OBJ_1(typecode_obj, typecode);

static mp_obj_t readonly(mp_obj_t object) {
    mp_buffer_info_t buffer;
    return mp_obj_new_bool(!mp_get_buffer(object, &buffer, MP_BUFFER_RW));
}
static MP_DEFINE_CONST_FUN_OBJ_1(readonly_obj, readonly);

static mp_obj_t clear(mp_obj_t object) {
    mp_buffer_info_t buffer;
    mp_get_buffer_raise(object, &buffer, MP_BUFFER_WRITE);
    memset(buffer.buf, 0, buffer.len);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(clear_obj, clear);

static mp_obj_t clear_traceback(mp_obj_t error) {
    if (!mp_obj_is_exception_instance(error)) {
        mp_raise_type(&mp_type_TypeError);
    }
    mp_obj_exception_clear_traceback(error);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(clear_traceback_obj, clear_traceback);

static mp_obj_t element_size(mp_obj_t dtype_in) {
    mp_int_t dtype = mp_obj_get_int(dtype_in);
    return pt_small_int(dtype >= 0 && dtype < 256 ? pt_element_size((uint8_t)dtype) : 0);
}
static MP_DEFINE_CONST_FUN_OBJ_1(element_size_obj, element_size);

static mp_obj_t operator_count(void) {
    return pt_small_int(pt_operator_count());
}
static MP_DEFINE_CONST_FUN_OBJ_0(operator_count_obj, operator_count);

static uint32_t operator_number(mp_obj_t number_in) {
    mp_int_t number = mp_obj_get_int(number_in);
    if (number < 0 || number >= (mp_int_t)pt_operator_count()) {
        pt_raise_value_error();
    }
    return (uint32_t)number;
}

static mp_obj_t operator_name(mp_obj_t number_in) {
    const char *name = pt_operator_name(operator_number(number_in));
    return mp_obj_new_str(name, strlen(name));
}
static MP_DEFINE_CONST_FUN_OBJ_1(operator_name_obj, operator_name);

static mp_obj_t operator_signature(mp_obj_t number_in) {
    const char *signature = pt_operator_signature(operator_number(number_in));
    return mp_obj_new_str(signature, strlen(signature));
}
static MP_DEFINE_CONST_FUN_OBJ_1(operator_signature_obj, operator_signature);

static mp_obj_t operator_arguments(mp_obj_t number_in) {
    return pt_small_int((int64_t)strlen(pt_operator_signature(operator_number(number_in))));
}
static MP_DEFINE_CONST_FUN_OBJ_1(operator_arguments_obj, operator_arguments);

static mp_obj_t operator_traits(mp_obj_t number_in) {
    return pt_small_int(pt_operator_traits(operator_number(number_in)));
}
static MP_DEFINE_CONST_FUN_OBJ_1(operator_traits_obj, operator_traits);

static const mp_rom_map_elem_t globals_table[] = {
    {MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR__picotorch)},
    {MP_ROM_QSTR(MP_QSTR_Reader), MP_ROM_PTR(&pt_reader_type)},
    {MP_ROM_QSTR(MP_QSTR_Context), MP_ROM_PTR(&pt_context_type)},
    {MP_ROM_QSTR(MP_QSTR_misaligned), MP_ROM_PTR(&misaligned_obj)},
    {MP_ROM_QSTR(MP_QSTR_view), MP_ROM_PTR(&view_obj)},
    {MP_ROM_QSTR(MP_QSTR_heap_locked), MP_ROM_PTR(&pt_heap_locked_obj)},
    {MP_ROM_QSTR(MP_QSTR_new_float), MP_ROM_PTR(&pt_new_float_obj)},
    {MP_ROM_QSTR(MP_QSTR_new_string), MP_ROM_PTR(&pt_new_string_obj)},
    {MP_ROM_QSTR(MP_QSTR_stack_free), MP_ROM_PTR(&pt_stack_free_obj)},
    {MP_ROM_QSTR(MP_QSTR_nbytes), MP_ROM_PTR(&nbytes_obj)},
    {MP_ROM_QSTR(MP_QSTR_typecode), MP_ROM_PTR(&typecode_obj)},
    {MP_ROM_QSTR(MP_QSTR_readonly), MP_ROM_PTR(&readonly_obj)},
    {MP_ROM_QSTR(MP_QSTR_clear), MP_ROM_PTR(&clear_obj)},
    {MP_ROM_QSTR(MP_QSTR_clear_traceback), MP_ROM_PTR(&clear_traceback_obj)},
    {MP_ROM_QSTR(MP_QSTR_operator_arguments), MP_ROM_PTR(&operator_arguments_obj)},
    {MP_ROM_QSTR(MP_QSTR_operator_traits), MP_ROM_PTR(&operator_traits_obj)},
    {MP_ROM_QSTR(MP_QSTR_element_size), MP_ROM_PTR(&element_size_obj)},
    {MP_ROM_QSTR(MP_QSTR_operator_count), MP_ROM_PTR(&operator_count_obj)},
    {MP_ROM_QSTR(MP_QSTR_operator_name), MP_ROM_PTR(&operator_name_obj)},
    {MP_ROM_QSTR(MP_QSTR_operator_signature), MP_ROM_PTR(&operator_signature_obj)},
    {MP_ROM_QSTR(MP_QSTR_PROGRAM), MP_ROM_INT(PT_MEMORY_PROGRAM)},
    {MP_ROM_QSTR(MP_QSTR_POOL), MP_ROM_INT(PT_MEMORY_POOL)},
    {MP_ROM_QSTR(MP_QSTR_PLANNED), MP_ROM_INT(PT_MEMORY_PLANNED)},
    {MP_ROM_QSTR(MP_QSTR_MEMORIES), MP_ROM_INT(PT_MEMORIES)},
    {MP_ROM_QSTR(MP_QSTR_EVENT_BYTES), MP_ROM_INT(sizeof(pt_event))},
    {MP_ROM_QSTR(MP_QSTR_FLAT_TENSOR), MP_ROM_INT(PT_FORMAT_FLAT_TENSOR)},
    {MP_ROM_QSTR(MP_QSTR_STACK_BYTES), MP_ROM_INT(PT_STACK_BYTES)},
    {MP_ROM_QSTR(MP_QSTR_SMALL_INT_MAX), MP_ROM_INT(PT_SMALL_INT_MAX)},
};
static MP_DEFINE_CONST_DICT(globals, globals_table);

const mp_obj_module_t pt_module = {
    .base = {&mp_type_module},
    .globals = (mp_obj_dict_t *)&globals,
};
MP_REGISTER_MODULE(MP_QSTR__picotorch, pt_module);
