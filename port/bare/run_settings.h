// The job: its sections, and the lines key=value of its section "settings"; see
// host/picotorch/run/job.py.
#ifndef PT_BARE_RUN_SETTINGS_H
#define PT_BARE_RUN_SETTINGS_H

#include <picotorch/picotorch.h>

enum { NO_NUMBER = -1 };

// A terminated text.
typedef struct name {
    char text[32];
    uint32_t length;
} name;

// Returns "in0_1" for "in", 0, 1: input 0 of execution 1. Execution 0 has no suffix: "in0".
name name_of(const char *what, int32_t number, uint32_t execution);

// Returns false if there is no job.
bool settings_open(void);
bool section_find(const char *wanted, pt_span *found);
bool setting_find(const char *key, pt_text *value);
// Returns 0 if the setting is missing.
int64_t setting_number(const char *key);
// Reads a decimal number at the start of a text, and removes it.
int64_t parse_number(pt_text *text);
// Removes `start` from the start of the text; returns false if the text starts differently.
bool skip_prefix(pt_text *text, const char *start);

#endif
