/* What every UART's driver does with the characters it receives. */

#include "uart.h"

#include "py/mpconfig.h"
#include "py/mphal.h"
#include "py/runtime.h"
#include "shared/runtime/interrupt_char.h"

/* Characters received and not yet read; the size is a power of two. */
static volatile struct {
    uint8_t bytes[256];
    uint8_t head, tail;
} received;

void pt_uart_received(uint8_t c) {
    if (c == mp_interrupt_char) {
        mp_sched_keyboard_interrupt();
    } else if ((uint8_t)(received.head + 1) != received.tail) {
        received.bytes[received.head] = c;
        received.head++;
    }
}

int pt_uart_read(void) {
    for (;;) {
        uint32_t state = pt_irq_disable();
        if (received.head != received.tail) {
            int c = received.bytes[received.tail];
            received.tail++;
            pt_irq_restore(state);
            return c;
        }
        __asm volatile("wfi");
        pt_irq_restore(state);
        mp_handle_pending(true);
    }
}
