#include "outputs.h"
#include "run_report.h"
#include "run_settings.h"
#include "semihosting.h"
#include <string.h>

enum { MAX_OUTPUTS = 64 };

typedef struct unplanned {
    pt_text name; // name of a mutable buffer
    uint32_t output;
    pt_span memory;
} unplanned;

static pt_value_view views[MAX_OUTPUTS];
static bool is_dynamic[MAX_OUTPUTS];
static uint32_t n_outputs;
static unplanned memories[PT_MEMORIES]; // more than a method can have
static uint32_t n_memories;
static pt_text attribute;

pt_text outputs_attribute(void) {
    return attribute;
}

static int bare_outputs_refuse(uint8_t subject, int32_t index, pt_error *error) {
    *error = (pt_error){
        PT_ERROR_OUT_OF_RESOURCES,       subject, PT_NO_INDEX, index, PT_NO_BYTES, PT_NO_BYTES,
        "is more than there is room for"};
    return error->code;
}

// ---- memory of unplanned tensors

static int bare_outputs_add(uint8_t subject, int32_t index, pt_text name, uint32_t nbytes,
                            arena *from, pt_error *error) {
    if (n_memories == PT_MEMORIES) {
        return bare_outputs_refuse(subject, index, error);
    }
    unplanned *one = &memories[n_memories];
    *one = (unplanned){.name = name, .output = (uint32_t)index};
    attribute = name;
    PT_TRY(arena_allocate(from, nbytes, subject, index, &one->memory, error));
    n_memories++;
    return PT_ERROR_OK;
}

static bool needs_memory(const pt_tensor_info *info) {
    return !info->is_planned && !info->is_constant && info->nbytes > 0;
}

// True for a value that is an input, or a view of another value.
static bool has_memory(const pt_method_meta *meta, uint32_t value, pt_error *error) {
    uint32_t n = pt_method_meta_count(meta, PT_INPUTS), other;
    pt_evalue item;
    for (uint32_t i = 0; i < n; i++) {
        if (!pt_method_meta_evalue(meta, PT_INPUTS, i, &other, &item, error) && other == value) {
            return true;
        }
    }
    pt_instruction_walk walk = pt_instruction_walk_start(meta);
    while (pt_instruction_walk_next(&walk)) {
        if (pt_instruction_walk_view(&walk) == (int32_t)value) {
            return true;
        }
    }
    return false;
}

static int prepare_output(const pt_method_meta *meta, uint32_t i, arena *from, pt_error *error) {
    pt_tensor_info info;
    pt_evalue item;
    uint32_t value;
    PT_TRY(pt_method_meta_evalue(meta, PT_OUTPUTS, i, &value, &item, error));
    is_dynamic[i] = false;
    if (item.type != PT_TYPE_TENSOR) {
        return PT_ERROR_OK;
    }
    PT_TRY(pt_method_meta_tensor(meta, &item, &info, error));
    is_dynamic[i] = info.dynamism != 0;
    if (!needs_memory(&info) || has_memory(meta, value, error)) {
        return PT_ERROR_OK;
    }
    return bare_outputs_add(PT_SUBJECT_OUTPUT, (int32_t)i, (pt_text){"", 0}, info.nbytes, from,
                            error);
}

static int prepare_attribute(const pt_method_meta *meta, uint32_t i, arena *from, pt_error *error) {
    pt_tensor_info info;
    pt_evalue item;
    PT_TRY(pt_method_meta_evalue(meta, PT_VALUES, i, NULL, &item, error));
    if (item.type != PT_TYPE_TENSOR || !pt_has_name(meta, &item)) {
        return PT_ERROR_OK;
    }
    PT_TRY(pt_method_meta_tensor(meta, &item, &info, error));
    if (!needs_memory(&info)) {
        return PT_ERROR_OK;
    }
    PT_TRY(
        bare_outputs_add(PT_SUBJECT_ATTRIBUTE, PT_NO_INDEX, info.name, info.nbytes, from, error));
    memset(memories[n_memories - 1].memory.data, 0, info.nbytes);
    return PT_ERROR_OK;
}

int outputs_set_up(const pt_method_meta *meta, arena *from, pt_error *error) {
    n_outputs = pt_method_meta_count(meta, PT_OUTPUTS);
    if (n_outputs > MAX_OUTPUTS) {
        return bare_outputs_refuse(PT_SUBJECT_OUTPUT, MAX_OUTPUTS, error);
    }
    for (uint32_t i = 0; i < n_outputs; i++) {
        PT_TRY(prepare_output(meta, i, from, error));
    }
    uint32_t n_values = pt_method_meta_count(meta, PT_VALUES);
    for (uint32_t i = 0; i < n_values; i++) {
        PT_TRY(prepare_attribute(meta, i, from, error));
    }
    return PT_ERROR_OK;
}

int outputs_attach(pt_method *method, pt_error *error) {
    for (uint32_t i = 0; i < n_memories; i++) {
        pt_input_buffer buffer = {.data = memories[i].memory};
        attribute = memories[i].name;
        PT_TRY(attribute.length
                   ? pt_set_attribute(method, attribute.data, attribute.length, &buffer, error)
                   : pt_set_output(method, memories[i].output, &buffer, error));
    }
    return PT_ERROR_OK;
}

// ---- the outputs of an execution

int outputs_get(const pt_method *method, pt_error *error) {
    for (uint32_t i = 0; i < n_outputs; i++) {
        PT_TRY(pt_output(method, i, &views[i], error));
    }
    return PT_ERROR_OK;
}

// Writes values in the format of host/picotorch/run/bare.py: Python's numbers and names, and calls
// of bits, text and items.
static int report_value(const pt_method *method, const pt_value_view *view, pt_error *error);

static int report_list(const pt_method *method, const pt_value_view *view, pt_error *error) {
    pt_value_view item;
    report_text("[");
    for (uint32_t i = 0; i < view->list.count; i++) {
        PT_TRY(pt_list_view(method, &view->list, i, &item, error));
        PT_TRY(report_value(method, &item, error)); // the item is no list
        report_text(",");
    }
    report_text("]");
    return PT_ERROR_OK;
}

static int report_value(const pt_method *method, const pt_value_view *view, pt_error *error) {
    switch (view->type) {
    case PT_TYPE_NULL:
        report_text("None");
        break;
    case PT_TYPE_INT:
        report_hex(view->number.as.i);
        break;
    case PT_TYPE_BOOL:
        report_text(view->number.as.i ? "True" : "False");
        break;
    case PT_TYPE_DOUBLE:
        report_text("bits(");
        report_hex(view->number.as.i);
        report_text(")");
        break;
    case PT_TYPE_STRING:
        report_text("text('");
        report_digits(view->text.data, view->text.length);
        report_text("')");
        break;
    case PT_TYPE_TENSOR:
        report_text("items('");
        report_text((char[2]){pt_typecode(view->tensor.dtype)});
        report_text("','");
        report_digits(view->tensor.data, view->nbytes);
        report_text("')");
        break;
    default:
        return report_list(method, view, error);
    }
    return PT_ERROR_OK;
}

int outputs_write(const pt_method *method, uint32_t number, pt_error *error) {
    for (uint32_t i = 0; i < n_outputs; i++) {
        const pt_value_view *view = &views[i];
        if (view->type == PT_TYPE_TENSOR) {
            pt_write_file(name_of("out", (int32_t)i, number).text, view->tensor.data, view->nbytes);
            if (is_dynamic[i]) {
                pt_write_file(name_of("sizes", (int32_t)i, number).text, view->tensor.sizes,
                              4u * view->tensor.rank);
            }
        } else if (number == 0) {
            report_text(name_of("output", (int32_t)i, 0).text);
            report_text("=");
            PT_TRY(report_value(method, view, error));
            report_text("\n");
        }
    }
    return PT_ERROR_OK;
}
