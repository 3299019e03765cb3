/* The stack of the program: its limits and its use. */

#ifndef PT_STACK_H
#define PT_STACK_H

#include <stdint.h>

/* No access is allowed from guard to limit. */
extern uint8_t pt_stack_guard[], pt_stack_limit[], pt_stack_top[];

/* Fill the unused part of the stack with a pattern. */
void pt_stack_paint(void);

/* Returns the bytes below the caller's stack pointer that were written since the last paint. */
uint32_t pt_stack_used(void);

/* Returns the bytes at the end of the stack that were not written since the last paint. */
uint32_t pt_stack_untouched(void);

#endif
