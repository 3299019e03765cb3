// Define the functions of a board that port/firmware needs, for a process of this machine:
// `firmware JOB` runs a job as a board does. There are no interrupts and faults.
#include "../../../port/firmware/counter.h"
#include "../../../port/firmware/fault.h"
#include "../../../port/firmware/interrupt.h"
#include "../../../port/firmware/semihosting.h"
#include "py/gc.h"
#include "py/mphal.h"
#include "py/objarray.h"
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { STACK_SIZE = 1 << 18 };

int firmware_main(void);

uint8_t *pt_job_address;
uint8_t *pt_stack_limit, *pt_stack_top; // stack.h declares them as symbols of a linker

// ---- semihosting

void pt_exit(int status) {
    fflush(stdout);
    exit(status);
}

bool pt_write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    bool written = file && fwrite(data, 1, size, file) == size;
    return file && fclose(file) == 0 && written;
}

bool pt_command_line(char *line, size_t size) {
    (void)line;
    (void)size;
    return false;
}

void pt_uart_write(const char *text, size_t length);
void pt_uart_write(const char *text, size_t length) {
    fwrite(text, 1, length, stdout);
}

// ---- figures that are not measured here

void pt_counter_start(void) {
}

uint64_t pt_counter_instructions(void) {
    return 0;
}

uint64_t pt_counter_stop(void) {
    return 0;
}

void pt_counter_set_overhead(uint32_t instructions) {
    (void)instructions;
}

void pt_stack_paint(void);
uint32_t pt_stack_used(void), pt_stack_untouched(void);

void pt_stack_paint(void) {
}

uint32_t pt_stack_used(void) {
    return 0;
}

uint32_t pt_stack_untouched(void) {
    return 0;
}

bool pt_fault_provoke(const char *kind) {
    (void)kind;
    return false;
}

void pt_interrupt_after(uint32_t ticks) {
    (void)ticks;
}

// ---- the board

// Use a page that cannot be read as address 0.
mp_obj_t pt_new_memoryview(byte typecode, size_t n, void *items);
mp_obj_t pt_new_memoryview(byte typecode, size_t n, void *items) {
    static uint8_t zeros[64];
    return mp_obj_new_memoryview(typecode, n, items ? items : zeros);
}

int main(int n, char **arguments) {
    FILE *file = n == 2 ? fopen(arguments[1], "rb") : NULL;
    if (!file || fseek(file, 0, SEEK_END)) {
        fprintf(stderr, "firmware JOB\n");
        return 2;
    }
    size_t size = (size_t)ftell(file);
    rewind(file);
    pt_job_address = memalign(128, size);
    if (fread(pt_job_address, 1, size, file) != size) {
        return 2;
    }
    fclose(file);
    pt_stack_top = __builtin_frame_address(0);
    pt_stack_limit = pt_stack_top - STACK_SIZE;
    pt_exit(firmware_main());
}
