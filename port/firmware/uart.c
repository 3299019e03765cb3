/* Handling of received characters, common to the drivers of all UARTs. */

#include "uart.h"

#include "board.h"
#include "py/mpconfig.h"
#include "py/mphal.h"
#include "py/runtime.h"
#include "shared/runtime/interrupt_char.h"

#define SIZE ((uint32_t)MICROPY_REPL_STDIN_BUFFER_MAX)

static volatile struct {
    uint8_t bytes[SIZE];
    uint32_t head, tail; /* counts */
    bool is_masked;
} received;

static uint32_t kept(void) {
    return received.head - received.tail;
}

/* While ctrl-C interrupts, it must be received, so a full buffer drops characters; else none. */
bool pt_uart_has_room(void) {
    received.is_masked = kept() == SIZE && mp_interrupt_char < 0;
    if (received.is_masked) {
        pt_irq_mask(PT_UART_RECEIVE_IRQ);
    }
    return !received.is_masked;
}

void pt_uart_received(uint8_t c) {
    if (c == mp_interrupt_char) {
        mp_sched_keyboard_interrupt();
    } else if (kept() < SIZE) {
        received.bytes[received.head % SIZE] = c;
        received.head++;
    }
}

void pt_uart_receive_again(void) {
    if (received.is_masked && pt_uart_has_room()) {
        pt_irq_call(PT_UART_RECEIVE_IRQ);
    }
}

bool pt_uart_can_read(void) {
    return kept() > 0;
}

int pt_uart_read(void) {
    for (;;) {
        uint32_t state = pt_irq_disable();
        if (pt_uart_can_read()) {
            int c = received.bytes[received.tail % SIZE];
            received.tail++;
            pt_uart_receive_again();
            pt_irq_restore(state);
            return c;
        }
        __asm volatile("wfi");
        pt_irq_restore(state);
        mp_handle_pending(true);
    }
}
