// What the compiler and the library call of a C library: MicroPython's own, where it lends them.
#include "native.h"

void *memset(void *to, int value, size_t size) {
    return mp_fun_table.memset_(to, value, size);
}

void *memmove(void *to, const void *from, size_t size) {
    return mp_fun_table.memmove_(to, from, size);
}

void *memcpy(void *to, const void *from, size_t size) {
    return mp_fun_table.memmove_(to, from, size);
}

int memcmp(const void *a_in, const void *b_in, size_t size) {
    const uint8_t *a = a_in, *b = b_in;
    for (; size > 0 && *a == *b; size--) {
        a++;
        b++;
    }
    return size > 0 ? *a - *b : 0;
}

size_t strlen(const char *text) {
    const char *end = text;
    while (*end) {
        end++;
    }
    return (size_t)(end - text);
}
