/* UART of the Stellaris LM3S (LM3S6965 data sheet, 12), with its pins (8) and the clock (5.3). */

#include "uart.h"

#include "board.h"
#include "lm3s.h"

#define UART_DR PT_REGISTER(PT_UART_ADDRESS + 0x00)
#define UART_FR PT_REGISTER(PT_UART_ADDRESS + 0x18)
#define UART_IBRD PT_REGISTER(PT_UART_ADDRESS + 0x24)
#define UART_FBRD PT_REGISTER(PT_UART_ADDRESS + 0x28)
#define UART_LCRH PT_REGISTER(PT_UART_ADDRESS + 0x2c)
#define UART_CTL PT_REGISTER(PT_UART_ADDRESS + 0x30)

#define FR_TX_FULL (1u << 5)
#define LCRH_FIFOS (1u << 4)
#define LCRH_8_BITS (3u << 5)
#define CTL_ENABLE (1u << 0)
#define CTL_TX_ENABLE (1u << 8)
#define BAUD_RATE 115200u

#define GPIO_A_ADDRESS 0x40004000u
#define GPIO_AFSEL PT_REGISTER(GPIO_A_ADDRESS + 0x420)
#define GPIO_DEN PT_REGISTER(GPIO_A_ADDRESS + 0x51c)
#define RX_AND_TX 3u

#define RIS_PLL_LOCKED (1u << 6)
#define RCC_SYSDIV_MASK (15u << 23)
#define RCC_SYSDIV_4 (3u << 23)
#define RCC_USE_SYSDIV (1u << 22)
#define RCC_PLL_OFF (1u << 13)
#define RCC_BYPASS (1u << 11)
#define RCC_CRYSTAL_MASK (15u << 6)
#define RCC_CRYSTAL_8_MHZ (14u << 6)
#define RCC_SOURCE_MASK (3u << 4)
#define RCC_MAIN_OFF (1u << 0)

_Static_assert(PT_UART_CLOCK_HZ == 50000000u, "start_clock() makes 50 MHz");

/* The PLL's 200 MHz by 4, of the crystal. */
static void start_clock(void) {
    uint32_t rcc = (PT_LM3S_RCC | RCC_BYPASS) & ~(RCC_USE_SYSDIV | RCC_MAIN_OFF);
    PT_LM3S_RCC = rcc;
    rcc = (rcc & ~(RCC_CRYSTAL_MASK | RCC_SOURCE_MASK | RCC_PLL_OFF)) | RCC_CRYSTAL_8_MHZ;
    PT_LM3S_RCC = rcc;
    rcc = (rcc & ~RCC_SYSDIV_MASK) | RCC_SYSDIV_4 | RCC_USE_SYSDIV;
    PT_LM3S_RCC = rcc;
    while (!(PT_LM3S_RIS & RIS_PLL_LOCKED)) {
    }
    PT_LM3S_RCC = rcc & ~RCC_BYPASS;
}

void pt_uart_write(const char *text, size_t length) {
    while (length--) {
        while (UART_FR & FR_TX_FULL) {
        }
        UART_DR = (uint8_t)*text++;
    }
}

void pt_uart_init(void) {
    uint32_t divisor = (PT_UART_CLOCK_HZ * 4u + BAUD_RATE / 2) / BAUD_RATE;
    start_clock();
    pt_lm3s_enable(&PT_LM3S_RCGC1, 0);
    pt_lm3s_enable(&PT_LM3S_RCGC2, 0);
    GPIO_AFSEL |= RX_AND_TX;
    GPIO_DEN |= RX_AND_TX;
    UART_CTL = 0;
    UART_IBRD = divisor / 64u;
    UART_FBRD = divisor % 64u;
    UART_LCRH = LCRH_8_BITS | LCRH_FIFOS;
    UART_CTL = CTL_ENABLE | CTL_TX_ENABLE;
}
