/* MicroPython on a bare Cortex-M: heap, stack limit, and the frozen main or the REPL. */

#include <stdint.h>
#include <string.h>

#include "counter.h"
#include "py/builtin.h"
#include "py/cstack.h"
#include "py/gc.h"
#include "py/lexer.h"
#include "py/mperrno.h"
#include "py/mphal.h"
#include "py/runtime.h"
#include "semihosting.h"
#include "shared/runtime/gchelper.h"
#include "shared/runtime/pyexec.h"
#include "stack.h"
#include "systick.h"
#include "uart.h"

#define UNCAUGHT_EXCEPTION_STATUS 1

static uint64_t heap[PT_HEAP_SIZE / sizeof(uint64_t)];

int main(void);

static void fw_main_start(void) {
    gc_init(heap, (uint8_t *)heap + sizeof(heap));
    mp_init();
}

#if PT_REPL

/* Runs boot.py, and main.py unless the raw REPL is active, as on other ports. */
static void run_scripts(void) {
    pyexec_frozen_module("_boot.py", false);
    int ended = pyexec_file_if_exists("boot.py");
    if (pyexec_mode_kind == PYEXEC_MODE_FRIENDLY_REPL && !(ended & PYEXEC_FORCED_EXIT)) {
        pyexec_file_if_exists("main.py");
    }
}

static void run_prompt(void) {
    int ended = 0;
    while (!ended) {
        ended =
            pyexec_mode_kind == PYEXEC_MODE_RAW_REPL ? pyexec_raw_repl() : pyexec_friendly_repl();
    }
}

/* Runs from soft reset to soft reset. Only the static memories survive, so files stay. */
NORETURN static int fw_main_run(void) {
    pt_systick_init();
    for (;;) {
        run_scripts();
        run_prompt();
        mp_hal_stdout_tx_str("MPY: soft reboot\r\n");
        gc_sweep_all();
        mp_deinit();
        fw_main_start();
    }
}

#else

/* Returns the exit status of SystemExit as in CPython: 0 for None, an int itself, else 1. */
static int system_exit_status(mp_obj_t exception) {
    mp_obj_t value = mp_obj_exception_get_value(exception);
    if (value == mp_const_none) {
        return 0;
    }
    mp_int_t status = UNCAUGHT_EXCEPTION_STATUS;
    mp_obj_get_int_maybe(value, &status);
    return (int)status;
}

static int fw_main_run(void) {
    nlr_buf_t nlr;
    if (nlr_push(&nlr) == 0) {
        mp_import_name(MP_QSTR_main, mp_const_none, MP_OBJ_NEW_SMALL_INT(0));
        nlr_pop();
        return 0;
    }
    mp_obj_t exception = MP_OBJ_FROM_PTR(nlr.ret_val);
    MP_STATE_THREAD(gc_lock_depth) = 0;
    if (mp_obj_is_subclass_fast(MP_OBJ_FROM_PTR(mp_obj_get_type(exception)),
                                MP_OBJ_FROM_PTR(&mp_type_SystemExit))) {
        return system_exit_status(exception);
    }
    mp_obj_print_exception(&mp_plat_print, exception);
    return UNCAUGHT_EXCEPTION_STATUS;
}

#endif

int main(void) {
    mp_cstack_init_with_top(pt_stack_top, (size_t)(pt_stack_top - pt_stack_limit));
    fw_main_start();
    pt_counter_start();
    return fw_main_run();
}

void gc_collect(void) {
    gc_collect_start();
    gc_helper_collect_regs_and_stack();
    gc_collect_end();
}

#if !PT_REPL

mp_import_stat_t mp_import_stat(const char *path) {
    return MP_IMPORT_STAT_NO_EXIST;
}

mp_lexer_t *mp_lexer_new_from_file(qstr filename) {
    mp_raise_OSError(MP_ENOENT);
}

mp_uint_t mp_hal_ticks_cpu(void) {
    return (mp_uint_t)pt_counter_instructions();
}

#endif

mp_uint_t mp_hal_stdout_tx_strn(const char *text, size_t length) {
    pt_uart_write(text, length);
    return length;
}

void nlr_jump_fail(void *value) {
    mp_hal_stdout_tx_str("picotorch: exception without a handler\r\n");
    pt_exit(UNCAUGHT_EXCEPTION_STATUS);
}
