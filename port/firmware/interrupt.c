/* An interrupt after a given time, by the core's SysTick timer (ARMv7-M ARM, B3.3). */

#include "interrupt.h"

#include "py/mpconfig.h"
#include "py/runtime.h"

#define CSR_ENABLE (1u << 0)
#define CSR_INTERRUPT (1u << 1)
#define CSR_PROCESSOR_CLOCK (1u << 2)

void pt_interrupt_after(uint32_t ticks) {
    PT_SYSTICK_CSR = 0;
    PT_SCB_ICSR = PT_ICSR_PENDSTCLR;
    if (ticks > 0) {
        PT_SYSTICK_RVR = ticks;
        PT_SYSTICK_CVR = 0;
        PT_SYSTICK_CSR = CSR_ENABLE | CSR_INTERRUPT | CSR_PROCESSOR_CLOCK;
    }
}

void pt_interrupt_entry(void) {
    PT_SYSTICK_CSR = 0;
    mp_sched_keyboard_interrupt();
}
