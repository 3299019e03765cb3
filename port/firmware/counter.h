/* Instruction counter. Under the emulator's instruction clock every instruction takes the
 * same time, so a timer counts instructions; on silicon it would count time. */

#ifndef PT_COUNTER_H
#define PT_COUNTER_H

#include <stdint.h>

/* Measure the counter's own instructions; call once before the others. */
void pt_counter_init(void);

void pt_counter_start(void);

/* Instructions since start, without the counter's own. Exact up to 5 * 10^9. */
uint64_t pt_counter_stop(void);

#endif
