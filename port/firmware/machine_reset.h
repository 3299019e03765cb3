// Functions of the module machine that a port defines for MicroPython's extmod/modmachine.c, which
// includes this file.

#include "cortex_m.h"

#define RESET_BY_POWER 1

static void mp_machine_idle(void) {
    __asm volatile("wfi");
}

NORETURN static void mp_machine_reset(void) {
    PT_SCB_AIRCR = PT_AIRCR_RESET;
    for (;;) {
    }
}

static mp_int_t mp_machine_reset_cause(void) {
    return RESET_BY_POWER;
}
