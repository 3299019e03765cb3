/* Memory protection unit and stack limit of ARMv8-M (ARMv8-M ARM, B3.24 and B11). A core without
 * the unit has no regions. */

#include "protect.h"

#include "board.h"
#include "cortex_m.h"
#include "stack.h"

#define MPU_RNR PT_REGISTER(0xe000ed98u)
#define MPU_RBAR PT_REGISTER(0xe000ed9cu)
#define MPU_RLAR PT_REGISTER(0xe000eda0u)
#define MPU_MAIR0 PT_REGISTER(0xe000edc0u)

#define RBAR_READ_ONLY (3u << 1)
#define RLAR_ENABLE (1u << 0)
#define RLAR_SMALLEST_REGION 32u
#define MAIR_NORMAL_WRITE_BACK 0xffu

#define READ_ONLY_ROW(address, log2_size) {address, address + ((1u << (log2_size)) - 1)},

static const struct {
    uint32_t first, last;
} read_only_regions[] = {PT_BOARD_READ_ONLY(READ_ONLY_ROW)};

static void set_read_only(uint32_t number, uint32_t first, uint32_t last) {
    MPU_RNR = number;
    MPU_RBAR = first | RBAR_READ_ONLY;
    MPU_RLAR = (last & ~(RLAR_SMALLEST_REGION - 1)) | RLAR_ENABLE;
}

/* The core compares the stack pointer with its limit, so the guard needs no region. */
void pt_protect_init(void) {
    const uint32_t count = sizeof(read_only_regions) / sizeof(read_only_regions[0]);
    __asm volatile("msr psplim, %0" ::"r"(pt_stack_limit));
    if (pt_protect_regions() < count) {
        return;
    }
    MPU_MAIR0 = MAIR_NORMAL_WRITE_BACK;
    for (uint32_t i = 0; i < count; i++) {
        set_read_only(i, read_only_regions[i].first, read_only_regions[i].last);
    }
    pt_protect_resume();
}

/* A region cannot exclude privileged code, but memory in two regions is inaccessible. */
void pt_protect_deny(uint32_t address, uint32_t log2_size) {
    uint32_t last = pt_protect_regions() - 1;
    set_read_only(last, address, address + ((1u << log2_size) - 1));
    set_read_only(last - 1, address, address + ((1u << log2_size) - 1));
    __asm volatile("dsb\n isb");
}
