/* Operations and parameter blocks: Arm, "Semihosting for AArch32 and AArch64". */

#include "semihosting.h"

#include <stdint.h>
#include <string.h>

#define SYS_OPEN 0x01
#define SYS_CLOSE 0x02
#define SYS_WRITE 0x05
#define SYS_GET_CMDLINE 0x15
#define SYS_EXIT_EXTENDED 0x20

#define OPEN_MODE_WB 5
#define ADP_STOPPED_APPLICATION_EXIT 0x20026

static int call(uint32_t operation, const void *parameters) {
    register uint32_t r0 __asm("r0") = operation;
    register const void *r1 __asm("r1") = parameters;
    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return (int)r0;
}

void pt_exit(int status) {
    const uint32_t parameters[] = {ADP_STOPPED_APPLICATION_EXIT, (uint32_t)status};
    for (;;) {
        call(SYS_EXIT_EXTENDED, parameters);
    }
}

bool pt_write_file(const char *path, const void *data, size_t size) {
    const uint32_t open[] = {(uint32_t)path, OPEN_MODE_WB, strlen(path)};
    int handle = call(SYS_OPEN, open);
    if (handle < 0) {
        return false;
    }
    const uint32_t write[] = {(uint32_t)handle, (uint32_t)data, size};
    int bytes_left = call(SYS_WRITE, write);
    const uint32_t close[] = {(uint32_t)handle};
    return call(SYS_CLOSE, close) == 0 && bytes_left == 0;
}

bool pt_command_line(char *line, size_t size) {
    const uint32_t parameters[] = {(uint32_t)line, size};
    return call(SYS_GET_CMDLINE, parameters) == 0;
}
