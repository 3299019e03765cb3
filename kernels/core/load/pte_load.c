// Loading a .pte file: from a program's tables to the records of a method in its pool.
//
// The layout of a loaded method. Its size is known before it is written, except where numbers
// change:
//
//   pt_method_record | pt_value of each tensor, by value index | pt_value of each variable, by
//   value index | bound and sizes of each dynamic tensor | lists: pt_value and references |
//   instructions
//
// Packed weights, if requested, follow at a multiple of 8. Their size is the same on every machine;
// their bytes are not.
#include "core/format/program.h"
#include "core/format/ptd.h"
#include "core/format/pte.h"
#include "core/load/memories.h"
#include "core/method.h"
#include "core/record.h"
#include "core/report.h"
#include <string.h>

enum {
    MAX_VALUES = 65535,
    KERNELS_KEPT = 20,        // numbers of the program's first operators
    LONGEST_WALK = 1 << 18,   // instructions, for all walks to the destinations of jumps together
    JUMP_ARGUMENTS = 3,       // condition, position and index of the destination
    MOVE_ARGUMENTS = 2,       // source, target
    MAX_CALL_ARGUMENTS = 254, // most arguments of a delegate call: the record counts them in 8 bits
};

// Not inlined, so that the stack frames of the steps of a load are not live together.
#define NOT_INLINED __attribute__((noinline))

typedef struct loader {
    pt_method *m;
    pt_context *c;
    const pt_method_meta *meta;
    pt_error *error;
    pt_reader r;
    pt_data_search search;
    pt_values values;
    uint32_t n_instructions;
    uint32_t n_tensors;
    uint32_t n_variables; // first the number of writes to variables, then the number of variables
    uint32_t size_bytes;
    uint64_t list_bytes;
    uint64_t instruction_bytes;
    uint32_t variable_at; // positions of the parts in the pool
    uint32_t size_at;
    uint32_t list_at;
    uint32_t instruction_at;
    bool has_views;
    bool has_jumps;
    uint32_t near; // state of pt_find_value_near
    uint32_t n_kernels;
    uint16_t kernels[KERNELS_KEPT];
} loader;

static int pte_load_bad(loader *l, uint8_t subject, uint32_t index, const char *what) {
    return pt_report(l->error, PT_ERROR_INVALID_PROGRAM, subject, (int32_t)index, what);
}

static int not_supported(loader *l, uint8_t subject, int32_t index, const char *what) {
    return pt_report(l->error, PT_ERROR_NOT_SUPPORTED, subject, index, what);
}

static int pte_load_outside(loader *l) {
    return pt_report_outside(l->error);
}

// ---- contents of the method

// Returns the kernel number of the program's operator `index`.
static int find_kernel(loader *l, int32_t index, uint32_t *kernel) {
    if (index >= 0 && (uint32_t)index < l->n_kernels) {
        *kernel = l->kernels[index];
        return PT_ERROR_OK;
    }
    if (index < 0 || (uint32_t)index >= pt_length(&l->r, l->meta->operators)) {
        return pte_load_bad(l, PT_SUBJECT_OPERATOR, (uint32_t)index, "there is no such operator");
    }
    pt_text name, overload;
    int32_t number;
    PT_TRY(pt_pte_operator(l->meta, (uint32_t)index, &name, &overload, &number, l->error));
    if (number < 0) {
        return pt_report(l->error, PT_ERROR_OPERATOR_MISSING, PT_SUBJECT_MISSING_OPERATOR,
                         PT_NO_INDEX,
                         "no kernel for; use a build with these kernels or change the model");
    }
    *kernel = (uint32_t)number;
    return PT_ERROR_OK;
}

static NOT_INLINED int pte_load_check_operators(loader *l) {
    uint32_t n = pt_length(&l->r, l->meta->operators), kernel;
    for (uint32_t i = 0; i < n; i++) {
        PT_TRY(find_kernel(l, (int32_t)i, &kernel));
        if (i < KERNELS_KEPT) {
            l->kernels[i] = (uint16_t)kernel;
            l->n_kernels = i + 1;
        }
    }
    return PT_ERROR_OK;
}

static inline __attribute__((always_inline)) uint32_t read_value(loader *l, int32_t index,
                                                                 uint32_t *type) {
    return (uint32_t)index < l->values.n ? pt_read_value(&l->r, &l->values, (uint32_t)index, type)
                                         : 0;
}

static int no_value(loader *l, int32_t index) {
    return l->r.bad ? pte_load_outside(l)
                    : pte_load_bad(l, PT_SUBJECT_VALUE, (uint32_t)index, "there is no such value");
}

// Reads position and type of the EValue of value `index`.
static int pte_load_find_value(loader *l, int32_t index, uint32_t *position, uint32_t *type) {
    *position = read_value(l, index, type);
    return *position ? PT_ERROR_OK : no_value(l, index);
}

static int value_type(loader *l, int32_t index, uint32_t *type) {
    uint32_t position;
    return pte_load_find_value(l, index, &position, type);
}

// Returns the number of argument k of a call.
static int32_t argument(const loader *l, const pt_instruction_walk *w, uint32_t k) {
    return (int32_t)pt_read_u32(l->r.data + w->args + 4 + 4 * k);
}

static bool pte_load_is_tensor_list(uint32_t type) {
    return type == PT_TYPE_TENSOR_LIST || type == PT_TYPE_OPTIONAL_TENSOR_LIST;
}

static int add_list_bytes(loader *l, uint32_t items) {
    l->list_bytes += sizeof(pt_value) + 4 * (uint64_t)items;
    if (l->list_bytes > PT_MEMORY_LIMIT) { // many instructions may refer to one long list
        return pte_load_bad(l, PT_SUBJECT_NONE, (uint32_t)PT_NO_INDEX,
                            "lists that need more than 128 MiB");
    }
    return PT_ERROR_OK;
}

// Returns the position of the items of the list whose EValue is at a position. This EValue was the
// last one read. All lists have their items in one slot.
static uint32_t pte_load_items_of(loader *l, uint32_t evalue) {
    return pt_follow_slot(&l->r, pt_value_member(&l->r, &l->values, evalue),
                          PT_SLOT_TENSOR_LIST_ITEMS);
}

// Counts the records of the lists of tensors among the first n arguments of a call.
static int count_lists(loader *l, const pt_instruction_walk *w, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        uint32_t position = 0, type = 0;
        PT_TRY(pte_load_find_value(l, argument(l, w, k), &position, &type));
        if (pte_load_is_tensor_list(type)) {
            PT_TRY(add_list_bytes(l, pt_length(&l->r, pte_load_items_of(l, position))));
        }
    }
    return PT_ERROR_OK;
}

// Returns the number of arguments that the program lists, without the returned value behind them.
static uint32_t n_arguments(const pt_instruction_walk *w, uint32_t traits) {
    return w->n_args - ((traits & PT_NAMES_RESULT) != 0);
}

// Reports a number of arguments that no form of the operator has. wanted: of the latest form.
static int unknown_form(loader *l, const pt_instruction_walk *w, uint32_t wanted) {
    return pt_report_bytes(
        l->error, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_INSTRUCTION, (int32_t)w->index, wanted,
        w->n_args,
        w->n_args > wanted
            ? "more than in ExecuTorch 1.0 to 1.5, as in a later release; update picotorch, or "
              "export the program again with ExecuTorch 1.5"
            : "no release of ExecuTorch from 1.0 to 1.5 has this form, perhaps a version between "
              "them; export the program again with ExecuTorch 1.5");
}

// Counts the arguments in the record of a call.
static int count_kernel_call(loader *l, const pt_instruction_walk *w, uint32_t *n) {
    uint32_t kernel = 0;
    PT_TRY(find_kernel(l, w->target, &kernel));
    const uint32_t traits = pt_operator_traits(kernel, n);
    const uint32_t wanted = *n + ((traits & PT_NAMES_RESULT) != 0);
    if (w->n_args != wanted && !pt_operator_form(kernel, w->n_args, n)) {
        return unknown_form(l, w, wanted);
    }
    l->n_variables += (traits & PT_HAS_VARIABLE) != 0;
    l->has_views |= (traits & PT_HAS_VIEW) != 0;
    return traits & PT_HAS_LISTS ? count_lists(l, w, n_arguments(w, traits)) : PT_ERROR_OK;
}

static int count_delegate_call(loader *l, const pt_instruction_walk *w, uint32_t *n) {
    const pt_delegates *delegates = l->m->delegates;
    if (w->args == 0) {
        return pte_load_bad(l, PT_SUBJECT_INSTRUCTION, w->index, "has no arguments");
    }
    if (w->target < 0 || (uint32_t)w->target >= pt_length(&l->r, l->meta->delegates)) {
        return pte_load_bad(l, PT_SUBJECT_INSTRUCTION, w->index,
                            "calls a delegate that does not exist");
    }
    if (w->n_args > delegates->max_arguments || w->n_args > MAX_CALL_ARGUMENTS) {
        return pt_report(l->error, PT_ERROR_OUT_OF_RESOURCES, PT_SUBJECT_INSTRUCTION,
                         (int32_t)w->index,
                         "has more arguments than there is room for; raise max_arguments");
    }
    *n = w->n_args + 1; // one more for the position of the program's list
    return count_lists(l, w, w->n_args);
}

static int count_move(loader *l, const pt_instruction_walk *w, uint32_t *n) {
    uint32_t type = 0;
    PT_TRY(value_type(l, w->other, &type));
    l->n_variables += type != PT_TYPE_TENSOR;
    *n = MOVE_ARGUMENTS;
    return PT_ERROR_OK;
}

static int count_free(loader *l, const pt_instruction_walk *w, uint32_t *n) {
    uint32_t type = 0;
    PT_TRY(value_type(l, w->target, &type));
    *n = 0; // planned memory is never freed
    return type == PT_TYPE_TENSOR ? PT_ERROR_OK
                                  : pte_load_bad(l, PT_SUBJECT_INSTRUCTION, w->index,
                                                 "frees a value that is not a tensor");
}

// Counts the arguments in the record of an instruction, after checking its kind.
static int count_instruction(loader *l, const pt_instruction_walk *w, uint32_t *n) {
    switch (w->kind) {
    case PT_INSTRUCTION_KERNEL_CALL:
        return count_kernel_call(l, w, n);
    case PT_INSTRUCTION_DELEGATE_CALL:
        return count_delegate_call(l, w, n);
    case PT_INSTRUCTION_MOVE_CALL:
        return count_move(l, w, n);
    case PT_INSTRUCTION_JUMP_FALSE_CALL:
        *n = JUMP_ARGUMENTS;
        return PT_ERROR_OK;
    case PT_INSTRUCTION_FREE_CALL:
        return count_free(l, w, n);
    case PT_INSTRUCTION_NONE:
        return w->bad ? pte_load_outside(l)
                      : pte_load_bad(l, PT_SUBJECT_INSTRUCTION, w->index, "is empty");
    default:
        return pte_load_bad(l, PT_SUBJECT_INSTRUCTION, w->index, "is of an unknown kind");
    }
}

// Checks each instruction, and counts variables, bytes of lists and bytes of instructions.
static NOT_INLINED int pte_load_count(loader *l) {
    pt_instruction_walk w = pt_instruction_walk_start(l->meta);
    while (pt_pte_walk_next(&w)) {
        uint32_t n = 0;
        PT_TRY(count_instruction(l, &w, &n));
        l->instruction_bytes += sizeof(pt_instruction) + n * sizeof(pt_ref);
    }
    if (l->r.bad || w.bad) {
        return pte_load_outside(l);
    }
    l->n_instructions = w.index;
    if (l->instruction_bytes > PT_MEMORY_LIMIT) {
        return not_supported(l, PT_SUBJECT_METHOD, PT_NO_INDEX, "records above 128 MiB");
    }
    return PT_ERROR_OK;
}

// ---- delegates

static NOT_INLINED int find_delegates(loader *l) {
    const pt_delegates *delegates = l->m->delegates;
    uint32_t n = pt_length(&l->r, l->meta->delegates);
    for (uint32_t i = 0; i < n; i++) {
        if (pt_follow_slot(&l->r, pt_table_item(&l->r, l->meta->delegates, i),
                           PT_SLOT_BACKEND_DELEGATE_ID) == 0) {
            return l->r.bad ? pte_load_outside(l)
                            : pte_load_bad(l, PT_SUBJECT_DELEGATE, i, "has no backend's name");
        }
        int code = PT_ERROR_NOT_FOUND;
        pt_report(l->error, code, PT_SUBJECT_MISSING_BACKEND, PT_NO_INDEX,
                  "no backend of this name; export without partitioner or register it");
        if (delegates) {
            code = pt_set_error_code(l->error, delegates->find(l->m, i, l->error));
        }
        PT_TRY(code);
    }
    if (n > (delegates ? delegates->max_delegates : 0)) {
        return pt_report(l->error, PT_ERROR_OUT_OF_RESOURCES, PT_SUBJECT_DELEGATES, PT_NO_INDEX,
                         "more than there is room for; raise max_delegates, or register backends "
                         "first");
    }
    return PT_ERROR_OK;
}

// ---- memories

// Reserves the pool for all records of known size, and sets their offsets.
static int allocate(loader *l) {
    uint32_t values = l->c->method + (uint32_t)sizeof(pt_method_record);
    uint64_t end = values + sizeof(pt_value) * ((uint64_t)l->n_tensors + l->n_variables);
    l->variable_at = values + (uint32_t)sizeof(pt_value) * l->n_tensors;
    l->size_at = (uint32_t)end;
    end += l->size_bytes;
    l->list_at = (uint32_t)end;
    end += l->list_bytes;
    l->instruction_at = (uint32_t)end;
    end += l->instruction_bytes;
    PT_TRY(pt_reserve_pool(l->m, end, l->error));
    l->m->records_end = l->m->end;
    return PT_ERROR_OK;
}

static int refuse_memories(loader *l) {
    return not_supported(l, PT_SUBJECT_NONE, PT_NO_INDEX,
                         "too many planned buffers and data files");
}

static int bind_files(loader *l, const pt_memories *memories) {
    uint32_t first = PT_MEMORY_PLANNED + l->m->n_planned, end = first + memories->n_data;
    if (end > PT_MEMORIES) {
        return refuse_memories(l);
    }
    for (uint32_t i = 0; i < memories->n_data; i++) {
        const pt_data *file = memories->data[i];
        pt_bind(l->c, first + i, (uint8_t *)(uintptr_t)file->data, file->size);
    }
    l->m->first_external = (uint8_t)end;
    return PT_ERROR_OK;
}

// Binds further memories for the bytes beyond a reference's reach, for memories `first` to below
// `end`.
static int bind_further(loader *l, uint32_t first, uint32_t end) {
    pt_context *c = l->c;
    for (uint32_t i = first; i < end; i++) {
        for (uint32_t at = PT_MEMORY_LIMIT; at < c->memory_size[i]; at += PT_MEMORY_LIMIT) {
            if (l->m->first_external >= PT_MEMORIES) {
                return refuse_memories(l);
            }
            pt_bind(c, l->m->first_external++, c->memory[i] + at, c->memory_size[i] - at);
        }
    }
    return PT_ERROR_OK;
}

static int bind_all_further(loader *l) {
    uint32_t end = l->m->first_external;
    PT_TRY(bind_further(l, PT_MEMORY_PROGRAM, PT_MEMORY_PROGRAM + 1));
    return bind_further(l, PT_MEMORY_PLANNED, end);
}

static NOT_INLINED int pte_load_bind(loader *l, const pt_memories *memories) {
    pt_bind(l->c, PT_MEMORY_PROGRAM, (uint8_t *)(uintptr_t)l->meta->program->data,
            l->meta->program->size);
    PT_TRY(bind_files(l, memories));
    PT_TRY(pt_bind_memories(l->m, memories, l->error));
    if (PT_PROGRAM_LIMIT > PT_MEMORY_LIMIT) {
        PT_TRY(bind_all_further(l));
    }
    l->m->end_external = l->m->first_external;
    pt_clear_planned(l->m);
    l->c->records = l->c->memory[PT_MEMORY_POOL];
    return PT_ERROR_OK;
}

static void put_method(loader *l) {
    uint32_t values = l->c->method + (uint32_t)sizeof(pt_method_record);
    *pt_record_of(l->c) = (pt_method_record){
        .n_values = (uint16_t)l->n_tensors,
        .n_variables = (uint16_t)l->n_variables,
        .n_instructions = l->n_instructions,
        .values = pt_make_ref(PT_MEMORY_POOL, values),
        .instructions = pt_make_ref(PT_MEMORY_POOL, l->instruction_at),
        .program_values = pt_make_ref(PT_MEMORY_PROGRAM, l->meta->values),
    };
    l->c->list_items = 0;
}

// ---- values

static int pte_load_check_shape(loader *l, const pt_tensor_table *t, uint32_t index) {
    if (!(t->dynamism | t->storage_offset)) {
        return PT_ERROR_OK;
    }
    if (t->dynamism == PT_TENSOR_SHAPE_DYNAMISM_DYNAMIC_UNBOUND) {
        return not_supported(l, PT_SUBJECT_VALUE, (int32_t)index,
                             "a tensor of dynamic shape without upper bound; export with upper "
                             "bounds: Dim(name, max=...)");
    }
    if (t->dynamism > PT_TENSOR_SHAPE_DYNAMISM_DYNAMIC_UNBOUND) {
        return pte_load_bad(l, PT_SUBJECT_VALUE, index, "there is no such kind of shape");
    }
    return t->storage_offset
               ? not_supported(l, PT_SUBJECT_VALUE, (int32_t)index, "a storage offset")
               : PT_ERROR_OK;
}

static int constant_data(loader *l, const pt_tensor_table *t, uint32_t index, pt_ref *data) {
    uint32_t position = 0;
    PT_TRY(pt_find_constant(l->meta->program, &l->r, t->constant, t->nbytes, &position, l->error));
    uint32_t misplaced = pt_misplaced(position, t->dtype);
    if (misplaced) {
        return pte_load_bad(l, PT_SUBJECT_VALUE, index,
                            misplaced == 4 ? "has constant data not aligned to 4 bytes"
                                           : "has constant data not aligned to 8 bytes");
    }
    *data = pt_refer(l->m, PT_MEMORY_PROGRAM, position);
    return PT_ERROR_OK;
}

static int external_data(loader *l, const pt_tensor_table *t, uint32_t index, pt_ref *data) {
    uint32_t file = 0, position = 0;
    PT_TRY(pt_find_external(&l->search, &l->r, t, true, index, &file, &position, l->error));
    *data = pt_refer(l->m, PT_MEMORY_PLANNED + l->m->n_planned + file, position);
    return PT_ERROR_OK;
}

// Finds the data of a tensor, and whether it is constant. Fills planned memory with initial values.
static int pte_load_place(loader *l, const pt_tensor_table *t, pt_value *value) {
    bool is_external = t->location == PT_TENSOR_DATA_LOCATION_EXTERNAL;
    if (t->location > PT_TENSOR_DATA_LOCATION_EXTERNAL) {
        return pte_load_bad(l, PT_SUBJECT_VALUE, value->index, "has a location of an unknown kind");
    }
    if (!t->allocation && (is_external || t->constant)) {
        value->flags |= PT_VALUE_CONSTANT;
        return is_external ? external_data(l, t, value->index, &value->data)
                           : constant_data(l, t, value->index, &value->data);
    }
    if (t->nbytes == 0) {
        return PT_ERROR_OK;
    }
    if (!t->allocation) {
        value->data = PT_DATA_UNPLANNED;
        return PT_ERROR_OK;
    }
    PT_TRY(pt_find_planned(l->m, &l->r, t, value->index, &value->data, l->error));
    return pt_put_initial_value(l->m, &l->search, &l->r, t, pt_at(l->c, value->data), value->index,
                                l->error);
}

static int write_tensor(loader *l, uint32_t index, uint32_t table, pt_value *value) {
    pt_tensor_table t;
    PT_TRY(pt_read_tensor(&l->r, &l->values, table, &t, l->error));
    PT_TRY(pte_load_check_shape(l, &t, index));
    value->data = 0;
    value->sizes = pt_make_ref(PT_MEMORY_PROGRAM, t.sizes + 4);
    value->dim_order = pt_make_ref(PT_MEMORY_PROGRAM, t.dim_order + 4);
    value->index = (uint16_t)index;
    value->type = t.dtype;
    value->flags = t.flags;
    PT_TRY(pte_load_place(l, &t, value));
    if (t.dynamism) {
        l->size_bytes += 4 + 4 * (value->flags & PT_VALUE_RANK);
        value->flags |= PT_VALUE_DYNAMIC;
    }
    return l->r.bad ? pte_load_outside(l) : PT_ERROR_OK;
}

// Writes the tensor records that fit into the pool, and counts all tensors.
static NOT_INLINED int write_values(loader *l) {
    uint32_t at = l->c->method + (uint32_t)sizeof(pt_method_record);
    uint32_t size = l->c->memory_size[PT_MEMORY_POOL];
    uint32_t capacity = size > at ? (size - at) / sizeof(pt_value) : 0;
    pt_value dropped, *value;
    for (uint32_t i = 0, table; i < l->values.n; i++) {
        if (!(table = pt_tensor_at(&l->r, &l->values, i))) {
            continue;
        }
        bool fits = l->n_tensors++ < capacity;
        value = fits ? (pt_value *)(void *)(l->c->memory[PT_MEMORY_POOL] + at) : &dropped;
        PT_TRY(write_tensor(l, i, table, value));
        at += sizeof(*value);
    }
    return l->r.bad ? pte_load_outside(l) : PT_ERROR_OK;
}

// ---- variables

// Stores the index of the variable that an instruction writes.
static int put_written(loader *l, const pt_instruction_walk *w, uint32_t *n) {
    uint32_t kernel = 0, type = 0;
    int32_t value = w->other;
    if (w->kind == PT_INSTRUCTION_MOVE_CALL) {
        PT_TRY(value_type(l, value, &type));
        if (type == PT_TYPE_TENSOR) {
            return PT_ERROR_OK;
        }
    } else if (w->kind == PT_INSTRUCTION_KERNEL_CALL) {
        PT_TRY(find_kernel(l, w->target, &kernel));
        uint32_t n_args;
        if (!(pt_operator_traits(kernel, &n_args) & PT_HAS_VARIABLE)) {
            return PT_ERROR_OK;
        }
        value = argument(l, w, n_args - 1);
    } else {
        return PT_ERROR_OK;
    }
    PT_TRY(value_type(l, value, &type));
    ((uint32_t *)(void *)(l->c->memory[PT_MEMORY_POOL] + l->variable_at))[(*n)++] = (uint32_t)value;
    return PT_ERROR_OK;
}

static NOT_INLINED int put_indexes(loader *l, uint32_t *n) {
    pt_instruction_walk w = pt_instruction_walk_start(l->meta);
    while (pt_pte_walk_next(&w)) {
        PT_TRY(put_written(l, &w, n));
    }
    return PT_ERROR_OK;
}

// Counts the records of a call's lists of ints that contain a variable.
static int count_variable_lists(loader *l, const pt_instruction_walk *w) {
    uint32_t kernel = 0, n = w->n_args, n_letters;
    if (w->kind == PT_INSTRUCTION_KERNEL_CALL) {
        PT_TRY(find_kernel(l, w->target, &kernel));
        n = n_arguments(w, pt_operator_traits(kernel, &n_letters));
    }
    for (uint32_t k = 0; k < n; k++) {
        uint32_t position = 0, type = 0;
        PT_TRY(pte_load_find_value(l, argument(l, w, k), &position, &type));
        pt_ref list = pt_make_ref(PT_MEMORY_PROGRAM, position);
        if (type == PT_TYPE_INT_LIST && pt_list_has_variable(l->c, list)) {
            PT_TRY(add_list_bytes(l, pt_list_length(l->c, list)));
        }
    }
    return PT_ERROR_OK;
}

// Writes the records of the variables, and reserves the pool for the lists of ints that contain
// variables. On entry n_variables counts the writes of all instructions. The indexes are collected
// in the space of the records. This space is larger: an index has 4 bytes, and the record of an
// instruction that writes a variable has at least 12.
static NOT_INLINED int find_variables(loader *l) {
    uint32_t written = l->n_variables;
    l->n_variables = 0;
    PT_TRY(allocate(l));
    if (written == 0) {
        return PT_ERROR_OK;
    }
    written = 0;
    put_method(l);
    PT_TRY(put_indexes(l, &written));
    uint32_t *indexes = (uint32_t *)(void *)(l->c->memory[PT_MEMORY_POOL] + l->variable_at);
    l->n_variables = pt_sort(indexes, written);
    PT_TRY(allocate(l));
    int32_t wrong = pt_put_variables(l->c, l->variable_at, l->n_variables);
    if (wrong >= 0) {
        return pte_load_bad(l, PT_SUBJECT_VALUE, (uint32_t)wrong, "is written as a number");
    }
    put_method(l);
    pt_instruction_walk w = pt_instruction_walk_start(l->meta);
    while (pt_pte_walk_next(&w)) {
        PT_TRY(count_variable_lists(l, &w));
    }
    return allocate(l);
}

// Stores sizes for each dynamic tensor, which may change.
static void put_sizes(loader *l) {
    pt_ref tensor = pt_record_of(l->c)->values;
    for (uint32_t i = 0; l->size_bytes > 0 && i < l->n_tensors; i++) {
        l->size_at += pt_make_dynamic(l->c, tensor, l->size_at);
        tensor += sizeof(pt_value) / 4;
    }
}

// ---- instructions

static int tensor_ref(loader *l, int32_t index, pt_ref *ref) {
    *ref = index >= 0 ? pt_find_value_near(l->c, (uint32_t)index, &l->near) : 0;
    return *ref ? PT_ERROR_OK
                : pte_load_bad(l, PT_SUBJECT_VALUE, (uint32_t)index, "is not a tensor");
}

// Returns a reference to value `index`, which is no list of records.
static int value_ref(loader *l, int32_t index, pt_ref *ref) {
    uint32_t position = 0, type = 0;
    PT_TRY(pte_load_find_value(l, index, &position, &type));
    if (type == PT_TYPE_TENSOR) {
        return tensor_ref(l, index, ref);
    }
    *ref = l->n_variables ? pt_find_variable(l->c, (uint32_t)index) : 0;
    if (!*ref) {
        *ref = pt_make_ref(PT_MEMORY_PROGRAM, position);
    }
    return PT_ERROR_OK;
}

// Returns a reference to the record of an item of a list of this type; 0 for None.
static int item_ref(loader *l, uint32_t type, uint32_t items, uint32_t i, pt_ref *ref) {
    if (type == PT_TYPE_INT_LIST) {
        int64_t index = pt_i64_at(&l->r, pt_evalue_at(&l->r, items, i, 8));
        return value_ref(l, index < 0 || index > INT32_MAX ? -1 : (int32_t)index, ref);
    }
    int32_t index = pt_i32_item(&l->r, items, i);
    *ref = 0;
    if (type == PT_TYPE_OPTIONAL_TENSOR_LIST) {
        uint32_t found = PT_TYPE_NULL;
        if (index >= 0) { // -1 stands for None, and so does a value of type Null
            PT_TRY(value_type(l, index, &found));
        }
        if (found == PT_TYPE_NULL) {
            return PT_ERROR_OK;
        }
    }
    return tensor_ref(l, index, ref);
}

// Writes the record of the list of tensors or ints whose EValue is at a position, and returns a
// reference to it.
static int write_list(loader *l, uint32_t type, uint32_t position, pt_ref *ref) {
    uint32_t items = pte_load_items_of(l, position), n = pt_length(&l->r, items), at = l->list_at;
    uint64_t end = at + sizeof(pt_value) + 4 * (uint64_t)n;
    if (end > l->instruction_at) {
        return pte_load_bad(l, PT_SUBJECT_NONE, (uint32_t)PT_NO_INDEX,
                            "a list where the operator takes none");
    }
    l->list_at = (uint32_t)end;
    pt_value *value = (pt_value *)(void *)(l->c->memory[PT_MEMORY_POOL] + at);
    *value = (pt_value){
        .data = pt_make_ref(PT_MEMORY_POOL, at + (uint32_t)sizeof(*value)),
        .sizes = n,
        .type = (uint8_t)(PT_VALUE_OTHER + type),
    };
    pt_ref *refs = (pt_ref *)(void *)(value + 1);
    for (uint32_t i = 0; i < n; i++) {
        PT_TRY(item_ref(l, type, items, i, &refs[i]));
    }
    *ref = pt_make_ref(PT_MEMORY_POOL, at);
    return PT_ERROR_OK;
}

static bool has_variable(loader *l, uint32_t type, uint32_t position) {
    return l->n_variables && type == PT_TYPE_INT_LIST &&
           pt_list_has_variable(l->c, pt_make_ref(PT_MEMORY_PROGRAM, position));
}

static inline __attribute__((always_inline)) int other_argument_ref(loader *l, int32_t index,
                                                                    pt_ref *ref) {
    uint32_t type, position = read_value(l, index, &type);
    if (!position) {
        return no_value(l, index);
    }
    if (type == PT_TYPE_TENSOR) {
        return tensor_ref(l, index, ref);
    }
    if (pte_load_is_tensor_list(type) || has_variable(l, type, position)) {
        return write_list(l, type, position, ref);
    }
    *ref = l->n_variables ? pt_find_variable(l->c, (uint32_t)index) : 0;
    if (!*ref && type != PT_TYPE_NULL) {
        *ref = pt_make_ref(PT_MEMORY_PROGRAM, position);
    }
    return PT_ERROR_OK;
}

static int write_call(loader *l, const pt_instruction_walk *w, pt_instruction *to) {
    uint32_t kernel = (uint32_t)w->target, n = w->n_args;
    bool is_kernel = w->kind == PT_INSTRUCTION_KERNEL_CALL;
    const char *form = NULL; // if it may lack arguments
    if (is_kernel) {
        PT_TRY(find_kernel(l, w->target, &kernel));
        if (w->n_args > 0 && !pt_operator_signature(kernel)[w->n_args - 1]) {
            n = w->n_args - 1; // all arguments, and the returned value behind them
        } else {
            form = pt_operator_form(kernel, w->n_args, &n);
        }
    }
    const uint8_t *index = l->r.data + w->args + 4;
    const pt_method_record *m = pt_record_of(l->c);
    const pt_value *values = (const pt_value *)(const void *)pt_at(l->c, m->values);
    for (pt_ref *ref = to->args, *end = ref + n; ref != end; ref++) {
        if (form && *form++ == '-') {
            *ref = 0; // None
            continue;
        }
        const uint32_t i = pt_read_u32(index);
        index += 4;
        if (i < m->n_values && values[i].index == i) { // a tensor needs no other lookup
            *ref = m->values + i * (uint32_t)(sizeof(pt_value) / 4);
        } else {
            PT_TRY(other_argument_ref(l, (int32_t)i, ref));
        }
    }
    uint32_t type;
    // True if the program repeats the output behind the arguments.
    bool is_repeated = index != l->r.data + w->args + 4 + 4 * w->n_args;
    if (is_repeated && (n == 0 || pt_read_u32(index) != pt_read_u32(index - 4))) {
        PT_TRY(value_type(l, (int32_t)pt_read_u32(index), &type));
    }
    to->kernel = (uint16_t)kernel;
    to->n_args = (uint8_t)n;
    to->op = PT_OP_KERNEL_CALL;
    if (!is_kernel) {
        to->args[to->n_args++] = pt_make_ref(PT_MEMORY_PROGRAM, w->args);
        to->op = PT_OP_DELEGATE_CALL;
    }
    return PT_ERROR_OK;
}

// The destination remains an index until the position of every instruction is known.
static int write_jump(loader *l, const pt_instruction_walk *w, pt_instruction *to) {
    if (w->other < 0 || (uint32_t)w->other > w->length) {
        return pte_load_bad(l, PT_SUBJECT_INSTRUCTION, (uint32_t)w->other,
                            "there is no such destination of a jump");
    }
    l->has_jumps = true;
    to->n_args = JUMP_ARGUMENTS;
    to->op = PT_OP_JUMP_FALSE;
    to->args[1] = 0;
    to->args[2] = w->first + (uint32_t)w->other;
    return value_ref(l, w->target, &to->args[0]);
}

static int write_instruction(loader *l, const pt_instruction_walk *w, pt_instruction *to) {
    *to = (pt_instruction){.op = PT_OP_NOTHING};
    switch (w->kind) {
    case PT_INSTRUCTION_KERNEL_CALL:
    case PT_INSTRUCTION_DELEGATE_CALL:
        return write_call(l, w, to);
    case PT_INSTRUCTION_JUMP_FALSE_CALL:
        return write_jump(l, w, to);
    case PT_INSTRUCTION_MOVE_CALL:
        to->n_args = MOVE_ARGUMENTS;
        to->op = PT_OP_MOVE;
        PT_TRY(value_ref(l, w->target, &to->args[0]));
        return value_ref(l, w->other, &to->args[1]);
    default: // planned memory is never freed
        return PT_ERROR_OK;
    }
}

// Sets the position of every jump's destination. The search continues from the last destination if
// it can. The sum of the walks is bounded: jumps back and forth across a long program would make
// loading quadratic.
static int resolve_jumps(loader *l) {
    const pt_instruction *first =
        (const pt_instruction *)(const void *)(l->c->memory[PT_MEMORY_POOL] + l->instruction_at);
    pt_instruction *to = (pt_instruction *)(uintptr_t)first;
    const pt_instruction *at = first;
    uint32_t walked = 0, index = 0;
    for (uint32_t i = 0; i < l->n_instructions; i++, to = pt_next_instruction(to)) {
        if (to->op != PT_OP_JUMP_FALSE) {
            continue;
        }
        if (to->args[2] < index) {
            index = 0;
            at = first;
        }
        walked += to->args[2] - index;
        if (walked > LONGEST_WALK) {
            return not_supported(l, PT_SUBJECT_NONE, PT_NO_INDEX,
                                 "too many jumps across too many instructions");
        }
        for (; index < to->args[2]; index++) {
            at = pt_next_instruction(at);
        }
        to->args[1] = pt_make_ref(PT_MEMORY_POOL,
                                  (uint32_t)((const uint8_t *)at - l->c->memory[PT_MEMORY_POOL]));
    }
    return PT_ERROR_OK;
}

static NOT_INLINED int write_instructions(loader *l) {
    pt_instruction *to =
        (pt_instruction *)(void *)(l->c->memory[PT_MEMORY_POOL] + l->instruction_at);
    pt_instruction_walk w = pt_instruction_walk_start(l->meta);
    while (pt_pte_walk_next(&w)) {
        PT_TRY(write_instruction(l, &w, to));
        to = pt_next_instruction(to);
    }
    return l->has_jumps ? resolve_jumps(l) : PT_ERROR_OK;
}

// ---- writing all records

static int place_unplanned(loader *l) {
    uint32_t end = l->m->end_external;
    int code = pt_place_unplanned(l->c, l->has_views, &end);
    if (code != PT_ERROR_OK) {
        return l->c->argument >= 0 ? not_supported(l, PT_SUBJECT_VALUE, l->c->argument,
                                                   "too many tensors outside the planned memory")
                                   : pt_report_kernel(l->c, code, l->c->instruction, l->error);
    }
    l->m->end_external = (uint8_t)end;
    return PT_ERROR_OK;
}

// Checks that inputs or outputs are values of the method.
static int pte_load_check_values(loader *l, uint32_t vector) {
    uint32_t n = pt_length(&l->r, vector), position, type;
    for (uint32_t i = 0; i < n && !l->r.bad; i++) {
        PT_TRY(pte_load_find_value(l, pt_i32_item(&l->r, vector, i), &position, &type));
    }
    return l->r.bad ? pte_load_outside(l) : PT_ERROR_OK;
}

static int check_signature(loader *l) {
    PT_TRY(pte_load_check_values(l, l->meta->inputs));
    if (pt_length(&l->r, l->meta->inputs) > PT_MAX_INPUTS) {
        return not_supported(l, PT_SUBJECT_METHOD, PT_NO_INDEX, "more than 256 inputs");
    }
    return pte_load_check_values(l, l->meta->outputs);
}

static int load_records(loader *l, const pt_memories *memories) {
    pt_start_values(&l->values, &l->r, l->meta);
    if (l->values.n > MAX_VALUES) {
        return not_supported(l, PT_SUBJECT_NONE, PT_NO_INDEX, "more than 65535 values");
    }
    if (!l->meta->chains) {
        return pte_load_bad(l, PT_SUBJECT_METHOD, (uint32_t)PT_NO_INDEX, "has no chains");
    }
    PT_TRY(find_delegates(l));
    PT_TRY(pte_load_check_operators(l));
    PT_TRY(pt_check_memories(l->m, memories, l->error));
    PT_TRY(pte_load_bind(l, memories));
    PT_TRY(write_values(l));
    PT_TRY(pte_load_count(l));
    PT_TRY(find_variables(l));
    put_method(l);
    put_sizes(l);
    PT_TRY(write_instructions(l));
    PT_TRY(place_unplanned(l));
    l->c->is_static = l->size_bytes == 0 && l->n_variables == 0;
    return check_signature(l);
}

static NOT_INLINED int write_records(pt_method *m, const pt_memories *memories, pt_error *error) {
    loader l = {
        .m = m,
        .c = &m->c,
        .meta = &m->meta,
        .error = error,
        .r = pt_program_reader(m->meta.program),
        .search = pt_data_search_start(memories->data, memories->n_data),
    };
    return load_records(&l, memories);
}

// ---- setting up delegates, packing

static NOT_INLINED int init_delegates(pt_method *m, pt_error *error) {
    uint32_t n = pt_method_meta_count(&m->meta, PT_DELEGATES);
    for (uint32_t i = 0; i < n; i++) {
        pt_delegate_info info;
        PT_TRY(pt_method_meta_delegate(&m->meta, i, &info, error));
        pt_report(error, PT_ERROR_INTERNAL, PT_SUBJECT_DELEGATE, (int32_t)i, NULL);
        PT_TRY(pt_set_error_code(error, m->delegates->init(m, i, error)));
        m->n_ready++;
    }
    return PT_ERROR_OK;
}

// Packs the weights that kernels requested. The error for a pool that is too small states the bytes
// for records and packed weights together.
static int pte_load_pack(pt_method *m, pt_error *error) {
    uint32_t needed = pt_packed_bytes(&m->c);
    if (needed) {
        uint32_t at = (m->records_end + 7) & ~7u;
        PT_TRY(pt_reserve_pool(m, (uint64_t)at + needed, error));
        pt_pack_weights(&m->c, at);
    }
    return PT_ERROR_OK;
}

// ---- the whole load

static int pte_load(pt_method *m, const pt_memories *memories, const pt_options *options,
                    pt_error *error) {
#if PT_HAS_ANY_CORE
    m->c.core = options->core == PT_CORE_V7M ? PT_CORE_PLAIN : options->core;
#endif
    if (!PT_HAS_PACKING && options->pack_weights) {
        return pt_report(error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_METHOD, PT_NO_INDEX,
                         "this build packs no weights; load without pack_weights or build without "
                         "PT_NO_PACKING");
    }
    PT_TRY(write_records(m, memories, error));
    PT_TRY(pt_check_calls(m, options->pack_weights, error));
    PT_TRY(PT_HAS_PACKING ? pte_load_pack(m, error) : PT_ERROR_OK);
    PT_TRY(init_delegates(m, error));
    pt_record_of(&m->c)->scratch = m->c.scratch_needed;
    return pt_bind_rest(m, memories, options, error);
}

int pt_pte_load(pt_method *m, const pt_memories *memories, const pt_options *options,
                pt_error *error) {
    return pt_end_load(m, pte_load(m, memories, options, error));
}
