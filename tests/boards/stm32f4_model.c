/* Simulate the clock registers of an STM32F405 (RM0090, 7.3) around the drivers of the board. They
 * react as the chip does, and an access that the chip forbids ends the program. Print the registers
 * at the end. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cortex_m.h"

static volatile uint32_t *model(uint32_t address);

#undef PT_REGISTER
#define PT_REGISTER(address) (*model(address))

#include "clock_stm32f4.c"
#include "uart_stm32.c"

#define PERIPHERALS 0x40000000u
#define RCC_RESET_CR (CR_HSION | CR_HSIRDY)
#define RCC_RESET_PLLCFGR 0x24003010u
#define CRYSTAL_ACCESSES 500

static uint32_t words[0x24000 / 4], last_pllcfgr = RCC_RESET_PLLCFGR;
static int has_registers = 1, has_crystal = 1, accesses;

static uint32_t *word(uint32_t address) {
    return &words[(address - PERIPHERALS) / 4];
}

static void forbid(int is_forbidden, const char *text) {
    if (is_forbidden) {
        puts(text);
        exit(1);
    }
}

static void set_if(uint32_t *to, int condition, uint32_t bit) {
    *to = condition ? *to | bit : *to & ~bit;
}

/* Apply the reaction of the hardware to the last access. */
static void react(void) {
    uint32_t *cr = word(RCC_CR), *pllcfgr = word(RCC_PLLCFGR), *cfgr = word(RCC_CFGR);
    accesses = *cr & CR_HSEON ? accesses + 1 : 0;
    forbid(*pllcfgr != last_pllcfgr && *cr & CR_PLLON, "PLLCFGR written while the PLL is on");
    last_pllcfgr = *pllcfgr;
    set_if(cr, *cr & CR_HSION, CR_HSIRDY);
    set_if(cr, has_crystal && accesses > CRYSTAL_ACCESSES, CR_HSERDY);
    set_if(cr, *cr & CR_PLLON && *cr & CR_HSERDY, CR_PLLRDY);
    uint32_t wanted = *cfgr & 3;
    forbid(wanted == 2 && !(*cr & CR_PLLRDY), "the core is switched to a PLL that does not run");
    forbid(wanted == 2 && *pllcfgr == (25 | 336 << 6 | 1 << 22 | 7 << 24) &&
               (*word(FLASH_ACR) & 7) < 5,
           "168 MHz with too few wait states");
    *cfgr = (*cfgr & ~CFGR_SWS) | wanted << 2;
}

static volatile uint32_t *model(uint32_t address) {
    if (!has_registers) {
        memset(words, 0, sizeof(words));
    } else {
        react();
    }
    return word(address);
}

static void leave_as_boot_loader(void) {
    *word(RCC_CR) |= CR_HSEON | CR_HSERDY | CR_PLLON | CR_PLLRDY;
    *word(RCC_PLLCFGR) = last_pllcfgr = 25 | 240 << 6 | 1 << 22 | 5 << 24;
    *word(RCC_CFGR) = 2 | 2 << 2;
    accesses = CRYSTAL_ACCESSES;
}

int main(int count, char **words_of_command) {
    const char *state = count > 1 ? words_of_command[1] : "";
    *word(RCC_CR) = RCC_RESET_CR;
    *word(RCC_PLLCFGR) = RCC_RESET_PLLCFGR;
    has_crystal = strcmp(state, "no crystal") != 0;
    has_registers = strcmp(state, "no registers") != 0;
    if (strcmp(state, "boot loader") == 0) {
        leave_as_boot_loader();
    }
    pt_uart_init();
    react();
    printf(
        "PLLCFGR=%u CFGR=%u ACR=%u AHB1ENR=%u APB2ENR=%u BRR=%u CR1=%u MODER=%u PUPDR=%u AFRL=%u\n",
        *word(RCC_PLLCFGR), *word(RCC_CFGR), *word(FLASH_ACR), *word(RCC_CR + 0x30),
        *word(RCC_CR + 0x44), *word(PT_UART_ADDRESS + 8), *word(PT_UART_ADDRESS + 12),
        *word(PT_UART_GPIO_ADDRESS), *word(PT_UART_GPIO_ADDRESS + 12),
        *word(PT_UART_GPIO_ADDRESS + 0x20));
    return 0;
}
