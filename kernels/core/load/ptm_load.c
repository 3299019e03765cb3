// Loading a .ptm file: its records stay in the file.
#include "core/format/ptm.h"
#include "core/load/memories.h"
#include "core/method.h"
#include "core/report.h"
#include <string.h>

static void bind_ptm(pt_method *m) {
    pt_context *c = &m->c;
    const pt_ptm_method *method = pt_ptm_method_of(&m->meta);
    uint8_t *data = (uint8_t *)(uintptr_t)m->meta.program->data;
    pt_bind(c, PT_MEMORY_PROGRAM, data, m->meta.program->size);
    pt_bind(c, PT_MEMORY_PTM, data, 0); // this memory has the bytes of PT_MEMORY_PROGRAM
    c->records = data;
    c->method = method->record;
    c->idle_scratch = method->idle_scratch ? pt_make_ref(PT_MEMORY_PTM, method->idle_scratch) : 0;
    m->n_planned = (uint8_t)pt_method_meta_count(&m->meta, PT_PLANNED_BUFFERS);
    m->first_external = (uint8_t)(PT_MEMORY_PLANNED + m->n_planned);
    m->end_external = (uint8_t)(m->first_external + method->n_external);
}

// Sets the planned memory that the method reads before it writes it, as listed in the file. Loading
// a .pte file clears all planned memory instead.
static void put_initial_values(const pt_method *m) {
    const void *items;
    uint32_t n = pt_vector(m->meta.program, pt_ptm_method_of(&m->meta)->initial, &items);
    const pt_ptm_initial *initial = items;
    for (; n > 0; n--, initial++) {
        if (initial->bytes == 0) { // an entry of no bytes may have any position
            continue;
        }
        uint8_t *to = pt_at(&m->c, initial->to);
        if (initial->position == PT_PTM_ZEROS) {
            memset(to, 0, initial->bytes);
        } else {
            memcpy(to, m->meta.program->data + initial->position, initial->bytes);
        }
    }
}

// The method's part of the pool is a memory of its own, in which positions count from 0.
static int bind_pool(pt_method *m, pt_error *error) {
    uint32_t bytes = pt_ptm_method_of(&m->meta)->changing_bytes;
    pt_context *c = &m->c;
    if (!PT_HAS_DYNAMIC && bytes > 0) {
        return pt_report(error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_METHOD, PT_NO_INDEX,
                         "sizes or numbers change, which this build does not allow");
    }
    uint32_t size = c->memory_size[PT_MEMORY_POOL];
    c->pool_before = m->end < size ? m->end : size; // a method of 0 bytes fits into a full pool
    c->memory[PT_MEMORY_POOL] += c->pool_before;
    c->memory_size[PT_MEMORY_POOL] -= c->pool_before;
    PT_TRY(pt_reserve_pool(m, bytes, error));
    m->end += c->pool_before;
    m->records_end = m->end;
    c->is_static = bytes == 0;
    return PT_ERROR_OK;
}

static void put_changing(const pt_method *m) {
    const pt_ptm_method *method = pt_ptm_method_of(&m->meta);
    if (method->changing_bytes > 0) { // a method without such bytes may have no pool
        memcpy(m->c.memory[PT_MEMORY_POOL], m->meta.program->data + method->changing,
               method->changing_bytes);
    }
}

// Counts the instructions with packed constants.
static uint32_t count_packed(const pt_context *c) {
    const pt_ref *ref = (const pt_ref *)(const void *)pt_at(c, c->packed);
    uint32_t found = 0;
    for (uint32_t n = pt_record_of(c)->n_instructions; n > 0; n--, ref++) {
        found += *ref != 0;
    }
    return found;
}

// Checks that views share the data of their sources, as after loading a .pte file.
static int check_views(const pt_context *c, pt_error *error) {
    const pt_instruction *at = pt_first_instruction(c);
    for (uint32_t i = 0; i < pt_record_of(c)->n_instructions; i++, at = pt_next_instruction(at)) {
        bool is_call = pt_op(at) == PT_OP_KERNEL_CALL || at->op == PT_OP_DYNAMIC_CALL;
        uint32_t last = at->n_args - 1u;
        if (!is_call || at->n_args == 0 || pt_operator_signature(at->kernel)[last] != 'A') {
            continue;
        }
        const pt_value *from = pt_tensor_record(c, at->args[0]);
        const pt_value *view = pt_tensor_record(c, at->args[last]);
        if (from->data != view->data || from->type != view->type) {
            return pt_report(error, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_INSTRUCTION, (int32_t)i,
                             "makes a view outside its source");
        }
    }
    return PT_ERROR_OK;
}

// Checks that idle scratch overlaps no tensor of its call: some kernels read addresses from
// scratch.
static int ptm_load_check_idle_scratch(const pt_context *c, pt_error *error) {
    const pt_idle_scratch *idle = (const pt_idle_scratch *)(const void *)pt_at(c, c->idle_scratch);
    const pt_instruction *at = pt_first_instruction(c);
    for (uint32_t i = 0; i < pt_record_of(c)->n_instructions; i++, idle++) {
        if (pt_op(at) == PT_OP_KERNEL_CALL && idle->bytes > 0 && !pt_is_idle(c, at, idle)) {
            return pt_report(error, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_INSTRUCTION, (int32_t)i,
                             "has temp memory over its tensors");
        }
        at = pt_next_instruction(at);
    }
    return PT_ERROR_OK;
}

// Checks packed weights against the kernels' requests: each kernel requests its own, and none may
// be left over.
static int check_calls(pt_method *m, pt_error *error) {
    pt_context *c = &m->c;
    PT_TRY(pt_check_calls(m, c->packed != 0, error));
    PT_TRY(check_views(c, error));
    PT_TRY(c->idle_scratch ? ptm_load_check_idle_scratch(c, error) : PT_ERROR_OK);
    return c->packed == 0 || c->packed_needed == count_packed(c)
               ? PT_ERROR_OK
               : pt_report(error, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_METHOD, PT_NO_INDEX,
                           "the packed weights do not match its kernels' requests");
}

static int ptm_load_check_operators(const pt_method_meta *meta, pt_error *error) {
    const void *items;
    uint32_t n = pt_vector(meta->program, meta->operators, &items);
    for (const uint32_t *number = items; n > 0; n--, number++) {
        if (!pt_operator_kernel(*number)) {
            return pt_report(error, PT_ERROR_OPERATOR_MISSING, PT_SUBJECT_MISSING_OPERATOR,
                             PT_NO_INDEX,
                             "no kernel for; use a build with these kernels or change the model");
        }
    }
    return PT_ERROR_OK;
}

// Accepts weights packed for this build's core; on the host for any core.
static int bind_packed(pt_method *m, pt_error *error) {
    pt_context *c = &m->c;
    uint8_t core = pt_header_of(m->meta.program)->core;
    c->core = core & (uint8_t)~PT_PTM_OWN_CORE;
    bool is_own = c->core == PT_CORE ||
                  (PT_HAS_ANY_CORE && (c->core == PT_CORE_V6M || c->core == PT_CORE_DSP));
    c->packed = is_own ? pt_record_of(c)->packed : 0;
    return is_own || !(core & PT_PTM_OWN_CORE)
               ? PT_ERROR_OK
               : pt_report(error, PT_ERROR_NOT_SUPPORTED, PT_SUBJECT_PROGRAM, PT_NO_INDEX,
                           "is a .ptm file for another core; compile it for this one, or with "
                           "--optimize size");
}

static int ptm_load(pt_method *m, const pt_memories *memories, const pt_options *options,
                    pt_error *error) {
    pt_context *c = &m->c;
    PT_TRY(ptm_load_check_operators(&m->meta, error));
    PT_TRY(pt_check_memories(m, memories, error));
    bind_ptm(m);
    PT_TRY(bind_packed(m, error));
    PT_TRY(pt_bind_memories(m, memories, error));
    PT_TRY(bind_pool(m, error));
    put_changing(m);
    put_initial_values(m);
    c->scratch_needed = c->min_scratch = pt_record_of(c)->scratch;
    if (PT_HAS_CHECKS && m->meta.program->verification == PT_VERIFY_STRICT) {
        PT_TRY(check_calls(m, error));
    }
    return pt_bind_rest(m, memories, options, error);
}

int pt_ptm_load(pt_method *m, const pt_memories *memories, const pt_options *options,
                pt_error *error) {
    return pt_end_load(m, ptm_load(m, memories, options, error));
}

int pt_ptm_reset(pt_method *m, pt_error *error) {
    (void)error;
    put_changing(m);
    put_initial_values(m);
    return PT_ERROR_OK;
}
