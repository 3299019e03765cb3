/* Counter on a timer of Arm's Cortex-M System Design Kit (CMSDK TRM, APB timer). */

#include "counter.h"

#include "py/mpconfig.h"

#define TIMER_CTRL PT_REGISTER(PT_COUNTER_ADDRESS + 0x00)
#define TIMER_VALUE PT_REGISTER(PT_COUNTER_ADDRESS + 0x04)
#define TIMER_RELOAD PT_REGISTER(PT_COUNTER_ADDRESS + 0x08)
#define TIMER_INTSTATUS PT_REGISTER(PT_COUNTER_ADDRESS + 0x0c)

#define CTRL_ENABLE (1u << 0)
#define CTRL_INTERRUPT (1u << 3)
#define TIMER_MAX 0xffffffffu

static uint32_t overhead;

void pt_counter_start(void) {
    TIMER_CTRL = 0;
    TIMER_INTSTATUS = 1;
    TIMER_RELOAD = TIMER_MAX;
    TIMER_VALUE = TIMER_MAX;
    TIMER_CTRL = CTRL_ENABLE | CTRL_INTERRUPT;
}

/* Ticks begun since start: the timer shows only complete ones, and a tick is shorter than an
 * instruction, so that the begun one makes the count of instructions exact.
 *
 * The interrupt status, which nothing but this function sees, tells that the timer wrapped. */
static uint64_t ticks_since_start(void) {
    uint32_t value = TIMER_VALUE;
    uint64_t wrapped = TIMER_INTSTATUS & 1;
    return (wrapped << 32) + (TIMER_MAX - value) + 1;
}

uint64_t pt_counter_stop(void) {
    uint64_t instructions = ticks_since_start() * PT_COUNTER_TICK_NS / PT_COUNTER_INSTRUCTION_NS;
    return instructions > overhead ? instructions - overhead : 0;
}

void pt_counter_set_overhead(uint32_t instructions) {
    overhead = instructions;
}
