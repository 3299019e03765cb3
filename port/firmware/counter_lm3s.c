/* Counter on the watchdog of the Stellaris LM3S (LM3S6965 data sheet, 10). */

#include "counter.h"

#include "board.h"
#include "lm3s.h"

#define WDT_LOAD PT_REGISTER(PT_COUNTER_ADDRESS + 0x000)
#define WDT_VALUE PT_REGISTER(PT_COUNTER_ADDRESS + 0x004)
#define WDT_CTL PT_REGISTER(PT_COUNTER_ADDRESS + 0x008)
#define WDT_ICR PT_REGISTER(PT_COUNTER_ADDRESS + 0x00c)
#define WDT_RIS PT_REGISTER(PT_COUNTER_ADDRESS + 0x010)

#define CTL_COUNT (1u << 0)
#define TIMER_MAX 0xffffffffu
#define GATE 3u

/* Counting enables its interrupt, which stays masked in the NVIC; a second one does not reset. */
void pt_counter_start(void) {
    pt_lm3s_enable(&PT_LM3S_RCGC0, GATE);
    WDT_ICR = 1;
    WDT_LOAD = TIMER_MAX;
    WDT_CTL = CTL_COUNT;
}

uint64_t pt_counter_ticks(void) {
    uint32_t value = WDT_VALUE;
    uint64_t wrapped = WDT_RIS & 1;
    return (wrapped << 32) + (TIMER_MAX - value) + 1;
}
