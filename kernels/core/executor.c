// Checking instruction records at load, and executing them.
#include "core.h"
#include <string.h>

static const pt_method *method_of(const pt_context *c) {
    return (const pt_method *)(const void *)(c->memory[PT_MEMORY_POOL] + c->method);
}

static pt_instruction *instruction_at(const pt_context *c, uint32_t position) {
    return (pt_instruction *)(void *)(c->memory[PT_MEMORY_POOL] + position);
}

// In a run there are lists only that loading has looked at.
static bool is_long_list(pt_context *c, pt_ref arg, char letter) {
    return (letter == 'L' || letter == 'l') && c->checking != PT_CHECK_RUN &&
           arg >> PT_REF_OFFSET_BITS == PT_MEMORY_PROGRAM &&
           pt_value_type(pt_at(c, arg)) == PT_TYPE_INT_LIST && !pt_may_look(c, arg);
}

static int check_scratch(pt_context *c, const pt_instruction *instruction, const char *signature) {
    uint32_t n = instruction->n_args;
    for (uint32_t i = 0; i < n; i++) {
        if (signature[i] == 'X' && !pt_is_apart(c, i, n, instruction->args)) {
            return pt_fail(c, PT_ERROR_INVALID_PROGRAM, "the scratch lies over another tensor");
        }
    }
    return PT_ERROR_OK;
}

static int check_kinds(pt_context *c, const pt_instruction *instruction) {
    const char *signature = pt_operator_signature(instruction->kernel);
    for (uint32_t i = 0; i < instruction->n_args; i++) {
        if (!signature[i]) {
            return pt_fail(c, PT_ERROR_INVALID_PROGRAM, "more arguments than the operator has");
        }
        if (is_long_list(c, instruction->args[i], signature[i])) {
            return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "so many items in lists of ints");
        }
        if (!pt_has_kind(c, instruction->args[i], signature[i])) {
            c->argument = (int32_t)i;
            return pt_fail(c, PT_ERROR_INVALID_PROGRAM, "is of the wrong kind");
        }
    }
    if (signature[instruction->n_args]) {
        return pt_fail(c, PT_ERROR_INVALID_PROGRAM, "fewer arguments than the operator has");
    }
    return check_scratch(c, instruction, signature);
}

static int check_kernel(pt_context *c, const pt_instruction *instruction) {
    return pt_operator_kernel(instruction->kernel)->check(c, instruction->args);
}

static const pt_value *record(const pt_context *c, pt_ref arg) {
    return arg >> PT_REF_OFFSET_BITS == PT_MEMORY_POOL
               ? (const pt_value *)(const void *)pt_at(c, arg)
               : NULL;
}

static bool is_dynamic_tensor(const pt_context *c, pt_ref arg) {
    const pt_value *value = record(c, arg);
    return value && value->type < PT_VALUE_OTHER && value->flags & PT_VALUE_DYNAMIC;
}

static bool is_variable(const pt_context *c, pt_ref arg) {
    return !pt_is_none(arg) && pt_has_kind(c, arg, 'N');
}

// True when what a check sees of the argument may be different in each run.
static bool is_dynamic(const pt_context *c, pt_ref arg, char letter) {
    const pt_value *value = record(c, arg);
    if (!value || letter == 'N') {
        return false;
    }
    if (value->type < PT_VALUE_OTHER) {
        return value->flags & PT_VALUE_DYNAMIC;
    }
    if (is_variable(c, arg) || value->type == PT_VALUE_OTHER + PT_TYPE_INT_LIST) {
        return true;
    }
    for (uint32_t i = 0; i < value->sizes; i++) {
        if (is_dynamic_tensor(c, pt_list_item(c, arg, i))) {
            return true;
        }
    }
    return false;
}

static bool has_item(const pt_context *c, pt_ref list, pt_ref tensor) {
    for (uint32_t i = 0; i < pt_list_length(c, list); i++) {
        if (pt_list_item(c, list, i) == tensor) {
            return true;
        }
    }
    return false;
}

bool pt_is_input(const pt_context *c, pt_ref arg) {
    const pt_instruction *instruction = instruction_at(c, c->position);
    const char *signature = pt_operator_signature(instruction->kernel);
    for (uint32_t i = 0; i < instruction->n_args; i++) {
        bool is_list = signature[i] == 'V' || signature[i] == 'U';
        bool is_tensor = signature[i] == 'T' || signature[i] == 't';
        if ((is_tensor && instruction->args[i] == arg) ||
            (is_list && has_item(c, instruction->args[i], arg))) {
            return true;
        }
    }
    return false;
}

static bool is_dynamic_call(const pt_context *c, const pt_instruction *instruction) {
    const char *signature = pt_operator_signature(instruction->kernel);
    for (uint32_t i = 0; i < instruction->n_args && signature[i]; i++) {
        if (is_dynamic(c, instruction->args[i], signature[i])) {
            return true;
        }
    }
    return false;
}

// At load. What a check of upper bounds says is of no account, only the scratch it asks for.
static int check_kernel_call(pt_context *c, pt_instruction *instruction) {
    if (!pt_operator_kernel(instruction->kernel)) {
        return pt_fail(c, PT_ERROR_OPERATOR_MISSING, "this build has no kernel of this number");
    }
    bool is_static = !is_dynamic_call(c, instruction);
    instruction->op = is_static ? PT_OP_KERNEL_CALL : PT_OP_DYNAMIC_CALL;
    c->checking = is_static ? PT_CHECK_STATIC : PT_CHECK_BOUNDS;
    int error = check_kinds(c, instruction);
    if (error == PT_ERROR_OK) {
        error = check_kernel(c, instruction);
        error = is_static ? error : PT_ERROR_OK;
    }
    return error;
}

static int check_condition(pt_context *c, pt_ref condition) {
    bool known =
        pt_has_kind(c, condition, 'B') ||
        (pt_has_kind(c, condition, 'T') && pt_get_tensor(c, condition).dtype == PT_DTYPE_BOOL);
    return known
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_INVALID_PROGRAM, "a condition is no bool and no bool tensor");
}

static int check_move(pt_context *c, pt_ref from, pt_ref to) {
    if (pt_has_kind(c, to, 'N') && (pt_has_kind(c, from, 'S') || pt_has_kind(c, from, 'N'))) {
        return PT_ERROR_OK;
    }
    if (!pt_has_kind(c, from, 'T') || !pt_has_kind(c, to, 'O')) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                       "moves other than of a tensor to a tensor and of a number to a number");
    }
    pt_tensor in = pt_get_tensor(c, from), out = pt_get_tensor(c, to);
    bool is_dynamic = (in.flags | out.flags) & PT_VALUE_DYNAMIC;
    if (in.dtype != out.dtype || !(is_dynamic || pt_same_sizes(&in, &out)) ||
        !pt_same_dim_order(&in, &out)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "moves to a tensor of another dtype or layout");
    }
    return PT_ERROR_OK;
}

int pt_check_instruction(pt_context *c, uint32_t position) {
    pt_instruction *instruction = instruction_at(c, position);
    c->reason = NULL;
    c->argument = -1;
    c->checking = PT_CHECK_BOUNDS;
    switch (instruction->op) {
    case PT_OP_KERNEL_CALL:
    case PT_OP_DYNAMIC_CALL:
        return check_kernel_call(c, instruction);
    case PT_OP_JUMP_FALSE:
        return check_condition(c, instruction->args[0]);
    case PT_OP_MOVE:
        return check_move(c, instruction->args[0], instruction->args[1]);
    default:
        return PT_ERROR_OK;
    }
}

static uint32_t offset_of(pt_ref ref) {
    return (ref & ((1u << PT_REF_OFFSET_BITS) - 1)) << 2;
}

void pt_start(pt_context *c, uint32_t method) {
    c->method = method;
    const pt_method *m = method_of(c);
    c->program_values = m->program_values;
    c->prepared = m->prepared;
    c->instruction = 0;
    c->position = offset_of(m->instructions);
}

static void go_on(pt_context *c, const pt_instruction *instruction) {
    c->instruction++;
    c->position += sizeof(pt_instruction) + instruction->n_args * sizeof(pt_ref);
}

int pt_check_method(pt_context *c, uint32_t method) {
    int error = PT_ERROR_OK;
    pt_start(c, method);
    while (error == PT_ERROR_OK && c->instruction < method_of(c)->n_instructions) {
        error = pt_check_instruction(c, c->position);
        if (error == PT_ERROR_OK) {
            go_on(c, instruction_at(c, c->position));
        }
    }
    return error;
}

// ---- preparing

// Bytes of the references to what is prepared.
static uint32_t prepared_table(uint32_t n_instructions) {
    return (n_instructions * (uint32_t)sizeof(pt_ref) + 7) & ~7u;
}

uint32_t pt_prepared_bytes(const pt_context *c, uint32_t method) {
    const pt_method *m = (const pt_method *)(const void *)(c->memory[PT_MEMORY_POOL] + method);
    return c->prepared_needed ? prepared_table(m->n_instructions) + c->prepared_needed : 0;
}

void *pt_ask_prepared(pt_context *c, uint32_t bytes) {
    if (!c->prepares || c->checking != PT_CHECK_STATIC || bytes > PT_MEMORY_LIMIT) {
        return NULL;
    }
    bytes = (bytes + 7) & ~7u;
    if (!c->prepare_at) {
        bool fits = c->prepared_needed <= PT_MEMORY_LIMIT;
        c->prepared_needed += fits ? bytes : 0;
        return NULL;
    }
    if (bytes > c->prepare_left) {
        return NULL;
    }
    uint8_t *at = c->prepare_at;
    ((pt_ref *)(void *)pt_at(c, c->prepared))[c->instruction] =
        pt_make_ref(PT_MEMORY_POOL, (uint32_t)(at - c->memory[PT_MEMORY_POOL]));
    c->prepare_at += bytes;
    c->prepare_left -= bytes;
    return at;
}

void pt_prepare(pt_context *c, uint32_t method, uint32_t position) {
    pt_method *m = (pt_method *)(void *)(c->memory[PT_MEMORY_POOL] + method);
    uint32_t n = m->n_instructions;
    m->prepared = pt_make_ref(PT_MEMORY_POOL, position);
    memset(c->memory[PT_MEMORY_POOL] + position, 0, prepared_table(n));
    c->prepare_at = c->memory[PT_MEMORY_POOL] + position + prepared_table(n);
    c->prepare_left = c->prepared_needed;
    pt_start(c, method);
    while (c->instruction < n) {
        (void)pt_check_instruction(c, c->position);
        go_on(c, instruction_at(c, c->position));
    }
    c->prepare_at = NULL;
    pt_start(c, method);
}

// ---- running

// A tensor is true when all its elements are.
static int find_truth(pt_context *c, pt_ref condition, bool *is_true) {
    if (pt_has_kind(c, condition, 'B')) {
        *is_true = pt_get_bool(c, condition);
        return PT_ERROR_OK;
    }
    if (!pt_has_kind(c, condition, 'T')) {
        return pt_fail(c, PT_ERROR_INVALID_PROGRAM, "a condition is no bool");
    }
    pt_tensor t = pt_get_tensor(c, condition);
    const uint8_t *element = t.data;
    *is_true = true;
    for (int32_t n = pt_numel(&t); n > 0 && *is_true; n--) {
        *is_true = *element++;
    }
    return PT_ERROR_OK;
}

static int jump(pt_context *c, const pt_instruction *instruction) {
    bool is_true;
    int error = find_truth(c, instruction->args[0], &is_true);
    if (error != PT_ERROR_OK) {
        return error;
    }
    if (is_true) {
        go_on(c, instruction);
        return PT_ERROR_OK;
    }
    c->position = offset_of(instruction->args[1]);
    c->instruction = instruction->args[2];
    return PT_ERROR_OK;
}

static int move(pt_context *c, pt_ref from, pt_ref to) {
    if (is_variable(c, to)) {
        pt_set_scalar(c, to, pt_get_scalar(c, from));
        return PT_ERROR_OK;
    }
    pt_tensor in = pt_get_tensor(c, from);
    size_t nbytes = (size_t)pt_numel(&in) * pt_element_size(in.dtype);
    int error = pt_resize_tensor(c, to, in.rank, in.sizes);
    if (error == PT_ERROR_OK && nbytes > 0) {
        memmove(pt_get_tensor(c, to).data, in.data, nbytes);
    }
    return error;
}

// Runs a kernel after checking it with the sizes and numbers that there are now.
static int call_dynamic(pt_context *c, const pt_instruction *instruction) {
    uint32_t most = c->scratch_needed;
    c->scratch_needed = 0;
    c->argument = -1;
    int error = check_kinds(c, instruction);
    if (error == PT_ERROR_OK) {
        error = check_kernel(c, instruction);
    }
    if (error == PT_ERROR_OK && c->scratch_needed > c->scratch_size) {
        error = pt_fail(c, PT_ERROR_MEMORY_ALLOCATION_FAILED,
                        "needs more temp memory for these sizes than there is");
    }
    c->scratch_needed = c->scratch_needed > most ? c->scratch_needed : most;
    return error == PT_ERROR_OK ? pt_operator_kernel(instruction->kernel)->run(c, instruction->args)
                                : error;
}

// Whatever the delegate does to the context meanwhile, the method goes on where it was.
static int call_delegate(pt_context *c) {
    uint32_t index = c->instruction, position = c->position;
    if (!c->call_delegate) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "there are no delegates");
    }
    int error = c->call_delegate(c, position);
    c->instruction = index;
    c->position = position;
    return error;
}

// What is no static call: on a jump the position is another one afterwards.
static int run_other(pt_context *c, const pt_instruction *instruction) {
    const pt_ref *args = instruction->args;
    int error = PT_ERROR_OK;
    switch (instruction->op) {
    case PT_OP_JUMP_FALSE:
        return jump(c, instruction);
    case PT_OP_MOVE:
        error = move(c, args[0], args[1]);
        break;
    case PT_OP_DYNAMIC_CALL:
        error = call_dynamic(c, instruction);
        break;
    case PT_OP_DELEGATE_CALL:
        error = call_delegate(c);
        break;
    default:
        break;
    }
    if (error == PT_ERROR_OK) {
        go_on(c, instruction);
    }
    return error;
}

// Runs the instruction at the position and moves on when it succeeded.
static inline int run_next(pt_context *c) {
    const pt_instruction *instruction = instruction_at(c, c->position);
    if (instruction->op != PT_OP_KERNEL_CALL) {
        return run_other(c, instruction);
    }
    int error = pt_operator_kernel(instruction->kernel)->run(c, instruction->args);
    if (error == PT_ERROR_OK) {
        go_on(c, instruction);
    }
    return error;
}

// Adds the ticks since the last event.
static void count(pt_tracer *t, pt_event *event) {
    uint64_t now = t->clock(), ticks = (now - t->last) & t->mask;
    t->last = now;
    event->ticks += ticks > t->overhead ? ticks - t->overhead : 0;
    event->calls++;
}

static inline int run_traced(pt_context *c) {
    pt_event *event = &c->tracer.events[1 + c->instruction];
    int error = run_next(c);
    count(&c->tracer, event);
    return error;
}

// Back to the first instruction.
static void end(pt_context *c) {
    c->failed = c->instruction;
    pt_start(c, c->method);
}

int pt_step(pt_context *c) {
    c->reason = NULL;
    c->checking = PT_CHECK_RUN;
    if (c->instruction >= method_of(c)->n_instructions) {
        return PT_ERROR_END_OF_METHOD;
    }
    int error;
    if (c->tracer.events) {
        c->tracer.last = c->tracer.clock();
        error = run_traced(c);
    } else {
        error = run_next(c);
    }
    if (error != PT_ERROR_OK) {
        end(c);
    }
    return error;
}

static int poll(pt_context *c, uint32_t steps) {
    if (steps == PT_MAX_STEPS) {
        return pt_fail(c, PT_ERROR_INVALID_PROGRAM, "more than 10,000,000 instructions run");
    }
    return c->poll ? c->poll(c) : PT_ERROR_OK;
}

static inline int run_all(pt_context *c, int (*run)(pt_context *c)) {
    uint32_t n = method_of(c)->n_instructions;
    int error = PT_ERROR_OK;
    c->reason = NULL;
    c->checking = PT_CHECK_RUN;
    if (c->instruction != 0) {
        pt_start(c, c->method);
    }
    for (uint32_t steps = 0; error == PT_ERROR_OK && c->instruction < n; steps++) {
        error = poll(c, steps);
        if (error == PT_ERROR_OK) {
            error = run(c);
        }
    }
    end(c);
    return error;
}

int pt_execute(pt_context *c) {
    pt_tracer *t = &c->tracer;
    if (!t->events) {
        return run_all(c, run_next);
    }
    t->last = t->clock();
    int error = run_all(c, run_traced);
    count(t, &t->events[0]);
    return error;
}
