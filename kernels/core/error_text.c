// The text of an error, for people. No other part of the library calls it, so a linker drops it
// where the caller does not use it.
#include "core/generated/error_words.inc"
#include <picotorch/picotorch.h>

typedef struct writer {
    char *text;
    uint32_t size;   // bytes at text
    uint32_t length; // length of the whole text, with the part that did not fit
} writer;

static void write_text(writer *w, const char *text) {
    for (; *text; text++, w->length++) {
        if (w->length + 1 < w->size) {
            w->text[w->length] = *text;
        }
    }
}

static void write_number(writer *w, uint32_t number) {
    char digits[11];
    char *first = digits + sizeof(digits) - 1;
    *first = 0;
    do {
        *--first = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    write_text(w, first);
}

static void write_code(writer *w, uint8_t code) {
    const char digits[] = "0123456789ABCDEF";
    const char text[] = {'0', 'x', digits[code >> 4], digits[code & 15], 0};
    write_text(w, text);
}

static const char *behind(const char *text) {
    while (*text++) {
    }
    return text;
}

static const char *error_name(uint8_t code) {
    const char *end = error_names + sizeof(error_names) - 1;
    for (const char *name = error_names; name < end; name = behind(name)) {
        if ((uint8_t)*name == code) {
            return name + 1;
        }
    }
    return code ? "Unknown" : "Ok";
}

static const char *subject_name(uint8_t subject) {
    const char *end = subject_names + sizeof(subject_names) - 1, *name = subject_names;
    for (uint32_t i = 0; i < subject && name < end; i++) {
        name = behind(name);
    }
    return name < end ? name : "";
}

static void write_bytes(writer *w, const pt_error *error) {
    bool counts_arguments = error->subject == PT_SUBJECT_INSTRUCTION;
    write_number(w, error->requested);
    write_text(w, counts_arguments ? " arguments wanted" : "B requested");
    if (error->available != PT_NO_BYTES) {
        write_text(w, ", ");
        write_number(w, error->available);
        write_text(w, counts_arguments ? " given" : "B available");
    }
}

// Writes ": " before every part but the first, which begins at `start`.
static void write_separator(writer *w, uint32_t start) {
    if (w->length > start) {
        write_text(w, ": ");
    }
}

static void write_subject(writer *w, const pt_error *error, uint32_t start) {
    const char *name = subject_name(error->subject);
    if (*name) {
        write_text(w, name);
        if (error->index >= 0) {
            write_text(w, " ");
            write_number(w, (uint32_t)error->index);
        }
    }
    if (error->subject == PT_SUBJECT_KERNEL && error->argument >= 0) {
        write_separator(w, start);
        write_text(w, "argument ");
        write_number(w, (uint32_t)error->argument);
    }
}

uint32_t pt_error_text(const pt_error *error, char *text, uint32_t size) {
    writer w = {text, size, 0};
    write_text(&w, error_name(error->code));
    write_text(&w, " (");
    write_code(&w, error->code);
    write_text(&w, "): ");
    uint32_t start = w.length;
    write_subject(&w, error, start);
    if (error->requested != PT_NO_BYTES) {
        write_separator(&w, start);
        write_bytes(&w, error);
    }
    if (error->what && *error->what) {
        if (*error->what != ';') {
            write_separator(&w, start);
        }
        write_text(&w, error->what);
    }
    if (size) {
        text[w.length < size ? w.length : size - 1] = 0;
    }
    return w.length;
}
