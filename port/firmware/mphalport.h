#ifndef PT_MPHALPORT_H
#define PT_MPHALPORT_H

#include <stdint.h>

void mp_hal_set_interrupt_char(int c);

/* Time since boot. */
uint64_t mp_hal_time_ns(void);

#endif
