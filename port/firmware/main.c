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
#include "uart.h"

#define UNCAUGHT_EXCEPTION_STATUS 1

static uint64_t heap[PT_HEAP_SIZE / sizeof(uint64_t)];

int main(void);

#if PT_REPL

static int run(void) {
    for (;;) {
        int ended =
            pyexec_mode_kind == PYEXEC_MODE_RAW_REPL ? pyexec_raw_repl() : pyexec_friendly_repl();
        if (ended) {
            return 0;
        }
    }
}

#else

/* Exit status of SystemExit as CPython has it: none is 0, an int is itself, else 1. */
static int system_exit_status(mp_obj_t exception) {
    mp_obj_t value = mp_obj_exception_get_value(exception);
    if (value == mp_const_none) {
        return 0;
    }
    mp_int_t status = UNCAUGHT_EXCEPTION_STATUS;
    mp_obj_get_int_maybe(value, &status);
    return (int)status;
}

static int run(void) {
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
    gc_init(heap, (uint8_t *)heap + sizeof(heap));
    mp_init();
    pt_counter_start();
    return run();
}

void gc_collect(void) {
    gc_collect_start();
    gc_helper_collect_regs_and_stack();
    gc_collect_end();
}

mp_import_stat_t mp_import_stat(const char *path) {
    return MP_IMPORT_STAT_NO_EXIST;
}

mp_lexer_t *mp_lexer_new_from_file(qstr filename) {
    mp_raise_OSError(MP_ENOENT);
}

mp_uint_t mp_hal_stdout_tx_strn(const char *text, size_t length) {
    pt_uart_write(text, length);
    return length;
}

#if PT_REPL
int mp_hal_stdin_rx_chr(void) {
    return pt_uart_read();
}
#endif

mp_uint_t mp_hal_ticks_cpu(void) {
    return (mp_uint_t)pt_counter_instructions();
}

void nlr_jump_fail(void *value) {
    mp_hal_stdout_tx_str("picotorch: exception without a handler\r\n");
    pt_exit(UNCAUGHT_EXCEPTION_STATUS);
}
