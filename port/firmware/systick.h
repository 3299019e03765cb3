/* Time since boot, by the core's SysTick timer (ARMv7-M ARM, B3.3). */

#ifndef PT_SYSTICK_H
#define PT_SYSTICK_H

#include <stdint.h>

void pt_systick_init(void);

/* Handler of the SysTick exception, each millisecond. */
void pt_systick_entry(void);

uint32_t pt_systick_ms(void);
/* Ticks of PT_SYSTICK_HZ. */
uint64_t pt_systick_ticks(void);

#endif
