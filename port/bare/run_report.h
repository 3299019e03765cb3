// The file "report", which tells the host what came of the run: lines key=value.
#ifndef PT_BARE_RUN_REPORT_H
#define PT_BARE_RUN_REPORT_H

#include <picotorch/picotorch.h>

void report_start(void);
void report_text(const char *text);
// "0x1f", "-0x1f"
void report_hex(int64_t number);
void report_digits(const void *data, uint32_t size); // two for each byte
// A line with a number.
void report_number(const char *key, int64_t number);
void report_end(void);

#endif
