/* Registers of the STM32F405 that more than one driver uses (RM0090, 7.3), and its clocks.
 */

#ifndef PT_STM32F4_H
#define PT_STM32F4_H

#include <stdbool.h>

#include "board.h"
#include "cortex_m.h"

#define PT_RCC_AHB1ENR PT_REGISTER(PT_CLOCK_RCC_ADDRESS + 0x30)
#define PT_RCC_APB1ENR PT_REGISTER(PT_CLOCK_RCC_ADDRESS + 0x40)
#define PT_RCC_APB2ENR PT_REGISTER(PT_CLOCK_RCC_ADDRESS + 0x44)

/* Switches the core to the PLL, which the crystal drives. Returns false if that is impossible, as
 * in an emulator without these registers: the core keeps its clock after reset. */
bool pt_stm32f4_start_clocks(void);

/* Switches the clock of a peripheral on, by a bit of an RCC_xxxENR. */
static inline void pt_stm32f4_enable(volatile uint32_t *enable_register, uint32_t bit) {
    *enable_register |= 1u << bit;
    (void)*enable_register; /* the clock runs two cycles after the write */
}

#endif
