/* Counter on a timer of Arm's Cortex-M System Design Kit (CMSDK TRM, APB timer). */

#include "counter.h"

#include "board.h"
#include "cortex_m.h"

#define TIMER_CTRL PT_REGISTER(PT_COUNTER_ADDRESS + 0x00)
#define TIMER_VALUE PT_REGISTER(PT_COUNTER_ADDRESS + 0x04)
#define TIMER_RELOAD PT_REGISTER(PT_COUNTER_ADDRESS + 0x08)
#define TIMER_INTSTATUS PT_REGISTER(PT_COUNTER_ADDRESS + 0x0c)

#define CTRL_ENABLE (1u << 0)
#define CTRL_INTERRUPT (1u << 3)
#define TIMER_MAX 0xffffffffu

void pt_counter_start(void) {
    TIMER_CTRL = 0;
    TIMER_INTSTATUS = 1;
    TIMER_RELOAD = TIMER_MAX;
    TIMER_VALUE = TIMER_MAX;
    TIMER_CTRL = CTRL_ENABLE | CTRL_INTERRUPT;
}

/* The interrupt status, which only this function reads, is set when the timer wraps: so
 * the count is right up to 2 * 2^32 ticks. */
uint64_t pt_counter_ticks(void) {
    uint32_t value = TIMER_VALUE;
    uint64_t wrapped = TIMER_INTSTATUS & 1;
    return (wrapped << 32) + (TIMER_MAX - value) + 1;
}
