// _picotorch.Method: a loaded method, and what keeps its memories alive.
#include "method.h"
#include "py/runtime.h"
#include <alloca.h>
#include <string.h>

enum { MOST_PLANNED = PT_MEMORIES - PT_MEMORY_PLANNED };

// ---- memories that move

// The data file whose memory this is, or the program; NULL.
static const pt_file *file_of(const method *self, uint32_t memory) {
    const pt_method *m = &self->m;
    if (memory == PT_MEMORY_PROGRAM) {
        return &((pt_program_object *)self->anchors[memory])->file;
    }
    bool is_file =
        memory >= (uint32_t)PT_MEMORY_PLANNED + m->n_planned && memory < m->first_external;
    return is_file ? &((pt_data_object *)self->anchors[memory])->file : NULL;
}

static pt_span span_of(const method *self, uint32_t memory) {
    const pt_method *m = &self->m;
    if (memory == TEMP) { // the library takes it when everything else is there
        return m->state == PT_LOADING ? ((pt_memories *)m->options.delegates->owner)->temp
                                      : (pt_span){m->c.scratch, m->c.scratch_size, false};
    }
    return memory == EVENTS ? m->options.events
                            : (pt_span){m->c.memory[memory], m->c.memory_size[memory], false};
}

// The first memory that was moved or has become too small; 0 for none.
static uint32_t find_moved(const method *self) {
    if (self->resizable == 0) {
        return PT_MEMORY_NONE;
    }
    for (uint32_t i = PT_MEMORY_PROGRAM; i < MEMORIES; i++) {
        if (self->resizable >> i & 1) {
            const pt_file *file = file_of(self, i);
            pt_span memory = span_of(self, i);
            if (pt_has_moved(file ? file->anchor : self->anchors[i], &memory)) {
                return i;
            }
        }
    }
    return PT_MEMORY_NONE;
}

void pt_check_resizable(const method *self) {
    uint32_t moved = self->m.state == PT_LOADED ? find_moved(self) : PT_MEMORY_NONE;
    if (moved) {
        PT_CALL(&self->owner, pt_moved_memory(&self->m, moved, &error));
    }
}

void *pt_start_of(const method *self, uint32_t memory) {
    const pt_file *file = memory < MEMORIES ? file_of(self, memory) : NULL;
    bool is_start = !(self->resizable >> memory & 1);
    return is_start ? file ? file->anchor : self->anchors[memory] : span_of(self, memory).data;
}

void pt_keep(method *self, uint32_t memory, void *anchor, bool is_resizable) {
    uint64_t bit = (uint64_t)1 << memory;
    self->anchors[memory] = anchor;
    self->resizable = is_resizable ? self->resizable | bit : self->resizable & ~bit;
}

static void release(method *self) {
    self->resizable = 0;
    memset(self->anchors, 0, sizeof(self->anchors));
}

// ---- what the library calls

// What on_delegate raises waits until the library has returned.
static int ask(pt_method *m, int what, uint32_t delegate) {
    method *self = m->c.owner;
    nlr_buf_t nlr;
    if (self->on_delegate == mp_const_none) {
        return PT_ERROR_NOT_FOUND;
    }
    if (nlr_push(&nlr) == 0) {
        int code = (int)mp_obj_get_int(mp_call_function_2(
            self->on_delegate, MP_OBJ_NEW_SMALL_INT(what), pt_small_int(delegate)));
        nlr_pop();
        return code;
    }
    self->raised = MP_OBJ_FROM_PTR(nlr.ret_val);
    return PT_ERROR_INTERNAL;
}

static int ask_and_check(pt_method *m, int what, uint32_t delegate, pt_error *error) {
    int code = ask(m, what, delegate);
    uint32_t moved = code == PT_ERROR_OK ? find_moved(m->c.owner) : PT_MEMORY_NONE;
    return moved ? pt_moved_memory(m, moved, error) : code;
}

static int find_delegate(pt_method *m, uint32_t delegate, pt_error *error) {
    return ask(m, PT_ASK_FIND, delegate);
}

static int execute_delegate(pt_method *m, uint32_t delegate, pt_error *error) {
    return ask_and_check(m, PT_ASK_EXECUTE, delegate, error);
}

// An interrupt may come before the backend is reached: then it is asked once more. One that is
// destroyed already has nothing to do.
static void destroy_delegate(pt_method *m, uint32_t delegate) {
    if (ask(m, PT_ASK_DESTROY, delegate) != PT_ERROR_OK) {
        ask(m, PT_ASK_DESTROY, delegate);
    }
}

// An interrupt may come after the backend has returned.
static int init_delegate(pt_method *m, uint32_t delegate, pt_error *error) {
    int code = ask_and_check(m, PT_ASK_INIT, delegate, error);
    if (code != PT_ERROR_OK) {
        destroy_delegate(m, delegate);
    }
    return code;
}

static const pt_delegates delegates = {
    .find = find_delegate,
    .init = init_delegate,
    .execute = execute_delegate,
    .destroy = destroy_delegate,
};

// An interrupt that is pending, ctrl-C for instance, ends the execution. Scheduled functions wait:
// they might use the method.
static int poll(pt_context *c) {
    method *self = c->owner;
    mp_obj_t pending = pt_take_pending_exception();
    if (pending != MP_OBJ_NULL) {
        self->raised = pending;
    }
    return pending == MP_OBJ_NULL ? PT_ERROR_OK : PT_ERROR_INTERNAL;
}

static void raise_kept(method *self) {
    mp_obj_t raised = self->raised;
    if (raised != MP_OBJ_NULL) {
        self->raised = MP_OBJ_NULL;
        nlr_raise(raised);
    }
}

void pt_finish(method *self, int code, const pt_error *error) {
    raise_kept(self);
    if (code != PT_ERROR_OK) {
        pt_raise(&self->owner, error);
    }
}

static inline mp_obj_t call(mp_obj_t self_in, int (*function)(pt_method *, pt_error *)) {
    method *self = MP_OBJ_TO_PTR(self_in);
    pt_error error;
    pt_check_memories_of(self);
    int code = function(&self->m, &error);
    if (code != PT_ERROR_OK) {
        pt_finish(self, code, &error);
    }
    return mp_const_none;
}

// ---- made, loaded and let go

static mp_obj_t method_make_new(const mp_obj_type_t *type, size_t n_args, size_t n_kw,
                                const mp_obj_t *args) {
    mp_arg_check_num(n_args, n_kw, 1, 2, false);
    method *self = m_new0(method, 1);
    self->base.type = type;
    self->owner = pt_new_owner(args[0]);
    self->on_delegate = n_args > 1 ? args[1] : mp_const_none;
    self->raised = MP_OBJ_NULL;
    self->m.c.owner = self;
    self->m.c.poll = poll;
    return MP_OBJ_FROM_PTR(self);
}

// Arguments of load.
// clang-format off
enum { SELF, PROGRAM, PLAN, POOL, POOL_SIZE, USED, PLANNED, TEMP_MEMORY, FILES, PREPARE, EVENT_MEMORY,
       MOST, MOST_ARGUMENTS, LOAD_ARGUMENTS };
// clang-format on

typedef struct loading {
    method *self;
    pt_plan plan;
    pt_memories memories;
    pt_options options;
    pt_delegates delegates;
    pt_span *planned; // of each planned buffer that the method needs
} loading;

static pt_span take(const loading *l, mp_obj_t buffer, uint32_t memory, uint8_t subject,
                    int32_t index) {
    pt_memory found = pt_memory_of(&l->self->owner, buffer, subject, index);
    pt_keep(l->self, memory, found.anchor, found.is_resizable);
    return found.span;
}

// How many of the planned buffers that are there the method needs.
static size_t count_planned(const loading *l, mp_obj_t planned) {
    size_t n;
    mp_obj_t *buffers;
    mp_obj_get_array(planned, &n, &buffers);
    return MIN(n, MIN(pt_plan_count(&l->plan, PT_PLANNED_BUFFERS), MOST_PLANNED));
}

static void take_planned(loading *l, mp_obj_t planned) {
    size_t n;
    mp_obj_t *buffers;
    mp_obj_get_array(planned, &n, &buffers);
    for (size_t i = 0; i < l->memories.n_planned; i++) {
        l->planned[i] =
            take(l, buffers[i], PT_MEMORY_PLANNED + i, PT_SUBJECT_PLANNED_BUFFER, (int32_t)i);
    }
}

// The objects of the data files, one after the other among the anchors, are the library's array.
static void take_files(loading *l, mp_obj_t files) {
    uint32_t first = PT_MEMORY_PLANNED + l->memories.n_planned;
    size_t n = 0;
    mp_obj_t *items;
    if (files != mp_const_none) {
        mp_obj_get_array(files, &n, &items);
    }
    l->memories.n_data = n;
    l->memories.data = (pt_data *const *)(const void *)&l->self->anchors[first];
    for (size_t i = 0; i < n && first + i < PT_MEMORIES; i++) {
        pt_data_object *file = pt_get_data(items[i]);
        pt_keep(l->self, first + i, file, file->file.is_resizable);
    }
}

static void take_memories(loading *l, const mp_obj_t *args) {
    pt_program_object *program = MP_OBJ_TO_PTR(args[PROGRAM]);
    pt_keep(l->self, PT_MEMORY_PROGRAM, program, program->file.is_resizable);
    l->memories.pool = take(l, args[POOL], PT_MEMORY_POOL, PT_SUBJECT_POOL, PT_NO_INDEX);
    l->memories.pool.size = MIN(l->memories.pool.size, (uint32_t)mp_obj_get_int(args[POOL_SIZE]));
    l->memories.pool_used = (uint32_t)mp_obj_get_int(args[USED]);
    take_planned(l, args[PLANNED]);
    take_files(l, args[FILES]);
    if (args[TEMP_MEMORY] != mp_const_none) {
        l->memories.temp = take(l, args[TEMP_MEMORY], TEMP, PT_SUBJECT_TEMP, PT_NO_INDEX);
    }
    if (args[EVENT_MEMORY] != mp_const_none) {
        pt_span events = take(l, args[EVENT_MEMORY], EVENTS, PT_SUBJECT_EVENT_TRACER, PT_NO_INDEX);
        events.data = events.size ? events.data : l; // NULL would mean that nothing is measured
        l->options.events = events;
    }
}

static void take_options(loading *l, const mp_obj_t *args) {
    l->delegates = delegates;
    l->delegates.owner = &l->memories;
    l->delegates.most = (uint32_t)mp_obj_get_int(args[MOST]);
    l->delegates.most_arguments = (uint32_t)mp_obj_get_int(args[MOST_ARGUMENTS]);
    l->options.delegates = &l->delegates;
    l->options.prepare = mp_obj_is_true(args[PREPARE]);
    l->options.clock = pt_ticks;
    l->options.clock_mask = (mp_uint_t)-1;
}

static mp_obj_t method_load(size_t n_args, const mp_obj_t *args) {
    method *self = MP_OBJ_TO_PTR(args[SELF]);
    pt_need_stack(&self->owner);
    loading l = {.self = self, .plan = pt_get_plan(args[PROGRAM], args[PLAN])};
    pt_error error;
    if (self->m.state == PT_UNLOADED) { // else it is an error, and all stays as it is
        l.memories.n_planned = count_planned(&l, args[PLANNED]);
        l.planned = alloca(l.memories.n_planned * sizeof(pt_span));
        l.memories.planned = l.planned;
        release(self);
        take_memories(&l, args);
        take_options(&l, args);
    }
    int code = pt_load(&self->m, &l.plan, &l.memories, &l.options, &error);
    if (self->m.options.delegates == &l.delegates) {
        self->m.options.delegates = &delegates;
    }
    pt_finish(self, code, &error);
    return pt_small_int(self->m.end);
}

static mp_obj_t method_unload(mp_obj_t self_in) {
    method *self = MP_OBJ_TO_PTR(self_in);
    pt_need_stack(&self->owner);
    pt_unload(&self->m);
    if (self->m.state == PT_UNLOADED) {
        release(self);
    }
    raise_kept(self);
    return mp_const_none;
}

static mp_obj_t method_is_loaded(mp_obj_t self) {
    return mp_obj_new_bool(PT_METHOD(self)->m.state == PT_LOADED);
}

static mp_obj_t method_is_running(mp_obj_t self) {
    return mp_obj_new_bool(PT_METHOD(self)->m.is_running);
}

static int check_loaded(pt_method *m, pt_error *error) {
    return pt_check_loaded(m, error);
}

static mp_obj_t method_check(mp_obj_t self) {
    return call(self, check_loaded);
}

// ---- executing

static mp_obj_t run(mp_obj_t self, int (*function)(pt_method *, pt_error *)) {
    pt_need_stack(&PT_METHOD(self)->owner);
    return call(self, function);
}

static mp_obj_t method_execute(mp_obj_t self) {
    return run(self, pt_execute);
}

static mp_obj_t method_step(mp_obj_t self) {
    return run(self, pt_step);
}

static mp_obj_t method_restart(mp_obj_t self) {
    return call(self, pt_restart);
}

static mp_obj_t method_reset_state(mp_obj_t self) {
    return call(self, pt_reset_state);
}

static mp_obj_t method_usage(mp_obj_t self, mp_obj_t into_in) {
    pt_usage usage = pt_get_usage(&PT_METHOD(self)->m);
    size_t length;
    mp_obj_t *into;
    mp_obj_list_get(into_in, &length, &into);
    if (length < 3) {
        pt_raise_value_error();
    }
    into[0] = pt_small_int(usage.pool);
    into[1] = pt_small_int(usage.prepared);
    into[2] = pt_small_int(usage.temp);
    return mp_const_none;
}

static mp_obj_t method_instruction(mp_obj_t self) {
    return pt_small_int(PT_METHOD(self)->m.c.instruction);
}

// MicroPython searches it from the start: what each run calls comes first.
static const mp_rom_map_elem_t method_locals_table[] = {
    PT_1(method, execute),
    PT_3(pt_method, set_input),
    PT_3(pt_method, output),
    PT_1(method, check),
    PT_1(method, step),
    PT_VAR(pt_method, item, 4, 4),
    PT_3(pt_method, argument),
    PT_1(pt_method, argument_count),
    PT_1(method, restart),
    PT_1(method, reset_state),
    PT_VAR(method, load, LOAD_ARGUMENTS, LOAD_ARGUMENTS),
    PT_1(method, unload),
    PT_1(method, is_loaded),
    PT_1(method, is_running),
    PT_3(pt_method, set_output),
    PT_3(pt_method, set_attribute),
    PT_3(pt_method, attribute),
    PT_2(method, usage),
    PT_3(pt_method, resize_argument),
    PT_VAR(pt_method, allocate, 3, 4),
    PT_VAR(pt_method, allocate_temp, 3, 4),
    PT_2(pt_method, ask_temp),
    PT_1(method, instruction)};
static MP_DEFINE_CONST_DICT(method_locals, method_locals_table);

MP_DEFINE_CONST_OBJ_TYPE(pt_method_type, MP_QSTR_Method, MP_TYPE_FLAG_NONE, make_new,
                         method_make_new, locals_dict, &method_locals);
