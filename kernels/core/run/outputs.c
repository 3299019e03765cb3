// The current values of a loaded method: outputs, attributes, items of lists, arguments of
// delegates.
#include "core/format/program.h"
#include "core/method.h"
#include "core/record.h"
#include "core/report.h"

typedef struct query {
    const pt_method *m;
    uint8_t subject;
    int32_t index;
    pt_error *error;
} query;

static int outputs_refuse(const query *q, int code, const char *what) {
    return pt_report(q->error, code, q->subject, q->index, what);
}

// Reads the tensor whose record is at `ref`; `no_memory` is the remedy for a tensor without memory.
static int view_tensor(const query *q, pt_ref ref, const char *no_memory, pt_value_view *view) {
    const pt_method *m = q->m;
    const pt_context *c = &m->c;
    const pt_value *value = (const pt_value *)(const void *)pt_at(c, ref);
    view->type = PT_TYPE_TENSOR;
    view->tensor = pt_get_tensor(c, ref);
    view->nbytes = pt_nbytes(&view->tensor);
    view->memory = value->data >> PT_REF_OFFSET_BITS;
    if (view->memory >= m->first_external && !(m->has_memory >> view->memory & 1)) {
        return outputs_refuse(q, PT_ERROR_INVALID_STATE, no_memory);
    }
    if (view->nbytes == 0) { // a tensor without bytes has no memory
        view->memory = PT_MEMORY_POOL;
        view->tensor.data = c->memory[PT_MEMORY_POOL];
    }
    uint32_t offset = (uint32_t)((uint8_t *)view->tensor.data - c->memory[view->memory]);
    return offset <= c->memory_size[view->memory] &&
                   view->nbytes <= c->memory_size[view->memory] - offset
               ? PT_ERROR_OK
               : outputs_refuse(q, PT_ERROR_INVALID_PROGRAM, "lies outside its memory");
}

static int view_value(const query *q, uint32_t index, const char *no_memory, pt_value_view *view) {
    const pt_context *c = &q->m->c;
    pt_evalue item;
    pt_ref tensor = pt_find_value(c, index);
    if (tensor) {
        return view_tensor(q, tensor, no_memory, view);
    }
    PT_TRY(pt_method_meta_evalue(&q->m->meta, PT_VALUES, index, NULL, &item, q->error));
    *view = (pt_value_view){
        .type = item.type, .number = item.number, .text = item.text, .list = item, .value = index};
    if (item.type == PT_TYPE_TENSOR) {
        return outputs_refuse(q, PT_ERROR_INVALID_PROGRAM, "is not a tensor");
    }
    if (item.type == PT_TYPE_NONE || item.type > PT_TYPE_OPTIONAL_TENSOR_LIST) {
        return pt_report(q->error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_VALUE, (int32_t)index,
                         "is of an unknown type");
    }
    pt_ref variable = item.type <= PT_TYPE_DOUBLE ? pt_find_variable(c, index) : 0;
    if (variable) { // an instruction writes the number
        view->number = pt_get_scalar(c, variable);
        view->type = view->number.type;
    }
    return PT_ERROR_OK;
}

int pt_output(const pt_method *m, uint32_t i, pt_value_view *view, pt_error *error) {
    query q = {m, PT_SUBJECT_OUTPUT, (int32_t)i, error};
    uint32_t index;
    PT_TRY(pt_check_loaded(m, error));
    PT_TRY(pt_value_index(&m->meta, PT_OUTPUTS, i, &index, error));
    return view_value(&q, index, "has no memory; set the memory of the output", view);
}

// ---- attributes

int pt_attribute(const pt_method *m, const char *name, uint32_t length, pt_value_view *view,
                 pt_error *error) {
    query q = {m, PT_SUBJECT_ATTRIBUTE, PT_NO_INDEX, error};
    uint32_t index;
    PT_TRY(pt_check_loaded(m, error));
    PT_TRY(pt_find_attribute(&m->meta, name, length, &index, error));
    return view_value(&q, index, "has no memory; set the memory of the attribute", view);
}

// ---- items of lists

// Checks the kind of an item of a list of tensors, or of ints.
static int check_entry(const query *q, uint8_t list, int64_t index, const pt_value_view *view) {
    if (list != PT_TYPE_INT_LIST) {
        bool is_none = view->type == PT_TYPE_NULL && list == PT_TYPE_OPTIONAL_TENSOR_LIST;
        return view->type == PT_TYPE_TENSOR || is_none
                   ? PT_ERROR_OK
                   : pt_report(q->error, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_VALUE, (int32_t)index,
                               "is not a tensor");
    }
    return view->type <= PT_TYPE_DOUBLE
               ? PT_ERROR_OK
               : outputs_refuse(q, PT_ERROR_INVALID_PROGRAM, "is not a value of this list");
}

int pt_list_view(const pt_method *m, const pt_evalue *list, uint32_t i, pt_value_view *view,
                 pt_error *error) {
    query q = {m, PT_SUBJECT_ITEM, (int32_t)i, error};
    PT_TRY(pt_check_loaded(m, error));
    if (i >= list->count) {
        return outputs_refuse(&q, PT_ERROR_INVALID_ARGUMENT, "does not exist");
    }
    int64_t entry = pt_list_entry(&m->meta, list, i);
    *view = (pt_value_view){.type = PT_TYPE_NULL};
    if (list->type == PT_TYPE_DOUBLE_LIST || list->type == PT_TYPE_BOOL_LIST) {
        view->type = list->type == PT_TYPE_BOOL_LIST ? PT_TYPE_BOOL : PT_TYPE_DOUBLE;
        view->number.type = view->type;
        view->number.as.i = entry;
        return PT_ERROR_OK;
    }
    if (list->type == PT_TYPE_OPTIONAL_TENSOR_LIST && entry < 0) {
        return PT_ERROR_OK;
    }
    if (list->type == PT_TYPE_TENSOR_LIST && entry < 0) {
        return check_entry(&q, list->type, PT_NO_INDEX, view);
    }
    int32_t index = entry < 0 || entry > INT32_MAX ? -1 : (int32_t)entry;
    PT_TRY(view_value(&q, (uint32_t)index, "has no memory; set the inputs first", view));
    return check_entry(&q, list->type, index, view);
}

// ---- arguments of the running delegate call

static pt_ref argument_ref(const pt_method *m, uint32_t i) {
    return pt_instruction_at(&m->c, m->c.position)->args[i];
}

int pt_argument(const pt_method *m, uint32_t i, pt_value_view *view, pt_error *error) {
    query q = {m, PT_SUBJECT_ARGUMENT, (int32_t)i, error};
    const pt_context *c = &m->c;
    if (i >= m->n_call) {
        return outputs_refuse(&q, PT_ERROR_INVALID_ARGUMENT, "does not exist");
    }
    pt_ref ref = argument_ref(m, i);
    if (pt_tensor_record(c, ref)) {
        return view_tensor(&q, ref, "has no memory", view);
    }
    const uint8_t *vector =
        pt_at(c, argument_ref(m, m->n_call)); // the program's vector of value indexes
    return view_value(&q, pt_read_u32(vector + 4 + 4 * i), "has no memory", view);
}

int pt_resize_argument(pt_method *m, uint32_t i, uint32_t rank, const int32_t *sizes,
                       pt_error *error) {
    query q = {m, PT_SUBJECT_ARGUMENT, (int32_t)i, error};
    pt_context *c = &m->c;
    if (i >= m->n_call || !pt_tensor_record(c, argument_ref(m, i))) {
        return outputs_refuse(&q, PT_ERROR_INVALID_ARGUMENT, "is not a tensor of this call");
    }
    if (rank > PT_MAX_RANK) {
        return pt_report(error, PT_ERROR_INVALID_ARGUMENT, PT_SUBJECT_SIZES, PT_NO_INDEX,
                         "are more than 16");
    }
    int code = pt_resize_tensor(c, argument_ref(m, i), rank, sizes);
    return code == PT_ERROR_OK ? code : outputs_refuse(&q, code, c->reason);
}
