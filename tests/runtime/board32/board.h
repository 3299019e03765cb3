// Define the memories of a board that is a process of this machine.
#ifndef PT_BOARD_H
#define PT_BOARD_H

#include <stdint.h>

#define PT_BOARD_NAME "board32"
#define PT_BOARD_CORE "i386"
#define PT_HEAP_SIZE 0x20000u

extern uint8_t *pt_job_address; // the file that the command line names
#define PT_JOB_ADDRESS pt_job_address
#define PT_JOB_SIZE 0x1000000u

#define PT_ARENA_ALIGNMENT 128
#define PT_BOARD_ARENAS(X) \
    X(pool, 0x100000, ram) \
    X(temp, 0x10000, ram)  \
    X(planned, 0xf00000, external) X(planned1, 0x40000, ram)

#endif
