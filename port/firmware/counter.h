/* Instruction counter. Under the emulator's instruction clock every instruction takes the
 * same time, so a timer counts instructions; on silicon it would count time. */

#ifndef PT_COUNTER_H
#define PT_COUNTER_H

#include <stdint.h>

void pt_counter_start(void);

/* Instructions since start, less the overhead; never below 0. Exact up to 5 * 10^9. */
uint64_t pt_counter_stop(void);

/* Set what an empty region between start and stop counts for the caller; 0 after reset. */
void pt_counter_set_overhead(uint32_t instructions);

#endif
