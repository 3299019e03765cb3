#ifndef PT_INTERRUPT_H
#define PT_INTERRUPT_H

#include <stdint.h>

/* Maximum ticks of the processor's clock for pt_interrupt_after. */
#define PT_INTERRUPT_MAX 0xffffffu

/* Raises KeyboardInterrupt after that number of ticks, as ctrl-C does; 0 cancels it. */
void pt_interrupt_after(uint32_t ticks);
/* Handler of the SysTick exception. */
void pt_interrupt_entry(void);

#endif
