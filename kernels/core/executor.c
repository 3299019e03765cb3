// Checking instruction records at load, and executing them.
#include "core.h"

static const pt_method *method_of(const pt_context *c) {
    return (const pt_method *)(const void *)(c->memory[PT_MEMORY_POOL] + c->method);
}

static const pt_instruction *instruction_at(const pt_context *c, uint32_t position) {
    return (const pt_instruction *)(const void *)(c->memory[PT_MEMORY_POOL] + position);
}

int pt_check_instruction(pt_context *c, uint32_t position) {
    const pt_instruction *instruction = instruction_at(c, position);
    const char *signature = pt_operator_signature(instruction->kernel);
    c->reason = NULL;
    for (uint32_t i = 0; i < instruction->n_args; i++) {
        if (!signature[i]) {
            return pt_fail(c, PT_ERROR_INVALID_PROGRAM, "more arguments than the operator has");
        }
        if (!pt_has_kind(c, instruction->args[i], signature[i])) {
            c->argument = i;
            return pt_fail(c, PT_ERROR_INVALID_PROGRAM, "an argument is of the wrong kind");
        }
    }
    if (signature[instruction->n_args]) {
        return pt_fail(c, PT_ERROR_INVALID_PROGRAM, "fewer arguments than the operator has");
    }
    return pt_operator_kernel(instruction->kernel)->check(c, instruction->args);
}

void pt_start(pt_context *c, uint32_t method) {
    c->method = method;
    const pt_method *m = method_of(c);
    c->program_values = m->program_values;
    c->instruction = 0;
    c->position = (m->instructions & ((1u << PT_REF_OFFSET_BITS) - 1)) << 2;
}

// Runs the instruction at the position and moves on behind it when it succeeded.
static inline int run_next(pt_context *c) {
    const pt_instruction *instruction = instruction_at(c, c->position);
    int error = pt_operator_kernel(instruction->kernel)->run(c, instruction->args);
    if (error == PT_ERROR_OK) {
        c->instruction++;
        c->position += sizeof(pt_instruction) + instruction->n_args * sizeof(pt_ref);
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
    while (error == PT_ERROR_OK && c->instruction < n) {
        error = run_next(c);
    }
    if (error == PT_ERROR_OK) {
        pt_start(c, c->method);
    }
    return error;
}
