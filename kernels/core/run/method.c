// A loaded method: its state, and executing it.
#include "core/method.h"
#include "core/format/format.h"
#include "core/load/memories.h"
#include "core/record.h"
#include "core/report.h"
#include <stddef.h>
#include <string.h>

// ---- errors

int pt_report_busy(const pt_method *m, pt_error *error) {
    const char *what = m->state == PT_LOADING     ? "is being loaded"
                       : m->state == PT_UNLOADING ? "is being unloaded"
                                                  : "is executing";
    return pt_report(error, PT_ERROR_INVALID_STATE, PT_SUBJECT_METHOD, PT_NO_INDEX, what);
}

int pt_report_kernel(const pt_context *c, int code, uint32_t index, pt_error *error) {
    pt_report(error, code, PT_SUBJECT_KERNEL, (int32_t)index, c->reason);
    error->argument = (int16_t)c->argument;
    return code;
}

int pt_set_error_code(pt_error *error, int code) {
    code = code == (uint8_t)code ? code : PT_ERROR_INTERNAL;
    error->code = (uint8_t)code;
    return code;
}

int pt_check_loaded(const pt_method *m, pt_error *error) {
    return m->state == PT_LOADED ? PT_ERROR_OK
                                 : pt_report(error, PT_ERROR_INVALID_STATE, PT_SUBJECT_METHOD,
                                             PT_NO_INDEX, "is not loaded; load it first");
}

int pt_check_idle(const pt_method *m, const char *what, pt_error *error) {
    return m->is_running
               ? pt_report(error, PT_ERROR_INVALID_STATE, PT_SUBJECT_METHOD, PT_NO_INDEX, what)
               : PT_ERROR_OK;
}

int pt_moved_memory(const pt_method *m, uint32_t memory, pt_error *error) {
    uint32_t first_file = PT_MEMORY_PLANNED + m->n_planned;
    uint8_t subject = PT_SUBJECT_PROGRAM;
    int32_t index = PT_NO_INDEX;
    if (memory >= PT_MEMORIES) {
        subject = memory == PT_MEMORIES ? PT_SUBJECT_TEMP : PT_SUBJECT_EVENT_TRACER;
    } else if (memory >= m->first_external && m->first_external) {
        subject = PT_SUBJECT_EXTERNAL;
    } else if (memory >= first_file) {
        subject = PT_SUBJECT_DATA_FILE;
        index = (int32_t)(memory - first_file);
    } else if (memory >= PT_MEMORY_PLANNED) {
        subject = PT_SUBJECT_PLANNED_BUFFER;
        index = (int32_t)(memory - PT_MEMORY_PLANNED);
    } else if (memory == PT_MEMORY_POOL) {
        subject = PT_SUBJECT_POOL;
    }
    return pt_report(error, PT_ERROR_INVALID_STATE, subject, index,
                     "has been resized since it was passed; keep its size, and load "
                     "again");
}

// ---- loading and unloading

static int method_call_delegate(pt_context *c, uint32_t position) {
    pt_method *m = (pt_method *)(void *)c; // the context is the first member of the method
    const pt_instruction *call = pt_instruction_at(c, position);
    m->n_call = (uint8_t)(call->n_args - 1);
    m->temp_used = 0;
    pt_report(m->error, PT_ERROR_INTERNAL, PT_SUBJECT_INSTRUCTION, (int32_t)c->instruction, NULL);
    int code = m->delegates->execute(m, call->kernel, m->error);
    m->n_call = 0;
    m->failed_delegate = code != PT_ERROR_OK;
    return pt_set_error_code(m->error, code);
}

void pt_set_up_method(pt_method *m, const pt_method_meta *meta, const pt_memories *memories,
                      const pt_delegates *delegates) {
    int (*poll)(struct pt_context *) = m->c.poll;
    void *owner = m->c.owner;
    m->meta = *meta; // `meta` may be m->meta
    m->delegates = delegates;
    memset(&m->c, 0, sizeof(m->c));
    memset(&m->data, 0, sizeof(*m) - offsetof(pt_method, data));
    m->c.poll = poll;
    m->c.owner = owner;
    m->data = memories->data;
    uint32_t n = pt_method_meta_count(&m->meta, PT_PLANNED_BUFFERS);
    m->n_planned = (uint8_t)(n < memories->n_planned ? n : memories->n_planned);
    // pool_used beyond the pool or a reference's reach leaves 0 bytes
    uint32_t size = memories->pool.size;
    uint32_t used = memories->pool_used < size ? memories->pool_used : size;
    used = used < PT_MEMORY_LIMIT ? used : PT_MEMORY_LIMIT;
    m->c.method = m->end = (used + PT_ALIGNMENT - 1) & ~(PT_ALIGNMENT - 1u);
    m->state = PT_LOADING;
    m->c.call_delegate = delegates ? method_call_delegate : NULL;
}

void pt_release(pt_method *m) {
    m->is_ready = false;
    for (uint32_t i = 0; i < m->n_ready; i++) {
        m->delegates->destroy(m, i);
    }
    m->n_ready = 0;
    memset(m->c.memory, 0, sizeof(m->c.memory));
    memset(m->c.memory_size, 0, sizeof(m->c.memory_size));
    memset(&m->c.tracer, 0, sizeof(m->c.tracer));
    m->c.scratch = NULL;
    m->c.scratch_size = 0;
    m->state = PT_UNLOADED;
}

void pt_unload(pt_method *m) {
    if (m->state == PT_LOADED && !m->is_running) {
        m->state = PT_UNLOADING;
        pt_release(m);
    }
}

// ---- inputs and memories that are set

void pt_forget_inputs(pt_method *m) {
    m->missing = (uint16_t)pt_method_meta_count(&m->meta, PT_INPUTS);
    memset(m->set, 0, sizeof(m->set));
}

// True if an input, output or mutable buffer overlaps another one and either is written.
static bool shares_memory(const pt_method *m) {
    return pt_find_shared(&m->c, m->first_external, m->end_external) != PT_MEMORY_NONE;
}

static bool has_all_memories(const pt_method *m) {
    for (uint32_t i = m->first_external; i < m->end_external; i++) {
        if (!(m->has_memory >> i & 1)) {
            return false;
        }
    }
    return true;
}

void pt_update_ready(pt_method *m) {
    m->is_ready = m->is_ready || (m->missing == 0 && has_all_memories(m) && !shares_memory(m));
}

static int report_unready(const pt_method *m, pt_error *error) {
    uint32_t n = pt_method_meta_count(&m->meta, PT_INPUTS);
    for (uint32_t i = 0; i < n; i++) {
        if (!(m->set[i / 32] >> i % 32 & 1)) {
            return pt_report(error, PT_ERROR_INVALID_ARGUMENT, PT_SUBJECT_INPUT, (int32_t)i,
                             "was never set; set it before the execution");
        }
    }
    if (shares_memory(m)) {
        return pt_report(error, PT_ERROR_INVALID_ARGUMENT, PT_SUBJECT_EXTERNAL, PT_NO_INDEX,
                         "shares bytes with another, and one of them is written; pass "
                         "memories that do not overlap");
    }
    return pt_report(error, PT_ERROR_INVALID_STATE, PT_SUBJECT_EXTERNAL, PT_NO_INDEX,
                     "has no memory; set the memory of each input, output and buffer that "
                     "the program leaves unplanned");
}

bool pt_is_constant_memory(const pt_method *m, uint32_t memory) {
    const pt_context *c = &m->c;
    uint32_t first = PT_MEMORY_PLANNED + m->n_planned;
    if (memory < first || memory >= m->first_external) {
        return memory == PT_MEMORY_PROGRAM;
    }
    // The memory may be a further memory of a planned buffer.
    return PT_PROGRAM_LIMIT == PT_MEMORY_LIMIT ||
           !pt_find_overlap(c, c->memory[memory], c->memory_size[memory], PT_MEMORY_PLANNED, first);
}

// ---- executing

static int method_report_run(pt_method *m, int code, pt_error *error) {
    const pt_context *c = &m->c;
    if (m->failed_delegate) { // the delegate has filled the error
        return code;
    }
    if (code == PT_ERROR_END_OF_METHOD) {
        return pt_report(error, code, PT_SUBJECT_METHOD, PT_NO_INDEX,
                         "has run all its instructions; reset the execution");
    }
    pt_report_kernel(c, code, c->failed, error);
    if (code == PT_ERROR_MEMORY_ALLOCATION_FAILED) {
        error->requested = c->min_scratch;
        error->available = c->scratch_size;
    }
    return code;
}

static int method_run(pt_method *m, int (*function)(pt_context *c), pt_error *error) {
    PT_TRY(pt_check_loaded(m, error));
    PT_TRY(pt_check_idle(m, "is executing", error));
    if (!m->is_ready) {
        return report_unready(m, error);
    }
    m->error = error;
    m->failed_delegate = false;
    m->is_running = true;
    int code = function(&m->c);
    m->is_running = false;
    m->error = NULL;
    return code == PT_ERROR_OK ? code : method_report_run(m, code, error);
}

int pt_execute(pt_method *m, pt_error *error) {
    return method_run(m, pt_context_execute, error);
}

int pt_step(pt_method *m, pt_error *error) {
    return method_run(m, pt_context_step, error);
}

int pt_restart(pt_method *m, pt_error *error) {
    PT_TRY(pt_check_loaded(m, error));
    PT_TRY(pt_check_idle(m, "is executing", error));
    pt_start(&m->c);
    return PT_ERROR_OK;
}

pt_usage pt_get_usage(const pt_method *m) {
    const uint32_t needed = m->c.scratch_needed, preferred = m->c.preferred_scratch;
    return (pt_usage){m->end - pt_begin_of(m), m->end - m->records_end, needed,
                      preferred > needed ? preferred : needed};
}

// ---- state

int pt_seed(pt_method *m, uint32_t seed, pt_error *error) {
    PT_TRY(pt_check_loaded(m, error));
    m->c.tracer.random = pt_scatter_bits(seed);
    return PT_ERROR_OK;
}

void pt_clear_planned(const pt_method *m) {
    for (uint32_t i = PT_MEMORY_PLANNED; i < (uint32_t)PT_MEMORY_PLANNED + m->n_planned; i++) {
        if (m->c.memory_size[i] > 0) { // a memory of no bytes may be NULL
            memset(m->c.memory[i], 0, m->c.memory_size[i]);
        }
    }
}

int pt_reset_state(pt_method *m, pt_error *error) {
    PT_TRY(pt_restart(m, error));
    m->is_ready = false;
    pt_forget_inputs(m);
    pt_clear_planned(m);
    PT_TRY(pt_describe(m->meta.program)->reset(m, error));
    for (uint32_t i = m->first_external; i < m->end_external; i++) {
        if (m->has_memory >> i & 1) {
            pt_clear_oversized(&m->c, i);
        }
    }
    pt_update_ready(m); // a method without inputs is ready
    return PT_ERROR_OK;
}

// ---- for delegates

static int check_allocation(uint32_t size, uint32_t alignment, pt_error *error) {
    if (size > PT_MEMORY_LIMIT) {
        return pt_report(error, PT_ERROR_INVALID_ARGUMENT, PT_SUBJECT_ALLOCATION, PT_NO_INDEX,
                         "is negative or more than 128 MiB");
    }
    if (alignment == 0 || alignment & (alignment - 1)) {
        return pt_report(error, PT_ERROR_INVALID_ARGUMENT, PT_SUBJECT_ALIGNMENT, PT_NO_INDEX,
                         "is not a power of two");
    }
    return PT_ERROR_OK;
}

// Finds `size` aligned bytes of a memory behind the first `used` bytes.
static int find_space(const pt_span *memory, uint32_t used, uint32_t base, uint32_t size,
                      uint32_t alignment, uint8_t subject, uint32_t *start, pt_error *error) {
    PT_TRY(check_allocation(size, alignment, error));
    alignment = alignment < PT_ALIGNMENT ? PT_ALIGNMENT : alignment;
    uint64_t at = ((uint64_t)used + alignment - 1) & ~(uint64_t)(alignment - 1);
    if (at + size > memory->size) {
        return pt_report_bytes(
            error, PT_ERROR_MEMORY_ALLOCATION_FAILED, subject, PT_NO_INDEX,
            at + size - base > INT32_MAX ? INT32_MAX : (uint32_t)(at + size - base),
            memory->size - base, memory->data ? "; make it larger" : "; pass a temp allocator");
    }
    if (size > 0 && ((uintptr_t)memory->data + at) % alignment) {
        return pt_report(error, PT_ERROR_INVALID_ARGUMENT, subject, PT_NO_INDEX,
                         "is not aligned as an allocation requires");
    }
    *start = (uint32_t)at;
    return PT_ERROR_OK;
}

int pt_allocate(pt_method *m, uint32_t size, uint32_t alignment, void **data, pt_error *error) {
    pt_span pool = {m->c.memory[PT_MEMORY_POOL], m->c.memory_size[PT_MEMORY_POOL], false};
    uint32_t start = 0;
    PT_TRY(check_allocation(size, alignment, error));
    if (m->state != PT_LOADING || !pool.data) {
        return pt_report(error, PT_ERROR_INVALID_STATE, PT_SUBJECT_POOL, PT_NO_INDEX,
                         "allocates only in init");
    }
    PT_TRY(find_space(&pool, m->end, m->c.method, size, alignment, PT_SUBJECT_POOL, &start, error));
    m->end = start + size;
    *data = (uint8_t *)pool.data + start;
    memset(*data, 0, size);
    return PT_ERROR_OK;
}

int pt_allocate_temp(pt_method *m, uint32_t size, uint32_t alignment, void **data,
                     pt_error *error) {
    pt_span temp = {m->c.scratch, m->c.scratch_size, false};
    uint32_t start = 0;
    PT_TRY(find_space(&temp, m->temp_used, 0, size, alignment, PT_SUBJECT_TEMP, &start, error));
    m->temp_used = start + size;
    *data = (uint8_t *)temp.data + start;
    return PT_ERROR_OK;
}

int pt_ask_temp(pt_method *m, uint32_t size, pt_error *error) {
    PT_TRY(check_allocation(size, 1, error));
    pt_request_scratch(&m->c, size);
    return PT_ERROR_OK;
}
