// _picotorch.Method: a loaded method, and the references that keep its memories alive.
#include "method.h"
#include "core/record.h"
#include <alloca.h>
#include <string.h>

enum {
    MAX_PLANNED = PT_MEMORIES - PT_MEMORY_PLANNED,
    SPARE = 8, // memories of data files and unplanned tensors at set-up
};

// ---- memories that move

// The arguments of `load`. They are the owner of its delegates.
typedef struct load_arguments {
    pt_memories memories;
    pt_options options;
} load_arguments;

// Returns a memory from the arguments of `load`, which binds some memories late.
static pt_span span_for_load(const load_arguments *g, uint32_t memory) {
    const pt_memories *m = &g->memories;
    if (memory >= TEMP) {
        return memory == TEMP ? m->temp : g->options.events;
    }
    if (memory < PT_MEMORY_PLANNED) {
        return m->pool;
    }
    uint32_t i = memory - PT_MEMORY_PLANNED;
    if (i < m->n_planned) {
        return m->planned[i];
    }
    const pt_data *file = m->data[i - m->n_planned];
    return (pt_span){(void *)(uintptr_t)file->data, file->size, true};
}

static pt_span span_of(const method *self, uint32_t memory) {
    const pt_context *c = &self->m.c;
    if (PT_HAS_PROGRAMS && self->m.state == PT_LOADING) {
        return span_for_load(self->m.delegates->owner, memory);
    }
    if (memory == EVENTS) {
        return (pt_span){c->tracer.events, pt_events_size(c), false};
    }
    if (memory == TEMP) {
        return (pt_span){c->scratch, c->scratch_size, false};
    }
    uint32_t before = memory == PT_MEMORY_POOL ? c->pool_before : 0;
    return (pt_span){c->memory[memory] - before, c->memory_size[memory] + before, false};
}

// Returns the object of the program from the pointer to its pt_program.
static const pt_file *program_of(const method *self) {
    return (const pt_file *)(const void *)self->m.meta.program;
}

// Returns the slot of a memory's anchor. TEMP uses the slot of memory 0, which is no memory, and
// EVENTS the slot of the program. The anchor of a .ptm file is the anchor of the program.
static void **anchor_of(const method *self, uint32_t memory) {
    uint32_t i = memory % PT_MEMORIES;
    return &self->anchors[i - (i > PT_MEMORY_PTM)];
}

// Returns the first memory that was moved or has become too small; 0 for none.
static uint32_t find_moved(const method *self) {
    const pt_file *program = program_of(self);
    pt_span memory = {(void *)(uintptr_t)program->program.data, program->program.size, true};
    if (program->is_resizable && pt_has_moved(program->anchor, &memory)) {
        return PT_MEMORY_PROGRAM;
    }
    for (uint32_t left = self->resizable; left; left &= left - 1) {
        uint32_t i = PT_MEMORY_POOL + (uint32_t)__builtin_ctz(left);
        memory = span_of(self, i);
        if (pt_has_moved(*anchor_of(self, i), &memory)) {
            return i;
        }
    }
    return PT_MEMORY_NONE;
}

method *pt_get_method(mp_obj_t self_in) {
    method *self = MP_OBJ_TO_PTR(self_in);
    bool is_used = self->m.state == PT_LOADED || self->m.state == PT_LOADING;
    uint32_t moved = is_used ? find_moved(self) : PT_MEMORY_NONE;
    if (moved) {
        PT_CALL(self->owner, pt_moved_memory(&self->m, moved, &error));
    }
    return self;
}

void *pt_start_of(const method *self, uint32_t memory) {
    if (memory == PT_MEMORY_PROGRAM) {
        return pt_start_of_file(program_of(self));
    }
    bool is_resizable = self->resizable >> (memory - PT_MEMORY_POOL) & 1;
    return is_resizable ? span_of(self, memory).data : *anchor_of(self, memory);
}

void pt_keep(method *self, uint32_t memory, void *anchor, bool is_resizable) {
    uint32_t bit = 1u << (memory - PT_MEMORY_POOL);
    *anchor_of(self, memory) = anchor;
    self->resizable = is_resizable ? self->resizable | bit : self->resizable & ~bit;
}

// Grows the array of anchors up to this memory.
static void make_room(method *self, uint32_t end) {
    uint32_t there = self->n_anchors;
    if (end <= there) {
        return;
    }
    if (pt_heap_locked()) {
        pt_refuse(self->owner, PT_ERROR_OUT_OF_RESOURCES, PT_SUBJECT_METHOD, PT_NO_INDEX,
                  "works in more memories than Method has room for; load it once with the heap "
                  "unlocked");
    }
    void **anchors = m_new0(void *, end - 1);
    memcpy(anchors, self->anchors, (there - 1) * sizeof(*anchors));
    self->anchors = anchors;
    self->n_anchors = (uint8_t)end;
}

static void release(method *self) {
    self->resizable = 0;
    self->files = MP_OBJ_NULL;
    memset(self->anchors, 0, (self->n_anchors - 1) * sizeof(*self->anchors));
}

// ---- callbacks of the library

int pt_ask(const method *self, int what, uint32_t i) {
    mp_obj_t call[4];
    mp_load_method(self->owner, MP_QSTR_on_request, call);
    call[2] = MP_OBJ_NEW_SMALL_INT(what);
    call[3] = pt_small_int(i);
    return (int)mp_obj_get_int(mp_call_method_n_kw(2, 0, call));
}

// Stores an exception of the owner until the library has returned.
static int ask(pt_method *m, int what, uint32_t delegate) {
    method *self = m->c.owner;
    nlr_buf_t nlr;
    if (nlr_push(&nlr) == 0) {
        int code = pt_ask(self, what, delegate);
        nlr_pop();
        return code;
    }
    self->raised = MP_OBJ_FROM_PTR(nlr.ret_val);
    return PT_ERROR_INTERNAL;
}

static int call_owner(pt_method *m, int what, uint32_t delegate, pt_error *error) {
    int code = ask(m, what, delegate);
    uint32_t moved = code == PT_ERROR_OK ? find_moved(m->c.owner) : PT_MEMORY_NONE;
    return moved ? pt_moved_memory(m, moved, error) : code;
}

static int mp_method_find_delegate(pt_method *m, uint32_t delegate, pt_error *error) {
    return call_owner(m, PT_ASK_FIND, delegate, error);
}

static int execute_delegate(pt_method *m, uint32_t delegate, pt_error *error) {
    return call_owner(m, PT_ASK_EXECUTE, delegate, error);
}

// An interrupt may come before the backend is called: then the backend is called again. A backend
// that is already destroyed does nothing.
static void destroy_delegate(pt_method *m, uint32_t delegate) {
    if (ask(m, PT_ASK_DESTROY, delegate) != PT_ERROR_OK) {
        ask(m, PT_ASK_DESTROY, delegate);
    }
}

// An interrupt may come after the backend has returned.
static int init_delegate(pt_method *m, uint32_t delegate, pt_error *error) {
    int code = call_owner(m, PT_ASK_INIT, delegate, error);
    if (code != PT_ERROR_OK) {
        destroy_delegate(m, delegate);
    }
    return code;
}

static const pt_delegates delegates = {
    .find = mp_method_find_delegate,
    .init = init_delegate,
    .execute = execute_delegate,
    .destroy = destroy_delegate,
};

// A pending interrupt, such as ctrl-C, ends the execution. Scheduled functions wait, since they
// might use the method.
static int mp_method_poll(pt_context *c) {
    method *self = c->owner;
    mp_obj_t pending = pt_take_pending_exception();
    if (pending != MP_OBJ_NULL) {
        self->raised = pending;
    }
    return pending == MP_OBJ_NULL ? PT_ERROR_OK : PT_ERROR_INTERNAL;
}

void pt_finish(method *self, int code, const pt_error *error) {
    mp_obj_t raised = self->raised;
    if (raised != MP_OBJ_NULL) {
        self->raised = MP_OBJ_NULL;
        nlr_raise(raised);
    }
    if (code != PT_ERROR_OK) {
        pt_raise(self->owner, error);
    }
}

// ---- creation, load and release

static mp_obj_t method_make_new(const mp_obj_type_t *type, size_t n_args, size_t n_kw,
                                const mp_obj_t *args) {
    mp_arg_check_num(n_args, n_kw, 4, 4, false);
    uint32_t planned = pt_clamp(args[3]);
    method *self = m_new0(method, 1);
    self->base.type = type;
    self->owner = args[0];
    self->max_delegates = (uint16_t)MIN(pt_clamp(args[1]), UINT16_MAX);
    self->max_arguments = (uint8_t)MIN(pt_clamp(args[2]), UINT8_MAX);
    self->n_anchors = PT_MEMORY_PLANNED + MIN(planned, MAX_PLANNED - SPARE) + SPARE;
    self->anchors = m_new0(void *, self->n_anchors - 1);
    self->raised = MP_OBJ_NULL;
    self->m.c.owner = self;
    self->m.c.poll = mp_method_poll;
    return MP_OBJ_FROM_PTR(self);
}

// Arguments of load.
// clang-format off
enum { SELF, PROGRAM, PLAN, POOL, POOL_SIZE, USED, PLANNED, TEMP_MEMORY, FILES, PACK_WEIGHTS, EVENT_MEMORY,
       LOAD_ARGUMENTS };
// clang-format on

static pt_span mp_method_bind(method *self, mp_obj_t buffer, uint32_t memory, uint8_t subject,
                              int32_t index) {
    pt_memory found = pt_memory_of(self->owner, buffer, subject, index);
    pt_keep(self, memory, found.anchor, found.is_resizable);
    return found.span;
}

static void bind_files(method *self, mp_obj_t files, pt_memories *memories) {
    uint32_t first = PT_MEMORY_PLANNED + memories->n_planned;
    size_t n;
    mp_obj_t *items;
    mp_obj_tuple_get(files, &n, &items);
    self->files = files;
    make_room(self, MIN(first + n, PT_MEMORIES));
    for (size_t i = 0; i < n && first + i < PT_MEMORIES; i++) {
        pt_file *file = pt_get_file(items[i], &pt_data_type);
        pt_keep(self, first + i, file->anchor, file->is_resizable);
    }
    memories->n_data = n;
    memories->data = (pt_data *const *)(const void *)items;
}

// Binds all memories but the planned buffers.
static void mp_method_bind_memories(method *self, const mp_obj_t *args, load_arguments *g) {
    pt_memories *memories = &g->memories;
    memories->pool = mp_method_bind(self, args[POOL], PT_MEMORY_POOL, PT_SUBJECT_POOL, PT_NO_INDEX);
    memories->pool.size = MIN(memories->pool.size, pt_clamp(args[POOL_SIZE]));
    memories->pool_used = pt_clamp(args[USED]);
    if (PT_HAS_PROGRAMS && args[FILES] != mp_const_none) {
        bind_files(self, args[FILES], memories);
    }
    if (args[TEMP_MEMORY] != mp_const_none) {
        memories->temp =
            mp_method_bind(self, args[TEMP_MEMORY], TEMP, PT_SUBJECT_TEMP, PT_NO_INDEX);
    }
    if (PT_HAS_TRACER && args[EVENT_MEMORY] != mp_const_none) {
        pt_span events =
            mp_method_bind(self, args[EVENT_MEMORY], EVENTS, PT_SUBJECT_EVENT_TRACER, PT_NO_INDEX);
        events.data = events.size ? events.data : self; // NULL would disable tracing
        g->options.events = events;
    }
}

static mp_obj_t method_load(size_t n_args, const mp_obj_t *args) {
    method *self = MP_OBJ_TO_PTR(args[SELF]);
    pt_need_stack(self->owner);
    pt_method_meta meta = pt_get_method_meta(args[PROGRAM], args[PLAN]);
    pt_delegates own_delegates = delegates;
    load_arguments g = {
        .options = {.delegates = PT_HAS_PROGRAMS ? &own_delegates : NULL,
                    .clock = PT_HAS_TRACER ? pt_ticks : NULL,
                    .clock_mask = PT_TICKS_MASK},
    };
    pt_error error;
    g.options.pack_weights = mp_obj_is_true(args[PACK_WEIGHTS]);
    own_delegates.owner = &g;
    own_delegates.max_delegates = self->max_delegates;
    own_delegates.max_arguments = self->max_arguments;
    if (self->m.state == PT_UNLOADED) { // else pt_load returns an error and changes nothing
        size_t n;
        mp_obj_t *buffers;
        mp_obj_get_array(args[PLANNED], &n, &buffers);
        n = MIN(n, MIN(pt_method_meta_count(&meta, PT_PLANNED_BUFFERS), MAX_PLANNED));
        pt_span *planned = alloca(n * sizeof(*planned));
        g.memories.planned = planned;
        g.memories.n_planned = n;
        release(self);
        make_room(self, PT_MEMORY_PLANNED + n);
        for (size_t i = 0; i < n; i++) {
            planned[i] = mp_method_bind(self, buffers[i], PT_MEMORY_PLANNED + i,
                                        PT_SUBJECT_PLANNED_BUFFER, (int32_t)i);
        }
        mp_method_bind_memories(self, args, &g);
    }
    int code = pt_load(&self->m, &meta, &g.memories, &g.options, &error);
    if (PT_HAS_PROGRAMS && self->m.delegates == &own_delegates) {
        self->m.delegates = &delegates;
    }
    pt_finish(self, code, &error);
    make_room(self, self->m.end_external);
    return pt_small_int(self->m.end);
}

static mp_obj_t method_unload(mp_obj_t self_in) {
    method *self = MP_OBJ_TO_PTR(self_in);
    pt_need_stack(self->owner);
    pt_unload(&self->m);
    if (self->m.state == PT_UNLOADED) {
        release(self);
    }
    pt_finish(self, PT_ERROR_OK, NULL);
    return mp_const_none;
}

// Returns the end of the method in its pool; -1 while it is not loaded.
static mp_obj_t method_end(mp_obj_t self) {
    const pt_method *m = &((method *)MP_OBJ_TO_PTR(self))->m;
    return pt_small_int(m->state == PT_LOADED ? (int64_t)m->end : -1);
}

static mp_obj_t method_is_running(mp_obj_t self) {
    return mp_obj_new_bool(((method *)MP_OBJ_TO_PTR(self))->m.is_running);
}

// ---- executing

static inline mp_obj_t mp_method_call(mp_obj_t self_in, int (*function)(pt_method *, pt_error *)) {
    method *self = pt_get_method(self_in);
    pt_error error;
    int code = function(&self->m, &error);
    if (code != PT_ERROR_OK) {
        pt_finish(self, code, &error);
    }
    return mp_const_none;
}

static mp_obj_t method_check(mp_obj_t self_in) {
    const method *self = pt_get_method(self_in);
    PT_CALL(self->owner, pt_check_loaded(&self->m, &error));
    return mp_const_none;
}

static mp_obj_t method_count(mp_obj_t self_in, mp_obj_t what) {
    method_check(self_in);
    return pt_small_int(pt_method_meta_count(&((method *)MP_OBJ_TO_PTR(self_in))->m.meta,
                                             (pt_section)mp_obj_get_int(what)));
}

static mp_obj_t mp_method_run(mp_obj_t self, int (*function)(pt_method *, pt_error *)) {
    pt_need_stack(((method *)MP_OBJ_TO_PTR(self))->owner);
    return mp_method_call(self, function);
}

static mp_obj_t method_execute(mp_obj_t self) {
    return mp_method_run(self, pt_execute);
}

static mp_obj_t method_step(mp_obj_t self) {
    return mp_method_run(self, pt_step);
}

static mp_obj_t method_restart(mp_obj_t self) {
    return mp_method_call(self, pt_restart);
}

static mp_obj_t method_reset_state(mp_obj_t self) {
    return mp_method_call(self, pt_reset_state);
}

// Calls pt_seed, which has no entry in kernels in flash.
static mp_obj_t method_seed(mp_obj_t self, mp_obj_t seed) {
    method_check(self);
    ((method *)MP_OBJ_TO_PTR(self))->m.c.tracer.random =
        pt_scatter_bits((uint32_t)mp_obj_get_int(seed));
    return mp_const_none;
}

static mp_obj_t method_usage(mp_obj_t self) {
    pt_usage usage = pt_get_usage(&((method *)MP_OBJ_TO_PTR(self))->m);
    mp_obj_t items[] = {pt_small_int(usage.pool), pt_small_int(usage.packed),
                        pt_small_int(usage.temp), pt_small_int(usage.preferred_temp)};
    return mp_obj_new_tuple(MP_ARRAY_SIZE(items), items);
}

static mp_obj_t method_instruction(mp_obj_t self) {
    return pt_small_int(((method *)MP_OBJ_TO_PTR(self))->m.c.instruction);
}

// MicroPython searches the table from the start, so the functions of each run come first.
static const mp_rom_map_elem_t method_locals_table[] = {
    PT_1(method, execute),
    PT_3(pt_method, set_input),
    PT_2(pt_method, get_output),
    PT_1(method, check),
    PT_2(method, count),
    PT_1(method, step),
    PT_VAR(pt_method, item, 4, 4),
    PT_1(method, restart),
    PT_1(method, reset_state),
    PT_2(method, seed),
    PT_VAR(method, load, LOAD_ARGUMENTS, LOAD_ARGUMENTS),
    PT_1(method, unload),
    PT_1(method, end),
    PT_1(method, is_running),
    PT_3(pt_method, set_output),
    PT_3(pt_method, set_attribute),
    PT_3(pt_method, attribute),
    PT_1(method, usage),
#if PT_HAS_PROGRAMS // for delegates
    PT_3(pt_method, argument),
    PT_1(pt_method, argument_count),
    PT_3(pt_method, resize_argument),
    PT_VAR(pt_method, allocate, 4, 4),
    PT_2(pt_method, ask_temp),
#endif
    PT_1(method, instruction)};
static MP_DEFINE_CONST_DICT(method_locals, method_locals_table);

MP_DEFINE_CONST_OBJ_TYPE(pt_method_type, MP_QSTR_Method, MP_TYPE_FLAG_NONE, make_new,
                         method_make_new, locals_dict, &method_locals);
