// The description of a method in a .ptm file whose records were checked.
#include "core/format/format.h"
#include "core/format/program.h"
#include "core/format/ptm.h"
#include "core/report.h"

static const void *ptm_method_at(const pt_method_meta *meta, uint32_t position) {
    return meta->program->data + position;
}

static pt_text text_at(const pt_program *ptm, uint32_t position) {
    const void *characters;
    uint32_t length = pt_vector(ptm, position, &characters);
    return (pt_text){characters, length};
}

static const pt_method_record *ptm_method_record_of(const pt_method_meta *meta) {
    return ptm_method_at(meta, pt_ptm_method_of(meta)->record);
}

static const pt_value *ptm_method_values_of(const pt_method_meta *meta) {
    return ptm_method_at(meta, pt_offset_of(ptm_method_record_of(meta)->values));
}

// ---- finding a method

static pt_text ptm_method_name_of(const pt_method_meta *meta) {
    return text_at(meta->program, pt_ptm_method_of(meta)->name);
}

static int find_at(pt_method_meta *meta, const pt_program *ptm, uint32_t i, pt_error *error) {
    const void *positions;
    (void)error;
    pt_vector(ptm, ptm->plans, &positions);
    *meta =
        (pt_method_meta){.program = ptm, .index = i, .position = ((const uint32_t *)positions)[i]};
    const pt_ptm_method *method = pt_ptm_method_of(meta);
    meta->values = method->values;
    meta->inputs = method->inputs;
    meta->outputs = method->outputs;
    meta->operators = method->operators;
    meta->planned = method->planned;
    return PT_ERROR_OK;
}

static int ptm_method_find(pt_method_meta *meta, const pt_program *ptm, const char *name,
                           uint32_t length, pt_error *error) {
    uint32_t n = pt_program_methods(ptm);
    for (uint32_t i = 0; i < n; i++) {
        PT_TRY(find_at(meta, ptm, i, error));
        if (pt_text_is(ptm_method_name_of(meta), name, length)) {
            return PT_ERROR_OK;
        }
    }
    return pt_report_no_method(error);
}

static uint32_t ptm_method_count(const pt_method_meta *meta, pt_section what) {
    return what == PT_DELEGATE_ARGUMENTS ? 0 : ptm_method_record_of(meta)->n_instructions;
}

// ---- values

// Returns the record of value `index` among n records; NULL for none.
static const pt_value *ptm_method_search(const pt_value *values, uint32_t n, uint32_t index) {
    uint32_t i = pt_search_values(values, n, index);
    return i < n && values[i].index == index ? &values[i] : NULL;
}

static const pt_value *ptm_method_find_value(const pt_method_meta *meta, uint32_t index) {
    const pt_method_record *record = ptm_method_record_of(meta);
    const pt_ptm_method *method = pt_ptm_method_of(meta);
    const pt_value *values = ptm_method_values_of(meta);
    const pt_value *found = ptm_method_search(values, record->n_values, index);
    found = found ? found
                  : ptm_method_search(ptm_method_at(meta, method->changing), record->n_variables,
                                      index);
    return found ? found
                 : ptm_method_search(values + record->n_values,
                                     method->n_records - record->n_values, index);
}

static uint32_t position_of(const pt_method_meta *meta, const void *p) {
    return (uint32_t)((const uint8_t *)p - meta->program->data);
}

static int ptm_method_find_item(const pt_method_meta *meta, uint32_t index, pt_evalue *item,
                                pt_error *error) {
    (void)error;
    const pt_value *value = ptm_method_find_value(meta, index);
    *item = (pt_evalue){.type = PT_TYPE_NONE};
    if (!value) {
        return PT_ERROR_OK;
    }
    if (value->type < PT_VALUE_OTHER) {
        item->type = PT_TYPE_TENSOR;
        item->table = position_of(meta, value);
        return PT_ERROR_OK;
    }
    item->type = value->type - PT_VALUE_OTHER;
    switch (item->type) {
    case PT_TYPE_INT:
    case PT_TYPE_BOOL:
    case PT_TYPE_DOUBLE:
        item->number.type = item->type;
        item->number.as.i = (int64_t)((uint64_t)value->sizes << 32 | value->data);
        break;
    case PT_TYPE_STRING:
        item->text = (pt_text){ptm_method_at(meta, pt_offset_of(value->data)), value->sizes};
        break;
    case PT_TYPE_NULL:
        break;
    default:
        item->items = position_of(meta, value);
        item->count = value->sizes;
        item->has_numbers =
            item->type == PT_TYPE_INT_LIST && (value->flags & PT_VALUE_CONSTANT) != 0;
    }
    return PT_ERROR_OK;
}

// Returns a value in the file, or one that is copied to the pool.
static const pt_value *value_of(const pt_method_meta *meta, pt_ref ref) {
    uint32_t offset = pt_offset_of(ref);
    bool changes = ref >> PT_REF_OFFSET_BITS == PT_MEMORY_POOL;
    return ptm_method_at(meta, changes ? pt_ptm_method_of(meta)->changing + offset : offset);
}

static int64_t ptm_method_entry(const pt_method_meta *meta, const pt_evalue *list, uint32_t i) {
    const pt_value *value = ptm_method_at(meta, list->items);
    const uint8_t *items = ptm_method_at(meta, pt_offset_of(value->data));
    if (list->type == PT_TYPE_BOOL_LIST) {
        return items[i] != 0;
    }
    if (value->flags & PT_VALUE_CONSTANT) {
        const uint32_t *words = (const uint32_t *)(const void *)(items + 8 * (size_t)i);
        return (int64_t)((uint64_t)words[1] << 32 | words[0]);
    }
    pt_ref ref = ((const pt_ref *)(const void *)items)[i];
    return ref ? value_of(meta, ref)->index : -1;
}

// ---- tensors

static const pt_ptm_attribute *attributes_of(const pt_method_meta *meta, uint32_t *n) {
    const void *items;
    *n = pt_vector(meta->program, pt_ptm_method_of(meta)->attributes, &items);
    return items;
}

static pt_text attribute_name(const pt_method_meta *meta, uint32_t index) {
    uint32_t n, low = 0;
    const pt_ptm_attribute *attributes = attributes_of(meta, &n);
    for (uint32_t high = n; low < high;) {
        uint32_t middle = (low + high) / 2;
        if (attributes[middle].value < index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < n && attributes[low].value == index ? text_at(meta->program, attributes[low].name)
                                                     : (pt_text){"", 0};
}

static int ptm_method_find_tensor(const pt_method_meta *meta, const pt_evalue *item,
                                  pt_tensor_info *info, pt_error *error) {
    (void)error;
    const pt_value *value = ptm_method_at(meta, item->table);
    uint32_t memory = value->data >> PT_REF_OFFSET_BITS;
    bool is_dynamic = value->flags & PT_VALUE_DYNAMIC;
    *info = (pt_tensor_info){
        .sizes = (const int32_t *)(const void *)value_of(meta, value->sizes),
        .dim_order = ptm_method_at(meta, pt_offset_of(value->dim_order)),
        .dtype = value->type,
        .rank = value->flags & PT_VALUE_RANK,
        .dynamism = is_dynamic,
        .is_contiguous = (value->flags & PT_VALUE_CONTIGUOUS) != 0,
        .is_planned = memory >= PT_MEMORY_PLANNED &&
                      memory - PT_MEMORY_PLANNED < pt_method_meta_count(meta, PT_PLANNED_BUFFERS),
        .is_constant = (value->flags & PT_VALUE_CONSTANT) != 0,
        .planned = (uint8_t)(memory - PT_MEMORY_PLANNED),
        .offset = pt_offset_of(value->data),
        .name = attribute_name(meta, value->index),
    };
    info->nbytes = pt_product(info->sizes, info->rank) * pt_element_size(info->dtype);
    return PT_ERROR_OK;
}

static bool ptm_method_has_name(const pt_method_meta *meta, const pt_evalue *item) {
    return item->type == PT_TYPE_TENSOR &&
           attribute_name(meta, ((const pt_value *)ptm_method_at(meta, item->table))->index)
                   .length > 0;
}

static bool ptm_method_find_attribute(const pt_method_meta *meta, const char *name, uint32_t length,
                                      uint32_t *value) {
    uint32_t n;
    const pt_ptm_attribute *attribute = attributes_of(meta, &n);
    for (; n > 0; n--, attribute++) {
        if (pt_text_is(text_at(meta->program, attribute->name), name, length)) {
            *value = attribute->value;
            return true;
        }
    }
    return false;
}

// ---- instructions

static const pt_instruction *instruction_of(const pt_instruction_walk *w) {
    return ptm_method_at(w->meta, w->args);
}

// Finds the method's operator of a number; -1 for none.
static int32_t find_operator(const pt_method_meta *meta, uint32_t number) {
    const void *items;
    uint32_t n = pt_vector(meta->program, meta->operators, &items);
    for (uint32_t i = 0; i < n; i++) {
        if (((const uint32_t *)items)[i] == number) {
            return (int32_t)i;
        }
    }
    return -1;
}

static int32_t ptm_method_walk_argument(const pt_instruction_walk *w, uint32_t k) {
    pt_ref arg = instruction_of(w)->args[k];
    return arg ? value_of(w->meta, arg)->index : -1;
}

static bool walk_next(pt_instruction_walk *w) {
    static const uint8_t kinds[] = {
        [PT_OP_KERNEL_CALL] = PT_INSTRUCTION_KERNEL_CALL,
        [PT_OP_JUMP_FALSE] = PT_INSTRUCTION_JUMP_FALSE_CALL,
        [PT_OP_MOVE] = PT_INSTRUCTION_MOVE_CALL,
        [PT_OP_NOTHING] = PT_INSTRUCTION_NONE,
        [PT_OP_DYNAMIC_CALL] = PT_INSTRUCTION_KERNEL_CALL,
    };
    const pt_method_record *record = ptm_method_record_of(w->meta);
    w->index++;
    w->args = w->index == 0 ? pt_offset_of(record->instructions)
                            : position_of(w->meta, pt_next_instruction(instruction_of(w)));
    if (w->index >= record->n_instructions) {
        return false;
    }
    const pt_instruction *instruction = instruction_of(w);
    w->kind = kinds[pt_op(instruction)];
    if (w->kind == PT_INSTRUCTION_KERNEL_CALL) {
        w->target = find_operator(w->meta, instruction->kernel);
        w->n_args = instruction->n_args;
        return true;
    }
    w->n_args = 0;
    w->target = instruction->n_args > 0 ? ptm_method_walk_argument(w, 0) : -1;
    w->other = w->kind == PT_INSTRUCTION_MOVE_CALL ? ptm_method_walk_argument(w, 1) : -1;
    if (w->kind == PT_INSTRUCTION_JUMP_FALSE_CALL) {
        w->other = (int32_t)instruction->args[2];
    }
    return true;
}

static int32_t ptm_method_walk_view(const pt_instruction_walk *w) {
    uint32_t n_args;
    bool is_view =
        w->n_args > 0 && pt_operator_traits(instruction_of(w)->kernel, &n_args) & PT_HAS_VIEW;
    return is_view ? ptm_method_walk_argument(w, w->n_args - 1) : -1;
}

static int describe_operator(const pt_method_meta *meta, uint32_t i, pt_text *name,
                             pt_text *overload, int32_t *number, pt_error *error) {
    (void)error;
    const void *items;
    pt_vector(meta->program, meta->operators, &items);
    uint32_t found = ((const uint32_t *)items)[i];
    const char *text = pt_operator_name(found);
    *name = (pt_text){text, 0};
    while (text[name->length]) {
        name->length++;
    }
    *overload = (pt_text){"", 0};
    *number = pt_operator_kernel(found) ? (int32_t)found : -1 - (int32_t)found;
    return PT_ERROR_OK;
}

const pt_format pt_ptm_format = {
    .number = PT_FORMAT_PTM,
    .find = ptm_method_find,
    .count = ptm_method_count,
    .item = ptm_method_find_item,
    .tensor = ptm_method_find_tensor,
    .load = pt_ptm_load,
};

const pt_description pt_ptm_description = {
    .begins = pt_begins_ptm,
    .open = pt_ptm_open,
    .at = find_at,
    .name = ptm_method_name_of,
    .entry = ptm_method_entry,
    .has_name = ptm_method_has_name,
    .find_attribute = ptm_method_find_attribute,
    .find_operator = describe_operator,
    .walk_next = walk_next,
    .walk_argument = ptm_method_walk_argument,
    .walk_view = ptm_method_walk_view,
    .reset = pt_ptm_reset,
};
