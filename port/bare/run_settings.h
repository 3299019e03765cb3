// The job: its sections, and the lines key=value of its section "settings"; see
// host/picotorch/run/job.py.
#ifndef PT_BARE_RUN_SETTINGS_H
#define PT_BARE_RUN_SETTINGS_H

#include <picotorch/picotorch.h>

enum { NO_NUMBER = -1 };

// Terminated.
typedef struct name {
    char text[32];
    uint32_t length;
} name;

// "in", 0, 1 -> "in0_1": of input 0 of execution 1. Of the first execution, 0, it is "in0".
name name_of(const char *what, int32_t number, uint32_t execution);

// False where there is no job.
bool settings_open(void);
bool section_find(const char *wanted, pt_span *found);
bool setting_find(const char *key, pt_text *value);
// 0 where it is not there.
int64_t setting_number(const char *key);
// The decimal number that a text begins with, which is taken off.
int64_t parse_number(pt_text *text);
// True when the text begins with `start`, which is taken off.
bool skip_prefix(pt_text *text, const char *start);

#endif
