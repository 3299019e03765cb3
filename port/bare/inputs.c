#include "inputs.h"
#include "run_settings.h"
#include <string.h>

enum { MAX_INPUTS = 64 };

typedef struct input {
    bool is_tensor;
    bool is_constant;
    pt_input_buffer buffer;
    pt_evalue constant;
    pt_span copy;
    int32_t sizes[PT_MAX_RANK];
} input;

static input inputs[MAX_INPUTS];
static uint32_t n_inputs;

// Parses a setting: int:3, double:4607182418800017408 (the bits of the double), bool:1, str:x or
// none.
static pt_evalue constant_of(pt_text text) {
    pt_evalue item = {0};
    item.type = PT_TYPE_NULL;
    if (skip_prefix(&text, "str:")) {
        item.type = PT_TYPE_STRING;
        item.text = text;
    } else if (skip_prefix(&text, "int:")) {
        item.type = PT_TYPE_INT;
    } else if (skip_prefix(&text, "bool:")) {
        item.type = PT_TYPE_BOOL;
    } else if (skip_prefix(&text, "double:")) {
        item.type = PT_TYPE_DOUBLE;
    }
    item.number = (pt_scalar){.type = item.type, .as.i = parse_number(&text)};
    return item;
}

// True for an input that the method also returns as an output in place.
static bool may_change(const pt_method_meta *meta, uint32_t value, const pt_tensor_info *info,
                       pt_error *error) {
    uint32_t n = pt_method_meta_count(meta, PT_OUTPUTS), other;
    pt_evalue item;
    for (uint32_t k = 0; k < n && !info->is_planned; k++) {
        if (!pt_method_meta_evalue(meta, PT_OUTPUTS, k, &other, &item, error) && other == value) {
            return true;
        }
    }
    return false;
}

// Parses sizes "2,3" of a dynamic tensor.
static void read_sizes(input *one, pt_text text, const pt_tensor_info *info) {
    uint32_t rank = 0;
    while (text.length && rank < PT_MAX_RANK) {
        one->sizes[rank++] = (int32_t)parse_number(&text);
        skip_prefix(&text, ",");
    }
    one->buffer.has_shape = true;
    one->buffer.rank = (uint8_t)rank;
    one->buffer.sizes = one->sizes;
    one->buffer.dtype = info->dtype;
    one->buffer.dim_order = info->dim_order;
}

static int prepare_tensor(const pt_method_meta *meta, uint32_t i, uint32_t number, pt_span data,
                          arena *from, pt_error *error) {
    input *one = &inputs[i];
    pt_tensor_info info;
    pt_evalue item;
    pt_text sizes;
    uint32_t value;
    PT_TRY(pt_method_meta_evalue(meta, PT_INPUTS, i, &value, &item, error));
    PT_TRY(pt_method_meta_tensor(meta, &item, &info, error));
    if (may_change(meta, value, &info, error)) {
        if (one->copy.size < data.size) {
            PT_TRY(
                arena_allocate(from, data.size, PT_SUBJECT_INPUT, (int32_t)i, &one->copy, error));
        }
        memcpy(one->copy.data, data.data, data.size);
        data = (pt_span){one->copy.data, data.size, false};
    }
    one->is_tensor = true;
    one->buffer = (pt_input_buffer){.data = data};
    if (setting_find(name_of("sizes", (int32_t)i, number).text, &sizes)) {
        read_sizes(one, sizes, &info);
    }
    return PT_ERROR_OK;
}

int inputs_set_up(const pt_method_meta *meta, uint32_t number, arena *from, pt_error *error) {
    n_inputs = pt_method_meta_count(meta, PT_INPUTS);
    if (n_inputs > MAX_INPUTS) {
        *error = (pt_error){PT_ERROR_OUT_OF_RESOURCES,
                            PT_SUBJECT_INPUT,
                            PT_NO_INDEX,
                            MAX_INPUTS,
                            PT_NO_BYTES,
                            PT_NO_BYTES,
                            "is more than there is room for"};
        return error->code;
    }
    for (uint32_t i = 0; i < n_inputs; i++) {
        pt_span data;
        pt_text constant;
        inputs[i].is_tensor = inputs[i].is_constant = false;
        if (section_find(name_of("in", (int32_t)i, number).text, &data)) {
            PT_TRY(prepare_tensor(meta, i, number, data, from, error));
        } else if (setting_find(name_of("input", (int32_t)i, number).text, &constant)) {
            inputs[i].is_constant = true;
            inputs[i].constant = constant_of(constant);
        }
    }
    return PT_ERROR_OK;
}

int inputs_set(pt_method *method, pt_error *error) {
    for (uint32_t i = 0; i < n_inputs; i++) {
        input *one = &inputs[i];
        if (one->is_tensor) {
            PT_TRY(pt_give_input(method, i, &one->buffer, error));
        } else if (one->is_constant) {
            PT_TRY(pt_set_constant_input(method, i, &one->constant, error));
        }
    }
    return PT_ERROR_OK;
}
