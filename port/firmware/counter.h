/* Instruction counter. Under the emulator's instruction clock every instruction takes the
 * same time, so a timer counts instructions; on silicon it would count time. One driver file
 * a kind of timer; board.toml names it. */

#ifndef PT_COUNTER_H
#define PT_COUNTER_H

#include <stdint.h>

/* Starts the counter; the driver defines it. */
void pt_counter_start(void);

/* Returns the ticks begun since start, without stopping the counter; the driver defines it. If a
 * tick is shorter than an instruction, counting the begun tick makes the instruction count exact.
 */
uint64_t pt_counter_ticks(void);

/* Returns the instructions since start. */
uint64_t pt_counter_instructions(void);

/* Returns the instructions since start, less the overhead; never below 0. */
uint64_t pt_counter_stop(void);

/* Sets the overhead: the count of an empty region between start and stop; 0 after reset. */
void pt_counter_set_overhead(uint32_t instructions);

#endif
