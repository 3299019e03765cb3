/* From reset to main: stacks, FPU, traps, data and bss. */

#include <stdint.h>

#include "board.h"
#include "cortex_m.h"
#include "fault.h"
#include "interrupt.h"
#include "protect.h"
#include "semihosting.h"
#include "stack.h"
#include "systick.h"
#include "uart.h"

extern uint32_t pt_data_load[], pt_data_start[], pt_data_end[], pt_bss_start[], pt_bss_end[];

int main(void);
void pt_reset(void);
void pt_startup(void);

/* Thread code runs on its own stack (PSP); exceptions have another (MSP), so that the
 * overflow of one can be reported from the other. */
__attribute__((naked)) void pt_reset(void) {
    __asm volatile("ldr r0, =pt_stack_top\n"
                   "msr psp, r0\n"
                   "movs r0, #2\n"
                   "msr control, r0\n"
                   "isb\n"
                   "ldr r0, =pt_startup\n"
                   "bx r0\n");
}

/* The only external interrupt that is ever enabled belongs to the UART. */
#if PT_REPL
#define EXTERNAL_ENTRY pt_uart_receive_irq
#define SYSTICK_ENTRY pt_systick_entry
#else
#define EXTERNAL_ENTRY pt_fault_entry
#define SYSTICK_ENTRY pt_interrupt_entry
#endif

__attribute__((section(".vectors"), used)) static const struct {
    const void *stack;
    void (*system[15])(void);
    void (*external[64])(void);
} vectors = {
    .stack = (const uint8_t *)pt_fault_stack + sizeof(pt_fault_stack),
    .system = {[0] = pt_reset, [1 ... 13] = pt_fault_entry, [14] = SYSTICK_ENTRY},
    .external = {[0 ... 63] = EXTERNAL_ENTRY},
};

#define INTERRUPTS 96u /* a multiple of 32; the STM32F405 has 82 */

/* A boot loader has its own vectors, and may have left interrupts enabled or masked. */
static void reset_interrupts(void) {
    PT_SYSTICK_CSR = 0;
    for (uint32_t irq = 0; irq < INTERRUPTS; irq += 32u) {
        PT_NVIC_ICER(irq) = UINT32_MAX;
    }
    PT_SCB_VTOR = (uint32_t)&vectors;
    __asm volatile("cpsie i");
}

static void set_up_core(void) {
#if PT_BOARD_FPU
    PT_SCB_CPACR |= PT_CPACR_CP10_CP11_FULL;
    __asm volatile("dsb\n isb");
#endif
    PT_SCB_CCR |= PT_CCR_UNALIGN_TRP | PT_CCR_STKALIGN;
#if PT_CORE_HAS_FAULT_STATUS
    PT_SCB_SHCSR |= PT_SHCSR_FAULTS_ENABLE;
#endif
}

static void set_up_memory(void) {
    const uint32_t *from = pt_data_load;
    for (uint32_t *to = pt_data_start; to < pt_data_end; to++) {
        *to = *from++;
    }
    for (uint32_t *to = pt_bss_start; to < pt_bss_end; to++) {
        *to = 0;
    }
}

__attribute__((used)) void pt_startup(void) {
    reset_interrupts();
    set_up_core();
    set_up_memory();
    pt_uart_init();
    pt_protect_init();
    pt_semihosting_init();
    pt_exit(main());
}
