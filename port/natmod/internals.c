// The functions of port/module/internals.c, written for the native ABI.
//
// The functions rely on layouts of objects that no version of the ABI guarantees. mpy_init checks
// these layouts.
#include "modpicotorch.h"
#include "py/objexcept.h"
#include "py/objtype.h"
#include <string.h>

// Also returns true for a full heap: callers treat both alike.
bool pt_heap_locked(void) {
    void *tried = mp_fun_table.realloc_(NULL, 1, false);
    mp_fun_table.realloc_(tried, 0, false);
    return tried == NULL;
}

void *pt_new(size_t size) {
    void *data = mp_fun_table.realloc_(NULL, size, false);
    if (!data) {
        mp_fun_table.raise_msg(pt_micropython.memory_error, "memory allocation failed");
    }
    return memset(data, 0, size);
}

// ---- stack, and pending exceptions

void pt_pause(void) {
    mp_fun_table.call_function_n_kw(pt_micropython.pause, 0, NULL);
}

// Returns the exception that pt_pause raises, or MP_OBJ_NULL.
static __attribute__((noinline)) mp_obj_t pause_and_catch(void) {
    nlr_buf_t nlr;
    if (nlr_push(&nlr) == 0) {
        pt_pause();
        nlr_pop();
        return MP_OBJ_NULL;
    }
    return MP_OBJ_FROM_PTR(nlr.ret_val);
}

// Calls a function PT_STACK_BYTES deeper: MicroPython rejects the call if its stack limit is
// passed.
static __attribute__((noinline)) mp_obj_t pause_deeper(void) {
    volatile uint8_t stack[PT_STACK_BYTES];
    stack[0] = 0;
    mp_obj_t raised = pause_and_catch();
    (void)stack[0];
    return raised;
}

size_t pt_stack_free(void) {
    mp_obj_t raised = pause_deeper();
    if (raised == MP_OBJ_NULL) {
        return SIZE_MAX;
    }
    if (!mp_obj_is_exact_type(raised, pt_micropython.runtime_error)) {
        nlr_raise(raised);
    }
    return 0;
}

mp_obj_t pt_take_pending_exception(void) {
    return pause_and_catch();
}

// ---- memoryviews and arrays

mp_obj_t pt_new_memoryview(void *start) {
    mp_obj_t bytes = mp_fun_table.obj_new_bytearray_by_ref(0, start);
    return mp_fun_table.call_function_n_kw(MP_OBJ_FROM_PTR(&mp_type_memoryview), 1, &bytes);
}

void pt_get_array(mp_obj_t array, size_t *length, mp_obj_t **items) {
    if (mp_obj_is_exact_type(array, &mp_type_list)) {
        mp_obj_list_t *list = MP_OBJ_TO_PTR(array);
        *length = list->len;
        *items = list->items;
        return;
    }
    if (!mp_obj_is_exact_type(array, pt_micropython.type_tuple)) {
        mp_raise_type(&mp_type_TypeError);
    }
    mp_obj_tuple_t *tuple = MP_OBJ_TO_PTR(array);
    *length = tuple->len;
    *items = tuple->items;
}

// ---- strings

const char *pt_get_text(mp_obj_t text, size_t *length) {
    mp_buffer_info_t data;
    mp_get_buffer(text, &data, MP_BUFFER_READ);
    *length = data.len;
    return data.buf;
}

mp_obj_t pt_new_string(void) {
    mp_obj_str_t *string = pt_with_type(pt_new(sizeof(*string)), &mp_type_str);
    pt_point_string(MP_OBJ_FROM_PTR(string), "", 0);
    return MP_OBJ_FROM_PTR(string);
}

// A hash of 0 means unknown: MicroPython computes it on demand.
void pt_point_string(mp_obj_t string_in, const char *text, size_t length) {
    mp_obj_str_t *string = MP_OBJ_TO_PTR(string_in);
    string->hash = 0;
    string->len = length;
    string->data = (const byte *)text;
}

extern const char pt_texts_start[], pt_texts_end[]; // natmod.ld

mp_obj_t pt_text_object(const char *text, mp_obj_t kept) {
    uintptr_t distance = (uintptr_t)pt_texts_end - (uintptr_t)text;
    if (distance <= (uintptr_t)pt_texts_end - (uintptr_t)pt_texts_start) {
        return MP_OBJ_NEW_SMALL_INT((mp_int_t)distance);
    }
    return pt_string(text, strlen(text), true, kept); // a text of this binding, or in flash
}

// Checks as MicroPython does: the number of continuation bytes, not the characters.
bool pt_is_utf8(const char *text, size_t length) {
    uint32_t follow = 0;
    for (size_t i = 0; i < length; i++) {
        uint8_t c = (uint8_t)text[i];
        bool follows = (c & 0xC0) == 0x80;
        if (follows != (follow > 0) || c >= 0xF8) {
            return false;
        }
        follow = follows ? follow - 1 : c < 0xC0 ? 0 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
    }
    return follow == 0;
}

// ---- numbers: they pass in memory, since not every firmware passes a float in the same registers

mp_obj_t pt_number_at(char typecode, const void *number) {
    return mp_fun_table.binary_get_val_array(typecode, (void *)(uintptr_t)number, 0);
}

double pt_double_of(mp_obj_t number) {
    double value;
    mp_fun_table.binary_set_val_array('d', &value, 0, number);
    return value;
}

mp_obj_t pt_float(double value, mp_obj_t kept) {
    if (pt_heap_locked() && mp_obj_is_float(kept)) {
        void *into = (mp_obj_base_t *)MP_OBJ_TO_PTR(kept) + 1;
        if (pt_micropython.bytes_of_a_float == sizeof(float)) {
            *(float *)into = (float)value;
            return kept;
        }
        if (pt_micropython.bytes_of_a_float == sizeof(double)) {
            *(double *)into = value;
            return kept;
        }
    }
    return pt_number_at('d', &value);
}

bool pt_get_int64(mp_obj_t value, int64_t *into) {
    if (mp_obj_is_small_int(value)) {
        *into = MP_OBJ_SMALL_INT_VALUE(value);
        return true;
    }
    if (mp_binary_op(MP_BINARY_OP_LESS, value, pt_micropython.min) == mp_const_true ||
        mp_binary_op(MP_BINARY_OP_MORE, value, pt_micropython.max) == mp_const_true) {
        return false;
    }
    mp_fun_table.binary_set_val_array('q', into, 0, value);
    return true;
}

// ---- exceptions and the clock

void pt_raise_type(const mp_obj_type_t *type) {
    mp_fun_table.raise_msg(type, NULL);
}

void pt_raise_object(mp_obj_t exception) {
    mp_fun_table.raise(exception);
    __builtin_unreachable();
}

static bool is_exception_type(const mp_obj_type_t *type) {
    return MP_OBJ_TYPE_HAS_SLOT(type, make_new) &&
           MP_OBJ_TYPE_GET_SLOT(type, make_new) ==
               MP_OBJ_TYPE_GET_SLOT(&mp_type_Exception, make_new);
}

// An instance of a Python class starts with the exception that it is derived from.
static mp_obj_exception_t *exception_of(mp_obj_t error) {
    const mp_obj_type_t *type = mp_obj_get_type(error);
    if (!is_exception_type(type) && type->flags & MP_TYPE_FLAG_INSTANCE_TYPE) {
        while (!is_exception_type(type) && MP_OBJ_TYPE_HAS_SLOT(type, parent)) {
            type = MP_OBJ_TYPE_GET_SLOT(type, parent);
            if (type->base.type != &mp_type_type) { // several bases
                break;
            }
        }
        if (is_exception_type(type)) {
            error = ((mp_obj_instance_t *)MP_OBJ_TO_PTR(error))->subobj[0];
        }
    }
    return is_exception_type(mp_obj_get_type(error)) ? MP_OBJ_TO_PTR(error) : NULL;
}

void pt_clear_traceback(mp_obj_t error) {
    mp_obj_exception_t *exception = exception_of(error);
    if (!exception) {
        mp_raise_type(&mp_type_TypeError);
    }
    exception->traceback_data = NULL;
}

uint64_t pt_ticks(void) {
    mp_obj_t ticks = pt_micropython.ticks;
    if (ticks == MP_OBJ_NULL) {
        return 0;
    }
    return (uint64_t)mp_obj_get_int(mp_fun_table.call_function_n_kw(ticks, 0, NULL));
}
