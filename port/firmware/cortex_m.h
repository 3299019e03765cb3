/* Registers of the Cortex-M system control space that the firmware uses (ARMv7-M ARM, B3; ARMv8-M
 * ARM, D1). */

#ifndef PT_CORTEX_M_H
#define PT_CORTEX_M_H

#include <stdint.h>

#define PT_REGISTER(address) (*(volatile uint32_t *)(address))

#define PT_SYSTICK_CSR PT_REGISTER(0xe000e010u)
#define PT_SYSTICK_RVR PT_REGISTER(0xe000e014u)
#define PT_SYSTICK_CVR PT_REGISTER(0xe000e018u)
#define PT_SCB_ICSR PT_REGISTER(0xe000ed04u)
#define PT_SCB_VTOR PT_REGISTER(0xe000ed08u)
#define PT_SCB_AIRCR PT_REGISTER(0xe000ed0cu)
#define PT_SCB_CCR PT_REGISTER(0xe000ed14u)
#define PT_SCB_SHCSR PT_REGISTER(0xe000ed24u)
#define PT_SCB_CFSR PT_REGISTER(0xe000ed28u)
#define PT_SCB_HFSR PT_REGISTER(0xe000ed2cu)
#define PT_SCB_MMFAR PT_REGISTER(0xe000ed34u)
#define PT_SCB_BFAR PT_REGISTER(0xe000ed38u)
#define PT_SCB_CPACR PT_REGISTER(0xe000ed88u)
#define PT_DHCSR PT_REGISTER(0xe000edf0u)
#define PT_NVIC_ISER(irq) PT_REGISTER(0xe000e100u + (irq) / 32u * 4u)
#define PT_NVIC_ICER(irq) PT_REGISTER(0xe000e180u + (irq) / 32u * 4u)
#define PT_NVIC_ISPR(irq) PT_REGISTER(0xe000e200u + (irq) / 32u * 4u)

#define PT_ICSR_PENDSTCLR (1u << 25)
#define PT_ICSR_PENDSTSET (1u << 26)
#define PT_AIRCR_RESET 0x05fa0004u /* the key of the register, and SYSRESETREQ */
#define PT_CCR_UNALIGN_TRP (1u << 3)
#define PT_CCR_DIV_0_TRP (1u << 4)
#define PT_CCR_STKALIGN (1u << 9)
#define PT_SHCSR_FAULTS_ENABLE (7u << 16)
#define PT_CPACR_CP10_CP11_FULL (0xfu << 20)
#define PT_CFSR_STKOF (1u << 20)
#define PT_DHCSR_C_DEBUGEN (1u << 0)

/* ARMv6-M has one fault, HardFault, and no register with its cause. */
#define PT_CORE_HAS_FAULT_STATUS (__ARM_ARCH >= 7)

static inline uint32_t pt_irq_disable(void) {
    uint32_t primask;
    __asm volatile("mrs %0, primask\n cpsid i" : "=r"(primask)::"memory");
    return primask;
}

static inline void pt_irq_restore(uint32_t primask) {
    __asm volatile("msr primask, %0" ::"r"(primask) : "memory");
}

static inline void pt_irq_enable(uint32_t irq) {
    PT_NVIC_ISER(irq) = 1u << irq % 32u;
}

static inline void pt_irq_mask(uint32_t irq) {
    PT_NVIC_ICER(irq) = 1u << irq % 32u;
}

/* Enables an interrupt and has its handler called, whatever the state of the peripheral. */
static inline void pt_irq_call(uint32_t irq) {
    PT_NVIC_ISPR(irq) = 1u << irq % 32u;
    pt_irq_enable(irq);
}

static inline uint32_t pt_stack_pointer(void) {
    uint32_t sp;
    __asm volatile("mov %0, sp" : "=r"(sp));
    return sp;
}

#endif
