// Checks instruction records, at load and before dynamic calls, and packs the weights for which the
// checks request memory.
#include "core/record.h"
#include <string.h>

// True for a list of ints in the program with more items than loading may still read. A run sees
// only lists that loading has read.
static bool is_long_list(pt_context *c, pt_ref arg) {
    return c->checking != PT_CHECK_RUN && arg >> PT_REF_OFFSET_BITS == PT_MEMORY_PROGRAM &&
           pt_value_type(pt_at(c, arg)) == PT_TYPE_INT_LIST && !pt_charge_list_items(c, arg);
}

static const pt_value *check_record(const pt_context *c, pt_ref arg) {
    return pt_is_record(arg) ? (const pt_value *)(const void *)pt_at(c, arg) : NULL;
}

static int check_scratch(pt_context *c, const pt_instruction *instruction, const char *signature) {
    uint32_t n = instruction->n_args;
    const pt_ref *args = instruction->args;
    for (uint32_t i = 0; i < n; i++) {
        const bool is_scratch = (signature[i] & ~0x20) == 'X' && !pt_is_none(args[i]);
        if (is_scratch && !pt_is_apart(c, i, n, args)) {
            return pt_fail(c, PT_ERROR_INVALID_PROGRAM, "the scratch overlaps another tensor");
        }
    }
    return PT_ERROR_OK;
}

int pt_check_kinds(pt_context *c, const pt_instruction *instruction) {
    const char *signature = pt_operator_signature(instruction->kernel);
    for (uint32_t i = 0; i < instruction->n_args; i++) {
        char letter = signature[i];
        pt_ref arg = instruction->args[i];
        if (letter == 'T' && pt_tensor_record(c, arg)) { // the most frequent kind
            continue;
        }
        if (!letter) {
            return pt_fail(c, PT_ERROR_INVALID_PROGRAM, "more arguments than the operator has");
        }
        if ((letter == 'L' || letter == 'l') && is_long_list(c, arg)) {
            return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "too many items in lists of ints");
        }
        if (!pt_has_kind(c, arg, letter)) {
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

int pt_note_variant(pt_context *c, uint32_t variant) {
    pt_instruction *instruction = pt_instruction_at(c, c->position);
    uint8_t op = (uint8_t)(PT_OP_KERNEL_CALL | variant << 4);
    if (c->checking == PT_CHECK_STATIC && instruction->op != op) {
        if (pt_is_ptm(c)) {
            return pt_fail(c, PT_ERROR_INVALID_PROGRAM, "not the shortcut of its arguments");
        }
        instruction->op = op;
    }
    return PT_ERROR_OK;
}

static bool is_dynamic_tensor(const pt_context *c, pt_ref arg) {
    const pt_value *value = pt_tensor_record(c, arg);
    return value && value->flags & PT_VALUE_DYNAMIC;
}

bool pt_is_variable(const pt_context *c, pt_ref arg) {
    return !pt_is_none(arg) && pt_has_kind(c, arg, 'N');
}

// True if an argument's sizes or numbers may change from run to run.
static bool is_dynamic(const pt_context *c, pt_ref arg, char letter) {
    const pt_value *value = check_record(c, arg);
    if (!value || letter == 'N') {
        return false;
    }
    if (value->type < PT_VALUE_OTHER) {
        return value->flags & PT_VALUE_DYNAMIC;
    }
    if (PT_HAS_PTM && value->flags & PT_VALUE_CONSTANT) {
        return false;
    }
    if (pt_is_variable(c, arg) || value->type == PT_VALUE_OTHER + PT_TYPE_INT_LIST) {
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

bool pt_is_elsewhere(const pt_context *c, pt_ref arg) {
    const pt_instruction *instruction = pt_instruction_at(c, c->position);
    const char *signature = pt_operator_signature(instruction->kernel);
    uint32_t outputs = 0;
    for (uint32_t i = 0; i < instruction->n_args; i++) {
        bool is_list = signature[i] == 'V' || signature[i] == 'U';
        bool is_tensor = signature[i] == 'T' || signature[i] == 't';
        bool is_output = signature[i] == 'O' || signature[i] == 'o';
        outputs += is_output && instruction->args[i] == arg;
        if ((is_tensor && instruction->args[i] == arg) || outputs == 2 ||
            (is_list && has_item(c, instruction->args[i], arg))) {
            return true;
        }
    }
    return false;
}

bool pt_has_results(const pt_context *c) {
    const pt_instruction *instruction = pt_instruction_at(c, c->position);
    const char *signature = pt_operator_signature(instruction->kernel);
    for (uint32_t i = 0; i < instruction->n_args; i++) {
        const pt_ref arg = instruction->args[i];
        if ((signature[i] == 'O' || signature[i] == 'o') && !pt_is_none(arg)) {
            const pt_tensor t = pt_get_tensor(c, arg);
            if (pt_numel(&t) > 0) {
                return true;
            }
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

// Checks an instruction at load. With upper bounds the result of the check is ignored; its scratch
// request counts.
static int check_kernel_call(pt_context *c, pt_instruction *instruction) {
    if (!pt_operator_kernel(instruction->kernel)) {
        return pt_fail(c, PT_ERROR_OPERATOR_MISSING, "this build has no kernel of this number");
    }
    bool is_static = c->is_static || !is_dynamic_call(c, instruction);
    uint8_t op = is_static ? PT_OP_KERNEL_CALL : PT_OP_DYNAMIC_CALL;
    if (!pt_is_ptm(c)) {
        instruction->op = op;
    } else if (pt_op(instruction) != op) {
        return pt_fail(c, PT_ERROR_INVALID_PROGRAM, "its arguments change, or do not change");
    }
    c->checking = is_static ? PT_CHECK_STATIC : PT_CHECK_BOUNDS;
    int error = pt_check_kinds(c, instruction);
    if (error == PT_ERROR_OK) {
        error = check_kernel(c, instruction);
        error = is_static ? error : PT_ERROR_OK;
    }
    return error;
}

static int check_condition(pt_context *c, pt_ref condition) {
    bool is_boolean =
        pt_has_kind(c, condition, 'B') ||
        (pt_has_kind(c, condition, 'T') && pt_get_tensor(c, condition).dtype == PT_DTYPE_BOOL);
    return is_boolean
               ? PT_ERROR_OK
               : pt_fail(c, PT_ERROR_INVALID_PROGRAM, "a condition is not a bool or a bool tensor");
}

static int check_move(pt_context *c, pt_ref from, pt_ref to) {
    if (pt_has_kind(c, to, 'N') && (pt_has_kind(c, from, 'S') || pt_has_kind(c, from, 'N'))) {
        return PT_ERROR_OK;
    }
    if (!pt_has_kind(c, from, 'T') || !pt_has_kind(c, to, 'O')) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED,
                       "moves other than from tensor to tensor or from number to number");
    }
    pt_tensor in = pt_get_tensor(c, from), out = pt_get_tensor(c, to);
    bool is_dynamic = (in.flags | out.flags) & PT_VALUE_DYNAMIC;
    if (in.dtype != out.dtype || !(is_dynamic || pt_same_sizes(&in, &out)) ||
        !pt_same_dim_order(&in, &out)) {
        return pt_fail(c, PT_ERROR_NOT_SUPPORTED, "moves to a tensor with another dtype or layout");
    }
    return PT_ERROR_OK;
}

int pt_check_instruction(pt_context *c, uint32_t position) {
    pt_instruction *instruction = pt_instruction_at(c, position);
    c->reason = NULL;
    c->argument = -1;
#if PT_HAS_ANY_CORE
    c->replaced = 0;
    c->uses_plain = false;
#endif
    c->checking = PT_CHECK_BOUNDS;
    switch (instruction->op) {
    case PT_OP_JUMP_FALSE:
        return check_condition(c, instruction->args[0]);
    case PT_OP_MOVE:
        return check_move(c, instruction->args[0], instruction->args[1]);
    case PT_OP_NOTHING:
    case PT_OP_DELEGATE_CALL:
        return PT_ERROR_OK;
    default: // a kernel call, with any variant
        return check_kernel_call(c, instruction);
    }
}

int pt_check_method(pt_context *c) {
    int error = PT_ERROR_OK;
    pt_start(c);
    while (error == PT_ERROR_OK && c->instruction < pt_record_of(c)->n_instructions) {
        error = pt_check_instruction(c, c->position);
        if (error == PT_ERROR_OK) {
            pt_go_on(c, pt_instruction_at(c, c->position));
        }
    }
    return error;
}

// ---- packing

// Returns the bytes of the references to packed weights.
static uint32_t packed_table(uint32_t n_instructions) {
    return (n_instructions * (uint32_t)sizeof(pt_ref) + 7) & ~7u;
}

uint32_t pt_packed_bytes(const pt_context *c) {
    uint32_t needed = c->packed_needed;
    return needed ? packed_table(pt_record_of(c)->n_instructions) + needed : 0;
}

// True if the .ptm file has packed weights of this size for the instruction, at a multiple of 8.
static bool has_packed(const pt_context *c, uint32_t bytes) {
    pt_ref ref = ((const pt_ref *)(const void *)pt_at(c, c->packed))[c->instruction];
    uint32_t at = pt_offset_of(ref), size = c->memory_size[PT_MEMORY_PROGRAM];
    return ref >> PT_REF_OFFSET_BITS == PT_MEMORY_PROGRAM && at % PT_ALIGNMENT == 0 && at <= size &&
           bytes <= size - at;
}

void *pt_request_packed(pt_context *c, uint32_t bytes) {
    if (!c->packs || c->checking != PT_CHECK_STATIC || bytes > PT_MEMORY_LIMIT) {
        return NULL;
    }
    if (pt_is_ptm(c)) {
        c->packed_needed += has_packed(c, bytes);
        return NULL;
    }
    if (!PT_HAS_PACKING) {
        return NULL;
    }
    bytes = (bytes + 7) & ~7u;
    if (!c->pack_at) {
        bool fits = c->packed_needed <= PT_MEMORY_LIMIT;
        c->packed_needed += fits ? bytes : 0;
        return NULL;
    }
    if (bytes > c->packed_needed) {
        return NULL;
    }
    uint8_t *at = c->pack_at;
    ((pt_ref *)(void *)pt_at(c, c->packed))[c->instruction] =
        pt_make_ref(PT_MEMORY_POOL, (uint32_t)(at - c->memory[PT_MEMORY_POOL]));
    c->pack_at += bytes;
    c->packed_needed -= bytes;
    return at;
}

void pt_pack_weights(pt_context *c, uint32_t position) {
    pt_method_record *m = pt_record_of(c);
    uint32_t size = packed_table(m->n_instructions);
    uint8_t *table = c->memory[PT_MEMORY_POOL] + position;
    m->packed = c->packed = pt_make_ref(PT_MEMORY_POOL, position);
    memset(table, 0, size);
    c->pack_at = table + size;
    (void)pt_check_method(c); // the same check has passed before
    c->pack_at = NULL;
    pt_start(c);
}
