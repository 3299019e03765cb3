// The description of a method in its program, a .pte or a .ptm file: inputs, outputs and memory
// needs, before it is loaded.
#include "core/format/format.h"
#include "core/format/program.h"
#include "core/report.h"

static int method_meta_no_such(pt_error *error, uint8_t subject, uint32_t index) {
    return pt_report(error, PT_ERROR_INVALID_ARGUMENT, subject, (int32_t)index,
                     "does not exist; count from 0");
}

int pt_check_file(const void *data, uint32_t size, uint8_t subject, pt_error *error) {
    if (size > PT_MEMORY_LIMIT) {
        return pt_report_bytes(error, PT_ERROR_NOT_SUPPORTED, subject, PT_NO_INDEX, size,
                               PT_MEMORY_LIMIT, "files above 128 MiB");
    }
    if ((uintptr_t)data % PT_ALIGNMENT) {
        return pt_report(error, PT_ERROR_INVALID_ARGUMENT, subject, PT_NO_INDEX,
                         "does not start at a multiple of 8 bytes; align it");
    }
    return PT_ERROR_OK;
}

int pt_open(pt_program *p, const void *data, uint32_t size, pt_verification verification,
            pt_error *error) {
    const pt_description *last = NULL;
    for (uint32_t i = 0; i < PT_FORMAT_END; i++) {
        const pt_description *found = pt_descriptions[i];
        last = found ? found : last;
        if (found && found->begins(data, size)) {
            break;
        }
    }
    return last->open(p, data, size, verification, error);
}

// ---- finding a method

uint32_t pt_program_methods(const pt_program *p) {
    pt_reader r = pt_program_reader(p);
    return pt_length(&r, p->plans);
}

int pt_method_meta_at(pt_method_meta *meta, const pt_program *p, uint32_t i, pt_error *error) {
    if (i >= pt_program_methods(p)) {
        return pt_report(error, PT_ERROR_NOT_FOUND, PT_SUBJECT_METHOD, (int32_t)i,
                         "does not exist; count from 0");
    }
    return pt_describe(p)->at(meta, p, i, error);
}

int pt_method_meta_find(pt_method_meta *meta, const pt_program *p, const char *name,
                        uint32_t length, pt_error *error) {
    return p->format->find(meta, p, name, length, error);
}

pt_text pt_method_meta_name(const pt_method_meta *meta) {
    return pt_describe(meta->program)->name(meta);
}

// ---- numbers of items

uint32_t pt_method_meta_count(const pt_method_meta *meta, pt_section what) {
    pt_reader r = pt_program_reader(meta->program);
    uint32_t n;
    switch (what) {
    case PT_VALUES:
        return pt_length(&r, meta->values);
    case PT_INPUTS:
        return pt_length(&r, meta->inputs);
    case PT_OUTPUTS:
        return pt_length(&r, meta->outputs);
    case PT_OPERATORS:
        return pt_length(&r, meta->operators);
    case PT_DELEGATES:
        return pt_length(&r, meta->delegates);
    case PT_PLANNED_BUFFERS: // the first buffer of the file is reserved
        n = pt_length(&r, meta->planned);
        return n ? n - 1 : 0;
    default:
        return meta->program->format->count(meta, what);
    }
}

int pt_method_meta_buffer(const pt_method_meta *meta, uint32_t i, uint32_t *size, pt_error *error) {
    pt_reader r = pt_program_reader(meta->program);
    if (i >= pt_method_meta_count(meta, PT_PLANNED_BUFFERS)) {
        return method_meta_no_such(error, PT_SUBJECT_PLANNED_BUFFER, i);
    }
    int64_t bytes = pt_i64_at(&r, pt_evalue_at(&r, meta->planned, i + 1, 8));
    if (r.bad) {
        return pt_report_outside(error);
    }
    if (bytes < 0) {
        return pt_report(error, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_PLANNED_BUFFER, (int32_t)i,
                         "has a negative size");
    }
    *size = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
    return PT_ERROR_OK;
}

// ---- values

int pt_value_index(const pt_method_meta *meta, pt_section what, uint32_t i, uint32_t *index,
                   pt_error *error) {
    pt_reader r = pt_program_reader(meta->program);
    uint32_t n = pt_length(&r, meta->values);
    *index = i;
    if (what != PT_VALUES) {
        uint32_t vector = what == PT_INPUTS ? meta->inputs : meta->outputs;
        if (i >= pt_length(&r, vector)) {
            return pt_report(error, PT_ERROR_INVALID_ARGUMENT,
                             what == PT_INPUTS ? PT_SUBJECT_INPUT : PT_SUBJECT_OUTPUT, (int32_t)i,
                             (int32_t)i < 0 ? "is negative; count from 0"
                                            : "does not exist; count from 0");
        }
        *index = (uint32_t)pt_i32_item(&r, vector, i);
    }
    if (r.bad) {
        return pt_report_outside(error);
    }
    return *index < n ? PT_ERROR_OK
                      : pt_report(error, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_VALUE,
                                  (int32_t)*index, "there is no such value");
}

int pt_method_meta_evalue(const pt_method_meta *meta, pt_section what, uint32_t i, uint32_t *index,
                          pt_evalue *item, pt_error *error) {
    uint32_t found;
    PT_TRY(pt_value_index(meta, what, i, &found, error));
    if (index) {
        *index = found;
    }
    return meta->program->format->item(meta, found, item, error);
}

int64_t pt_list_entry(const pt_method_meta *meta, const pt_evalue *list, uint32_t i) {
    return pt_describe(meta->program)->entry(meta, list, i);
}

int pt_method_meta_tensor(const pt_method_meta *meta, const pt_evalue *item, pt_tensor_info *info,
                          pt_error *error) {
    if (item->type != PT_TYPE_TENSOR) {
        return pt_report(error, PT_ERROR_INVALID_ARGUMENT, PT_SUBJECT_VALUE, PT_NO_INDEX,
                         "is not a tensor");
    }
    return meta->program->format->tensor(meta, item, info, error);
}

bool pt_has_name(const pt_method_meta *meta, const pt_evalue *item) {
    return pt_describe(meta->program)->has_name(meta, item);
}

int pt_find_attribute(const pt_method_meta *meta, const char *name, uint32_t length,
                      uint32_t *value, pt_error *error) {
    bool is_found = pt_describe(meta->program)->find_attribute(meta, name, length, value);
    return is_found ? PT_ERROR_OK
                    : pt_report(error, PT_ERROR_NOT_FOUND, PT_SUBJECT_ATTRIBUTE, PT_NO_INDEX,
                                "no parameter or buffer of this name; use a fully qualified "
                                "name that the program keeps");
}

// ---- operators and instructions

int pt_method_meta_operator(const pt_method_meta *meta, uint32_t i, pt_text *name,
                            pt_text *overload, int32_t *number, pt_error *error) {
    if (i >= pt_method_meta_count(meta, PT_OPERATORS)) {
        return method_meta_no_such(error, PT_SUBJECT_OPERATOR, i);
    }
    return pt_describe(meta->program)->find_operator(meta, i, name, overload, number, error);
}

pt_instruction_walk pt_instruction_walk_start(const pt_method_meta *meta) {
    return (pt_instruction_walk){.meta = meta, .index = UINT32_MAX};
}

bool pt_instruction_walk_next(pt_instruction_walk *w) {
    return pt_describe(w->meta->program)->walk_next(w);
}

int32_t pt_instruction_walk_argument(const pt_instruction_walk *w, uint32_t k) {
    return pt_describe(w->meta->program)->walk_argument(w, k);
}

int32_t pt_instruction_walk_view(const pt_instruction_walk *w) {
    return pt_describe(w->meta->program)->walk_view(w);
}

int32_t pt_method_meta_called_operator(const pt_method_meta *meta, uint32_t i) {
    for (pt_instruction_walk walk = pt_instruction_walk_start(meta);
         pt_instruction_walk_next(&walk);) {
        if (walk.index == i) {
            return walk.kind == PT_INSTRUCTION_KERNEL_CALL ? walk.target : -1;
        }
    }
    return -1;
}
