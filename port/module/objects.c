// Numbers and strings of a program as objects of MicroPython. While the heap is locked they are put
// into objects that were made before.
#include "core.h"
#include "modpicotorch.h"
#include "py/gc.h"
#include "py/objint.h"
#include "py/objstr.h"
#include "py/runtime.h"
#include "py/smallint.h"
#include "py/unicode.h"
#include <float.h>

static bool is_heap_locked(void) {
#if MICROPY_ENABLE_GC
    return gc_is_locked();
#else
    return false;
#endif
}

static mp_obj_t heap_locked(void) {
    return mp_obj_new_bool(is_heap_locked());
}
MP_DEFINE_CONST_FUN_OBJ_0(pt_heap_locked_obj, heap_locked);

// ---- floats

static mp_obj_t new_float(void) {
    return mp_obj_new_float(0);
}
MP_DEFINE_CONST_FUN_OBJ_0(pt_new_float_obj, new_float);

mp_obj_t pt_float(double value, mp_obj_t kept) {
#if MICROPY_OBJ_REPR == MICROPY_OBJ_REPR_A || MICROPY_OBJ_REPR == MICROPY_OBJ_REPR_B
    // MicroPython's own, which no header of it has
    typedef struct float_object {
        mp_obj_base_t base;
        mp_float_t value;
    } float_object;
    if (is_heap_locked() && mp_obj_is_float(kept)) {
        ((float_object *)MP_OBJ_TO_PTR(kept))->value = (mp_float_t)value;
        return kept;
    }
#else
    (void)kept; // a float needs no heap
#endif
    return mp_obj_new_float((mp_float_t)value);
}

// ---- numbers

mp_obj_t pt_number(pt_scalar s, mp_obj_t kept) {
    switch (s.type) {
    case PT_TYPE_INT:
        // the general form takes heap for every int
        return s.as.i >= MP_SMALL_INT_MIN && s.as.i <= MP_SMALL_INT_MAX
                   ? MP_OBJ_NEW_SMALL_INT((mp_int_t)s.as.i)
                   : mp_obj_new_int_from_ll(s.as.i);
    case PT_TYPE_BOOL:
        return mp_obj_new_bool(s.as.i != 0);
    case PT_TYPE_DOUBLE:
        return pt_float(s.as.d, kept);
    default:
        pt_raise_value_error();
    }
}

static bool is_int(mp_obj_t value, int64_t wanted) {
    if (mp_obj_is_small_int(value)) {
        return MP_OBJ_SMALL_INT_VALUE(value) == wanted;
    }
    if (!mp_obj_is_exact_type(value, &mp_type_int)) {
        return false;
    }
    const mp_obj_int_t *object = MP_OBJ_TO_PTR(value);
#if MICROPY_LONGINT_IMPL == MICROPY_LONGINT_IMPL_MPZ
    mpz_dig_t digits[MPZ_NUM_DIG_FOR_LL];
    mpz_t there = {.fixed_dig = 1, .alloc = MPZ_NUM_DIG_FOR_LL, .dig = digits};
    mpz_set_from_ll(&there, wanted, true);
    return mpz_cmp(&there, &object->mpz) == 0;
#elif MICROPY_LONGINT_IMPL == MICROPY_LONGINT_IMPL_LONGLONG
    return object->val == wanted;
#else
    (void)object;
    return false;
#endif
}

static bool is_close(double value, double wanted) {
    double off = value > wanted ? value - wanted : wanted - value;
    double magnitude = wanted < 0 ? -wanted : wanted;
    bool close = magnitude <= DBL_MAX && off <= 1e-4 + 1e-5 * magnitude;
    return close || value == wanted || (value != value && wanted != wanted);
}

bool pt_is_number(pt_scalar s, mp_obj_t value) {
    switch (s.type) {
    case PT_TYPE_INT:
        return is_int(value, s.as.i);
    case PT_TYPE_BOOL:
        return value == mp_obj_new_bool(s.as.i != 0);
    case PT_TYPE_DOUBLE:
        return mp_obj_is_float(value) && is_close((double)mp_obj_get_float(value), s.as.d);
    default:
        pt_raise_value_error();
    }
}

// ---- strings

static mp_obj_t new_string(void) {
    mp_obj_str_t *string = mp_obj_malloc(mp_obj_str_t, &mp_type_str);
    string->hash = 0; // not yet computed
    string->len = 0;
    string->data = (const byte *)"";
    return MP_OBJ_FROM_PTR(string);
}
MP_DEFINE_CONST_FUN_OBJ_0(pt_new_string_obj, new_string);

mp_obj_t pt_string(const uint8_t *text, size_t length, mp_obj_t kept) {
    bool good = text[length] == 0;
#if MICROPY_PY_BUILTINS_STR_UNICODE
    good = good && utf8_check(text, length);
#endif
    if (!good) {
        pt_raise_value_error();
    }
    if (!is_heap_locked() || !mp_obj_is_exact_type(kept, &mp_type_str)) {
        return mp_obj_new_str((const char *)text, length);
    }
    mp_obj_str_t *string = MP_OBJ_TO_PTR(kept);
    string->hash = qstr_compute_hash(text, length);
    string->len = length;
    string->data = text;
    return kept;
}
