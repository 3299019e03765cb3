// Functions that fill a pt_error. Each returns the code.
#ifndef PT_CORE_REPORT_H
#define PT_CORE_REPORT_H

#include <picotorch/picotorch.h>

// PT_NO_TEXTS omits the texts, about 7 KB.
#ifdef PT_NO_TEXTS
#define PT_TEXT(what)
#define pt_report(error, code, subject, index, what) \
    ((void)(what), pt_report_code(error, code, subject, index))
#define pt_report_bytes(error, code, subject, index, requested, available, what) \
    ((void)(what), pt_report_sizes(error, code, subject, index, requested, available))
#else
#define PT_TEXT(what) , what
#define pt_report pt_report_code
#define pt_report_bytes pt_report_sizes
#endif

int pt_report_code(pt_error *error, int code, uint8_t subject,
                   int32_t index PT_TEXT(const char *what));
int pt_report_sizes(pt_error *error, int code, uint8_t subject, int32_t index, uint32_t requested,
                    uint32_t available PT_TEXT(const char *what));
// Reports InvalidProgram: a part lies outside the file.
int pt_report_outside(pt_error *error);

// Reports NotFound: no method has the name.
static inline int pt_report_no_method(pt_error *error) {
    return pt_report(error, PT_ERROR_NOT_FOUND, PT_SUBJECT_METHOD_NAME, PT_NO_INDEX,
                     "no method has this name; use the name of one of the program's methods");
}

#endif
