// Conversion between MicroPython's objects and the library's errors, memories and values.
#include "modpicotorch.h"
#include "py/smallint.h"
#include <string.h>

// ---- errors

void pt_raise_value_error(void) {
    mp_raise_type(&mp_type_ValueError);
}

void pt_check_type(mp_obj_t object, const mp_obj_type_t *type) {
    if (!mp_obj_is_type(object, type)) {
        mp_raise_type(&mp_type_TypeError);
    }
}

static mp_obj_t bytes_or_none(uint32_t size) {
    return size == PT_NO_BYTES ? MP_OBJ_NEW_SMALL_INT(-1) : pt_small_int(size);
}

// Returns the str of the error object for a text while the heap is locked.
static mp_obj_t text_of(mp_obj_t owner) {
    size_t n;
    mp_obj_t *texts;
    mp_obj_get_array(mp_load_attr(owner, MP_QSTR_texts), &n, &texts);
    return texts[0];
}

void pt_raise(mp_obj_t owner, const pt_error *error) {
    const char *what = error->what;
    mp_obj_t call[] = {
        MP_OBJ_NULL, // function and self
        MP_OBJ_NULL,
        MP_OBJ_NEW_SMALL_INT(error->code),
        MP_OBJ_NEW_SMALL_INT(error->subject),
        pt_small_int(error->index),
        MP_OBJ_NEW_SMALL_INT(error->argument),
        bytes_or_none(error->requested),
        bytes_or_none(error->available),
        what ? pt_text_object(what, text_of(owner)) : MP_OBJ_NEW_QSTR(MP_QSTR_),
    };
    mp_load_method(owner, MP_QSTR_on_error, call);
    mp_call_method_n_kw(MP_ARRAY_SIZE(call) - 2, 0, call);
    pt_raise_value_error(); // on_error should have raised
}

void pt_refuse_with(mp_obj_t owner, int code, uint8_t subject, int32_t index, const char *what) {
    pt_error error = {(uint8_t)code, subject, PT_NO_INDEX, index, PT_NO_BYTES, PT_NO_BYTES, what};
    pt_raise(owner, &error);
}

static __attribute__((noreturn)) void objects_refuse_type(mp_obj_t owner, const char *what) {
    pt_refuse(owner, PT_ERROR_INVALID_TYPE, PT_SUBJECT_ARGUMENT, PT_NO_INDEX, what);
}

void pt_need_stack(mp_obj_t owner) {
    size_t left = pt_stack_free();
    if (left < PT_STACK_BYTES) {
        pt_error error = {
            PT_ERROR_MEMORY_ALLOCATION_FAILED,
            PT_SUBJECT_STACK,
            PT_NO_INDEX,
            PT_NO_INDEX,
            PT_STACK_BYTES,
            (uint32_t)left,
            "; call from fewer functions or give the firmware more",
        };
        pt_raise(owner, &error);
    }
}

uint32_t pt_clamp(mp_obj_t i) {
    int64_t value;
    if (!mp_obj_is_int(i)) {
        return (uint32_t)mp_obj_get_int(i);
    }
    if (pt_get_int64(i, &value) && value == (int32_t)value) {
        return (uint32_t)value;
    }
    mp_obj_t is_negative = mp_binary_op(MP_BINARY_OP_LESS, i, MP_OBJ_NEW_SMALL_INT(0));
    return is_negative == mp_const_true ? UINT32_MAX : INT32_MAX;
}

uint32_t pt_index(mp_obj_t owner, mp_obj_t i) {
    if (!mp_obj_is_int(i) && !mp_obj_is_bool(i)) {
        objects_refuse_type(owner, "has the wrong type; give an int");
    }
    return pt_clamp(i);
}

// ---- memories

static char typecode_of(const mp_buffer_info_t *buffer) {
    switch (buffer->typecode) {
    case 1: // bytearray's own
        return 'B';
    case 'l':
        return sizeof(long) == 4 ? 'i' : 'q';
    case 'L':
        return sizeof(long) == 4 ? 'I' : 'Q';
    default:
        return (char)buffer->typecode;
    }
}

bool pt_find_memory(mp_obj_t object, pt_memory *memory) {
    mp_buffer_info_t buffer, writable;
    if (!mp_get_buffer(object, &buffer, MP_BUFFER_READ) || buffer.typecode == 'O' ||
        buffer.typecode == 'S') {
        return false;
    }
    void *start = pt_fixed_start(object);
    uint32_t size = (uint32_t)MIN(buffer.len, (size_t)PT_SMALL_INT_MAX);
    *memory = (pt_memory){
        .span = {buffer.buf, size, !mp_get_buffer(object, &writable, MP_BUFFER_RW)},
        .typecode = typecode_of(&buffer),
        .is_resizable = start == NULL,
        .anchor = start ? start : MP_OBJ_TO_PTR(object),
    };
    return true;
}

pt_memory pt_memory_of(mp_obj_t owner, mp_obj_t object, uint8_t subject, int32_t index) {
    pt_memory memory;
    if (!pt_find_memory(object, &memory)) {
        pt_refuse(
            owner, PT_ERROR_INVALID_TYPE, subject, index,
            "is not a buffer of contiguous bytes; give a bytearray, an array or a memoryview");
    }
    if (memory.span.size == PT_SMALL_INT_MAX) {
        pt_refuse(owner, PT_ERROR_NOT_SUPPORTED, subject, index, "has 1 GiB or more");
    }
    return memory;
}

bool pt_has_moved(void *anchor, const pt_span *memory) {
    mp_buffer_info_t buffer;
    return !mp_get_buffer(MP_OBJ_FROM_PTR(anchor), &buffer, MP_BUFFER_READ) ||
           buffer.len < memory->size || (memory->size > 0 && buffer.buf != memory->data);
}

// ---- values

mp_obj_t pt_number(pt_scalar s, mp_obj_t kept) {
    switch (s.type) {
    case PT_TYPE_DOUBLE:
        return pt_float(s.as.d, kept);
    case PT_TYPE_BOOL:
        return mp_obj_new_bool(s.as.i != 0);
    default: // the general code allocates every int
        return s.as.i >= MP_SMALL_INT_MIN && s.as.i <= MP_SMALL_INT_MAX
                   ? MP_OBJ_NEW_SMALL_INT((mp_int_t)s.as.i)
                   : mp_obj_new_int_from_ll(s.as.i);
    }
}

mp_obj_t pt_string(const char *text, size_t length, bool is_terminated, mp_obj_t kept) {
    if (!pt_is_utf8(text, length)) {
        pt_raise_value_error();
    }
    if (!pt_heap_locked() || kept == mp_const_none) {
        return mp_obj_new_str(text, length);
    }
    if (!is_terminated) {
        pt_raise_value_error();
    }
    pt_point_string(kept, text, length);
    return kept;
}

pt_text pt_text_of(mp_obj_t owner, mp_obj_t str) {
    size_t length;
    if (!mp_obj_is_str(str)) {
        objects_refuse_type(owner, "has the wrong type; give a str");
    }
    const char *data = mp_obj_str_get_data(str, &length);
    return (pt_text){data, (uint32_t)length};
}

mp_obj_t pt_bytes(pt_text text) {
    return mp_obj_new_bytes((const byte *)(text.data ? text.data : ""), text.length);
}

mp_obj_t pt_tensor_tuple(const pt_tensor_info *info) {
    mp_obj_tuple_t *sizes = MP_OBJ_TO_PTR(mp_obj_new_tuple(info->rank, NULL));
    mp_obj_tuple_t *order = MP_OBJ_TO_PTR(mp_obj_new_tuple(info->rank, NULL));
    for (uint32_t i = 0; i < info->rank; i++) {
        sizes->items[i] = mp_obj_new_int(info->sizes[i]);
        order->items[i] = MP_OBJ_NEW_SMALL_INT(info->dim_order[i]);
    }
    mp_obj_t items[] = {
        MP_OBJ_NEW_SMALL_INT(info->dtype),
        MP_OBJ_FROM_PTR(sizes),
        MP_OBJ_FROM_PTR(order),
        pt_small_int(info->nbytes),
        MP_OBJ_NEW_SMALL_INT(info->dynamism),
        mp_obj_new_bool(info->is_planned),
        mp_obj_new_bool(info->is_constant),
        mp_obj_new_bool(info->is_external),
        pt_bytes(info->name),
        MP_OBJ_NEW_SMALL_INT(info->planned),
        pt_small_int(info->offset),
    };
    return mp_obj_new_tuple(MP_ARRAY_SIZE(items), items);
}

// ---- Kept

static mp_obj_t kept_make_new(const mp_obj_type_t *type, size_t n_args, size_t n_kw,
                              const mp_obj_t *args) {
    mp_arg_check_num(n_args, n_kw, 2, 2, false);
    pt_kept *self = mp_obj_malloc(pt_kept, type);
    self->tensor = args[0];
    self->data = mp_load_attr(args[0], MP_QSTR_data);
    self->sizes = mp_load_attr(args[0], MP_QSTR_sizes_view);
    self->dim_order = mp_load_attr(args[0], MP_QSTR_dim_order_view);
    self->list = args[1];
    self->number = pt_float(0, mp_const_none);
    self->text = pt_new_string();
    return MP_OBJ_FROM_PTR(self);
}

MP_DEFINE_CONST_OBJ_TYPE(pt_kept_type, MP_QSTR_Kept, MP_TYPE_FLAG_NONE, make_new, kept_make_new);
