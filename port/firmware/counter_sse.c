/* Counter on the system counter of Arm's SSE subsystems (SSE-123 TRM, control frame). */

#include "counter.h"

#include "board.h"
#include "cortex_m.h"

#define CNTCR PT_REGISTER(PT_COUNTER_ADDRESS + 0x00)
#define CNTCV_LOW PT_REGISTER(PT_COUNTER_ADDRESS + 0x08)
#define CNTCV_HIGH PT_REGISTER(PT_COUNTER_ADDRESS + 0x0c)

#define CNTCR_ENABLE (1u << 0)

void pt_counter_start(void) {
    CNTCR = 0;
    CNTCV_HIGH = 0;
    CNTCV_LOW = 0;
    CNTCR = CNTCR_ENABLE;
}

uint64_t pt_counter_ticks(void) {
    uint32_t high = CNTCV_HIGH, low = CNTCV_LOW;
    if (high != CNTCV_HIGH) { /* the high word changed between the reads */
        high = CNTCV_HIGH;
        low = CNTCV_LOW;
    }
    return ((uint64_t)high << 32) + low + 1;
}
