#include "fault.h"

#include <string.h>

#include "py/mpconfig.h"

/* An address that no Cortex-M memory map assigns to a memory: in the vendor system space. */
#define UNASSIGNED_ADDRESS 0xfffffff0u

static void read_unaligned(void) {
    static uint32_t words[2];
    uint32_t value;
    __asm volatile("ldr %0, [%1]" : "=r"(value) : "r"((uint8_t *)words + 1));
}

static void read_unassigned(void) {
    (void)PT_REGISTER(UNASSIGNED_ADDRESS);
}

static void write_null(void) {
    volatile uint32_t *null;
    __asm volatile("movs %0, #0" : "=r"(null)::"cc");
    *null = 0;
}

static void execute_undefined(void) {
    __asm volatile("udf #0");
}

static uint32_t overflow_stack(uint32_t depth) {
    volatile uint32_t block[16] = {depth};
    return depth == 0 ? 0 : overflow_stack(depth - 1) + block[0];
}

static void fault_provoke_overflow(void) {
    overflow_stack(UINT32_MAX);
}

static const struct {
    const char *kind;
    void (*provoke)(void);
} faults[] = {
    {"unaligned", read_unaligned},    {"address", read_unassigned},      {"null", write_null},
    {"undefined", execute_undefined}, {"stack", fault_provoke_overflow},
};

bool pt_fault_provoke(const char *kind) {
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        if (strcmp(kind, faults[i].kind) == 0) {
            faults[i].provoke();
            return true;
        }
    }
    return false;
}
