/* Common parts of the memory protection units of ARMv7-M (ARMv7-M ARM, B3.5) and ARMv8-M
 * (ARMv8-M ARM, D1). */

#include "protect.h"

#include "cortex_m.h"

#define MPU_TYPE PT_REGISTER(0xe000ed90u)
#define MPU_CTRL PT_REGISTER(0xe000ed94u)

#define TYPE_REGIONS(type) (((type) >> 8) & 0xff)
#define CTRL_ENABLE (1u << 0)
#define CTRL_DEFAULT_MAP (1u << 2)

static void set_control(uint32_t control) {
    MPU_CTRL = control;
    __asm volatile("dsb\n isb");
}

uint32_t pt_protect_regions(void) {
    return TYPE_REGIONS(MPU_TYPE);
}

void pt_protect_suspend(void) {
    set_control(0);
}

void pt_protect_resume(void) {
    set_control(CTRL_ENABLE | CTRL_DEFAULT_MAP);
}
