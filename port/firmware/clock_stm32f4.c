/* Clocks of the STM32F405 (RM0090: 3.5.1, 7.2 and 7.3). */

#include "stm32f4.h"

#define RCC_CR (PT_CLOCK_RCC_ADDRESS + 0x00)
#define RCC_PLLCFGR (PT_CLOCK_RCC_ADDRESS + 0x04)
#define RCC_CFGR (PT_CLOCK_RCC_ADDRESS + 0x08)
#define FLASH_ACR PT_CLOCK_FLASH_ADDRESS

#define CR_HSION (1u << 0)
#define CR_HSIRDY (1u << 1)
#define CR_HSEON (1u << 16)
#define CR_HSERDY (1u << 17)
#define CR_PLLON (1u << 24)
#define CR_PLLRDY (1u << 25)
#define PLLCFGR_N(factor) ((factor) << 6)
#define PLLCFGR_P_2 (0u << 16)
#define PLLCFGR_FROM_HSE (1u << 22)
#define PLLCFGR_Q(divisor) ((divisor) << 24)
#define CFGR_SW_PLL (2u << 0)
#define CFGR_SWS (3u << 2)
#define CFGR_SWS_PLL (2u << 2)
#define CFGR_PPRE1_4 (5u << 10) /* 42 MHz at most */
#define CFGR_PPRE2_2 (4u << 13) /* 84 MHz at most */
#define ACR_LATENCY (7u << 0)
#define ACR_INSTRUCTION_CACHE (1u << 9)
#define ACR_DATA_CACHE (1u << 10)

#define MHZ 1000000u
#define VCO_MHZ (2 * PT_CLOCK_CORE_HZ / MHZ)
#define USB_MHZ 48u

_Static_assert(PT_CLOCK_CRYSTAL_HZ % MHZ == 0, "the PLL needs 1 MHz");
_Static_assert(VCO_MHZ >= 100 && VCO_MHZ <= 432, "the PLL's oscillator has 100 to 432 MHz");

/* Polls for longer than a crystal takes to start, 2 ms, and shorter than a user notices. */
#define PATIENCE 20000u

static bool becomes(uint32_t address, uint32_t mask, uint32_t value) {
    for (uint32_t i = 0; i < PATIENCE; i++) {
        if ((PT_REGISTER(address) & mask) == value) {
            return true;
        }
    }
    return false;
}

/* A boot loader may have left other clocks enabled. */
static bool back_to_reset(void) {
    PT_REGISTER(RCC_CR) |= CR_HSION;
    if (!becomes(RCC_CR, CR_HSIRDY, CR_HSIRDY)) {
        return false;
    }
    PT_REGISTER(RCC_CFGR) = 0;
    if (!becomes(RCC_CFGR, CFGR_SWS, 0)) {
        return false;
    }
    PT_REGISTER(RCC_CR) &= ~(CR_HSEON | CR_PLLON);
    return becomes(RCC_CR, CR_PLLRDY, 0);
}

static bool start_pll(void) {
    PT_REGISTER(RCC_CR) |= CR_HSEON;
    if (!becomes(RCC_CR, CR_HSERDY, CR_HSERDY)) {
        return false;
    }
    PT_REGISTER(RCC_PLLCFGR) = PT_CLOCK_CRYSTAL_HZ / MHZ | PLLCFGR_N(VCO_MHZ) | PLLCFGR_P_2 |
                               PLLCFGR_FROM_HSE | PLLCFGR_Q(VCO_MHZ / USB_MHZ);
    PT_REGISTER(RCC_CR) |= CR_PLLON;
    return becomes(RCC_CR, CR_PLLRDY, CR_PLLRDY);
}

/* Prefetch stays off: early revisions of the chip must not have it. */
static bool slow_flash_down(void) {
    PT_REGISTER(FLASH_ACR) = PT_CLOCK_FLASH_WAIT_STATES | ACR_INSTRUCTION_CACHE | ACR_DATA_CACHE;
    return becomes(FLASH_ACR, ACR_LATENCY, PT_CLOCK_FLASH_WAIT_STATES);
}

bool pt_stm32f4_start_clocks(void) {
    if (!back_to_reset() || !start_pll() || !slow_flash_down()) {
        return false;
    }
    PT_REGISTER(RCC_CFGR) = CFGR_PPRE1_4 | CFGR_PPRE2_2;
    PT_REGISTER(RCC_CFGR) |= CFGR_SW_PLL;
    if (becomes(RCC_CFGR, CFGR_SWS, CFGR_SWS_PLL)) {
        return true;
    }
    PT_REGISTER(RCC_CFGR) = 0;
    return false;
}
