#include "report.h"
#undef pt_report
#undef pt_report_bytes

int pt_report_bytes(pt_error *error, int code, uint8_t subject, int32_t index, uint32_t requested,
                    uint32_t available, const char *what) {
    *error = (pt_error){
        .code = (uint8_t)code,
        .subject = subject,
        .argument = PT_NO_INDEX,
        .index = index,
        .requested = requested,
        .available = available,
        .what = what,
    };
    return code;
}

int pt_report(pt_error *error, int code, uint8_t subject, int32_t index, const char *what) {
    return pt_report_bytes(error, code, subject, index, PT_NO_BYTES, PT_NO_BYTES, what);
}

int pt_report_outside(pt_error *error) {
    return pt_report(error, PT_ERROR_INVALID_PROGRAM, PT_SUBJECT_NONE, PT_NO_INDEX,
                     "something lies outside the file");
}
