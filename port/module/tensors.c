// What goes into a method and what comes out: inputs, outputs, attributes, arguments of delegates.
#include "method.h"
#include "py/runtime.h"
#include "py/smallint.h"
#include <string.h>

static method *method_of(mp_obj_t self_in) {
    method *self = MP_OBJ_TO_PTR(self_in);
    pt_check_memories_of(self);
    return self;
}

// ---- what is given

typedef struct given {
    pt_given c;
    pt_memory memory;
} given;

static mp_buffer_info_t buffer_at(mp_obj_t tensor, qstr name) {
    mp_buffer_info_t buffer;
    mp_get_buffer_raise(mp_load_attr(tensor, name), &buffer, MP_BUFFER_READ);
    return buffer;
}

static void take_shape(mp_obj_t tensor, pt_given *into) {
    mp_buffer_info_t sizes = buffer_at(tensor, MP_QSTR__sizes);
    mp_buffer_info_t order = buffer_at(tensor, MP_QSTR__dim_order);
    if (order.len > UINT8_MAX || sizes.len != order.len * sizeof(int32_t) ||
        (uintptr_t)sizes.buf % sizeof(int32_t)) {
        pt_raise_value_error();
    }
    into->has_shape = true;
    into->dtype = (uint8_t)mp_obj_get_int(mp_load_attr(tensor, MP_QSTR__dtype));
    into->rank = (uint8_t)order.len;
    into->sizes = sizes.buf;
    into->dim_order = order.buf;
}

// The data of a Tensor. Of one that from_blob made it is a view of `_buffer`, which may be resized.
static pt_memory take_data(const method *self, mp_obj_t tensor, uint8_t subject, int32_t index) {
    pt_memory memory =
        pt_memory_of(&self->owner, mp_load_attr(tensor, MP_QSTR_data), subject, index);
    mp_obj_t buffer = mp_load_attr(tensor, MP_QSTR__buffer);
    if (buffer != mp_const_none) {
        pt_memory whole = pt_memory_of(&self->owner, buffer, subject, index);
        if (whole.is_resizable && pt_has_moved(whole.anchor, &memory.span)) {
            pt_refuse(&self->owner, PT_ERROR_INVALID_STATE, subject, index,
                      "has been resized since from_blob; leave its size alone");
        }
        memory.is_resizable = whole.is_resizable;
        memory.anchor = whole.is_resizable ? whole.anchor : memory.anchor;
    }
    return memory;
}

// A buffer, or a Tensor. False for what is neither.
static bool take(const method *self, mp_obj_t value, uint8_t subject, int32_t index, given *into) {
    mp_buffer_info_t buffer;
    mp_obj_t shape[2];
    into->c = (pt_given){0};
    if (mp_get_buffer(value, &buffer, MP_BUFFER_READ)) {
        into->memory = pt_memory_of(&self->owner, value, subject, index);
    } else {
        mp_load_method_maybe(value, MP_QSTR__dim_order, shape);
        if (shape[0] == MP_OBJ_NULL) {
            return false;
        }
        into->memory = take_data(self, value, subject, index);
        take_shape(value, &into->c);
    }
    into->c.data = into->memory.span;
    into->c.typecode = into->memory.typecode;
    return true;
}

static void finish(method *self, int code, const pt_error *error, const given *g) {
    pt_finish(self, code, error);
    if (g->c.memory) {
        pt_keep(self, g->c.memory, g->memory.anchor, g->memory.is_resizable);
    }
}

mp_obj_t pt_method_set_input(mp_obj_t self_in, mp_obj_t i_in, mp_obj_t value) {
    method *self = method_of(self_in);
    uint32_t i = pt_index(i_in);
    pt_item item = pt_item_of(value);
    pt_error error;
    given g;
    if (item.type != PT_TYPE_NONE || !take(self, value, PT_SUBJECT_INPUT, (int32_t)i, &g)) {
        pt_finish(self, pt_set_constant_input(&self->m, i, &item, &error), &error);
    } else {
        finish(self, pt_give_input(&self->m, i, &g.c, &error), &error, &g);
    }
    return mp_const_none;
}

static void take_memory(const method *self, mp_obj_t buffer, uint8_t subject, int32_t index,
                        given *into) {
    if (!take(self, buffer, subject, index, into)) {
        pt_refuse(&self->owner, PT_ERROR_INVALID_ARGUMENT, subject, index,
                  "is a tensor: a buffer or a Tensor is wanted");
    }
}

mp_obj_t pt_method_set_output(mp_obj_t self_in, mp_obj_t i_in, mp_obj_t buffer) {
    method *self = method_of(self_in);
    uint32_t i = pt_index(i_in);
    pt_error error;
    given g;
    take_memory(self, buffer, PT_SUBJECT_OUTPUT, (int32_t)i, &g);
    finish(self, pt_set_output(&self->m, i, &g.c, &error), &error, &g);
    return mp_const_none;
}

mp_obj_t pt_method_set_attribute(mp_obj_t self_in, mp_obj_t name_in, mp_obj_t buffer) {
    method *self = method_of(self_in);
    size_t length;
    const char *name = mp_obj_str_get_data(name_in, &length);
    pt_error error;
    given g;
    take_memory(self, buffer, PT_SUBJECT_ATTRIBUTE, PT_NO_INDEX, &g);
    finish(self, pt_set_attribute(&self->m, name, (uint32_t)length, &g.c, &error), &error, &g);
    return mp_const_none;
}

// ---- what is shown

static void show_at(const method *self, mp_obj_t view, const void *data, size_t size,
                    char typecode) {
    const pt_context *c = &self->m.c;
    size_t offset = (uintptr_t)data - (uintptr_t)c->memory[PT_MEMORY_POOL];
    bool is_pool = size > 0 && offset < c->memory_size[PT_MEMORY_POOL];
    void *start = pt_start_of(self, is_pool ? PT_MEMORY_POOL : PT_MEMORY_PROGRAM);
    pt_show(view, start, size > 0 ? data : start, size, typecode, is_pool);
}

// Stores only what changes, which takes longer than to look.
static void store(mp_obj_t tensor, qstr name, mp_obj_t value) {
    if (mp_load_attr(tensor, name) != value) {
        mp_store_attr(tensor, name, value);
    }
}

// Points a Tensor to what a view shows. Its sizes and dim order lie in the pool or in the program.
static mp_obj_t show(const method *self, const pt_value_view *view, mp_obj_t tensor) {
    const pt_tensor *t = &view->tensor;
    pt_show(mp_load_attr(tensor, MP_QSTR_data), pt_start_of(self, view->memory), t->data,
            view->nbytes, pt_typecode(t->dtype), !pt_is_constant_memory(&self->m, view->memory));
    show_at(self, mp_load_attr(tensor, MP_QSTR__sizes), t->sizes, t->rank * sizeof(int32_t), 'i');
    show_at(self, mp_load_attr(tensor, MP_QSTR__dim_order), t->dim_order, t->rank, 'B');
    store(tensor, MP_QSTR__dtype, MP_OBJ_NEW_SMALL_INT(t->dtype));
    store(tensor, MP_QSTR__buffer, mp_const_none);
    return tensor;
}

static mp_obj_t string_of(const method *self, pt_text text, mp_obj_t kept) {
    const pt_program *p = self->m.plan.program;
    const char *end = (const char *)p->data + p->size;
    if (text.length == 0) {
        return MP_OBJ_NEW_QSTR(MP_QSTR_);
    }
    bool is_terminated = text.data + text.length < end && text.data[text.length] == 0;
    return pt_string(text.data, text.length, is_terminated, mp_load_attr(kept, MP_QSTR_text));
}

static mp_obj_t number_of(const method *self, const pt_value_view *view, mp_obj_t kept) {
    int64_t i = view->number.as.i;
    bool is_large = view->type == PT_TYPE_INT && (i < MP_SMALL_INT_MIN || i > MP_SMALL_INT_MAX);
    if (is_large && pt_heap_locked()) {
        pt_refuse(&self->owner, PT_ERROR_MEMORY_ALLOCATION_FAILED, PT_SUBJECT_VALUE,
                  (int32_t)view->value,
                  "an int of more than 30 bits; ask for it with the heap unlocked");
    }
    return pt_number(view->number, mp_load_attr(kept, MP_QSTR_number));
}

static mp_obj_t list_of(const pt_value_view *view, mp_obj_t kept) {
    mp_obj_t call[4];
    mp_load_method(mp_load_attr(kept, MP_QSTR_list), MP_QSTR__point, call);
    call[2] = pt_small_int(view->value);
    call[3] = pt_small_int(view->list.count);
    return mp_call_method_n_kw(2, 0, call);
}

static mp_obj_t object_of(const method *self, const pt_value_view *view, mp_obj_t kept) {
    switch (view->type) {
    case PT_TYPE_TENSOR:
        return show(self, view, mp_load_attr(kept, MP_QSTR_tensor));
    case PT_TYPE_NULL:
        return mp_const_none;
    case PT_TYPE_STRING:
        return string_of(self, view->text, kept);
    case PT_TYPE_INT:
    case PT_TYPE_BOOL:
    case PT_TYPE_DOUBLE:
        return number_of(self, view, kept);
    default:
        return list_of(view, kept);
    }
}

mp_obj_t pt_method_output(mp_obj_t self_in, mp_obj_t i, mp_obj_t kept) {
    const method *self = method_of(self_in);
    pt_value_view view;
    PT_CALL(&self->owner, pt_output(&self->m, pt_index(i), &view, &error));
    return object_of(self, &view, kept);
}

mp_obj_t pt_method_item(size_t n_args, const mp_obj_t *args) {
    const method *self = method_of(args[0]);
    const pt_method *m = &self->m;
    uint32_t value = pt_index(args[1]);
    pt_item list;
    pt_value_view view;
    PT_CALL(&self->owner, pt_check_loaded(m, &error));
    PT_CALL(&self->owner, pt_plan_item(&m->plan, PT_VALUES, value, NULL, &list, &error));
    PT_CALL(&self->owner, pt_list_view(m, &list, pt_index(args[2]), &view, &error));
    return object_of(self, &view, args[3]);
}

mp_obj_t pt_method_attribute(mp_obj_t self_in, mp_obj_t name_in, mp_obj_t tensor) {
    const method *self = method_of(self_in);
    size_t length;
    const char *name = mp_obj_str_get_data(name_in, &length);
    pt_value_view view;
    PT_CALL(&self->owner, pt_attribute(&self->m, name, (uint32_t)length, &view, &error));
    return show(self, &view, tensor);
}

// ---- for delegates

mp_obj_t pt_method_argument_count(mp_obj_t self_in) {
    return pt_small_int(((method *)MP_OBJ_TO_PTR(self_in))->m.n_call);
}

mp_obj_t pt_method_argument(mp_obj_t self_in, mp_obj_t i, mp_obj_t kept) {
    const method *self = MP_OBJ_TO_PTR(self_in);
    pt_value_view view;
    PT_CALL(&self->owner, pt_argument(&self->m, pt_index(i), &view, &error));
    return object_of(self, &view, kept);
}

// The sizes are copied: they may be the argument's own.
mp_obj_t pt_method_resize_argument(mp_obj_t self_in, mp_obj_t i, mp_obj_t sizes_in) {
    method *self = MP_OBJ_TO_PTR(self_in);
    mp_buffer_info_t sizes;
    int32_t copy[PT_MAX_RANK] = {0};
    mp_get_buffer_raise(sizes_in, &sizes, MP_BUFFER_READ);
    memcpy(copy, sizes.buf, MIN(sizes.len, sizeof(copy)));
    PT_CALL(&self->owner,
            pt_resize_argument(&self->m, pt_index(i), sizes.len / sizeof(int32_t), copy, &error));
    return mp_const_none;
}

// The arguments are size, alignment and perhaps a view. A new one is made first: where the heap has
// no room for it nothing is taken.
static mp_obj_t allocate_from(size_t n_args, const mp_obj_t *args, uint32_t memory,
                              int (*function)(pt_method *, uint32_t, uint32_t, void **,
                                              pt_error *)) {
    method *self = MP_OBJ_TO_PTR(args[0]);
    void *start = pt_start_of(self, memory), *data;
    mp_obj_t view = n_args > 3 ? args[3] : mp_const_none;
    uint32_t size = pt_index(args[1]);
    view = view == mp_const_none ? pt_show(view, start, start, 0, 'B', true) : view;
    PT_CALL(&self->owner, function(&self->m, size, pt_index(args[2]), &data, &error));
    return pt_show(view, start, data, size, 'B', true);
}

mp_obj_t pt_method_allocate(size_t n_args, const mp_obj_t *args) {
    return allocate_from(n_args, args, PT_MEMORY_POOL, pt_allocate);
}

mp_obj_t pt_method_allocate_temp(size_t n_args, const mp_obj_t *args) {
    return allocate_from(n_args, args, TEMP, pt_allocate_temp);
}

mp_obj_t pt_method_ask_temp(mp_obj_t self_in, mp_obj_t size) {
    method *self = MP_OBJ_TO_PTR(self_in);
    PT_CALL(&self->owner, pt_ask_temp(&self->m, pt_index(size), &error));
    return mp_const_none;
}
