// Data of a method: inputs, outputs, attributes, arguments of delegates.
#include "method.h"
#include "py/smallint.h"
#include <string.h>

// ---- buffers and Tensors as inputs

typedef struct input_source {
    pt_input_buffer c;
    pt_memory memory;
} input_source;

static pt_span attribute_at(mp_obj_t tensor, qstr name) {
    pt_memory memory;
    return pt_find_memory(mp_load_attr(tensor, name), &memory) ? memory.span : (pt_span){0};
}

static void read_shape(mp_obj_t tensor, pt_input_buffer *into) {
    pt_span sizes = attribute_at(tensor, MP_QSTR_sizes_view);
    pt_span order = attribute_at(tensor, MP_QSTR_dim_order_view);
    if (order.size > UINT8_MAX || sizes.size != order.size * sizeof(int32_t) ||
        (uintptr_t)sizes.data % sizeof(int32_t)) {
        pt_raise_value_error();
    }
    into->has_shape = true;
    into->dtype = (uint8_t)mp_obj_get_int(mp_load_attr(tensor, MP_QSTR_dtype_number));
    into->rank = (uint8_t)order.size;
    into->sizes = sizes.data;
    into->dim_order = order.data;
}

// Reads the data of a Tensor. The data of a Tensor made by from_blob is a view of `buffer`, which
// may be resized.
static pt_memory read_data(const method *self, mp_obj_t tensor, uint8_t subject, int32_t index) {
    pt_memory whole,
        data = pt_memory_of(self->owner, mp_load_attr(tensor, MP_QSTR_data), subject, index);
    if (pt_find_memory(mp_load_attr(tensor, MP_QSTR_buffer), &whole) && whole.is_resizable) {
        if (pt_has_moved(whole.anchor, &data.span)) {
            pt_refuse(self->owner, PT_ERROR_INVALID_STATE, subject, index,
                      "has been resized since from_blob; keep its size");
        }
        data.is_resizable = true;
        data.anchor = whole.anchor;
    }
    return data;
}

static bool has(mp_obj_t object, qstr name) {
    mp_obj_t found[2];
    mp_load_method_maybe(object, name, found);
    return found[0] != MP_OBJ_NULL;
}

// Reads a buffer or a Tensor; returns false for any other object.
static bool mp_tensors_read(const method *self, mp_obj_t value, uint8_t subject, int32_t index,
                            input_source *into) {
    mp_buffer_info_t buffer;
    into->c = (pt_input_buffer){0};
    if (mp_get_buffer(value, &buffer, MP_BUFFER_READ)) {
        into->memory = pt_memory_of(self->owner, value, subject, index);
    } else {
        if (!has(value, MP_QSTR_data) || !has(value, MP_QSTR_sizes_view)) {
            return false;
        }
        into->memory = read_data(self, value, subject, index);
        read_shape(value, &into->c);
    }
    into->c.data = into->memory.span;
    into->c.typecode = into->memory.typecode;
    return true;
}

static mp_obj_t mp_tensors_finish(method *self, int code, const pt_error *error,
                                  const input_source *g) {
    pt_finish(self, code, error);
    if (g->c.memory) {
        pt_keep(self, g->c.memory, g->memory.anchor, g->memory.is_resizable);
    }
    return mp_const_none;
}

// Converts an input that is no tensor; PT_TYPE_NONE for an object that cannot be an input.
static pt_evalue item_of(mp_obj_t owner, mp_obj_t value) {
    pt_evalue item = {.type = PT_TYPE_NONE};
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
        item.type = PT_TYPE_STRING;
        item.text = pt_text_of(owner, value);
    }
    return item;
}

mp_obj_t pt_method_set_input(mp_obj_t self_in, mp_obj_t value, mp_obj_t i_in) {
    method *self = pt_get_method(self_in);
    uint32_t i = pt_index(self->owner, i_in);
    pt_error error;
    input_source g;
    if (!mp_obj_is_str(value) && mp_tensors_read(self, value, PT_SUBJECT_INPUT, (int32_t)i, &g)) {
        return mp_tensors_finish(self, pt_give_input(&self->m, i, &g.c, &error), &error, &g);
    }
    pt_evalue item = item_of(self->owner, value);
    pt_finish(self, pt_set_constant_input(&self->m, i, &item, &error), &error);
    return mp_const_none;
}

static void read_output_memory(const method *self, mp_obj_t buffer, uint8_t subject, int32_t index,
                               input_source *into) {
    if (!mp_tensors_read(self, buffer, subject, index, into)) {
        pt_refuse(self->owner, PT_ERROR_INVALID_ARGUMENT, subject, index,
                  "is a tensor; give its data");
    }
}

mp_obj_t pt_method_set_output(mp_obj_t self_in, mp_obj_t buffer, mp_obj_t i_in) {
    method *self = pt_get_method(self_in);
    uint32_t i = pt_index(self->owner, i_in);
    pt_error error;
    input_source g;
    read_output_memory(self, buffer, PT_SUBJECT_OUTPUT, (int32_t)i, &g);
    return mp_tensors_finish(self, pt_set_output(&self->m, i, &g.c, &error), &error, &g);
}

mp_obj_t pt_method_set_attribute(mp_obj_t self_in, mp_obj_t buffer, mp_obj_t name_in) {
    method *self = pt_get_method(self_in);
    pt_text name = pt_text_of(self->owner, name_in);
    pt_error error;
    input_source g;
    read_output_memory(self, buffer, PT_SUBJECT_ATTRIBUTE, PT_NO_INDEX, &g);
    int code = pt_set_attribute(&self->m, name.data, name.length, &g.c, &error);
    return mp_tensors_finish(self, code, &error, &g);
}

// ---- views of values

static void show_at(const method *self, mp_obj_t view, const void *data, size_t size,
                    char typecode) {
    const pt_context *c = &self->m.c;
    size_t offset = (uintptr_t)data - (uintptr_t)c->memory[PT_MEMORY_POOL];
    bool is_pool = size > 0 && offset < c->memory_size[PT_MEMORY_POOL];
    void *start = pt_start_of(self, is_pool ? PT_MEMORY_POOL : PT_MEMORY_PROGRAM);
    pt_show(view, start, size > 0 ? data : start, size, typecode, false);
}

// Points the Tensor at a value. Its sizes and dim order lie in the pool or in the program.
static mp_obj_t show(const method *self, const pt_value_view *view, const pt_kept *kept) {
    const pt_tensor *t = &view->tensor;
    mp_obj_t dtype = MP_OBJ_NEW_SMALL_INT(t->dtype);
    pt_show(kept->data, pt_start_of(self, view->memory), t->data, view->nbytes,
            pt_typecode(t->dtype), !pt_is_constant_memory(&self->m, view->memory));
    show_at(self, kept->sizes, t->sizes, t->rank * sizeof(int32_t), 'i');
    show_at(self, kept->dim_order, t->dim_order, t->rank, 'B');
    if (mp_load_attr(kept->tensor, MP_QSTR_dtype_number) != dtype) { // storing takes longer
        mp_store_attr(kept->tensor, MP_QSTR_dtype_number, dtype);
    }
    return kept->tensor;
}

static mp_obj_t string_of(const method *self, const pt_value_view *view, const pt_kept *kept) {
    pt_text text = view->text;
    const pt_program *p = self->m.meta.program;
    const char *end = (const char *)p->data + p->size;
    if (text.length == 0) {
        return MP_OBJ_NEW_QSTR(MP_QSTR_);
    }
    if (!pt_is_utf8(text.data, text.length)) {
        pt_refuse(self->owner, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_VALUE, (int32_t)view->value,
                  "is not UTF-8");
    }
    bool is_terminated = text.data + text.length < end && text.data[text.length] == 0;
    return pt_string(text.data, text.length, is_terminated, kept->text);
}

static mp_obj_t number_of(const method *self, const pt_value_view *view, const pt_kept *kept) {
    int64_t i = view->number.as.i;
    bool is_large = view->type == PT_TYPE_INT && (i < MP_SMALL_INT_MIN || i > MP_SMALL_INT_MAX);
    if (is_large && pt_heap_locked()) {
        pt_refuse(self->owner, PT_ERROR_MEMORY_ALLOCATION_FAILED, PT_SUBJECT_VALUE,
                  (int32_t)view->value,
                  "an int of more than 30 bits; ask for it with the heap unlocked");
    }
    return pt_number(view->number, kept->number);
}

static mp_obj_t list_of(const pt_value_view *view, const pt_kept *kept) {
    mp_obj_t call[4];
    mp_load_method(kept->list, MP_QSTR_point_to, call);
    call[2] = pt_small_int(view->value);
    call[3] = pt_small_int(view->list.count);
    return mp_call_method_n_kw(2, 0, call);
}

static mp_obj_t object_of(const method *self, const pt_value_view *view, mp_obj_t kept_in) {
    pt_check_type(kept_in, &pt_kept_type);
    const pt_kept *kept = MP_OBJ_TO_PTR(kept_in);
    switch (view->type) {
    case PT_TYPE_TENSOR:
        return show(self, view, kept);
    case PT_TYPE_NULL:
        return mp_const_none;
    case PT_TYPE_STRING:
        return string_of(self, view, kept);
    case PT_TYPE_INT:
    case PT_TYPE_BOOL:
    case PT_TYPE_DOUBLE:
        return number_of(self, view, kept);
    default:
        return list_of(view, kept);
    }
}

// Returns the Kept of an output; the owner creates it if there is none, or raises.
static mp_obj_t kept_at(const method *self, uint32_t i) {
    size_t n;
    mp_obj_t *kept;
    mp_obj_get_array(mp_load_attr(self->owner, MP_QSTR_kept), &n, &kept);
    if (i >= n) {
        pt_ask(self, PT_ASK_KEPT, i);
        mp_obj_get_array(mp_load_attr(self->owner, MP_QSTR_kept), &n, &kept);
    }
    return i < n ? kept[i] : mp_const_none;
}

mp_obj_t pt_method_get_output(mp_obj_t self_in, mp_obj_t i_in) {
    const method *self = pt_get_method(self_in);
    uint32_t i = pt_index(self->owner, i_in);
    pt_value_view view;
    PT_CALL(self->owner, pt_output(&self->m, i, &view, &error));
    return object_of(self, &view, kept_at(self, i));
}

mp_obj_t pt_method_item(size_t n_args, const mp_obj_t *args) {
    const method *self = pt_get_method(args[0]);
    const pt_method *m = &self->m;
    pt_evalue list;
    pt_value_view view;
    PT_CALL(self->owner, pt_check_loaded(m, &error));
    PT_CALL(self->owner, pt_method_meta_evalue(&m->meta, PT_VALUES, pt_index(self->owner, args[1]),
                                               NULL, &list, &error));
    PT_CALL(self->owner, pt_list_view(m, &list, pt_index(self->owner, args[2]), &view, &error));
    return object_of(self, &view, args[3]);
}

mp_obj_t pt_method_attribute(mp_obj_t self_in, mp_obj_t name_in, mp_obj_t kept) {
    const method *self = pt_get_method(self_in);
    pt_text name = pt_text_of(self->owner, name_in);
    pt_value_view view;
    PT_CALL(self->owner, pt_attribute(&self->m, name.data, name.length, &view, &error));
    return object_of(self, &view, kept);
}

// ---- for delegates

mp_obj_t pt_method_argument_count(mp_obj_t self_in) {
    return pt_small_int(((method *)MP_OBJ_TO_PTR(self_in))->m.n_call);
}

mp_obj_t pt_method_argument(mp_obj_t self_in, mp_obj_t i, mp_obj_t kept) {
    const method *self = pt_get_method(self_in);
    pt_value_view view;
    PT_CALL(self->owner, pt_argument(&self->m, pt_index(self->owner, i), &view, &error));
    return object_of(self, &view, kept);
}

// The sizes are copied: they may be the sizes of the argument.
mp_obj_t pt_method_resize_argument(mp_obj_t self_in, mp_obj_t i, mp_obj_t sizes_in) {
    method *self = pt_get_method(self_in);
    pt_memory sizes;
    int32_t copy[PT_MAX_RANK] = {0};
    if (!pt_find_memory(sizes_in, &sizes) || sizes.typecode != 'i') {
        pt_refuse(self->owner, PT_ERROR_INVALID_ARGUMENT, PT_SUBJECT_SIZES, PT_NO_INDEX,
                  "are not a buffer of int32, such as array('i')");
    }
    uint32_t size = sizes.span.size;
    memcpy(copy, sizes.span.data, MIN(size, sizeof(copy)));
    PT_CALL(self->owner, pt_resize_argument(&self->m, pt_index(self->owner, i),
                                            size / sizeof(int32_t), copy, &error));
    return mp_const_none;
}

// Allocates bytes of the pool during load, else of the temp memory. The arguments are size,
// alignment and a view, or None. A new view is created first: if the heap is full, nothing is
// allocated.
mp_obj_t pt_method_allocate(size_t n_args, const mp_obj_t *args) {
    method *self = pt_get_method(args[0]);
    bool is_pool = self->m.state == PT_LOADING;
    void *start = pt_start_of(self, is_pool ? PT_MEMORY_POOL : TEMP), *data;
    uint32_t size = pt_index(self->owner, args[1]), alignment = pt_index(self->owner, args[2]);
    mp_obj_t view =
        args[3] == mp_const_none ? pt_show(args[3], start, start, 0, 'B', true) : args[3];
    PT_CALL(self->owner, is_pool ? pt_allocate(&self->m, size, alignment, &data, &error)
                                 : pt_allocate_temp(&self->m, size, alignment, &data, &error));
    return pt_show(view, start, data, size, 'B', true);
}

mp_obj_t pt_method_ask_temp(mp_obj_t self_in, mp_obj_t size) {
    method *self = pt_get_method(self_in);
    PT_CALL(self->owner, pt_ask_temp(&self->m, pt_index(self->owner, size), &error));
    return mp_const_none;
}
