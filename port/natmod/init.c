// mpy_init, which MicroPython calls after loading the module, and functions that the compiler
// calls.
#ifdef PT_FLASH
#include "kernels.h"
#endif
#include "modpicotorch.h"
#include "py/bc0.h"
#include "py/objfun.h"
#include "py/objmodule.h"
#include <string.h>

pt_native pt_micropython;

// ---- names

static qstr place_of(mp_obj_t key) {
    return (qstr)((mp_uint_t)key >> 3); // the encoding of MP_ROM_QSTR
}

// The tables and types of port/module are constant in firmware, but in RAM in this module.
static void name_table(const mp_obj_dict_t *table) {
    mp_map_elem_t *entries = table->map.table;
    for (size_t i = 0; i < table->map.used; i++) {
        entries[i].key = MP_OBJ_NEW_QSTR(place_of(entries[i].key));
    }
}

static void name_type(const mp_obj_type_t *type_in) {
    mp_obj_type_t *type = (mp_obj_type_t *)(uintptr_t)type_in;
    type->name = (uint16_t)pt_name(type->name);
    if (MP_OBJ_TYPE_HAS_SLOT(type, locals_dict)) {
        name_table(MP_OBJ_TYPE_GET_SLOT(type, locals_dict));
    }
}

// ---- properties of this MicroPython

static const mp_obj_type_t *type_named(qstr index) {
    return MP_OBJ_TO_PTR(mp_fun_table.load_global(pt_name(index)));
}

static void find_types(void) {
    pt_micropython = (pt_native){
        .type_bytes = type_named(MP_QSTR_bytes),
        .type_float = type_named(MP_QSTR_float),
        .type_int = type_named(MP_QSTR_int),
        .type_memoryview = type_named(MP_QSTR_memoryview),
        .type_tuple = type_named(MP_QSTR_tuple),
        .memory_error = type_named(MP_QSTR_MemoryError),
        .runtime_error = type_named(MP_QSTR_RuntimeError),
        .type_error = type_named(MP_QSTR_TypeError),
        .value_error = type_named(MP_QSTR_ValueError),
        .min = pt_number_at('q', &(long long){INT64_MIN}),
        .max = pt_number_at('q', &(long long){INT64_MAX}),
    };
}

static uint8_t find_bytes_of_a_float(void) {
    double two_and_a_half = 2.5, as_double;
    float as_float;
    mp_obj_t number = pt_number_at('d', &two_and_a_half);
    if (!mp_obj_is_exact_type(number, pt_micropython.type_float)) {
        return 0;
    }
    const mp_obj_base_t *object = MP_OBJ_TO_PTR(number);
    memcpy(&as_float, object + 1, sizeof(as_float));
    memcpy(&as_double, object + 1, sizeof(as_double));
    return as_float == 2.5f ? sizeof(float) : as_double == 2.5 ? sizeof(double) : 0;
}

static bool has_known_layouts(void) {
    static const char text[] = "a name that MicroPython does not have";
    mp_obj_t string_in = mp_obj_new_str(text, sizeof(text) - 1);
    mp_obj_t view_in = pt_new_memoryview((void *)(uintptr_t)text);
    if (mp_fun_table.setjmp_ || mp_obj_new_int(1) != MP_OBJ_NEW_SMALL_INT(1) ||
        !mp_obj_is_exact_type(string_in, &mp_type_str) ||
        !mp_obj_is_exact_type(view_in, &mp_type_memoryview)) {
        return false;
    }
    const mp_obj_str_t *string = MP_OBJ_TO_PTR(string_in);
    const mp_obj_array_t *view = MP_OBJ_TO_PTR(view_in);
    uint8_t typecode = view->typecode & ~MP_OBJ_ARRAY_TYPECODE_FLAG_RW;
    return string->len == sizeof(text) - 1 && memcmp(string->data, text, string->len) == 0 &&
           view->items == text && view->len == 0 && view->free == 0 &&
           (typecode == 'B' || typecode == BYTEARRAY_TYPECODE);
}

// Not every port has the function time.ticks_cpu, or the module time.
static mp_obj_t find_ticks(void) {
    nlr_buf_t nlr;
    if (nlr_push(&nlr) == 0) {
        mp_obj_t time =
            mp_fun_table.import_name(pt_name(MP_QSTR_time), mp_const_none, MP_OBJ_NEW_SMALL_INT(0));
        mp_obj_t ticks = mp_load_attr(time, MP_QSTR_ticks_cpu);
        nlr_pop();
        return ticks;
    }
    return MP_OBJ_NULL;
}

// The bytecode of `def pause(): if None: pass`: one stack entry, no arguments, a name; each jump
// handles pending exceptions.
static const uint8_t pause_code[] = {0x00,
                                     0x02,
                                     0x00,
                                     MP_BC_LOAD_CONST_NONE,
                                     MP_BC_POP_JUMP_IF_TRUE,
                                     0x40,
                                     MP_BC_LOAD_CONST_NONE,
                                     MP_BC_RETURN_VALUE};

// ---- the module

static void store(const mp_obj_fun_bc_t *self, qstr index, mp_obj_t value) {
    mp_fun_table.dict_store(MP_OBJ_FROM_PTR(self->context->module.globals), MP_OBJ_NEW_QSTR(index),
                            value);
}

mp_obj_t mpy_init(mp_obj_fun_bc_t *self, size_t n_args, size_t n_kw, mp_obj_t *args)
    __attribute__((section(".text.mpy_init")));
mp_obj_t mpy_init(mp_obj_fun_bc_t *self, size_t n_args, size_t n_kw, mp_obj_t *args) {
#ifdef PT_FLASH
    pt_check_flash();
#endif
    find_types();
    if (!has_known_layouts()) {
        mp_fun_table.raise_msg(pt_micropython.runtime_error,
                               "this MicroPython has another layout than 1.25 and 1.29");
    }
    pt_micropython.bytes_of_a_float = find_bytes_of_a_float();
    pt_micropython.ticks = find_ticks();
    pt_micropython.pause =
        mp_fun_table.make_function_from_proto_fun((mp_proto_fun_t)pause_code, self->context, NULL);
    store(self, MP_QSTR__pause, pt_micropython.pause); // reachable by the garbage collector
    store(self, MP_QSTR__min, pt_micropython.min);
    store(self, MP_QSTR__max, pt_micropython.max);
#ifdef PT_FLASH
    store(self, MP_QSTR__flash, mp_const_true); // for picotorch deploy
#endif
    name_type(&pt_program_type);
#if PT_HAS_PROGRAMS
    name_type(&pt_data_type);
#endif
    name_type(&pt_method_type);
    name_type(&pt_kept_type);
    const mp_map_t *names = &pt_module_globals.map;
    for (size_t i = 1; i < names->used; i++) { // behind __name__
        store(self, place_of(names->table[i].key), names->table[i].value);
    }
    return mp_const_none;
}
