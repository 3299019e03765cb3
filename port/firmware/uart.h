/* The console. One driver file a kind of UART; board.toml names it. */

#ifndef PT_UART_H
#define PT_UART_H

#include <stddef.h>

void pt_uart_init(void);
void pt_uart_write(const char *text, size_t length);

/* Interrupt handler: keeps what was received, and raises KeyboardInterrupt on ctrl-C. */
void pt_uart_receive_irq(void);

/* Next character received; waits for one. */
int pt_uart_read(void);

#endif
