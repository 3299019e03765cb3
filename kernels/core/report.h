// Errors: how the core fills a pt_error. Each function returns the code.
#ifndef PT_CORE_REPORT_H
#define PT_CORE_REPORT_H

#include "picotorch.h"

int pt_report(pt_error *error, int code, uint8_t subject, int32_t index, const char *what);
int pt_report_bytes(pt_error *error, int code, uint8_t subject, int32_t index, uint32_t requested,
                    uint32_t available, const char *what);
// InvalidProgram: something lies outside the file.
int pt_report_outside(pt_error *error);

// A build for which numbers are enough leaves the texts out, about 7 KB: PT_NO_TEXTS.
#ifdef PT_NO_TEXTS
#define pt_report(error, code, subject, index, what) \
    pt_report(error, code, subject, index, ((void)(what), NULL))
#define pt_report_bytes(error, code, subject, index, requested, available, what) \
    pt_report_bytes(error, code, subject, index, requested, available, ((void)(what), NULL))
#endif

#endif
