#include "core/report.h"

int pt_report_sizes(pt_error *error, int code, uint8_t subject, int32_t index, uint32_t requested,
                    uint32_t available PT_TEXT(const char *what)) {
    *error = (pt_error){
        .code = (uint8_t)code,
        .subject = subject,
        .argument = PT_NO_INDEX,
        .index = index,
        .requested = requested,
        .available = available,
#ifndef PT_NO_TEXTS
        .what = what,
#endif
    };
    return code;
}

int pt_report_code(pt_error *error, int code, uint8_t subject,
                   int32_t index PT_TEXT(const char *what)) {
    return pt_report_sizes(error, code, subject, index, PT_NO_BYTES, PT_NO_BYTES PT_TEXT(what));
}

int pt_report_outside(pt_error *error) {
    return pt_report(error, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_NONE, PT_NO_INDEX,
                     "a part lies outside the file");
}
