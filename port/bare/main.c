// Runs the model of the job by its settings: port/firmware/frozen/runner.py in C.
//
// Reads the same sections and settings, except that a float is written as its bits, and writes the
// same files. Reports an error by the fields of a pt_error, which host/picotorch/run/bare.py turns
// into text.
#include "board.h"
#include "counter.h"
#include "inputs.h"
#include "interrupt.h"
#include "outputs.h"
#include "run_report.h"
#include "run_settings.h"
#include "semihosting.h"
#include "stack.h"

enum { MAX_FILES = 8, NO_JOB = 2 };

int main(void);

// The source of an error, for the host.
typedef enum { OF_PROGRAM, OF_DATA, OF_METHOD } stage;
// The phases whose instructions are counted.
enum { VERIFY, LOAD, SET_INPUTS, EXECUTE, GET_OUTPUTS, PHASES };

static const char *const phases[] = {"verify", "load", "set_inputs", "execute", "get_outputs"};

static pt_program program;
static pt_method_meta meta;
static pt_data files[MAX_FILES];
static pt_data *file_of[MAX_FILES];
static pt_span planned[PT_MEMORIES];
static pt_memories memories = {.planned = planned, .data = file_of};
static pt_options options;
static pt_method method;
static arena *common; // the arena for all other memories
static uint32_t instructions[PHASES];
static uint32_t stack_load, stack_execute;
static uint32_t executed;
static stage at;

// ---- counting

static void count_overhead(void) {
    pt_counter_set_overhead(0);
    pt_counter_start();
    pt_counter_set_overhead((uint32_t)pt_counter_stop());
}

static void count_stop(uint32_t phase) {
    uint64_t count = pt_counter_stop();
    instructions[phase] = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
}

// ---- set-up

static int open_program(pt_error *error) {
    pt_span model;
    pt_text name = {"", 0};
    section_find("model", &model);
    setting_find("method", &name);
    at = OF_PROGRAM;
    pt_counter_start();
    int code = pt_open(&program, model.data, model.size, PT_VERIFY_STRICT, error);
    count_stop(VERIFY);
    PT_TRY(code);
    return pt_method_meta_find(&meta, &program, name.data, name.length, error);
}

static int open_data(pt_error *error) {
    pt_span data;
    at = OF_DATA;
    for (uint32_t i = 0; section_find(name_of("data", (int32_t)i, 0).text, &data); i++) {
        if (i == MAX_FILES) {
            *error = (pt_error){PT_ERROR_OUT_OF_RESOURCES,
                                PT_SUBJECT_DATA_FILE,
                                PT_NO_INDEX,
                                MAX_FILES,
                                PT_NO_BYTES,
                                PT_NO_BYTES,
                                "is more than there is room for"};
            return error->code;
        }
        PT_TRY(pt_data_open(&files[i], data.data, data.size, PT_VERIFY_STRICT, error));
        file_of[i] = &files[i];
        memories.n_data = i + 1;
    }
    return PT_ERROR_OK;
}

// Returns arena planned1 for buffer 1, planned2 for buffer 2 ... if the board has it, else planned.
static arena *planned_arena(uint32_t i) {
    arena *own = i ? arena_find(name_of("planned", (int32_t)i, 0).text) : NULL;
    return own ? own : common;
}

static int bare_main_take_memories(pt_error *error) {
    uint32_t n = pt_method_meta_count(&meta, PT_PLANNED_BUFFERS);
    memories.n_planned = n < PT_MEMORIES ? n : PT_MEMORIES;
    for (uint32_t i = 0; i < memories.n_planned; i++) {
        uint32_t size = (uint32_t)setting_number(name_of("planned", (int32_t)i, 0).text);
        PT_TRY(arena_allocate(planned_arena(i), size, PT_SUBJECT_PLANNED_BUFFER, (int32_t)i,
                              &planned[i], error));
    }
    PT_TRY(arena_allocate(arena_find("pool"), (uint32_t)setting_number("pool_size"),
                          PT_SUBJECT_POOL, PT_NO_INDEX, &memories.pool, error));
    return arena_allocate(arena_find("temp"), (uint32_t)setting_number("temp_size"),
                          PT_SUBJECT_TEMP, PT_NO_INDEX, &memories.temp, error);
}

static int bind_events(pt_error *error) {
    if (!setting_number("trace")) {
        return PT_ERROR_OK;
    }
    uint32_t size = (pt_method_meta_count(&meta, PT_INSTRUCTIONS) + 1) * (uint32_t)sizeof(pt_event);
    options.clock = pt_counter_instructions;
    options.clock_mask = UINT64_MAX;
    return arena_allocate(common, size, PT_SUBJECT_EVENT_TRACER, PT_NO_INDEX, &options.events,
                          error);
}

static int bare_main_set_up(pt_error *error) {
    pt_text packing = {"", 0};
    setting_find("pack_weights", &packing);
    options.pack_weights = skip_prefix(&packing, "pool");
    common = arena_find("planned");
    PT_TRY(open_program(error));
    PT_TRY(open_data(error));
    at = OF_METHOD;
    PT_TRY(bare_main_take_memories(error));
    PT_TRY(inputs_set_up(&meta, 0, common, error));
    PT_TRY(outputs_set_up(&meta, common, error));
    return bind_events(error);
}

// ---- the run

static int bare_main_load(pt_error *error) {
    pt_stack_paint();
    pt_counter_start();
    int code = pt_load(&method, &meta, &memories, &options, error);
    count_stop(LOAD);
    stack_load = pt_stack_used();
    return code;
}

static int execute(pt_error *error) {
    pt_stack_paint();
    pt_counter_start();
    int code = pt_execute(&method, error);
    count_stop(EXECUTE);
    stack_execute = pt_stack_used();
    return code;
}

static int bare_main_run(pt_error *error) {
    PT_TRY(bare_main_load(error));
    PT_TRY(outputs_attach(&method, error));
    pt_counter_start();
    PT_TRY(inputs_set(&method, error));
    count_stop(SET_INPUTS);
    PT_TRY(execute(error));
    pt_counter_start();
    PT_TRY(outputs_get(&method, error));
    count_stop(GET_OUTPUTS);
    executed = 1;
    return PT_ERROR_OK;
}

static int run_further(pt_error *error) {
    uint32_t n = (uint32_t)setting_number("further");
    for (uint32_t k = 1; k <= n; k++) {
        PT_TRY(inputs_set_up(&meta, k, common, error));
        PT_TRY(inputs_set(&method, error));
        PT_TRY(pt_execute(&method, error));
        PT_TRY(outputs_get(&method, error));
        PT_TRY(outputs_write(&method, k, error));
        executed++;
    }
    return PT_ERROR_OK;
}

// ---- the report

static void report_memories(void) {
    pt_usage usage = pt_get_usage(&method);
    report_number("pool_used", usage.pool);
    report_number("pool_size", memories.pool.size);
    report_number("packed", usage.packed);
    report_number("temp_used", usage.temp);
    report_number("temp_size", memories.temp.size);
    for (uint32_t i = 0; i < memories.n_planned; i++) {
        pt_error error;
        uint32_t size = 0;
        name n = name_of("planned", (int32_t)i, 0);
        pt_method_meta_buffer(&meta, i, &size, &error);
        report_text(n.text);
        report_number("_used", size);
        report_text(n.text);
        report_number("_size", planned[i].size);
    }
    uint32_t left_out = setting_number("whole_pool") ? 0 : usage.packed;
    pt_write_file("pool", memories.pool.data, usage.pool - left_out);
}

static int bare_main_report_run(int code, pt_error *error) {
    pt_error none;
    for (uint32_t i = 0; i < (code ? SET_INPUTS : (uint32_t)PHASES); i++) {
        report_number(phases[i], instructions[i]);
    }
    report_number("stack_load", stack_load);
    if (!pt_check_loaded(&method, &none)) {
        report_memories();
    }
    if (code) {
        return code;
    }
    report_number("stack_execute", stack_execute);
    if (options.events.data) {
        pt_write_file("events", options.events.data, options.events.size);
    }
    return outputs_write(&method, 0, error);
}

// Reports all operators without a kernel in this build; the host has other kernels.
static void report_missing(void) {
    uint32_t n = pt_method_meta_count(&meta, PT_OPERATORS);
    const char *between = "missing=";
    for (uint32_t i = 0; i < n; i++) {
        pt_text name, overload;
        pt_error error;
        int32_t number = 0;
        if (!pt_method_meta_operator(&meta, i, &name, &overload, &number, &error) && number < 0) {
            report_text(between);
            report_digits(name.data, name.length);
            report_digits(".", overload.length > 0);
            report_digits(overload.data, overload.length);
            between = ",";
        }
    }
    report_text("\n");
}

static void report_error(const pt_error *error) {
    report_number("code", error->code);
    report_number("stage", at);
    report_number("subject", error->subject);
    report_number("index", error->index);
    report_number("argument", error->argument);
    report_number("requested", error->requested == PT_NO_BYTES ? -1 : (int64_t)error->requested);
    report_number("available", error->available == PT_NO_BYTES ? -1 : (int64_t)error->available);
    report_text("what=");
    report_text(error->what ? error->what : "");
    report_text("\n");
    if (error->subject == PT_SUBJECT_ATTRIBUTE) {
        report_text("attribute=");
        report_digits(outputs_attribute().data, outputs_attribute().length);
        report_text("\n");
    } else if (error->subject == PT_SUBJECT_MISSING_OPERATOR) {
        report_missing();
    }
}

// ---- the firmware

// The timer interrupt, which is never enabled.
void pt_interrupt_entry(void) {
}

int main(void) {
    pt_error error;
    if (!settings_open()) {
        return NO_JOB;
    }
    count_overhead();
    report_start();
    // The host recognizes the firmware by this text.
    report_text("board=bare, " PT_BOARD_NAME " with " PT_BOARD_CORE);
    report_text("\n");
    int code = bare_main_set_up(&error);
    if (code == PT_ERROR_OK) {
        code = bare_main_report_run(bare_main_run(&error), &error);
        if (code == PT_ERROR_OK) {
            code = run_further(&error);
        }
        report_number("executed", executed);
    }
    if (code) {
        report_error(&error);
    }
    report_end();
    return code != PT_ERROR_OK;
}
