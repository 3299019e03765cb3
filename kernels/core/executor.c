// Checking instruction records at load, and executing them.
#include "core.h"
#include <string.h>

static const pt_method *method_of(const pt_context *c) {
    return (const pt_method *)(const void *)(c->memory[PT_MEMORY_POOL] + c->method);
}

static const pt_instruction *instruction_at(const pt_context *c, uint32_t position) {
    return (const pt_instruction *)(const void *)(c->memory[PT_MEMORY_POOL] + position);
}

static int check_kernel_call(pt_context *c, const pt_instruction *instruction) {
    const pt_kernel *kernel = pt_operator_kernel(instruction->kernel);
    if (!kernel) {
        return pt_fail(c, PT_ERROR_OPERATOR_MISSING, "this build has no kernel of this number");
    }
    const char *signature = pt_operator_signature(instruction->kernel);
    for (uint32_t i = 0; i < instruction->n_args; i++) {
        if (!signature[i]) {
            return pt_fail(c, PT_ERROR_INVALID_PROGRAM, "more arguments than the operator has");
        }
        if (!pt_has_kind(c, instruction->args[i], signature[i])) {
            c->argument = (int32_t)i;
            return pt_fail(c, PT_ERROR_INVALID_PROGRAM, "is of the wrong kind");
        }
    }
    if (signature[instruction->n_args]) {
        return pt_fail(c, PT_ERROR_INVALID_PROGRAM, "fewer arguments than the operator has");
    }
    return kernel->check(c, instruction->args);
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
    if (!pt_has_kind(c, from, 'T') || !pt_has_kind(c, to, 'O')) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "moves of values that are no tensors");
    }
    pt_tensor in = pt_get_tensor(c, from), out = pt_get_tensor(c, to);
    if (in.dtype != out.dtype || !pt_same_sizes(&in, &out) || !pt_same_dim_order(&in, &out)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "moves to a tensor of another dtype or layout");
    }
    return PT_ERROR_OK;
}

int pt_check_instruction(pt_context *c, uint32_t position) {
    const pt_instruction *instruction = instruction_at(c, position);
    c->reason = NULL;
    c->argument = -1;
    switch (instruction->op) {
    case PT_OP_KERNEL_CALL:
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

// A tensor is true when all its elements are.
static bool is_true(const pt_context *c, pt_ref condition) {
    if (!pt_has_kind(c, condition, 'T')) {
        return pt_get_bool(c, condition);
    }
    pt_tensor t = pt_get_tensor(c, condition);
    const uint8_t *element = t.data;
    for (int32_t n = pt_numel(&t); n > 0; n--) {
        if (!*element++) {
            return false;
        }
    }
    return true;
}

static void move(const pt_context *c, pt_ref from, pt_ref to) {
    pt_tensor in = pt_get_tensor(c, from), out = pt_get_tensor(c, to);
    memmove(out.data, in.data, (size_t)pt_numel(&in) * pt_element_size(in.dtype));
}

static void go_on(pt_context *c, const pt_instruction *instruction) {
    c->instruction++;
    c->position += sizeof(pt_instruction) + instruction->n_args * sizeof(pt_ref);
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

static int run_other(pt_context *c, const pt_instruction *instruction) {
    const pt_ref *args = instruction->args;
    if (instruction->op == PT_OP_DELEGATE_CALL) {
        int error = call_delegate(c);
        if (error != PT_ERROR_OK) {
            return error;
        }
    }
    if (instruction->op == PT_OP_JUMP_FALSE && !is_true(c, args[0])) {
        c->position = offset_of(args[1]);
        c->instruction = args[2];
        return PT_ERROR_OK;
    }
    if (instruction->op == PT_OP_MOVE) {
        move(c, args[0], args[1]);
    }
    go_on(c, instruction);
    return PT_ERROR_OK;
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
    if (!c->prepares || bytes > PT_MEMORY_LIMIT) {
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

int pt_step(pt_context *c) {
    c->reason = NULL;
    return c->instruction < method_of(c)->n_instructions ? run_next(c) : PT_ERROR_END_OF_METHOD;
}

int pt_execute(pt_context *c) {
    uint32_t n = method_of(c)->n_instructions;
    int error = PT_ERROR_OK;
    c->reason = NULL;
    if (c->instruction != 0) {
        pt_start(c, c->method);
    }
    for (uint32_t steps = 0; error == PT_ERROR_OK && c->instruction < n; steps++) {
        error = steps < PT_MAX_STEPS
                    ? run_next(c)
                    : pt_fail(c, PT_ERROR_INVALID_PROGRAM, "more than 10,000,000 instructions run");
    }
    if (error == PT_ERROR_OK) {
        pt_start(c, c->method);
    }
    return error;
}
