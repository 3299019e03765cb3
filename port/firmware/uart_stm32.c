/* USART of the STM32F4 (RM0090, 30.6). Its clock and pins are those that it has after reset. */

#include "uart.h"

#include "board.h"
#include "cortex_m.h"

#define USART_SR PT_REGISTER(PT_UART_ADDRESS + 0x00)
#define USART_DR PT_REGISTER(PT_UART_ADDRESS + 0x04)
#define USART_BRR PT_REGISTER(PT_UART_ADDRESS + 0x08)
#define USART_CR1 PT_REGISTER(PT_UART_ADDRESS + 0x0c)

#define SR_RXNE (1u << 5)
#define SR_TXE (1u << 7)
#define CR1_RE (1u << 2)
#define CR1_TE (1u << 3)
#define CR1_RXNEIE (1u << 5)
#define CR1_UE (1u << 13)
#define BAUD_RATE 115200u

void pt_uart_write(const char *text, size_t length) {
    while (length--) {
        while (!(USART_SR & SR_TXE)) {
        }
        USART_DR = (uint8_t)*text++;
    }
}

#if PT_REPL

void pt_uart_init(void) {
    USART_BRR = PT_UART_CLOCK_HZ / BAUD_RATE;
    USART_CR1 = CR1_UE | CR1_TE | CR1_RE | CR1_RXNEIE;
    pt_irq_enable(PT_UART_RECEIVE_IRQ);
}

void pt_uart_receive_irq(void) {
    while (USART_SR & SR_RXNE) {
        pt_uart_received((uint8_t)USART_DR);
    }
}

#else

void pt_uart_init(void) {
    USART_BRR = PT_UART_CLOCK_HZ / BAUD_RATE;
    USART_CR1 = CR1_UE | CR1_TE;
}

#endif
