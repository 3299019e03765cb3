// _picotorch.Program and _picotorch.Data: files that are open.
#include "modpicotorch.h"
#include "py/runtime.h"
#include <string.h>

// ---- what both have

static mp_obj_t file_make_new(mp_obj_base_t *object, pt_file *file, const mp_obj_type_t *type,
                              size_t n_args, size_t n_kw, const mp_obj_t *args) {
    mp_arg_check_num(n_args, n_kw, 1, 1, false);
    object->type = type;
    file->owner = pt_new_owner(args[0]);
    return MP_OBJ_FROM_PTR(object);
}

// The bytes of a file to open. ValueError for a second one: methods may be using the first.
static pt_span open_buffer(pt_file *file, const void *opened, mp_obj_t buffer, uint8_t subject) {
    if (opened) {
        pt_raise_value_error();
    }
    pt_need_stack(&file->owner);
    pt_memory memory = pt_memory_of(&file->owner, buffer, subject, PT_NO_INDEX);
    file->anchor = memory.anchor;
    file->is_resizable = memory.is_resizable;
    return memory.span;
}

static void check_not_moved(const pt_file *file, const void *data, uint32_t size, uint8_t subject) {
    pt_span memory = {(void *)(uintptr_t)data, size, true};
    if (file->is_resizable && data && pt_has_moved(file->anchor, &memory)) {
        pt_refuse(&file->owner, PT_ERROR_INVALID_STATE, subject, PT_NO_INDEX,
                  "has been resized since it was handed over; leave its size alone, and open it "
                  "again");
    }
}

// A read-only memoryview of a part of a file whose bytes start at `data`; the argument after the
// first `least`, if there is one, is the view to point there.
static mp_obj_t show_part(const pt_file *file, const uint8_t *data, pt_span part, size_t n_args,
                          const mp_obj_t *args, size_t least) {
    void *start = file->is_resizable ? (void *)(uintptr_t)data : file->anchor;
    mp_obj_t view = n_args > least ? args[least] : mp_const_none;
    return pt_show(view, start, part.data, part.size, 'B', false);
}

static bool is_text(pt_text text, mp_obj_t wanted) {
    size_t length;
    const char *data = mp_obj_str_get_data(wanted, &length);
    return text.length == length && (length == 0 || memcmp(text.data, data, length) == 0);
}

// ---- Program

static mp_obj_t program_make_new(const mp_obj_type_t *type, size_t n_args, size_t n_kw,
                                 const mp_obj_t *args) {
    pt_program_object *self = m_new0(pt_program_object, 1);
    return file_make_new(&self->base, &self->file, type, n_args, n_kw, args);
}

static mp_obj_t program_open(mp_obj_t self_in, mp_obj_t buffer, mp_obj_t verification) {
    pt_program_object *self = MP_OBJ_TO_PTR(self_in);
    pt_span file = open_buffer(&self->file, self->c.data, buffer, PT_SUBJECT_PROGRAM);
    pt_program opened;
    PT_CALL(&self->file.owner,
            pt_program_open(&opened, file.data, file.size,
                            (pt_verification)mp_obj_get_int(verification), &error));
    self->c = opened;
    return mp_const_none;
}

pt_program_object *pt_get_program(mp_obj_t program) {
    if (!mp_obj_is_type(program, &pt_program_type)) {
        mp_raise_type(&mp_type_TypeError);
    }
    pt_program_object *self = MP_OBJ_TO_PTR(program);
    check_not_moved(&self->file, self->c.data, self->c.size, PT_SUBJECT_PROGRAM);
    return self;
}

// A method of a program, whose number is the argument behind it.
typedef struct query {
    const pt_program_object *program;
    const pt_owner *owner;
    pt_plan plan;
} query;

static query ask(mp_obj_t program, mp_obj_t plan) {
    query q = {.program = pt_get_program(program)};
    q.owner = &q.program->file.owner;
    PT_CALL(q.owner, pt_plan_at(&q.plan, &q.program->c, pt_index(plan), &error));
    return q;
}

pt_plan pt_get_plan(mp_obj_t program, mp_obj_t plan) {
    return ask(program, plan).plan;
}

static mp_obj_t program_num_methods(mp_obj_t self) {
    return pt_small_int(pt_program_methods(&pt_get_program(self)->c));
}

static mp_obj_t program_find(mp_obj_t self_in, mp_obj_t name_in) {
    const pt_program_object *self = pt_get_program(self_in);
    size_t length;
    const char *name = mp_obj_str_get_data(name_in, &length);
    pt_plan plan;
    PT_CALL(&self->file.owner, pt_plan_find(&plan, &self->c, name, (uint32_t)length, &error));
    return MP_OBJ_NEW_SMALL_INT(plan.index);
}

static mp_obj_t program_method_name(mp_obj_t self, mp_obj_t plan) {
    query q = ask(self, plan);
    return pt_bytes(pt_plan_name(&q.plan));
}

static mp_obj_t program_count(mp_obj_t self, mp_obj_t plan, mp_obj_t what) {
    query q = ask(self, plan);
    return pt_small_int(pt_plan_count(&q.plan, (pt_what)mp_obj_get_int(what)));
}

static mp_obj_t program_buffer_size(mp_obj_t self, mp_obj_t plan, mp_obj_t i) {
    query q = ask(self, plan);
    uint32_t size;
    PT_CALL(q.owner, pt_plan_buffer(&q.plan, pt_index(i), &size, &error));
    return pt_small_int(size);
}

// ---- values: the arguments are program, plan, what and i

static pt_item find_item(const query *q, const mp_obj_t *args, uint32_t *index) {
    pt_item item;
    pt_what what = (pt_what)mp_obj_get_int(args[2]);
    PT_CALL(q->owner, pt_plan_item(&q->plan, what, pt_index(args[3]), index, &item, &error));
    return item;
}

static mp_obj_t program_type(size_t n_args, const mp_obj_t *args) {
    query q = ask(args[0], args[1]);
    return MP_OBJ_NEW_SMALL_INT(find_item(&q, args, NULL).type);
}

static mp_obj_t program_value(size_t n_args, const mp_obj_t *args) {
    query q = ask(args[0], args[1]);
    uint32_t index;
    find_item(&q, args, &index);
    return pt_small_int(index);
}

static mp_obj_t program_constant(size_t n_args, const mp_obj_t *args) {
    query q = ask(args[0], args[1]);
    pt_item item = find_item(&q, args, NULL);
    if (item.type == PT_TYPE_STRING) {
        return pt_bytes(item.text);
    }
    bool is_number = item.type >= PT_TYPE_INT && item.type <= PT_TYPE_DOUBLE;
    return is_number ? pt_number(item.number, mp_const_none) : mp_const_none;
}

static mp_obj_t program_tensor(size_t n_args, const mp_obj_t *args) {
    query q = ask(args[0], args[1]);
    pt_item item = find_item(&q, args, NULL);
    pt_tensor_info info;
    PT_CALL(q.owner, pt_plan_tensor(&q.plan, &item, &info, &error));
    return pt_tensor_tuple(&info);
}

static mp_obj_t program_has_name(mp_obj_t self, mp_obj_t plan, mp_obj_t i) {
    const mp_obj_t args[] = {self, plan, MP_OBJ_NEW_SMALL_INT(PT_VALUES), i};
    query q = ask(self, plan);
    pt_item item = find_item(&q, args, NULL);
    return mp_obj_new_bool(item.type == PT_TYPE_TENSOR && pt_has_name(&q.plan, &item));
}

// ---- operators and instructions

static mp_obj_t program_operator(mp_obj_t self, mp_obj_t plan, mp_obj_t i) {
    query q = ask(self, plan);
    pt_text name, overload;
    int32_t number;
    PT_CALL(q.owner, pt_plan_operator(&q.plan, pt_index(i), &name, &overload, &number, &error));
    mp_obj_t items[] = {pt_bytes(name), pt_bytes(overload), pt_small_int(number)};
    return mp_obj_new_tuple(3, items);
}

static mp_obj_t program_instruction_operator(mp_obj_t self, mp_obj_t plan, mp_obj_t i) {
    query q = ask(self, plan);
    pt_plan_walk walk = pt_plan_walk_start(&q.plan);
    bool is_call = pt_plan_walk_to(&walk, pt_index(i)) && walk.kind == PT_INSTRUCTION_KERNEL_CALL;
    return pt_small_int(is_call ? walk.target : -1);
}

static mp_obj_t program_views(mp_obj_t self, mp_obj_t plan) {
    query q = ask(self, plan);
    mp_obj_t views = mp_obj_new_list(0, NULL);
    for (pt_plan_walk walk = pt_plan_walk_start(&q.plan); pt_plan_walk_next(&walk);) {
        int32_t view = pt_plan_walk_view(&walk);
        if (view >= 0) {
            mp_obj_list_append(views, pt_small_int(view));
        }
    }
    return views;
}

static mp_obj_t program_max_delegate_arguments(mp_obj_t self, mp_obj_t plan) {
    query q = ask(self, plan);
    uint32_t most = 0;
    for (pt_plan_walk walk = pt_plan_walk_start(&q.plan); pt_plan_walk_next(&walk);) {
        most = walk.kind == PT_INSTRUCTION_DELEGATE_CALL ? MAX(most, walk.n_args) : most;
    }
    return pt_small_int(most);
}

// ---- delegates: the first arguments are program, plan and i

static mp_obj_t program_backend(mp_obj_t self, mp_obj_t plan, mp_obj_t i) {
    query q = ask(self, plan);
    return pt_bytes(pt_plan_backend(&q.plan, pt_index(i)));
}

static mp_obj_t program_has_backend(size_t n_args, const mp_obj_t *args) {
    query q = ask(args[0], args[1]);
    return mp_obj_new_bool(is_text(pt_plan_backend(&q.plan, pt_index(args[2])), args[3]));
}

static pt_delegate_info find_delegate(const query *q, mp_obj_t i) {
    pt_delegate_info info;
    PT_CALL(q->owner, pt_plan_delegate(&q->plan, pt_index(i), &info, &error));
    return info;
}

static mp_obj_t program_processed(size_t n_args, const mp_obj_t *args) {
    query q = ask(args[0], args[1]);
    pt_span part = find_delegate(&q, args[2]).processed;
    return show_part(&q.program->file, q.program->c.data, part, n_args, args, 3);
}

static mp_obj_t program_num_specs(mp_obj_t self, mp_obj_t plan, mp_obj_t i) {
    query q = ask(self, plan);
    return pt_small_int(find_delegate(&q, i).n_specs);
}

static mp_obj_t program_spec(size_t n_args, const mp_obj_t *args) {
    query q = ask(args[0], args[1]);
    pt_delegate_info info = find_delegate(&q, args[2]);
    pt_text key;
    pt_span part;
    pt_compile_spec(&q.plan, &info, pt_index(args[3]), &key, &part);
    mp_obj_t items[] = {pt_bytes(key),
                        show_part(&q.program->file, q.program->c.data, part, n_args, args, 4)};
    return mp_obj_new_tuple(2, items);
}

static mp_obj_t program_find_spec(size_t n_args, const mp_obj_t *args) {
    query q = ask(args[0], args[1]);
    pt_delegate_info info = find_delegate(&q, args[2]);
    for (uint32_t k = 0; k < info.n_specs; k++) {
        pt_text key;
        pt_span part;
        pt_compile_spec(&q.plan, &info, k, &key, &part);
        if (is_text(key, args[3])) {
            return show_part(&q.program->file, q.program->c.data, part, n_args, args, 4);
        }
    }
    return mp_const_none;
}

// ---- named data

static mp_obj_t program_num_keys(mp_obj_t self) {
    return pt_small_int(pt_named_data_count(&pt_get_program(self)->c));
}

static pt_text key_at(mp_obj_t self_in, uint32_t i) {
    const pt_program_object *self = pt_get_program(self_in);
    pt_text key;
    PT_CALL(&self->file.owner, pt_named_data_key(&self->c, i, &key, &error));
    return key;
}

static mp_obj_t program_key(mp_obj_t self, mp_obj_t i) {
    return pt_bytes(key_at(self, pt_index(i)));
}

static mp_obj_t program_find_key(mp_obj_t self, mp_obj_t key) {
    uint32_t n = pt_named_data_count(&pt_get_program(self)->c), i = 0;
    while (i < n && !is_text(key_at(self, i), key)) {
        i++;
    }
    return pt_small_int(i < n ? (int64_t)i : -1);
}

static mp_obj_t program_data(size_t n_args, const mp_obj_t *args) {
    const pt_program_object *self = pt_get_program(args[0]);
    pt_span part;
    PT_CALL(&self->file.owner, pt_named_data(&self->c, pt_index(args[1]), &part, &error));
    return show_part(&self->file, self->c.data, part, n_args, args, 2);
}

static const mp_rom_map_elem_t program_locals_table[] = {PT_3(program, count),
                                                         PT_2(program, find),
                                                         PT_VAR(program, type, 4, 4),
                                                         PT_VAR(program, value, 4, 4),
                                                         PT_VAR(program, constant, 4, 4),
                                                         PT_VAR(program, tensor, 4, 4),
                                                         PT_3(program, buffer_size),
                                                         PT_3(program, open),
                                                         PT_1(program, num_methods),
                                                         PT_2(program, method_name),
                                                         PT_3(program, has_name),
                                                         PT_3(program, operator),
                                                         PT_3(program, instruction_operator),
                                                         PT_2(program, views),
                                                         PT_2(program, max_delegate_arguments),
                                                         PT_3(program, backend),
                                                         PT_VAR(program, has_backend, 4, 4),
                                                         PT_VAR(program, processed, 3, 4),
                                                         PT_3(program, num_specs),
                                                         PT_VAR(program, spec, 4, 5),
                                                         PT_VAR(program, find_spec, 4, 5),
                                                         PT_1(program, num_keys),
                                                         PT_2(program, key),
                                                         PT_2(program, find_key),
                                                         PT_VAR(program, data, 2, 3)};
static MP_DEFINE_CONST_DICT(program_locals, program_locals_table);

MP_DEFINE_CONST_OBJ_TYPE(pt_program_type, MP_QSTR_Program, MP_TYPE_FLAG_NONE, make_new,
                         program_make_new, locals_dict, &program_locals);

// ---- Data

static mp_obj_t data_make_new(const mp_obj_type_t *type, size_t n_args, size_t n_kw,
                              const mp_obj_t *args) {
    pt_data_object *self = m_new0(pt_data_object, 1);
    return file_make_new(&self->base, &self->file, type, n_args, n_kw, args);
}

static mp_obj_t data_open(mp_obj_t self_in, mp_obj_t buffer, mp_obj_t verification) {
    pt_data_object *self = MP_OBJ_TO_PTR(self_in);
    pt_span file = open_buffer(&self->file, self->c.data, buffer, PT_SUBJECT_DATA_FILE);
    pt_data opened = {.owner = self->c.owner};
    PT_CALL(&self->file.owner, pt_data_open(&opened, file.data, file.size,
                                            (pt_verification)mp_obj_get_int(verification), &error));
    self->c = opened;
    return mp_const_none;
}

pt_data_object *pt_get_data(mp_obj_t data) {
    if (!mp_obj_is_type(data, &pt_data_type)) {
        mp_raise_type(&mp_type_TypeError);
    }
    pt_data_object *self = MP_OBJ_TO_PTR(data);
    check_not_moved(&self->file, self->c.data, self->c.size, PT_SUBJECT_DATA_FILE);
    return self;
}

static mp_obj_t data_num_keys(mp_obj_t self) {
    return pt_small_int(pt_data_keys(&pt_get_data(self)->c));
}

static mp_obj_t data_key(mp_obj_t self, mp_obj_t i) {
    return pt_bytes(pt_data_key(&pt_get_data(self)->c, pt_index(i)));
}

static mp_obj_t data_find_key(mp_obj_t self, mp_obj_t key_in) {
    size_t length;
    const char *key = mp_obj_str_get_data(key_in, &length);
    return pt_small_int(pt_data_find(&pt_get_data(self)->c, key, (uint32_t)length));
}

static mp_obj_t data_tensor(mp_obj_t self_in, mp_obj_t i) {
    const pt_data_object *self = pt_get_data(self_in);
    pt_tensor_info info;
    PT_CALL(&self->file.owner, pt_data_tensor(&self->c, pt_index(i), &info, &error));
    return pt_tensor_tuple(&info);
}

static mp_obj_t data_data(size_t n_args, const mp_obj_t *args) {
    const pt_data_object *self = pt_get_data(args[0]);
    pt_span part = pt_data_bytes(&self->c, pt_index(args[1]));
    return show_part(&self->file, self->c.data, part, n_args, args, 2);
}

static const mp_rom_map_elem_t data_locals_table[] = {PT_3(data, open),   PT_1(data, num_keys),
                                                      PT_2(data, key),    PT_2(data, find_key),
                                                      PT_2(data, tensor), PT_VAR(data, data, 2, 3)};
static MP_DEFINE_CONST_DICT(data_locals, data_locals_table);

MP_DEFINE_CONST_OBJ_TYPE(pt_data_type, MP_QSTR_Data, MP_TYPE_FLAG_NONE, make_new, data_make_new,
                         locals_dict, &data_locals);
