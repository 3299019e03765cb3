// Loading a method: the parts that .pte and .ptm files share.
#include "core/format/format.h"
#include "core/load/memories.h"
#include "core/method.h"
#include "core/record.h"
#include "core/report.h"
#include <string.h>

// Not inlined, so that the stack frames of the steps of a load are not live together.
#define NOT_INLINED __attribute__((noinline))

// ---- memories

static int bind_planned(pt_method *m, const pt_memories *memories, uint32_t i, pt_error *error) {
    uint32_t size = 0;
    PT_TRY(pt_method_meta_buffer(&m->meta, i, &size, error));
    PT_TRY(pt_check_memory_apart(&m->c, &memories->planned[i], PT_SUBJECT_PLANNED_BUFFER,
                                 (int32_t)i, error));
    pt_bind(&m->c, PT_MEMORY_PLANNED + i, memories->planned[i].data, size);
    return PT_ERROR_OK;
}

int pt_bind_memories(pt_method *m, const pt_memories *memories, pt_error *error) {
    PT_TRY(pt_check_memory_apart(&m->c, &memories->pool, PT_SUBJECT_POOL, PT_NO_INDEX, error));
    pt_bind(&m->c, PT_MEMORY_POOL, memories->pool.data, memories->pool.size);
    for (uint32_t i = 0; i < m->n_planned && i < memories->n_planned; i++) {
        PT_TRY(bind_planned(m, memories, i, error));
    }
    return PT_ERROR_OK;
}

// Binds the temp memory, after kernels and delegates have requested temp memory.
static NOT_INLINED int bind_temp(pt_method *m, const pt_span *temp, pt_error *error) {
    uint32_t needed = m->c.min_scratch;
    if (temp->data) {
        PT_TRY(pt_check_memory(temp, PT_SUBJECT_TEMP, PT_NO_INDEX, error));
        PT_TRY(pt_check_memory_apart(&m->c, temp, PT_SUBJECT_TEMP, PT_NO_INDEX, error));
        m->c.scratch = temp->data;
        m->c.scratch_size = temp->size;
    }
    if (needed > m->c.scratch_size) {
        return pt_report_bytes(error, PT_ERROR_MEMORY_ALLOCATION_FAILED, PT_SUBJECT_TEMP,
                               PT_NO_INDEX, needed, m->c.scratch_size,
                               "; pass a temp allocator of that size");
    }
    return PT_ERROR_OK;
}

static NOT_INLINED int attach_tracer(pt_method *m, const pt_options *options, pt_error *error) {
    const pt_span *events = &options->events;
    if (!PT_HAS_TRACER || !events->data) {
        return PT_ERROR_OK;
    }
    if (!options->clock) {
        return pt_report(error, PT_ERROR_INVALID_ARGUMENT, PT_SUBJECT_EVENT_TRACER, PT_NO_INDEX,
                         "has no clock");
    }
    PT_TRY(pt_check_memory(events, PT_SUBJECT_EVENT_TRACER, PT_NO_INDEX, error));
    uint32_t needed = pt_events_size(&m->c);
    if (events->size < needed) {
        return pt_report_bytes(error, PT_ERROR_MEMORY_ALLOCATION_FAILED, PT_SUBJECT_EVENT_TRACER,
                               PT_NO_INDEX, needed, events->size, "; make it larger");
    }
    if (pt_find_overlap(&m->c, events->data, events->size, PT_MEMORY_PROGRAM, m->first_external)) {
        return pt_report(error, PT_ERROR_INVALID_ARGUMENT, PT_SUBJECT_EVENT_TRACER, PT_NO_INDEX,
                         "shares bytes with the program or the method's memories; pass "
                         "separate memory");
    }
    memset(events->data, 0, events->size);
    pt_set_tracer(&m->c, events->data, options->clock, options->clock_mask);
    return PT_ERROR_OK;
}

// ---- checking, and the whole load

int pt_check_calls(pt_method *m, bool packs, pt_error *error) {
    m->c.packs = packs;
    m->c.scratch_needed = m->c.min_scratch = 0;
    int code = pt_check_method(&m->c);
    return code ? pt_report_kernel(&m->c, code, m->c.instruction, error) : PT_ERROR_OK;
}

int pt_bind_rest(pt_method *m, const pt_memories *memories, const pt_options *options,
                 pt_error *error) {
    PT_TRY(bind_temp(m, &memories->temp, error));
    pt_start(&m->c);
    return attach_tracer(m, options, error);
}

int pt_end_load(pt_method *m, int code) {
    if (code != PT_ERROR_OK) {
        pt_release(m);
        return code;
    }
    pt_forget_inputs(m);
    m->state = PT_LOADED;
    pt_update_ready(m);
    return PT_ERROR_OK;
}

int pt_load(pt_method *m, const pt_method_meta *meta, const pt_memories *memories,
            const pt_options *options, pt_error *error) {
    if (m->state != PT_UNLOADED) {
        return m->state == PT_LOADED ? pt_report(error, PT_ERROR_ALREADY_LOADED, PT_SUBJECT_METHOD,
                                                 PT_NO_INDEX, "unload it first")
                                     : pt_report_busy(m, error);
    }
    pt_set_up_method(m, meta, memories, options->delegates);
#if PT_HAS_ANY_CORE
    m->c.preferring_core = options->core;
#endif
    return m->meta.program->format->load(m, memories, options, error);
}
