/* Arm semihosting: files and the exit status of the host that emulates or debugs the board. */

#ifndef PT_SEMIHOSTING_H
#define PT_SEMIHOSTING_H

#include <stdbool.h>
#include <stddef.h>

/* Detects a host. Before this call, and without a host, every call below fails. */
void pt_semihosting_init(void);

/* For the handler of HardFault: true if the fault means that there is no host. Then the handler
 * returns behind the 2 bytes of the instruction. */
bool pt_semihosting_is_refused(void);

/* Ends the run. The emulator's own exit status becomes status (0 to 255). Without a host, the
 * function prints the status on the UART and stops. */
__attribute__((noreturn)) void pt_exit(int status);

/* Writes a file of the host; returns false if it cannot be opened or not all was written. */
bool pt_write_file(const char *path, const void *data, size_t size);

/* Write a file of the host in parts. A negative file number means that the file could not be
 * opened. */
int pt_file_open(const char *path);
bool pt_file_write(int file, const void *data, size_t size);
bool pt_file_close(int file);

/* Copies the emulator's command line, zero-terminated, to line; returns false if it does not
 * fit. */
bool pt_command_line(char *line, size_t size);

#endif
