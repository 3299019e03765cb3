#ifndef PT_PROTECT_H
#define PT_PROTECT_H

/* Make the read-only memories of board.toml read-only and the guard below the stack
 * inaccessible, so that a write through a null pointer and a stack overflow are faults. */
void pt_protect_init(void);

#endif
