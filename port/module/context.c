// _picotorch.Context: the memories that references lead into, and the executor's state.
#include "core.h"
#include "modpicotorch.h"
#include "py/mphal.h"
#include "py/runtime.h"
#include <string.h>

typedef struct context {
    mp_obj_base_t base;
    mp_obj_t buffers[PT_MEMORIES]; // keep the memories alive
    void *starts[PT_MEMORIES];     // so do these where a buffer is a view that may move on
    mp_obj_t scratch;
    mp_obj_t events;
    size_t events_size;
    mp_obj_t on_failure;
    mp_obj_t on_delegate;
    mp_obj_t raised;   // an exception that waits until the executor has returned
    uint32_t constant; // a bit for each memory that nothing writes to
    uint8_t arrays;    // how many of the buffers are arrays
    bool ready;
    bool running;
    pt_context c;
} context;

static uint32_t find_moved(const context *self);

static int call_delegate(pt_context *c, uint32_t position) {
    context *self = c->owner;
    nlr_buf_t nlr;
    if (nlr_push(&nlr) == 0) {
        int error =
            (int)mp_obj_get_int(mp_call_function_1(self->on_delegate, pt_small_int(position)));
        nlr_pop();
        return find_moved(self) == PT_MEMORY_NONE ? error : PT_ERROR_INVALID_STATE;
    }
    self->raised = MP_OBJ_FROM_PTR(nlr.ret_val);
    return PT_ERROR_INTERNAL;
}

// An interrupt that is pending, ctrl-C for instance, ends the execution. Scheduled functions wait:
// they might use the method.
static int poll(pt_context *c) {
    if (MP_STATE_THREAD(mp_pending_exception) == MP_OBJ_NULL) {
        return PT_ERROR_OK;
    }
    context *self = c->owner;
    self->raised = MP_STATE_THREAD(mp_pending_exception);
    MP_STATE_THREAD(mp_pending_exception) = MP_OBJ_NULL;
    return PT_ERROR_INTERNAL;
}

static mp_obj_t context_make_new(const mp_obj_type_t *type, size_t n_args, size_t n_kw,
                                 const mp_obj_t *args) {
    mp_arg_check_num(n_args, n_kw, 0, 2, false);
    context *self = mp_obj_malloc(context, type);
    for (size_t i = 0; i < PT_MEMORIES; i++) {
        self->buffers[i] = mp_const_none;
        self->starts[i] = NULL;
    }
    self->scratch = mp_const_none;
    self->events = mp_const_none;
    self->events_size = 0;
    self->on_failure = n_args > 0 ? args[0] : mp_const_none;
    self->on_delegate = n_args > 1 ? args[1] : mp_const_none;
    self->raised = MP_OBJ_NULL;
    self->constant = 0;
    self->arrays = 0;
    self->ready = false;
    self->running = false;
    memset(&self->c, 0, sizeof(self->c));
    self->c.owner = self;
    self->c.poll = poll;
    self->c.call_delegate = self->on_delegate != mp_const_none ? call_delegate : NULL;
    return MP_OBJ_FROM_PTR(self);
}

static pt_context *context_of(mp_obj_t self_in) {
    return &((context *)MP_OBJ_TO_PTR(self_in))->c;
}

// ---- memories

// Address and size of a buffer, of None: NULL and 0.
static mp_buffer_info_t buffer_of(mp_obj_t buffer_in) {
    mp_buffer_info_t buffer = {0};
    if (buffer_in != mp_const_none) {
        mp_get_buffer_raise(buffer_in, &buffer, MP_BUFFER_READ);
    }
    return buffer;
}

// Arrays can be resized while something refers to them.
static bool is_array(mp_obj_t buffer) {
#if MICROPY_PY_ARRAY
    if (mp_obj_is_exact_type(buffer, &mp_type_array)) {
        return true;
    }
#endif
    return mp_obj_is_exact_type(buffer, &mp_type_bytearray);
}

// Counts one buffer less and another more.
static void count_arrays(context *self, mp_obj_t before, mp_obj_t after) {
    self->arrays = (uint8_t)(self->arrays - is_array(before) + is_array(after));
}

static void set_memory(context *self, mp_obj_t memory_in, mp_obj_t buffer_in, bool constant) {
    mp_int_t memory = mp_obj_get_int(memory_in);
    if (memory <= PT_MEMORY_NONE || memory >= PT_MEMORIES) {
        pt_raise_value_error();
    }
    mp_buffer_info_t buffer = buffer_of(buffer_in);
    count_arrays(self, self->buffers[memory], buffer_in);
    self->buffers[memory] = buffer_in;
    self->starts[memory] = pt_view_start(buffer_in);
    self->c.memory[memory] = buffer.buf;
    self->c.memory_size[memory] = buffer.len;
    self->constant = (self->constant & ~(1u << memory)) | (uint32_t)constant << memory;
    self->ready = self->ready && buffer_in != mp_const_none;
}

static mp_obj_t context_set_memory(mp_obj_t self_in, mp_obj_t memory_in, mp_obj_t buffer_in) {
    set_memory(MP_OBJ_TO_PTR(self_in), memory_in, buffer_in, false);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_3(context_set_memory_obj, context_set_memory);

static mp_obj_t context_set_constant_memory(mp_obj_t self_in, mp_obj_t memory_in,
                                            mp_obj_t buffer_in) {
    set_memory(MP_OBJ_TO_PTR(self_in), memory_in, buffer_in, true);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_3(context_set_constant_memory_obj, context_set_constant_memory);

static mp_obj_t context_set_scratch(mp_obj_t self_in, mp_obj_t buffer_in) {
    context *self = MP_OBJ_TO_PTR(self_in);
    mp_buffer_info_t buffer = buffer_of(buffer_in);
    count_arrays(self, self->scratch, buffer_in);
    self->scratch = buffer_in;
    self->c.scratch = buffer.buf;
    self->c.scratch_size = buffer.len;
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(context_set_scratch_obj, context_set_scratch);

// True for an array that has been resized, where that has moved it or left it too small.
static bool has_moved(mp_obj_t buffer_in, const void *data, size_t size) {
    if (!is_array(buffer_in)) {
        return false;
    }
    mp_buffer_info_t buffer = buffer_of(buffer_in);
    return buffer.buf != data || buffer.len < size;
}

static uint32_t find_moved(const context *self) {
    if (self->arrays == 0) {
        return PT_MEMORY_NONE;
    }
    for (uint32_t i = PT_MEMORY_PROGRAM; i < PT_MEMORIES; i++) {
        if (has_moved(self->buffers[i], self->c.memory[i], self->c.memory_size[i])) {
            return i;
        }
    }
    if (has_moved(self->scratch, self->c.scratch, self->c.scratch_size)) {
        return PT_MEMORIES;
    }
    return has_moved(self->events, self->c.tracer.events, self->events_size) ? PT_MEMORIES + 1
                                                                             : PT_MEMORY_NONE;
}

static mp_obj_t context_moved_memory(mp_obj_t self_in) {
    return pt_small_int(find_moved(MP_OBJ_TO_PTR(self_in)));
}
static MP_DEFINE_CONST_FUN_OBJ_1(context_moved_memory_obj, context_moved_memory);

static mp_int_t memory_number(mp_obj_t memory_in) {
    mp_int_t memory = mp_obj_get_int(memory_in);
    if (memory < 0 || memory >= PT_MEMORIES) {
        pt_raise_value_error();
    }
    return memory;
}

static mp_obj_t context_limit_memory(mp_obj_t self_in, mp_obj_t memory_in, mp_obj_t size_in) {
    uint32_t *limit = &context_of(self_in)->memory_size[memory_number(memory_in)];
    mp_int_t size = mp_obj_get_int(size_in);
    if (size < 0 || (mp_uint_t)size > *limit) {
        pt_raise_value_error();
    }
    *limit = (uint32_t)size;
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_3(context_limit_memory_obj, context_limit_memory);

static mp_obj_t context_is_inside(size_t n_args, const mp_obj_t *args) {
    (void)n_args;
    uint32_t size = context_of(args[0])->memory_size[memory_number(args[1])];
    return mp_obj_new_bool((int64_t)mp_obj_get_int(args[2]) + mp_obj_get_int(args[3]) <= size);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(context_is_inside_obj, 4, 4, context_is_inside);

static mp_obj_t context_has_memory(mp_obj_t self_in, mp_obj_t memory_in) {
    const context *self = MP_OBJ_TO_PTR(self_in);
    return mp_obj_new_bool(self->buffers[memory_number(memory_in)] != mp_const_none);
}
static MP_DEFINE_CONST_FUN_OBJ_2(context_has_memory_obj, context_has_memory);

// An argument of at most `limit`.
static uint32_t number(mp_obj_t value_in, uint32_t limit) {
    mp_int_t value = mp_obj_get_int(value_in);
    if (value < 0 || (mp_uint_t)value > limit) {
        pt_raise_value_error();
    }
    return (uint32_t)value;
}

static mp_obj_t context_overlap(size_t n_args, const mp_obj_t *args) {
    (void)n_args;
    mp_buffer_info_t buffer = buffer_of(args[1]);
    uint32_t first = number(args[2], PT_MEMORIES), end = number(args[3], PT_MEMORIES);
    return pt_small_int(pt_find_overlap(context_of(args[0]), buffer.buf, buffer.len, first, end));
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(context_overlap_obj, 4, 4, context_overlap);

// ---- records

static uint32_t memory_of(mp_int_t ref) {
    return (uint32_t)ref >> PT_REF_OFFSET_BITS;
}

static uint32_t offset_of(pt_ref ref) {
    return (ref & ((1u << PT_REF_OFFSET_BITS) - 1)) << 2;
}

static void *record_at(const pt_context *c, int64_t position, uint32_t size) {
    if (position < 0 || position % 4 || position + size > c->memory_size[PT_MEMORY_POOL]) {
        pt_raise_value_error();
    }
    return c->memory[PT_MEMORY_POOL] + position;
}

static void *record(const pt_context *c, mp_obj_t position_in, uint32_t size) {
    return record_at(c, mp_obj_get_int(position_in), size);
}

static mp_obj_t context_put_method(size_t n_args, const mp_obj_t *args) {
    (void)n_args;
    pt_context *c = context_of(args[0]);
    pt_method *method = record(c, args[1], sizeof(pt_method));
    *method = (pt_method){
        .n_values = (uint16_t)number(args[2], UINT16_MAX),
        .n_variables = (uint16_t)number(args[8], UINT16_MAX),
        .n_instructions = number(args[3], UINT32_MAX),
        .values = number(args[4], UINT32_MAX),
        .instructions = number(args[5], UINT32_MAX),
        .program_values = number(args[6], UINT32_MAX),
        .scratch = number(args[7], UINT32_MAX),
        .prepared = 0,
    };
    c->program_values = method->program_values;
    c->list_items = 0;
    c->method = (uint32_t)mp_obj_get_int(args[1]);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(context_put_method_obj, 9, 9, context_put_method);

// Reference to the items of the vector at a position of the program.
static pt_ref items_of(mp_obj_t vector) {
    return pt_make_ref(PT_MEMORY_PROGRAM, number(vector, PT_MEMORY_LIMIT - 8) + 4);
}

static mp_obj_t context_put_tensor(size_t n_args, const mp_obj_t *args) {
    (void)n_args;
    pt_value *value = record(context_of(args[0]), args[1], sizeof(pt_value));
    *value = (pt_value){
        .data = number(args[2], UINT32_MAX),
        .sizes = items_of(args[3]),
        .dim_order = items_of(args[4]),
        .index = (uint16_t)number(args[5], UINT16_MAX),
        .type = (uint8_t)number(args[6], UINT8_MAX),
        .flags = (uint8_t)number(args[7], UINT8_MAX),
    };
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(context_put_tensor_obj, 8, 8, context_put_tensor);

static mp_obj_t context_read_value(mp_obj_t self_in, mp_obj_t position_in, mp_obj_t into_in) {
    const pt_context *c = context_of(self_in);
    const pt_value *value = record(c, position_in, sizeof(pt_value));
    size_t length;
    mp_obj_t *into;
    mp_obj_list_get(into_in, &length, &into);
    if (length < 6 || value->type >= PT_VALUE_OTHER) {
        pt_raise_value_error();
    }
    pt_tensor t =
        pt_get_tensor(c, pt_make_ref(PT_MEMORY_POOL, (uint32_t)mp_obj_get_int(position_in)));
    into[0] = pt_small_int(value->data);
    into[1] = pt_small_int(value->sizes);
    into[2] = pt_small_int(value->dim_order);
    into[3] = pt_small_int(t.rank);
    into[4] = pt_small_int(t.dtype);
    into[5] = pt_small_int((int64_t)pt_numel(&t) * pt_element_size(t.dtype));
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_3(context_read_value_obj, context_read_value);

static mp_obj_t context_make_dynamic(mp_obj_t self_in, mp_obj_t position, mp_obj_t at) {
    const pt_context *c = context_of(self_in);
    const pt_value *value = record(c, position, sizeof(pt_value));
    record(c, at, (1 + (value->flags & PT_VALUE_RANK)) * sizeof(int32_t));
    pt_make_dynamic(c, (uint32_t)mp_obj_get_int(position), (uint32_t)mp_obj_get_int(at));
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_3(context_make_dynamic_obj, context_make_dynamic);

static mp_obj_t context_put_list(size_t n_args, const mp_obj_t *args) {
    (void)n_args;
    pt_value *value = record(context_of(args[0]), args[1], sizeof(pt_value));
    *value = (pt_value){
        .data = number(args[2], UINT32_MAX),
        .sizes = number(args[3], UINT32_MAX),
        .type = (uint8_t)(PT_VALUE_OTHER + number(args[4], PT_VALUE_OTHER - 1)),
    };
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(context_put_list_obj, 5, 5, context_put_list);

static mp_obj_t context_put_instruction(size_t n_args, const mp_obj_t *args) {
    (void)n_args;
    pt_instruction *instruction = record(context_of(args[0]), args[1], sizeof(pt_instruction));
    *instruction = (pt_instruction){
        .kernel = (uint16_t)number(args[2], UINT16_MAX),
        .n_args = (uint8_t)number(args[3], UINT8_MAX),
        .op = (uint8_t)number(args[4], UINT8_MAX),
    };
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(context_put_instruction_obj, 5, 5,
                                           context_put_instruction);

static mp_obj_t context_put_ref(mp_obj_t self_in, mp_obj_t position, mp_obj_t ref) {
    *(pt_ref *)record(context_of(self_in), position, sizeof(pt_ref)) = number(ref, UINT32_MAX);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_3(context_put_ref_obj, context_put_ref);

static mp_obj_t context_get_ref(mp_obj_t self_in, mp_obj_t position) {
    return pt_small_int(*(pt_ref *)record(context_of(self_in), position, sizeof(pt_ref)));
}
static MP_DEFINE_CONST_FUN_OBJ_2(context_get_ref_obj, context_get_ref);

// Where the instruction that is `count` behind the one at a position lies.
static mp_obj_t context_skip(mp_obj_t self_in, mp_obj_t position_in, mp_obj_t count_in) {
    const pt_context *c = context_of(self_in);
    int64_t position = mp_obj_get_int(position_in);
    for (mp_int_t left = mp_obj_get_int(count_in); left > 0; left--) {
        const pt_instruction *instruction = record_at(c, position, sizeof(pt_instruction));
        position += sizeof(pt_instruction) + instruction->n_args * sizeof(pt_ref);
    }
    return pt_small_int(position);
}
static MP_DEFINE_CONST_FUN_OBJ_3(context_skip_obj, context_skip);

// The record of the method, whose records of values lie in the pool.
static const pt_method *method_in_pool(const pt_context *c) {
    const pt_method *method = record_at(c, c->method, sizeof(pt_method));
    record_at(c, offset_of(method->values),
              (method->n_values + method->n_variables) * (uint32_t)sizeof(pt_value));
    return method;
}

static mp_obj_t find(mp_obj_t self_in, mp_obj_t index_in,
                     pt_ref (*function)(const pt_context *c, uint32_t index)) {
    const pt_context *c = context_of(self_in);
    method_in_pool(c);
    mp_int_t index = mp_obj_get_int(index_in);
    pt_ref found = index >= 0 ? function(c, (uint32_t)index) : 0;
    return found ? pt_small_int(offset_of(found)) : MP_OBJ_NEW_SMALL_INT(-1);
}

static mp_obj_t context_find_value(mp_obj_t self_in, mp_obj_t index) {
    return find(self_in, index, pt_find_value);
}
static MP_DEFINE_CONST_FUN_OBJ_2(context_find_value_obj, context_find_value);

static mp_obj_t context_find_variable(mp_obj_t self_in, mp_obj_t index) {
    return find(self_in, index, pt_find_variable);
}
static MP_DEFINE_CONST_FUN_OBJ_2(context_find_variable_obj, context_find_variable);

static mp_obj_t context_sort(mp_obj_t self_in, mp_obj_t position, mp_obj_t n_in) {
    uint32_t n = number(n_in, PT_MEMORY_LIMIT / 4);
    return pt_small_int(pt_sort(record(context_of(self_in), position, 4 * n), n));
}
static MP_DEFINE_CONST_FUN_OBJ_3(context_sort_obj, context_sort);

static mp_obj_t context_put_variables(mp_obj_t self_in, mp_obj_t position, mp_obj_t n_in) {
    const pt_context *c = context_of(self_in);
    uint32_t n = number(n_in, UINT16_MAX);
    record(c, position, n * (uint32_t)sizeof(pt_value));
    return pt_small_int(pt_put_variables(c, (uint32_t)mp_obj_get_int(position), n));
}
static MP_DEFINE_CONST_FUN_OBJ_3(context_put_variables_obj, context_put_variables);

static mp_obj_t context_reset_variables(mp_obj_t self_in) {
    const pt_context *c = context_of(self_in);
    method_in_pool(c);
    pt_reset_variables(c);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(context_reset_variables_obj, context_reset_variables);

static void check_reader(mp_obj_t reader_in) {
    if (!mp_obj_is_type(reader_in, &pt_reader_type)) {
        mp_raise_type(&mp_type_TypeError);
    }
}

static bool has_variable(pt_context *c, const pt_argument *a) {
    return a->type == PT_TYPE_INT_LIST &&
           pt_list_has_variable(c, pt_make_ref(PT_MEMORY_PROGRAM, a->evalue));
}

static mp_obj_t context_count_lists(size_t n_args, const mp_obj_t *args) {
    (void)n_args;
    pt_context *c = context_of(args[0]);
    method_in_pool(c);
    check_reader(args[1]);
    uint32_t arguments = (uint32_t)mp_obj_get_int(args[2]), n = number(args[3], UINT8_MAX);
    int64_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        pt_argument a = pt_read_argument(args[1], arguments, i, offset_of(c->program_values));
        if (has_variable(c, &a)) {
            pt_ref list = pt_make_ref(PT_MEMORY_PROGRAM, a.evalue);
            bytes += (int64_t)sizeof(pt_value) + 4 * (int64_t)pt_list_length(c, list);
        }
    }
    return pt_small_int(bytes);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(context_count_lists_obj, 4, 4, context_count_lists);

// The reference to what is an argument and has no list of records.
static pt_ref argument_of(const pt_context *c, const pt_method *method, const pt_argument *a) {
    pt_ref found = 0;
    if (a->type == PT_TYPE_TENSOR) {
        found = pt_find_value(c, a->index);
        if (!found) {
            pt_raise_value_error();
        }
    } else if (method->n_variables) {
        found = pt_find_variable(c, a->index);
    }
    if (!found && a->type != PT_TYPE_NULL) {
        found = pt_make_ref(PT_MEMORY_PROGRAM, a->evalue);
    }
    return found;
}

static mp_obj_t context_put_arguments(size_t n_args, const mp_obj_t *args) {
    (void)n_args;
    pt_context *c = context_of(args[0]);
    mp_int_t position = mp_obj_get_int(args[1]);
    pt_instruction *instruction = record_at(c, position, sizeof(pt_instruction));
    record_at(c, position, sizeof(pt_instruction) + instruction->n_args * sizeof(pt_ref));
    const pt_method *method = method_in_pool(c);
    check_reader(args[2]);
    uint32_t arguments = (uint32_t)mp_obj_get_int(args[3]), i = number(args[4], UINT8_MAX);
    for (; i < instruction->n_args; i++) {
        pt_argument a = pt_read_argument(args[2], arguments, i, offset_of(c->program_values));
        if (a.type == PT_TYPE_TENSOR_LIST || a.type == PT_TYPE_OPTIONAL_TENSOR_LIST ||
            (method->n_variables && has_variable(c, &a))) {
            return MP_OBJ_NEW_SMALL_INT(i);
        }
        instruction->args[i] = argument_of(c, method, &a);
    }
    if (pt_vector_length(args[2], arguments) > i) { // an output that is named once more
        pt_read_argument(args[2], arguments, i, offset_of(c->program_values));
    }
    return MP_OBJ_NEW_SMALL_INT(-1);
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(context_put_arguments_obj, 5, 5, context_put_arguments);

// ---- checking and executing

// The instructions of a method lie in the pool, and their kernels among the known ones.
static void check_instructions(const pt_context *c, mp_int_t position) {
    const pt_method *method = record_at(c, position, sizeof(pt_method));
    int64_t at = offset_of(method->instructions);
    for (uint32_t i = 0; i < method->n_instructions; i++) {
        const pt_instruction *instruction = record_at(c, at, sizeof(pt_instruction));
        uint32_t size = sizeof(pt_instruction) + instruction->n_args * (uint32_t)sizeof(pt_ref);
        record_at(c, at, size);
        if (instruction->op != PT_OP_DELEGATE_CALL && instruction->kernel >= pt_operator_count()) {
            pt_raise_value_error();
        }
        at += size;
    }
}

static mp_obj_t context_settle(mp_obj_t self_in, mp_obj_t method_in, mp_obj_t external_in) {
    pt_context *c = context_of(self_in);
    mp_int_t method = mp_obj_get_int(method_in);
    check_instructions(c, method);
    uint32_t external = number(external_in, PT_MEMORIES);
    int error = pt_settle(c, (uint32_t)method, &external);
    return pt_small_int(error ? -error : (int64_t)external);
}
static MP_DEFINE_CONST_FUN_OBJ_3(context_settle_obj, context_settle);

static mp_obj_t context_fit(mp_obj_t self_in, mp_obj_t memory) {
    const pt_context *c = context_of(self_in);
    method_in_pool(c);
    pt_fit(c, (uint32_t)memory_number(memory));
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(context_fit_obj, context_fit);

static mp_obj_t context_check(mp_obj_t self_in, mp_obj_t method_in) {
    pt_context *c = context_of(self_in);
    mp_int_t method = mp_obj_get_int(method_in);
    check_instructions(c, method);
    pt_check_stack();
    return pt_small_int(pt_check_method(c, (uint32_t)method));
}
static MP_DEFINE_CONST_FUN_OBJ_2(context_check_obj, context_check);

static mp_obj_t context_resize(mp_obj_t self_in, mp_obj_t position, mp_obj_t sizes_in) {
    pt_context *c = context_of(self_in);
    record(c, position, sizeof(pt_value));
    mp_buffer_info_t sizes = buffer_of(sizes_in);
    int32_t copy[PT_MAX_RANK];
    if (sizes.len % sizeof(*copy) || sizes.len > sizeof(copy)) {
        pt_raise_value_error();
    }
    memcpy(copy, sizes.buf, sizes.len);
    pt_ref tensor = pt_make_ref(PT_MEMORY_POOL, (uint32_t)mp_obj_get_int(position));
    return pt_small_int(pt_resize_tensor(c, tensor, sizes.len / sizeof(*copy), copy));
}
static MP_DEFINE_CONST_FUN_OBJ_3(context_resize_obj, context_resize);

static mp_obj_t context_number(mp_obj_t self_in, mp_obj_t position, mp_obj_t kept) {
    const pt_context *c = context_of(self_in);
    const pt_value *value = record(c, position, sizeof(pt_value));
    switch (value->type) {
    case PT_VALUE_OTHER + PT_TYPE_INT:
    case PT_VALUE_OTHER + PT_TYPE_BOOL:
    case PT_VALUE_OTHER + PT_TYPE_DOUBLE:
        return pt_number(
            pt_get_scalar(c, pt_make_ref(PT_MEMORY_POOL, (uint32_t)mp_obj_get_int(position))),
            kept);
    default:
        return mp_const_none;
    }
}
static MP_DEFINE_CONST_FUN_OBJ_3(context_number_obj, context_number);

static mp_obj_t context_argument(mp_obj_t self_in) {
    return pt_small_int(context_of(self_in)->argument);
}
static MP_DEFINE_CONST_FUN_OBJ_1(context_argument_obj, context_argument);

static mp_obj_t context_reason(mp_obj_t self_in) {
    const char *reason = context_of(self_in)->reason;
    return reason ? mp_obj_new_str(reason, strlen(reason)) : mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(context_reason_obj, context_reason);

static mp_obj_t context_scratch_needed(mp_obj_t self_in) {
    return pt_small_int(context_of(self_in)->scratch_needed);
}
static MP_DEFINE_CONST_FUN_OBJ_1(context_scratch_needed_obj, context_scratch_needed);

static mp_obj_t context_ask_scratch(mp_obj_t self_in, mp_obj_t size) {
    pt_ask_scratch(context_of(self_in), number(size, PT_MEMORY_LIMIT));
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(context_ask_scratch_obj, context_ask_scratch);

static mp_obj_t context_clear_scratch_needed(mp_obj_t self_in) {
    context_of(self_in)->scratch_needed = 0;
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(context_clear_scratch_needed_obj, context_clear_scratch_needed);

static mp_obj_t context_set_prepares(mp_obj_t self_in, mp_obj_t prepares) {
    pt_context *c = context_of(self_in);
    c->prepares = mp_obj_is_true(prepares);
    c->prepared_needed = 0;
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(context_set_prepares_obj, context_set_prepares);

static mp_obj_t context_prepared_bytes(mp_obj_t self_in, mp_obj_t method_in) {
    pt_context *c = context_of(self_in);
    record(c, method_in, sizeof(pt_method));
    return pt_small_int(pt_prepared_bytes(c, (uint32_t)mp_obj_get_int(method_in)));
}
static MP_DEFINE_CONST_FUN_OBJ_2(context_prepared_bytes_obj, context_prepared_bytes);

static mp_obj_t context_prepare(mp_obj_t self_in, mp_obj_t method_in, mp_obj_t position_in) {
    pt_context *c = context_of(self_in);
    record(c, method_in, sizeof(pt_method));
    uint32_t method = (uint32_t)mp_obj_get_int(method_in);
    mp_int_t position = mp_obj_get_int(position_in);
    record_at(c, position, pt_prepared_bytes(c, method));
    pt_check_stack();
    pt_prepare(c, method, (uint32_t)position);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_3(context_prepare_obj, context_prepare);

static mp_obj_t context_start(mp_obj_t self_in, mp_obj_t method_in) {
    pt_context *c = context_of(self_in);
    mp_int_t method = mp_obj_get_int(method_in);
    record_at(c, method, sizeof(pt_method));
    pt_start(c, (uint32_t)method);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(context_start_obj, context_start);

static mp_obj_t context_is_written(mp_obj_t self_in, mp_obj_t memory_in) {
    const pt_context *c = context_of(self_in);
    uint32_t memory = (uint32_t)memory_number(memory_in);
    record_at(c, c->method, sizeof(pt_method));
    return mp_obj_new_bool(pt_is_written(c, memory));
}
static MP_DEFINE_CONST_FUN_OBJ_2(context_is_written_obj, context_is_written);

static mp_obj_t context_shared_memory(mp_obj_t self_in, mp_obj_t first, mp_obj_t end) {
    const pt_context *c = context_of(self_in);
    record_at(c, c->method, sizeof(pt_method));
    return pt_small_int(pt_find_shared(c, number(first, PT_MEMORIES), number(end, PT_MEMORIES)));
}
static MP_DEFINE_CONST_FUN_OBJ_3(context_shared_memory_obj, context_shared_memory);

static mp_obj_t context_memory_needed(mp_obj_t self_in, mp_obj_t memory_in, mp_obj_t bounds) {
    const pt_context *c = context_of(self_in);
    uint32_t memory = (uint32_t)memory_number(memory_in);
    method_in_pool(c);
    return pt_small_int(pt_memory_needed(c, memory, mp_obj_is_true(bounds)));
}
static MP_DEFINE_CONST_FUN_OBJ_3(context_memory_needed_obj, context_memory_needed);

static mp_obj_t context_set_ready(mp_obj_t self_in, mp_obj_t ready) {
    context *self = MP_OBJ_TO_PTR(self_in);
    if (mp_obj_is_true(ready)) {
        record_at(&self->c, self->c.method, sizeof(pt_method));
    }
    self->ready = mp_obj_is_true(ready);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(context_set_ready_obj, context_set_ready);

static mp_obj_t context_is_running(mp_obj_t self_in) {
    const context *self = MP_OBJ_TO_PTR(self_in);
    return mp_obj_new_bool(self->running);
}
static MP_DEFINE_CONST_FUN_OBJ_1(context_is_running_obj, context_is_running);

static mp_obj_t context_is_at_start(mp_obj_t self_in) {
    const context *self = MP_OBJ_TO_PTR(self_in);
    return mp_obj_new_bool(!self->running && self->c.instruction == 0);
}
static MP_DEFINE_CONST_FUN_OBJ_1(context_is_at_start_obj, context_is_at_start);

// What on_failure gets instead of an error's code.
enum { NO_STACK = -1 };

static mp_obj_t run(mp_obj_t self_in, int (*function)(pt_context *c)) {
    context *self = MP_OBJ_TO_PTR(self_in);
    int error = PT_ERROR_INVALID_STATE;
    if (self->ready && !self->running && pt_stack_free() < PT_STACK_BYTES) {
        error = NO_STACK;
    } else if (self->ready && !self->running && find_moved(self) == PT_MEMORY_NONE) {
        self->running = true;
        error = function(&self->c);
        self->running = false;
        mp_obj_t raised = self->raised;
        if (raised != MP_OBJ_NULL) {
            self->raised = MP_OBJ_NULL;
            nlr_raise(raised);
        }
    }
    if (error != PT_ERROR_OK) {
        mp_call_function_1(self->on_failure, pt_small_int(error));
    }
    return mp_const_none;
}

static mp_obj_t context_step(mp_obj_t self_in) {
    return run(self_in, pt_step);
}
static MP_DEFINE_CONST_FUN_OBJ_1(context_step_obj, context_step);

static mp_obj_t context_execute(mp_obj_t self_in) {
    return run(self_in, pt_execute);
}
static MP_DEFINE_CONST_FUN_OBJ_1(context_execute_obj, context_execute);

// The port's counter: of processor cycles on most of them.
static uint64_t ticks(void) {
    return mp_hal_ticks_cpu();
}

static mp_obj_t context_set_tracer(mp_obj_t self_in, mp_obj_t buffer_in) {
    context *self = MP_OBJ_TO_PTR(self_in);
    mp_buffer_info_t buffer = buffer_of(buffer_in);
    if (buffer_in != mp_const_none) {
        const pt_method *method = record_at(&self->c, self->c.method, sizeof(pt_method));
        if (buffer.len / sizeof(pt_event) <= method->n_instructions) {
            pt_raise_value_error();
        }
    }
    count_arrays(self, self->events, buffer_in);
    self->events = buffer_in;
    self->events_size = buffer.len;
    pt_set_tracer(&self->c, buffer.buf, ticks, (mp_uint_t)-1);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(context_set_tracer_obj, context_set_tracer);

static mp_obj_t context_release(mp_obj_t self_in) {
    context *self = MP_OBJ_TO_PTR(self_in);
    for (mp_int_t memory = PT_MEMORY_PROGRAM; memory < PT_MEMORIES; memory++) {
        set_memory(self, MP_OBJ_NEW_SMALL_INT(memory), mp_const_none, false);
    }
    context_set_scratch(self_in, mp_const_none);
    context_set_tracer(self_in, mp_const_none);
    self->ready = false;
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_1(context_release_obj, context_release);

static mp_obj_t context_tracing_overhead(mp_obj_t self_in) {
    return pt_small_int(context_of(self_in)->tracer.overhead);
}
static MP_DEFINE_CONST_FUN_OBJ_1(context_tracing_overhead_obj, context_tracing_overhead);

static mp_obj_t context_instruction(mp_obj_t self_in) {
    return pt_small_int(context_of(self_in)->instruction);
}
static MP_DEFINE_CONST_FUN_OBJ_1(context_instruction_obj, context_instruction);

static mp_obj_t context_failed(mp_obj_t self_in) {
    return pt_small_int(context_of(self_in)->failed);
}
static MP_DEFINE_CONST_FUN_OBJ_1(context_failed_obj, context_failed);

// ---- data

// The `size` bytes at a reference.
static uint8_t *data_at(const context *self, mp_int_t ref, mp_int_t size) {
    uint32_t memory = memory_of(ref);
    uint32_t offset = offset_of((uint32_t)ref);
    if (size < 0 || memory >= PT_MEMORIES || self->buffers[memory] == mp_const_none ||
        (int64_t)offset + size > self->c.memory_size[memory]) {
        pt_raise_value_error();
    }
    return self->c.memory[memory] + offset;
}

static bool is_constant(const context *self, uint32_t memory) {
    return memory == PT_MEMORY_PROGRAM || (self->constant >> memory & 1) != 0;
}

static uint8_t *writable_data_at(mp_obj_t self_in, mp_obj_t ref_in, mp_int_t size) {
    const context *self = MP_OBJ_TO_PTR(self_in);
    mp_int_t ref = mp_obj_get_int(ref_in);
    uint8_t *data = data_at(self, ref, size);
    if (is_constant(self, memory_of(ref))) {
        pt_raise_value_error();
    }
    return data;
}

static mp_obj_t context_copy_in(mp_obj_t self_in, mp_obj_t ref, mp_obj_t buffer_in) {
    mp_buffer_info_t buffer;
    mp_get_buffer_raise(buffer_in, &buffer, MP_BUFFER_READ);
    memmove(writable_data_at(self_in, ref, (mp_int_t)buffer.len), buffer.buf, buffer.len);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_3(context_copy_in_obj, context_copy_in);

static mp_obj_t context_copy(size_t n_args, const mp_obj_t *args) {
    (void)n_args;
    const pt_context *c = context_of(args[0]);
    mp_int_t memory = memory_number(args[2]);
    mp_int_t position = mp_obj_get_int(args[3]), size = mp_obj_get_int(args[4]);
    uint8_t *to = writable_data_at(args[0], args[1], size);
    if (position < 0 || (int64_t)position + size > c->memory_size[memory]) {
        pt_raise_value_error();
    }
    memmove(to, c->memory[memory] + position, (size_t)size);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(context_copy_obj, 5, 5, context_copy);

static mp_obj_t context_clear(mp_obj_t self_in, mp_obj_t ref, mp_obj_t size_in) {
    mp_int_t size = mp_obj_get_int(size_in);
    memset(writable_data_at(self_in, ref, size), 0, (size_t)size);
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_3(context_clear_obj, context_clear);

static mp_obj_t context_view(size_t n_args, const mp_obj_t *args) {
    (void)n_args;
    const context *self = MP_OBJ_TO_PTR(args[0]);
    mp_int_t ref = mp_obj_get_int(args[2]), size = mp_obj_get_int(args[3]);
    uint8_t *data = data_at(self, ref, size);
    uint32_t memory = memory_of(ref);
    pt_point_view(args[1], self->buffers[memory], self->c.memory[memory], data, (size_t)size,
                  (uint8_t)*mp_obj_str_get_str(args[4]), !is_constant(self, memory));
    return args[1];
}
static MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(context_view_obj, 5, 5, context_view);

// MicroPython searches it from the start: what loading calls most comes first.
static const mp_rom_map_elem_t context_locals_table[] = {
    {MP_ROM_QSTR(MP_QSTR_put_tensor), MP_ROM_PTR(&context_put_tensor_obj)},
    {MP_ROM_QSTR(MP_QSTR_is_inside), MP_ROM_PTR(&context_is_inside_obj)},
    {MP_ROM_QSTR(MP_QSTR_put_instruction), MP_ROM_PTR(&context_put_instruction_obj)},
    {MP_ROM_QSTR(MP_QSTR_put_arguments), MP_ROM_PTR(&context_put_arguments_obj)},
    {MP_ROM_QSTR(MP_QSTR_check), MP_ROM_PTR(&context_check_obj)},
    {MP_ROM_QSTR(MP_QSTR_make_dynamic), MP_ROM_PTR(&context_make_dynamic_obj)},
    {MP_ROM_QSTR(MP_QSTR_find_variable), MP_ROM_PTR(&context_find_variable_obj)},
    {MP_ROM_QSTR(MP_QSTR_find_value), MP_ROM_PTR(&context_find_value_obj)},
    {MP_ROM_QSTR(MP_QSTR_put_list), MP_ROM_PTR(&context_put_list_obj)},
    {MP_ROM_QSTR(MP_QSTR_put_ref), MP_ROM_PTR(&context_put_ref_obj)},
    {MP_ROM_QSTR(MP_QSTR_get_ref), MP_ROM_PTR(&context_get_ref_obj)},
    {MP_ROM_QSTR(MP_QSTR_execute), MP_ROM_PTR(&context_execute_obj)},
    {MP_ROM_QSTR(MP_QSTR_is_at_start), MP_ROM_PTR(&context_is_at_start_obj)},
    {MP_ROM_QSTR(MP_QSTR_set_ready), MP_ROM_PTR(&context_set_ready_obj)},
    {MP_ROM_QSTR(MP_QSTR_step), MP_ROM_PTR(&context_step_obj)},
    {MP_ROM_QSTR(MP_QSTR_start), MP_ROM_PTR(&context_start_obj)},
    {MP_ROM_QSTR(MP_QSTR_copy_in), MP_ROM_PTR(&context_copy_in_obj)},
    {MP_ROM_QSTR(MP_QSTR_copy), MP_ROM_PTR(&context_copy_obj)},
    {MP_ROM_QSTR(MP_QSTR_read_value), MP_ROM_PTR(&context_read_value_obj)},
    {MP_ROM_QSTR(MP_QSTR_view), MP_ROM_PTR(&context_view_obj)},
    {MP_ROM_QSTR(MP_QSTR_clear), MP_ROM_PTR(&context_clear_obj)},
    {MP_ROM_QSTR(MP_QSTR_resize), MP_ROM_PTR(&context_resize_obj)},
    {MP_ROM_QSTR(MP_QSTR_fit), MP_ROM_PTR(&context_fit_obj)},
    {MP_ROM_QSTR(MP_QSTR_number), MP_ROM_PTR(&context_number_obj)},
    {MP_ROM_QSTR(MP_QSTR_settle), MP_ROM_PTR(&context_settle_obj)},
    {MP_ROM_QSTR(MP_QSTR_skip), MP_ROM_PTR(&context_skip_obj)},
    {MP_ROM_QSTR(MP_QSTR_sort), MP_ROM_PTR(&context_sort_obj)},
    {MP_ROM_QSTR(MP_QSTR_put_variables), MP_ROM_PTR(&context_put_variables_obj)},
    {MP_ROM_QSTR(MP_QSTR_reset_variables), MP_ROM_PTR(&context_reset_variables_obj)},
    {MP_ROM_QSTR(MP_QSTR_count_lists), MP_ROM_PTR(&context_count_lists_obj)},
    {MP_ROM_QSTR(MP_QSTR_set_memory), MP_ROM_PTR(&context_set_memory_obj)},
    {MP_ROM_QSTR(MP_QSTR_set_constant_memory), MP_ROM_PTR(&context_set_constant_memory_obj)},
    {MP_ROM_QSTR(MP_QSTR_moved_memory), MP_ROM_PTR(&context_moved_memory_obj)},
    {MP_ROM_QSTR(MP_QSTR_limit_memory), MP_ROM_PTR(&context_limit_memory_obj)},
    {MP_ROM_QSTR(MP_QSTR_has_memory), MP_ROM_PTR(&context_has_memory_obj)},
    {MP_ROM_QSTR(MP_QSTR_overlap), MP_ROM_PTR(&context_overlap_obj)},
    {MP_ROM_QSTR(MP_QSTR_is_written), MP_ROM_PTR(&context_is_written_obj)},
    {MP_ROM_QSTR(MP_QSTR_shared_memory), MP_ROM_PTR(&context_shared_memory_obj)},
    {MP_ROM_QSTR(MP_QSTR_memory_needed), MP_ROM_PTR(&context_memory_needed_obj)},
    {MP_ROM_QSTR(MP_QSTR_set_scratch), MP_ROM_PTR(&context_set_scratch_obj)},
    {MP_ROM_QSTR(MP_QSTR_set_tracer), MP_ROM_PTR(&context_set_tracer_obj)},
    {MP_ROM_QSTR(MP_QSTR_release), MP_ROM_PTR(&context_release_obj)},
    {MP_ROM_QSTR(MP_QSTR_tracing_overhead), MP_ROM_PTR(&context_tracing_overhead_obj)},
    {MP_ROM_QSTR(MP_QSTR_put_method), MP_ROM_PTR(&context_put_method_obj)},
    {MP_ROM_QSTR(MP_QSTR_argument), MP_ROM_PTR(&context_argument_obj)},
    {MP_ROM_QSTR(MP_QSTR_reason), MP_ROM_PTR(&context_reason_obj)},
    {MP_ROM_QSTR(MP_QSTR_instruction), MP_ROM_PTR(&context_instruction_obj)},
    {MP_ROM_QSTR(MP_QSTR_failed), MP_ROM_PTR(&context_failed_obj)},
    {MP_ROM_QSTR(MP_QSTR_is_running), MP_ROM_PTR(&context_is_running_obj)},
    {MP_ROM_QSTR(MP_QSTR_scratch_needed), MP_ROM_PTR(&context_scratch_needed_obj)},
    {MP_ROM_QSTR(MP_QSTR_ask_scratch), MP_ROM_PTR(&context_ask_scratch_obj)},
    {MP_ROM_QSTR(MP_QSTR_set_prepares), MP_ROM_PTR(&context_set_prepares_obj)},
    {MP_ROM_QSTR(MP_QSTR_prepared_bytes), MP_ROM_PTR(&context_prepared_bytes_obj)},
    {MP_ROM_QSTR(MP_QSTR_prepare), MP_ROM_PTR(&context_prepare_obj)},
    {MP_ROM_QSTR(MP_QSTR_clear_scratch_needed), MP_ROM_PTR(&context_clear_scratch_needed_obj)},
};
static MP_DEFINE_CONST_DICT(context_locals, context_locals_table);

MP_DEFINE_CONST_OBJ_TYPE(pt_context_type, MP_QSTR_Context, MP_TYPE_FLAG_NONE, make_new,
                         context_make_new, locals_dict, &context_locals);
