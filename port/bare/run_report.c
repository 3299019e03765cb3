#include "run_report.h"
#include "semihosting.h"

static char buffer[256];
static uint32_t used;
static int file;

void report_start(void) {
    file = pt_file_open("report");
}

static void flush(void) {
    pt_file_write(file, buffer, used);
    used = 0;
}

void report_end(void) {
    flush();
    pt_file_close(file);
}

static void run_report_put(char c) {
    if (used == sizeof(buffer)) {
        flush();
    }
    buffer[used++] = c;
}

void report_text(const char *text) {
    while (*text) {
        run_report_put(*text++);
    }
}

void report_digits(const void *data, uint32_t size) {
    const uint8_t *bytes = data;
    while (size--) {
        run_report_put("0123456789abcdef"[*bytes >> 4]);
        run_report_put("0123456789abcdef"[*bytes++ & 15]);
    }
}

void report_hex(int64_t number) {
    uint64_t magnitude = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    report_text(number < 0 ? "-0x" : "0x");
    for (int shift = 56; shift >= 0; shift -= 8) {
        report_digits(&(uint8_t){(uint8_t)(magnitude >> shift)}, 1);
    }
}

void report_number(const char *key, int64_t number) {
    report_text(key);
    run_report_put('=');
    report_hex(number);
    run_report_put('\n');
}
