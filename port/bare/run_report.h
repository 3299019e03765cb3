// The file "report" for the host: the results of the run, as lines key=value.
#ifndef PT_BARE_RUN_REPORT_H
#define PT_BARE_RUN_REPORT_H

#include <picotorch/picotorch.h>

void report_start(void);
void report_text(const char *text);
// Writes a number as "0x1f" or "-0x1f".
void report_hex(int64_t number);
void report_digits(const void *data, uint32_t size); // two digits for each byte
// Writes a line with a number.
void report_number(const char *key, int64_t number);
void report_end(void);

#endif
