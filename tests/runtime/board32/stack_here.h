// Replace port/firmware/stack.h: no linker defines the limits.
#define PT_STACK_H
#include <stdint.h>
extern uint8_t *pt_stack_limit, *pt_stack_top;
