/* Instruction counter. Under the emulator's instruction clock every instruction takes the
 * same time, so a timer counts instructions; on silicon it would count time. One driver file
 * a kind of timer; board.toml names it. */

#ifndef PT_COUNTER_H
#define PT_COUNTER_H

#include <stdint.h>

/* Starts the counter; the driver defines it. */
void pt_counter_start(void);

/* Returns the ticks begun since start, while it goes on; the driver defines it. Where a tick is
 * shorter than an instruction, the begun one makes the count of instructions exact. */
uint64_t pt_counter_ticks(void);

/* Instructions since start. */
uint64_t pt_counter_instructions(void);

/* Instructions since start, less the overhead; never below 0. */
uint64_t pt_counter_stop(void);

/* Set what an empty region between start and stop counts for the caller; 0 after reset. */
void pt_counter_set_overhead(uint32_t instructions);

#endif
