#include "run_settings.h"
#include "job.h"
#include <string.h>

typedef struct row {
    uint32_t offset;
    uint32_t size;
    char name[24]; // padded with zeros
} row;

enum { HEADER_SIZE = 16, COUNT_AT = 12 };

static const uint8_t *job;
static pt_span settings;

static void add_text(name *n, const char *text) {
    while (*text) {
        n->text[n->length++] = *text++;
    }
}

static void add_number(name *n, uint32_t number) {
    char digits[10];
    uint32_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    while (count) {
        n->text[n->length++] = digits[--count];
    }
}

name name_of(const char *what, int32_t number, uint32_t execution) {
    name n = {{0}, 0};
    add_text(&n, what);
    if (number >= 0) {
        add_number(&n, (uint32_t)number);
    }
    if (execution) {
        add_text(&n, "_");
        add_number(&n, execution);
    }
    return n;
}

bool settings_open(void) {
    size_t size;
    job = pt_job(&size);
    return job != NULL && section_find("settings", &settings);
}

bool section_find(const char *wanted, pt_span *found) {
    const row *rows = (const row *)(const void *)(job + HEADER_SIZE);
    uint32_t count = *(const uint32_t *)(const void *)(job + COUNT_AT);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = 0;
        while (k < sizeof(rows[i].name) && rows[i].name[k] && rows[i].name[k] == wanted[k]) {
            k++;
        }
        if (!wanted[k] && (k == sizeof(rows[i].name) || !rows[i].name[k])) {
            *found = (pt_span){(uint8_t *)(uintptr_t)job + rows[i].offset, rows[i].size, true};
            return true;
        }
    }
    return false;
}

bool skip_prefix(pt_text *text, const char *start) {
    uint32_t n = 0;
    while (start[n]) {
        if (n == text->length || text->data[n] != start[n]) {
            return false;
        }
        n++;
    }
    text->data += n;
    text->length -= n;
    return true;
}

static pt_text split_line(pt_text *text) {
    pt_text line = {text->data, 0};
    while (line.length < text->length && line.data[line.length] != '\n') {
        line.length++;
    }
    uint32_t used = line.length + (line.length < text->length);
    text->data += used;
    text->length -= used;
    return line;
}

bool setting_find(const char *key, pt_text *value) {
    pt_text left = {settings.data, settings.size};
    while (left.length) {
        *value = split_line(&left);
        if (skip_prefix(value, key) && skip_prefix(value, "=")) {
            return true;
        }
    }
    return false;
}

int64_t parse_number(pt_text *text) {
    bool is_negative = skip_prefix(text, "-");
    uint64_t number = 0;
    for (; text->length && *text->data >= '0' && *text->data <= '9'; text->length--) {
        number = 10 * number + (uint64_t)(*text->data++ - '0');
    }
    return (int64_t)(is_negative ? 0 - number : number);
}

int64_t setting_number(const char *key) {
    pt_text value;
    return setting_find(key, &value) ? parse_number(&value) : 0;
}
