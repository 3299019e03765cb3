// Start a Cortex-M, and print by Arm's semihosting.
#include "target.h"
#include <stdint.h>

extern uint32_t stack_top[], data_load[], data_start[], data_end[];
extern uint64_t bss_start[], bss_end[]; // at multiples of 16 bytes
void reset(void);

static void call_host(uint32_t operation, const void *parameters) {
    register uint32_t r0 __asm("r0") = operation;
    register const void *r1 __asm("r1") = parameters;
    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void say(const char *line) {
    call_host(4, line);
    call_host(4, "\n");
}

static void leave(int status) {
    const uint32_t parameters[] = {0x20026, (uint32_t)status};
    for (;;) {
        call_host(0x20, parameters);
    }
}

static void fault(void) {
    say("fault");
    leave(70);
}

void reset(void) {
    *(volatile uint32_t *)0xe000ed88u |= 0xfu << 20; // enable the FPU
    __asm volatile("dsb\n isb");
    for (uint32_t *to = data_start, *from = data_load; to < data_end;) {
        *to++ = *from++;
    }
    for (uint64_t *to = bss_start; to < bss_end; to += 2) {
        to[0] = to[1] = 0;
    }
    leave(main());
}

__attribute__((section(".vectors"), used)) static const struct {
    const uint32_t *stack;
    void (*handlers[15])(void);
} vectors = {
    stack_top,
    {reset, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault,
     fault, fault},
};
