#include "systick.h"

#include "board.h"
#include "cortex_m.h"
#include "uart.h"

#define CSR_ENABLE (1u << 0)
#define CSR_INTERRUPT (1u << 1)
#define CSR_PROCESSOR_CLOCK (1u << 2)
#define TICKS_A_MS (PT_SYSTICK_HZ / 1000u)

static volatile uint32_t ms;

void pt_systick_init(void) {
    PT_SYSTICK_RVR = TICKS_A_MS - 1;
    PT_SYSTICK_CVR = 0;
    PT_SYSTICK_CSR = CSR_ENABLE | CSR_INTERRUPT | CSR_PROCESSOR_CLOCK;
}

void pt_systick_entry(void) {
    ms++;
    pt_uart_receive_again();
}

uint32_t pt_systick_ms(void) {
    return ms;
}

/* The timer counts down. If it has restarted and the interrupt is still pending, the
 * millisecond is counted here. */
uint64_t pt_systick_ticks(void) {
    uint32_t state = pt_irq_disable();
    uint32_t left = PT_SYSTICK_CVR;
    uint64_t whole = ms;
    if (PT_SCB_ICSR & PT_ICSR_PENDSTSET) {
        left = PT_SYSTICK_CVR;
        whole++;
    }
    pt_irq_restore(state);
    return whole * TICKS_A_MS + (TICKS_A_MS - 1 - left);
}
