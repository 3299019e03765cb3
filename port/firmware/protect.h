#ifndef PT_PROTECT_H
#define PT_PROTECT_H

#include <stdint.h>

/* Make the read-only memories of board.toml read-only and the guard below the stack
 * inaccessible, so that a write through a null pointer and a stack overflow are faults. */
void pt_protect_init(void);

/* Returns the number of regions of the core's unit. */
uint32_t pt_protect_regions(void);

/* Disable the protection, and enable it again. */
void pt_protect_suspend(void);
void pt_protect_resume(void);

/* Also makes 2^log2_size bytes inaccessible, from `address` on, a multiple of that size. */
void pt_protect_deny(uint32_t address, uint32_t log2_size);

#endif
