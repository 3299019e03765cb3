/* System control of the Stellaris LM3S (LM3S6965 data sheet, 5). */

#ifndef PT_LM3S_H
#define PT_LM3S_H

#include "cortex_m.h"

#define PT_LM3S_SYSCTL_ADDRESS 0x400fe000u
#define PT_LM3S_RIS PT_REGISTER(PT_LM3S_SYSCTL_ADDRESS + 0x050)
#define PT_LM3S_RCC PT_REGISTER(PT_LM3S_SYSCTL_ADDRESS + 0x060)
#define PT_LM3S_RCGC0 PT_REGISTER(PT_LM3S_SYSCTL_ADDRESS + 0x100)
#define PT_LM3S_RCGC1 PT_REGISTER(PT_LM3S_SYSCTL_ADDRESS + 0x104)
#define PT_LM3S_RCGC2 PT_REGISTER(PT_LM3S_SYSCTL_ADDRESS + 0x108)

/* Enables the clock of a peripheral. */
static inline void pt_lm3s_enable(volatile uint32_t *gates, uint32_t bit) {
    *gates |= 1u << bit;
    (void)*gates; /* registers of a peripheral are accessible three clocks later */
}

#endif
