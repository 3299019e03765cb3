// Checks of the caller's memories: size, alignment, overlaps, and which memories are written.
#include "core/load/memories.h"
#include "core/format/format.h"
#include "core/record.h"
#include "core/report.h"

// Compares distances, since the end of a memory may be the end of the address space, which is 0.
static bool memories_overlap(const uint8_t *a, uint32_t a_size, const uint8_t *b, uint32_t b_size) {
    return a_size > 0 && b_size > 0 &&
           ((uintptr_t)a - (uintptr_t)b < b_size || (uintptr_t)b - (uintptr_t)a < a_size);
}

uint32_t pt_find_overlap(const pt_context *c, const uint8_t *data, uint32_t size, uint32_t first,
                         uint32_t end) {
    for (uint32_t i = first; i < end; i++) {
        if (memories_overlap(data, size, c->memory[i], c->memory_size[i])) {
            return i;
        }
    }
    uint32_t before = PT_HAS_PTM && first <= PT_MEMORY_POOL ? c->pool_before : 0;
    if (memories_overlap(data, size, c->memory[PT_MEMORY_POOL] - before, before)) {
        return PT_MEMORY_POOL;
    }
    const uint8_t *events = (const uint8_t *)c->tracer.events;
    bool is_shared =
        memories_overlap(data, size, c->scratch, c->scratch_size) ||
        (PT_HAS_TRACER && events && memories_overlap(data, size, events, pt_events_size(c)));
    return is_shared ? PT_MEMORIES : PT_MEMORY_NONE;
}

// Returns the size of a tensor in words.
static uint32_t words_of(const pt_context *c, pt_ref tensor, const pt_value *value) {
    return (pt_capacity(c, tensor) * pt_element_size(value->type) + 3) / 4;
}

// True if two tensors share bytes of a memory, or of its further memories.
static bool share_bytes(const pt_context *c, const pt_value *x, uint32_t x_words, const pt_value *y,
                        uint32_t y_words) {
    return c->memory[x->data >> PT_REF_OFFSET_BITS] && c->memory[y->data >> PT_REF_OFFSET_BITS] &&
           memories_overlap(pt_at(c, x->data), 4 * x_words, pt_at(c, y->data), 4 * y_words);
}

// Compares references, since it is called before all memories are bound. Different memories share
// no bytes, except further memories of one file.
bool pt_is_apart(const pt_context *c, uint32_t argument, uint32_t n, const pt_ref *args) {
    const pt_value *x = (const pt_value *)(const void *)pt_at(c, args[argument]);
    uint32_t words = words_of(c, args[argument], x);
    for (uint32_t i = 0; i < n && words > 0; i++) {
        const pt_value *y = pt_tensor_record(c, args[i]);
        if (PT_PROGRAM_LIMIT > PT_MEMORY_LIMIT && y && i != argument &&
            share_bytes(c, x, words, y, words_of(c, args[i], y))) {
            return false;
        }
        if (!y || i == argument || y->data >> PT_REF_OFFSET_BITS != x->data >> PT_REF_OFFSET_BITS ||
            y->data >= x->data + words) {
            continue;
        }
        uint32_t y_words = words_of(c, args[i], y);
        if (y_words > 0 && x->data < y->data + y_words) {
            return false;
        }
    }
    return true;
}

static __attribute__((noinline)) bool is_over(const pt_context *c, pt_ref tensor,
                                              const pt_value *value, const pt_idle_scratch *idle) {
    return (value->data ^ idle->to) >> PT_REF_OFFSET_BITS == 0 &&
           value->data < idle->to + (idle->bytes + 3) / 4 &&
           idle->to < value->data + words_of(c, tensor, value);
}

static bool memories_is_tensor_list(uint8_t type) {
    return type == PT_VALUE_OTHER + PT_TYPE_TENSOR_LIST ||
           type == PT_VALUE_OTHER + PT_TYPE_OPTIONAL_TENSOR_LIST;
}

bool pt_is_idle(const pt_context *c, const pt_instruction *call, const pt_idle_scratch *idle) {
    for (uint32_t i = 0; i < call->n_args; i++) {
        pt_ref arg = call->args[i];
        if (!pt_is_record(arg)) {
            continue;
        }
        const pt_value *value = (const pt_value *)(const void *)pt_at(c, arg);
        if (value->type < PT_VALUE_OTHER && is_over(c, arg, value, idle)) {
            return false;
        }
        uint32_t n = memories_is_tensor_list(value->type) ? pt_list_length(c, arg) : 0;
        for (uint32_t k = 0; k < n; k++) {
            pt_ref item = pt_list_item(c, arg, k);
            value = pt_tensor_record(c, item);
            if (value && is_over(c, item, value, idle)) {
                return false;
            }
        }
    }
    return true;
}

static uint32_t memories_memory_of(const pt_context *c, pt_ref tensor) {
    return pt_is_none(tensor)
               ? PT_MEMORY_NONE
               : ((const pt_value *)(const void *)pt_at(c, tensor))->data >> PT_REF_OFFSET_BITS;
}

static bool list_lies_in(const pt_context *c, pt_ref list, uint32_t memory) {
    for (uint32_t i = 0; i < pt_list_length(c, list); i++) {
        if (memories_memory_of(c, pt_list_item(c, list, i)) == memory) {
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
        uint32_t letter = signature[i] & ~0x20u; // lower case: an output that may be None
        if (((letter == 'O' || letter == 'C' || letter == 'X') &&
             memories_memory_of(c, arg) == memory) ||
            (letter == 'W' && list_lies_in(c, arg, memory))) {
            return true;
        }
    }
    return false;
}

// A delegate may write to any of its tensors: the program does not state which.
static bool delegate_writes_to(const pt_context *c, const pt_instruction *instruction,
                               uint32_t memory) {
    for (uint32_t i = 0; i + 1 < instruction->n_args; i++) {
        pt_ref arg = instruction->args[i];
        if (!pt_is_record(arg)) {
            continue;
        }
        uint8_t type = ((const pt_value *)(const void *)pt_at(c, arg))->type;
        if ((memories_is_tensor_list(type) && list_lies_in(c, arg, memory)) ||
            (type < PT_VALUE_OTHER && memories_memory_of(c, arg) == memory)) {
            return true;
        }
    }
    return false;
}

static bool writes_to(const pt_context *c, const pt_instruction *instruction, uint32_t memory) {
    switch (instruction->op) {
    case PT_OP_DELEGATE_CALL:
        return delegate_writes_to(c, instruction, memory);
    case PT_OP_MOVE:
        return pt_has_kind(c, instruction->args[1], 'T') &&
               memories_memory_of(c, instruction->args[1]) == memory;
    case PT_OP_NOTHING:
    case PT_OP_JUMP_FALSE:
        return false;
    default: // a kernel call, with any variant
        return kernel_writes_to(c, instruction, memory);
    }
}

bool pt_is_written(const pt_context *c, uint32_t memory) {
    const pt_method_record *method = pt_record_of(c);
    const pt_instruction *at = pt_first_instruction(c);
    for (uint32_t i = 0; i < method->n_instructions; i++, at = pt_next_instruction(at)) {
        if (writes_to(c, at, memory)) {
            return true;
        }
    }
    return false;
}

uint32_t pt_find_shared(const pt_context *c, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++) {
        for (uint32_t k = first; k < i; k++) {
            if (memories_overlap(c->memory[i], c->memory_size[i], c->memory[k],
                                 c->memory_size[k]) &&
                (pt_is_written(c, i) || pt_is_written(c, k))) {
                return i;
            }
        }
    }
    return PT_MEMORY_NONE;
}

// ---- at load

int pt_check_alignment(const pt_span *span, uint8_t subject, int32_t index, pt_error *error) {
    bool is_aligned = span->size == 0 || (uintptr_t)span->data % PT_ALIGNMENT == 0;
    return is_aligned ? PT_ERROR_OK
                      : pt_report(error, PT_ERROR_INVALID_ARGUMENT, subject, index,
                                  "does not start at a multiple of 8 bytes; align it");
}

int pt_check_address(const pt_span *span, uint8_t subject, int32_t index, pt_error *error) {
    bool is_there = span->data || span->size == 0;
    return is_there ? PT_ERROR_OK
                    : pt_report(error, PT_ERROR_INVALID_ARGUMENT, subject, index,
                                "has no address; pass memory that does not start at 0");
}

int pt_check_memory(const pt_span *span, uint8_t subject, int32_t index, pt_error *error) {
    if (span->is_constant) {
        return pt_report(error, PT_ERROR_INVALID_ARGUMENT, subject, index,
                         "cannot be written; pass writable memory");
    }
    PT_TRY(pt_check_address(span, subject, index, error));
    return pt_check_alignment(span, subject, index, error);
}

int pt_check_memory_apart(const pt_context *c, const pt_span *span, uint8_t subject, int32_t index,
                          pt_error *error) {
    if (pt_find_overlap(c, span->data, span->size, 0, PT_MEMORIES)) {
        return pt_report(error, PT_ERROR_INVALID_ARGUMENT, subject, index,
                         "shares bytes with the program or with another memory; pass "
                         "memories that do not overlap");
    }
    return PT_ERROR_OK;
}

static int check_planned(pt_method *m, const pt_memories *memories, uint32_t i, pt_error *error) {
    uint32_t size = 0;
    PT_TRY(pt_method_meta_buffer(&m->meta, i, &size, error));
    bool is_ptm = PT_HAS_PTM && m->meta.program->format->number == PT_FORMAT_PTM;
    if (size > (is_ptm ? PT_MEMORY_LIMIT : PT_PROGRAM_LIMIT)) {
        return pt_report(error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_PLANNED_BUFFER, (int32_t)i,
                         "is too large");
    }
    if (i >= memories->n_planned) {
        return size == 0 ? PT_ERROR_OK
                         : pt_report_bytes(error, PT_ERROR_INVALID_ARGUMENT,
                                           PT_SUBJECT_PLANNED_BUFFER, (int32_t)i, size, 0,
                                           "is missing; pass one buffer for each that the "
                                           "method needs");
    }
    const pt_span *planned = &memories->planned[i];
    if (planned->size < size) {
        return pt_report_bytes(error, PT_ERROR_MEMORY_ALLOCATION_FAILED, PT_SUBJECT_PLANNED_BUFFER,
                               (int32_t)i, size, planned->size, "; make it larger");
    }
    return pt_check_memory(planned, PT_SUBJECT_PLANNED_BUFFER, (int32_t)i, error);
}

int pt_check_memories(pt_method *m, const pt_memories *memories, pt_error *error) {
    uint32_t n = pt_method_meta_count(&m->meta, PT_PLANNED_BUFFERS);
    PT_TRY(pt_check_memory(&memories->pool, PT_SUBJECT_POOL, PT_NO_INDEX, error));
    if (n > PT_MEMORIES - PT_MEMORY_PLANNED) {
        return pt_report(error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_NONE, PT_NO_INDEX,
                         "too many planned buffers");
    }
    for (uint32_t i = 0; i < n; i++) {
        PT_TRY(check_planned(m, memories, i, error));
    }
    return PT_ERROR_OK;
}

int pt_reserve_pool(pt_method *m, uint64_t end, pt_error *error) {
    uint32_t start = pt_is_ptm(&m->c) ? 0 : m->c.method, size = m->c.memory_size[PT_MEMORY_POOL];
    if (end > size) {
        uint64_t requested = end - start;
        return pt_report_bytes(error, PT_ERROR_MEMORY_ALLOCATION_FAILED, PT_SUBJECT_POOL,
                               PT_NO_INDEX, requested > INT32_MAX ? INT32_MAX : (uint32_t)requested,
                               size > start ? size - start : 0, "; make it larger");
    }
    if (end > PT_MEMORY_LIMIT) {
        return pt_report(error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_POOL, PT_NO_INDEX,
                         "records above 128 MiB");
    }
    m->end = (uint32_t)end;
    return PT_ERROR_OK;
}
