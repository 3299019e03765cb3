/* Faults end a run: registers on the UART, then exit through semihosting. Nothing here uses
 * the stack, the heap or the libraries of the code that faulted. */

#include "fault.h"

#include <stdbool.h>
#include <stddef.h>

#include "cortex_m.h"
#include "semihosting.h"
#include "stack.h"
#include "uart.h"

#define EXC_RETURN_PSP (1u << 2)
#define EXC_RETURN_BASIC_FRAME (1u << 4)
#define XPSR_FRAME_ALIGNED (1u << 9)
#define BASIC_FRAME_SIZE 32u
#define EXTENDED_FRAME_SIZE 104u
#define BREAKPOINT_SIZE 2u

uint64_t pt_fault_stack[128];

/* Registers that exception entry pushes, in its order. */
typedef struct {
    uint32_t r0, r1, r2, r3, r12, lr, pc, xpsr;
} exception_frame;

#define HARD_FAULT 3

static const char *const exception_names[] = {
    [2] = "NMI",
    [HARD_FAULT] = "HardFault",
    [4] = "MemManage fault",
    [5] = "BusFault",
    [6] = "UsageFault",
    [7] = "SecureFault",
    [11] = "unexpected SVCall",
    [14] = "unexpected PendSV",
};

static void put_string(const char *text) {
    size_t length = 0;
    while (text[length] != '\0') {
        length++;
    }
    pt_uart_write(text, length);
}

static void put_hex(const char *name, uint32_t value) {
    char digits[8];
    for (size_t i = 0; i < 8; i++) {
        digits[7 - i] = "0123456789abcdef"[value & 15];
        value >>= 4;
    }
    put_string(name);
    pt_uart_write(digits, sizeof(digits));
}

static void put_exception_name(uint32_t number) {
    const size_t count = sizeof(exception_names) / sizeof(exception_names[0]);
    put_string("\r\npicotorch: fault: ");
    if (number < count && exception_names[number] != NULL) {
        put_string(exception_names[number]);
    } else {
        put_hex("unexpected exception 0x", number);
    }
    put_string("\r\n");
}

static void put_frame(const exception_frame *frame, uint32_t exc_return) {
    uint32_t size = exc_return & EXC_RETURN_BASIC_FRAME ? BASIC_FRAME_SIZE : EXTENDED_FRAME_SIZE;
    uint32_t sp = (uint32_t)frame + size + (frame->xpsr & XPSR_FRAME_ALIGNED ? 4 : 0);
    put_hex("r0  ", frame->r0);
    put_hex(" r1  ", frame->r1);
    put_hex(" r2  ", frame->r2);
    put_hex(" r3  ", frame->r3);
    put_hex("\r\nr12 ", frame->r12);
    put_hex(" sp  ", sp);
    put_hex(" lr  ", frame->lr);
    put_hex(" pc  ", frame->pc);
    put_hex("\r\nxpsr ", frame->xpsr);
}

static void put_saved_registers(const uint32_t *r4_to_r11) {
    static const char *const names[] = {"\r\nr4  ", " r5  ", " r6  ", " r7  ",
                                        "\r\nr8  ", " r9  ", " r10 ", " r11 "};
    for (size_t i = 0; i < 8; i++) {
        put_hex(names[i], r4_to_r11[i]);
    }
}

static void put_fault_status(void) {
#if PT_CORE_HAS_FAULT_STATUS
    put_hex("\r\nCFSR ", PT_SCB_CFSR);
    put_hex(" HFSR ", PT_SCB_HFSR);
    put_hex(" MMFAR ", PT_SCB_MMFAR);
    put_hex(" BFAR ", PT_SCB_BFAR);
#endif
    put_string("\r\n");
}

/* True if exception entry could push the registers to the stack. A core that checks the limit
 * itself pushes nothing and leaves the stack pointer at the limit. */
static bool frame_is_readable(uint32_t sp, uint32_t exc_return) {
    if (!(exc_return & EXC_RETURN_PSP)) {
        return true;
    }
    return sp > (uint32_t)pt_stack_limit && sp <= (uint32_t)pt_stack_top - BASIC_FRAME_SIZE;
}

static bool stack_overflowed(uint32_t sp, uint32_t exc_return) {
    if (!(exc_return & EXC_RETURN_PSP)) {
        return false;
    }
#if PT_CORE_HAS_FAULT_STATUS
    if (PT_SCB_CFSR & PT_CFSR_STKOF) {
        return true;
    }
#endif
    return sp <= (uint32_t)pt_stack_limit;
}

/* Returns the address at which the program can continue. */
__attribute__((used)) void pt_fault_report(const uint32_t *r4_to_r11, uint32_t psp,
                                           uint32_t exc_return) {
    static bool reporting;
    uint32_t number;
    __asm volatile("mrs %0, ipsr" : "=r"(number));
    if (number == HARD_FAULT && pt_semihosting_is_refused()) {
        ((exception_frame *)psp)->pc += BREAKPOINT_SIZE;
        return;
    }
    if (reporting) {
        pt_exit(PT_FAULT_STATUS);
    }
    reporting = true;

    put_exception_name(number);

    uint32_t sp = exc_return & EXC_RETURN_PSP ? psp : (uint32_t)(r4_to_r11 + 8);
    if (stack_overflowed(sp, exc_return)) {
        put_hex("stack overflow: the stack ends at ", (uint32_t)pt_stack_limit);
        put_string("\r\n");
    }
    if (frame_is_readable(sp, exc_return)) {
        put_frame((const exception_frame *)sp, exc_return);
    } else {
        put_hex("r0-r3, r12, lr, pc and xpsr are lost, sp ", sp);
    }
    put_saved_registers(r4_to_r11);
    put_fault_status();
    pt_exit(PT_FAULT_STATUS);
}

/* Uses instructions that every Thumb core has. */
__attribute__((naked)) void pt_fault_entry(void) {
    __asm volatile("mov r0, r8\n"
                   "mov r1, r9\n"
                   "mov r2, r10\n"
                   "mov r3, r11\n"
                   "push {r0-r3}\n"
                   "push {r4-r7}\n"
                   "mov r0, sp\n"
                   "mrs r1, psp\n"
                   "mov r2, lr\n"
                   "mov r4, lr\n"
                   "ldr r3, =pt_fault_report\n"
                   "blx r3\n"
                   "mov r0, r4\n"
                   "pop {r4-r7}\n"
                   "add sp, #16\n"
                   "bx r0\n");
}
