// _picotorch.Program and _picotorch.Data: open files.
#include "modpicotorch.h"
#include <string.h>

// ---- common parts

static bool is_program(const pt_file *file) {
    return !PT_HAS_PROGRAMS || file->base.type == &pt_program_type;
}

static mp_obj_t file_make_new(const mp_obj_type_t *type, size_t n_args, size_t n_kw,
                              const mp_obj_t *args) {
    mp_arg_check_num(n_args, n_kw, 1, 1, false);
    pt_file *self = m_new0(pt_file, 1);
    self->base.type = type;
    self->owner = args[0];
    return MP_OBJ_FROM_PTR(self);
}

static uint8_t subject_of(const pt_file *file) {
    return is_program(file) ? PT_SUBJECT_PROGRAM : PT_SUBJECT_DATA_FILE;
}

// Raises the error of a build for .ptm files about a .pte file, since the library's error may have
// no text.
static void refuse_program(const pt_file *self, const pt_span *file) {
    static const char id[] = "ET12";
    enum { PLACE = 4 };
    bool is_program = file->size >= PLACE + sizeof(id) - 1 &&
                      memcmp((const char *)file->data + PLACE, id, sizeof(id) - 1) == 0;
    if (!PT_HAS_PROGRAMS && is_program) {
        pt_refuse_with(self->owner, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_PROGRAM, PT_NO_INDEX,
                       "is a .pte file, and this module runs .ptm files; make one by picotorch "
                       "compile, or the module by picotorch natmod --models of the .pte file");
    }
}

// ValueError for a second file, since methods may use the first.
static mp_obj_t file_open(mp_obj_t self_in, mp_obj_t buffer, mp_obj_t verification_in) {
    pt_file *self = MP_OBJ_TO_PTR(self_in);
    pt_verification verification = (pt_verification)mp_obj_get_int(verification_in);
    pt_error error;
    if (self->data.data) {
        pt_raise_value_error();
    }
    pt_need_stack(self->owner);
    pt_memory memory = pt_memory_of(self->owner, buffer, subject_of(self), PT_NO_INDEX);
    pt_span file = memory.span;
    self->anchor = memory.anchor;
    self->is_resizable = memory.is_resizable;
    refuse_program(self, &file);
    int code = is_program(self)
                   ? pt_open(&self->program, file.data, file.size, verification, &error)
                   : pt_data_open(&self->data, file.data, file.size, verification, &error);
    if (code != PT_ERROR_OK) {
        self->data.data = NULL;
        pt_raise(self->owner, &error);
    }
    return mp_const_none;
}

pt_file *pt_get_file(mp_obj_t file, const mp_obj_type_t *type) {
    pt_check_type(file, type);
    pt_file *self = MP_OBJ_TO_PTR(file);
    pt_span memory = {(void *)(uintptr_t)self->data.data, self->data.size, true};
    if (!memory.data) {
        pt_refuse(self->owner, PT_ERROR_INVALID_STATE, subject_of(self), PT_NO_INDEX,
                  "is not open; make it by load");
    }
    if (self->is_resizable && pt_has_moved(self->anchor, &memory)) {
        pt_refuse(self->owner, PT_ERROR_INVALID_STATE, subject_of(self), PT_NO_INDEX,
                  "has been resized since it was passed; keep its size, and open it "
                  "again");
    }
    return self;
}

static const pt_file *get_program(mp_obj_t program) {
    return pt_get_file(program, &pt_program_type);
}

void *pt_start_of_file(const pt_file *file) {
    return file->is_resizable ? (void *)(uintptr_t)file->data.data : file->anchor;
}

// ---- named data, which .ptm files do not have

#if PT_HAS_PROGRAMS

static const pt_file *get_either(mp_obj_t file) {
    return mp_obj_is_type(file, &pt_data_type) ? pt_get_file(file, &pt_data_type)
                                               : get_program(file);
}

// Returns a read-only memoryview of a part of a file: `view`, or a new one if it is None.
static mp_obj_t show_part(const pt_file *file, pt_span part, mp_obj_t view) {
    return pt_show(view, pt_start_of_file(file), part.data, part.size, 'B', false);
}

static mp_obj_t file_num_keys(mp_obj_t self_in) {
    const pt_file *self = get_either(self_in);
    return pt_small_int(is_program(self) ? pt_named_data_count(&self->program)
                                         : pt_data_keys(&self->data));
}

static mp_obj_t file_key(mp_obj_t self_in, mp_obj_t i) {
    const pt_file *self = get_either(self_in);
    pt_text key;
    if (!is_program(self)) {
        return pt_bytes(pt_data_key(&self->data, pt_index(self->owner, i)));
    }
    PT_CALL(self->owner, pt_named_data_key(&self->program, pt_index(self->owner, i), &key, &error));
    return pt_bytes(key);
}

static mp_obj_t file_find_key(mp_obj_t self_in, mp_obj_t key_in) {
    const pt_file *self = get_either(self_in);
    pt_text key = pt_text_of(self->owner, key_in);
    int32_t i;
    if (!is_program(self)) {
        return pt_small_int(pt_data_find(&self->data, key.data, key.length));
    }
    PT_CALL(self->owner, pt_named_data_find(&self->program, key.data, key.length, &i, &error));
    return pt_small_int(i);
}

static mp_obj_t file_data(mp_obj_t self_in, mp_obj_t i, mp_obj_t view) {
    const pt_file *self = get_either(self_in);
    pt_span part;
    if (!is_program(self)) {
        return show_part(self, pt_data_bytes(&self->data, pt_index(self->owner, i)), view);
    }
    PT_CALL(self->owner, pt_named_data(&self->program, pt_index(self->owner, i), &part, &error));
    return show_part(self, part, view);
}

#else

static mp_obj_t file_num_keys(mp_obj_t self) {
    get_program(self);
    return MP_OBJ_NEW_SMALL_INT(0);
}

static mp_obj_t file_find_key(mp_obj_t self_in, mp_obj_t key) {
    pt_text_of(get_program(self_in)->owner, key);
    return MP_OBJ_NEW_SMALL_INT(-1);
}

#endif

// ---- Program

static mp_obj_t program_num_methods(mp_obj_t self) {
    return pt_small_int(pt_program_methods(&get_program(self)->program));
}

static mp_obj_t program_find(mp_obj_t self_in, mp_obj_t name_in) {
    const pt_file *self = get_program(self_in);
    pt_text name = pt_text_of(self->owner, name_in);
    pt_method_meta meta;
    PT_CALL(self->owner,
            pt_method_meta_find(&meta, &self->program, name.data, name.length, &error));
    return MP_OBJ_NEW_SMALL_INT(meta.index);
}

// Returns the object of the program that meta describes.
static const pt_file *file_of(const pt_method_meta *meta) {
    return (const pt_file *)(const void *)meta->program;
}

pt_method_meta pt_get_method_meta(mp_obj_t program, mp_obj_t i) {
    const pt_file *file = get_program(program);
    pt_method_meta meta;
    PT_CALL(file->owner,
            pt_method_meta_at(&meta, &file->program, pt_index(file->owner, i), &error));
    return meta;
}

static mp_obj_t program_method_name(mp_obj_t self, mp_obj_t method) {
    pt_method_meta p = pt_get_method_meta(self, method);
    return pt_bytes(pt_method_meta_name(&p));
}

static mp_obj_t program_count(mp_obj_t self, mp_obj_t method, mp_obj_t what) {
    pt_method_meta p = pt_get_method_meta(self, method);
    return pt_small_int(pt_method_meta_count(&p, (pt_section)mp_obj_get_int(what)));
}

static mp_obj_t program_buffer_size(mp_obj_t self, mp_obj_t method, mp_obj_t i) {
    pt_method_meta p = pt_get_method_meta(self, method);
    uint32_t size;
    PT_CALL(file_of(&p)->owner,
            pt_method_meta_buffer(&p, pt_index(file_of(&p)->owner, i), &size, &error));
    return pt_small_int(size);
}

// ---- values: the arguments are program, method, what and i

static pt_evalue mp_program_find_item(const pt_method_meta *meta, const mp_obj_t *args,
                                      uint32_t *value) {
    pt_section what = (pt_section)mp_obj_get_int(args[2]);
    pt_evalue item;
    PT_CALL(file_of(meta)->owner,
            pt_method_meta_evalue(meta, what, pt_index(file_of(meta)->owner, args[3]), value, &item,
                                  &error));
    return item;
}

static mp_obj_t program_item(size_t n_args, const mp_obj_t *args) {
    pt_method_meta p = pt_get_method_meta(args[0], args[1]);
    uint32_t value;
    pt_evalue item = mp_program_find_item(&p, args, &value);
    mp_obj_t constant = mp_const_none;
    if (item.type == PT_TYPE_STRING) {
        constant = pt_bytes(item.text);
    } else if (item.type >= PT_TYPE_INT && item.type <= PT_TYPE_DOUBLE) {
        constant = pt_number(item.number, mp_const_none);
    }
    mp_obj_t items[] = {pt_small_int(value), MP_OBJ_NEW_SMALL_INT(item.type), constant,
                        mp_obj_new_bool(pt_has_name(&p, &item))};
    return mp_obj_new_tuple(MP_ARRAY_SIZE(items), items);
}

static mp_obj_t program_tensor(size_t n_args, const mp_obj_t *args) {
    pt_method_meta p = pt_get_method_meta(args[0], args[1]);
    pt_evalue item = mp_program_find_item(&p, args, NULL);
    pt_tensor_info info;
    PT_CALL(file_of(&p)->owner, pt_method_meta_tensor(&p, &item, &info, &error));
    return pt_tensor_tuple(&info);
}

// ---- operators and instructions

static mp_obj_t program_operator(mp_obj_t self, mp_obj_t method, mp_obj_t i) {
    pt_method_meta p = pt_get_method_meta(self, method);
    pt_text name, overload;
    int32_t number;
    PT_CALL(file_of(&p)->owner, pt_method_meta_operator(&p, pt_index(file_of(&p)->owner, i), &name,
                                                        &overload, &number, &error));
    mp_obj_t items[] = {pt_bytes(name), pt_bytes(overload), pt_small_int(number)};
    return mp_obj_new_tuple(MP_ARRAY_SIZE(items), items);
}

static mp_obj_t program_instruction_operator(mp_obj_t self, mp_obj_t method, mp_obj_t i) {
    pt_method_meta p = pt_get_method_meta(self, method);
    return pt_small_int(pt_method_meta_called_operator(&p, pt_index(file_of(&p)->owner, i)));
}

static mp_obj_t program_views(mp_obj_t self, mp_obj_t method) {
    pt_method_meta p = pt_get_method_meta(self, method);
    mp_obj_t views = mp_obj_new_list(0, NULL);
    for (pt_instruction_walk walk = pt_instruction_walk_start(&p);
         pt_instruction_walk_next(&walk);) {
        int32_t view = pt_instruction_walk_view(&walk);
        if (view >= 0) {
            mp_obj_list_append(views, pt_small_int(view));
        }
    }
    return views;
}

// ---- delegates: the first arguments are program, method and i

#if PT_HAS_PROGRAMS

static mp_obj_t program_backend(mp_obj_t self, mp_obj_t method, mp_obj_t i) {
    pt_method_meta p = pt_get_method_meta(self, method);
    return pt_bytes(pt_method_meta_backend(&p, pt_index(file_of(&p)->owner, i)));
}

static mp_obj_t program_has_backend(size_t n_args, const mp_obj_t *args) {
    pt_method_meta p = pt_get_method_meta(args[0], args[1]);
    pt_text name = pt_text_of(file_of(&p)->owner, args[3]),
            backend = pt_method_meta_backend(&p, pt_index(file_of(&p)->owner, args[2]));
    return mp_obj_new_bool(pt_text_is(backend, name.data, name.length));
}

static pt_delegate_info mp_program_find_delegate(const pt_method_meta *meta, mp_obj_t i) {
    pt_delegate_info info;
    PT_CALL(file_of(meta)->owner,
            pt_method_meta_delegate(meta, pt_index(file_of(meta)->owner, i), &info, &error));
    return info;
}

static mp_obj_t program_processed(size_t n_args, const mp_obj_t *args) {
    pt_method_meta p = pt_get_method_meta(args[0], args[1]);
    return show_part(file_of(&p), mp_program_find_delegate(&p, args[2]).processed, args[3]);
}

static mp_obj_t program_num_specs(mp_obj_t self, mp_obj_t method, mp_obj_t i) {
    pt_method_meta p = pt_get_method_meta(self, method);
    return pt_small_int(mp_program_find_delegate(&p, i).n_specs);
}

static mp_obj_t program_spec(size_t n_args, const mp_obj_t *args) {
    pt_method_meta p = pt_get_method_meta(args[0], args[1]);
    pt_delegate_info info = mp_program_find_delegate(&p, args[2]);
    pt_text key;
    pt_span part;
    pt_compile_spec(&p, &info, pt_index(file_of(&p)->owner, args[3]), &key, &part);
    mp_obj_t items[] = {pt_bytes(key), show_part(file_of(&p), part, mp_const_none)};
    return mp_obj_new_tuple(MP_ARRAY_SIZE(items), items);
}

static mp_obj_t program_find_spec(size_t n_args, const mp_obj_t *args) {
    pt_method_meta p = pt_get_method_meta(args[0], args[1]);
    pt_delegate_info info = mp_program_find_delegate(&p, args[2]);
    pt_text key = pt_text_of(file_of(&p)->owner, args[3]);
    pt_span part;
    return pt_find_spec(&p, &info, key.data, key.length, &part)
               ? show_part(file_of(&p), part, args[4])
               : mp_const_none;
}

#endif

static const mp_rom_map_elem_t program_locals_table[] = {PT_3(program, count),
                                                         PT_2(program, find),
                                                         PT_VAR(program, item, 4, 4),
                                                         PT_VAR(program, tensor, 4, 4),
                                                         PT_3(program, buffer_size),
                                                         PT_3(file, open),
                                                         PT_1(program, num_methods),
                                                         PT_2(program, method_name),
                                                         PT_3(program, operator),
                                                         PT_3(program, instruction_operator),
                                                         PT_2(program, views),
#if PT_HAS_PROGRAMS
                                                         PT_3(program, backend),
                                                         PT_VAR(program, has_backend, 4, 4),
                                                         PT_VAR(program, processed, 4, 4),
                                                         PT_3(program, num_specs),
                                                         PT_VAR(program, spec, 4, 4),
                                                         PT_VAR(program, find_spec, 5, 5),
                                                         PT_2(file, key),
                                                         PT_3(file, data),
#endif
                                                         PT_1(file, num_keys),
                                                         PT_2(file, find_key)};
static MP_DEFINE_CONST_DICT(program_locals, program_locals_table);

MP_DEFINE_CONST_OBJ_TYPE(pt_program_type, MP_QSTR_Program, MP_TYPE_FLAG_NONE, make_new,
                         file_make_new, locals_dict, &program_locals);

// ---- Data

#if PT_HAS_PROGRAMS

static mp_obj_t data_tensor(mp_obj_t self_in, mp_obj_t i) {
    const pt_file *self = pt_get_file(self_in, &pt_data_type);
    pt_tensor_info info;
    PT_CALL(self->owner, pt_data_tensor(&self->data, pt_index(self->owner, i), &info, &error));
    return pt_tensor_tuple(&info);
}

static const mp_rom_map_elem_t data_locals_table[] = {PT_3(file, open),   PT_1(file, num_keys),
                                                      PT_2(file, key),    PT_2(file, find_key),
                                                      PT_2(data, tensor), PT_3(file, data)};
static MP_DEFINE_CONST_DICT(data_locals, data_locals_table);

MP_DEFINE_CONST_OBJ_TYPE(pt_data_type, MP_QSTR_Data, MP_TYPE_FLAG_NONE, make_new, file_make_new,
                         locals_dict, &data_locals);

#endif
