/* Memory protection unit of ARMv7-M (ARMv7-M ARM, B3.5), which ARMv6-M has too. A core without
 * one has no regions. */

#include "protect.h"

#include "board.h"
#include "cortex_m.h"
#include "stack.h"

#define MPU_RBAR PT_REGISTER(0xe000ed9cu)
#define MPU_RASR PT_REGISTER(0xe000eda0u)

#define RBAR_VALID (1u << 4)
#define RASR_ENABLE (1u << 0)
#define RASR_SIZE(log2_size) (((log2_size)-1) << 1)
#define RASR_CACHEABLE (1u << 17)
#define RASR_NO_ACCESS (0u << 24)
#define RASR_READ_ONLY (6u << 24)

#define READ_ONLY_ROW(address, log2_size) \
    {address, RASR_READ_ONLY | RASR_CACHEABLE | RASR_SIZE(log2_size) | RASR_ENABLE},

static const struct {
    uint32_t address, attributes;
} read_only_regions[] = {PT_BOARD_READ_ONLY(READ_ONLY_ROW)};

static void set_region(uint32_t number, uint32_t address, uint32_t attributes) {
    MPU_RBAR = address | RBAR_VALID | number;
    MPU_RASR = attributes;
}

void pt_protect_init(void) {
    const uint32_t count = sizeof(read_only_regions) / sizeof(read_only_regions[0]);
    if (pt_protect_regions() < count + 1) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        set_region(i, read_only_regions[i].address, read_only_regions[i].attributes);
    }
    set_region(count, (uint32_t)pt_stack_guard,
               RASR_NO_ACCESS | RASR_SIZE(PT_STACK_GUARD_LOG2_SIZE) | RASR_ENABLE);
    pt_protect_resume();
}

void pt_protect_deny(uint32_t address, uint32_t log2_size) {
    set_region(pt_protect_regions() - 1, address,
               RASR_NO_ACCESS | RASR_SIZE(log2_size) | RASR_ENABLE);
    __asm volatile("dsb\n isb");
}
