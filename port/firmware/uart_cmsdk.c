/* UART of Arm's Cortex-M System Design Kit (CMSDK TRM, APB UART). */

#include "uart.h"

#include "board.h"
#include "cortex_m.h"

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
#define BAUD_RATE 115200u

void pt_uart_write(const char *text, size_t length) {
    while (length--) {
        while (UART_STATE & STATE_TX_FULL) {
        }
        UART_DATA = (uint8_t)*text++;
    }
}

#if PT_REPL

void pt_uart_init(void) {
    UART_BAUDDIV = PT_UART_CLOCK_HZ / BAUD_RATE;
    UART_CTRL = CTRL_TX_ENABLE | CTRL_RX_ENABLE | CTRL_RX_INTERRUPT;
    pt_irq_enable(PT_UART_RECEIVE_IRQ);
}

void pt_uart_receive_irq(void) {
    /* Cleared before the data is read: a later character interrupts again. */
    UART_INTCLEAR = INT_RX;
    while ((UART_STATE & STATE_RX_FULL) && pt_uart_has_room()) {
        pt_uart_received((uint8_t)UART_DATA);
    }
}

#else

void pt_uart_init(void) {
    UART_BAUDDIV = PT_UART_CLOCK_HZ / BAUD_RATE;
    UART_CTRL = CTRL_TX_ENABLE;
}

#endif
