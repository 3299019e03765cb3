// A method as a .pte file describes it.
#include "core/format/pte.h"
#include "core/format/program.h"
#include "core/record.h"
#include "core/report.h"

static int pte_bad(pt_error *error, uint8_t subject, uint32_t index, const char *what) {
    return pt_report(error, PT_ERROR_INVALID_PROGRAM, subject, (int32_t)index, what);
}

static int pte_no_such(pt_error *error, uint8_t subject, uint32_t index) {
    return pt_report(error, PT_ERROR_INVALID_ARGUMENT, subject, (int32_t)index,
                     "does not exist; count from 0");
}

// ---- finding a method

static void read_meta(pt_method_meta *meta, const pt_program *p, pt_reader *r, uint32_t index) {
    uint32_t position = pt_table_item(r, p->plans, index);
    pt_table t = pt_table_at(r, position);
    *meta = (pt_method_meta){
        .program = p,
        .index = index,
        .position = position,
        .values = pt_field_follow(r, &t, PT_SLOT_EXECUTION_PLAN_VALUES),
        .inputs = pt_field_follow(r, &t, PT_SLOT_EXECUTION_PLAN_INPUTS),
        .outputs = pt_field_follow(r, &t, PT_SLOT_EXECUTION_PLAN_OUTPUTS),
        .chains = pt_field_follow(r, &t, PT_SLOT_EXECUTION_PLAN_CHAINS),
        .operators = pt_field_follow(r, &t, PT_SLOT_EXECUTION_PLAN_OPERATORS),
        .delegates = pt_field_follow(r, &t, PT_SLOT_EXECUTION_PLAN_DELEGATES),
        .planned = pt_field_follow(r, &t, PT_SLOT_EXECUTION_PLAN_NON_CONST_BUFFER_SIZES),
    };
}

static int pte_at(pt_method_meta *meta, const pt_program *p, uint32_t i, pt_error *error) {
    pt_reader r = pt_program_reader(p);
    read_meta(meta, p, &r, i);
    return r.bad ? pt_report_outside(error) : PT_ERROR_OK;
}

static int pte_find(pt_method_meta *meta, const pt_program *p, const char *name, uint32_t length,
                    pt_error *error) {
    pt_reader r = pt_program_reader(p);
    uint32_t n = pt_length(&r, p->plans);
    for (uint32_t i = 0; i < n && !r.bad; i++) {
        uint32_t position = pt_table_item(&r, p->plans, i);
        uint32_t text = pt_follow_slot(&r, position, PT_SLOT_EXECUTION_PLAN_NAME);
        if (text && pt_text_is(pt_text_at(&r, text), name, length)) {
            read_meta(meta, p, &r, i);
            return r.bad ? pt_report_outside(error) : PT_ERROR_OK;
        }
    }
    return r.bad ? pt_report_outside(error) : pt_report_no_method(error);
}

static pt_text pte_name_of(const pt_method_meta *meta) {
    pt_reader r = pt_program_reader(meta->program);
    return pt_text_at(&r, pt_follow_slot(&r, meta->position, PT_SLOT_EXECUTION_PLAN_NAME));
}

// ---- numbers of items

static uint32_t instructions_of(const pt_method_meta *meta, pt_reader *r, uint32_t chain) {
    return pt_follow_slot(r, pt_table_item(r, meta->chains, chain), PT_SLOT_CHAIN_INSTRUCTIONS);
}

static uint32_t count_instructions(const pt_method_meta *meta, pt_reader *r) {
    uint32_t n = 0, chains = pt_length(r, meta->chains);
    for (uint32_t i = 0; i < chains && !r->bad; i++) {
        n += pt_length(r, instructions_of(meta, r, i));
    }
    return n;
}

static uint32_t delegate_arguments(const pt_method_meta *meta) {
    uint32_t max = 0;
    for (pt_instruction_walk walk = pt_instruction_walk_start(meta); pt_pte_walk_next(&walk);) {
        if (walk.kind == PT_INSTRUCTION_DELEGATE_CALL && walk.n_args > max) {
            max = walk.n_args;
        }
    }
    return max;
}

static uint32_t pte_count(const pt_method_meta *meta, pt_section what) {
    pt_reader r = pt_program_reader(meta->program);
    return what == PT_DELEGATE_ARGUMENTS ? delegate_arguments(meta) : count_instructions(meta, &r);
}

// ---- values

static void read_number(pt_reader *r, pt_table *member, pt_evalue *item) {
    // the table of each type has its number in slot 0
    item->number.type = item->type;
    item->number.as.i =
        item->type == PT_TYPE_BOOL ? pt_field_u8(r, member, 0) != 0 : pt_field_i64(r, member, 0);
}

static uint32_t list_item_size(uint8_t type) {
    switch (type) {
    case PT_TYPE_INT_LIST:
    case PT_TYPE_DOUBLE_LIST:
        return 8;
    case PT_TYPE_TENSOR_LIST:
    case PT_TYPE_OPTIONAL_TENSOR_LIST:
        return 4;
    default:
        return 1;
    }
}

static void read_item(pt_reader *r, pt_values *values, uint32_t index, pt_evalue *item) {
    uint32_t type = 0, position = pt_read_value(r, values, index, &type);
    uint32_t table = pt_value_member(r, values, position);
    pt_table member = pt_table_at(r, table);
    *item = (pt_evalue){.type = (uint8_t)type, .table = table};
    switch (item->type) {
    case PT_TYPE_NONE:
    case PT_TYPE_NULL:
    case PT_TYPE_TENSOR:
        break;
    case PT_TYPE_INT:
    case PT_TYPE_BOOL:
    case PT_TYPE_DOUBLE:
        read_number(r, &member, item);
        break;
    case PT_TYPE_STRING:
        item->text = pt_text_at(r, pt_field_follow(r, &member, 0));
        break;
    default:
        item->items = pt_field_follow(r, &member, 0);
        pt_evalues(r, item->items, list_item_size(item->type), &item->count);
    }
}

static int pte_find_item(const pt_method_meta *meta, uint32_t index, pt_evalue *item,
                         pt_error *error) {
    pt_reader r = pt_program_reader(meta->program);
    pt_values values;
    pt_start_values(&values, &r, meta);
    if (index >= values.n) { // the vector is longer than the file
        return pt_report_outside(error);
    }
    read_item(&r, &values, index, item);
    return r.bad ? pt_report_outside(error) : PT_ERROR_OK;
}

static int64_t pte_entry(const pt_method_meta *meta, const pt_evalue *list, uint32_t i) {
    pt_reader r = pt_program_reader(meta->program);
    uint32_t size = list_item_size(list->type), pte_at = pt_evalue_at(&r, list->items, i, size);
    switch (size) {
    case 8:
        return pt_i64_at(&r, pte_at);
    case 4:
        return (int32_t)pt_u32_at(&r, pte_at);
    default:
        return pt_u8_at(&r, pte_at) != 0;
    }
}

// ---- tensors

static int pte_find_tensor(const pt_method_meta *meta, const pt_evalue *item, pt_tensor_info *info,
                           pt_error *error) {
    pt_reader r = pt_program_reader(meta->program);
    pt_values values = {.n = 0};
    pt_tensor_table t;
    PT_TRY(pt_read_tensor(&r, &values, item->table, &t, error));
    pt_table allocation = pt_table_at(&r, t.allocation);
    *info = (pt_tensor_info){
        .sizes = (const int32_t *)(const void *)(r.data + t.sizes + 4),
        .dim_order = r.data + t.dim_order + 4,
        .dtype = t.dtype,
        .rank = t.flags & PT_VALUE_RANK,
        .dynamism = t.dynamism,
        .is_contiguous = (t.flags & PT_VALUE_CONTIGUOUS) != 0,
        .is_planned = t.allocation != 0,
        .is_external = t.location == PT_TENSOR_DATA_LOCATION_EXTERNAL,
        .planned =
            (uint8_t)(pt_field_u32(&r, &allocation, PT_SLOT_ALLOCATION_DETAILS_MEMORY_ID) - 1),
        .offset = pt_field_u32(&r, &allocation, PT_SLOT_ALLOCATION_DETAILS_MEMORY_OFFSET_LOW),
        .nbytes = t.nbytes,
        .name = pt_text_at(&r, pt_name_position(&r, t.extra)),
    };
    info->is_constant = !info->is_planned && (info->is_external || t.constant != 0);
    if (info->is_constant && !info->is_external) {
        PT_TRY(pt_find_constant(meta->program, &r, t.constant, t.nbytes, &info->offset, error));
    }
    return r.bad ? pt_report_outside(error) : PT_ERROR_OK;
}

static bool pte_has_name(const pt_method_meta *meta, const pt_evalue *item) {
    pt_reader r = pt_program_reader(meta->program);
    uint32_t extra = pt_follow_slot(&r, item->table, PT_SLOT_TENSOR_EXTRA_TENSOR_INFO);
    return item->type == PT_TYPE_TENSOR && pt_name_position(&r, extra) != 0;
}

static bool pte_find_attribute(const pt_method_meta *meta, const char *name, uint32_t length,
                               uint32_t *value) {
    pt_reader r = pt_program_reader(meta->program);
    pt_values values;
    pt_start_values(&values, &r, meta);
    for (uint32_t i = 0; i < values.n; i++) {
        uint32_t table = pt_tensor_at(&r, &values, i);
        uint32_t extra = pt_follow_slot(&r, table, PT_SLOT_TENSOR_EXTRA_TENSOR_INFO);
        uint32_t found = pt_name_position(&r, extra);
        if (found && pt_text_is(pt_text_at(&r, found), name, length)) {
            *value = i;
            return true;
        }
    }
    return false;
}

// ---- operators and delegates

int pt_pte_operator(const pt_method_meta *meta, uint32_t i, pt_text *name, pt_text *overload,
                    int32_t *number, pt_error *error) {
    pt_reader r = pt_program_reader(meta->program);
    pt_table t = pt_table_at(&r, pt_table_item(&r, meta->operators, i));
    uint32_t position = pt_field_follow(&r, &t, PT_SLOT_OPERATOR_NAME);
    *name = pt_text_at(&r, position);
    *overload = pt_text_at(&r, pt_field_follow(&r, &t, PT_SLOT_OPERATOR_OVERLOAD));
    if (r.bad) {
        return pt_report_outside(error);
    }
    if (position == 0) {
        return pte_bad(error, PT_SUBJECT_OPERATOR, i, "has no name");
    }
    *number = pt_find_operator(name->data, name->length, overload->data, overload->length);
    return PT_ERROR_OK;
}

// Finds the processed data of a delegate.
static int find_processed(const pt_method_meta *meta, pt_reader *r, uint32_t reference,
                          pt_delegate_info *info, pt_error *error) {
    pt_table t = pt_table_at(r, reference);
    uint32_t location = pt_field_u8(r, &t, PT_SLOT_BACKEND_DELEGATE_DATA_REFERENCE_LOCATION);
    uint32_t index = pt_field_u32(r, &t, PT_SLOT_BACKEND_DELEGATE_DATA_REFERENCE_INDEX);
    info->is_inline = location == PT_DATA_LOCATION_INLINE;
    if (location == PT_DATA_LOCATION_SEGMENT) {
        return pt_find_segment(meta->program, index, PT_SUBJECT_SEGMENT, (int32_t)index,
                               &info->processed, error);
    }
    if (!info->is_inline) {
        return pt_report(error, PT_ERROR_INTERNAL, PT_SUBJECT_DELEGATE_DATA, (int32_t)index,
                         "has a location of an unknown kind");
    }
    uint32_t entries =
        pt_follow_slot(r, meta->program->root, PT_SLOT_PROGRAM_BACKEND_DELEGATE_DATA);
    if (index >= pt_length(r, entries)) {
        return pt_report(error, PT_ERROR_NOT_FOUND, PT_SUBJECT_DELEGATE_DATA, (int32_t)index,
                         "does not exist");
    }
    uint32_t vector = pt_follow_slot(r, pt_table_item(r, entries, index),
                                     PT_SLOT_BACKEND_DELEGATE_INLINE_DATA_DATA);
    uint8_t *data = (uint8_t *)(uintptr_t)pt_evalues(r, vector, 1, &info->processed.size);
    info->processed.data = data ? data : (uint8_t *)(uintptr_t)r->data;
    info->processed.is_constant = true;
    return PT_ERROR_OK;
}

int pt_method_meta_delegate(const pt_method_meta *meta, uint32_t i, pt_delegate_info *info,
                            pt_error *error) {
    pt_reader r = pt_program_reader(meta->program);
    if (i >= pt_length(&r, meta->delegates)) {
        return pte_no_such(error, PT_SUBJECT_BACKEND, i);
    }
    pt_table t = pt_table_at(&r, pt_table_item(&r, meta->delegates, i));
    uint32_t processed = pt_field_follow(&r, &t, PT_SLOT_BACKEND_DELEGATE_PROCESSED);
    *info = (pt_delegate_info){
        .backend = pt_text_at(&r, pt_field_follow(&r, &t, PT_SLOT_BACKEND_DELEGATE_ID)),
        .specs = pt_field_follow(&r, &t, PT_SLOT_BACKEND_DELEGATE_COMPILE_SPECS),
    };
    info->n_specs = pt_length(&r, info->specs);
    if (processed == 0 && !r.bad) {
        return pte_bad(error, PT_SUBJECT_DELEGATE, i, "has no processed data");
    }
    PT_TRY(find_processed(meta, &r, processed, info, error));
    return r.bad ? pt_report_outside(error) : PT_ERROR_OK;
}

pt_text pt_method_meta_backend(const pt_method_meta *meta, uint32_t i) {
    pt_reader r = pt_program_reader(meta->program);
    return pt_text_at(
        &r, pt_follow_slot(&r, pt_table_item(&r, meta->delegates, i), PT_SLOT_BACKEND_DELEGATE_ID));
}

void pt_compile_spec(const pt_method_meta *meta, const pt_delegate_info *info, uint32_t i,
                     pt_text *key, pt_span *value) {
    pt_reader r = pt_program_reader(meta->program);
    pt_table t = pt_table_at(&r, pt_table_item(&r, info->specs, i));
    uint32_t size;
    *key = pt_text_at(&r, pt_field_follow(&r, &t, PT_SLOT_COMPILE_SPEC_KEY));
    const uint8_t *data =
        pt_evalues(&r, pt_field_follow(&r, &t, PT_SLOT_COMPILE_SPEC_VALUE), 1, &size);
    *value = (pt_span){(uint8_t *)(uintptr_t)(data ? data : r.data), size, true};
}

bool pt_find_spec(const pt_method_meta *meta, const pt_delegate_info *info, const char *key,
                  uint32_t length, pt_span *value) {
    for (uint32_t i = 0; i < info->n_specs; i++) {
        pt_text found;
        pt_compile_spec(meta, info, i, &found, value);
        if (pt_text_is(found, key, length)) {
            return true;
        }
    }
    return false;
}

// ---- instructions

bool pt_pte_walk_next(pt_instruction_walk *w) {
    pt_reader r = pt_program_reader(w->meta->program);
    w->index++;
    w->next++;
    while (w->index == 0 || w->next >= w->length) {
        if (r.bad || w->chain >= pt_length(&r, w->meta->chains)) {
            w->bad = r.bad;
            return false;
        }
        w->instructions = instructions_of(w->meta, &r, w->chain++);
        pt_evalues(&r, w->instructions, 4, &w->length);
        w->first = w->index;
        w->next = 0;
        if (w->length > 0) {
            break;
        }
    }
    pt_read_instruction(&r, w);
    return true;
}

static int32_t pte_walk_argument(const pt_instruction_walk *w, uint32_t k) {
    return (int32_t)pt_read_u32(w->meta->program->data + w->args + 4 + 4 * k);
}

static int32_t pte_walk_view(const pt_instruction_walk *w) {
    pt_text name, overload;
    int32_t number;
    uint32_t n_args;
    pt_error error;
    if (w->kind != PT_INSTRUCTION_KERNEL_CALL || w->target < 0 || w->n_args == 0 ||
        pt_pte_operator(w->meta, (uint32_t)w->target, &name, &overload, &number, &error) ||
        number < 0 || !(pt_operator_traits((uint32_t)number, &n_args) & PT_HAS_VIEW)) {
        return -1;
    }
    // the program may repeat the view behind the arguments
    return n_args > 0 && n_args <= w->n_args ? pte_walk_argument(w, n_args - 1) : -1;
}

static bool begins(const void *data, uint32_t size) {
    (void)data;
    (void)size;
    return true; // opening rejects files of any other kind
}

const pt_format pt_pte_format = {
    .number = PT_FORMAT_PTE,
    .find = pte_find,
    .count = pte_count,
    .item = pte_find_item,
    .tensor = pte_find_tensor,
    .load = pt_pte_load,
};

const pt_description pt_pte_description = {
    .begins = begins,
    .open = pt_program_open,
    .at = pte_at,
    .name = pte_name_of,
    .entry = pte_entry,
    .has_name = pte_has_name,
    .find_attribute = pte_find_attribute,
    .find_operator = pt_pte_operator,
    .walk_next = pt_pte_walk_next,
    .walk_argument = pte_walk_argument,
    .walk_view = pte_walk_view,
    .reset = pt_pte_reset,
};
