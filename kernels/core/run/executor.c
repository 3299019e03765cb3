// Executing the instructions of a method.
#include "core/record.h"
#include <string.h>

void pt_start(pt_context *c) {
    const pt_method_record *m = pt_record_of(c);
    c->instruction = 0;
    c->position = pt_offset_of(m->instructions);
}

// True if all elements of a tensor are true.
static int find_truth(pt_context *c, pt_ref condition, bool *is_true) {
    if (pt_has_kind(c, condition, 'B')) {
        *is_true = pt_get_bool(c, condition);
        return PT_ERROR_OK;
    }
    if (!pt_has_kind(c, condition, 'T')) {
        return pt_fail(c, PT_ERROR_INVALID_PROGRAM, "a condition is not a bool");
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
        pt_go_on(c, instruction);
        return PT_ERROR_OK;
    }
    c->position = pt_offset_of(instruction->args[1]);
    c->instruction = instruction->args[2];
    return PT_ERROR_OK;
}

static int move(pt_context *c, pt_ref from, pt_ref to) {
    if (pt_is_variable(c, to)) {
        pt_set_scalar(c, to, pt_get_scalar(c, from));
        return PT_ERROR_OK;
    }
    pt_tensor in = pt_get_tensor(c, from);
    size_t nbytes = pt_nbytes(&in);
    int error = pt_resize_tensor(c, to, in.rank, in.sizes);
    if (error == PT_ERROR_OK && nbytes > 0) {
        memmove(pt_get_tensor(c, to).data, in.data, nbytes);
    }
    return error;
}

// Runs a kernel after checking it with the current sizes and numbers.
static int call_dynamic(pt_context *c, const pt_instruction *instruction) {
    uint32_t max = c->min_scratch;
    c->min_scratch = 0;
    c->argument = -1;
    int error = pt_check_kinds(c, instruction);
    if (error == PT_ERROR_OK) {
        error = pt_operator_kernel(instruction->kernel)->check(c, instruction->args);
    }
    if (error == PT_ERROR_OK && c->min_scratch > c->scratch_size) {
        error = pt_fail(c, PT_ERROR_MEMORY_ALLOCATION_FAILED,
                        "needs more temp memory for these sizes than is available");
    }
    c->min_scratch = c->min_scratch > max ? c->min_scratch : max;
    return error == PT_ERROR_OK ? pt_operator_kernel(instruction->kernel)->run(c, instruction->args)
                                : error;
}

// The method continues at this instruction, whatever the delegate does to the context.
static int executor_call_delegate(pt_context *c) {
    uint32_t index = c->instruction, position = c->position;
    if (!c->call_delegate) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "there are no delegates");
    }
    int error = c->call_delegate(c, position);
    c->instruction = index;
    c->position = position;
    return error;
}

// Runs any instruction except a static kernel call. A jump changes the position.
static int run_other(pt_context *c, const pt_instruction *instruction) {
    const pt_ref *args = instruction->args;
    int error = PT_ERROR_OK;
    if (!PT_HAS_DYNAMIC && instruction->op != PT_OP_NOTHING) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "this build has no instructions but calls");
    }
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
        error = executor_call_delegate(c);
        break;
    default:
        break;
    }
    if (error == PT_ERROR_OK) {
        pt_go_on(c, instruction);
    }
    return error;
}

// Runs a call with the larger of the temp memory and the call's idle scratch in planned memory. The
// function is cold, so that methods without idle scratch do not pay for it.
static __attribute__((noinline, cold)) int call_in_place(pt_context *c,
                                                         const pt_instruction *instruction) {
    const pt_idle_scratch *idle = pt_idle_scratch_of(c);
    uint8_t *temp = c->scratch;
    const uint32_t size = c->scratch_size;
    if (idle->bytes > size) {
        c->scratch = pt_at(c, idle->to);
        c->scratch_size = idle->bytes;
    }
    int error = pt_operator_kernel(instruction->kernel)->run(c, instruction->args);
    c->scratch = temp;
    c->scratch_size = size;
    return error;
}

// Runs the instruction at the position, and moves to the next if it succeeds.
static inline int run_next(pt_context *c) {
    const pt_instruction *instruction = pt_instruction_at(c, c->position);
    if (pt_op(instruction) != PT_OP_KERNEL_CALL) {
        return run_other(c, instruction);
    }
    int error = PT_HAS_PTM && c->idle_scratch
                    ? call_in_place(c, instruction)
                    : pt_operator_kernel(instruction->kernel)->run(c, instruction->args);
    if (error == PT_ERROR_OK) {
        pt_go_on(c, instruction);
    }
    return error;
}

// Adds the ticks since the last event.
static void executor_count(pt_tracer *t, pt_event *event) {
    uint64_t now = t->clock(), ticks = (now - t->last) & t->mask;
    t->last = now;
    event->ticks += ticks > t->overhead ? ticks - t->overhead : 0;
    event->calls++;
}

static __attribute__((noinline)) int run_traced(pt_context *c) {
    pt_event *event = &c->tracer.events[1 + c->instruction];
    int error = run_next(c);
    executor_count(&c->tracer, event);
    return error;
}

// Moves back to the first instruction.
static void end(pt_context *c) {
    c->failed = c->instruction;
    pt_start(c);
}

int pt_context_step(pt_context *c) {
    c->reason = NULL;
    c->checking = PT_CHECK_RUN;
    if (c->instruction >= pt_record_of(c)->n_instructions) {
        return PT_ERROR_END_OF_METHOD;
    }
    int error;
    if (PT_HAS_TRACER && c->tracer.events) {
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

int pt_poll_now(pt_context *c) {
    c->poll_budget = PT_POLL_WORK;
    return c->poll ? c->poll(c) : PT_ERROR_OK;
}

int pt_count_product(pt_context *c, int32_t a, int32_t b) {
    int64_t steps = (int64_t)a * b;
    return pt_count_work(c, steps < PT_POLL_WORK ? (int32_t)steps : PT_POLL_WORK);
}

// Polls before an instruction, which counts as a fixed number of steps.
static inline int executor_poll(pt_context *c, uint32_t instructions) {
    enum { INSTRUCTION = 1 << 12 };
    if (instructions == PT_MAX_STEPS) {
        return pt_fail(c, PT_ERROR_INVALID_PROGRAM, "more than 10,000,000 instructions run");
    }
    return pt_count_work(c, INSTRUCTION);
}

static inline int run_all(pt_context *c, int (*run)(pt_context *c)) {
    uint32_t n = pt_record_of(c)->n_instructions;
    int error = PT_ERROR_OK;
    c->reason = NULL;
    c->checking = PT_CHECK_RUN;
    if (c->instruction != 0) {
        pt_start(c);
    }
    for (uint32_t steps = 0; error == PT_ERROR_OK && c->instruction < n; steps++) {
        error = executor_poll(c, steps);
        if (error == PT_ERROR_OK) {
            error = run(c);
        }
    }
    end(c);
    return error;
}

int pt_context_execute(pt_context *c) {
    pt_tracer *t = &c->tracer;
    if (!PT_HAS_TRACER || !t->events) {
        return run_all(c, run_next);
    }
    t->last = t->clock();
    int error = run_all(c, run_traced);
    executor_count(t, &t->events[0]);
    return error;
}
