/* Operations and parameter blocks: Arm, "Semihosting for AArch32 and AArch64". */

#include "semihosting.h"

#include <stdint.h>

#include "cortex_m.h"
#include "uart.h"

#define SYS_OPEN 0x01
#define SYS_CLOSE 0x02
#define SYS_WRITE 0x05
#define SYS_ERRNO 0x13
#define SYS_GET_CMDLINE 0x15
#define SYS_EXIT_EXTENDED 0x20

#define OPEN_MODE_WB 5
#define ADP_STOPPED_APPLICATION_EXIT 0x20026

static volatile bool is_asking, has_host;

static int breakpoint(uint32_t operation, const void *parameters) {
    register uint32_t r0 __asm("r0") = operation;
    register const void *r1 __asm("r1") = parameters;
    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return (int)r0;
}

/* A debugger without semihosting stops the core at the breakpoint, and may have left debugging
 * enabled: the REPL, which needs no host, makes no call then. Without a debugger an emulator
 * answers, or the call is a HardFault. */
void pt_semihosting_init(void) {
    if (PT_DHCSR & PT_DHCSR_C_DEBUGEN) {
        has_host = !PT_REPL;
        return;
    }
    has_host = true;
    is_asking = true;
    breakpoint(SYS_ERRNO, NULL);
    is_asking = false;
}

bool pt_semihosting_is_refused(void) {
    if (!is_asking) {
        return false;
    }
    has_host = false;
    return true;
}

static int semihosting_call(uint32_t operation, const void *parameters) {
    return has_host ? breakpoint(operation, parameters) : -1;
}

static uint32_t length_of(const char *text) {
    uint32_t length = 0;
    while (text[length] != '\0') {
        length++;
    }
    return length;
}

static void say(const char *text) {
    pt_uart_write(text, length_of(text));
}

void pt_exit(int status) {
    const uint32_t parameters[] = {ADP_STOPPED_APPLICATION_EXIT, (uint32_t)status};
    semihosting_call(SYS_EXIT_EXTENDED, parameters);
    say(status == 0 ? "\r\npicotorch: the run ended well" : "\r\npicotorch: the run failed");
    say("; no debugger takes its status and files\r\n");
    for (;;) {
        __asm volatile("wfi");
    }
}

int pt_file_open(const char *path) {
    const uint32_t parameters[] = {(uint32_t)path, OPEN_MODE_WB, length_of(path)};
    return semihosting_call(SYS_OPEN, parameters);
}

bool pt_file_write(int file, const void *data, size_t size) {
    const uint32_t parameters[] = {(uint32_t)file, (uint32_t)data, size};
    return semihosting_call(SYS_WRITE, parameters) == 0;
}

bool pt_file_close(int file) {
    const uint32_t parameters[] = {(uint32_t)file};
    return semihosting_call(SYS_CLOSE, parameters) == 0;
}

bool pt_write_file(const char *path, const void *data, size_t size) {
    int file = pt_file_open(path);
    if (file < 0) {
        return false;
    }
    bool is_written = pt_file_write(file, data, size);
    return pt_file_close(file) && is_written;
}

bool pt_command_line(char *line, size_t size) {
    const uint32_t parameters[] = {(uint32_t)line, size};
    return semihosting_call(SYS_GET_CMDLINE, parameters) == 0;
}
