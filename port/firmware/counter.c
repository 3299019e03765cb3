#include "counter.h"

#include "board.h"

static uint32_t overhead;

uint64_t pt_counter_instructions(void) {
    return pt_counter_ticks() * PT_COUNTER_INSTRUCTIONS / PT_COUNTER_INSTRUCTIONS_TICKS;
}

uint64_t pt_counter_stop(void) {
    uint64_t instructions = pt_counter_instructions();
    return instructions > overhead ? instructions - overhead : 0;
}

void pt_counter_set_overhead(uint32_t instructions) {
    overhead = instructions;
}
