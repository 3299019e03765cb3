/* USART of the STM32F4 (RM0090, 30.6), on the bus APB2, with its pins (8.4) and the board's clocks.
 */

#include "uart.h"

#include "stm32f4.h"

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

#define GPIO(offset) PT_REGISTER(PT_UART_GPIO_ADDRESS + (offset))
#define GPIO_MODER GPIO(0x00)
#define GPIO_PUPDR GPIO(0x0c)
#define GPIO_AFR(pin) GPIO(0x20 + (pin) / 8u * 4u)

#define MODER_ALTERNATE_FUNCTION 2u
#define PUPDR_UP 1u

static void set_field(volatile uint32_t *address, uint32_t index, uint32_t width, uint32_t value) {
    uint32_t mask = ((1u << width) - 1) << index * width;
    *address = (*address & ~mask) | value << index * width;
}

/* An open input reads as the idle line. */
static void set_up_pin(uint32_t pin) {
    set_field(&GPIO_PUPDR, pin, 2, PUPDR_UP);
    set_field(&GPIO_AFR(pin), pin % 8u, 4, PT_UART_FUNCTION);
    set_field(&GPIO_MODER, pin, 2, MODER_ALTERNATE_FUNCTION);
}

static void uart_stm32_set_up(uint32_t control) {
    uint32_t clock_hz = pt_stm32f4_start_clocks() ? PT_UART_CLOCK_HZ : PT_CLOCK_RESET_HZ;
    pt_stm32f4_enable(&PT_RCC_AHB1ENR, PT_UART_PORT);
    pt_stm32f4_enable(&PT_RCC_APB2ENR, PT_UART_ENABLE);
    set_up_pin(PT_UART_TX);
    set_up_pin(PT_UART_RX);
    USART_BRR = (clock_hz + BAUD_RATE / 2) / BAUD_RATE;
    USART_CR1 = control;
}

void pt_uart_write(const char *text, size_t length) {
    while (length--) {
        while (!(USART_SR & SR_TXE)) {
        }
        USART_DR = (uint8_t)*text++;
    }
}

#if PT_REPL

void pt_uart_init(void) {
    uart_stm32_set_up(CR1_UE | CR1_TE | CR1_RE | CR1_RXNEIE);
    pt_irq_enable(PT_UART_RECEIVE_IRQ);
}

void pt_uart_receive_irq(void) {
    while ((USART_SR & SR_RXNE) && pt_uart_has_room()) {
        pt_uart_received((uint8_t)USART_DR);
    }
}

#else

void pt_uart_init(void) {
    uart_stm32_set_up(CR1_UE | CR1_TE);
}

#endif
