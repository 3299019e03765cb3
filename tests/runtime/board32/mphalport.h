#ifndef PT_MPHALPORT_H
#define PT_MPHALPORT_H

void mp_hal_set_interrupt_char(int c);

#endif
