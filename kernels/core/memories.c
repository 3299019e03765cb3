// What is asked of memories that are handed over: that they are apart, and which are written.
#include "core.h"

static bool overlap(const uint8_t *a, uint32_t a_size, const uint8_t *b, uint32_t b_size) {
    return a_size > 0 && b_size > 0 && (uintptr_t)a < (uintptr_t)b + b_size &&
           (uintptr_t)b < (uintptr_t)a + a_size;
}

static const pt_method *method_of(const pt_context *c) {
    return (const pt_method *)(const void *)(c->memory[PT_MEMORY_POOL] + c->method);
}

static uint32_t events_size(const pt_context *c) {
    return c->tracer.events ? (method_of(c)->n_instructions + 1) * (uint32_t)sizeof(pt_event) : 0;
}

uint32_t pt_find_overlap(const pt_context *c, const uint8_t *data, uint32_t size, uint32_t first,
                         uint32_t end) {
    for (uint32_t i = first; i < end; i++) {
        if (overlap(data, size, c->memory[i], c->memory_size[i])) {
            return i;
        }
    }
    bool is_shared = overlap(data, size, c->scratch, c->scratch_size) ||
                     overlap(data, size, (const uint8_t *)c->tracer.events, events_size(c));
    return is_shared ? PT_MEMORIES : PT_MEMORY_NONE;
}

// In references, which tell before all memories are known: those share no bytes.
static bool share_bytes(const pt_context *c, pt_ref a, pt_ref b) {
    const pt_value *x = (const pt_value *)(const void *)pt_at(c, a);
    const pt_value *y = (const pt_value *)(const void *)pt_at(c, b);
    uint32_t x_words = (pt_capacity(c, a) * pt_element_size(x->type) + 3) / 4;
    uint32_t y_words = (pt_capacity(c, b) * pt_element_size(y->type) + 3) / 4;
    return x->data >> PT_REF_OFFSET_BITS == y->data >> PT_REF_OFFSET_BITS && x_words > 0 &&
           y_words > 0 && x->data < y->data + y_words && y->data < x->data + x_words;
}

bool pt_is_apart(const pt_context *c, uint32_t place, uint32_t n, const pt_ref *args) {
    for (uint32_t i = 0; i < n; i++) {
        if (i != place && pt_has_kind(c, args[i], 'T') && share_bytes(c, args[place], args[i])) {
            return false;
        }
    }
    return true;
}

static uint32_t memory_of(const pt_context *c, pt_ref tensor) {
    return ((const pt_value *)(const void *)pt_at(c, tensor))->data >> PT_REF_OFFSET_BITS;
}

static bool list_lies_in(const pt_context *c, pt_ref list, uint32_t memory) {
    for (uint32_t i = 0; i < pt_list_length(c, list); i++) {
        pt_ref item = pt_list_item(c, list, i);
        if (!pt_is_none(item) && memory_of(c, item) == memory) {
            return true;
        }
    }
    return false;
}

static bool kernel_writes_to(const pt_context *c, const pt_instruction *instruction,
                             uint32_t memory) {
    const char *signature = pt_operator_signature(instruction->kernel);
    for (uint32_t i = 0; i < instruction->n_args; i++) {
        pt_ref arg = instruction->args[i];
        if (((signature[i] == 'O' || signature[i] == 'X') && memory_of(c, arg) == memory) ||
            (signature[i] == 'W' && list_lies_in(c, arg, memory))) {
            return true;
        }
    }
    return false;
}

// A delegate may write to any of its tensors: the program does not say to which.
static bool delegate_writes_to(const pt_context *c, const pt_instruction *instruction,
                               uint32_t memory) {
    for (uint32_t i = 0; i + 1 < instruction->n_args; i++) {
        pt_ref arg = instruction->args[i];
        if (arg >> PT_REF_OFFSET_BITS != PT_MEMORY_POOL) {
            continue;
        }
        uint8_t type = ((const pt_value *)(const void *)pt_at(c, arg))->type;
        bool is_list = type == PT_VALUE_OTHER + PT_TYPE_TENSOR_LIST ||
                       type == PT_VALUE_OTHER + PT_TYPE_OPTIONAL_TENSOR_LIST;
        if ((is_list && list_lies_in(c, arg, memory)) ||
            (type < PT_VALUE_OTHER && memory_of(c, arg) == memory)) {
            return true;
        }
    }
    return false;
}

static bool writes_to(const pt_context *c, const pt_instruction *instruction, uint32_t memory) {
    switch (instruction->op) {
    case PT_OP_DELEGATE_CALL:
        return delegate_writes_to(c, instruction, memory);
    case PT_OP_KERNEL_CALL:
    case PT_OP_DYNAMIC_CALL:
        return kernel_writes_to(c, instruction, memory);
    case PT_OP_MOVE:
        return pt_has_kind(c, instruction->args[1], 'T') &&
               memory_of(c, instruction->args[1]) == memory;
    default:
        return false;
    }
}

bool pt_is_written(const pt_context *c, uint32_t memory) {
    const pt_method *method = method_of(c);
    const uint8_t *at = pt_at(c, method->instructions);
    for (uint32_t i = 0; i < method->n_instructions; i++) {
        const pt_instruction *instruction = (const pt_instruction *)(const void *)at;
        if (writes_to(c, instruction, memory)) {
            return true;
        }
        at += sizeof(pt_instruction) + instruction->n_args * sizeof(pt_ref);
    }
    return false;
}

uint32_t pt_find_shared(const pt_context *c, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++) {
        for (uint32_t k = first; k < i; k++) {
            if (overlap(c->memory[i], c->memory_size[i], c->memory[k], c->memory_size[k]) &&
                (pt_is_written(c, i) || pt_is_written(c, k))) {
                return i;
            }
        }
    }
    return PT_MEMORY_NONE;
}
