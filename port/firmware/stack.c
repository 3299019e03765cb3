#include "stack.h"

#include "cortex_m.h"

#define PATTERN 0xa5c3e17bu

/* Painting and scanning must not touch the bytes that they paint or scan: both work below here. */
#define OWN_FRAME 64u

static uint32_t *first_word(void) {
    return (uint32_t *)pt_stack_limit;
}

void pt_stack_paint(void) {
    uint32_t *end = (uint32_t *)(pt_stack_pointer() - OWN_FRAME);
    for (volatile uint32_t *word = first_word(); word < end; word++) {
        *word = PATTERN;
    }
}

uint32_t pt_stack_untouched(void) {
    const volatile uint32_t *word = first_word();
    while ((uint32_t)word < pt_stack_pointer() && *word == PATTERN) {
        word++;
    }
    return (uint32_t)word - (uint32_t)first_word();
}

uint32_t pt_stack_used(void) {
    uint32_t sp = pt_stack_pointer();
    return sp - (uint32_t)first_word() - pt_stack_untouched();
}
