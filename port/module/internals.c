// Functions of MicroPython that are not available to a native module.
#include "modpicotorch.h"
#include "py/cstack.h"
#include "py/gc.h"
#include "py/mphal.h"
#include "py/objint.h"
#include "py/objstr.h"
#include "py/unicode.h"
#include <string.h>

bool pt_heap_locked(void) {
#if MICROPY_ENABLE_GC
    return gc_is_locked();
#else
    return false;
#endif
}

size_t pt_stack_free(void) {
#if MICROPY_STACK_CHECK
    size_t limit = MP_STATE_THREAD(stack_limit), used = mp_cstack_usage();
    return used < limit ? limit - used : 0;
#else
    return SIZE_MAX;
#endif
}

// ---- strings

mp_obj_t pt_new_string(void) {
    mp_obj_str_t *string = mp_obj_malloc(mp_obj_str_t, &mp_type_str);
    pt_point_string(MP_OBJ_FROM_PTR(string), "", 0);
    return MP_OBJ_FROM_PTR(string);
}

void pt_point_string(mp_obj_t string_in, const char *text, size_t length) {
    mp_obj_str_t *string = MP_OBJ_TO_PTR(string_in);
    string->hash = qstr_compute_hash((const byte *)text, length);
    string->len = length;
    string->data = (const byte *)text;
}

mp_obj_t pt_text_object(const char *text, mp_obj_t kept) {
    return pt_string(text, strlen(text), true, kept);
}

bool pt_is_utf8(const char *text, size_t length) {
#if MICROPY_PY_BUILTINS_STR_UNICODE
    return utf8_check((const byte *)text, length);
#else
    return true;
#endif
}

// ---- numbers

mp_obj_t pt_float(double value, mp_obj_t kept) {
#if MICROPY_OBJ_REPR == MICROPY_OBJ_REPR_A || MICROPY_OBJ_REPR == MICROPY_OBJ_REPR_B
    // a function of MicroPython without a header
    typedef struct float_object {
        mp_obj_base_t base;
        mp_float_t value;
    } float_object;
    if (pt_heap_locked() && mp_obj_is_float(kept)) {
        ((float_object *)MP_OBJ_TO_PTR(kept))->value = (mp_float_t)value;
        return kept;
    }
#else
    (void)kept; // a float needs no heap
#endif
    return mp_obj_new_float((mp_float_t)value);
}

bool pt_get_int64(mp_obj_t value, int64_t *into) {
    if (mp_obj_is_small_int(value)) {
        *into = MP_OBJ_SMALL_INT_VALUE(value);
        return true;
    }
#if MICROPY_LONGINT_IMPL == MICROPY_LONGINT_IMPL_NONE
    return false;
#else // without a sign the library's function accepts 64 bits of magnitude
    return mp_obj_int_to_bytes_impl(value, MP_ENDIANNESS_BIG, sizeof(*into), (byte *)into) &&
           (*into < 0) == (mp_obj_int_sign(value) < 0);
#endif
}

// ---- exceptions and the clock

mp_obj_t pt_take_pending_exception(void) {
    mp_obj_t pending = MP_STATE_THREAD(mp_pending_exception);
    MP_STATE_THREAD(mp_pending_exception) = MP_OBJ_NULL;
    return pending;
}

void pt_clear_traceback(mp_obj_t error) {
    if (!mp_obj_is_exception_instance(error)) {
        mp_raise_type(&mp_type_TypeError);
    }
    mp_obj_exception_clear_traceback(error);
}

uint64_t pt_ticks(void) {
    return mp_hal_ticks_cpu();
}
