#ifndef PT_FAULT_H
#define PT_FAULT_H

#include <stdbool.h>
#include <stdint.h>

/* Exit status of a run that ended in a fault. */
#define PT_FAULT_STATUS 70

/* Stack of all exceptions, 8-byte aligned. */
extern uint64_t pt_fault_stack[128];

/* Handler of every exception that the firmware does not expect: prints the registers and
 * ends the run with PT_FAULT_STATUS. */
void pt_fault_entry(void);

/* Causes a fault: "unaligned", "address", "null", "undefined" or "stack". Returns false for another
 * kind. */
bool pt_fault_provoke(const char *kind);

#endif
