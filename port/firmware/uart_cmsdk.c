/* UART of Arm's Cortex-M System Design Kit (CMSDK TRM, APB UART). */

#include "uart.h"

#include "py/mpconfig.h"
#include "py/mphal.h"
#include "py/runtime.h"
#include "shared/runtime/interrupt_char.h"

#define UART_DATA PT_REGISTER(PT_UART_ADDRESS + 0x00)
#define UART_STATE PT_REGISTER(PT_UART_ADDRESS + 0x04)
#define UART_CTRL PT_REGISTER(PT_UART_ADDRESS + 0x08)
#define UART_INTCLEAR PT_REGISTER(PT_UART_ADDRESS + 0x0c)
#define UART_BAUDDIV PT_REGISTER(PT_UART_ADDRESS + 0x10)

#define STATE_TX_FULL (1u << 0)
#define STATE_RX_FULL (1u << 1)
#define CTRL_TX_ENABLE (1u << 0)
#define CTRL_RX_ENABLE (1u << 1)
#define CTRL_RX_INTERRUPT (1u << 3)
#define INT_RX (1u << 1)
#define BAUDDIV_25MHZ_115200 217u

void pt_uart_write(const char *text, size_t length) {
    while (length--) {
        while (UART_STATE & STATE_TX_FULL) {
        }
        UART_DATA = (uint8_t)*text++;
    }
}

#if PT_REPL

/* Characters received and not yet read; the size is a power of two. */
static volatile struct {
    uint8_t bytes[256];
    uint8_t head, tail;
} received;

void pt_uart_init(void) {
    UART_BAUDDIV = BAUDDIV_25MHZ_115200;
    UART_CTRL = CTRL_TX_ENABLE | CTRL_RX_ENABLE | CTRL_RX_INTERRUPT;
    PT_NVIC_ISER0 = 1u << PT_UART_RECEIVE_IRQ;
}

void pt_uart_receive_irq(void) {
    /* Before the data is read: what arrives later interrupts again. */
    UART_INTCLEAR = INT_RX;
    while (UART_STATE & STATE_RX_FULL) {
        uint8_t c = (uint8_t)UART_DATA;
        if (c == mp_interrupt_char) {
            mp_sched_keyboard_interrupt();
        } else if ((uint8_t)(received.head + 1) != received.tail) {
            received.bytes[received.head] = c;
            received.head++;
        }
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

#else

void pt_uart_init(void) {
    UART_BAUDDIV = BAUDDIV_25MHZ_115200;
    UART_CTRL = CTRL_TX_ENABLE;
}

#endif
