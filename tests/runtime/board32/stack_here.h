// Instead of port/firmware/stack.h: the limits are not known to a linker.
#define PT_STACK_H
#include <stdint.h>
extern uint8_t *pt_stack_limit, *pt_stack_top;
