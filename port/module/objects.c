// Between MicroPython's objects and what the library takes and gives: errors, memories, values.
#include "modpicotorch.h"
#include "py/binary.h"
#include "py/runtime.h"
#include "py/smallint.h"
#include <string.h>

// ---- errors

void pt_raise_value_error(void) {
    mp_raise_type(&mp_type_ValueError);
}

pt_owner pt_new_owner(mp_obj_t on_error) {
    return (pt_owner){.on_error = on_error, .text = pt_new_string()};
}

static mp_obj_t bytes_or_none(uint32_t size) {
    return size == PT_NO_BYTES ? MP_OBJ_NEW_SMALL_INT(-1) : pt_small_int(size);
}

void pt_raise(const pt_owner *owner, const pt_error *error) {
    const char *what = error->what;
    mp_obj_t fields[] = {
        MP_OBJ_NEW_SMALL_INT(error->code),
        MP_OBJ_NEW_SMALL_INT(error->subject),
        pt_small_int(error->index),
        MP_OBJ_NEW_SMALL_INT(error->argument),
        bytes_or_none(error->requested),
        bytes_or_none(error->available),
        what ? pt_string(what, strlen(what), true, owner->text) : MP_OBJ_NEW_QSTR(MP_QSTR_),
    };
    mp_call_function_n_kw(owner->on_error, MP_ARRAY_SIZE(fields), 0, fields);
    pt_raise_value_error(); // it should have raised
}

void pt_refuse(const pt_owner *owner, int code, uint8_t subject, int32_t index, const char *what) {
    pt_error error = {(uint8_t)code, subject, PT_NO_INDEX, index, PT_NO_BYTES, PT_NO_BYTES, what};
    pt_raise(owner, &error);
}

void pt_need_stack(const pt_owner *owner) {
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

// ---- memories

char pt_typecode_of(const mp_buffer_info_t *buffer) {
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

pt_memory pt_memory_of(const pt_owner *owner, mp_obj_t object, uint8_t subject, int32_t index) {
    mp_buffer_info_t buffer, writable;
    if (!mp_get_buffer(object, &buffer, MP_BUFFER_READ)) {
        pt_refuse(owner, PT_ERROR_INVALID_TYPE, subject, index, "is no buffer of contiguous bytes");
    }
    if (buffer.len >= PT_SMALL_INT_MAX) {
        pt_refuse(owner, PT_ERROR_NOT_SUPPORTED, subject, index, "has 1 GiB or more");
    }
    void *start = pt_fixed_start(object);
    return (pt_memory){
        .span = {buffer.buf, (uint32_t)buffer.len, !mp_get_buffer(object, &writable, MP_BUFFER_RW)},
        .typecode = pt_typecode_of(&buffer),
        .is_resizable = start == NULL,
        .anchor = start ? start : MP_OBJ_TO_PTR(object),
    };
}

bool pt_has_moved(void *anchor, const pt_span *memory) {
    mp_buffer_info_t buffer;
    return !mp_get_buffer(MP_OBJ_FROM_PTR(anchor), &buffer, MP_BUFFER_READ) ||
           buffer.len < memory->size || (memory->size > 0 && buffer.buf != memory->data);
}

mp_obj_t pt_show(mp_obj_t view, void *start, const void *data, size_t size, char typecode,
                 bool writable) {
    if (size % mp_binary_get_size('@', typecode, NULL)) {
        pt_raise_value_error();
    }
    if (view == mp_const_none) {
        view = mp_obj_new_memoryview('B', 0, start);
    }
    pt_point_view(view, start, (size_t)((const uint8_t *)data - (uint8_t *)start), size, typecode,
                  writable);
    return view;
}

// ---- values

mp_obj_t pt_number(pt_scalar s, mp_obj_t kept) {
    switch (s.type) {
    case PT_TYPE_DOUBLE:
        return pt_float(s.as.d, kept);
    case PT_TYPE_BOOL:
        return mp_obj_new_bool(s.as.i != 0);
    default: // the general form takes heap for every int
        return s.as.i >= MP_SMALL_INT_MIN && s.as.i <= MP_SMALL_INT_MAX
                   ? MP_OBJ_NEW_SMALL_INT((mp_int_t)s.as.i)
                   : mp_obj_new_int_from_ll(s.as.i);
    }
}

mp_obj_t pt_string(const char *text, size_t length, bool is_terminated, mp_obj_t kept) {
    if (!pt_is_utf8(text, length)) {
        pt_raise_value_error();
    }
    if (!pt_heap_locked() || !pt_is_string_object(kept)) {
        return mp_obj_new_str(text, length);
    }
    if (!is_terminated) {
        pt_raise_value_error();
    }
    pt_point_string(kept, text, length);
    return kept;
}

pt_item pt_item_of(mp_obj_t value) {
    pt_item item = {.type = PT_TYPE_NONE};
    if (value == mp_const_none) {
        item.type = PT_TYPE_NULL;
    } else if (mp_obj_is_bool(value)) {
        item.type = PT_TYPE_BOOL;
        item.number.as.i = mp_obj_is_true(value);
    } else if (mp_obj_is_int(value)) {
        item.type = pt_get_int64(value, &item.number.as.i) ? PT_TYPE_INT : PT_TYPE_NONE;
    } else if (mp_obj_is_float(value)) {
        item.type = PT_TYPE_DOUBLE;
        item.number.as.d = (double)mp_obj_get_float(value);
    } else if (mp_obj_is_str(value)) {
        size_t length;
        item.type = PT_TYPE_STRING;
        item.text.data = mp_obj_str_get_data(value, &length);
        item.text.length = (uint32_t)length;
    }
    item.number.type = item.type;
    return item;
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
