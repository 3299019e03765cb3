/* The console. One driver file a kind of UART; board.toml names it. */

#ifndef PT_UART_H
#define PT_UART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void pt_uart_init(void);
void pt_uart_write(const char *text, size_t length);

/* Interrupt handler of the driver: passes received characters to pt_uart_received(). */
void pt_uart_receive_irq(void);

/* True if pt_uart_received() may be called. If not, the interrupt is masked until pt_uart_read()
 * has freed space: the driver leaves the characters in the UART. */
bool pt_uart_has_room(void);

/* Stores a character for pt_uart_read(); ctrl-C raises KeyboardInterrupt. */
void pt_uart_received(uint8_t c);

/* Continues receiving after a mask, if there is space again. */
void pt_uart_receive_again(void);

/* True if pt_uart_read() has a character. */
bool pt_uart_can_read(void);

/* Returns the next character received; waits for one. */
int pt_uart_read(void);

#endif
